"""Filters: loggers that wrap another one, called `to`, and change what reaches it.

    logger = TimeFilter(NoneFilter(SmoothingFilter(TerminalLogger("train"), "return", 0.99)), time_delta=1.0)

They thin, smooth and aggregate the output to a terminal or another tracker. With the run in front of them (as in
`make_logger(run, ...)`), the book keeps every record unchanged.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from rollbook.adapters.acme._throttle import Throttle
from rollbook.adapters.acme.base import Logger, LoggingData, Wrapper
from rollbook.adapters.acme.statistics import RunningAverages, add_all
from rollbook.errors import BadInput
from rollbook.sinks.filters.keys import pattern
from rollbook.values.describe import Pile


class NoneFilter(Wrapper):
    """Drops values that are None. NaN is kept, and nested values are not searched.

    Args:
      to: the wrapped logger.
    """

    def write(self, values: LoggingData) -> None:
        """Pass on `values` without those that are None.

        Args:
          values: the record.
        """
        self._to.write({key: value for key, value in values.items() if value is not None})


class TimeFilter(Wrapper):
    """Passes one record every `time_delta` seconds.

    The first record passes. A record that is not due is held in place of the previous one; the last is passed on at
    `close`, or when the program ends.

    Args:
      to: the wrapped logger.
      time_delta: seconds between records; a negative value raises.
      compat: drop records that are not due, as Acme does, including the last one.
      clock: monotonic seconds.
    """

    def __init__(
        self, to: Logger, time_delta: float, *, compat: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(to)
        self._throttle = Throttle(to.write, time_delta, keeps_last=not compat, clock=clock)

    def write(self, values: LoggingData) -> None:
        """Pass `values` on if they are due, else hold them.

        Args:
          values: the record.
        """
        self._throttle.offer(dict(values))

    def flush(self) -> None:
        """Pass on the held record."""
        self._throttle.flush()
        super().flush()

    def close(self) -> None:
        """Pass on the held record, then close the wrapped logger."""
        try:
            self._throttle.flush()
        finally:
            self._to.close()


class KeyFilter(Wrapper):
    """Keeps some keys, or drops some.

    Args:
      to: the wrapped logger.
      keep: keys that pass, in this order; missing ones are skipped. A text is one key.
      drop: keys that do not pass. Give exactly one of `keep` and `drop`.
    Raises:
      BadInput: not exactly one of `keep` and `drop`, or an empty one.
    """

    def __init__(self, to: Logger, *, keep: Sequence[str] | None = None, drop: Sequence[str] | None = None) -> None:
        if bool(keep) == bool(drop):
            raise BadInput(
                f"KeyFilter takes exactly one of keep= and drop=, not empty; it was given keep={keep!r}, drop={drop!r}"
            )
        super().__init__(to)
        self._keep = (keep,) if isinstance(keep, str) else tuple(keep or ())
        self._drop = {drop} if isinstance(drop, str) else set(drop or ())

    def write(self, data: LoggingData) -> None:
        """Pass on the remaining part of `data`.

        Args:
          data: the record.
        """
        if self._keep:
            data = {key: data[key] for key in self._keep if key in data}
        else:
            data = {key: value for key, value in data.items() if key not in self._drop}
        self._to.write(data)


class GatedFilter(Wrapper):
    """Passes some records on, by their number.

    Args:
      to: the wrapped logger.
      gating_fn: function of the number of the call (from 0, all calls counted); a record passes if it is true.
    """

    def __init__(self, to: Logger, gating_fn: Callable[[int], bool]) -> None:
        super().__init__(to)
        self._gating_fn = gating_fn
        self._calls = 0

    def write(self, values: LoggingData) -> None:
        """Pass `values` on if the gate is open.

        Args:
          values: the record.
        """
        call, self._calls = self._calls, self._calls + 1
        if self._gating_fn(call):
            self._to.write(values)

    @classmethod
    def logarithmic(cls, to: Logger, n: int = 10) -> GatedFilter:
        """Evenly spaced within each power of n: 0, 1 … 9, 10, 20 … 90, 100, 200 … for n = 10.

        Args:
          to: the wrapped logger.
          n: the base, at least 2.
        Raises:
          BadInput: n is 1 or less.
        """
        if not n > 1:
            raise BadInput(f"GatedFilter.logarithmic(n={n!r}): powers of n have to grow, so n is at least 2")

        def due(call: int) -> bool:
            magnitude = 1
            while magnitude * n <= call:
                magnitude *= n
            return call % magnitude == 0

        return cls(to, due)

    @classmethod
    def periodic(cls, to: Logger, interval: int = 10) -> GatedFilter:
        """Calls 0, interval, 2 interval …

        Args:
          to: the wrapped logger.
          interval: a number of calls, at least 1.
        Raises:
          BadInput: the interval is below 1.
        """
        if not interval >= 1:
            raise BadInput(f"GatedFilter.periodic(interval={interval!r}): give a number of calls, at least 1")
        return cls(to, lambda call: call % interval == 0)


class SmoothingFilter(Wrapper):
    """Adds `<key>_smoothed_<coeff>`, a running average, to records, after their own values.

    average = c * average + (1 - c) * value. c begins at 0 and moves towards the coefficient by a tenth of the distance
    with each value (a warm-up of length 10), so the first average is the first value. None is left unchanged. NaN and
    infinities are not included, and the series continues after them.

    Args:
      to: the wrapped logger.
      smoothing_regex: keys that contain a match are smoothed.
      smoothing_coeff: in [0, 1); 0 does not smooth.
    """

    def __init__(self, to: Logger, smoothing_regex: str, smoothing_coeff: float) -> None:
        super().__init__(to)
        self._pattern = pattern(smoothing_regex, "SmoothingFilter smoothing_regex=")
        self._averages = RunningAverages(smoothing_coeff)
        self._suffix = f"_smoothed_{smoothing_coeff}"

    def write(self, values: LoggingData) -> None:
        """Pass on `values` with the averages of matching keys.

        Args:
          values: the record.
        """
        smoothed = dict(values)
        for key, value in values.items():
            if self._pattern.search(key):
                average = self._averages.next(key, value)
                if average is not None:
                    smoothed[f"{key}{self._suffix}"] = average
        self._to.write(smoothed)


class AggregateFilter(Wrapper):
    """Collects records until `dump()`, and then writes one with statistics of the matching keys.

    A matching key gives `<key>_mean`, `_std` (of the population), `_median`, `_max` and `_min` over all elements of all
    its values since the last dump; every other key its last value. Records may have different keys: values are
    collected by name. None is skipped. `close` dumps the rest.

    Args:
      to: the wrapped logger.
      aggregate_regex: keys that contain a match are aggregated.
    """

    def __init__(self, to: Logger, aggregate_regex: str) -> None:
        super().__init__(to)
        self._pattern = pattern(aggregate_regex, "AggregateFilter aggregate_regex=")
        self._order: dict[str, None] = {}
        self._piles: dict[str, Pile] = {}
        self._last: dict[str, object] = {}

    def write(self, values: LoggingData) -> None:
        """Collect `values`; nothing is passed on yet.

        Args:
          values: the record.
        """
        for key, value in values.items():
            if value is None:
                continue
            self._order[key] = None
            if not (self._pattern.search(key) and add_all(self._piles.setdefault(key, Pile()), value)):
                self._last[key] = value

    def dump(self) -> None:
        """Write the statistics and start again. Without records, nothing is written.

        If the wrapped logger raises, the collected records stay for the next dump.
        """
        if not self._order:
            return
        results: dict[str, object] = {}
        for key in self._order:
            if key in self._last:
                results[key] = self._last[key]
            pile = self._piles.get(key)
            if pile is not None and pile.n:
                mean, std, median, low, high = pile.describe()
                named = {"mean": mean, "std": std, "median": median, "max": high, "min": low}
                results.update((f"{key}_{name}", number) for name, number in named.items())
        self._to.write(results)
        self._order, self._piles, self._last = {}, {}, {}
        super().flush()  # an explicit dump must not wait in a TimeFilter

    def close(self) -> None:
        """Dump the rest, then close the wrapped logger."""
        try:
            self.dump()
        finally:
            self._to.close()
