"""Vectors of gymnasium environments in all three autoreset modes, recorded inside and around."""

from __future__ import annotations

import gc
import itertools
import json
import os
from collections import Counter
from typing import Any

import gymnasium
import numpy as np
import pyarrow as pa
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from cases import some_of
from rollbook.capture.gym import RecordEpisodes, RecordVectorEpisodes, record_envs

MODES = list(AutoresetMode)


def drive(envs: Any, steps: int, seed: int | None = 5, actions: Any = None) -> list[Any]:
    """Run a vector as its mode wants it; returns all that came out."""
    n, mode = envs.num_envs, envs.metadata["autoreset_mode"]
    out: list[Any] = [envs.reset(seed=seed)]
    rng = np.random.default_rng(0)
    for _ in range(steps):
        acts = rng.integers(0, 2, n) if actions is None else actions
        result = envs.step(acts)
        out.append(result)
        over = np.logical_or(result[2], result[3])
        if mode is AutoresetMode.DISABLED and over.any():
            out.append(envs.reset(options={"reset_mask": over}))
    return out


def expected(lengths: list[int], steps: int, mode: AutoresetMode) -> Counter[int]:
    """The lengths of finished episodes of one sub-environment after `steps` steps of the vector, by hand."""
    found: Counter[int] = Counter()
    used, episode = 0, 0
    while True:
        length = lengths[episode % len(lengths)]
        if used + length > steps:
            return found
        found[length] += 1
        used += length + (1 if mode is AutoresetMode.NEXT_STEP else 0)
        episode += 1


@pytest.mark.parametrize(
    ("inside", "mode"),
    some_of(itertools.product([True, False], MODES), lambda case: case[0] == (list(MODES).index(case[1]) % 2 == 0)),
)
def test_a_vector_of_16_gives_every_episode_its_true_return_and_length(
    notebook: Any, make_env: Any, mode: AutoresetMode, inside: bool
) -> None:
    makers = [lambda i=i: make_env([3, 2 + i % 4], reward=0.5) for i in range(16)]
    envs = RecordEpisodes(SyncVectorEnv(makers, autoreset_mode=mode), notebook, inside=inside)
    assert isinstance(envs, RecordVectorEpisodes)
    drive(envs, 40)
    for i in range(16):
        rows = [row for row in notebook.table("episodes") if row["env_index"] == i and row["complete"]]
        assert Counter(row["length"] for row in rows) == expected([3, 2 + i % 4], 40, mode)
        assert all(row["return"] == 0.5 * row["length"] for row in rows)
    finished = [row for row in notebook.table("episodes") if row["complete"]]
    assert len(notebook.logged) == len(finished)
    assert len({row["episode_id"] for row in finished}) == len(finished)
    assert notebook.table("alerts") == []
    assert notebook.counts == {}
    envs.close()


@pytest.mark.parametrize("own", [True, False], ids=["record_envs", "plain"])
def test_a_vector_that_was_made_of_a_generator_is_recorded_once(notebook: Any, make_env: Any, own: bool) -> None:
    makers = [lambda i=i: make_env([2 + i]) for i in range(3)]
    makers = record_envs(makers, notebook) if own else makers
    envs = RecordEpisodes(SyncVectorEnv(make for make in makers), notebook)  # as `make_vec` of gymnasium 1.2 does
    drive(envs, 12)
    finished = Counter(row["length"] for row in notebook.table("episodes") if row["complete"])
    assert finished == sum((expected([2 + i], 12, AutoresetMode.NEXT_STEP) for i in range(3)), Counter())
    assert notebook.counts == {}
    envs.close()


@pytest.mark.parametrize("mode", MODES)
def test_the_agent_of_a_vector_sees_exactly_what_it_saw_before(notebook: Any, mode: AutoresetMode) -> None:
    def vector() -> Any:
        return SyncVectorEnv([lambda: gymnasium.make("CartPole-v1")] * 3, autoreset_mode=mode)

    for settings in ({"inside": True, "steps": True}, {"inside": False, "steps": "best"}):
        plain, recorded = drive(vector(), 60), drive(RecordEpisodes(vector(), notebook, **settings), 60)
        for mine, theirs in zip(recorded, plain, strict=True):
            assert_alike(mine, theirs)


def assert_alike(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    if isinstance(one, tuple):
        for a, b in zip(one, other, strict=True):
            assert_alike(a, b)
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for key in one:
            assert_alike(one[key], other[key])
    elif one.dtype == object:
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)
    else:
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("inside", [True, False])
def test_trajectories_of_a_vector_hold_what_each_sub_environment_saw(
    notebook: Any, make_env: Any, mode: AutoresetMode, inside: bool
) -> None:
    makers = [lambda: make_env([3, 2], fresh=not inside)] * 2  # merged infos hold final observations by reference
    envs = RecordEpisodes(SyncVectorEnv(makers, autoreset_mode=mode), notebook, inside=inside, steps=True)
    drive(envs, 9, actions=np.array([1, 2]))
    for row in [row for row in notebook.table("episodes") if row["complete"]]:
        steps = [step for step in notebook.table("steps") if step["episode_id"] == row["episode_id"]]
        assert [step["t"] for step in steps] == list(range(row["length"] + 1))
        assert [step["obs"][1] for step in steps] == list(range(row["length"] + 1))
        assert [step.get("action") for step in steps[:-1]] == [row["env_index"] + 1] * row["length"]
        assert [step.get("terminated") for step in steps[:-1]] == [False] * (row["length"] - 1) + [True]
    envs.close()


def test_infos_are_recorded_before_they_are_merged(notebook: Any, make_env: Any) -> None:
    # merged, the 2.5 of the second environment becomes 2 beside the integer of the first, and ragged arrays raise
    def of(value: Any) -> Any:
        return lambda t, over: {"data": {"final": {"x": value}}}

    makers = [lambda: make_env([2], info=of(1)), lambda: make_env([2], info=of(2.5))]
    envs = RecordEpisodes(SyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP), notebook)
    drive(envs, 2)
    assert [row["final/x"] for row in notebook.table("episodes")] == [1, 2.5]


def test_running_data_of_merged_infos_finds_its_sub_environment(notebook: Any, make_env: Any) -> None:
    makers = [lambda i=i: make_env([3 + i], info=lambda t, over: {"data": {"running": {"x": t + i}}}) for i in range(3)]
    envs = RecordEpisodes(SyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP), notebook, inside=False)
    drive(envs, 5)
    rows = {row["env_index"]: row["running/x/sum"] for row in notebook.table("episodes")}
    assert rows == {0: 6, 1: 2 + 3 + 4 + 5, 2: 3 + 4 + 5 + 6 + 7}


@pytest.mark.parametrize("inside", [True, False])
def test_resets_by_hand_begin_only_the_episodes_they_name(notebook: Any, make_env: Any, inside: bool) -> None:
    vector = SyncVectorEnv([lambda: make_env([5])] * 2, autoreset_mode=AutoresetMode.DISABLED)
    envs = RecordEpisodes(vector, notebook, inside=inside)
    envs.reset()
    envs.step(np.array([0, 0]))
    envs.reset(options={"reset_mask": np.array([True, False])})
    for _ in range(4):
        envs.step(np.array([0, 0]))
    assert notebook.columns("episodes", "env_index", "length", "complete") == [(0, 1, False), (1, 5, True)]


@pytest.mark.parametrize("inside", [True, False])
def test_seeds_of_sub_environments_are_kept(notebook: Any, make_env: Any, inside: bool) -> None:
    vector = SyncVectorEnv([lambda: make_env([2])] * 3, autoreset_mode=AutoresetMode.SAME_STEP)
    drive(RecordEpisodes(vector, notebook, inside=inside), 2, seed=40)
    assert notebook.columns("episodes", "seed") == [(40,), (41,), (42,)]


@pytest.mark.parametrize("mode", MODES)
def test_sub_processes_record_themselves_with_the_clocks_of_the_training_loop(
    notebook: Any, make_env: Any, mode: AutoresetMode
) -> None:
    makers = record_envs([lambda i=i: make_env([3, 2 + i], reward=0.5) for i in range(4)], notebook.run)
    envs = RecordEpisodes(AsyncVectorEnv(makers, autoreset_mode=mode), notebook.run)
    notebook.clock(env_step=123)
    drive(envs, 20)
    envs.close()
    rows = notebook.table("episodes")
    for i in range(4):
        mine = [row for row in rows if row["env_index"] == i and row["complete"]]
        assert Counter(row["length"] for row in mine) == expected([3, 2 + i], 20, mode)
        assert all(row["return"] == 0.5 * row["length"] for row in mine)
        assert len({row["writer"] for row in mine}) == 1
    assert {row["clock:env_step"] for row in rows} == {123}
    assert notebook.run.internals.writer.id not in {row["writer"] for row in rows}
    assert len({row["episode_id"] for row in rows}) == len(rows)
    assert len({row["number"] for row in rows}) == len(rows)
    assert notebook.table("alerts") == []


def test_without_the_outer_wrapper_sub_processes_leave_the_clocks_open(notebook: Any) -> None:
    makers = record_envs([lambda: gymnasium.make("CartPole-v1", max_episode_steps=4)] * 2, notebook.run)
    envs = AsyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP)
    drive(envs, 9)
    envs.close()
    complete = [row for row in notebook.table("episodes") if row["complete"]]
    assert [row["length"] for row in complete] == [4] * 4
    assert all("clock:env_step" not in row for row in complete)  # readers place them by time


def test_rewards_that_get_lost_between_vector_and_recorders_are_an_alert(notebook: Any, make_env: Any) -> None:
    class Losing(SyncVectorEnv):
        def step(self, actions: Any) -> Any:
            obs, rewards, *rest = super().step(actions)
            return obs, np.floor(rewards), *rest

    envs = RecordEpisodes(Losing([lambda: make_env([2], reward=1.5)], autoreset_mode="SameStep"), notebook.run)
    drive(envs, 2)
    (alert,) = notebook.table("alerts")
    evidence = json.loads(alert["evidence"])
    assert (evidence["own_return"], evidence["reported_return"]) == (3.0, 2.0)


def test_the_file_of_shared_clocks_is_removed_with_the_vector(notebook: Any, make_env: Any) -> None:
    makers = record_envs([lambda: make_env([2])], notebook)
    path = makers[0].group.shared.path  # type: ignore[attr-defined]
    assert os.path.exists(path)
    del makers
    gc.collect()
    assert not os.path.exists(path)


SPACES = {
    "dict": gymnasium.spaces.Dict(
        {
            "a": gymnasium.spaces.Box(-1, 1, (2, 2), np.float32),
            "b": gymnasium.spaces.Dict({"c": gymnasium.spaces.Discrete(4)}),
        }
    ),
    "tuple": gymnasium.spaces.Tuple([gymnasium.spaces.Discrete(3), gymnasium.spaces.Box(0, 1, (3,), np.float64)]),
    "multi_discrete": gymnasium.spaces.MultiDiscrete([3, 4, 5]),
    "multi_binary": gymnasium.spaces.MultiBinary(6),
    "image": gymnasium.spaces.Box(0, 255, (20, 24, 3), np.uint8),
    "text": gymnasium.spaces.Text(8),
}


def random_env(space: Any, actions: Any) -> Any:
    class Random(gymnasium.Env):
        def __init__(self) -> None:
            self.observation_space, self.action_space, self.t = space, actions, 0

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            super().reset(seed=seed)
            self.t = 0
            space.seed(seed)
            return space.sample(), {}

        def step(self, action: Any) -> Any:
            self.t += 1
            return space.sample(), 1.0, self.t == 4, False, {}

    return Random()


@pytest.mark.parametrize("kind", SPACES)
@pytest.mark.parametrize("inside", [True, False])
def test_every_kind_of_space_is_kept_in_columns_of_its_own(notebook: Any, kind: str, inside: bool) -> None:
    space = SPACES[kind]
    envs = RecordEpisodes(
        SyncVectorEnv([lambda: random_env(space, space)] * 2, autoreset_mode=AutoresetMode.SAME_STEP),
        notebook,
        inside=inside,
        steps=True,
    )
    envs.reset(seed=1)
    envs.action_space.seed(2)
    for _ in range(4):
        envs.step(envs.action_space.sample())
    names = {
        "dict": {"obs/a", "obs/b/c", "action/a", "action/b/c"},
        "tuple": {"obs/0", "obs/1", "action/0", "action/1"},
    }.get(kind, {"obs", "action"})
    first = notebook.table("steps")[0]
    assert {name for name in first if name.startswith(("obs", "action"))} == names
    if kind == "image":
        assert (len(first["obs"]), first["shape/obs"]) == (20 * 24 * 3, "20,24,3")
        assert notebook.run.book.table("steps").schema.field("obs").type.value_type == pa.uint8()
    assert notebook.counts == {}
