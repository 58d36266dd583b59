"""One key over one axis: all rows, or reduced to as many points as a plot has pixels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rollbook.system.brief import brief
from rollbook.system.texts import amount
from rollbook.values.array_types import NDArray

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

ROWS_A_POINT = 4
"""Up to this many rows a point are shown as they were logged: an envelope of so few would show waves that do not
exist."""


@brief
@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """A key's values along an axis.

    Attributes:
      x: the position of each point on the axis; for a reduced point the middle of its rows' readings.
      mean, min, max: of the finite values of a point's rows; NaN if there are none. For raw points all three are the
        value itself, including NaN and infinities.
      count: number of a point's rows with a finite value. 1 (or 0) for raw points.
      axis: the name of the axis: a clock, a key, or "time" (unix seconds).
      non_finite: number of rows whose value was NaN or infinite.
      bad: the same for each point; None if unknown.
    """

    x: NDArray
    mean: NDArray
    min: NDArray
    max: NDArray
    count: NDArray
    axis: str = "time"
    non_finite: int = 0
    bad: NDArray | None = None

    def __len__(self) -> int:
        return len(self.x)

    @classmethod
    def of_rows(cls, x: NDArray, values: NDArray, axis: str, points: int, *, most: int) -> Series:
        """All rows if there are at most `most`, else reduced to at most `points` points."""
        if len(x) <= most:
            return raw_series(x, values, axis)
        return reduce_points(Buckets.of_rows(x, values), points, axis, None, None)

    def _repr_html_(self) -> str:
        from rollbook.plots.cards import card, spark

        about = f"{len(self):,} points along {self.axis}"
        about += f", {amount(self.non_finite, 'row')} NaN or infinite" if self.non_finite else ""
        return card(
            "Series", about, spark([(self.x, self.mean)], [(self.x, self.min, self.max)], width=420, height=110)
        )

    def to_pandas(self) -> pd.DataFrame:
        """The points as a data frame: the axis, mean, min, max, count."""
        import pandas as pd

        return pd.DataFrame(
            {self.axis: self.x, "mean": self.mean, "min": self.min, "max": self.max, "count": self.count}
        )

    def to_polars(self) -> pl.DataFrame:
        """The points as a Polars data frame; see `to_pandas`."""
        import polars as pl

        return pl.DataFrame(
            {self.axis: self.x, "mean": self.mean, "min": self.min, "max": self.max, "count": self.count}
        )


def raw_series(x: NDArray, values: NDArray, axis: str) -> Series:
    """Every row as a separate point."""
    finite = np.isfinite(values)
    non_finite = len(finite) - int(np.count_nonzero(finite))
    bad = (~finite).astype(np.int64) if non_finite else np.zeros(len(finite), dtype=np.int64)
    return Series(x, values, values, values, finite.astype(np.int64), axis, non_finite, bad)


def first_whole(readings: NDArray) -> NDArray:
    """These readings rounded up to whole numbers, to search among int64 without a copy."""
    first: NDArray = np.ceil(np.clip(readings, -(2.0**62), 2.0**62)).astype(np.int64)
    return first


def stretch_edges(low: float, high: float, points: int, *, integer: bool) -> NDArray:
    """The first readings of `points` equal intervals between low and high, except the first; `integer` is the axis.

    Everything that divides an axis uses this function, so a reading on an edge is always in the same interval.
    """
    between = low + (high - low) / points * np.arange(1, points)
    return first_whole(between) if integer else between


def starts_between(x: NDArray, between: NDArray) -> NDArray:
    """The first row of each interval that has rows, for rows in order of x; `between` is from `stretch_edges`."""
    first, last = np.searchsorted(between, x[[0, -1]], side="right")
    return np.unique(np.append(np.searchsorted(x, between[first:last]), 0))


def stretches(x: NDArray, points: int, start: float | None, stop: float | None) -> NDArray:
    """The first row of each of at most `points` equal intervals of an increasing axis that have rows."""
    low = float(start) if start is not None else float(x[0])
    high = float(stop) if stop is not None else float(x[-1])
    if not high > low:
        return np.zeros(1, dtype=np.int64)
    return starts_between(x, stretch_edges(low, high, points, integer=x.dtype.kind in "iu"))


def reduced_rows(x: NDArray, columns: dict[str, NDArray], starts: NDArray, axis: str) -> dict[str, Series]:
    """Like `reduce_points`, for rows of an increasing axis that `stretches` has already divided.

    Args:
      columns: key -> its values, one per row.
    """
    rows = np.diff(starts, append=len(x))
    middle = (x[starts].astype(np.float64) + x[starts + rows - 1].astype(np.float64)) / 2
    none = np.zeros(len(starts), dtype=np.int64)
    by_key = {}
    for key, values in columns.items():
        finite = np.isfinite(values)
        if finite.all():
            mean = np.add.reduceat(values, starts) / rows
            lowest, highest = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
            by_key[key] = Series(middle, mean, lowest, highest, rows, axis, 0, none)
            continue
        count = np.add.reduceat(finite, starts, dtype=np.int64)
        empty = count == 0
        total = np.add.reduceat(np.where(finite, values, 0.0), starts)
        lowest = np.minimum.reduceat(np.where(finite, values, np.inf), starts)
        highest = np.maximum.reduceat(np.where(finite, values, -np.inf), starts)
        by_key[key] = Series(
            middle,
            np.where(empty, np.nan, total / np.maximum(count, 1)),
            np.where(empty, np.nan, lowest),
            np.where(empty, np.nan, highest),
            count,
            axis,
            int((rows - count).sum()),
            rows - count,
        )
    return by_key


class Buckets:
    """Reduced intervals of rows, from pyramids or from raw rows.

    Attributes:
      low_x, high_x: the range of the axis in each bucket.
      min, max, total, count: of the finite values; min is +inf and max -inf if there are none.
      non_finite: number of values that were not finite.
    """

    def __init__(
        self,
        low_x: NDArray,
        high_x: NDArray,
        min: NDArray,
        max: NDArray,
        total: NDArray,
        count: NDArray,
        non_finite: NDArray,
    ) -> None:
        self.low_x, self.high_x, self.min, self.max = low_x, high_x, min, max
        self.total, self.count, self.non_finite = total, count, non_finite

    def __len__(self) -> int:
        return len(self.low_x)

    @classmethod
    def of_rows(cls, x: NDArray, values: NDArray) -> Buckets:
        """One bucket per row."""
        finite = np.isfinite(values)
        return cls(
            x,
            x,
            np.where(finite, values, np.inf),
            np.where(finite, values, -np.inf),
            np.where(finite, values, 0.0),
            finite.astype(np.int64),
            (~finite).astype(np.int64),
        )

    @classmethod
    def of_stretches(cls, x: NDArray, values: NDArray, starts: NDArray) -> Buckets:
        """One bucket per interval of rows in order of x; `starts` are the first rows."""
        finite = np.isfinite(values)
        ends = np.append(starts[1:], len(x)) - 1
        rows = ends - starts + 1
        low = high = total = values
        count = rows
        if not finite.all():
            low, high = np.where(finite, values, np.inf), np.where(finite, values, -np.inf)
            total = np.where(finite, values, 0.0)
            count = np.add.reduceat(finite, starts, dtype=np.int64)
        return cls(
            x[starts],
            x[ends],
            np.minimum.reduceat(low, starts),
            np.maximum.reduceat(high, starts),
            np.add.reduceat(total, starts),
            count,
            rows - count,
        )

    @classmethod
    def joined(cls, parts: list[Buckets]) -> Buckets:
        """All of them, concatenated."""
        names = ("low_x", "high_x", "min", "max", "total", "count", "non_finite")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def select(self, chosen: NDArray) -> Buckets:
        """Some of them."""
        names = ("low_x", "high_x", "min", "max", "total", "count", "non_finite")
        return Buckets(*(getattr(self, name)[chosen] for name in names))


def reduce_points(
    buckets: Buckets, points: int, axis: str, start: float | None, stop: float | None, *, scale: float = 1.0
) -> Series:
    """Buckets as at most `points` points; each is an equal interval of the axis that has rows.

    A bucket that overlaps two intervals counts in that of its middle. In the result, the axis, start and stop are
    divided by `scale`: time is divided into intervals in nanoseconds and returned in seconds.
    """
    n = len(buckets)
    if n == 0:
        nothing = np.zeros(0)
        return Series(nothing, nothing, nothing, nothing, np.zeros(0, dtype=np.int64), axis)
    low = float(start) if start is not None else float(np.min(buckets.low_x))
    high = float(stop) if stop is not None else float(np.max(buckets.high_x))
    stretch = np.zeros(n, dtype=np.int64)
    if high > low:
        span = buckets.high_x - buckets.low_x
        integer = span.dtype.kind in "iu"
        middle = buckets.low_x + (span // 2 if integer else span / 2)
        stretch = np.searchsorted(stretch_edges(low, high, points, integer=integer), middle, side="right")
    if bool(np.any(stretch[1:] < stretch[:-1])):
        order = np.argsort(stretch, kind="stable")
        stretch, buckets = stretch[order], buckets.select(order)
    starts = np.flatnonzero(np.concatenate([[True], stretch[1:] != stretch[:-1]]))
    count = np.add.reduceat(buckets.count, starts)
    total = np.add.reduceat(buckets.total, starts)
    lowest = np.minimum.reduceat(buckets.min, starts)
    highest = np.maximum.reduceat(buckets.max, starts)
    first_x = np.minimum.reduceat(buckets.low_x, starts) / scale
    last_x = np.maximum.reduceat(buckets.high_x, starts) / scale
    empty = count == 0
    with np.errstate(invalid="ignore"):
        mean = np.where(empty, np.nan, total / np.maximum(count, 1))
    return Series(
        (first_x + last_x) / 2,
        mean,
        np.where(empty, np.nan, lowest),
        np.where(empty, np.nan, highest),
        count,
        axis,
        int(buckets.non_finite.sum()),
        np.add.reduceat(buckets.non_finite, starts),
    )
