"""All tables except metrics: episodes, samples, timings and others, as one Arrow table each."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from rollbook.book.axis import in_order
from rollbook.book.metrics import joined, wide_metrics
from rollbook.book.read_context import Context
from rollbook.schema.run_files import RESERVED
from rollbook.schema.tables import table_of
from rollbook.storage import IDENTITY, History, Piece, Pieces, identity
from rollbook.system.guard import tolerating
from rollbook.values.array_types import NDArray
from rollbook.values.arrow import TIME, any_column, join_tables, take_table, without_dictionaries
from rollbook.values.describe import histogram_of

_TEXT, _NUMBER, _INT, _BOOL = pa.string(), pa.float64(), pa.int64(), pa.bool_()

_KINDS = {"text": _TEXT, "number": _NUMBER, "integer": _INT, "boolean": _BOOL, "numbers": pa.list_(_NUMBER)}


def read_table(
    name: str,
    pieces: Pieces,
    run: Context,
    pick: Callable[[Piece], pa.Table | None] | None = None,
    columns: Sequence[str] | None = None,
) -> pa.Table:
    """All chosen rows of a table in time order: time, known clocks, the identity columns, then the logged values.

    Args:
      pick: returns the needed rows of a piece, None if it has none; by default all.
      columns: the logged ones to read if there is no `pick`; None: all.
    """
    names = None if columns is None else ["time", *run.clocks, *IDENTITY, *columns]
    tables = []
    for piece in pieces:
        picked = piece.read(names) if pick is None else pick(piece)
        if picked is None:
            continue
        table = identity(picked, piece.meta)
        mask = None if run.history.chooses_all(run.attempts) else run.history.chosen(table, run.attempts)
        if mask is not None and name == "checkpoints" and run.attempts == "effective":
            mask = _of_checkpoints(table, mask, run.history)
        if mask is not None and not mask.all():
            table = take_table(table, np.flatnonzero(mask))
        tables.append(table)
    fixed = {column: _KINDS[kind] for column, kind in table_of(name).columns.items()}
    if columns is not None:
        fixed = {column: fixed.get(column, _TEXT) for column in columns}
    if not tables:
        kinds = {"time": TIME, **dict.fromkeys(IDENTITY, _INT), "scope": _TEXT, "at": _TEXT, "writer": _TEXT, **fixed}
        return pa.Table.from_arrays([pa.nulls(0, kind) for kind in kinds.values()], names=list(kinds))
    table = join_tables(tables)
    for column, kind in fixed.items():
        if column not in table.column_names and f"value/{column}" not in table.column_names:
            table = table.append_column(column, pa.nulls(table.num_rows, kind))
        elif pa.types.is_list(kind) and column in table.column_names and pa.types.is_string(table[column].type):
            table = table.set_column(table.column_names.index(column), column, _numbers(table[column]))
    return in_order(_tidy(table, run.clocks), None)


def _numbers(column: pa.ChunkedArray) -> pa.Array:
    """Lists that became JSON text, because those of one row were booleans, as lists of numbers; null for any other."""
    lists: list[list[float] | None] = []
    for text in column.to_pylist():
        cells = None
        with tolerating(ValueError):
            cells = json.loads(text) if text is not None else None
        is_numbers = isinstance(cells, list) and all(isinstance(cell, (bool, int, float)) for cell in cells)
        lists.append([float(cell) for cell in cells] if is_numbers and cells is not None else None)
    return pa.array(lists, _KINDS["numbers"])


def count_rows(pieces: Pieces, run: Context) -> int:
    """The number of chosen rows of a table; whole sealed parts are counted without reading. Not for checkpoints."""
    everything = run.history.chooses_all(run.attempts)
    count = 0
    for piece in pieces:
        if everything and not piece.is_long:
            count += piece.rows
            continue
        table = identity(piece.read(["time", *IDENTITY]), piece.meta)
        mask = None if everything else run.history.chosen(table, run.attempts)
        if mask is not None and not mask.all():
            table = take_table(table, np.flatnonzero(mask))
        # A rare row has one line per key.
        which = ("writer", "lane", "seq", "index")
        cells = [table[name].to_pylist() for name in which if piece.is_long and name in table.column_names]
        count += len(set(zip(*cells, strict=True))) if cells else table.num_rows
    return count


def _of_checkpoints(table: pa.Table, mask: NDArray, history: History) -> NDArray:
    """All rows about a checkpoint count if the checkpoint counts: a deletion of its file stays true."""
    if "checkpoint_id" not in table.column_names:
        return mask
    ids = table["checkpoint_id"].to_pylist()
    known = {name: history.checkpoint_counts(str(name)) for name in set(ids)}
    return np.array([m if known[name] is None else known[name] for name, m in zip(ids, mask, strict=True)], dtype=bool)


def read_metrics_rows(pieces: Pieces, run: Context) -> pa.Table:
    """All chosen rows of metrics in time order, with the identity columns and one column per key."""
    wides = wide_metrics(pieces, None, run, with_identity=True)
    table, _ = joined(wides, [], run.clocks)
    return in_order(_tidy(table, run.clocks), None)


def _tidy(table: pa.Table, clocks: tuple[str, ...]) -> pa.Table:
    """Plain text instead of dictionaries, only known clocks, and columns in a fixed order."""
    names = set(table.column_names)
    known = [c for c in clocks if c in names and table[c].null_count < table.num_rows]
    values = [n for n in table.column_names if n != "time" and n not in clocks and n not in IDENTITY]
    table = without_dictionaries(table.select(["time", *known, *[n for n in IDENTITY if n in names], *values]))
    taken = {*table.column_names}
    spelled = {f"value/{name}": name for name in (*RESERVED, *clocks) if name not in taken}
    return table.rename_columns([spelled.get(name, name) for name in table.column_names])


def binned(table: pa.Table, bins: int) -> pa.Table:
    """Replace raw values of histograms by `bins` equal bins over their finite range; the others stay unchanged."""
    raw = table["values"].to_pylist()
    columns: dict[str, list[object]] = {
        name: table[name].to_pylist() for name in ("edges", "counts", "low", "high", "total", "total_squares")
    }
    for row, values in enumerate(raw):
        if columns["counts"][row] or not values:
            continue
        shape = histogram_of(np.array([value for value in values if value is not None]), bins)
        if shape is not None:
            columns["counts"][row], columns["edges"][row] = list(map(int, shape.counts)), list(shape.edges)
            for name in ("low", "high", "total", "total_squares"):
                columns[name][row] = getattr(shape, name)
    for name, new in columns.items():
        array, _ = any_column(new)
        table = table.set_column(table.column_names.index(name), name, array)
    return table
