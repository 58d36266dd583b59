"""Values passed to `store` that no `dump` has aggregated yet, read back from a run's effective history.

The journal has every stored value as a separate row, and two kinds of marks. A "store" mark names the keys that a
scope received through `store`, once each. A "dump" mark names the keys that were aggregated, and when. So a window is
what was logged under such a key, in that scope, after the last dump mark that names it.
"""

from __future__ import annotations

import json
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from rollbook.book.metrics import joined, wide_metrics
from rollbook.book.read_context import Context
from rollbook.book.table_protocols import StoredRun
from rollbook.book.tables import read_table
from rollbook.schema.run_files import value_name
from rollbook.storage import Pieces
from rollbook.values import Histogram
from rollbook.values.arrow import take_table, to_numpy

StoredValues: TypeAlias = list[float | Histogram]
"""The values of one key since its last dump, in order; an array too large to keep raw is a histogram."""

_Position: TypeAlias = tuple[int, str, int, int]  # unix ns, writer, lane, seq


def read_undumped(book: StoredRun) -> dict[tuple[str, str], dict[str, StoredValues]]:
    """See `Book.undumped`."""

    def work(tables: dict[str, Pieces]) -> dict[tuple[str, str], dict[str, StoredValues]]:
        run = book.context([piece for pieces in tables.values() for piece in pieces], "effective")
        since = _since(read_table("marks", tables["marks"], run), run)
        if not since:
            return {}
        values: dict[tuple[str, str], dict[str, list[tuple[_Position, float | Histogram]]]] = {
            scope: {key: [] for key in keys} for scope, keys in since.items()
        }
        _add_numbers(values, since, tables["metrics"], run)
        _add_arrays(values, since, read_table("histograms", tables["histograms"], run), run)
        return {
            scope: {key: [value for _, value in sorted(cells, key=lambda cell: cell[0])] for key, cells in keys.items()}
            for scope, keys in values.items()
        }

    return book.files.read(["marks", "metrics", "histograms"], work)


_Since: TypeAlias = dict[tuple[str, str], dict[str, _Position]]  # -> key -> its last dump mark


def _since(marks: pa.Table, run: Context) -> _Since:
    """For each scope the keys that it received through `store`, and the last dump mark of each."""
    stored: _Since = {}
    dumped: _Since = {}
    if not marks.num_rows:
        return stored
    names = [marks[column].to_pylist() for column in ("mark", "keys", "scope", "at")]
    for mark, keys, scope, at, position in zip(*names, _positions(marks), strict=True):
        if mark not in ("store", "dump") or position[1] not in run.main_writers:
            continue
        for key in json.loads(keys):
            if mark == "store":
                stored.setdefault((scope, at), {})[key] = (0, "", 0, 0)
            else:
                dumped.setdefault((scope, at), {})[key] = position  # marks are in time order
    return {
        scope: {key: dumped.get(scope, {}).get(key, never) for key, never in keys.items()}
        for scope, keys in stored.items()
    }


def _add_numbers(values: dict[tuple[str, str], dict[str, Any]], since: _Since, pieces: Pieces, run: Context) -> None:
    keys = list(dict.fromkeys(key for scope in since.values() for key in scope))
    wides = wide_metrics(pieces, keys, run, with_identity=True)
    if not wides:
        return
    table, _ = joined(wides, [], run.clocks)
    there = set(table.column_names)
    times, scopes, ats = to_numpy(table["time"])[0], to_numpy(table["scope"])[0], to_numpy(table["at"])[0]
    for (scope, at), own in since.items():
        here = (scopes.astype(str) == scope) & (ats.astype(str) == at)
        for key, mark in own.items():
            column = value_name(key, run.clocks)
            if column not in there:
                continue
            cells, valid = to_numpy(table[column])
            # The cheap test first: rows older than the mark are out, whatever their writer.
            rows = np.flatnonzero(here & (times >= mark[0]) & (True if valid is None else valid))
            chosen = take_table(table.select(["time", "writer", "lane", "seq"]), rows)
            for position, cell in zip(_positions(chosen), cells[rows].tolist(), strict=True):
                if _is_behind(position, mark, run):
                    values[scope, at][key].append((position, float(cell)))


def _add_arrays(values: dict[tuple[str, str], dict[str, Any]], since: _Since, table: pa.Table, run: Context) -> None:
    if not table.num_rows:
        return
    positions = _positions(table)
    names = [table[column].to_pylist() for column in ("key", "scope", "at")]
    for row, (key, scope, at) in enumerate(zip(*names, strict=True)):
        mark = since.get((scope, at), {}).get(key)
        if mark is None or not _is_behind(positions[row], mark, run):
            continue
        cells = table.slice(row, 1).drop_columns(["time"]).to_pylist()[0]
        into = values[scope, at][key]
        if cells.get("counts"):
            summary = {name: cells.get(name) for name in ("low", "high", "total", "total_squares")}
            into.append((positions[row], Histogram(cells["edges"], cells["counts"], **summary)))
        else:
            into += [(positions[row], float(value)) for value in cells.get("values") or () if value is not None]


def _positions(table: pa.Table) -> list[_Position]:
    times = to_numpy(table["time"])[0].tolist()
    return list(zip(times, *(table[name].to_pylist() for name in ("writer", "lane", "seq")), strict=True))


def _is_behind(position: _Position, mark: _Position, run: Context) -> bool:
    """By sequence number if both are in one lane, else by time. Rows of other writers are never in a window."""
    if position[1] not in run.main_writers:
        return False
    if position[1:3] == mark[1:3]:
        return position[3] > mark[3]
    return position[0] > mark[0]
