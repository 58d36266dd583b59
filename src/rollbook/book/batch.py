"""Several keys along an axis from one read of the rows, if there are few enough rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rollbook.book.envelope import as_they_lie, envelope, usual_axis
from rollbook.book.metrics import all_keys
from rollbook.book.read_context import AxisRange, Context, are_chosen
from rollbook.book.select import resolve_keys, select_metrics
from rollbook.book.series import Buckets, Series, raw_series, reduce_points, reduced_rows, stretches
from rollbook.errors import AmbiguousKey, UnknownKey
from rollbook.schema.default_axis import default_axis
from rollbook.storage import Pieces
from rollbook.values.array_types import NDArray
from rollbook.values.arrow import to_numpy

_FEW_ROWS = 1 << 18
"""Up to this many rows, all keys come from one table; each longer series is reduced separately, see `envelope`."""


def batch(pieces: Pieces, run: Context, keys: Sequence[str], asked: AxisRange, raw: int = 0) -> dict[str, Series]:
    """{requested key: `Book.series` of it}, without keys that the book does not have.

    Args:
      raw: if at most this many rows are in range, return all of them, even if they are more than `points`.
    """
    labels = all_keys(pieces, run.clocks)
    known = {name: name if name in labels else _resolved(name, labels, run) for name in keys}
    native = {name: key for name, key in known.items() if key is not None}
    rows = {key: sum(piece.rows for piece in pieces if key in piece.meta["keys"]) for key in native.values()}
    few = [key for key in dict.fromkeys(native.values()) if rows[key] <= _FEW_ROWS]
    together = asked.x is None or asked.x == "time" or asked.x in run.clocks
    by_key: dict[str, Series | None] = {}
    if together and len(few) > 1:
        by_key = _of_the_same_rows(pieces, run, few, rows, asked, raw)
        few = [key for key in few if key not in by_key]
    if together and len(few) > 1:
        by_key |= _together(pieces, run, few, labels, rows, asked, raw)
    for key in native.values():
        if by_key.get(key) is None:
            by_key[key] = _alone(pieces, run, key, asked, raw)
    return {name: series for name, key in native.items() if (series := by_key[key]) is not None}


def _alone(pieces: Pieces, run: Context, key: str, asked: AxisRange, few: int) -> Series:
    """One key read separately. The rows in range are counted with points so fine that each of few rows has its own."""
    points = asked.points
    is_fine = points is None or (asked.is_whole and _rows_for_certain(pieces, run, key) > few)
    fine = points if points is None or is_fine else max(points, few)
    series = envelope(pieces, run, key, replace(asked, points=fine))
    if fine == points or points is None:
        return series
    bad = np.zeros(len(series), dtype=np.int64) if series.bad is None else series.bad
    if int(series.count.sum()) + int(bad.sum()) <= few:
        is_raw = bool(np.all(series.count + bad <= 1))
        return series if is_raw else envelope(pieces, run, key, replace(asked, points=None))
    empty = series.count == 0
    low, high = np.where(empty, np.inf, series.min), np.where(empty, -np.inf, series.max)
    total = np.where(empty, 0.0, series.mean * series.count)
    buckets = Buckets(series.x, series.x, low, high, total, series.count, bad)
    return reduce_points(buckets, points, series.axis, asked.start, asked.stop)


def _rows_for_certain(pieces: Pieces, run: Context, key: str) -> int:
    """A lower bound for the number of rows of a key, from footers; reads no rows."""
    rows = 0
    for piece in pieces:
        if (
            piece.part is not None
            and not piece.is_long
            and key in piece.meta["keys"]
            and are_chosen(piece, run) is True
        ):
            missing = piece.part.known_null_count(piece.column_of(key))
            rows += 0 if missing is None else piece.part.rows - missing
    return rows


def _resolved(asked: str, labels: dict[str, str], run: Context) -> str | None:
    try:
        return resolve_keys([asked], labels, run.path)[0]
    except AmbiguousKey:
        raise
    except UnknownKey:
        return None


def _of_the_same_rows(
    pieces: Pieces,
    run: Context,
    keys: Sequence[str],
    rows: dict[str, int],
    asked: AxisRange,
    few: int,
) -> dict[str, Series | None]:
    """Keys that share sealed rows, in order of a clock: the axis is read once."""
    groups: dict[tuple[int, ...], list[str]] = {}
    for key in keys:
        groups.setdefault(tuple(n for n, piece in enumerate(pieces) if key in piece.meta["keys"]), []).append(key)
    by_key: dict[str, Series | None] = {}
    for indices, group in groups.items():
        mine = [pieces[n] for n in indices]
        axis = asked.x if asked.x is not None else usual_axis(mine, run, group[0])
        in_order = as_they_lie(mine, run, group, axis, asked) if len(group) > 1 else None
        if in_order is None:
            continue
        xs, columns = in_order
        points = asked.points
        raw = points is None or rows[group[0]] <= max(points, 1) or len(xs) <= few
        starts = None if raw or points is None else stretches(xs, points, asked.start, asked.stop)
        if starts is None:
            by_key |= {key: raw_series(xs, values, axis) for key, values in columns.items()}
        else:
            by_key |= reduced_rows(xs, columns, starts, axis)
    return by_key


def _together(
    pieces: Pieces,
    run: Context,
    keys: Sequence[str],
    labels: dict[str, str],
    rows: dict[str, int],
    asked: AxisRange,
    few: int,
) -> dict[str, Series | None]:
    """Each key from one table in time order; None if a row must be placed on the axis first."""
    table = select_metrics(pieces, run, keys)
    times = to_numpy(table["time"])[0]
    clocks = {name: to_numpy(table[name]) for name in run.clocks if name in table.column_names}
    by_key: dict[str, Series | None] = {}
    points, start, stop = asked.points, asked.start, asked.stop
    low, high = -np.inf if start is None else start, np.inf if stop is None else stop
    for key in keys:
        values, valid = to_numpy(table[labels[key]])
        mine = np.arange(len(values)) if valid is None else np.flatnonzero(valid)
        axis = asked.x if asked.x is not None else _usual_axis(clocks, mine, run)
        scale = 1e9 if axis == "time" else 1.0
        if axis == "time":
            xs = times[mine]
        elif axis in clocks:
            readings, known = clocks[axis]
            if known is not None and not known[mine].all():
                by_key[key] = None
                continue
            xs = readings[mine]
        else:
            by_key[key] = None
            continue
        numbers = values[mine].astype(np.float64, copy=False)
        if len(xs) > 1 and bool(np.any(xs[1:] < xs[:-1])):
            order = np.argsort(xs, kind="stable")
            xs, numbers = xs[order], numbers[order]
        if not asked.is_whole:
            inside = (xs >= low * scale) & (xs < high * scale)
            xs, numbers = xs[inside], numbers[inside]
        if points is None or rows[key] <= max(points, 1) or len(xs) <= few:
            by_key[key] = raw_series(xs / scale if axis == "time" else xs, numbers, axis)
        else:
            first, end = None if start is None else start * scale, None if stop is None else stop * scale
            by_key[key] = reduce_points(Buckets.of_rows(xs, numbers), points, axis, first, end, scale=scale)
    return by_key


def _usual_axis(clocks: dict[str, tuple[NDArray, NDArray | None]], mine: NDArray, run: Context) -> str:
    """The default axis of these rows."""
    known = [name for name in run.clocks if name in clocks and _has_any(clocks[name][1], mine)]
    return default_axis(run.x, known) if known else "time"


def _has_any(valid: NDArray | None, mine: NDArray) -> bool:
    return valid is None or bool(valid[mine].any())
