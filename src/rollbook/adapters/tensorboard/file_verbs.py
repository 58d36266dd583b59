"""Methods of a SummaryWriter whose values have no table in a book. They go to the event files and are counted.

Also: reading the table of hyperparameters from those files.
"""

from __future__ import annotations

import inspect
import os
from functools import wraps

from rollbook.adapters._plain import parsed
from rollbook.adapters.tensorboard.events import EventWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

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
"""Their arguments are those of `EventWriter`, which follows torch."""


def file_verb(name: str) -> Callable[..., None]:
    """A method of SummaryWriter with EventWriter's name, arguments and docstring. It forwards calls to the event files.

    A call without step or time gets those of `use_metadata`.
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


def read_table(text: str) -> dict[str, object]:
    """The parameters of a Markdown table `|param|value|`; {} for any other text."""
    lines = [line.strip() for line in str(text).splitlines()]
    if len(lines) < 3 or lines[0].replace(" ", "") != "|param|value|":
        return {}
    parameters = {}
    for line in lines[2:]:
        key, _, value = line.strip("|").partition("|")
        if key.strip():
            parameters[key.strip()] = parsed(value.strip(), {"True": True, "False": False, "None": None})
    return parameters


_PARTS = {
    "train", "training", "test", "testing", "eval", "evaluation", "val", "valid", "validation", "learner", "actor",
    "collector", "evaluator", "buffer", "serial", "env", "agent", "policy", "summary",
}  # fmt: skip


def is_one_experiment(folder: str, other: str) -> bool:
    """Whether two writers write to one experiment: in one folder, one inside of the other, or parts side by side."""
    one, two = os.path.abspath(folder), os.path.abspath(other)
    above, name = os.path.split(one)
    beside, called = os.path.split(two)
    return os.path.commonpath([one, two]) in (one, two) or (above == beside and {name, called} <= _PARTS)
