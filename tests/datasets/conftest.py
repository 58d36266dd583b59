"""Runs with recorded trajectories of several kinds, read back as books."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest

from new_runs import new_run as new_run
from rollbook.capture.gym import RecordEpisodes
from rollbook.storage.sealing import folder as store_seal

SPACES = {
    "vector": gymnasium.spaces.Box(-10, 10, (3,), np.float32),
    "discrete": gymnasium.spaces.Discrete(5),
    "dict": gymnasium.spaces.Dict(
        {
            "a": gymnasium.spaces.Box(-1, 1, (2,), np.float64),
            "b": gymnasium.spaces.Dict({"c": gymnasium.spaces.Discrete(4)}),
        }
    ),
    "tuple": gymnasium.spaces.Tuple([gymnasium.spaces.Discrete(3), gymnasium.spaces.Box(0, 1, (2,), np.float32)]),
    "multi_discrete": gymnasium.spaces.MultiDiscrete([3, 4]),
    "multi_binary": gymnasium.spaces.MultiBinary(4),
    "image": gymnasium.spaces.Box(0, 255, (9, 10, 3), np.uint8),
}


class Sampled(gymnasium.Env[Any, Any]):
    """Random observations of a space, infos of some kinds, episodes of the lengths given. Keeps what it gave out."""

    def __init__(
        self, observed: Any, acted: Any, lengths: list[int], truncate: bool = False, ends_in_turn: bool = False
    ) -> None:
        self.observation_space, self.action_space, self._lengths = observed, acted, lengths
        self._truncate, self._ends_in_turn = truncate, ends_in_turn
        self.spec = None
        self.given: list[dict[str, Any]] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        obs = self.observation_space.sample()
        self.given.append({"obs": [obs], "action": [], "reward": [], "seed": seed})
        return obs, {}

    def step(self, action: Any) -> Any:
        now = self.given[-1]
        obs, reward = self.observation_space.sample(), 0.1 * len(now["action"]) - 0.25
        now["obs"].append(obs)
        now["action"].append(action)
        now["reward"].append(reward)
        over = len(now["action"]) >= self._lengths[(len(self.given) - 1) % len(self._lengths)]
        info = {"x": np.float32(len(now["action"])), "flag": bool(over), "word": "go"}
        if self._ends_in_turn:  # terminated, truncated, both
            way = (len(self.given) - 1) % 3
            return obs, reward, over and way != 1, over and way != 0, info
        return obs, reward, over and not self._truncate, over and self._truncate, info


class Odd(Sampled):
    """Numbers alone, so that lines are made ahead; in some episodes one that JSON has not, or one that is missing."""

    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, _ = super().step(action)
        number, t = len(self.given), len(self.given[-1]["action"])
        reward = {4: np.nan, 9: -np.inf}.get(number, reward) if t == 2 else reward
        if number == 6 and t == 1 and obs.dtype.kind == "f":
            obs = np.full_like(obs, np.inf)
        return obs, reward, terminated, truncated, {"x": t / 3} if number % 5 == 2 else {}


@pytest.fixture
def odd() -> Callable[[str, list[int]], Odd]:
    """Such environments of a named space, with episodes of the lengths given."""
    return lambda observed, lengths: Odd(SPACES[observed], SPACES["vector"], lengths)


def play(env: Any, episodes: int, seed: int = 3) -> None:
    env.action_space.seed(seed)
    for number in range(episodes):
        env.reset(seed=seed + number)
        over = False
        while not over:
            _, _, terminated, truncated, _ = env.step(env.action_space.sample())
            over = terminated or truncated


def seal(run: Any) -> Any:
    """The sealed book of a run."""
    run.internals.writer.close()
    store_seal.seal(run.folder, final=True)
    return run.book


@pytest.fixture(name="seal")
def seal_fixture() -> Any:
    return seal


@pytest.fixture
def recorded(new_run: Any) -> Callable[..., tuple[Any, list[dict[str, Any]]]]:
    """(a sealed book, what its environment gave out) for an observation and an action space, or names of such."""

    def make(observed: Any, acted: Any, lengths: tuple[int, ...] = (4, 6), episodes: int = 3, **more: Any) -> Any:
        names = [space if isinstance(space, str) else type(space).__name__ for space in (observed, acted)]
        spaces = [SPACES[space] if isinstance(space, str) else space for space in (observed, acted)]
        env = Sampled(*spaces, list(lengths), **more)
        run = new_run("-".join(names))
        wrapped = RecordEpisodes(env, run.scope("train"), steps=True)
        play(wrapped, episodes)
        wrapped.close()
        return seal(run), env.given

    return make
