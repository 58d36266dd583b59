"""The run that module-level verbs act on: the innermost `with` run of this context, else the run opened last."""

from __future__ import annotations

import contextvars

from rollbook.system.bill import Bill, warn_caller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rollbook.run.open_run import OpenRun

opened: list[Any] = []
"""The runs that are open in this process, oldest first."""

_stack: contextvars.ContextVar[tuple[OpenRun, ...]] = contextvars.ContextVar("rollbook_runs", default=())
_no_run = Bill()


def enter(run: OpenRun) -> None:
    """Make `run` the current one of this context."""
    _stack.set((*_stack.get(), run))


def leave(run: OpenRun) -> None:
    """Undo `enter`."""
    _stack.set(tuple(r for r in _stack.get() if r is not run))


def current_run() -> Any:
    """The innermost `with` run of this context, else the run opened last, else None."""
    inner = _stack.get()
    if inner:
        return inner[-1]
    return opened[-1] if opened else None


def interactive() -> bool:
    """Whether this process is interactive (a notebook or a prompt), so that code may run twice."""
    import sys

    return "ipykernel" in sys.modules or hasattr(sys, "ps1")


def end_former(project: str, name: str) -> None:
    """Finish earlier runs of this name that were opened at this prompt: the user has run the cell again.

    Runs inside a `with` block end with the block. Runs of another process are left alone.
    """
    import os

    inner = _stack.get()
    for run in list(opened):
        same = (run.project, run.name) == (project, name) and run._writer.main and run._writer.pid == os.getpid()
        if same and run not in inner:
            run.finish()
            warn_caller(
                f"run {run.id} of {project}/{name} was still open; it was finished, because init() was called for the "
                "name again. To go on with it, pass resume='must'"
            )


def current_verb(verb: str) -> Any:
    """The method `verb` of the current run; a function that counts and warns if there is no run."""
    run = current_run()
    if run is not None:
        return getattr(run, verb)

    def nothing(*_args: object, **_kwargs: object) -> None:
        _no_run.count(
            "no_run",
            message=f"rollbook.{verb}() was called and no run is open; nothing was kept. Call rollbook.init() first",
        )

    return nothing
