"""A time limit that strikes while an environment is recorded comes out of it, as from everywhere else in rollbook."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest

from rollbook.capture import TransitionRecorder
from rollbook.capture.episodes import EpisodeRecorder
from rollbook.capture.gym import RecordEpisodes


class Limit(ValueError):
    """What a handler of the user's raises; its type says nothing about whose it is."""


class Struck(dict[str, Any]):
    """An info in whose reading the signal arrives."""

    def __iter__(self) -> Iterator[str]:
        signal.raise_signal(signal.SIGUSR1)
        return super().__iter__()

    def _struck(self, *arguments: Any) -> Any:
        signal.raise_signal(signal.SIGUSR1)
        return super().get(*arguments)

    get = __getitem__ = _struck

    def items(self) -> Any:
        signal.raise_signal(signal.SIGUSR1)
        return super().items()


class Told(gymnasium.Env[Any, Any]):
    """One step long; what it says is read under fire."""

    observation_space = action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return np.zeros(1, np.float32), 1.0, True, False, Struck(data={"final": {"a": 1.0}})


def recorder(run: Any) -> None:
    record = EpisodeRecorder(run)
    record.begin()
    record.step(1.0, True, False, Struck(data={"final": {"a": 1.0}}))


def wrapper(run: Any) -> None:
    env = RecordEpisodes(Told(), run)
    env.reset()
    env.step(np.zeros(1, np.float32))


def transitions(run: Any) -> None:
    TransitionRecorder(run).add(
        obs=0.0, action=0.0, reward=1.0, terminated=True, info=Struck(data={"final": {"a": 1.0}})
    )


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="this system has no such signal")
@pytest.mark.parametrize("record", [recorder, wrapper, transitions], ids=lambda record: record.__name__)
def test_what_a_signal_handler_raises_while_an_episode_is_recorded_reaches_the_program(
    record: Callable[[Any], None], notebook: Any
) -> None:
    def strike(_number: int, _frame: Any) -> None:
        raise Limit("the time is over")

    before = signal.signal(signal.SIGUSR1, strike)
    try:
        with pytest.raises(Limit):
            record(notebook.run if hasattr(notebook, "run") else notebook)
    finally:
        signal.signal(signal.SIGUSR1, before)
