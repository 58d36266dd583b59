"""Mean, spread, median and extremes of numbers; exact for those at hand, and in bounded memory for blocks gone by."""

from __future__ import annotations

from array import array

from rollbook.foreign import is_foreign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["SAMPLE", "Blocks", "describe", "new_buffer"]

SAMPLE = 2**14
"""Size of the sample that the median is taken from beyond that."""


def describe(values: Any) -> tuple[float, float, float, float, float]:
    """Mean, standard deviation of the population, median, minimum and maximum of at least one number.

    NaN among the values makes all five NaN.
    """
    from math import sqrt

    n, mean, squares, low, high = _moments(values)
    median = _median(values) if low == low else low
    return mean, sqrt(squares / n), median, low, high


def _moments(values: Any) -> tuple[int, float, float, float, float]:
    """n, mean, sum of squared distances from the mean, minimum, maximum."""
    from math import fsum, isfinite, isnan

    n = len(values)
    if not isfinite(sum(values)) and any(map(isnan, values)):
        nan = float("nan")
        return n, nan, nan, nan, nan
    low, high = min(values), max(values)
    try:
        mean = fsum(values) / n
    except (OverflowError, ValueError) as raised:  # beyond the largest float, or both infinities
        if is_foreign(raised):
            raise
        mean = sum(value / n for value in values)
    if mean == mean:
        mean = min(max(mean, low), high)  # rounding must not lift a mean out of its values
    try:
        squares = fsum((value - mean) * (value - mean) for value in values)
    except (OverflowError, ValueError) as raised:
        if is_foreign(raised):
            raise
        squares = sum((value - mean) * (value - mean) for value in values)
    return n, float(mean), squares, float(low), float(high)


def _median(values: Any) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return float(ordered[middle])
    low, high = ordered[middle - 1], ordered[middle]
    mean = (low + high) / 2
    # infinite when the sum overflows, NaN between the two infinities, which is what numpy says as well
    return float(mean if mean - mean == 0 or low - low != 0 or high - high != 0 else low / 2 + high / 2)


class Blocks:
    """Values in blocks, kept as moments (Welford's, merged block by block) and a uniform sample of them.

    Attributes:
      n: how many values there were.
    """

    __slots__ = ("high", "low", "mean", "n", "sample", "squares")

    def __init__(self) -> None:
        self.n = 0
        self.mean = self.squares = 0.0
        self.low, self.high = float("inf"), float("-inf")
        self.sample: Any = new_buffer()

    def copy(self) -> Blocks:
        """The same values once more; adding to one leaves the other as it is."""
        other = Blocks()
        for name in self.__slots__:
            setattr(other, name, getattr(self, name))
        other.sample = self.sample[: len(self.sample)]
        return other

    def add(self, block: Any) -> None:
        """Take in a sequence of numbers."""
        if not len(block):
            return
        self._merge(*_moments(block), block)

    def add_binned(self, bins: Any) -> None:
        """Take in a `rollbook.values.Histogram`: its moments are exact, the median's sample gets the bins' middles."""
        n = int(bins.count)
        if not n:
            return
        mean = bins.total / n
        squares = max(0.0, bins.total_squares - n * mean * mean)
        middles = new_buffer()
        for low, high, count in zip(bins.edges, bins.edges[1:], bins.counts, strict=False):
            middles.extend([(low + high) / 2] * int(count))
        self._merge(n, mean, squares, bins.low, bins.high, middles)

    def _merge(self, n: int, mean: float, squares: float, low: float, high: float, block: Any) -> None:
        both = self.n + n
        delta = mean - self.mean
        if self.n:
            squares += self.squares + delta * delta * (self.n / both) * n
            mean = self.mean + delta * (n / both) if delta - delta == 0 else self.mean + mean
            # NaN wins over every comparison, as in the moments of a block
            low = low if low != low or low < self.low else self.low
            high = high if high != high or high > self.high else self.high
        self._sample(block)
        self.n, self.mean, self.squares, self.low, self.high = both, mean, squares, low, high

    def describe(self) -> tuple[float, float, float, float, float]:
        """As the function of this name; the median is that of the sample."""
        from math import sqrt

        median = _median(self.sample) if self.mean == self.mean else self.mean
        return self.mean, sqrt(self.squares / self.n), median, self.low, self.high

    def _sample(self, block: Any) -> None:
        # Reservoir by geometric skips (Li's algorithm L would do the same with more state): exact uniformity, and the
        # draws come from a generator of our own, so that the user's random streams do not move.
        seen = self.n
        sample = self.sample
        room = SAMPLE - len(sample)
        if room > 0:
            sample.extend(block[:room])
            seen += min(room, len(block))
            block = block[room:]
        random = _random().random
        for value in block:
            seen += 1
            place = int(random() * seen)
            if place < SAMPLE:
                sample[place] = value


def new_buffer() -> Any:
    """A sequence whose append, slice and slice deletion are each atomic.

    An array of doubles under the GIL; a list, four times as large, where there is none (arrays are not safe there
    before 3.14).
    """
    import sys

    return array("d") if getattr(sys, "_is_gil_enabled", lambda: True)() else []


_generator: Any = None


def _random() -> Any:
    global _generator
    if _generator is None:
        from _random import Random

        _generator = Random(0x5EED)
    return _generator
