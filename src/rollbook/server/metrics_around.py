"""The metrics around a point: first the point's own rows, which give its time, then all keys around that time."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from rollbook.book import Book
from rollbook.ground.array_types import NDArray
from rollbook.server.catalogue import RunRow
from rollbook.server.cells import num, plain
from rollbook.server.rows import Moment, axis_values, clocks_of, default_axis, moment_of, numbers, seconds_column
from rollbook.server.schemas.cause import Unusual, Value
from rollbook.server.series import Reach, read_series, started
from rollbook.server.shared_state import Hall

__all__ = ["Around"]

ROWS_BEFORE = 50
"""A key's usual range is computed from this many rows before the point."""
_ROWS = 4 * ROWS_BEFORE
"""This many rows of the point's own key are read before it, so that rarer keys have enough rows in the same time,
too."""
_LEAST_ROWS = 8
_MOST_CELLS = 4_000_000
_MOST_UNUSUAL = 12
_OVERVIEW = 512
_ASIDE = ("rollbook/", "host/", "clock/")
"""Keys that are not about the training. Most have no clock, and placing them on the axis reads the whole run."""


class _Own(NamedTuple):
    """Rows of the point's key, in order.

    Attributes:
      places: on the axis; times: unix seconds; values: of the key; table: with all clocks.
    """

    places: NDArray
    times: NDArray
    values: NDArray
    table: pa.Table


class Around:
    """The metrics around a point.

    Args:
      x, at: the axis and the position. key: of the point; None: none.
    Attributes:
      clock, place: an axis that all tables have, and the position on it: the requested axis if that is a clock or the
        time, else the run's usual one.
      moment: the time, clocks and attempt of the nearest row.
    """

    def __init__(self, hall: Hall, row: RunRow, x: str, at: float, key: str | None) -> None:
        self._hall, self._row, self._asked = hall, row, key
        self._key = key if key is not None else _any_key(hall, row)
        self._began = started(row)
        with hall.book(row) as book:
            self._clocks = book.clocks
        own = self._own(x, at) if x in (*self._clocks, "time", "relative") else None
        self.moment = moment_of(hall, row, self._key, x, at, self._began) if own is None else self._moment(own, at)
        self.clock, self.place = self._clock_of(x, at)
        if own is None and self.clock != x:
            own = self._own(self.clock, self.place)
        self._rows_of_key = own

    def _own(self, x: str, at: float) -> _Own | None:
        """The rows of the key before the point and the one after it, read once: the curve tells how far back to
        read."""
        if self._key is None:
            return None
        reach = Reach(x, _OVERVIEW, None, None)
        curve = read_series(self._hall, self._row, [self._key], reach).found.get(self._key)
        if curve is None or not len(curve.series):
            return None
        places = curve.series.x.astype(np.float64)
        rows = curve.series.count + (curve.series.bad if curve.series.bad is not None else 0)
        low, high = _stretch(places, rows, at, _ROWS)
        shift = self._began if x == "relative" else 0.0
        axis = "time" if x == "relative" else x
        with self._hall.book(self._row) as book:
            table = _read(book, self._key, axis, low + shift, high + shift)
        if not table.num_rows:
            return None
        name = self._key if self._key in table.column_names else f"value/{self._key}"
        if name not in table.column_names:
            return None
        times = seconds_column(table)
        places = times - shift if axis == "time" else axis_values(table, x, 0.0)
        return _Own(places, times, numbers(table[name]), table)

    def _moment(self, own: _Own, at: float) -> Moment:
        nearest = int(np.argmin(np.abs(own.places - at)))
        known = [clock for clock in self._clocks if clock in own.table.column_names]
        cells = {clock: own.table[clock][nearest].as_py() for clock in known}
        moment = float(own.times[nearest])
        with self._hall.book(self._row) as book:
            attempt = _attempt_at(book, moment)
        return Moment(moment, clocks_of(cells, self._clocks), attempt)

    def _clock_of(self, x: str, at: float) -> tuple[str, float]:
        if x in self.moment.clocks or x in ("time", "relative"):
            return x, at
        for clock in (default_axis(self._hall, self._row), *self.moment.clocks):
            if clock in self.moment.clocks:
                return clock, float(self.moment.clocks[clock])
        return x, at

    def usual_window(self) -> float:
        """How far around the point to look: four times the usual distance of the key's rows; less if they are few."""
        steps = np.diff(np.unique(self._rows_of_key.places)) if self._rows_of_key is not None else np.zeros(0)
        if not len(steps):
            return 1.0
        step = float(np.median(steps))
        return min(4 * step, max(step, float(steps.sum()) / 10))

    def value(self) -> Value | None:
        """The key's value at the point and before."""
        own = self._rows_of_key
        if own is None or self._asked is None:
            return None
        here = int(np.argmin(np.abs(own.places - self.place)))
        return Value(
            key=plain(self._asked),
            value=num(float(own.values[here])),
            before=num(float(own.values[here - 1])) if here else None,
            at=num(float(own.places[here])),
        )

    def unusual(self) -> tuple[list[Unusual], int]:
        """The keys that left their usual range, the strongest first; and how many were checked."""
        own = self._rows_of_key
        if own is None or self.moment.time is None:
            return [], 0
        last = self.moment.time
        with self._hall.book(self._row) as book:
            known = book.keys()
            keys = [key for key in known if not key.startswith(_ASIDE)]
            before = own.times[own.times <= last]
            rows = min(len(before), max(_LEAST_ROWS, _MOST_CELLS // max(1, len(keys))))
            since = float(before[-rows]) if rows else last
            table = book.metrics(keys, since=since - 1e-6, until=last + 1e-5)
        ranked: list[tuple[float, Unusual]] = []
        looked_at = 0
        places = axis_values(table, self.clock, self._began)
        times = seconds_column(table)
        fixed = {*self._clocks, "time", "inferred"}
        for name in table.column_names:
            if name in fixed:
                continue
            values = numbers(table[name])
            there = np.flatnonzero(_known(table[name]))
            if not len(there):
                continue
            looked_at += 1
            here = int(there[-1])
            place = places[here] if math.isfinite(places[here]) else np.interp(times[here], own.times, own.places)
            entry = _departure(name, float(place), float(values[here]), values[there[-ROWS_BEFORE - 1 : -1]])
            if entry is not None:
                ranked.append(entry)
        ranked.sort(key=lambda pair: -pair[0])
        return [entry for _, entry in ranked[:_MOST_UNUSUAL]], looked_at


def _any_key(hall: Hall, row: RunRow) -> str | None:
    """A key whose rows give the time if none was requested."""
    return next((key for key in hall.facts.now(row).latest if not key.startswith(_ASIDE)), None)


def _stretch(places: NDArray, rows: NDArray, at: float, wanted: int) -> tuple[float, float]:
    """The range to read for about `wanted` rows before `at` and some after it."""
    behind = int(np.searchsorted(places, at, side="right"))
    so_far = np.cumsum(rows[:behind][::-1])
    back = min(int(np.searchsorted(so_far, wanted)) + 1, behind - 1) if behind else 0
    low = float(places[max(0, behind - 1 - back)])
    high = float(places[min(len(places) - 1, behind + 1)])
    return min(low, at), max(math.nextafter(high, math.inf), math.nextafter(at, math.inf))


def _read(book: Book, key: str, x: str, low: float, high: float) -> pa.Table:
    """Rows of a key that have the axis themselves; if there are none, rows placed on it by time."""
    if x == "time":
        return book.metrics(key, since=max(0.0, low), until=high + 1e-6)
    table = book.metrics(key, x=x, start=low, stop=high + 1, exact=True)
    return table if table.num_rows else book.metrics(key, x=x, start=low, stop=high + 1)


def _known(column: pa.ChunkedArray) -> NDArray:
    """Which cells are not empty."""
    if pa.types.is_null(column.type):
        return np.zeros(len(column), dtype=bool)
    if not column.null_count:
        return np.ones(len(column), dtype=bool)
    return ~np.asarray([cell is None for cell in column.to_pylist()], dtype=bool)


def _attempt_at(book: Book, moment: float) -> int | None:
    """The attempt that wrote the effective rows at a moment."""
    entries = {entry["n"]: entry for entry in book.attempts if type(entry.get("n")) is int}
    number = max(entries, default=None)
    while number is not None:
        entry = entries[number]
        cut = entry.get("cut")
        until = cut.get("time") if isinstance(cut, dict) else None
        parent = entry.get("parent")
        if parent not in entries or not isinstance(until, (int, float)) or moment > until / 1e9:
            return int(number)
        number = parent
    return None


def _departure(key: str, place: float, value: float, before: NDArray) -> tuple[float, Unusual] | None:
    """How far a value is outside the middle 90 % of those before; None if it is inside."""
    finite = before[np.isfinite(before)]
    if len(finite) < _LEAST_ROWS:
        return None
    median = float(np.median(finite))
    low, high = (float(end) for end in np.quantile(finite, [0.05, 0.95]))
    if not math.isfinite(value):
        times = math.inf
    elif low <= value <= high:
        return None
    else:
        side = high - median if value > high else median - low
        side = side if side > 0 else max(abs(median) * 1e-3, 1e-12)
        times = abs(value - median) / side
        if times < 1.5:
            return None
    entry = Unusual(
        key=plain(key),
        value=num(value),
        median=num(median),
        low=num(low),
        high=num(high),
        times=num(min(times, 1e9)),
        at=num(place),
    )
    return times, entry
