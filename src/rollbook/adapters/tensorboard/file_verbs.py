"""Methods of a SummaryWriter whose values have no table in a book. They go to the event files and are counted.

Also: reading the table of hyperparameters from those files.
"""

from __future__ import annotations

import os

from rollbook.adapters._plain import parsed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def file_verb(name: str) -> Callable[..., None]:
    """A method of SummaryWriter that forwards its calls to the event files."""

    def verb(self: Any, *args: object, **kwargs: object) -> None:
        self._only_file(name, *args, **kwargs)

    verb.__name__, verb.__qualname__ = name, f"SummaryWriter.{name}"
    verb.__doc__ = f"""To the event files only, by torch's or tensorboardX's writer.

    Args:
      args, kwargs: as in `torch.utils.tensorboard.SummaryWriter.{name}`.
    """
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

OF_EVALUATIONS = frozenset(("eval", "evaluation", "val", "validation"))
"""Folders whose numbers are no training's; "test" may be what somebody calls an experiment."""


def is_one_experiment(folder: str, other: str) -> bool:
    """Whether two writers write to one experiment: in one folder, one inside of the other, or parts side by side."""
    one, two = os.path.abspath(folder), os.path.abspath(other)
    above, name = os.path.split(one)
    parent, called = os.path.split(two)
    return os.path.commonpath([one, two]) in (one, two) or (above == parent and {name, called} <= _PARTS)
