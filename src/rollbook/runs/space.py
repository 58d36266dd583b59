"""Bytes of a run on the disk, by kind of file."""

from __future__ import annotations

import os

KINDS = ("tables", "journal", "checkpoints", "media", "logs", "other")
"""Sealed tables; what is not sealed yet; checkpoints; pictures and videos; text logs and event files; the rest."""

_TOPS = {"ckpt": "checkpoints", "media": "media", "log": "logs"}
_OF_JOURNAL = ("journal", "aside")


def space_of(folder: str) -> dict[str, int]:
    """Bytes of a run's folder on the disk, by kind."""
    sizes = dict.fromkeys(KINDS, 0)
    seen: set[tuple[int, int]] = set()
    for here, _folders, names in os.walk(folder):
        inside = os.path.relpath(here, folder).split(os.sep)
        if inside[0] == "data":
            kind = "journal" if inside[1:2] and inside[1] in _OF_JOURNAL else "tables"
        else:
            kind = _TOPS.get(inside[0], "other")
        for name in names:
            try:
                status = os.lstat(os.path.join(here, name))
            except OSError:  # it was sealed, or a checkpoint was replaced, meanwhile
                continue
            if status.st_nlink > 1:
                if (status.st_dev, status.st_ino) in seen:
                    continue
                seen.add((status.st_dev, status.st_ino))
            blocks = getattr(status, "st_blocks", None)
            sizes[kind] += status.st_size if blocks is None else 512 * blocks
    return sizes


def in_bytes(count: float) -> str:
    """A number of bytes for readers: 1.5 GB."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1_000:
            return f"{count:.3g} {unit}" if unit != "B" else f"{count:.0f} B"
        count /= 1_000
    return f"{count:.3g} TB"
