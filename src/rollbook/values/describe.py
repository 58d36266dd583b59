"""Summaries of numbers: mean, spread, median and extremes, running averages, and the bins of a distribution.

    describe([3.0, 1.0, 2.0]).median                # exact
    pile = Pile(); pile.add(2.0); pile.describe()   # exact up to EXACT_UP_TO values, in bounded memory beyond
    histogram_of(array)                             # 64 bins

Every median and every histogram of logged numbers is computed here, so the same numbers always give the same result.
"""

from __future__ import annotations

from array import array
from collections import namedtuple

from rollbook.system.guard import tolerating
from rollbook.values import MAX_RAW_ARRAY, Histogram, is_missing
from rollbook.values.arrays import host_array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import MutableSequence, Sequence
    from typing import Any, TypeAlias

    from rollbook.values.array_types import NDArray

    PileSize: TypeAlias = "tuple[MutableSequence[float], int, Blocks | None]"
    """The result of `Pile.size`, for `back_to`."""

EXACT_UP_TO = 2**17
"""Up to this many values of one pile the median is exact too."""

SAMPLE = 2**15
"""Beyond that, the median is taken from a sample of half to all of this many values: its rank is
correct to within 0.8 % of n, 19 times out of 20."""

BINS = 64
"""Default number of bins of a distribution."""

_BLOCK = 4096  # values folded at a time: the loop sometimes waits one millisecond, never thirty


class Statistics(namedtuple("Statistics", "mean std median low high")):
    """Statistics of numbers; `std` is that of the population, `low` and `high` are minimum and maximum."""

    __slots__ = ()


def describe(values: Sequence[float]) -> Statistics:
    """The statistics of at least one number. A NaN among them makes all five NaN."""
    from math import sqrt

    n, mean, squares, low, high = _moments(values)
    median = _median(values) if low == low else low
    return Statistics(mean, sqrt(squares / n), median, low, high)


def warm_average(average: Any, weight: float, value: Any, coeff: float) -> tuple[Any, float]:
    """A running average after one more value, and the weight of the past.

    The weight begins at 0, so the first average is the first value. With each value it approaches `coeff` by a tenth of
    the distance. Values are numbers, or arrays of one shape.
    """
    return value * (1 - weight) + average * weight, weight * 0.9 + coeff * 0.1


def _moments(values: Sequence[float]) -> tuple[int, float, float, float, float]:
    """n, mean, sum of squared deviations, minimum, maximum."""
    from math import fsum, isfinite, isnan

    n = len(values)
    if not isfinite(sum(values)) and any(map(isnan, values)):
        nan = float("nan")
        return n, nan, nan, nan, nan
    low, high = min(values), max(values)
    with tolerating(OverflowError, ValueError) as missed:  # beyond the largest float, or both infinities
        mean = fsum(values) / n
    if missed:
        mean = sum(value / n for value in values)
    if mean == mean:
        mean = min(max(mean, low), high)  # rounding must not move a mean outside its values
    with tolerating(OverflowError, ValueError) as missed:
        squares = fsum((value - mean) * (value - mean) for value in values)
    if missed:
        squares = sum((value - mean) * (value - mean) for value in values)
    return n, float(mean), squares, float(low), float(high)


def _median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return float(ordered[middle])
    low, high = ordered[middle - 1], ordered[middle]
    mean = (low + high) / 2
    # infinite if the sum overflows, NaN between the two infinities, as in numpy
    return float(mean if mean - mean == 0 or low - low != 0 or high - high != 0 else low / 2 + high / 2)


class Sample:
    """One value from each stretch of equally many, at most `most` of any number.

    The number of a value alone decides whether it is drawn. So the same values give the same sample however they
    arrive, and a period in the data cannot align with the sample. When the sample is full, neighbouring stretches are
    joined, and one of their two values stays.

    Attributes:
      values: the sample, oldest first.
      n: number of values so far.
      level: a stretch has 2 ** level values.
    """

    __slots__ = ("level", "most", "n", "values")

    def __init__(self, most: int = SAMPLE) -> None:
        self.most, self.level, self.n = most, 0, 0
        self.values = new_buffer()

    def copy(self) -> Sample:
        """A copy of the sample; adding to one does not change the other."""
        copied = Sample(self.most)
        copied.level, copied.n, copied.values = self.level, self.n, self.values[: len(self.values)]
        return copied

    def add(self, block: Sequence[float]) -> None:
        """Take in a sequence of numbers."""
        first, self.n = self.n, self.n + len(block)
        if not self.level:
            room = self.most - first
            self.values.extend(block[:room])
            if len(block) <= room:
                return
            self._join()
        index = self._drawn(len(self.values))
        while index < self.n:
            if len(self.values) < self.most:
                self.values.append(block[index - first])
            else:
                self._join()
            index = self._drawn(len(self.values))

    def _drawn(self, stretch: int) -> int:
        """The number of the value drawn from a stretch."""
        for level in range(self.level, 0, -1):
            stretch = 2 * stretch + _second(stretch, level)
        return stretch

    def _join(self) -> None:
        self.level += 1
        joined = new_buffer()
        joined.extend(self.values[2 * pair + _second(pair, self.level)] for pair in range(len(self.values) // 2))
        self.values = joined


def _second(pair: int, level: int) -> int:
    """Which of two neighbouring stretches keeps its value: 0 or 1, evenly, always the same for the same pair."""
    mixed = (pair * 0x9E3779B97F4A7C15 + level * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    mixed = ((mixed ^ (mixed >> 29)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
    return mixed >> 63


class Blocks:
    """Values in blocks, stored as moments (Welford's, merged block by block) and a sample.

    Attributes:
      n: how many values there were.
    """

    __slots__ = ("high", "low", "mean", "n", "sample", "squares")

    def __init__(self) -> None:
        self.n = 0
        self.mean = self.squares = 0.0
        self.low, self.high = float("inf"), float("-inf")
        self.sample = Sample()

    def copy(self) -> Blocks:
        """A copy of the values; adding to one does not change the other."""
        copied = Blocks()
        for name in self.__slots__:
            setattr(copied, name, getattr(self, name))
        copied.sample = self.sample.copy()
        return copied

    def add(self, block: Sequence[float]) -> None:
        """Take in a sequence of numbers."""
        if not len(block):
            return
        self._merge(*_moments(block), block)

    def add_binned(self, bins: Histogram) -> None:
        """Add a `values.Histogram`: its moments are exact, the sample for the median gets the bin centres."""
        n = int(bins.count)
        if not n:
            return
        mean = bins.total / n
        squares = max(0.0, bins.total_squares - n * mean * mean)
        middles = new_buffer()
        for low, high, count in zip(bins.edges, bins.edges[1:], bins.counts, strict=False):
            middles.extend([(low + high) / 2] * int(count))
        self._merge(n, mean, squares, bins.low, bins.high, middles)

    def _merge(self, n: int, mean: float, squares: float, low: float, high: float, block: Sequence[float]) -> None:
        both = self.n + n
        delta = mean - self.mean
        if self.n:
            squares += self.squares + delta * delta * (self.n / both) * n
            mean = self.mean + delta * (n / both) if delta - delta == 0 else self.mean + mean
            # NaN wins every comparison, as in the moments of a block
            low = low if low != low or low < self.low else self.low
            high = high if high != high or high > self.high else self.high
        self.sample.add(block)
        self.n, self.mean, self.squares, self.low, self.high = both, mean, squares, low, high

    def describe(self) -> Statistics:
        """Their statistics; the median is that of the sample."""
        from math import sqrt

        median = _median(self.sample.values) if self.mean == self.mean else self.mean
        return Statistics(self.mean, sqrt(self.squares / self.n), median, self.low, self.high)


class Pile:
    """Numbers one by one: up to `EXACT_UP_TO` all of them; beyond that the newest, and the older ones as `Blocks`.

    Attributes:
      fresh: the values that are not folded.
      folded: the older values, or None.
    """

    __slots__ = ("folded", "fresh")
    EXACT_UP_TO = EXACT_UP_TO
    SAMPLE = SAMPLE

    def __init__(self, fresh: MutableSequence[float] | None = None, folded: Blocks | None = None) -> None:
        self.fresh = new_buffer() if fresh is None else fresh
        self.folded = folded

    @property
    def n(self) -> int:
        """Number of values so far."""
        return len(self.fresh) + (self.folded.n if self.folded is not None else 0)

    def add(self, value: float) -> None:
        """Add a number."""
        self.fresh.append(value)
        if len(self.fresh) >= EXACT_UP_TO:
            self.fold()

    def fold(self) -> None:
        """Fold the oldest values, block by block, until fewer than `EXACT_UP_TO` are unfolded."""
        folded = Blocks() if self.folded is None else self.folded.copy()
        taken = 0
        while len(self.fresh) - taken >= EXACT_UP_TO:
            folded.add(self.fresh[taken : taken + _BLOCK])
            taken += _BLOCK
        self.folded, self.fresh = folded, self.fresh[taken:]

    def describe(self) -> Statistics:
        """The statistics of at least one number."""
        if self.folded is None:
            return describe(self.fresh)
        whole = self.folded.copy()
        whole.add(self.fresh)
        return whole.describe()

    def size(self) -> PileSize:
        """The current size, for `back_to`. Cheap."""
        return self.fresh, len(self.fresh), self.folded

    def back_to(self, size: PileSize) -> None:
        """Remove the values that were added since that size."""
        self.fresh, length, self.folded = size
        del self.fresh[length:]  # folding makes a new buffer, so the old one was only appended to


def histogram_of(numbers: NDArray, bins: int = BINS) -> Histogram | None:
    """An array's finite numbers in equal bins between their minimum and maximum; None if there are none."""
    import numpy as np

    flat = np.asarray(numbers, dtype=np.float64).reshape(-1)
    flat = flat[np.isfinite(flat)]
    if not flat.size:
        return None
    counts, edges = np.histogram(flat, bins=bins)
    return Histogram(
        edges.tolist(),
        counts.tolist(),
        low=float(flat.min()),
        high=float(flat.max()),
        total=float(flat.sum()),
        total_squares=float(np.square(flat).sum()),
    )


def new_buffer() -> MutableSequence[float]:
    """A sequence with atomic append, slice and slice deletion.

    An array of doubles under the GIL; on free-threaded builds a list, four times as large (arrays are not safe there
    before 3.14).
    """
    import sys

    return array("d") if getattr(sys, "_is_gil_enabled", lambda: True)() else []


def histogram_columns(value: object) -> dict[str, object]:
    """The columns of one row of the `histograms` table: raw values up to `MAX_RAW_ARRAY` elements, else 64 bins."""
    if isinstance(value, Histogram):
        return _histogram_columns(value)
    if is_missing(value):
        raise TypeError("a missing value has no distribution")
    if isinstance(value, (list, tuple, range)) and len(value) <= MAX_RAW_ARRAY:
        return {"values": [[float(item) for item in value]]}
    import numpy as np

    array = host_array(value).reshape(-1)
    if array.dtype.kind == "O":
        array = np.array([float("nan") if is_missing(item) else float(item) for item in array.tolist()])
    elif array.dtype.kind == "b":
        array = array.astype(np.float64)
    elif array.dtype.kind not in "fiu":
        raise TypeError(f"its elements are {array.dtype}")
    if array.size <= MAX_RAW_ARRAY:
        return {"values": [array.tolist()]}
    binned = histogram_of(array)
    if binned is None:
        return {"values": [array[:MAX_RAW_ARRAY].astype(np.float64).tolist()]}
    counts = [int(count) for count in binned.counts]
    return {**_histogram_columns(binned), "counts": [counts], "non_finite": [int(array.size - binned.count)]}


def _histogram_columns(binned: Histogram) -> dict[str, object]:
    return {
        "edges": [list(binned.edges)],
        "counts": [list(binned.counts)],
        "low": [binned.low],
        "high": [binned.high],
        "total": [binned.total],
        "total_squares": [binned.total_squares],
    }
