"""Media and checkpoints that rows name: which of their files are gone or damaged."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from rollbook.book.media_files import with_files
from rollbook.book.table_protocols import EpisodeTables
from rollbook.errors import Damaged, RollbookError
from rollbook.schema.checkpoint_files import damage_of
from rollbook.schema.checkpoint_rows import kept_checkpoints
from rollbook.system.files import path_inside
from rollbook.system.guard import tolerating
from rollbook.values.spool.encode import SPOOL, read_ledger

_OF_CHECKPOINTS = ("checkpoint_id", "path", "kept", "format")


def bad_files(book: EpisodeTables) -> Iterator[tuple[str, str]]:
    """(path, what is wrong) of each kept checkpoint and each picture or video whose file is gone or damaged.

    Reads the checkpoints. Media are passed over if the run deleted its oldest ones because there were too many.
    """
    folder = str(book.path)
    try:
        checkpoints = kept_checkpoints(_columns(book.table("checkpoints", "all"), *_OF_CHECKPOINTS))
        media = [] if read_ledger(folder)["evicted"] else _media(book)
    except (RollbookError, OSError):  # reported where the tables are read
        return
    for row in media:
        path = row.get("file") or row.get("path")
        if isinstance(path, str) and path and not os.path.exists(os.path.join(folder, path)):
            yield os.path.join(folder, path), "the picture or video is not there any more"
    for about in checkpoints.values():
        path = os.path.join(folder, str(about["path"]))
        if not about["path"]:
            continue
        if not os.path.exists(path):
            if not os.path.isabs(str(about["path"])):  # a framework deletes its own files without a report
                yield path, "the checkpoint is not there any more"
            continue
        with tolerating(OSError, Damaged):  # one outside of the run is not opened
            damage = damage_of(path_inside(folder, path), str(about.get("format") or ""))
            if damage:
                yield path, f"the checkpoint is damaged: {damage}"


def waiting_pictures(book: EpisodeTables) -> int:
    """How many pictures and videos wait as raw pixels."""
    return sum(str(row.get("file") or "").startswith(f"{SPOOL}/") for row in _media(book))


def _media(book: EpisodeTables) -> list[dict[str, Any]]:
    return _columns(with_files(book.table("media", "all"), str(book.path)), "path", "file")


def _columns(table: pa.Table, *names: str) -> list[dict[str, Any]]:
    cells = {name: table[name].to_pylist() for name in names if name in table.column_names}
    return [dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True)]
