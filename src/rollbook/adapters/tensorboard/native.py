"""Who writes the event files: torch's or tensorboardX's writer where the program has loaded it, else our own.

What counts is `torch.utils.tensorboard`, not torch: a program that has changed its import to ours loads torch for its
networks, and our own files hold the same summaries under the same tags (tests/frameworks/test_tensorboard.py).
"""

from __future__ import annotations

import os
import sys

from rollbook.errors import MissingExtra, UnknownOption, did_you_mean
from rollbook.ground.optional import need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["CHOICES", "PACKAGES", "default_folder", "open_events", "original"]

_COMMON = ("purge_step", "max_queue", "flush_secs", "filename_suffix")
CHOICES = ("auto", "torch", "tensorboardX", "rollbook")
PACKAGES = {"torch": "torch.utils.tensorboard", "tensorboardX": "tensorboardX"}
"""Where each library's SummaryWriter is imported from; the class itself is in the module `writer` of that package."""


def default_folder(comment: str) -> str:
    """runs/<date and time>_<host><comment>, as both libraries name it."""
    import socket
    from datetime import datetime

    return os.path.join("runs", datetime.now().strftime("%b%d_%H-%M-%S") + "_" + socket.gethostname() + comment)


def open_events(choice: object, folder: str, options: dict[str, Any]) -> Any:
    """A writer of event files, or None for events=False.

    Args:
      choice: True or "auto" takes what the program has loaded already: torch.utils.tensorboard, then tensorboardX, and
        if it has neither, our own.
      folder: where the files go.
      options: purge_step, max_queue, flush_secs, filename_suffix; for tensorboardX what it takes besides.
    Raises:
      UnknownOption: `choice` is none. MissingExtra: the package it needs is not installed.
    """
    if choice is False or choice is None:
        return None
    choice = "auto" if choice is True else choice
    if choice not in CHOICES:
        hint = did_you_mean(str(choice), [*CHOICES, "False"])
        raise UnknownOption(f"events={choice!r} does not say who writes the event files.{hint}")
    if choice == "auto":
        choice = _loaded()
    common = {
        key: options[key] for key in ("purge_step", "max_queue", "flush_secs", "filename_suffix") if key in options
    }
    if choice == "torch":
        why = "events='torch'"
        need("tensorboard", extra="tensorboard", why=why)  # torch's writer is torch's alone beside this package
        need(PACKAGES[choice], extra="tensorboard", why=why, also="torch")
        if (TorchWriter := original(choice)) is not None:
            return TorchWriter(log_dir=folder, **common)
    if choice == "tensorboardX":
        why = "events='tensorboardX'"
        need(PACKAGES[choice], extra="tensorboard", why=why, also="tensorboardX")
        if (XWriter := original(choice)) is not None:
            more = {key: value for key, value in options.items() if key not in common}
            return XWriter(logdir=folder, **common, **more)
    from rollbook.adapters.tensorboard.events import EventWriter

    try:
        return EventWriter(folder, **common)
    except MissingExtra as err:
        raise MissingExtra(f"{err}. Or keep the book alone: SummaryWriter(…, events=False)") from None


def original(choice: str) -> Any:
    """The library's own SummaryWriter, also where its name was replaced by ours; None if it is not loaded."""
    package = PACKAGES[choice]
    for module in (package, f"{package}.writer"):
        theirs = getattr(sys.modules.get(module), "SummaryWriter", None)
        if theirs is not None and not getattr(theirs, "writes_a_run", False):
            return theirs
    return None


def _loaded() -> str:
    return next((choice for choice in PACKAGES if original(choice) is not None), "rollbook")
