"""From a point of a curve to its cause: what every table holds near that step, and the metrics around it."""

from __future__ import annotations

import math
import os
from typing import Literal, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from rollbook.book import Book
from rollbook.errors import BadInput, RollbookError
from rollbook.schema.manifest import when_cut
from rollbook.schema.stages import own_seconds
from rollbook.server.curves.series import Reach, read_series
from rollbook.server.shared.catalogue import RunRow
from rollbook.server.shared.endpoint import Endpoint
from rollbook.server.shared.rows import (
    Moment,
    NearTable,
    axis_values,
    clocks_of,
    default_axis,
    moment_of,
    near,
    numbers,
    rows_near,
    seconds_column,
    shown_rows,
    started,
    table_of,
)
from rollbook.server.shared.shapes import Alert, Answer, Media, Num, OfRun, Row, cells_of, num, plain
from rollbook.server.shared.state import ServerContext
from rollbook.server.tables.episodes import with_outcome
from rollbook.server.tables.files import TextLine
from rollbook.server.tables.health import alerts_of, media_of
from rollbook.server.tables.logs import LogLine, lines_near, log_files
from rollbook.server.tables.samples import near_samples
from rollbook.values.array_types import NDArray
from rollbook.values.arrow import take_table


class CauseAsk(OfRun, kw_only=True):
    """What went on near a point.

    Attributes:
      x, at: the axis and the place on it.
      key: whose value stands there.
      rows: how many rows of each table at most.
      window: how far around is near, on the axis; null: told from how often the key was logged.
    """

    at: float
    x: str | None = None
    key: str | None = None
    rows: int = 6
    window: float | None = None


class Value(msgspec.Struct, kw_only=True):
    """A key's value at the point (the nearest row), and the one before it."""

    key: str
    value: Num
    before: Num
    at: Num


class Unusual(msgspec.Struct, kw_only=True):
    """A key that left its usual range.

    Attributes:
      median, low, high: of the rows before (low and high: the middle nine tenths).
      times: distance from the median in units of the usual one; 1 is the edge of the usual range.
    """

    key: str
    value: Num
    median: Num
    low: Num
    high: Num
    times: Num
    at: Num


class Checkpoints(msgspec.Struct, kw_only=True):
    """The checkpoints before and after a point."""

    before: Row | None
    after: Row | None


class StageAt(msgspec.Struct, kw_only=True):
    """A stage near the point, and its share of the time."""

    name: str
    seconds: float
    share: float


class TimingsAt(msgspec.Struct, kw_only=True):
    """Where the time went near the point, beside how long it usually takes."""

    seconds: Num
    median: Num
    stages: list[StageAt]


class CauseAnswer(Answer, kw_only=True):
    """What went on near a point, from every table.

    Attributes:
      clocks: all clocks at that moment.
      unusual: keys that left their usual range, most first.
      log: lines of the newest log near that moment.
    """

    run: str
    name: str
    seed: int | None
    status: str
    attempt: int | None
    x: str
    at: float
    time: float | None
    clocks: dict[str, int]
    window: float
    value: Value | None
    unusual: list[Unusual]
    looked_at: int
    alerts: list[Alert]
    episodes: NearTable
    films: list[Media]
    samples: NearTable
    checkpoint: Checkpoints
    timings: TimingsAt | None
    text: list[TextLine]
    log_name: str | None
    log: list[LogLine]


class StepAsk(OfRun, kw_only=True):
    """The next or previous row of a key."""

    at: float
    key: str
    x: str | None = None
    by: Literal[1, -1] = 1


class StepAnswer(Answer, kw_only=True):
    """Where it is; null: there is none."""

    at: Num


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

    def __init__(self, context: ServerContext, row: RunRow, x: str, at: float, key: str | None) -> None:
        self._context, self._row, self._asked = context, row, key
        self._key = key if key is not None else _any_key(context, row)
        self._began = started(row)
        with context.book(row) as book:
            self._clocks = book.clocks
        own = self._own(x, at) if x in (*self._clocks, "time", "relative") else None
        self.moment = moment_of(context, row, self._key, x, at, self._began) if own is None else self._moment(own, at)
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
        curve = read_series(self._context, self._row, [self._key], reach).found.get(self._key)
        if curve is None or not len(curve.series):
            return None
        places = curve.series.x.astype(np.float64)
        rows = curve.series.count + (curve.series.bad if curve.series.bad is not None else 0)
        low, high = _stretch(places, rows, at, _ROWS)
        shift = self._began if x == "relative" else 0.0
        axis = "time" if x == "relative" else x
        with self._context.book(self._row) as book:
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
        with self._context.book(self._row) as book:
            attempt = _attempt_at(book, moment)
        return Moment(moment, clocks_of(cells, self._clocks), attempt)

    def _clock_of(self, x: str, at: float) -> tuple[str, float]:
        if x in self.moment.clocks or x in ("time", "relative"):
            return x, at
        for clock in (default_axis(self._context, self._row), *self.moment.clocks):
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
        with self._context.book(self._row) as book:
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


def _any_key(context: ServerContext, row: RunRow) -> str | None:
    """A key whose rows give the time if none was requested."""
    return next((key for key in context.facts.now(row).latest if not key.startswith(_ASIDE)), None)


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
        until, parent = when_cut(entry.get("cut")), entry.get("parent")
        if parent not in entries or until is None or moment > until:
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


_LOG_LINES = 12
_TEXTS = 8


def cause(context: ServerContext, ask: CauseAsk) -> CauseAnswer:
    """What happened near a point."""
    if not 1 <= ask.rows <= 100:
        raise BadInput(f"rows={ask.rows}: 1 to 100")
    if not math.isfinite(ask.at) or (ask.window is not None and not 0 <= ask.window < math.inf):
        raise BadInput("at and window are finite numbers")
    row = context.row(ask.run)
    x = ask.x or default_axis(context, row)
    began = started(row)
    around = Around(context, row, x, ask.at, ask.key)
    clock, place, moment = around.clock, around.place, around.moment
    window = ask.window if ask.window is not None and clock == x else around.usual_window()
    value = around.value()
    unusual, looked_at = around.unusual()
    table, total = rows_near(context, row, "episodes", clock, place, window, began)
    table = with_outcome(table)
    episodes = near(table, axis_values(table, clock, began), place, window, ask.rows, "episode_id", total=total)
    shown_ids = {str(cells.get("episode_id")) for cells in episodes.rows}
    log_name, log = _log(row, moment.time)
    return CauseAnswer(
        run=row.key,
        name=plain(str(row.about.get("name") or "")),
        seed=row.about["seed"] if type(row.about.get("seed")) is int else None,
        status=row.status,
        attempt=moment.attempt,
        x=plain(clock),
        at=place,
        time=moment.time,
        clocks=moment.clocks,
        window=window,
        value=value,
        unusual=unusual,
        looked_at=looked_at,
        alerts=[a for a in alerts_of(context, row, clock) if isinstance(a.x, float) and abs(a.x - place) <= window],
        episodes=episodes,
        films=_films(context, row, clock, place, window, shown_ids, began),
        samples=near_samples(context, row, clock, place, window, ask.rows),
        checkpoint=_checkpoints(context, row, clock, place, began),
        timings=_timings(context, row, moment.time),
        text=_texts(context, row, clock, place, window, began),
        log_name=log_name,
        log=log,
    )


def _films(
    context: ServerContext, row: RunRow, clock: str, at: float, window: float, ids: set[str], began: float
) -> list[Media]:
    """Films of the episodes shown, and pictures near the point."""
    table, _ = rows_near(context, row, "media", clock, at, window, began)
    if not table.num_rows:
        return []
    places = axis_values(table, clock, began)
    own = table["episode_id"].to_pylist() if "episode_id" in table.column_names else [None] * table.num_rows
    chosen = [n for n in range(table.num_rows) if str(own[n]) in ids or abs(places[n] - at) <= window]
    chosen.sort(key=lambda n: abs(places[n] - at) if math.isfinite(places[n]) else math.inf)
    return media_of(context, row, take_table(table, np.array(chosen[:6], dtype=np.int64)), clock)


def _checkpoints(context: ServerContext, row: RunRow, clock: str, at: float, began: float) -> Checkpoints:
    table = table_of(context, row, "checkpoints")
    if not table.num_rows:
        return Checkpoints(before=None, after=None)
    places = axis_values(table, clock, began)
    picked: list[Row | None] = []
    for chosen in (np.flatnonzero(places <= at), np.flatnonzero(places > at)):
        if not len(chosen):
            picked.append(None)
            continue
        best = int(chosen[np.argmax(places[chosen])] if not picked else chosen[np.argmin(places[chosen])])
        (cells,) = shown_rows(table.slice(best, 1), places[best : best + 1])
        cells.pop("positions", None)
        cells.pop("state", None)
        cells["file"] = os.path.basename(str(cells.get("path") or ""))
        picked.append(cells)
    return Checkpoints(before=picked[0], after=picked[1])


def _timings(context: ServerContext, row: RunRow, moment: float | None) -> TimingsAt | None:
    """Where the time went around a moment, compared with a usual interval of that length."""
    if moment is None:
        return None
    table, _ = rows_near(context, row, "timings", "time", moment, 0.0, 0.0)
    if not table.num_rows:
        return None
    ends = seconds_column(table)
    names = table["name"].to_pylist()
    seconds = np.array([float(c) if isinstance(c, (int, float)) else 0.0 for c in table["seconds"].to_pylist()])
    roots = [n for n, name in enumerate(names) if "/" not in str(name)]
    if not roots:
        return None
    first = names[roots[0]]
    of_first = np.flatnonzero(np.array([name == first for name in names]))
    bounds = np.sort(ends[of_first])
    place = int(np.searchsorted(bounds, moment))
    high = float(bounds[min(place, len(bounds) - 1)])
    low = (
        float(bounds[place - 1])
        if 0 < place < len(bounds)
        else high - float(np.median(np.diff(bounds)))
        if len(bounds) > 1
        else float("-inf")
    )
    inside = (ends > low) & (ends <= max(high, moment))
    totals: dict[str, float] = {}
    for n in np.flatnonzero(inside).tolist():
        totals[str(names[n])] = totals.get(str(names[n]), 0.0) + float(seconds[n])
    own = dict(zip(totals, own_seconds(list(totals), np.array(list(totals.values()))).tolist(), strict=True))
    whole = sum(own.values())
    usual = float(np.median(np.diff(bounds))) if len(bounds) > 1 else math.nan
    stages = [
        StageAt(name=plain(n), seconds=s, share=s / whole if whole else 0.0)
        for n, s in sorted(own.items(), key=lambda p: -p[1])
        if s > 0
    ]
    lasted = high - low if math.isfinite(low) else whole
    return TimingsAt(seconds=num(lasted), median=num(usual) if math.isfinite(usual) else None, stages=stages[:12])


def _texts(context: ServerContext, row: RunRow, clock: str, at: float, window: float, began: float) -> list[TextLine]:
    table, _ = rows_near(context, row, "text", clock, at, window, began)
    if not table.num_rows:
        return []
    places, times = axis_values(table, clock, began), seconds_column(table)
    chosen = np.flatnonzero(np.abs(places - at) <= window)[:_TEXTS]
    texts = []
    for n in chosen.tolist():
        (cells,) = cells_of(table.slice(n, 1))
        text = plain(str(cells.get("text") or "")[:2_000])
        texts.append(
            TextLine(time=float(times[n]), key=plain(str(cells.get("key") or "")), text=text, x=num(float(places[n])))
        )
    return texts


def _log(row: RunRow, moment: float | None) -> tuple[str | None, list[LogLine]]:
    """Lines near a moment, from the first log whose lines have a time."""
    if moment is None:
        return None, []
    for entry in log_files(row)[:6]:
        if entry.label == "keeper":
            continue
        try:
            lines = lines_near(os.path.join(row.folder, *entry.name.split("/")), moment, _LOG_LINES).lines
        except OSError:
            continue
        if lines:
            return entry.name, lines
    return None, []


def step(context: ServerContext, ask: StepAsk) -> StepAnswer:
    """The next or previous row of a key on the axis."""
    row = context.row(ask.run)
    x = ask.x or default_axis(context, row)
    shift = started(row) if x == "relative" else 0.0
    axis, at = ("time", ask.at + shift) if x == "relative" else (x, ask.at)
    reach = 1.0
    with context.book(row) as book:
        for _ in range(40):
            start, stop = (math.nextafter(at, math.inf), at + reach) if ask.by > 0 else (at - reach, at)
            try:
                series = book.series(ask.key, x=axis, points=4_096, start=start, stop=stop)
            except RollbookError:
                raise
            if len(series):
                if int(series.count.sum()) + series.non_finite > len(series) and reach > 1e-6:
                    reach /= 3
                    continue
                place = float(series.x.min() if ask.by > 0 else series.x.max())
                return StepAnswer(at=num(place - shift))
            reach *= 8
            if reach > 1e16:
                break
    return StepAnswer(at=None)


ENDPOINTS = [
    Endpoint(
        "GET", "/api/runs/{run}/cause", CauseAsk, CauseAnswer, cause, "What went on near a point, from every table"
    ),
    Endpoint("GET", "/api/runs/{run}/step", StepAsk, StepAnswer, step, "The next or previous row of a key"),
]
