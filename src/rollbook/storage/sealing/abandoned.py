"""data/abandoned.parquet: the rows that rewinds abandoned, for programs that read the Parquet files without rollbook.

It has one row (writer, lane, seq) for each row of a sealed table that does not count. Any table without these rows is
the effective history, as `Book` shows it. The file exists once something was sealed; usually it is empty.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from rollbook.errors import Damaged
from rollbook.schema.manifest import RunJson
from rollbook.schema.run_files import ABANDONED_FILE, data_folder, table_names
from rollbook.storage.history import CheckpointRow, History
from rollbook.storage.parquet_files import no_rows, open_to_read, write_columns, write_whole
from rollbook.storage.parts import OpenParts, Part
from rollbook.system.files import is_regular
from rollbook.values.arrow import constant, from_numpy, plain_text, to_numpy

_SCHEMA = pa.schema([("writer", pa.string()), ("lane", pa.int64()), ("seq", pa.int64())])

NDArray = npt.NDArray[np.int64]


def write_abandoned(run: str, about: RunJson, open_parts: OpenParts) -> None:
    """Update the file from run.json and the sealed parts.

    Args:
      run: the run's folder.
      about: its run.json.
      open_parts: its parts.
    Raises:
      Damaged: a part cannot be read.
      OSError: the disk is full.
    """
    path = os.path.join(data_folder(run), ABANDONED_FILE)
    history = History(about, lambda: _checkpoint_rows(open_parts))
    if history.is_simple:
        if not _is_empty(path):
            write_columns(_SCHEMA, path)
        return
    encoding = {"seq": "DELTA_BINARY_PACKED"}
    rows = _abandoned(run, open_parts, history)
    write_whole(rows, path, use_dictionary=["writer", "lane"], column_encoding=encoding)


def _is_empty(path: str) -> bool:
    """Whether the file exists and has no rows."""
    try:
        return is_regular(path) and pq.read_metadata(open_to_read(path)).num_rows == 0
    except (OSError, pa.ArrowException):
        return False


def _abandoned(run: str, open_parts: OpenParts, history: History) -> pa.Table:
    seqs: dict[tuple[str, int], list[NDArray]] = {}
    for table in table_names(run):
        for part in _parts(open_parts, table):
            for whose, own in _of_part(part, table, history):
                seqs.setdefault(whose, []).append(own)
    tables = []
    for (writer, lane), lane_seqs in sorted(seqs.items()):
        numbers = np.unique(np.concatenate(lane_seqs))
        n = len(numbers)
        columns = [constant(writer, n).dictionary_decode(), from_numpy(np.full(n, lane)), from_numpy(numbers)]
        tables.append(pa.Table.from_arrays(columns, schema=_SCHEMA))
    return pa.concat_tables(tables) if tables else no_rows(_SCHEMA)


def _of_part(part: Part, table: str, history: History) -> list[tuple[tuple[str, int], NDArray]]:
    """((writer, lane), sequence numbers) of the rows of a part that do not count."""
    names = ["time", "seq", "scope", "at", "attempt", "writer", "lane"]
    if table == "checkpoints":
        names.append("checkpoint_id")
    columns = []
    for group in range(len(part.row_groups)):
        rows = part.read(names, [group])
        seqs, times = to_numpy(rows["seq"])[0], to_numpy(rows["time"])[0]
        identity: dict[str, Any] = {}
        for name in ("attempt", "writer", "lane", "at"):
            value = part.meta.get(name)
            if value is None and name in rows.column_names:
                column = rows[name]
                value = to_numpy(plain_text(column) if pa.types.is_dictionary(column.type) else column)[0]
                value = value.astype(str) if value.dtype == object else value
            identity[name] = ("" if name == "at" else 0) if value is None else value
        mask = history.mask(
            "effective", identity["attempt"], identity["writer"], identity["lane"], seqs, times, identity["at"]
        )
        if mask is None or mask.all():
            continue
        if table == "checkpoints" and "checkpoint_id" in rows.column_names:
            # All rows about a checkpoint count if the checkpoint counts: a deletion of its file stays true.
            counts = [history.checkpoint_counts(str(name)) for name in rows["checkpoint_id"].to_pylist()]
            mask = np.array([m if c is None else c for m, c in zip(mask, counts, strict=True)], dtype=bool)
        indices = np.flatnonzero(~mask)
        writers = np.broadcast_to(np.asarray(identity["writer"], dtype=str), len(seqs))[indices]
        lanes = np.broadcast_to(np.asarray(identity["lane"], dtype=np.int64), len(seqs))[indices]
        for writer in np.unique(writers).tolist():
            for lane in np.unique(lanes[writers == writer]).tolist():
                columns.append(((writer, int(lane)), seqs[indices[(writers == writer) & (lanes == lane)]]))
    return columns


def _checkpoint_rows(open_parts: OpenParts) -> dict[str, CheckpointRow]:
    """The position of the first row of each sealed checkpoint."""
    checkpoints: dict[str, CheckpointRow] = {}
    for part in _parts(open_parts, "checkpoints"):
        rows = part.read()
        if "checkpoint_id" not in rows.column_names:
            continue
        n = rows.num_rows
        cells = [
            [part.meta[name]] * n if part.meta.get(name) is not None else rows[name].to_pylist()
            for name in ("attempt", "writer", "lane")
        ]
        indices = zip(*cells, rows["seq"].to_pylist(), to_numpy(rows["time"])[0].tolist(), strict=True)
        for checkpoint, row in zip(rows["checkpoint_id"].to_pylist(), indices, strict=True):
            known = checkpoints.get(str(checkpoint))
            if known is None or row[3:] < known[3:]:
                checkpoints[str(checkpoint)] = row
    return checkpoints


def _parts(open_parts: OpenParts, table: str) -> list[Part]:
    for _ in range(10):
        try:
            return open_parts.parts(table)
        except FileNotFoundError:
            continue
    raise Damaged(f"the files of {table} keep moving while they are read; try again later")
