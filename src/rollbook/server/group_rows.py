"""The rows of runs that groups are made of: read once per run and key, and again only if a run has new rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import NamedTuple

import numpy as np

from rollbook.errors import RollbookError
from rollbook.ground.array_types import NDArray
from rollbook.server.catalogue import RunRow
from rollbook.server.kept_rows import Rows, keep, kept
from rollbook.server.row_helpers import RowHelpers, rows_in
from rollbook.server.series import axis_name, started
from rollbook.server.shared_state import Hall

__all__ = ["RowsOfRun", "rows_of_runs", "unread"]


class RowsOfRun(NamedTuple):
    """A run's rows of a key.

    Attributes:
      axis: its name in the API.
      x, y: [rows].
    """

    axis: str
    x: NDArray
    y: NDArray


_MOST_KEYS, _MOST_AHEAD = 16, 1_000
_IN_TURN = 256
"""Requests for more unread runs take turns; one for fewer, such as the first curve of many, does not wait for them."""
_NOTHING = RowsOfRun("", np.zeros(0), np.zeros(0))
"""For a run without the key."""


def unread(hall: Hall, rows: Sequence[RunRow], key: str, x: str | None, stamps: Mapping[str, object]) -> list[RunRow]:
    """The runs whose rows of a key are not in memory."""
    return [row for row in rows if hall.group_rows.get((row.folder, key, x), stamps[row.folder]) is None]


def rows_of_runs(
    hall: Hall,
    rows: Sequence[RunRow],
    key: str,
    x: str | None,
    stamps: Mapping[str, object],
    ahead: Sequence[str] = (),
) -> dict[str, RowsOfRun]:
    """run -> its rows along one axis, without the runs that have none or cannot be read.

    Args:
      x: None: the axis of the first run that has rows.
      stamps: of each run, by its folder.
      ahead: further keys that will be requested: a few runs are read once for several of them.
    """
    if not rows:
        return {}
    together = [key, *(other_key for other_key in ahead if other_key != key)][
        : max(1, min(_MOST_KEYS, _MOST_AHEAD // len(rows)))
    ]
    read: dict[str, RowsOfRun] = {}
    now: dict[str, RowsOfRun] = {}  # by folder: a thousand long runs are more than the shelf keeps
    axis = x
    new = unread(hall, rows, key, x, stamps)
    if len(new) >= hall.limits.kept_runs:
        with hall.reading_many if len(new) > _IN_TURN else nullcontext():
            new = unread(hall, rows, key, x, stamps)  # another request may have read them meanwhile
            known = kept(hall.catalogue.roots, key, x, {row.folder: stamps[row.folder] for row in new})
            for folder, of_run in known.items():
                now[folder] = RowsOfRun(*of_run)
                _remember(hall, folder, key, x, stamps[folder], now[folder])
            new = [row for row in new if row.folder not in known]
            now |= _read_together(hall, new, together, x, stamps)
    for row in rows:
        rows_of_run = now.get(row.folder) or _rows_of(hall, row, together, x, stamps[row.folder])
        if len(rows_of_run.x) and axis is None:
            axis = rows_of_run.axis
        if len(rows_of_run.x) and x is None and rows_of_run.axis != axis:  # its own axis is another one
            rows_of_run = _rows_of(hall, row, [key], axis, stamps[row.folder])
        if len(rows_of_run.x):
            read[row.key] = rows_of_run
    if len(new) >= hall.limits.kept_runs:
        done = {row.folder: (*read[row.key],) for row in rows if row.key in read and not row.is_live}
        keep(hall.catalogue.roots, key, x, stamps, done)
    return read


def _read_together(
    hall: Hall, new: Sequence[RunRow], keys: Sequence[str], x: str | None, stamps: Mapping[str, object]
) -> dict[str, RowsOfRun]:
    """folder -> the rows of the first key, of many runs. Those of the other keys are remembered, too. Very many runs
    are read in several processes."""
    of_folder = {row.folder: row for row in new}
    read: dict[str, RowsOfRun] = {}
    helpers = RowHelpers(list(of_folder), keys, "time" if x == "relative" else x, hall.limits.helpers)
    try:
        for folder in helpers.mine:
            read[folder] = _rows_of(hall, of_folder[folder], keys, x, stamps[folder])
        for (folder, key), rows in helpers.answers().items():
            taken = _take(hall, of_folder[folder], key, x, stamps[folder], rows)
            if key == keys[0]:
                read[folder] = taken
    finally:
        helpers.close()
    return read


def _take(hall: Hall, row: RunRow, key: str, x: str | None, stamp: object, rows: Rows) -> RowsOfRun:
    """Remember the rows of a run as it was read."""
    axis, places, values = rows
    if x == "relative" and len(places):
        places = places - started(row)
    rows_of_run = RowsOfRun(axis_name(x, axis) if axis else "", places, values)
    _remember(hall, row.folder, key, x, stamp, rows_of_run)
    return rows_of_run


def _remember(hall: Hall, folder: str, key: str, x: str | None, stamp: object, rows_of_run: RowsOfRun) -> None:
    for name in {x, rows_of_run.axis or x}:  # once the page knows the axis, it requests it by name
        size = rows_of_run.x.nbytes + rows_of_run.y.nbytes + 300
        hall.group_rows.put((folder, key, name), stamp, rows_of_run, size)


def _rows_of(hall: Hall, row: RunRow, keys: Sequence[str], x: str | None, stamp: object) -> RowsOfRun:
    """The rows of the first key; those of the other keys are remembered, too."""
    shelf = hall.group_rows
    rows_of_run: RowsOfRun | None = shelf.get((row.folder, keys[0], x), stamp)
    if rows_of_run is not None:
        return rows_of_run
    try:
        with hall.book(row) as book:
            read = rows_in(book, keys, "time" if x == "relative" else x)
    except (RollbookError, OSError):
        return _NOTHING
    of_key = {key: _take(hall, row, key, x, stamp, rows) for key, rows in read.items()}
    return of_key[keys[0]]
