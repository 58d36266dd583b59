"""How a run ends when nothing calls finish(): at exit, by an exception, by SIGTERM.

The user's signal handlers are never replaced. Ours for SIGTERM and SIGHUP are set only where the default is active. It
records the end of the run, and then runs the default.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` itself costs an import of enum
import atexit
import os
import sys
import weakref

from rollbook.system.guard import ours, tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType
    from typing import Any

    from rollbook.run.open_run import OpenRun

_open_runs: weakref.WeakSet[OpenRun] = weakref.WeakSet()
_installed = False
_owner = 0
_of_process: dict[str, Any] | None = None


_CANCELLED = ("CancelledError", "Cancelled")
"""What asyncio and trio raise in a task that is stopped, as by Ctrl-C."""


def watch(run: OpenRun) -> None:
    """Make sure that `run` is ended, however this process exits."""
    global _installed, _owner
    for other in list(_open_runs):
        if other._parts.followed_at is None and _is_followed(other, run):
            other._parts.followed_at = other._writer.rows_written()
    _open_runs.add(run)
    _owner = os.getpid()
    if _installed:
        return
    _installed = True
    atexit.register(_at_exit)
    _watch_threads()
    for name in ("SIGTERM", "SIGHUP"):  # a batch system; a terminal that is closed
        try:
            number = getattr(_signal, name)
            if _signal.getsignal(number) == _signal.SIG_DFL:
                _signal.signal(number, _on_signal)
        except (ValueError, AttributeError):  # not in the main thread, or no such signal
            return


def _is_followed(run: OpenRun, by: OpenRun) -> bool:
    """Whether a loop has begun the next of its trainings, and left this one open: it has rows, and the next is like it,
    by its name or by what its configuration names."""
    if run.status != "running" or run._about.project != by._about.project or by._about.parent == run.id:
        return False
    is_like = run._about.name == by._about.name or (bool(run.config) and run.config.keys() == by.config.keys())
    return is_like and run._writer.main and run._has_training_rows()


def forget(run: OpenRun) -> None:
    """Stop watching: the run has ended normally."""
    _open_runs.discard(run)


def finish_together(
    runs: Sequence[OpenRun], status: str, report: Callable[[OpenRun, Exception], object] | None = None
) -> None:
    """Finish several runs. The end of each is on disk before the first is waited for, and their keepers work meanwhile.

    Args:
      report: takes a run that cannot be finished, and why. None: that is raised, after the others have ended.
    Raises:
      LoggingFailed: `strict=True` only, without `report`: the first failure.
    """
    failures: list[tuple[OpenRun, Exception]] = []
    several = runs if len(runs) > 1 else ()
    for run, finish in [*((run, run._end_writing) for run in several), *((run, run.finish) for run in runs)]:
        try:
            finish(status)
        except ours(Exception) as err:
            failures.append((run, err))
    for run, raised in failures:
        if report is None:
            raise raised
        report(run, raised)


def status_of(kind: type[BaseException] | None) -> str:
    """The status for an exception, or for none."""
    if kind is None or issubclass(kind, GeneratorExit):  # a generator that was closed early: that is no failure
        return "finished"
    if issubclass(kind, KeyboardInterrupt) or kind.__name__ in _CANCELLED:
        return "killed"
    if issubclass(kind, SystemExit):
        error = sys.exc_info()[1]
        return "finished" if getattr(error, "code", None) in (None, 0) else "crashed"
    return "crashed"


def _watch_threads() -> None:
    """Store an exception that ends a thread as an alert, after the existing hook has run."""
    import threading

    from rollbook.run.failure import report_thread

    before = threading.excepthook

    def hook(arguments: Any) -> None:
        try:
            before(arguments)
        finally:
            if os.getpid() == _owner:
                report_thread([run for run in list(_open_runs) if run.status == "running"], arguments)

    threading.excepthook = hook


def failure() -> dict[str, Any] | None:
    """The signal or exception that ends the process or the caller's block; None for neither."""
    from rollbook.run.failure import describe

    return _of_process or describe(sys.exc_info()[1])


def _finish_all(status: str, failure: dict[str, Any] | None) -> None:
    global _of_process
    if os.getpid() != _owner:  # a forked child must not end its parent's runs
        return
    runs = list(_open_runs)
    over = [run for run in runs if status != "finished" and run._parts.followed_at == run._writer.rows_written()]
    finish_together(over, "finished", _report_on_stderr)
    _of_process = failure
    finish_together([run for run in runs if run not in over], status, _report_on_stderr)


def _report_on_stderr(run: object, err: Exception) -> None:
    with tolerating(Exception):  # stderr may be closed, or None
        sys.stderr.write(f"rollbook: could not finish {run!r}: {type(err).__name__}: {err}\n")


def _at_exit() -> None:
    # The interpreter stores the fatal exception here before it calls us.
    from rollbook.run.failure import describe

    if (cells := sys.modules.get("rollbook.run.cells")) is not None and os.getpid() == _owner:
        cells.end_all(_report_on_stderr)
    _finish_all(status_of(getattr(sys, "last_type", None)), describe(getattr(sys, "last_value", None)))


def _on_signal(number: int, _frame: FrameType | None) -> None:
    _signal.signal(number, _signal.SIG_DFL)
    name = "SIGTERM" if number == _signal.SIGTERM else "SIGHUP"
    failure = {"type": name, "message": f"the process was ended by {name}", "traceback": ""}
    _finish_all("killed", failure)
    os.kill(os.getpid(), number)
