"""Runs that the function of a Ray Tune trial opens and does not finish: they end with the function.

Tune calls it in a thread, keeps what it raised for itself, and kills the process a tenth of a second after it has asked
it to exit: what waits for the end of the process comes too late, and the run of a trial that was trained to its end, or
stopped by a scheduler, would be one that crashed without a reason.
"""

from __future__ import annotations

import threading

from rollbook.run.failure import describe, status_of
from rollbook.system.guard import tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from rollbook.run.open_run import OpenRun

_THREAD = "RunnerThread"
"""The class of Tune's threads (Ray 2.60)."""
_PASSES_ON = "_propagate_exception"
"""The method by which one passes on what the function has raised."""
_SECONDS = 1.0
"""For which a function that is stopped is waited for. Tune waits for none, and lets the process be killed."""


class _Trial(threading.local):
    """What the trial of this thread has opened. It dies with the thread, for nothing else refers to it."""

    end: _AtItsEnd | None = None


_trial = _Trial()


def watch_trial(run: OpenRun) -> None:
    """End the run with the trial whose function opens it now; nothing if none does."""
    thread: Any = threading.current_thread()
    if type(thread).__name__ != _THREAD or not callable(getattr(thread, _PASSES_ON, None)):
        return
    if _trial.end is None:
        runs: list[OpenRun] = []
        _follow(thread, runs)
        _trial.end = _AtItsEnd(runs)
    _trial.end.runs.append(run)


class _AtItsEnd:
    """Ends the runs of a trial with its thread."""

    def __init__(self, runs: list[OpenRun]) -> None:
        self.runs = runs

    def __del__(self) -> None:
        end_runs(self.runs, "finished")


def _follow(thread: Any, runs: list[OpenRun]) -> None:
    """End the runs as soon as the function has raised, and where Tune asks for the end of a trial that is stopped."""
    passes_on: Callable[[BaseException], object] = getattr(thread, _PASSES_ON)
    joins: Callable[[float | None], object] = thread.join

    def pass_on(error: BaseException) -> object:
        end_runs(runs, status_of(type(error)), describe(error))
        return passes_on(error)

    def join(timeout: float | None = None) -> object:
        if runs and timeout is not None:
            joins(max(timeout, _SECONDS))  # the function leaves by SystemExit, and may have last words
            end_runs(runs, "finished")
        return joins(timeout)

    setattr(thread, _PASSES_ON, pass_on)
    thread.join = join


def end_runs(runs: list[OpenRun], status: str, failure: dict[str, Any] | None = None) -> None:
    """Close the runs without waiting: Tune reuses a process only if the thread has ended within two seconds."""
    for run in [runs.pop() for _ in range(len(runs))]:
        if run.status == "running":
            run._parts.failure = failure
            with tolerating(Exception):  # the next trial of this process has nothing to do with it
                run._end_writing(status)
