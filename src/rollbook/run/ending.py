"""How a run ends when nothing calls finish(): at exit, by an exception, by SIGTERM.

The user's signal handlers are never replaced. Ours for SIGTERM is set only where the default handler is active. It
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


def watch(run: OpenRun) -> None:
    """Make sure that `run` is ended, however this process exits."""
    global _installed, _owner
    _open_runs.add(run)
    _owner = os.getpid()
    if _installed:
        return
    _installed = True
    atexit.register(_at_exit)
    _watch_threads()
    try:
        if _signal.getsignal(_signal.SIGTERM) == _signal.SIG_DFL:
            _signal.signal(_signal.SIGTERM, _on_sigterm)
    except (ValueError, AttributeError):  # not in the main thread, or no such signal
        return


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
    if issubclass(kind, KeyboardInterrupt):
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
    _of_process = failure
    finish_together(list(_open_runs), status, _report_on_stderr)


def _report_on_stderr(run: object, err: Exception) -> None:
    with tolerating(Exception):  # stderr may be closed, or None
        sys.stderr.write(f"rollbook: could not finish {run!r}: {type(err).__name__}: {err}\n")


def _at_exit() -> None:
    # The interpreter stores the fatal exception here before it calls us.
    from rollbook.run.failure import describe

    if (cells := sys.modules.get("rollbook.run.cells")) is not None and os.getpid() == _owner:
        cells.end_all(_report_on_stderr)
    _finish_all(status_of(getattr(sys, "last_type", None)), describe(getattr(sys, "last_value", None)))


def _on_sigterm(number: int, _frame: FrameType | None) -> None:
    _signal.signal(number, _signal.SIG_DFL)
    failure = {"type": "SIGTERM", "message": "the process was ended by SIGTERM", "traceback": ""}
    _finish_all("killed", failure)
    os.kill(os.getpid(), number)
