"""Rewards in every form in which environments return them: no episode is lost, a vector is kept by parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from rollbook.capture.gym import RecordEpisodes
from rollbook.capture.multiagent import RecordParallel

Box = gymnasium.spaces.Box


class Tensor:
    """What a tensor with a graph allows: nothing of numpy before `detach`."""

    def __init__(self, data: Any, graph: bool = True) -> None:
        self.data, self.graph = np.asarray(data), graph

    def detach(self) -> Tensor:
        return Tensor(self.data, graph=False)

    def cpu(self) -> Tensor:
        return self

    def item(self) -> Any:
        if self.data.size != 1:
            raise RuntimeError("a Tensor with 2 elements cannot be converted to Scalar")
        return self.data.item()

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if self.graph:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad")
        return np.asarray(self.data, dtype=dtype)

    def __bool__(self) -> bool:
        return bool(self.item())

    def __add__(self, other: object) -> Any:
        raise AssertionError("the recorder adds to the graph of the training")

    __radd__ = __add__


NUMBERS: list[Callable[[], object]] = [
    lambda: 1.5,
    lambda: np.float32(1.5),
    lambda: np.array(1.5),
    lambda: np.array([1.5]),
    lambda: np.array([[1.5]]),
    lambda: Tensor(1.5),
    lambda: Tensor([1.5]),
    lambda: np.float16(1.5),
]
VECTORS: list[Callable[[], object]] = [
    lambda: [1.0, 0.5],
    lambda: np.array([1.0, 0.5], np.float32),
    lambda: (1.0, np.float32(0.5)),
    lambda: np.array([[1.0], [0.5]]),
    lambda: Tensor([1.0, 0.5]),
    lambda: np.array([1.0, 0.5], object),
]


class Pays(gymnasium.Env):  # type: ignore[misc]
    """Episodes of three steps that pay `reward()` each."""

    observation_space, action_space = Box(-1, 1, (1,), np.float32), gymnasium.spaces.Discrete(2)

    def __init__(self, reward: Callable[[], object]) -> None:
        self.reward = reward

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.t = 0
        return np.zeros(1, np.float32), {}

    def step(self, action: object) -> Any:
        self.t += 1
        return np.zeros(1, np.float32), self.reward(), self.t == 3, False, {}


class Together(gymnasium.vector.VectorEnv):  # type: ignore[misc]
    """Two of these whose rewards are one object."""

    num_envs, spec = 2, None
    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012
    single_observation_space, single_action_space = Pays.observation_space, Pays.action_space
    observation_space = Box(-1, 1, (2, 1), np.float32)
    action_space = gymnasium.spaces.MultiDiscrete([2, 2])

    def __init__(self, rewards: Callable[[], object], ends: Callable[[Any], object]) -> None:
        self.rewards, self.ends = rewards, ends

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.t = 0
        return np.zeros((2, 1), np.float32), {}

    def step(self, actions: object) -> Any:
        self.t = 0 if self.t == 3 else self.t + 1
        ends = self.ends(np.full(2, self.t == 3))
        return np.zeros((2, 1), np.float32), self.rewards(), ends, self.ends(np.zeros(2, bool)), {}


def _parts(notebook: Any) -> dict[str, set[float]]:
    sums: dict[str, set[float]] = {}
    for row in notebook.run.book.table("rewards").to_pylist():
        sums.setdefault(row["component"], set()).add(row["sum"])
    return sums


def _run_single(env: Any, notebook: Any, **settings: Any) -> list[float]:
    recorded = RecordEpisodes(env, notebook.scope("train"), **settings)
    for _ in range(2):
        recorded.reset()
        for _ in range(3):
            recorded.step(0)
    recorded.close()
    return list(notebook.run.book.episodes().column("return").to_pylist())


@pytest.mark.parametrize("place", range(len(NUMBERS)))
def test_a_number_in_any_form_is_the_reward(notebook: Any, place: int) -> None:
    assert _run_single(Pays(NUMBERS[place]), notebook) == [4.5, 4.5]
    assert notebook.run.book.table("rewards").num_rows == 0


@pytest.mark.parametrize("place", range(len(VECTORS)))
def test_a_vector_in_any_form_is_kept_by_component_and_its_sum_is_the_return(notebook: Any, place: int) -> None:
    assert _run_single(Pays(VECTORS[place]), notebook, steps="every 1") == [4.5, 4.5]
    assert _parts(notebook) == {"": {4.5}, "0": {3.0}, "1": {1.5}}


def test_a_sum_of_small_32_bit_rewards_has_all_digits(notebook: Any) -> None:
    env = Pays(lambda: np.float32(16_777_217.0))
    assert _run_single(env, notebook) == [3.0 * float(np.float32(16_777_217.0))] * 2


@pytest.mark.parametrize("odd", [None, "much", object(), {"a": "b"}])
def test_what_is_no_reward_costs_its_number_not_the_episode(notebook: Any, odd: object) -> None:
    assert [str(value) for value in _run_single(Pays(lambda: odd), notebook)] == ["nan", "nan"]
    assert notebook.run.book.episodes().column("length").to_pylist() == [3, 3]


@pytest.mark.parametrize("ends", [lambda ends: ends, Tensor, list], ids=["array", "tensor", "list"])
@pytest.mark.parametrize(
    ("rewards", "parts"),
    [
        (lambda: [1.5, 1.5], {}),
        (lambda: Tensor([1.5, 1.5]), {}),
        (lambda: np.array([[1.5], [1.5]]), {}),
        (lambda: np.array([[1.0, 0.5]] * 2), {"": {4.5}, "0": {3.0}, "1": {1.5}}),
        (lambda: Tensor([[1.0, 0.5]] * 2), {"": {4.5}, "0": {3.0}, "1": {1.5}}),
        (lambda: [[1.0, 0.5], [1.0, 0.5]], {"": {4.5}, "0": {3.0}, "1": {1.5}}),
    ],
)
def test_a_vector_of_environments_may_return_them_too(notebook: Any, rewards: Any, parts: Any, ends: Any) -> None:
    recorded = RecordEpisodes(Together(rewards, ends), notebook.scope("train"))
    recorded.reset()
    for _ in range(8):
        recorded.step([0, 0])
    recorded.close()
    assert notebook.run.book.episodes().column("return").to_pylist() == [4.5] * 4
    assert _parts(notebook) == parts


def test_environments_inside_of_a_vector_pay_by_component(notebook: Any) -> None:
    recorded = RecordEpisodes(Together(lambda: np.array([[1.0, 0.5]] * 2), lambda ends: ends), notebook.scope("train"))
    recorded.close()
    inside = SyncVectorEnv([lambda: RecordEpisodes(Pays(lambda: 1.5), notebook.scope("train"))])
    inside.reset()
    for _ in range(4):
        inside.step([0])
    inside.close()
    assert notebook.run.book.episodes().column("return").to_pylist() == [4.5]


class Stay:
    """Agents that stay in `agents` after their end, as some environments have it, and are paid by component."""

    possible_agents = ["a", "b"]  # noqa: RUF012
    metadata: dict[str, object] = {}  # noqa: RUF012

    def reset(self, seed: Any = None, options: Any = None) -> Any:
        self.agents, self.t = ["a", "b"], 0
        return dict.fromkeys(self.agents, 0), {}

    def step(self, actions: Any) -> Any:
        self.t += 1
        rewards = {"a": np.array([1.0, 0.5]), "b": Tensor(2.0)}
        ends = {"a": self.t >= 2, "b": self.t >= 3}
        return dict.fromkeys(self.agents, 0), rewards, ends, dict.fromkeys(self.agents, False), {}


def test_an_episode_is_complete_when_all_agents_that_are_left_have_ended(notebook: Any) -> None:
    env = RecordParallel(Stay(), notebook.scope("train"))
    for _ in range(2):
        env.reset()
        for _ in range(3):
            env.step({"a": 0, "b": 0})
    episodes = notebook.run.book.episodes().to_pylist()
    assert [(row["complete"], row["return"], row["length"]) for row in episodes] == [(True, 10.5, 3)] * 2
    sums = {(row["agent"], row["component"]): row["sum"] for row in notebook.run.book.table("rewards").to_pylist()}
    assert sums == {("a", ""): 4.5, ("a", "0"): 3.0, ("a", "1"): 1.5, ("b", ""): 6.0}
