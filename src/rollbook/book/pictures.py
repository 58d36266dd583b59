"""Where the files behind rows of `media` are, and the pixels of those that no file was made of yet."""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rollbook.errors import UnknownKey
from rollbook.ground import source
from rollbook.ground.arrow import strings
from rollbook.ground.spool.encode import locate, read_waiting

__all__ = ["waiting_pixels", "with_files"]


def with_files(table: pa.Table, folder: str) -> pa.Table:
    """The table with a column `file`: where each row's file is now, below the run's folder; null if it is nowhere."""
    if "path" not in table.column_names or "file" in table.column_names:
        return table
    root = os.path.realpath(folder)
    source.fetch(folder, [path for path in table["path"].to_pylist() if isinstance(path, str)])
    names: list[str | None] = []
    for path in table["path"].to_pylist():
        place = locate(root, path) if isinstance(path, str) and path else None
        names.append(None if place is None else os.path.relpath(place, root).replace(os.sep, "/"))
    return table.append_column("file", strings(names))


def waiting_pixels(folder: str, path: str) -> npt.NDArray[np.uint8]:
    """See `Book.pixels`."""
    waiting = read_waiting(folder, path)
    if waiting is None:
        place = locate(folder, path)
        where = f"its file is {place}" if place is not None else "it has no file either: evicted, or never a picture"
        raise UnknownKey(f"pixels({path!r}): no raw pixels of it wait in the spool; {where}")
    note, pixels = waiting
    shape = (note["frames"], note["height"], note["width"], note["channels"])
    return np.frombuffer(pixels, dtype=np.uint8).reshape(shape)
