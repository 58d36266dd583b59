"""Empties cells of sealed rows, to save space. The rows stay, and are marked: their `trimmed` is true.

Every part is replaced whole, so an interruption leaves some parts trimmed and others not; the next call continues.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rollbook.errors import RunIsLive
from rollbook.schema.run_files import data_folder
from rollbook.storage.parts import OpenParts, Part
from rollbook.storage.sealing.folder import only_one
from rollbook.storage.sealing.merge import rewrite
from rollbook.system.files import own_files, remove
from rollbook.system.guard import tolerating
from rollbook.values.arrow import from_numpy, to_numpy

_WAIT_SECONDS = 60.0


class Trimming:
    """The sealed cells of a run, to be measured and emptied."""

    def __init__(self, run: str) -> None:
        self._run = run

    def sealed_bytes(self, tables: Sequence[str]) -> int:
        """Bytes of the sealed parts of tables, and of the long texts in files of their own."""
        folders = [os.path.join(data_folder(self._run), name) for name in (*tables, "items")]
        total = 0
        for folder in folders:
            for name in own_files(folder):
                with tolerating(FileNotFoundError):  # merged meanwhile
                    total += os.lstat(os.path.join(folder, name)).st_size
        return total

    def cell_bytes(self, table: str, columns: Sequence[str]) -> tuple[int, int]:
        """(bytes of columns in the sealed parts of a table, how many of its rows are not trimmed)."""
        parts = OpenParts(self._run).parts(table)
        rows = sum(part.null_count("trimmed") if "trimmed" in part.columns else part.rows for part in parts)
        return sum(part.stored_bytes(columns) for part in parts), rows

    def empty(self, chosen: Mapping[str, tuple[pa.Array, Sequence[str]]]) -> None:
        """Empty columns of the rows of rollouts.

        Args:
          chosen: table -> (ids of the rollouts, the columns to empty).
        Raises:
          RunIsLive: another process has been sealing the run for a minute.
          OSError: a part cannot be written; it is unchanged.
        """
        with only_one(self._run, wait=_WAIT_SECONDS) as lock:
            if lock is None:
                raise RunIsLive(f"{self._run} is being sealed by another process; try again later")
            open_parts = OpenParts(self._run)
            for table, (ids, columns) in chosen.items():
                for part in open_parts.parts(table):
                    _trim(part, ids, columns)
            _remove_long_texts(self._run, open_parts)


def _trim(part: Part, ids: pa.Array, columns: Sequence[str]) -> None:
    """Empty the columns of those rows of a part that still have them."""
    names = part.columns
    if "rollout_id" not in names or not any(name in names for name in columns):
        return
    known = part.read(["rollout_id", *(["trimmed"] if "trimmed" in names else [])])
    if not np.any(_mask(known, ids) & ~_trimmed(known)):
        return

    def changed(table: pa.Table) -> pa.Table:
        mask = _mask(table, ids)
        indices = from_numpy(np.arange(table.num_rows), ~mask)
        for name in columns:
            if name in names:
                i = table.column_names.index(name)
                table = table.set_column(i, table.schema.field(name), table[name].take(indices))
        is_trimmed = mask | _trimmed(table)
        cells = from_numpy(is_trimmed, is_trimmed)
        if "trimmed" in table.column_names:
            return table.set_column(table.column_names.index("trimmed"), "trimmed", cells)
        return table.append_column("trimmed", cells)

    rewrite(part, changed)


def _mask(table: pa.Table, ids: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    column = table["rollout_id"]
    values: np.ndarray[tuple[int], np.dtype[np.bool_]] = to_numpy(pc.is_in(column, ids.cast(column.type)))[0]
    return values.astype(bool)


def _trimmed(table: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    if "trimmed" not in table.column_names:
        return np.zeros(table.num_rows, dtype=bool)
    column = table["trimmed"]
    if pa.types.is_null(column.type):
        return np.zeros(table.num_rows, dtype=bool)
    values, valid = to_numpy(column)
    here: np.ndarray[tuple[int], np.dtype[np.bool_]] = values.astype(bool)
    return here if valid is None else here & valid


def _remove_long_texts(run: str, open_parts: OpenParts) -> None:
    """Remove the files of long texts to which only trimmed rows refer."""
    gone: set[str] = set()
    needed: set[str] = set()
    for table in ("turns", "rollouts", "samples"):
        for part in open_parts.parts(table):
            if "item_path" not in part.columns or part.null_count("item_path") == part.rows:
                continue
            rows = part.read(["item_path", *(["trimmed"] if "trimmed" in part.columns else [])])
            for path, is_trimmed in zip(rows["item_path"].to_pylist(), _trimmed(rows).tolist(), strict=True):
                if path is not None:
                    (gone if is_trimmed else needed).add(str(path))
    for path in gone - needed:
        if path.startswith("data/items/") and "/" not in path.removeprefix("data/items/"):
            remove(os.path.join(run, path))
