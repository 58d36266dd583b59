"""Who writes the event files: torch's or tensorboardX's writer where the program has loaded it, else our own.

What counts is `torch.utils.tensorboard`, not torch: a program that has changed its import to ours loads torch for its
networks, and our own files hold the same summaries under the same tags (tests/frameworks/test_tensorboard.py).
"""

from __future__ import annotations

import os
import sys

from rollbook._optional import need
from rollbook.errors import MissingExtra, UnknownOption, did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["CHOICES", "default_folder", "open_events"]

_COMMON = ("purge_step", "max_queue", "flush_secs", "filename_suffix")
CHOICES = ("auto", "torch", "tensorboardX", "rollbook")


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
        TorchWriter = need("torch.utils.tensorboard", extra="tensorboard", why=why, also="torch").SummaryWriter
        return TorchWriter(log_dir=folder, **common)
    if choice == "tensorboardX":
        why = "events='tensorboardX'"
        XWriter = need("tensorboardX", extra="tensorboard", why=why, also="tensorboardX").SummaryWriter
        more = {key: value for key, value in options.items() if key not in common}
        return XWriter(logdir=folder, **common, **more)
    from rollbook.adapters.tensorboard.events import EventWriter

    try:
        return EventWriter(folder, **common)
    except MissingExtra as err:
        raise MissingExtra(f"{err}. Or keep the book alone: SummaryWriter(…, events=False)") from None


def _loaded() -> str:
    for module, choice in (("torch.utils.tensorboard", "torch"), ("tensorboardX", "tensorboardX")):
        if getattr(sys.modules.get(module), "SummaryWriter", None) is not None:
            return choice
    return "rollbook"
