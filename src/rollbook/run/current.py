"""The run that module-level verbs act on: the innermost `with` run of this context, else the run opened last."""

from __future__ import annotations

import contextvars

from rollbook.system.bill import Bill

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


def in_a_block(run: OpenRun) -> bool:
    """Whether `run` is open in a `with` block of this context."""
    return run in _stack.get()


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


def without_a_run(verb: str) -> Any:
    """What a module-level verb is while no run is open: a function that counts the call and warns."""

    def nothing(*_args: object, **_kwargs: object) -> None:
        _no_run.count(
            "no_run",
            message=f"rollbook.{verb}() was called and no run is open; nothing was kept. Call rollbook.init() first",
        )

    return nothing
