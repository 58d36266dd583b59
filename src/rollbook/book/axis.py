"""Places rows on an x-axis: any clock or key, with an as-of join for rows whose writer does not know the clock."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from rollbook.book.hosts import Host
from rollbook.book.metrics import pivot
from rollbook.book.read_context import Context
from rollbook.schema.run_files import value_name
from rollbook.storage import IDENTITY, Piece, Pieces, identity
from rollbook.values.array_types import NDArray
from rollbook.values.arrow import from_numpy, take_table, to_numpy


class OtherHosts:
    """What placing by time needs to know about hosts.

    Args:
      writers: the writer of each row.
      hosts: the host of each writer.
      by_time: also place rows of other hosts by time, corrected by the measured clock difference; else leave them.
    """

    def __init__(self, writers: NDArray, hosts: Mapping[str, Host], *, by_time: bool) -> None:
        self._writers, self._hosts, self._by_time = writers, hosts, by_time

    def placeable(self, rows: NDArray, times: NDArray, owner: str) -> tuple[NDArray, NDArray]:
        """Which of these rows may be placed through `owner`, and their times (unix ns) on its clock."""
        at_owner = self._hosts.get(owner)
        if at_owner is None:
            return rows, times
        names, which = np.unique(self._writers[rows].astype(str), return_inverse=True)
        hosts = [self._hosts.get(name) for name in names.tolist()]
        foreign = np.array([host is not None and host.clock != at_owner.clock for host in hosts], dtype=bool)[which]
        if not self._by_time:
            return rows[~foreign], times[~foreign]
        ahead = np.array([0 if host is None else host.ahead_ns - at_owner.ahead_ns for host in hosts])[which]
        return rows, np.where(foreign & (np.abs(ahead) > _MEASURABLE_NS), times - ahead, times)


_MEASURABLE_NS = 10_000_000
"""File system timestamps advance every few milliseconds; a smaller difference between two hosts counts as none."""


class Placed:
    """The positions of rows on an axis.

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
    run: Context,
    *,
    exact: bool,
    span: tuple[float, float],
    others: OtherHosts | None,
) -> Placed:
    """Place the rows of a wide table on the axis `x`, a clock or a key.

    A row without `x` gets the last earlier reading of the writer that owns `x` in the same attempt: the main writer,
    else the writer with most rows. With `exact` such a row is not placed. `others` shows which rows are of other hosts.
    Inferred readings outside `span` (low included, high excluded) may differ from the true ones, also outside of it.
    """
    n = table.num_rows
    if x in table.column_names:
        times, cells, there = _cells(table, x)
    else:
        times, cells, there = to_numpy(table["time"])[0], np.zeros(n), np.zeros(n, dtype=bool)
    inferred = np.zeros(n, dtype=bool)
    if exact or there.all():
        return Placed(cells, there, inferred)
    cells = cells.copy()
    asked = (x, span, tuple(map(id, pieces)))
    if asked not in run.timelines:
        run.timelines[asked] = timelines(pieces, x, run, span)
    for number, (known_times, readings, owner) in run.timelines[asked].items():
        rows = np.flatnonzero(~there & (attempt == number))
        moments = times[rows]
        if others is not None:
            rows, moments = others.placeable(rows, moments, owner)
        if len(rows):
            before = np.searchsorted(known_times, moments, side="right") - 1
            rows, before = rows[before >= 0], before[before >= 0]
            if cells.dtype != readings.dtype:
                cells = cells.astype(np.result_type(cells.dtype, readings.dtype))
            cells[rows] = readings[before]
            inferred[rows] = True
    return Placed(cells, there | inferred, inferred)


def timelines(
    pieces: Pieces, x: str, run: Context, span: tuple[float, float]
) -> dict[int, tuple[NDArray, NDArray, str]]:
    """For each attempt: times (unix ns, increasing) and readings of `x` as its owner logged them, and the owner.

    With a span, only those blocks of sealed parts are read that have readings in it, or that overlap in time with such
    blocks. Each other block gives one reading at its first time; like the whole block it is outside the span.
    """
    found = _Readings(x, run, span)
    left: list[tuple[Piece, str, set[int]]] = []
    for piece in pieces:
        column = _column_of(piece, x, run.clocks)
        if column is None:
            continue
        blocks = _blocks(piece, column, span, run)
        found.take(piece, column, blocks)
        if blocks is not None and piece.part is not None:
            left.append((piece, column, set(range(len(piece.part.row_groups))) - set(blocks)))
    for piece, column, others in left:
        found.take_near(piece, column, sorted(others))
    return found.by_attempt()


class _Readings:
    """Readings of `x` by attempt and writer; see `timelines`."""

    def __init__(self, x: str, run: Context, span: tuple[float, float]) -> None:
        self._x, self._run, self._span = x, run, span
        self._all_rows = run.history.chooses_all(run.attempts)
        self._chunks: dict[tuple[int, str], list[tuple[NDArray, NDArray]]] = {}
        self._rows: dict[tuple[int, str], int] = {}
        self._inside: dict[tuple[int, str], list[tuple[int, int]]] = {}  # (begin, end) of times with readings in span

    def take(self, piece: Piece, column: str, blocks: list[int] | None) -> None:
        """Read these blocks of a piece, None for all."""
        attempt, writer = piece.meta.get("attempt"), piece.meta.get("writer")
        if self._all_rows and not piece.is_long and attempt is not None and writer is not None:
            table = piece.read(["time", column], blocks)
            if column in table.column_names:
                times, cells, there = _cells(table, column)
                if not there.all():
                    times, cells = times[there], cells[there]
                self._put((int(attempt), str(writer)), times, cells)
            return
        table = _readings(piece, self._x, self._run.clocks, blocks)
        if table is None:
            return
        mask = self._run.history.chosen(table, self._run.attempts)
        if mask is not None:
            table = take_table(table, np.flatnonzero(mask))
        times, cells, there = _cells(table, self._x)
        attempts, writers = to_numpy(table["attempt"])[0], to_numpy(table["writer"])[0]
        for number in np.unique(attempts[there]).tolist():
            for name in set(writers[there & (attempts == number)].tolist()):
                rows = there & (attempts == number) & (writers == name)
                self._put((number, name), times[rows], cells[rows])

    def take_near(self, piece: Piece, column: str, blocks: list[int]) -> None:
        """Read those of these blocks that overlap in time with readings in the span; of others one reading each."""
        whose, part = (int(piece.meta["attempt"]), str(piece.meta["writer"])), piece.part
        assert part is not None
        near = []
        for block in blocks:
            moments, known = part.column_range("time", block), part.column_range(column, block)
            if moments is None or any(moments[0] <= b and a <= moments[1] for a, b in self._inside.get(whose, ())):
                near.append(block)
            elif known is not None:
                point = np.array([moments[0]], dtype=np.int64), np.array([known[0]], dtype=np.int64)
                self._add(whose, *point, part.row_groups[block])
        if near:
            self.take(piece, column, near)

    def by_attempt(self) -> dict[int, tuple[NDArray, NDArray, str]]:
        """What `timelines` returns."""
        found = {}
        for attempt in {attempt for attempt, _ in self._chunks}:
            writers = [writer for own, writer in self._chunks if own == attempt]
            owner = max((w in self._run.main_writers, self._rows[attempt, w], w) for w in writers)[2]
            times, readings = map(np.concatenate, zip(*self._chunks[attempt, owner], strict=True))
            if not bool(np.all(times[1:] >= times[:-1])):
                order = np.argsort(times, kind="stable")
                times, readings = times[order], readings[order]
            found[attempt] = (times, readings, owner)
        return found

    def _put(self, whose: tuple[int, str], times: NDArray, cells: NDArray) -> None:
        if not len(times):
            return
        self._add(whose, times, cells, len(times))
        if self._span != _EVERYWHERE:
            seen = times[(cells >= self._span[0]) & (cells < self._span[1])]
            if len(seen):
                self._inside.setdefault(whose, []).append((int(seen.min()), int(seen.max())))

    def _add(self, whose: tuple[int, str], times: NDArray, cells: NDArray, rows: int) -> None:
        self._chunks.setdefault(whose, []).append((times, cells))
        self._rows[whose] = self._rows.get(whose, 0) + rows


_EVERYWHERE = (-np.inf, np.inf)


def _cells(table: pa.Table, column: str) -> tuple[NDArray, NDArray, NDArray]:
    """Times (unix ns), the readings in a column as numbers, and which of them are there."""
    cells, valid = to_numpy(table[column])
    there = np.ones(len(cells), dtype=bool) if valid is None else valid.copy()
    if cells.dtype == bool:
        cells = cells.astype(np.int64)
    if cells.dtype.kind == "f":
        there &= ~np.isnan(cells)
    return to_numpy(table["time"])[0], cells, there


def _column_of(piece: Piece, x: str, clocks: tuple[str, ...]) -> str | None:
    """The column of a clock or a key in a piece, by its label; None if the piece lacks it."""
    if x in piece.meta["clocks"]:
        return x
    key = next((key for key in piece.meta["keys"] if value_name(key, clocks) == x), None)
    return None if key is None else piece.column_of(key)


def _readings(piece: Piece, x: str, clocks: tuple[str, ...], blocks: list[int] | None) -> pa.Table | None:
    """Time, identity and `x` of the rows of a piece; None if it lacks `x`."""
    if piece.is_long and x not in piece.meta["clocks"]:
        keys = [key for key in piece.meta["keys"] if value_name(key, clocks) == x]
        table = piece.read(["time", *IDENTITY, "key", "type", "value", "integer"])
        table = pivot(identity(table, piece.meta), keys, clocks)
        return table if x in table.column_names else None
    column = _column_of(piece, x, clocks)
    assert column is not None
    table = identity(piece.read(["time", column, *IDENTITY], blocks), piece.meta)
    if column not in table.column_names:
        return None
    return table.rename_columns([x if name == column else name for name in table.column_names])


def _blocks(piece: Piece, column: str, span: tuple[float, float], run: Context) -> list[int] | None:
    """The blocks of a piece that must be read to know its readings in a span; None for all blocks."""
    part = piece.part
    if part is None or not piece.is_whole or piece.meta.get("writer") is None or piece.meta.get("attempt") is None:
        return None
    if not run.history.chooses_all(run.attempts) or part.column_range("time", 0) is None:
        return None
    return piece.blocks_within([(column, *span)])


def chosen_rows(piece: Piece, clocks: tuple[str, ...], run: Context) -> pa.Table:
    """Time, clocks and identity of the chosen rows of a piece, without those at a checkpoint. A long row gives all its
    lines."""
    table = identity(piece.read(["time", *clocks, *IDENTITY]), piece.meta)
    if piece.meta.get("at") != "":
        ats = to_numpy(table["at"])[0]
        table = take_table(table, np.flatnonzero(np.array([not at for at in ats], dtype=bool)))
    mask = None if run.history.chooses_all(run.attempts) else run.history.chosen(table, run.attempts)
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
