"""A key over an axis, reduced to as many points as a plot has pixels, with memory independent of the number of rows.

Large parts are read from their pyramid, at the coarsest level with several buckets per point. Everything else is read
row group by row group and reduced at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from rollbook.book.metrics import all_keys
from rollbook.book.read_context import AxisRange, Context, are_chosen
from rollbook.book.select import resolve_keys, select_metrics
from rollbook.book.series import Buckets, Series, first_whole, raw_series, reduce_points, starts_between, stretch_edges
from rollbook.errors import Damaged
from rollbook.schema import source
from rollbook.schema.default_axis import default_axis
from rollbook.schema.run_files import pyramid_path
from rollbook.storage import Lines, Piece, Pieces, Pyramid, bucket_rows
from rollbook.values.array_types import NDArray
from rollbook.values.arrow import to_numpy

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pyarrow as pa


_BUCKETS_A_POINT = 4
_RAW_ROWS = 3 << 18
"""Up to this many rows in range are read directly if the pyramid has no bucket as fine as a quarter of a point. With
more rows a bucket is at most two thirds of a point."""

_CHEAP_ROWS = 1 << 19
"""Up to this many rows are always read directly."""

_EXACT_ROWS = 1 << 18
"""Up to this many rows of a piece are assigned to their points one by one."""

_TIME = "time"


def envelope(pieces: Pieces, run: Context, key: str, asked: AxisRange) -> Series:
    """See `Book.series`."""
    points, start, stop = asked.points, asked.start, asked.stop
    labels = all_keys(pieces, run.clocks)
    (key,) = resolve_keys([key], labels, run.path)
    mine = [piece for piece in pieces if key in piece.meta["keys"]]
    axis = asked.x if asked.x is not None else usual_axis(mine, run, key)
    if points is None or sum(piece.rows for piece in mine) <= max(points, 1):
        rows = as_they_lie(mine, run, [key], axis, asked)
        if rows is not None:
            return raw_series(rows[0], rows[1][key], axis)
        return raw_series(*_raw(pieces, run, key, labels[key], axis, asked), axis)
    if axis not in (*run.clocks, _TIME) or not all(_knows(piece, axis, run, key) for piece in mine):
        xs, values = _raw(pieces, run, key, labels[key], axis, asked)
        if len(xs) <= points:
            return raw_series(xs, values, axis)
        return reduce_points(Buckets.of_rows(xs, values), points, axis, start, stop)
    scale = 1e9 if axis == _TIME else 1.0
    low = -np.inf if start is None else start * scale
    high = np.inf if stop is None else stop * scale
    edges = stretch_edges(low, high, points, integer=True) if np.isfinite(high - low) else None
    read: list[Buckets | tuple[NDArray, NDArray]] = []
    held, in_sight = 0, sum(_rows_in_sight(piece, axis, run, low, high) for piece in mine)
    for piece in mine:
        for bucket in _buckets(piece, run, key, labels[key], axis, points, low, high, in_sight, edges):
            if not isinstance(bucket, Buckets):
                held += len(bucket[0])
                if held > _RAW_ROWS:  # more than should be in memory at once
                    bucket = _coarse(Buckets.of_rows(*bucket), points)
            read.append(bucket)
    if not read:
        return raw_series(np.zeros(0), np.zeros(0), axis)
    return reduce_points(
        Buckets.joined(_reduced(read, points, low, high)),
        points,
        axis,
        None if start is None else low,
        None if stop is None else high,
        scale=scale,
    )


def usual_axis(pieces: Pieces, run: Context, key: str) -> str:
    """The default axis of the rows of a key in these pieces."""
    known = {clock for piece in pieces for clock in _known(piece, run, key)}
    return default_axis(run.x, [clock for clock in run.clocks if clock in known]) if known else _TIME


def _known(piece: Piece, run: Context, key: str) -> list[str]:
    """The clocks that rows with a key have values of; live segments and long pieces must be read to know."""
    if piece.part is not None and not piece.is_long:
        return list(piece.meta["clocks"])
    if piece.is_long:
        few = _few_lines(piece, run, key)
        if few is not None:
            known = {name: few[name][1] for name in run.clocks if name in few}
            return [name for name, there in known.items() if there is None or there.any()]
        return [name for name in select_metrics([piece], run, [key]).column_names if name in run.clocks]
    return [name for name in piece.columns if name in piece.meta["clocks"]]


def _knows(piece: Piece, axis: str, run: Context, key: str) -> bool:
    """Whether every row of a piece that has a key knows the axis."""
    if axis == _TIME:
        return True
    if axis not in piece.meta["clocks"]:
        return False
    if piece.is_long:
        few = _few_lines(piece, run, key)
        if few is not None:
            there = few[axis][1] if axis in few else np.zeros(1, dtype=bool)
            return there is None or bool(there.all())
        table = select_metrics([piece], run, [key])
        return axis in table.column_names and table[axis].null_count == 0
    if piece.part is not None:
        ranges = _ranges(piece, axis, run)
        return int(ranges[2].sum()) == piece.rows if ranges is not None else piece.part.null_count(axis) == 0
    return axis in piece.columns and int(piece.read([axis])[axis].null_count) == 0


def _few_lines(piece: Piece, run: Context, key: str) -> Lines | None:
    """The lines of a key in a small long part whose rows all count; None if the rows must be assembled first."""
    lines = piece.few_lines() if are_chosen(piece, run) is True else None
    if lines is None:
        return None
    own = np.flatnonzero(lines["key"][0] == key)
    return {name: (cells[own], None if valid is None else valid[own]) for name, (cells, valid) in lines.items()}


def as_they_lie(
    pieces: Pieces, run: Context, keys: Sequence[str], axis: str, asked: AxisRange
) -> tuple[NDArray, dict[str, NDArray]] | None:
    """(x, {key: values}) of every row if sealed parts hold them in order of a clock that all of them know, else None.

    Each column is read once, without placing or joining: a third of the time of `_raw`.

    Args:
      pieces: pieces that each have all of the keys.
      keys: one key, or several that are in the same rows.
    """
    if not pieces or axis not in run.clocks:
        return None
    for piece in pieces:
        if piece.is_waiting or not piece.is_whole or are_chosen(piece, run) is not True:
            return None
        if (piece.is_long and piece.few_lines() is None) or not _knows(piece, axis, run, keys[0]):
            return None
    read = [_lines_as_they_lie if piece.is_long else _rows_as_they_lie for piece in pieces]
    stretches = [work(piece, run, keys, axis) for work, piece in zip(read, pieces, strict=True)]
    in_order = sorted((stretch for stretch in stretches if stretch is not None and len(stretch[0])), key=_first_x)
    if None in stretches or not in_order:
        return None
    xs = [stretch[0] for stretch in in_order]
    parts = {key: [stretch[1][n] for stretch in in_order] for n, key in enumerate(keys)}
    x = xs[0] if len(xs) == 1 else np.concatenate(xs)
    if not bool(np.all(x[1:] > x[:-1])):
        return None  # rows of the same x are ordered by time
    first = 0 if asked.start is None else int(np.searchsorted(x, asked.start))
    last = len(x) if asked.stop is None else max(first, int(np.searchsorted(x, asked.stop)))
    whole = {key: own[0] if len(own) == 1 else np.concatenate(own) for key, own in parts.items()}
    return x[first:last], {key: values[first:last] for key, values in whole.items()}


_Stretch = tuple[NDArray, list[NDArray]]
"""The readings of the axis [rows], and the values of each key [rows]."""


def _first_x(stretch: _Stretch) -> float:
    return float(stretch[0][0])


def _rows_as_they_lie(piece: Piece, run: Context, keys: Sequence[str], axis: str) -> _Stretch | None:
    columns = [piece.column_of(key) for key in keys]
    table = piece.read([axis, *columns])
    readings = to_numpy(table[axis])[0]
    shared: NDArray | None = None
    of_keys = []
    for column in columns:
        values, valid = to_numpy(table[column])
        if len(keys) > 1 and valid is not None:
            return None
        shared = valid
        of_keys.append((values if valid is None else values[valid]).astype(np.float64, copy=False))
    return (readings if shared is None else readings[shared]), of_keys


def _lines_as_they_lie(piece: Piece, run: Context, keys: Sequence[str], axis: str) -> _Stretch | None:
    readings: NDArray | None = None
    of_keys = []
    for key in keys:
        lines = _few_lines(piece, run, key)
        if lines is None:
            return None
        own, known = lines[axis]
        if known is not None and not known.all():
            return None
        if readings is not None and not np.array_equal(own, readings):
            return None
        readings = own
        are_integers = set(lines["type"][0].tolist()) <= {"q", "b"}
        of_keys.append(lines["integer" if are_integers else "value"][0].astype(np.float64, copy=False))
    return None if readings is None else (readings, of_keys)


def _raw(pieces: Pieces, run: Context, key: str, label: str, axis: str, asked: AxisRange) -> tuple[NDArray, NDArray]:
    """(x, value) of every row, in order of the axis."""
    if axis == _TIME:
        table = select_metrics(pieces, run, [key], since=asked.start, until=asked.stop)
        xs = to_numpy(table["time"])[0] / 1e9
    else:
        table = select_metrics(pieces, run, [key], x=axis, start=asked.start, stop=asked.stop)
        cells = to_numpy(table[_label(axis, table.column_names)])[0]
        xs = cells.astype(np.int64) if cells.dtype == bool else cells
    values, valid = to_numpy(table[label])
    if valid is not None:
        values, xs = values[valid], xs[valid]
    return xs, values.astype(np.float64, copy=False)


def _label(axis: str, names: list[str]) -> str:
    return axis if axis in names else f"value/{axis}"


def _buckets(
    piece: Piece,
    run: Context,
    key: str,
    label: str,
    axis: str,
    points: int,
    low: float,
    high: float,
    in_sight: float,
    edges: NDArray | None,
) -> Iterator[Buckets | tuple[NDArray, NDArray]]:
    """The rows of one piece: as buckets if there are many, else (x, values).

    With `edges`, the borders between points, ordered rows are reduced as they are read: the memory of one row group is
    reused for the next.
    """
    whole = are_chosen(piece, run)
    if whole is False:
        return
    if whole is True and piece.is_whole and not piece.is_long:
        pyramid = _pyramid(piece, run)
        column = piece.column_of(key)
        if pyramid is not None and axis in pyramid.axes and column in pyramid.keys:
            buckets = _from_pyramid(pyramid, column, axis, points, low, high, in_sight)
            if buckets is not None:
                yield from buckets
                return
    for x, values in _rows(piece, run, key, label, axis, low, high, whole is True):
        if _in_order(x):
            first, last = np.searchsorted(x, first_whole(np.array([low, high])))
            x, values = x[first:last], values[first:last]
            if edges is not None and len(x) > points:
                stretches = _in_stretches(x, values, edges)
                del x, values  # free their memory for the next row group
                yield stretches
                continue
        else:
            inside = (x >= low) & (x < high)
            x, values = x[inside], values[inside]
        if len(x):
            yield x, values


def _in_order(x: NDArray) -> bool:
    return bool(np.all(x[1:] >= x[:-1]))


def _reduced(read: list[Buckets | tuple[NDArray, NDArray]], points: int, low: float, high: float) -> list[Buckets]:
    """Rows as buckets. Ordered rows become one bucket per point, so that no extreme is lost."""
    if low == -np.inf:
        low = min(float(np.min(each.low_x if isinstance(each, Buckets) else each[0])) for each in read)
    if high == np.inf:
        high = max(float(np.max(each.high_x if isinstance(each, Buckets) else each[0])) for each in read)
    edges = stretch_edges(low, high, points, integer=True)
    buckets = []
    for each in read:
        if isinstance(each, Buckets):
            buckets.append(each)
            continue
        x, values = each
        if len(x) > points and _in_order(x):
            buckets.append(_in_stretches(x, values, edges))
        else:
            buckets.append(Buckets.of_rows(x, values))
    return buckets


def _in_stretches(x: NDArray, values: NDArray, between: NDArray) -> Buckets:
    """Rows in order of x, one bucket per interval."""
    return Buckets.of_stretches(x, values, starts_between(x, between))


def _pyramid(piece: Piece, run: Context) -> Pyramid | None:
    assert piece.part is not None
    meta, part = piece.meta, piece.part
    if part.rows < Pyramid.MIN_ROWS:
        return None
    try:
        if part.pyramid is None or not part.pyramid.is_same():
            path = pyramid_path(run.path, meta["table"], str(part.name))
            part.pyramid = Pyramid(path, rows=part.rows, first_seq=meta["first_seq"], last_seq=meta["last_seq"])
        pyramid: Pyramid = part.pyramid
        return pyramid
    except (OSError, Damaged, ValueError, KeyError, TypeError):
        return None


def _ranges(piece: Piece, axis: str, run: Context) -> tuple[NDArray, NDArray, NDArray] | None:
    """The pyramid's ranges of an axis: the footer of a part with thousands of row groups is slow to read. None for a
    part in a remote whose pyramid was not fetched yet; its footer is here."""
    if piece.part is not None and piece.part.pyramid is None and source.is_view(piece.part.path):
        return None
    pyramid = _pyramid(piece, run)
    if pyramid is None or axis not in pyramid.axes:
        return None
    try:
        return pyramid.ranges(axis)
    except (OSError, Damaged, ValueError, IndexError):
        return None


def _rows_in_sight(piece: Piece, axis: str, run: Context, low: float, high: float) -> float:
    """The approximate number of rows of a piece in a range of the axis."""
    if piece.part is None:
        return piece.rows
    ranges = _ranges(piece, axis, run)
    if ranges is not None:
        lows, highs = ranges[0].astype(np.float64), ranges[1].astype(np.float64)
        inside = np.minimum(highs, high) - np.maximum(lows, low)
        share = np.clip(inside / np.maximum(highs - lows, 1.0), 0.0, 1.0)
        share[(lows >= highs) & (lows >= low) & (lows < high)] = 1.0
        return float((share * ranges[2]).sum())
    rows = 0.0
    for number, size in enumerate(piece.part.row_groups):
        known = piece.part.column_range(axis, number)
        if known is None or known[0] >= known[1]:
            rows += size
        elif known[1] >= low and known[0] < high:
            rows += size * min(1.0, (min(known[1], high) - max(known[0], low)) / (known[1] - known[0]))
    return rows


def _from_pyramid(
    pyramid: Pyramid, column: str, axis: str, points: int, low: float, high: float, in_sight: float
) -> list[Buckets] | None:
    """Buckets of a level; None if reading the rows is as cheap, or if the axis is not monotonic.

    `in_sight` is the number of rows of all pieces: a series may consist of many parts with few rows each.
    """
    if in_sight <= _CHEAP_ROWS or in_sight <= min(_RAW_ROWS, _BUCKETS_A_POINT * points * bucket_rows(0)):
        return None
    try:
        first, last, _ = pyramid.ranges(axis)
        seen = np.flatnonzero((last >= low) & (first < high))
        level = 0
        while level + 1 < pyramid.levels() and in_sight / bucket_rows(level + 1) >= _BUCKETS_A_POINT * points:
            level += 1
        if in_sight / bucket_rows(level) < points:
            return None
        positions, cells = pyramid.read([axis, column], level, seen.tolist())
    except (OSError, Damaged, ValueError, IndexError):
        return None
    low_x, high_x = positions[2], positions[3]
    span = float(high_x.max() - low_x.min()) if low_x.size else 0.0
    if span > 0 and float((high_x - low_x).astype(np.float64).sum()) > 3 * span:
        return None
    buckets = Buckets(low_x, high_x, cells[0], cells[1], cells[2], cells[3].astype(np.int64), cells[4].astype(np.int64))
    inside_rows = (high_x >= low) & (low_x < high)
    return [buckets if inside_rows.all() else buckets.select(inside_rows)]


def _rows(
    piece: Piece, run: Context, key: str, label: str, axis: str, low: float, high: float, all_count: bool
) -> Iterator[tuple[NDArray, NDArray]]:
    """(x, value) of the chosen rows, row group by row group where there are several."""
    if piece.is_long or not all_count:
        table = select_metrics([piece], run, [key], x=None if axis == _TIME else axis, exact=axis != _TIME)
        yield _pair(table, axis, label)
        return
    stored = piece.column_of(key)
    groups: list[list[int] | None] = [None]
    if piece.part is not None and len(piece.part.row_groups) > 1:
        groups = []
        for number in _groups_in_sight(piece, axis, run, low, high):
            known = piece.part.column_range(axis, number)
            if known is None or (known[1] >= low and known[0] < high):
                groups.append([number])
    for group in groups:
        yield _pair(piece.read([axis, stored], group), axis, stored)


def _groups_in_sight(piece: Piece, axis: str, run: Context, low: float, high: float) -> list[int]:
    """The row groups whose pyramid blocks overlap a range of the axis; all of them without a pyramid."""
    assert piece.part is not None
    sizes = piece.part.row_groups
    ranges = _ranges(piece, axis, run)
    if ranges is None:
        return list(range(len(sizes)))
    pyramid = piece.part.pyramid
    ends = np.cumsum(pyramid.rows)
    seen = (ranges[1] >= low) & (ranges[0] < high)
    block = np.searchsorted(ends, np.cumsum(sizes) - 1, side="right")
    return [int(number) for number in np.flatnonzero(seen[block])]


def _pair(table: pa.Table, axis: str, column: str) -> tuple[NDArray, NDArray]:
    x, known = to_numpy(table[axis])
    values, valid = to_numpy(table[column])
    if known is not None or valid is not None:
        there = np.ones(len(x), dtype=bool)
        there = there if known is None else there & known
        there = there if valid is None else there & valid
        x, values = x[there], values[there]
    return x, values.astype(np.float64, copy=False)


def _coarse(buckets: Buckets, points: int) -> Buckets:
    """Merge neighbouring rows if there are far more of them than points."""
    n = len(buckets)
    step = n // (_BUCKETS_A_POINT * points) if n > _EXACT_ROWS else 0
    if step < 2:
        return buckets
    starts = np.arange(0, n, step)
    low, high = np.minimum.reduceat(buckets.low_x, starts), np.maximum.reduceat(buckets.high_x, starts)
    if float((high - low).astype(np.float64).sum()) > 3 * max(1.0, float(buckets.high_x.max() - buckets.low_x.min())):
        return buckets  # the axis is not monotonic here
    return Buckets(
        low,
        high,
        np.minimum.reduceat(buckets.min, starts),
        np.maximum.reduceat(buckets.max, starts),
        np.add.reduceat(buckets.total, starts),
        np.add.reduceat(buckets.count, starts),
        np.add.reduceat(buckets.non_finite, starts),
    )
