"""Placing rows on an x-axis: any clock or key, with an as-of join for rows whose writer does not know the clock."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rollbook.book.metrics import IDENTITY, chosen, identity, pivot
from rollbook.book.pieces import Piece, Pieces
from rollbook.storage.columns import from_numpy, take_table, to_numpy
from rollbook.storage.history import Attempts, History
from rollbook.storage.layout import value_name

__all__ = ["Placed", "chosen_rows", "in_order", "place", "timelines"]

NDArray = npt.NDArray[Any]


class Placed:
    """Where rows stand on an axis.

    Attributes:
      x: the reading of each row; arbitrary where `there` is False.
      there: whether the row could be placed.
      inferred: whether it was placed by time, through the writer that knows the clock.
    """

    def __init__(self, x: NDArray, there: NDArray, inferred: NDArray) -> None:
        self.x, self.there, self.inferred = x, there, inferred


def place(
    table: pa.Table,
    attempt: NDArray,
    x: str,
    pieces: Pieces,
    clocks: tuple[str, ...],
    history: History,
    attempts: Attempts,
    main_writers: set[str],
    *,
    exact: bool,
) -> Placed:
    """Place the rows of a wide table on the axis `x`, a clock or a key.

    A row that lacks `x` gets the last reading before it, in time, of the writer that knows it best in the same
    attempt: the main writer, else the one with most rows. With `exact` it is not placed.
    """
    n = table.num_rows
    if x in table.column_names:
        cells, valid = to_numpy(table[x])
        there = np.ones(n, dtype=bool) if valid is None else valid.copy()
    else:
        cells, there = np.zeros(n, dtype=np.float64), np.zeros(n, dtype=bool)
    if cells.dtype == bool:
        cells = cells.astype(np.int64)
    if cells.dtype.kind == "f":
        there &= ~np.isnan(cells)
    inferred = np.zeros(n, dtype=bool)
    if exact or there.all():
        return Placed(cells, there, inferred)
    times = to_numpy(table["time"])[0]
    cells = cells.copy()
    for number, (known_times, readings) in timelines(pieces, x, clocks, history, attempts, main_writers).items():
        rows = np.flatnonzero(~there & (attempt == number))
        if len(rows) and len(known_times):
            before = np.searchsorted(known_times, times[rows], side="right") - 1
            rows, before = rows[before >= 0], before[before >= 0]
            if cells.dtype != readings.dtype:
                cells = cells.astype(np.result_type(cells.dtype, readings.dtype))
            cells[rows] = readings[before]
            inferred[rows] = True
    return Placed(cells, there | inferred, inferred)


def timelines(
    pieces: Pieces,
    x: str,
    clocks: tuple[str, ...],
    history: History,
    attempts: Attempts,
    main_writers: set[str],
) -> dict[int, tuple[NDArray, NDArray]]:
    """For each attempt the times (unix ns, increasing) and readings of `x`, as its owner logged them."""
    by_writer: dict[int, dict[str, list[tuple[NDArray, NDArray]]]] = {}
    for piece in pieces:
        is_clock = x in piece.meta["clocks"]
        key = None if is_clock else next((key for key in piece.meta["keys"] if value_name(key, clocks) == x), None)
        if key is None and not is_clock:
            continue
        if key is not None and piece.is_long:
            table = piece.read(["time", *IDENTITY, "key", "type", "value", "integer"])
            table = pivot(identity(table, piece.meta), [key], clocks)
        else:
            column = x if key is None else piece.column_of(key)
            table = identity(piece.read(["time", column, *IDENTITY]), piece.meta)
            table = table.rename_columns([x if name == column else name for name in table.column_names])
        if x not in table.column_names:
            continue
        mask = chosen(table, history, attempts)
        if mask is not None:
            table = take_table(table, np.flatnonzero(mask))
        cells, valid = to_numpy(table[x])
        kept = np.ones(len(cells), dtype=bool) if valid is None else valid.copy()
        if cells.dtype.kind == "f":
            kept &= ~np.isnan(cells)
        if cells.dtype == bool:
            cells = cells.astype(np.int64)
        times = to_numpy(table["time"])[0]
        numbers, writers = to_numpy(table["attempt"])[0], to_numpy(table["writer"])[0]
        for number in np.unique(numbers[kept]).tolist():
            for writer in set(writers[kept & (numbers == number)].tolist()):
                rows = kept & (numbers == number) & (writers == writer)
                by_writer.setdefault(number, {}).setdefault(writer, []).append((times[rows], cells[rows]))
    found = {}
    for number, writers_of in by_writer.items():
        owner = max(writers_of, key=lambda w: (w in main_writers, sum(len(t) for t, _ in writers_of[w]), w))
        times = np.concatenate([t for t, _ in writers_of[owner]])
        readings = np.concatenate([c for _, c in writers_of[owner]])
        order = np.argsort(times, kind="stable")
        found[number] = (times[order], readings[order])
    return found


def chosen_rows(
    piece: Piece, clocks: tuple[str, ...], history: History, attempts: Attempts, *, without_at: bool = False
) -> pa.Table:
    """Time, clocks and identity of the chosen rows of a piece. Lines of one long row are all given."""
    table = identity(piece.read(["time", *clocks, *IDENTITY]), piece.meta)
    if without_at and piece.meta.get("at") != "":
        ats = to_numpy(table["at"])[0]
        table = take_table(table, np.flatnonzero(np.array([not at for at in ats], dtype=bool)))
    mask = None if history.chooses_all(attempts) else chosen(table, history, attempts)
    return table if mask is None else take_table(table, np.flatnonzero(mask))


def in_order(table: pa.Table, x: NDArray | None, extra: NDArray | None = None) -> pa.Table:
    """Rows by (x, time), or by time alone; `extra` becomes the column `inferred`."""
    times = to_numpy(table["time"])[0]
    if extra is not None:
        table = table.append_column("inferred", from_numpy(extra))
    if x is None:
        if len(times) < 2 or bool(np.all(times[1:] >= times[:-1])):
            return table
        return take_table(table, np.argsort(times, kind="stable"))
    if len(x) < 2 or (bool(np.all(x[1:] >= x[:-1])) and bool(np.all(times[1:] >= times[:-1]))):
        return table
    return take_table(table, np.lexsort((times, x)))
