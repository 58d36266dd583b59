"""The recorder's own counts: the same whoever drives the clock, and going on where the run goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rollbook

gymnasium = pytest.importorskip("gymnasium")
from rollbook.capture.gym import RecordEpisodes, record_envs  # noqa: E402

LENGTHS = (3, 5, 4, 7)


class Fixed(gymnasium.Env):  # type: ignore[misc]
    """Episodes of a length that does not depend on anything."""

    observation_space = gymnasium.spaces.Box(0.0, 1.0, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, length: int) -> None:
        self.length, self.t = length, 0

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.t = 0
        return self.observation_space.low, {}

    def step(self, action: Any) -> Any:
        self.t += 1
        return self.observation_space.low, 1.0, self.t == self.length, False, {}


class Shell(gymnasium.vector.VectorWrapper):  # type: ignore[misc]
    """Something between the vector and the recorder, so that recording happens around."""


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., rollbook.Run]]:
    monkeypatch.delenv("ROLLBOOK_RUN_ID", raising=False)
    made: list[rollbook.Run] = []

    def init(**options: Any) -> rollbook.Run:
        made.append(rollbook.init("p", "n", dir=tmp_path, sinks=[], keeper="inline", rules=(), **options))
        return made[-1]

    yield init
    for run in made:
        run.finish()


def vector(kind: str, scope: Any, mode: Any, **settings: Any) -> Any:
    makers: list[Callable[[], Any]] = [lambda length=length: Fixed(length) for length in LENGTHS]  # type: ignore[misc]
    if kind == "async":
        inside = gymnasium.vector.AsyncVectorEnv(record_envs(makers, scope, **settings), autoreset_mode=mode)
        return RecordEpisodes(inside, scope, **settings)
    inside = gymnasium.vector.SyncVectorEnv(makers, autoreset_mode=mode)
    return RecordEpisodes(Shell(inside) if kind == "around" else inside, scope, **settings)


def play(kind: str, run: rollbook.Run, mode: Any, drive: bool, steps: int) -> None:
    envs = vector(kind, run.scope("train"), mode, **({"clock": "env_step"} if drive else {}))
    envs.reset(seed=0)
    for t in range(steps):
        if not drive:
            run.clock(env_step=(t + 1) * len(LENGTHS))
        envs.step(envs.action_space.sample())
    envs.close()


def counts(run: rollbook.Run) -> list[tuple[int, int]]:
    table = run.book.episodes()
    rows = zip(*(table[name].to_pylist() for name in ("env_index", "counted_env_step", "complete")), strict=True)
    return sorted((steps, index) for index, steps, complete in rows if complete)


@pytest.mark.parametrize("mode", ["NEXT_STEP", "SAME_STEP"])
def test_the_count_of_steps_is_the_same_whatever_drives_the_clock(start: Any, mode: str) -> None:
    chosen = gymnasium.vector.AutoresetMode[mode]
    found = {}
    for kind in ("inside", "around"):
        for drive in (False, True):
            run = start()
            play(kind, run, chosen, drive, 23)
            found[kind, drive] = counts(run)
            run.finish()
    expected: list[tuple[int, int]] = []
    left, total, resetting = list(LENGTHS), 0, [False] * len(LENGTHS)
    for _ in range(23):
        for i, length in enumerate(LENGTHS):
            if resetting[i]:
                resetting[i] = False
                continue
            total += 1
            left[i] -= 1
            if not left[i]:
                expected.append((total, i))
                left[i], resetting[i] = length, mode == "NEXT_STEP"
    for case, rows in found.items():
        assert rows == sorted(expected), case


def test_sub_environments_in_processes_of_their_own_count_the_steps_of_all(start: Any) -> None:
    run = start()
    play("async", run, gymnasium.vector.AutoresetMode.SAME_STEP, False, 12)
    inside = start()
    play("inside", inside, gymnasium.vector.AutoresetMode.SAME_STEP, False, 12)
    assert counts(run) == counts(inside)


@pytest.mark.parametrize("kind", ["inside", "around", "async"])
def test_counts_and_numbers_go_on_after_a_resume(start: Any, kind: str) -> None:
    mode = gymnasium.vector.AutoresetMode.SAME_STEP
    run = start()
    play(kind, run, mode, False, 21)
    first = run.book.episodes()
    begun, steps = max(first["number"].to_pylist()) + 1, max(first["counted_env_step"].to_pylist())
    assert steps == 21 * len(LENGTHS)
    run.finish()
    again = start(resume="must")
    play(kind, again, mode, False, 21)
    table = again.book.episodes()
    numbers = table["number"].to_pylist()
    assert len(set(numbers)) == len(numbers) == 2 * len(first)
    assert max(table["counted_env_step"].to_pylist()) == 2 * steps
    assert min(n for n, a in zip(numbers, table["attempt"].to_pylist(), strict=True) if a == 2) == begun


def test_counts_go_back_with_the_run(start: Any) -> None:
    run = start()
    env = RecordEpisodes(Fixed(5), run.scope("train"))

    def episode() -> None:
        env.reset()
        while not env.step(0)[2]:
            pass

    episode()
    run.save_checkpoint({"w": 1}, env_step=5)
    episode()
    run.restore()
    episode()
    table = run.book.episodes()
    assert table["number"].to_pylist() == [0, 1]
    assert table["counted_env_step"].to_pylist() == [5, 10]


@pytest.mark.parametrize("kind", ["single", "inside", "around", "async"])
def test_steps_of_unfinished_episodes_count_on_from_the_checkpoint(start: Any, kind: str) -> None:
    """A program that is stopped and resumed counts what it would have counted without the stop."""

    def steps(run: rollbook.Run, n: int) -> int:
        if kind == "single":
            env = RecordEpisodes(Fixed(1000), run.scope("train"))
            env.reset()
            for _ in range(n * len(LENGTHS)):
                env.step(0)
        else:
            env = vector(kind, run.scope("train"), gymnasium.vector.AutoresetMode.SAME_STEP)
            env.reset(seed=0)
            for _ in range(n):
                env.step(env.action_space.sample())
        run.save_checkpoint({"w": 1}, env_step=n)
        env.close()
        counted: int = run.scope("train").internals.episodes_before()[1]
        return counted

    run = start()
    assert steps(run, 9) == 9 * len(LENGTHS)
    run.finish("killed")
    again = start(resume="must")
    again.restore()
    assert steps(again, 9) == 18 * len(LENGTHS)
