"""Runs that cells of a notebook open: a cell that is run again ends the run of the time before."""

from __future__ import annotations

import os
import sys
import weakref

from rollbook.run.current import current_run, in_a_block, opened
from rollbook.run.ending import finish_together
from rollbook.run.failure import describe, status_of
from rollbook.system import guard
from rollbook.system.bill import warn_caller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from rollbook.run.open_run import OpenRun

_cells: weakref.WeakKeyDictionary[Any, tuple[str, tuple[int, int]]] = weakref.WeakKeyDictionary()
"""Of a run that a cell opened: the file of the cell's code, and which exception was shown last before. Not that itself:
its traceback holds what its frames hold, such as the batch for which there was no memory."""
_ends: weakref.WeakKeyDictionary[Any, tuple[int, str, dict[str, Any] | None]] = weakref.WeakKeyDictionary()
"""Of a run that IPython tells of: its rows after the last cell that wrote to it, and how that cell ended: the status,
and the exception in words."""


_VERBS = frozenset(("log", "log_many", "log_episode", "log_samples", "store", "dump", "record", "add_scalar", "timer"))
"""What code calls that writes a run while it trains."""


def note_cell(run: OpenRun) -> None:
    """Remember which cell of a notebook opened a run, and have IPython tell how each cell ends."""
    own = os.path.dirname(os.path.dirname(__file__))
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(own):
        frame = frame.f_back
    if frame is not None and frame.f_code.co_filename != "<stdin>":  # lines at a prompt of Python all have this one
        _cells[run] = (frame.f_code.co_filename, _which(getattr(sys, "last_value", None)))
        with guard.tolerating(Exception):  # whatever shell it is
            shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
            if shell is not None:
                shell.events.register("post_run_cell", _note_end)  # once, however often it is asked


def _note_end(result: Any) -> None:
    """Called by IPython after each cell: note how it ended, for the runs that it opened or wrote to, or would have
    written to if it had not failed. The next cell that writes to a run may mend what failed in this one."""
    error: BaseException | None = getattr(result, "error_in_exec", None)
    for run in list(_cells):
        rows, known = run._program_rows(), _ends.get(run)
        is_new = known is None or known[0] != rows
        if is_new or (error is not None and (not run._has_training_rows() or _would_write(error, run))):
            _ends[run] = rows, status_of(None if error is None else type(error)), describe(error)


def _would_write(error: BaseException, run: OpenRun) -> bool:
    """Whether code that failed logs, and has the run at hand: by a name that it uses, or in an object that it has. What
    fails while it reads the run's book or draws it ends no training."""
    trace = error.__traceback__
    while trace is not None:
        frame, trace = trace.tb_frame, trace.tb_next
        code, known = frame.f_code, frame.f_globals
        if _VERBS.isdisjoint(code.co_names):
            continue
        used = [known[name] for name in code.co_names if name in known]
        used += [] if code.co_name == "<module>" else frame.f_locals.values()  # those of a cell are the notebook's
        if any(_is_of(value, run) or any(_is_of(part, run) for part in _parts_of(value)) for value in used):
            return True
    return False


def _is_of(value: object, run: OpenRun) -> bool:
    """Whether a value is the run, a scope or a verb of it, or rollbook itself while the run is the current one."""
    if value is sys.modules.get("rollbook"):
        return current_run() is run
    own = getattr(value, "__self__", value) if type(value).__name__ == "method" else value
    return own is run or (type(own).__module__ == "rollbook.run.scope" and getattr(own, "run", None) is run)


def _parts_of(value: object) -> list[object]:
    """What an object of the program holds; no code of it runs."""
    if isinstance(value, (type, type(sys))):
        return []
    with guard.tolerating(Exception):
        return list(object.__getattribute__(value, "__dict__").values())
    return []


def _which(error: BaseException | None) -> tuple[int, int]:
    """Tells an exception from another, without keeping it."""
    return id(error), id(None if error is None else error.__traceback__)


def _what_ended_its_cell(run: OpenRun) -> BaseException | None:
    """The exception that ended the cell which opened a run, after it had; None if none did.

    A notebook goes on after an exception and calls no hook; it stores the newest one that it has shown.
    """
    cell, before = _cells.get(run, ("", (0, 0)))
    error = getattr(sys, "last_value", None)
    trace = None if error is None or _which(error) == before else error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == cell:
            return error
        trace = trace.tb_next
    return None


def end_former(project: str, name: str) -> None:
    """Finish earlier runs of this name that were opened at this prompt: the user has run the cell again.

    A run ends with the exception that ended the last cell which wrote to it. Runs inside a `with` block end with the
    block. Runs of another process are left alone.
    """
    for run in list(opened):
        same = (run.project, run.name) == (project, name) and run._writer.main and run._writer.pid == os.getpid()
        if same and not in_a_block(run):
            status = _status_of_cell(run)
            run.finish(status)
            warn_caller(
                f"run {run.id} of {project}/{name} was still open; it ended as {status}, because init() was called for "
                "the name again. To go on with it, pass resume='must'"
            )


def end_all(report: Callable[[OpenRun, Exception], object]) -> None:
    """At the end of the process: finish the runs that cells have opened, each as the last cell ended that wrote to it.
    The exception that was shown last may be of any other cell.

    Args:
      report: takes a run that cannot be finished, and why.
    """
    for run in list(opened):
        if run in _cells and run._writer.pid == os.getpid():
            finish_together([run], _status_of_cell(run), report)


def _status_of_cell(run: OpenRun) -> str:
    """The status of a run by how its cell ended; the run gets the exception that ended it."""
    if run in _ends:
        _rows, status, failure = _ends[run]
    else:  # no IPython, or the cell that opened it has not ended
        error = _what_ended_its_cell(run)
        status, failure = status_of(None if error is None else type(error)), describe(error)
    if failure is not None:
        run._parts.failure = failure
    return status
