"""What a run is called that a SummaryWriter opens: as its folder, or the one above where that names a part of a run."""

from __future__ import annotations

import os
import re

from rollbook.adapters._run import split_name, undated
from rollbook.system.files import run_name_of

_PARTS = frozenset(
    (
        "data", "eval", "evaluation", "events", "log", "logs", "metrics", "out", "output", "outputs", "result",
        "results", "runs", "scalars", "summaries", "summary", ".summary", "tb", "tb_log", "tb_logs", "tblogs",
        "tensorboard", "tensorboard_logs", "test", "train", "training", "val", "validation",
    )
)  # fmt: skip
"""Folders inside a training for what it logs, or above all trainings: they do not say which training it is."""

_SEED = re.compile(r"(?:(?P<before>.*?)[-_.,+]+)?seed[-_=]?(?P<seed>\d{1,9})|s[-_=]?(?P<alone>\d{1,9})", re.IGNORECASE)
_MOMENT = re.compile(
    r"(?:[A-Z][a-z]{2}[0-3]\d_\d\d-\d\d-\d\d|\d{4}-?\d\d-?\d\d(?:[_T-]?\d\d[-:]?\d\d(?:[-:]?\d\d)?)?|\d\d-\d\d-\d\d)(?:[_-]|$)"
)
_HIGHEST = 5


def named_by(folder: str, program: str) -> tuple[str, int | None]:
    """(name, seed or None) of a run in that folder.

    "out/ppo/seed_3/tb" is ppo of seed 3, "logs/sac/0" is sac-0, and "runs/Nov29_12-00-00_host" has no name but that of
    the program.

    Args:
      folder: as the program gave it. What is above the current folder counts only for a folder that is not inside.
      program: the name of the program.
    """
    path = os.path.abspath(folder)
    inside = os.path.relpath(path)
    parts = (path if inside.startswith(os.pardir) else inside).split(os.sep)[-_HIGHEST:]
    seed: int | None = None
    number = ""
    while parts and (part := parts.pop()) not in ("", os.curdir):
        versioned = run_name_of(os.path.join("x", part))
        if versioned != part:  # Lightning's version_<n>
            number = number or versioned.removeprefix("x")
            continue
        part, own = split_name(part)
        if own is not None:
            return part, own
        if (found := _SEED.fullmatch(part)) is not None:
            seed = int(found["seed"] or found["alone"]) if seed is None else seed
            part = found["before"] or ""
        if (moment := _MOMENT.match(part)) is not None:
            part = _without_host(part[moment.end() :])
        if part.isdecimal():
            number = number or f"-{part}"
        elif part and part.casefold() not in _PARTS:
            return f"{undated(part)}{number}", seed
    return f"{program}{number}", seed


def _without_host(name: str) -> str:
    """What follows the moment and the name of the host in torch's own folders: the comment."""
    import socket

    return name.removeprefix(socket.gethostname()).strip("-_ ")
