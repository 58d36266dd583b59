"""Cuts the rows that are not in the store yet out of a sealed part."""

from __future__ import annotations

import hashlib
import os
import tempfile

import numpy as np
import pyarrow as pa

from rollbook.remote.row_ranges import Cover
from rollbook.schema.run_files import PartName
from rollbook.storage import Part, write_part
from rollbook.values.arrow import plain_text, take_table, to_numpy


def cut_part(path: str, left: tuple[Cover, ...], called: str = "") -> tuple[bytes, str]:
    """A part with only the rows of these covers: its bytes, and a name for it.

    Args:
      called: the part's name if its file has another one.
    Raises:
      Damaged: the part cannot be read. FileNotFoundError: it has been merged into another one.
    """
    name = PartName.parse(called or os.path.basename(path))
    assert name is not None
    part = Part(path, name)
    table = part.read()
    seqs = to_numpy(table["seq"])[0]
    writers, lanes = (_values_of(part, table, column) for column in ("writer", "lane"))
    mask = np.zeros(table.num_rows, dtype=bool)
    for _table, writer, lane, _group, first, last in left:
        mask |= (writers == writer) & (lanes == lane) & (seqs >= first) & (seqs <= last)
    rows = take_table(table, np.flatnonzero(mask))
    meta = dict(part.meta)
    meta["rows"] = rows.num_rows
    if rows.num_rows:
        times = to_numpy(rows["time"])[0].astype(np.int64)
        meta["first_time"], meta["last_time"] = int(times.min()), int(times.max())
    if "covers" in meta:
        meta["covers"] = [list(cover[1:]) for cover in left]
        number = int(hashlib.sha256(repr(left).encode()).hexdigest()[:7], 16)
        new = PartName("", -1, "merged", 1000 + number)
    else:
        meta["first_seq"], meta["last_seq"] = left[0][4], left[-1][5]
        if len(left) > 1:
            meta["covers"] = [list(cover[1:]) for cover in left]
        new = PartName(name.writer, name.lane, name.kind, left[0][4])
    meta.pop("last", None)
    meta.pop("last_clocks", None)
    meta.pop("after", None)  # some of the rows before may have been cut off
    with tempfile.TemporaryDirectory(prefix="rollbook-cut-") as folder:
        temporary = os.path.join(folder, str(new))
        write_part(temporary, meta, rows)
        with open(temporary, "rb") as file:
            return file.read(), str(new)


def _values_of(part: Part, table: pa.Table, column: str) -> object:
    """An identity column, which may be stored only in the part's description."""
    value = part.meta.get(column)
    if value is not None:
        return value
    cells = table[column]
    cells = to_numpy(plain_text(cells) if pa.types.is_dictionary(cells.type) else cells)[0]
    return cells.astype(str) if cells.dtype == object else cells
