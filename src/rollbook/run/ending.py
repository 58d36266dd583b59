"""How a run ends when nothing calls finish(): at exit, by an exception, by SIGTERM.

The user's signal handlers are never replaced. Ours for SIGTERM and SIGHUP are set only where the default is active. It
records the end of the run, and then runs the default.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` itself costs an import of enum
import atexit
import os
import sys
import threading
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
_handled = False
_owner = 0
_is_closing = False
_signal_that_came = 0
_of_process: dict[str, Any] | None = None

HANDLED = [getattr(_signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(_signal, name)]
"""The signals of a batch system, and of a terminal that is closed."""


def watch(run: OpenRun) -> None:
    """Make sure that `run` is ended, however this process exits."""
    global _installed, _owner
    for other in list(_open_runs):
        if other._parts.followed_at is None and _is_followed(other, run):
            other._parts.followed_at = other._program_rows()
    _open_runs.add(run)
    _owner = os.getpid()
    run._parts.opened_in = threading.current_thread()
    if "ray.tune" in sys.modules:
        from rollbook.run.tune_trials import watch_trial

        watch_trial(run)
    if "ray._private.worker" in sys.modules:
        from rollbook.run.ray_tasks import watch_task

        watch_task(run)
    if "hydra.core.utils" in sys.modules:
        from rollbook.run.hydra_jobs import watch_job

        watch_job(run)
    processes: Any = sys.modules.get("multiprocessing.process")
    if processes is not None and processes.parent_process() is not None:
        from rollbook.run import worker_processes

        worker_processes.watch(finish_all, _on_signal)
        worker_processes.watch_task(run)
    _watch_signals()
    if _installed:
        return
    _installed = True
    atexit.register(_at_exit)
    _watch_threads()


def _watch_signals() -> None:
    global _handled
    if _handled:
        return
    _handled = True
    for number in HANDLED:
        try:
            if _signal.getsignal(number) == _signal.SIG_DFL:
                _signal.signal(number, _on_signal)
        except ValueError:  # not in the main thread
            return


def _leave_signals_in_child() -> None:
    """In a forked child, which has no run to end: a signal ends it at once, whatever its main thread waits for."""
    global _handled
    if not _handled:
        return
    _handled = False
    with tolerating(ValueError):  # no main thread
        if (workers := sys.modules.get("rollbook.run.worker_processes")) is not None:
            workers.leave_in_child()
        for number in HANDLED:
            if _signal.getsignal(number) is _on_signal:
                _signal.signal(number, _signal.SIG_DFL)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_signals_in_child)


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
    _each([*((run, run._end_writing) for run in several), *((run, run.finish) for run in runs)], status, failures)
    for run, raised in failures:
        if report is None:
            raise raised
        report(run, raised)


def _each(
    endings: Sequence[tuple[OpenRun, Callable[[str], object]]], status: str, failures: list[tuple[OpenRun, Exception]]
) -> None:
    for run, finish in endings:
        try:
            finish(status)
        except ours(Exception) as err:
            failures.append((run, err))


def _watch_threads() -> None:
    """Store an exception that ends a thread as an alert, after the existing hook has run. A run that the thread has
    opened crashes by it, unless somebody writes to it afterwards.
    """
    from rollbook.run.failure import leave_by, report_thread

    before = threading.excepthook

    def hook(arguments: Any) -> None:
        try:
            before(arguments)
        finally:
            if os.getpid() == _owner:
                running = [run for run in list(_open_runs) if run.status == "running"]
                its_own = [run for run in running if run._parts.opened_in is arguments.thread]
                report_thread(its_own or running, arguments)
                for run in its_own:
                    leave_by(run, arguments.exc_value)

    threading.excepthook = hook


def failure() -> dict[str, Any] | None:
    """The signal or exception that ends the process or the caller's block; None for neither."""
    from rollbook.run.failure import describe

    return _of_process or describe(sys.exc_info()[1])


def finish_all(status: str, failure: dict[str, Any] | None, waits: bool = True) -> None:
    """End the runs of this process, which ends, by what ends it. The end of each is on disk before one is waited for.

    Args:
      failure: what it was, see `failure.describe`.
      waits: for the keepers. False: only for those that are part of this process.
    """
    global _of_process, _is_closing
    if os.getpid() != _owner:  # a forked child must not end its parent's runs
        return
    runs = list(_open_runs)
    over = [run for run in runs if status != "finished" and run._parts.followed_at == run._program_rows()]
    others = [run for run in runs if run not in over]
    failures: list[tuple[OpenRun, Exception]] = []
    _is_closing = True
    try:
        _each([(run, run._end_writing) for run in over], "finished", failures)
        _of_process = failure
        for run in others:
            left_at, own_status, own_failure = run._parts.left_by or (-1, "", None)
            if status == "finished" and left_at == run._program_rows():
                run._parts.failure = own_failure
                _each([(run, run._end_writing)], own_status, failures)
            else:
                _each([(run, run._end_writing)], status, failures)
    finally:
        _is_closing = False
    if _signal_that_came:
        _end_by(_signal_that_came)
    _each([(run, run.finish) for run in runs if waits or run._parts.keeper != "process"], status, failures)
    for run, err in failures:
        _report_on_stderr(run, err)


def _report_on_stderr(run: object, err: Exception) -> None:
    with tolerating(Exception):  # stderr may be closed, or None
        sys.stderr.write(f"rollbook: could not finish {run!r}: {type(err).__name__}: {err}\n")


def _at_exit() -> None:
    # The interpreter stores the fatal exception here before it calls us.
    from rollbook.run.failure import describe, status_of

    if (cells := sys.modules.get("rollbook.run.cells")) is not None and os.getpid() == _owner:
        cells.end_all(_report_on_stderr)
    finish_all(status_of(getattr(sys, "last_type", None)), describe(getattr(sys, "last_value", None)))


def _on_signal(number: int, frame: FrameType | None) -> None:
    global _signal_that_came
    workers: Any = sys.modules.get("rollbook.run.worker_processes")
    if workers is not None:
        workers.note_heard()
    if _is_closing:  # the process is ending already, and its runs are half closed
        _signal_that_came = number
        return
    if number == _signal.SIGTERM and workers is not None and workers.waits_for_work(frame):
        workers.end(finish_all)  # its pool needs it no longer
    else:
        name = "SIGTERM" if number == _signal.SIGTERM else "SIGHUP"
        finish_all("killed", {"type": name, "message": f"the process was ended by {name}", "traceback": ""})
    _end_by(number)


def _end_by(number: int) -> None:
    _signal.signal(number, _signal.SIG_DFL)
    os.kill(os.getpid(), number)
