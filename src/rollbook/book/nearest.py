"""The state of a run at one point: small tables of the rows nearest to a clock reading.

In large tables only the clock is read first, then the blocks with the nearest rows.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from rollbook.book.metrics import all_keys
from rollbook.book.read_context import Context
from rollbook.book.select import select_metrics
from rollbook.book.tables import read_table
from rollbook.storage import IDENTITY, Piece, Pieces, identity
from rollbook.system.tuning import TUNING
from rollbook.values.array_types import NDArray
from rollbook.values.arrow import from_numpy, in_microseconds, join_tables, order_of, strings, take_table, to_numpy


def read_near(table: str, pieces: Pieces, run: Context, clock: str, value: int, rows: int) -> pa.Table:
    """The `rows` rows of a table whose `clock` is nearest to `value`, and possibly others, as in `Book.table`."""
    if (
        sum(piece.rows for piece in pieces) < TUNING.near_rows
        and sum(piece.bytes for piece in pieces) < TUNING.near_bytes
    ):
        return read_table(table, pieces, run)
    everything = run.history.chooses_all(run.attempts)
    best: list[tuple[float, int, int, int]] = []  # (distance, piece, block, row in block)
    blocks = [
        (_distance_of(piece, block, clock, value), number, block)
        for number, piece in enumerate(pieces)
        if clock in piece.columns
        for block in _blocks(piece)
    ]
    for least, number, block in sorted(blocks):  # nearest first: a long run reads two or three
        if len(best) == rows and least > best[-1][0]:
            break
        piece = pieces[number]
        part = piece.read([clock] if everything else [clock, "time", *IDENTITY], None if block < 0 else [block])
        readings, valid = to_numpy(part[clock])
        allowed = np.ones(len(readings), dtype=bool) if valid is None else valid.copy()
        if not everything:
            mask = run.history.chosen(identity(part, piece.meta), run.attempts)
            allowed = allowed if mask is None else allowed & mask
        indices = np.flatnonzero(allowed)
        distances = np.abs(readings[indices].astype(np.float64) - value)
        best += [(float(distances[i]), number, block, int(indices[i])) for i in _smallest(distances, rows).tolist()]
        best = sorted(best)[:rows]

    def pick(piece: Piece) -> pa.Table | None:
        mine: dict[int, list[int]] = {}
        for _, number, block, row in best:
            if pieces[number] is piece:
                mine.setdefault(block, []).append(row)
        tables = [
            take_table(piece.read(None, None if block < 0 else [block]), np.array(sorted(indices), dtype=np.int64))
            for block, indices in sorted(mine.items())
        ]
        return join_tables(tables) if tables else None

    return read_table(table, pieces, run, pick)


def _smallest(distances: NDArray, rows: int) -> NDArray:
    """The indices of the `rows` smallest, smallest first, ties in order; without a full sort."""
    if rows < 1:
        return np.zeros(0, dtype=np.int64)
    indices = np.arange(len(distances))
    if len(distances) > rows:
        indices = np.flatnonzero(distances <= np.partition(distances, rows - 1)[rows - 1])
    return indices[np.argsort(distances[indices], kind="stable")[:rows]]


def _blocks(piece: Piece) -> list[int]:
    """The row groups of a sealed part; [-1], the whole piece, for rows that are not sealed."""
    return [-1] if piece.part is None else list(range(len(piece.part.row_groups)))


def _distance_of(piece: Piece, block: int, clock: str, value: int) -> float:
    """A lower bound of the distance of a block's readings, from the file's statistics."""
    known = None if piece.part is None else piece.part.column_range(clock, block)
    if known is None or not all(isinstance(end, int) for end in known):
        return 0.0
    low, high = known
    return float(max(low - value, value - high, 0))


def values_at(pieces: Pieces, run: Context, clock: str, value: int) -> pa.Table:
    """The newest value of each key at or before a reading: key, value, the clock's reading, time.

    Searches backwards from the reading, block by block, until every key is found: a value found is newer than all
    earlier blocks.
    """
    labels = all_keys(pieces, run.clocks)
    missing = set(labels)
    stop, steps = float(value) + 1, 1
    blocks = []
    while missing:
        start = _further_back(pieces, missing, clock, stop, steps)
        table = select_metrics(pieces, run, sorted(missing), x=clock, start=start, stop=stop)
        near = nearest_rows({"metrics": in_microseconds(table)}, clock, value, 0, run.clocks).get("metrics")
        if near is not None:
            blocks.append(near)
            seen = set(near["key"].to_pylist())
            missing = {key for key in missing if labels[key] not in seen and key not in seen}
        if start is None:
            break
        stop, steps = start, steps * 4
    if not blocks:
        readings = pa.nulls(0, pa.int64())
        times = pa.nulls(0, pa.timestamp("us", tz="UTC"))
        columns = [pa.nulls(0, pa.string()), pa.nulls(0, pa.float64()), readings, times]
        return pa.Table.from_arrays(columns, names=["key", "value", clock, "time"])
    whole = join_tables(blocks)
    order = np.argsort(order_of(to_numpy(whole["key"])[0]), kind="stable")
    return take_table(whole, order)


def _further_back(pieces: Pieces, keys: set[str], clock: str, stop: float, steps: int) -> float | None:
    """Where to read from, so that about `steps` blocks before `stop` are read; None for the start."""
    begins: list[float] = []
    for piece in pieces:
        if piece.part is None or keys.isdisjoint(piece.meta["keys"]):
            continue
        for block in range(len(piece.part.row_groups)):
            known = piece.part.column_range(clock, block)
            if known is not None and known[0] < stop:
                begins.append(float(known[0]))
    begins.sort(reverse=True)
    return begins[steps - 1] if len(begins) >= steps else None


def nearest_rows(
    tables: Mapping[str, pa.Table], clock: str, value: int, rows: int, clocks: tuple[str, ...]
) -> dict[str, pa.Table]:
    """For each table the `rows` rows whose `clock` is nearest to `value`, in order.

    Tables whose rows do not know the clock are left out. For metrics, the newest value of each key at or before the
    point is returned instead: key, value, the clock's reading, time.
    """
    chosen = {}
    for name, table in tables.items():
        if clock not in table.column_names:
            continue
        readings, valid = to_numpy(table[clock])
        if not (len(readings) if valid is None else valid.any()):
            continue
        if name == "metrics":
            before = readings <= value
            rows_before = np.flatnonzero(before if valid is None else before & valid)
            chosen[name] = _values_at(table, clock, readings, rows_before, clocks)
            continue
        known = np.arange(len(readings)) if valid is None else np.flatnonzero(valid)
        distance = np.abs(readings[known].astype(np.float64) - value)
        nearest = known[np.sort(_smallest(distance, rows))]
        chosen[name] = take_table(table, nearest)
    return {name: table for name, table in chosen.items() if table.num_rows}


def _values_at(table: pa.Table, clock: str, readings: NDArray, before: NDArray, clocks: tuple[str, ...]) -> pa.Table:
    """For each key, the value of the last of the rows `before` a point that have the largest reading."""

    def newest(there: NDArray) -> int:
        own = readings[there]
        return int(there[np.flatnonzero(own == own.max())[-1]])

    of_all = newest(before) if len(before) else -1
    keys, values, rows = [], [], []
    for name in table.column_names:
        if name in ("time", "inferred", *clocks):
            continue
        cells, valid = to_numpy(table[name])
        there = before if valid is None else before[valid[before]]
        if len(there):
            row = of_all if valid is None or valid[of_all] else newest(there)
            keys.append(name)
            values.append(float(cells[row]))
            rows.append(row)
    at = np.array(rows, dtype=np.int64)
    times = table["time"].take(from_numpy(at)) if rows else table["time"].slice(0, 0)
    return pa.Table.from_arrays(
        [strings(keys), from_numpy(np.array(values)), from_numpy(readings[at] if rows else readings[:0]), times],
        names=["key", "value", clock, "time"],
    )
