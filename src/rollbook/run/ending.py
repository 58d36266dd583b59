"""How a run ends when nobody calls finish(): at exit, by an exception, by SIGTERM.

The user's own signal handlers are never replaced: ours for SIGTERM is set only where the default one stands, writes
the run's end, and then lets the default happen.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` itself costs an import of enum
import atexit
import os
import sys
import weakref

from rollbook.foreign import is_foreign, tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

    from rollbook.run.open_run import OpenRun

__all__ = ["forget", "status_of", "watch"]

_open_runs: weakref.WeakSet[OpenRun] = weakref.WeakSet()
_installed = False
_owner = 0


def watch(run: OpenRun) -> None:
    """See to it that `run` gets an end, however this process leaves."""
    global _installed, _owner
    _open_runs.add(run)
    _owner = os.getpid()
    if _installed:
        return
    _installed = True
    atexit.register(_at_exit)
    try:
        if _signal.getsignal(_signal.SIGTERM) == _signal.SIG_DFL:
            _signal.signal(_signal.SIGTERM, _on_sigterm)
    except (ValueError, AttributeError):  # not the main thread, or no such signal
        return


def forget(run: OpenRun) -> None:
    """The run has ended by itself."""
    _open_runs.discard(run)


def status_of(kind: type[BaseException] | None) -> str:
    """The status that an exception, or none, stands for."""
    if kind is None:
        return "finished"
    if issubclass(kind, KeyboardInterrupt):
        return "killed"
    if issubclass(kind, SystemExit):
        error = sys.exc_info()[1]
        return "finished" if getattr(error, "code", None) in (None, 0) else "crashed"
    return "crashed"


def _finish_all(status: str) -> None:
    if os.getpid() != _owner:  # a forked child leaves its parent's runs alone
        return
    for run in list(_open_runs):
        try:
            run.finish(status)
        except Exception as err:
            if is_foreign(err):
                raise
            with tolerating(Exception):  # it may be closed, or None
                sys.stderr.write(f"rollbook: could not finish {run!r}: {type(err).__name__}: {err}\n")


def _at_exit() -> None:
    # The interpreter leaves the exception it died of here, before it calls us.
    _finish_all(status_of(getattr(sys, "last_type", None)))


def _on_sigterm(number: int, _frame: FrameType | None) -> None:
    _signal.signal(number, _signal.SIG_DFL)
    _finish_all("killed")
    os.kill(os.getpid(), number)
