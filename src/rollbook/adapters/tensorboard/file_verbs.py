"""Verbs of a SummaryWriter whose values a book has no table for: they reach the event files, and are counted."""

from __future__ import annotations

import inspect
from functools import wraps

from rollbook.adapters.tensorboard.events import EventWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["FILE_VERBS", "file_verb"]

FILE_VERBS = (
    "add_audio",
    "add_custom_scalars",
    "add_custom_scalars_marginchart",
    "add_custom_scalars_multilinechart",
    "add_embedding",
    "add_graph",
    "add_mesh",
    "add_pr_curve",
    "add_pr_curve_raw",
    "add_tensor",
)
"""Their arguments are those of `EventWriter`, which has them from torch."""


def file_verb(name: str) -> Callable[..., None]:
    """A method of SummaryWriter with the name, arguments and words of EventWriter's: it hands them to the event files.

    Where a call says neither step nor time, those of `use_metadata` are put in.
    """
    theirs = getattr(EventWriter, name)
    signature = inspect.signature(theirs)

    @wraps(theirs)
    def verb(self: Any, *args: object, **kwargs: object) -> None:
        call = signature.bind(self, *args, **kwargs)
        call.apply_defaults()
        given = call.arguments
        step, walltime = self._place(given.get("global_step"), given.get("walltime"))
        given.update((key, value) for key, value in (("global_step", step), ("walltime", walltime)) if key in given)
        self._only_file(name, *call.args[1:], **call.kwargs)

    verb.__qualname__ = f"SummaryWriter.{name}"
    return verb
