"""Aggregate: hold values back and send their statistics when the run says dump."""

from __future__ import annotations

import math
from typing import Any

from rollbook.errors import UnknownOption, did_you_mean
from rollbook.filters._base import Filter, is_number, with_values
from rollbook.filters._rows import row_from_json, row_to_json, value_from_json, value_to_json
from rollbook.filters.keys import pattern
from rollbook.protocols import Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rollbook.protocols import Sink

__all__ = ["MOST_RAW_VALUES", "STATISTICS", "Aggregate", "Pile"]

STATISTICS = ("mean", "std", "median", "max", "min")
"""What becomes of a matching key: `<key>_mean` and so on, in this order."""

MOST_RAW_VALUES = 65_536
"""Values of one key that are held until the next dump. Beyond it every second one is let go, and so on, evenly: the
median is then of those that are left; mean, standard deviation, minimum and maximum stay those of all values."""


class Aggregate(Filter):
    """Collects rows and writes one row of statistics per dump mark.

    Values are collected by name, so rows may have different keys. Keys in which `keys` is found give `<key>_mean`,
    `_std` (population), `_median`, `_max` and `_min`; the others, and values that are no numbers, give their last
    value. NaN spreads, as in numpy. A mark that names keys, or that was made in a scope, dumps those alone; a dump of
    nothing writes nothing. What is left at the end of the run is dumped then.

    Args:
      to: the sink behind.
      keys: a regular expression.
      statistics: which of the five to write.
    """

    name = "aggregate"

    def __init__(self, to: Sink, keys: str, *, statistics: Sequence[str] = STATISTICS) -> None:
        for statistic in statistics:
            if statistic not in STATISTICS:
                raise UnknownOption(
                    f"Aggregate has no statistic {statistic!r}.{did_you_mean(str(statistic), list(STATISTICS))}"
                )
        super().__init__(to, keys=keys, statistics=list(statistics))
        self._pattern = pattern(keys, "Aggregate keys=")
        self._statistics = tuple(statistics)
        self._matches: dict[str, bool] = {}
        self._piles: dict[str, Pile | _Last] = {}
        self._latest: Row | None = None

    def _row(self, row: Row) -> Iterable[Row]:
        self._latest = row
        for key, value in row.values.items():
            matches = self._matches.get(key)
            if matches is None:
                matches = self._matches[key] = self._pattern.search(key) is not None
            pile = self._piles.get(key)
            if matches and is_number(value):
                if not isinstance(pile, Pile):
                    pile = self._piles[key] = Pile()
                pile.add(_as_float(value))
            else:
                self._piles[key] = _Last(value)
        return ()

    def _mark(self, row: Row) -> Iterable[Row]:
        if row.mark == "final":
            return (*self._rest(), row)
        if row.mark != "dump":
            return (row,)
        return (*self._dump(self._asked(row), row), row)

    def _asked(self, mark: Row) -> list[str]:
        """The collected keys that a mark is about, in the order in which they were first seen."""
        if mark.keys:
            named = set(mark.keys)
            return [key for key in self._piles if key in named]
        inside = f"{mark.scope}/" if mark.scope else ""
        return [key for key in self._piles if key.startswith(inside)]

    def _rest(self) -> Iterable[Row]:
        return self._dump(list(self._piles), self._latest)

    def _dump(self, keys: Sequence[str], at: Row | None) -> Iterable[Row]:
        if not keys or at is None:
            return ()
        values: dict[str, Any] = {}
        for key in keys:
            pile = self._piles[key]
            if isinstance(pile, _Last):
                values[key] = pile.value
            else:
                found = pile.statistics()
                values.update((f"{key}_{name}", found[name]) for name in self._statistics)
        self._piles = {key: pile for key, pile in self._piles.items() if key not in set(keys)}
        clocks = at.clocks or (self._latest.clocks if self._latest is not None else {})
        return (Row(at.time, clocks, values, at.scope, at.writer, at.lane, at.seq, at.attempt),)

    def _remember(self) -> Any:
        sizes = {key: pile.size() for key, pile in self._piles.items() if isinstance(pile, Pile)}
        return dict(self._piles), sizes, self._latest

    def _recall(self, token: Any) -> None:
        self._piles, sizes, self._latest = token
        for key, size in sizes.items():
            pile = self._piles[key]
            if isinstance(pile, Pile):
                pile.back_to(size)

    def _save(self) -> dict[str, Any]:
        return {
            "piles": [[key, pile.save()] for key, pile in self._piles.items()],
            "latest": None if self._latest is None else row_to_json(with_values(self._latest, {})),
        }

    def _load(self, saved: Mapping[str, Any]) -> None:
        self._piles = {key: _pile_from(data) for key, data in saved.get("piles", ())}
        latest = saved.get("latest")
        self._latest = None if latest is None else row_from_json(latest)


class _Last:
    """The last value of a key that is not aggregated."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def save(self) -> Any:
        return {"last": value_to_json(self.value)}


class Pile:
    """The numbers of one key since the last dump.

    Attributes:
      count: how many there are.
    """

    __slots__ = ("count", "high", "kept", "low", "mean", "squares", "stride")

    def __init__(self) -> None:
        self.kept: list[float] = []
        self.stride = 1  # every stride-th value is kept
        self.count = 0
        self.mean = self.squares = 0.0  # squares: the sum of squared distances from the mean
        self.low, self.high = math.inf, -math.inf

    def add(self, value: float) -> None:
        """Take a number in."""
        if self.count % self.stride == 0:
            if len(self.kept) >= MOST_RAW_VALUES:
                self.kept = self.kept[::2]
                self.stride *= 2
            if self.count % self.stride == 0:
                self.kept.append(value)
        self.count += 1
        distance = value - self.mean
        self.mean += distance / self.count
        self.squares += distance * (value - self.mean)
        self.low, self.high = min(self.low, value), max(self.high, value)

    def statistics(self) -> dict[str, float]:
        """mean, std (of the population), median, max and min of at least one number."""
        values = self.kept
        if self.stride > 1:
            mean, variance = self.mean, self.squares / self.count
            low, high = self.low, self.high
        elif all(map(math.isfinite, values)):
            # All values are here, so use them: the running sums above round more.
            mean = _mean(values)
            variance = _sum([(value - mean) * (value - mean) for value in values]) / self.count
            low, high = min(values), max(values)
        else:
            mean, variance, low, high = self._with_infinities(values)
        return {
            "mean": mean,
            "std": math.sqrt(variance) if variance >= 0 else math.nan,
            "median": _median(values),
            "max": high,
            "min": low,
        }

    @staticmethod
    def _with_infinities(values: Sequence[float]) -> tuple[float, float, float, float]:
        if any(map(math.isnan, values)):
            return math.nan, math.nan, math.nan, math.nan
        return sum(values), math.nan, min(values), max(values)

    def size(self) -> tuple[Any, ...]:
        """How much is on it, for `back_to`. Cheap."""
        return len(self.kept), self.kept, self.stride, self.count, self.mean, self.squares, self.low, self.high

    def back_to(self, size: tuple[Any, ...]) -> None:
        """Take off what was added since it had that size."""
        length, self.kept, self.stride, self.count, self.mean, self.squares, self.low, self.high = size
        del self.kept[length:]  # thinning makes a new list, so the old one was only appended to

    def save(self) -> Any:
        """All of it as plain JSON data."""
        return {
            "kept": [value_to_json(value) for value in self.kept],
            "stride": self.stride,
            "count": self.count,
            "sums": [value_to_json(value) for value in (self.mean, self.squares, self.low, self.high)],
        }


def _pile_from(data: Mapping[str, Any]) -> Pile | _Last:
    if "last" in data:
        return _Last(value_from_json(data["last"]))
    pile = Pile()
    pile.kept = [value_from_json(value) for value in data["kept"]]
    pile.stride, pile.count = data["stride"], data["count"]
    pile.mean, pile.squares, pile.low, pile.high = (value_from_json(value) for value in data["sums"])
    return pile


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer beyond the floats
        return math.inf if value > 0 else -math.inf


def _sum(values: Sequence[float]) -> float:
    try:
        return math.fsum(values)
    except OverflowError:  # finite numbers with a sum beyond the floats
        return sum(values)


def _mean(values: Sequence[float]) -> float:
    mean = _sum(values) / len(values)
    return mean if math.isfinite(mean) else _sum([value / len(values) for value in values])


def _median(values: Sequence[float]) -> float:
    if any(map(math.isnan, values)):
        return math.nan
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    low, high = ordered[middle - 1], ordered[middle]
    return low if low == high else low / 2 + high / 2
