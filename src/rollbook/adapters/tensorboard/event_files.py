"""Scalars that a library writes with tensorboard's EventFileWriter, without a SummaryWriter (skrl), are recorded, too.

Torch's SummaryWriter uses the same class; `patching` replaces all of it, so its files are left out here.
"""

from __future__ import annotations

import sys

from rollbook.adapters._run import is_recorded
from rollbook.adapters.tensorboard.writer import SummaryWriter
from rollbook.system.guard import tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_options: dict[str, object] = {}
_own: dict[str, Any] = {}
"""The class's own methods by name, while it is followed."""

_ELSEWHERE = ("torch.", "rollbook.")
"""Modules whose event files have a SummaryWriter of ours above them."""


def follow(options: dict[str, object]) -> None:
    """Let each EventFileWriter of tensorboard that is made from now on write its scalars to a run as well.

    Args:
      options: arguments of `SummaryWriter`, such as run=.
    Raises:
      ImportError: tensorboard is not installed.
    """
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    kind: Any = EventFileWriter
    _options.clear()
    _options.update(options)
    if _own:
        return
    begin, add, close = kind.__init__, kind.add_event, kind.close
    _own.update(__init__=begin, add_event=add, close=close)

    def beginning(self: Any, logdir: Any, *arguments: Any, **more: Any) -> None:
        begin(self, logdir, *arguments, **more)
        self.of_run, self.to_open = None, None
        if not sys._getframe(1).f_globals.get("__name__", "").startswith(_ELSEWHERE):
            self.to_open = {**_options, "events": False, "log_dir": logdir}

    def adding(self: Any, event: Any) -> Any:
        numbers = [] if is_recorded() else [(value.tag, _number(value)) for value in event.summary.value]
        if numbers and getattr(self, "to_open", None):  # now: an adapter that records this file would open another run
            options, self.to_open = self.to_open, None
            with tolerating(Exception):
                self.of_run = SummaryWriter(**options)
        for tag, number in numbers if getattr(self, "of_run", None) is not None else ():
            if number is not None:
                self.of_run.add_scalar(tag, number, event.step, event.wall_time)
        return add(self, event)

    def closing(self: Any) -> Any:
        if getattr(self, "of_run", None) is not None:
            self.of_run.close()
        return close(self)

    kind.__init__, kind.add_event, kind.close = beginning, adding, closing


def leave() -> None:
    """Put the class's own methods back."""
    if _own:
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        for name, method in _own.items():
            setattr(EventFileWriter, name, method)
        _own.clear()


def _number(value: Any) -> float | None:
    """The scalar of a summary; None for everything else."""
    if value.HasField("simple_value"):
        return float(value.simple_value)
    if value.metadata.plugin_data.plugin_name == "scalars" and value.HasField("tensor"):
        with tolerating(Exception):
            from tensorboard.util.tensor_util import make_ndarray

            return float(make_ndarray(value.tensor))
    return None
