"""An episode stands once in the book, and its return is the sum of its length's rewards, whatever strikes when."""

from __future__ import annotations

import itertools
import random
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import pytest

import rollbook
from cases import some_of
from interrupting import at_random_moments, interrupt_at
from rollbook.capture.gym import RecordEpisodes

PAID = 2.0
LENGTH = 3

KINDS: dict[str, Callable[[], BaseException]] = {
    "OSError": lambda: OSError(28, "raised by a handler"),
    "ValueError": lambda: ValueError("raised by a handler"),
    "TimeoutError": lambda: TimeoutError("raised by a handler"),
    "KeyboardInterrupt": KeyboardInterrupt,
}


class Paying(gymnasium.Env[int, int]):
    """Pays the same at each step, and ends every third one."""

    observation_space = action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, infos: bool) -> None:
        self.infos, self.t, self.steps, self.ends = infos, 0, 0, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        self.t = 0
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.t += 1
        self.steps += 1
        self.ends += self.t == LENGTH
        info = {"reward_components": {"a": 0.5, "b": 1.5}} if self.infos else {}
        return 0, PAID, self.t == LENGTH, False, info


SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "with trajectories and components": {"steps": "all", "infos": True},
}


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch, nothing_is_sealed: None) -> None:
    monkeypatch.setattr("warnings.warn", lambda *_a, **_k: None)


def make(folder: Path, infos: bool = False, **settings: Any) -> tuple[Any, Paying, Any]:
    run = rollbook.init("p", "r", dir=folder, sinks=[], keeper="inline", rules=())
    env = Paying(infos)
    return run, env, RecordEpisodes(env, run, **settings)


def play(recorded: Any) -> None:
    """One episode, and the beginning of another one."""
    recorded.reset()
    while not recorded.step(0)[2]:
        pass
    recorded.reset()
    recorded.step(0)


def check(run: Any, env: Paying, interrupts: int) -> None:
    rows = run.book.table("episodes").to_pylist()
    assert [n for n in Counter(row["episode_id"] for row in rows).values() if n != 1] == []
    assert [row for row in rows if row["return"] != PAID * row["length"]] == []
    assert [row for row in rows if row["complete"] != (row["terminated"] and row["length"] <= LENGTH)] == []
    # A step whose note was cut short may be missing, but no more than one for each exception.
    assert env.steps - interrupts <= sum(row["length"] for row in rows) <= env.steps
    assert env.ends - interrupts <= sum(row["complete"] for row in rows) <= env.ends
    assert rows[-1]["counted_env_step"] == sum(row["length"] for row in rows)
    sums = Counter((row["episode_id"], row["component"]) for row in run.book.table("rewards").to_pylist())
    assert [n for n in sums.values() if n != 1] == []


@pytest.mark.parametrize("apart", [67, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("kind", "settings"),
    some_of(
        itertools.product(KINDS, SETTINGS), lambda case: list(KINDS).index(case[0]) % 2 == list(SETTINGS).index(case[1])
    ),
)
def test_an_episode_stands_once_whatever_line_its_recording_is_struck_at(
    kind: str, settings: str, apart: int, tmp_path: Path
) -> None:
    run, env, recorded = make(tmp_path, **SETTINGS[settings])
    play(recorded)  # what the first call loads, later ones do not
    event = 0
    reached = True
    while reached:
        event += apart
        reached, _place = interrupt_at(event, KINDS[kind](), lambda: play(recorded))
        play(recorded)
    assert event > 200
    reached, at_close = True, 0
    while reached:
        at_close += apart
        play(recorded)
        reached, _place = interrupt_at(at_close, KINDS[kind](), recorded.close)
    assert recorded.recorded_totals()[0] == sum(run.book.table("episodes")["complete"].to_pylist())
    run.finish()
    check(run, env, event + at_close)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no interval timers")
@pytest.mark.parametrize("kind", some_of(KINDS, lambda kind: kind in ("OSError", "KeyboardInterrupt")))
def test_an_episode_stands_once_whatever_moment_its_recording_is_struck_at(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, env, recorded = make(tmp_path, steps="every 2", infos=True)
    monkeypatch.setattr("sys.unraisablehook", lambda _said: None)  # what strikes in a finalizer, Python keeps to itself
    play(recorded)
    chance = random.Random(3)
    raised = 0
    with at_random_moments(KINDS[kind], lambda: chance.uniform(2e-5, 2e-3)) as start:
        for _ in range(150):
            try:
                start()
                for _ in range(100):
                    play(recorded)
            except type(KINDS[kind]()):
                raised += 1
    recorded.close()
    run.finish()
    assert raised > 50
    check(run, env, 2 * raised)  # the handler may have struck within the environment
