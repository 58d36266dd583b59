"""Several keys along an axis from one read of the rows, where they are few enough to be read as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rollbook.book.context import Context
from rollbook.book.envelope import envelope
from rollbook.book.metrics import all_keys
from rollbook.book.pieces import Pieces
from rollbook.book.select import resolve_keys, select_metrics
from rollbook.book.series import Buckets, Series, raw_series, reduce_points
from rollbook.errors import AmbiguousKey, UnknownKey
from rollbook.storage.columns import to_numpy

__all__ = ["batch"]

NDArray = npt.NDArray[Any]

_FEW_ROWS = 1 << 18
"""Up to this many rows, all keys come from one table; longer series cost their points each, see `envelope`."""


def batch(
    pieces: Pieces,
    run: Context,
    keys: Sequence[str],
    *,
    x: str | None,
    points: int | None,
    start: float | None,
    stop: float | None,
) -> dict[str, Series]:
    """{key as it was asked for: what `Book.series` gives}, without those that the book does not hold."""
    labels = all_keys(pieces, run.clocks)
    native = {asked: key for asked in keys if (key := _resolved(asked, labels, run)) is not None}
    rows = {key: sum(piece.rows for piece in pieces if key in piece.meta["keys"]) for key in native.values()}
    few = [key for key in dict.fromkeys(native.values()) if rows[key] <= _FEW_ROWS]
    together = x is None or x == "time" or x in run.clocks
    found: dict[str, Series | None] = {}
    if together and len(few) > 1:
        found = _together(pieces, run, few, labels, rows, x=x, points=points, start=start, stop=stop)
    for key in native.values():
        if found.get(key) is None:
            found[key] = envelope(pieces, run, key, x=x, points=points, start=start, stop=stop)
    return {asked: series for asked, key in native.items() if (series := found[key]) is not None}


def _resolved(asked: str, labels: dict[str, str], run: Context) -> str | None:
    try:
        return resolve_keys([asked], labels, run.path)[0]
    except AmbiguousKey:
        raise
    except UnknownKey:
        return None


def _together(
    pieces: Pieces,
    run: Context,
    keys: Sequence[str],
    labels: dict[str, str],
    rows: dict[str, int],
    *,
    x: str | None,
    points: int | None,
    start: float | None,
    stop: float | None,
) -> dict[str, Series | None]:
    """Each key from one table in order of time; None where a row has to be placed on the axis first."""
    table = select_metrics(pieces, run, keys)
    times = to_numpy(table["time"])[0]
    clocks = {name: to_numpy(table[name]) for name in run.clocks if name in table.column_names}
    found: dict[str, Series | None] = {}
    for key in keys:
        values, valid = to_numpy(table[labels[key]])
        mine = np.arange(len(values)) if valid is None else np.flatnonzero(valid)
        axis = x if x is not None else _usual_axis(clocks, mine, run)
        if axis == "time":
            xs = times[mine] / 1e9
        elif axis in clocks:
            readings, known = clocks[axis]
            if known is not None and not known[mine].all():
                found[key] = None
                continue
            xs = readings[mine]
        else:
            found[key] = None
            continue
        numbers = values[mine].astype(np.float64, copy=False)
        if len(xs) > 1 and bool(np.any(xs[1:] < xs[:-1])):
            order = np.argsort(xs, kind="stable")
            xs, numbers = xs[order], numbers[order]
        if start is not None or stop is not None:
            inside = (xs >= (-np.inf if start is None else start)) & (xs < (np.inf if stop is None else stop))
            xs, numbers = xs[inside], numbers[inside]
        if points is None or rows[key] <= max(points, 1):
            found[key] = raw_series(xs, numbers, axis)
        else:
            found[key] = reduce_points(Buckets.of_rows(xs, numbers), points, axis, start, stop)
    return found


def _usual_axis(clocks: dict[str, tuple[NDArray, NDArray | None]], mine: NDArray, run: Context) -> str:
    """The run's own axis if these rows know it, else the first clock that they know, else time."""
    for name in (run.x, *run.clocks):
        if name in clocks:
            known = clocks[name][1]
            if known is None or known[mine].any():
                return name
    return "time"
