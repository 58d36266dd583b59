"""From a point of a run to its cause: what every table holds near that step, and the metrics around it."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rollbook.book.questions.asked import Cause, Checkpoints
from rollbook.book.questions.checkpoints import chosen_checkpoints
from rollbook.book.questions.logs import LogLine, lines_near, log_files
from rollbook.book.questions.positions import (
    Near,
    axis_values,
    cells_of,
    clocks_of,
    in_time,
    near,
    nearest_first,
    numbers,
    position_in_sql,
    seconds_column,
    usual_axis_of,
    with_outcome,
)
from rollbook.book.questions.rows_of_tables import see_samples
from rollbook.book.questions.source import Queries, Source
from rollbook.book.table_protocols import ReadRun
from rollbook.errors import BadInput, did_you_mean
from rollbook.schema.expressions import quoted
from rollbook.schema.manifest import when_cut
from rollbook.schema.run_files import table_names
from rollbook.schema.stages import own_seconds
from rollbook.system.texts import amount
from rollbook.values.array_types import NDArray
from rollbook.values.arrow import empty_table, take_table

ROWS_BEFORE = 50
"""A key's usual range is computed from this many rows before the point."""
_ROWS = 4 * ROWS_BEFORE
"""This many rows of the point's own key are read before it, so that rarer keys have enough rows in the same time,
too."""
_LEAST_ROWS = 8
_MOST_CELLS = 4_000_000
_MOST_UNUSUAL = 12
_MOST_NEAR = 2_000
_MOST_VIDEOS, _MOST_STAGES, _LOG_LINES, _TEXTS = 6, 12, 12, 8
_OURS = ("rollbook/", "host/", "clock/")
"""Keys that are not about the training. Most have no clock, and placing them on the axis reads the whole run."""


class Value(NamedTuple):
    """A key's value at the point (the nearest row, at `at`), and the one before it."""

    key: str
    value: float
    before: float | None
    at: float


class Unusual(NamedTuple):
    """A key that left its usual range.

    Attributes:
      value: its newest at the point; at: where that is.
      median, low, high: of the rows before (low and high: the middle nine tenths).
      times: distance from the median in units of the usual one; 1 is the edge of the usual range.
    """

    key: str
    value: float
    median: float
    low: float
    high: float
    times: float
    at: float


class StageAt(NamedTuple):
    """A stage near the point: its own seconds, and their share of the time."""

    name: str
    seconds: float
    share: float


class TimingsAt(NamedTuple):
    """Where the time went: how long the interval around the point took, how long one usually takes, its stages."""

    seconds: float
    median: float | None
    stages: tuple[StageAt, ...]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What went on near a point, from every table.

    Attributes:
      x, at: a clock that all tables have, or the time, and the point on it.
      time: of the nearest row, unix seconds; clocks: all at that moment; attempt: that wrote it.
      window: the distance on the axis that counts as near.
      value: of the key that was asked about.
      unusual: keys that left their usual range, most first; looked_at: how many were checked.
      alerts, episodes, media, samples, text: rows near the point.
      before, after: the checkpoints around it, as rows of that table.
      timings: where the time went.
      log_name, log: lines of the newest log near that moment.
      values: with `everything`: the newest value of each key at or before the point; others: the nearest rows of the
        other tables.
    """

    x: str
    at: float
    time: float | None
    clocks: dict[str, int]
    attempt: int | None
    window: float
    value: Value | None
    unusual: tuple[Unusual, ...]
    looked_at: int
    alerts: Near
    episodes: Near
    media: Near
    samples: Near
    text: Near
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    timings: TimingsAt | None
    log_name: str | None
    log: tuple[LogLine, ...]
    values: pa.Table | None = None
    others: dict[str, pa.Table] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Surroundings of {self.x} {self.at:,g}: {amount(len(self.unusual), 'key')} out of their usual range>"

    def sentences(self) -> list[str]:
        """The answer in words, the strongest first."""
        remarks = [*_of_metrics(self), *_of_rows(self)]
        return remarks or [f"Nothing was recorded near {self.x} {_number(self.at)}."]

    def as_data(self) -> dict[str, Any]:
        """The answer as plain data: numbers, texts, lists; times in unix seconds."""
        of_tables = ("alerts", "episodes", "media", "samples", "text")
        more = {} if self.values is None else {"values": cells_of(self.values)}
        others = {name: [_slim(row) for row in cells_of(table)] for name, table in self.others.items()}
        return {
            "x": self.x,
            "at": self.at,
            "time": self.time,
            "clocks": self.clocks,
            "attempt": self.attempt,
            "window": self.window,
            "value": None if self.value is None else self.value._asdict(),
            "unusual": [each._asdict() for each in self.unusual],
            "looked_at": self.looked_at,
            **{name: [_slim(row) for row in cells_of(getattr(self, name).table)] for name in of_tables},
            "in_window": {name: getattr(self, name).total for name in of_tables},
            "checkpoint_before": self.before,
            "checkpoint_after": self.after,
            "timings": None
            if self.timings is None
            else {**self.timings._asdict(), "stages": [each._asdict() for each in self.timings.stages]},
            "log_name": self.log_name,
            "log": [line.text for line in self.log],
            **more,
            **({"others": others} if others else {}),
        }


_IDENTITY = frozenset(("writer", "lane", "seq", "index", "scope", "at"))


def _slim(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row without empty cells and without the columns that only identify it."""
    return {name: cell for name, cell in row.items() if cell is not None and name not in _IDENTITY}


# -- words


def _of_metrics(found: Surroundings) -> list[str]:
    remarks = []
    if found.value is not None:
        was = "" if found.value.before is None else f"; it was {found.value.before:.6g} the row before"
        remarks.append(f"{found.value.key} is {found.value.value:.6g} at {found.x} {_number(found.value.at)}{was}.")
    for each in found.unusual:
        far = f" ({each.times:,.3g} times as far from the median)" if math.isfinite(each.value) else ""
        remarks.append(f"{each.key} left its usual range of {each.low:.6g} to {each.high:.6g}: {each.value:.6g}{far}.")
    if not found.unusual and found.looked_at:
        remarks.append(f"None of {amount(found.looked_at, 'key')} left its usual range.")
    return remarks


def _of_rows(found: Surroundings) -> list[str]:
    remarks = [f"{row['rule']} ({row['level']}): {row['message']}" for row in cells_of(found.alerts.table)]
    within = f"within {_number(found.window)} of {found.x} {_number(found.at)}"
    if found.episodes.total:
        table = found.episodes.table
        returns = numbers(table["return"]).tolist() if "return" in table.column_names else []
        known = [each for each in returns if math.isfinite(each)]
        low, high = (min(known), max(known)) if known else (math.nan, math.nan)
        spread = "" if not known else f"; return {low:.6g}" if low == high else f"; returns {low:.6g} to {high:.6g}"
        remarks.append(f"{amount(found.episodes.total, 'episode')} ended {within}{spread}.")
    elif found.episodes.nearest is not None:
        remarks.append(
            f"No episode ended {within}; the nearest, {found.episodes.nearest.id}, ended at "
            f"{_number(found.episodes.nearest.x)}."
        )
    if found.samples.total:
        remarks.append(f"{amount(found.samples.total, 'sample')} {within}.")
    for row, side in ((found.before, "before"), (found.after, "after")):
        if row is not None:
            remarks.append(f"The checkpoint {side} is {row['file']}, at {found.x} {_number(row['x'])}.")
    if found.timings is not None and found.timings.stages:
        first, usual = found.timings.stages[0], found.timings.median
        told = "" if usual is None else f"; usually that is {usual:.3g} s in all"
        remarks.append(f"Of {found.timings.seconds:.3g} s there, {first.name} took {first.share:.0%}{told}.")
    return [*remarks, *(f"{row.get('key')}: {row.get('text')}" for row in cells_of(found.text.table))]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) and abs(value) < 1e15 else f"{value:,.6g}"


# -- the answer


def around(ask: Cause, source: Source) -> Surroundings:
    """What happened near a point.

    Raises:
      BadInput: the point or the window is not a number, or `rows` not a count.
      UnknownKey: the run has no such key.
    """
    if not 1 <= ask.rows <= 100:
        raise BadInput(f"cause(rows={ask.rows}): 1 to 100 rows of each table")
    if not math.isfinite(ask.at) or (ask.window is not None and not 0 <= ask.window < math.inf):
        raise BadInput(f"cause(at={ask.at}, window={ask.window}): at and window are finite numbers")
    point = _Point(source, ask)
    clock, position, began = point.clock, point.position, point.began
    window = ask.window if ask.window is not None and clock == point.x else point.usual_window()
    episodes = point.near("episodes", window, ask.rows, "episode_id", with_outcome)
    unusual, looked_at = point.unusual()
    log_name, log = _log(source.folder, point.time)
    before, after = _checkpoints(chosen_checkpoints(Checkpoints(), source).table, clock, position, began)
    values, others = point.everything(ask.rows) if ask.everything else (None, {})
    return Surroundings(
        x=clock,
        at=position,
        time=point.time,
        clocks=point.clocks,
        attempt=point.attempt,
        window=window,
        value=point.value(),
        unusual=unusual,
        looked_at=looked_at,
        alerts=point.near("alerts", window, None, "rule"),
        episodes=episodes,
        media=point.videos(window, episodes.table),
        samples=point.samples(window, ask.rows),
        text=point.texts(window),
        before=before,
        after=after,
        timings=_timings(point),
        log_name=log_name,
        log=log,
        values=values,
        others=others,
    )


class _Own(NamedTuple):
    """Rows of the point's key, in order.

    Attributes:
      positions: on the axis; times: unix seconds; values: of the key; table: with all clocks.
    """

    positions: NDArray
    times: NDArray
    values: NDArray
    table: pa.Table


class _Point:
    """A point of a run, and the metrics around it.

    Attributes:
      x: the axis that was asked for.
      clock, position: an axis that all tables have, and the position on it: the requested axis if that is a clock or
        the time, else the run's usual one.
      time, clocks, attempt: of the nearest row. began: when the run did.
    """

    def __init__(self, source: Source, ask: Cause) -> None:
        self._source, self._ask = source, ask
        self._newest = source.newest()
        with source.book() as book:
            self._known, about = list(book.clocks), book.info
        self.began = float(about.created or 0.0)
        read = {clock for clocks in self._newest.values() for clock in clocks}
        self._usual = usual_axis_of(about.x, about.total, [clock for clock in self._known if clock in read])
        self.x = ask.x or self._usual
        self._key = ask.key if ask.key is not None else self._any_key()
        own = self._own(self.x, ask.at) if self.x in (*self._known, "time", "relative") else None
        self.time, self.clocks, self.attempt = self._moment(own)
        self.clock, self.position = self._clock_of()
        if own is None and self.clock != self.x:
            own = self._own(self.clock, self.position)
        self._rows_of_key = own

    def _any_key(self) -> str | None:
        """A key whose rows give the time if none was requested."""
        return next((key for key in self._newest if not key.startswith(_OURS)), None)

    def _own(self, x: str, at: float) -> _Own | None:
        """The rows of the key before the point and the one after it, read once. The curve shows how far back to
        read."""
        if self._key is None:
            return None
        curve = self._source.curve(self._key, x)
        if curve is None or not len(curve):
            return None
        positions = curve.x.astype(np.float64)
        rows = curve.count + (curve.bad if curve.bad is not None else 0)
        low, high = _stretch(positions, rows, at, _ROWS)
        shift = self.began if x == "relative" else 0.0
        axis = "time" if x == "relative" else x
        with self._source.book() as book:
            table = _read(book, self._key, axis, low + shift, high + shift)
        if not table.num_rows:
            return None
        name = self._key if self._key in table.column_names else f"value/{self._key}"
        if name not in table.column_names:
            return None
        times = seconds_column(table)
        positions = times - shift if axis == "time" else axis_values(table, x, 0.0)
        return _Own(positions, times, numbers(table[name]), table)

    def _moment(self, own: _Own | None) -> tuple[float | None, dict[str, int], int | None]:
        """(time, clocks, attempt) of the row of the key, or of any key, that is nearest to the point."""
        if own is not None:
            nearest = int(np.argmin(np.abs(own.positions - self._ask.at)))
            cells = {
                clock: own.table[clock][nearest].as_py() for clock in self._known if clock in own.table.column_names
            }
            moment = float(own.times[nearest])
            with self._source.book() as book:
                return moment, clocks_of(cells, self._known), _attempt_at(book, moment)
        in_time_ = self.x in ("time", "relative")
        target = self._ask.at + (self.began if self.x == "relative" else 0.0)
        keys = None if self._key is None else [self._key]
        with self._source.book() as book:
            table = _around_time(book, keys, target) if in_time_ else _around(book, keys, self.x, target)
        positions = np.zeros(0)
        if table is not None:
            positions = seconds_column(table) if in_time_ else axis_values(table, self.x, self.began)
        if table is None or not len(positions) or np.isnan(positions).all():
            return (target if in_time_ else None), ({self.x: int(target)} if self.x in self._known else {}), None
        row = table.slice(int(np.nanargmin(np.abs(positions - target))), 1)
        (cells,) = cells_of(row)
        attempt = cells.get("attempt")
        return (
            float(seconds_column(row)[0]),
            {clock: int(cells[clock]) for clock in self._known if isinstance(cells.get(clock), int)},
            attempt if isinstance(attempt, int) else None,
        )

    def _clock_of(self) -> tuple[str, float]:
        if self.x in self.clocks or self.x in ("time", "relative"):
            return self.x, self._ask.at
        for clock in (self._usual, *self.clocks):
            if clock in self.clocks:
                return clock, float(self.clocks[clock])
        return self.x, self._ask.at

    def usual_window(self) -> float:
        """How far around the point to look: four times the usual distance of the key's rows; less if they are few."""
        steps = np.diff(np.unique(self._rows_of_key.positions)) if self._rows_of_key is not None else np.zeros(0)
        if not len(steps):
            return 1.0
        step = float(np.median(steps))
        return min(4 * step, max(step, float(steps.sum()) / 10))

    def value(self) -> Value | None:
        """The key's value at the point and before."""
        own = self._rows_of_key
        if own is None or self._ask.key is None:
            return None
        here = int(np.argmin(np.abs(own.positions - self.position)))
        before = float(own.values[here - 1]) if here else None
        return Value(self._ask.key, float(own.values[here]), before, float(own.positions[here]))

    def unusual(self) -> tuple[tuple[Unusual, ...], int]:
        """The keys that left their usual range, the strongest first; and how many were checked."""
        own = self._rows_of_key
        if own is None or self.time is None:
            return (), 0
        with self._source.book() as book:
            known = book.keys()
            keys = [key for key in known if not key.startswith(_OURS)]
            before = own.times[own.times <= self.time]
            rows = min(len(before), max(_LEAST_ROWS, _MOST_CELLS // max(1, len(keys))))
            since = float(before[-rows]) if rows else self.time
            table = book.metrics(keys, since=since - 1e-6, until=self.time + 1e-5)
        ranked: list[tuple[float, Unusual]] = []
        looked_at = 0
        positions = axis_values(table, self.clock, self.began)
        times = seconds_column(table)
        fixed = {*self._known, "time", "inferred"}
        for name in table.column_names:
            if name in fixed:
                continue
            values = numbers(table[name])
            there = np.flatnonzero(_are_known(table[name]))
            if not len(there):
                continue
            looked_at += 1
            here = int(there[-1])
            position = (
                positions[here] if math.isfinite(positions[here]) else np.interp(times[here], own.times, own.positions)
            )
            entry = _departure(name, float(position), float(values[here]), values[there[-ROWS_BEFORE - 1 : -1]])
            if entry is not None:
                ranked.append(entry)
        ranked.sort(key=lambda pair: -pair[0])
        return tuple(entry for _, entry in ranked[:_MOST_UNUSUAL]), looked_at

    def rows_near(self, name: str, x: str, at: float, window: float) -> tuple[pa.Table, int | None]:
        """(rows of a table by time: all, or of a large table the nearest to a position; how many of them are in the
        window, if not all are there)."""
        if self._source.rows(name) < self._source.whole_rows:
            return self._source.table(name), None

        def work(db: Queries) -> tuple[pa.Table, int]:
            away = f"abs({position_in_sql(x, self.began, db.columns[name])} - {at!r})"
            inside = db.table(f"select count(*) as n from {quoted(name)} where {away} <= {float(window)!r}")
            order = nearest_first(away, db.columns[name])
            nearest = f"select * from {quoted(name)} where {away} is not null{order} limit {_MOST_NEAR}"
            table = db.table(f"select * from ({nearest}){in_time(db.columns[name])}")
            return table, int(inside["n"][0].as_py())

        return self._source.asked([name], work)

    def near(self, name: str, window: float, rows: int | None, id_column: str, shape: Any = None) -> Near:
        """The rows of a table that are near."""
        table, total = self.rows_near(name, self.clock, self.position, window)
        table = table if shape is None else shape(table)
        return near(table, axis_values(table, self.clock, self.began), self.position, window, rows, id_column, total)

    def videos(self, window: float, episodes: pa.Table) -> Near:
        """Videos of these episodes, and pictures near the point; the nearest first."""
        table, _ = self.rows_near("media", self.clock, self.position, window)
        positions = axis_values(table, self.clock, self.began) if table.num_rows else np.zeros(0)
        ids = {*episodes["episode_id"].to_pylist()} if "episode_id" in episodes.column_names else set()
        own = table["episode_id"].to_pylist() if "episode_id" in table.column_names else [None] * table.num_rows
        chosen = [
            n
            for n in range(table.num_rows)
            if (own[n] is not None and own[n] in ids) or abs(positions[n] - self.position) <= window
        ]
        chosen.sort(key=lambda n: abs(positions[n] - self.position) if math.isfinite(positions[n]) else math.inf)
        picked = np.array(chosen[:_MOST_VIDEOS], dtype=np.int64)
        return Near(take_table(table, picked), positions[picked], len(chosen))

    def samples(self, window: float, rows: int) -> Near:
        """The samples near the point, with advantages that came late; their texts are long, so few are read."""
        names = table_names(self._source.folder)
        if "samples" not in names:
            return Near(empty_table(pa.schema([])), np.zeros(0), 0)
        x, at = self.clock, self.position

        def work(db: Queries) -> tuple[int, pa.Table]:
            columns = see_samples(db)
            if not columns or (x not in ("time", "relative") and x not in columns):
                return 0, db.table("select * from seen limit 0")
            position = position_in_sql(x, self.began, columns)
            away = f"abs({position} - {at!r})"
            total = int(db.table(f"select count(*) as n from seen where {away} <= {float(window)!r}")["n"][0].as_py())
            few, order = f"select * from seen where {position} is not null", nearest_first(away, columns)
            return total, db.table(f"{few}{order} limit {rows if total else 1}")

        total, table = self._source.asked([name for name in ("samples", "advantages") if name in names], work)
        return near(table, axis_values(table, x, self.began), at, window, rows, "sample_id", total)

    def texts(self, window: float) -> Near:
        """The first texts near the point."""
        found = self.near("text", window, None, "key")
        return Near(found.table.slice(0, _TEXTS), found.positions[:_TEXTS], found.total, found.nearest)

    def everything(self, rows: int) -> tuple[pa.Table, dict[str, pa.Table]]:
        """(the newest value of each key at or before the point, the nearest rows of the tables that are not looked at
        otherwise)."""
        if self.clock not in self._known:
            raise BadInput(
                f"cause(x={self.clock!r}, everything=True): everything is along a clock.",
                did_you_mean(str(self.clock), list(self._known)),
            )
        with self._source.book() as book:
            tables = book.at(rows, **{self.clock: int(self.position)})
        values = tables.pop("metrics", None)
        looked_at = ("alerts", "episodes", "media", "samples", "text", "checkpoints", "timings")
        others = {name: table for name, table in tables.items() if name not in looked_at}
        return (empty_table(pa.schema([])) if values is None else values), others


def _stretch(positions: NDArray, rows: NDArray, at: float, wanted: int) -> tuple[float, float]:
    """The range to read for about `wanted` rows before `at` and some after it."""
    behind = int(np.searchsorted(positions, at, side="right"))
    so_far = np.cumsum(rows[:behind][::-1])
    back = min(int(np.searchsorted(so_far, wanted)) + 1, behind - 1) if behind else 0
    low = float(positions[max(0, behind - 1 - back)])
    high = float(positions[min(len(positions) - 1, behind + 1)])
    return min(low, at), max(math.nextafter(high, math.inf), math.nextafter(at, math.inf))


def _read(book: ReadRun, key: str, x: str, low: float, high: float) -> pa.Table:
    """Rows of a key that have the axis themselves; if there are none, rows placed on it by time."""
    if x == "time":
        return book.metrics(key, since=max(0.0, low), until=high + 1e-6)
    table = book.metrics(key, x=x, start=low, stop=high + 1, exact=True)
    return table if table.num_rows else book.metrics(key, x=x, start=low, stop=high + 1)


def _around(book: ReadRun, keys: list[str] | None, x: str, at: float) -> pa.Table | None:
    """Rows near a reading, from a range that grows until it has some."""
    reach = 1.0
    for _ in range(24):
        table = book.metrics(keys, x=x, start=at - reach, stop=at + reach + 1)
        if table.num_rows:
            return table
        reach *= 8
        if reach > 1e15:
            return None
    return None


def _around_time(book: ReadRun, keys: list[str] | None, middle: float) -> pa.Table | None:
    reach = 1.0
    for _ in range(12):
        table = book.metrics(keys, since=max(0.0, middle - reach), until=middle + reach)
        if table.num_rows:
            return table
        reach *= 8
    return None


def _are_known(column: pa.ChunkedArray) -> NDArray:
    """Which cells are not empty."""
    if pa.types.is_null(column.type):
        return np.zeros(len(column), dtype=bool)
    if not column.null_count:
        return np.ones(len(column), dtype=bool)
    return ~np.asarray([cell is None for cell in column.to_pylist()], dtype=bool)


def _attempt_at(book: ReadRun, moment: float) -> int | None:
    """The attempt that wrote the effective rows at a moment."""
    entries = {entry.n: entry for entry in book.info.attempts}
    number = max(entries, default=None)
    while number is not None:
        until, parent = when_cut(entries[number].cut), entries[number].parent
        if parent not in entries or until is None or moment > until:
            return number
        number = parent
    return None


def _departure(key: str, position: float, value: float, before: NDArray) -> tuple[float, Unusual] | None:
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
    return times, Unusual(key, value, median, low, high, min(times, 1e9), position)


def _checkpoints(table: pa.Table, clock: str, at: float, began: float) -> tuple[dict[str, Any] | None, ...]:
    """The checkpoints before and after a point, with the name of the `file` and the position `x`."""
    if not table.num_rows:
        return None, None
    positions = axis_values(table, clock, began)
    picked: list[dict[str, Any] | None] = []
    for chosen, best in ((np.flatnonzero(positions <= at), np.argmax), (np.flatnonzero(positions > at), np.argmin)):
        if not len(chosen):
            picked.append(None)
            continue
        row = int(chosen[best(positions[chosen])])
        (cells,) = cells_of(table.slice(row, 1))
        cells.pop("positions", None)
        cells.pop("state", None)
        picked.append({**cells, "file": os.path.basename(str(cells.get("path") or "")), "x": float(positions[row])})
    return tuple(picked)


def _timings(point: _Point) -> TimingsAt | None:
    """Where the time went around a moment, compared with a usual interval of that length."""
    moment = point.time
    if moment is None:
        return None
    table, _ = point.rows_near("timings", "time", moment, 0.0)
    if not table.num_rows:
        return None
    ends = seconds_column(table)
    names = table["name"].to_pylist()
    seconds = np.array([float(c) if isinstance(c, (int, float)) else 0.0 for c in table["seconds"].to_pylist()])
    roots = [n for n, name in enumerate(names) if "/" not in str(name)]
    if not roots:
        return None
    first = names[roots[0]]
    bounds = np.sort(ends[np.flatnonzero(np.array([name == first for name in names]))])
    usual = float(np.median(np.diff(bounds))) if len(bounds) > 1 else math.nan
    index = int(np.searchsorted(bounds, moment))
    high = float(bounds[min(index, len(bounds) - 1)])
    low = float(bounds[index - 1]) if 0 < index < len(bounds) else high - usual if len(bounds) > 1 else -math.inf
    totals: dict[str, float] = {}
    for n in np.flatnonzero((ends > low) & (ends <= max(high, moment))).tolist():
        totals[str(names[n])] = totals.get(str(names[n]), 0.0) + float(seconds[n])
    own = dict(zip(totals, own_seconds(list(totals), np.array(list(totals.values()))).tolist(), strict=True))
    whole = sum(own.values())
    stages = [
        StageAt(name, spent, spent / whole if whole else 0.0)
        for name, spent in sorted(own.items(), key=lambda pair: -pair[1])
        if spent > 0
    ]
    lasted = high - low if math.isfinite(low) else whole
    return TimingsAt(lasted, usual if math.isfinite(usual) else None, tuple(stages[:_MOST_STAGES]))


def _log(folder: str, moment: float | None) -> tuple[str | None, tuple[LogLine, ...]]:
    """Lines near a moment, from the first log whose lines have a time."""
    if moment is None:
        return None, ()
    for entry in log_files(folder)[:6]:
        if entry.label == "keeper":
            continue
        try:
            lines = lines_near(os.path.join(folder, *entry.name.split("/")), moment, _LOG_LINES).lines
        except OSError:
            continue
        if lines:
            return entry.name, tuple(lines)
    return None, ()


def next_row(source: Source, key: str, x: str | None, at: float, by: int) -> float | None:
    """Where on an axis the next (by=1) or previous (by=-1) row of a key is; None if there is none."""
    with source.book() as book:
        about, clocks = book.info, list(book.clocks)
    read = {clock for known in source.newest().values() for clock in known}
    x = x or usual_axis_of(about.x, about.total, [clock for clock in clocks if clock in read])
    shift = float(about.created or 0.0) if x == "relative" else 0.0
    axis, at = ("time", at + shift) if x == "relative" else (x, at)
    reach = 1.0
    with source.book() as book:
        for _ in range(40):
            start, stop = (math.nextafter(at, math.inf), at + reach) if by > 0 else (at - reach, at)
            series = book.series(key, x=axis, points=4_096, start=start, stop=stop)
            if len(series):
                if int(series.count.sum()) + series.non_finite > len(series) and reach > 1e-6:
                    reach /= 3
                    continue
                return float(series.x.min() if by > 0 else series.x.max()) - shift
            reach *= 8
            if reach > 1e16:
                break
    return None
