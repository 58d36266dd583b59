"""Methods of a SummaryWriter whose values have no table in a book. They go to the event files and are counted.

Also: reading the table of hyperparameters from those files.
"""

from __future__ import annotations

import inspect
import re
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


_NAME = re.compile(r"(?P<env>.+)__(?P<exp>.+)__(?P<seed>\d{1,9})__(?P<time>\d{10})")


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


def split_name(name: str) -> tuple[str, int | None]:
    """(name, seed) of a folder called `<env_id>__<exp_name>__<seed>__<unix seconds>`; for other names (the name, None).

    Runs that only differ in their seed then have the same name.
    """
    match = _NAME.fullmatch(name)
    return (name, None) if match is None else (f"{match['env']}__{match['exp']}", int(match["seed"]))
