"""Episodes as vectors of environments report them, and as wrappers stand around each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")

import rollbook  # noqa: E402

Begin = Callable[..., Any]


class _Count(gymnasium.Env):  # type: ignore[misc]
    """Ends after `length` steps; each step is worth `reward`."""

    observation_space = gymnasium.spaces.Discrete(100)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, length: int = 3, reward: float = 1.0) -> None:
        self._length, self._reward, self._at = length, reward, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self._at = 0
        return 0, {}

    def step(self, action: object) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self._at += 1
        return self._at, self._reward, self._at >= self._length, False, {}


def _episodes(run: Any) -> list[tuple[float, int]]:
    return [(row["return"], row["length"]) for row in run.book.episodes().to_pylist()]


def _walk(envs: Any, steps: int) -> None:
    envs.reset(seed=1)
    for _ in range(steps):
        envs.step(envs.action_space.sample())


@pytest.mark.parametrize("mode", ["NEXT_STEP", "SAME_STEP"])
def test_every_episode_of_a_vector_has_its_whole_return_in_every_autoreset_mode(begin: Begin, mode: str) -> None:
    run = begin()
    reset = getattr(gymnasium.vector.AutoresetMode, mode)
    envs = gymnasium.vector.SyncVectorEnv([lambda: _Count(3), lambda: _Count(4, 0.5)], autoreset_mode=reset)
    envs = rollbook.RecordEpisodes(envs, run.scope("train"))
    _walk(envs, 24)
    kept = _episodes(run)
    assert set(kept) == {(3.0, 3), (2.0, 4)}
    assert len(kept) == {"NEXT_STEP": 6 + 5, "SAME_STEP": 8 + 6}[mode]  # a reset is a step of its own in the first
    envs.close()


def test_episodes_are_kept_whether_or_not_the_infos_are_vectors(begin: Begin) -> None:
    """Another wrapper reports the returns, too; the program looks for a key that newer versions do not have."""
    run = begin()
    envs = gymnasium.vector.SyncVectorEnv([lambda: _Count(3)] * 2)
    envs = gymnasium.wrappers.vector.RecordEpisodeStatistics(rollbook.RecordEpisodes(envs, run.scope("train")))
    envs.reset(seed=1)
    seen = 0
    for _ in range(12):
        *_, infos = envs.step(envs.action_space.sample())
        seen += "final_info" in infos
    assert seen == 0
    assert _episodes(run) == [(3.0, 3)] * 6
    envs.close()


def test_the_smallest_return_is_that_of_an_episode_and_no_zero_from_a_reset(begin: Begin) -> None:
    run = begin()
    envs = rollbook.RecordEpisodes(
        gymnasium.vector.SyncVectorEnv([lambda: _Count(2, 0.1), lambda: _Count(5, 0.1)]), run.scope("train")
    )
    _walk(envs, 30)
    returns = [total for total, _ in _episodes(run)]
    assert min(returns) == pytest.approx(0.2)
    assert set(np.round(returns, 6)) == {0.2, 0.5}
    envs.close()


def test_an_episode_that_the_end_of_training_cuts_is_not_the_last_result(begin: Begin) -> None:
    with begin() as run:
        env = rollbook.RecordEpisodes(_Count(10), run.scope("train"))
        env.reset(seed=1)
        for _ in range(2):
            for _ in range(10):
                env.step(0)
            env.reset()
        env.step(0)  # the third has one step when the program ends
        env.close()
    assert [row["return"] for row in run.book.episodes().to_pylist() if row["terminated"]] == [10.0, 10.0]


def test_a_normalised_reward_is_recorded_beside_the_one_of_the_environment(begin: Begin) -> None:
    run = begin()
    env = gymnasium.wrappers.TransformReward(rollbook.RecordEpisodes(_Count(4), run.scope("train")), lambda r: r / 100)
    env.reset(seed=1)
    for _ in range(4):
        _, reward, *_ = env.step(0)
    assert (reward, _episodes(run)) == (0.01, [(4.0, 4)])
