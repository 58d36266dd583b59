"""The newest value of every key, from the metadata of sealed parts and the last rows of live ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from rollbook.book.metrics import all_keys, wide_metrics
from rollbook.book.read_context import Context
from rollbook.protocols import Row
from rollbook.storage import IDENTITY, Piece, Pieces, identity
from rollbook.values.arrow import order_of, take_table, to_numpy

Latest = dict[str, tuple[Any, dict[str, int], float]]
"""key -> (value, known clocks, unix seconds)."""

_Age = tuple[tuple[int, int], int]
"""((attempt, unix ns), which piece) of a row."""

_TAIL_ROWS = 16
"""How many rows at the end of a live segment are checked first: mostly they have a value of each key."""


def latest_values(pieces: Pieces, run: Context) -> Latest:
    """The newest chosen value of each key.

    Rows are newer in a later attempt, and within one by time; of equally new ones that of the last piece counts. Pieces
    are read from the newest on, and none that has nothing new: a live run has many, each of all keys.
    """
    labels = all_keys(pieces, run.clocks)
    newest: dict[str, tuple[_Age, tuple[object, dict[str, int], float]]] = {}
    bounds = [(piece.newest(), index) for index, piece in enumerate(pieces)]
    for bound, index in sorted(bounds, key=lambda one: (one[0] is None, one), reverse=True):
        piece = pieces[index]
        if bound is not None and all(_is_newer(newest.get(labels.get(key, key)), bound) for key in piece.meta["keys"]):
            continue
        for age, values, clocks in _of_piece(piece, run, labels):
            own, seconds = (age, index), age[1] / 1e9
            for key, value in values.items():
                label = labels.get(key, key)
                known = newest.get(label)
                if known is None or known[0] <= own:
                    newest[label] = own, (value, clocks, seconds)
    return {label: newest[label][1] for label in sorted(newest)}


def _is_newer(known: tuple[_Age, object] | None, bound: tuple[int, int]) -> bool:
    """Whether a value is newer than anything up to a bound."""
    return known is not None and known[0][0] > bound


def rows_of(latest: Latest, timings: pa.Table, began: float, attempt: int) -> list[Row]:
    """The newest values as rows in the order of time, after one with the seconds spent in each stage."""
    stages: dict[str, float] = {}
    if timings.num_rows:
        for name, took in zip(timings["name"].to_pylist(), timings["seconds"].to_pylist(), strict=True):
            stages[name] = stages.get(name, 0.0) + took
    rows = [Row(began, {}, {f"time/{name}_seconds": took for name, took in stages.items()})]
    for key, (value, clocks, time) in sorted(latest.items(), key=lambda item: item[1][2]):
        rows.append(Row(time, clocks, {key: value}, attempt=attempt))
    return rows


_Newest = list[tuple[tuple[int, int], Mapping[str, object], dict[str, int]]]
"""((attempt, unix ns), key -> value, clocks) of rows."""


def _of_piece(piece: Piece, run: Context, labels: dict[str, str]) -> _Newest:
    """The newest value of each key in one piece, by the rows that have them."""
    meta = piece.meta
    if piece.is_whole and "last" in meta and not meta.get("deferred") and _counts_to_its_end(piece, run):
        age = (int(meta["attempt"]), int(meta["last_time"]))
        return [(age, meta["last"], dict(meta["last_clocks"]))]
    if piece.is_long:
        return _of_long(piece, run)
    if run.history.chooses_all(run.attempts) and (last := piece.last_row()) is not None:
        time, clocks, values = last
        return [((int(meta["attempt"]), time), values, clocks)]
    tail = piece.tail(_TAIL_ROWS)
    entries = [] if tail is None else _of_rows(tail, run, labels)
    return entries if entries and len(entries) == len(meta["keys"]) else _of_rows(piece, run, labels)


def _of_rows(piece: Piece, run: Context, labels: dict[str, str]) -> _Newest:
    entries: _Newest = []
    for wide in wide_metrics([piece], None, run):
        table = wide.table
        times = to_numpy(table["time"])[0]
        names = set(table.column_names)
        clocks: dict[int, dict[str, int]] = {}
        for key in piece.meta["keys"]:
            name = labels[key]
            if name not in names:
                continue
            valid = to_numpy(table[name])[1]
            row = table.num_rows - 1 if valid is None else int(np.flatnonzero(valid)[-1]) if valid.any() else -1
            if row >= 0:
                age = (int(np.max(wide.attempt)), int(times[row]))
                if row not in clocks:
                    clocks[row] = _clocks(table, row, run)
                entries.append((age, {key: table[name][row].as_py()}, clocks[row]))
    return entries


def _counts_to_its_end(piece: Piece, run: Context) -> bool:
    """Whether the last row of a sealed part is chosen."""
    if run.history.chooses_all(run.attempts):
        return True
    meta = piece.meta
    if any(meta.get(name) is None for name in ("attempt", "writer", "lane", "at")):
        return False
    ends = np.array([meta["last_seq"]]), np.array([meta["last_time"]])
    mask = run.history.mask(run.attempts, meta["attempt"], meta["writer"], meta["lane"], *ends, meta["at"])
    return mask is None or bool(mask.all())


def _of_long(piece: Piece, run: Context) -> _Newest:
    table = identity(piece.read(["time", *run.clocks, *IDENTITY, "key", "type", "value", "integer"]), piece.meta)
    mask = None if run.history.chooses_all(run.attempts) else run.history.chosen(table, run.attempts)
    if mask is not None:
        table = take_table(table, np.flatnonzero(mask))
    if not table.num_rows:
        return []
    names = to_numpy(table["key"])[0]
    ranks = order_of(names)
    times, attempts = to_numpy(table["time"])[0], to_numpy(table["attempt"])[0]
    order = np.lexsort((times, attempts, ranks))
    last = order[np.append(np.diff(ranks[order]) != 0, True)]
    table = take_table(table, last)
    known = [(clock, *to_numpy(table[clock])) for clock in run.clocks if clock in table.column_names]
    lines = zip(last.tolist(), *(table[name].to_pylist() for name in ("type", "value", "integer")), strict=True)
    entries: _Newest = []
    for line, (row, kind, number, integer) in enumerate(lines):
        value = bool(integer) if kind == "b" else integer if kind == "q" else number
        clocks = {clock: int(cells[line]) for clock, cells, valid in known if valid is None or valid[line]}
        entries.append(((int(attempts[row]), int(times[row])), {names[row]: value}, clocks))
    return entries


def _clocks(table: pa.Table, row: int, run: Context) -> dict[str, int]:
    known = {}
    for clock in run.clocks:
        if clock in table.column_names:
            reading = table[clock][row].as_py()
            if reading is not None:
                known[clock] = int(reading)
    return known
