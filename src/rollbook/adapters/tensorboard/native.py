"""Choose the writer of event files: torch's or tensorboardX's if the program has loaded it, else our own.

Only `torch.utils.tensorboard` counts, not torch: a program that uses our SummaryWriter still loads torch for its
networks. Our own files hold the same summaries under the same tags (tests/frameworks/test_tensorboard.py).
"""

from __future__ import annotations

import os

from rollbook.adapters.tensorboard.libraries import PACKAGES, original
from rollbook.errors import MissingExtra, UnknownOption, did_you_mean
from rollbook.system.optional import need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_COMMON = ("purge_step", "max_queue", "flush_secs", "filename_suffix")
CHOICES = ("auto", "torch", "tensorboardX", "rollbook")


EVENT_FILES = "tensorboard.summary.writer.event_file_writer"
"""Where libraries find tensorboard's writer of files, below torch's SummaryWriter or without one; see `event_files`."""


def default_folder(comment: str) -> str:
    """runs/<date and time>_<host><comment>, the name that both libraries use."""
    import socket
    from datetime import datetime

    return os.path.join("runs", datetime.now().strftime("%b%d_%H-%M-%S") + "_" + socket.gethostname() + comment)


def open_events(choice: object, folder: str, options: dict[str, Any]) -> Any:
    """A writer of event files, or None for events=False.

    Args:
      choice: True or "auto" uses what the program has already loaded: torch.utils.tensorboard, then tensorboardX, else
        our own.
      folder: where the files go.
      options: purge_step, max_queue, flush_secs, filename_suffix; for tensorboardX also its further options.
    Raises:
      UnknownOption: `choice` is not valid.
      MissingExtra: the package it needs is not installed.
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
        need("tensorboard", extra="tensorboard", why=why)  # torch's writer needs only this package
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


def _loaded() -> str:
    return next((choice for choice in PACKAGES if original(choice) is not None), "rollbook")
