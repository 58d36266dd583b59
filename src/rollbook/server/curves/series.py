"""Curves of runs: many keys of many runs in one answer, raw or as an envelope of about one point a pixel."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from rollbook.book import Book, Series
from rollbook.errors import RollbookError
from rollbook.schema.manifest import Attempts, chain, when_cut
from rollbook.server.frames import MEDIA_TYPE, Array, Frame
from rollbook.server.shared.catalogue import RunRow
from rollbook.server.shared.endpoint import Endpoint, Streamed
from rollbook.server.shared.rows import check_points, check_range, started
from rollbook.server.shared.shapes import Ask, Refused, plain, words_of
from rollbook.server.shared.state import ServerContext, stamp_of
from rollbook.values.array_types import NDArray

Field = Literal["mean", "min", "max", "count"]


class SeriesAsk(Ask, kw_only=True):
    """Many keys of many runs.

    Attributes:
      x: a clock, "time" (unix seconds), "relative" (seconds since the run began), a key; null: each run's own axis.
      points: about one per pixel. Up to four rows a point come raw.
      fields: which numbers of a reduced point.
      start, stop: only rows with start <= x < stop.
      attempts: "effective", "all", or attempt numbers.
      ghosts: also what rewinds abandoned, as entries of their own.
    """

    runs: list[str]
    keys: list[str]
    x: str | None = None
    points: int = 800
    fields: list[Field] = msgspec.field(default_factory=lambda: list[Field](("mean", "min", "max")))
    start: float | None = None
    stop: float | None = None
    attempts: Literal["effective", "all"] | list[int] = "effective"
    ghosts: bool = False


class EntryError(msgspec.Struct, kw_only=True):
    """Why one entry of many is empty; the others are not."""

    code: str
    message: str
    hint: str | None = None


class SeriesEntry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One curve in the header of a frame.

    Attributes:
      kind: raw (arrays x, y: every row), envelope (x and the fields asked for: a point per stretch), none.
      n: points; rows: rows in range.
      arrays: see `Array`.
      bad: arrays x, nan, up, down: where rows are NaN, +inf, -inf, and how many.
      span: smallest and largest x of the whole series; y_span: smallest and largest finite value in range; robust: the
        same without outliers.
      ghost: the attempt whose abandoned rows these are.
      inferred: rows placed on the axis by time.
      version: the same as long as the data is the same.
    """

    run: str
    key: str
    x: str
    kind: Literal["raw", "envelope", "none"]
    n: int = 0
    rows: int = 0
    arrays: dict[str, Array] = {}
    bad: dict[str, Array] | None = None
    span: tuple[float, float] | None = None
    y_span: tuple[float, float] | None = None
    robust: tuple[float, float] | None = None
    ghost: int | None = None
    inferred: int = 0
    error: EntryError | None = None
    version: str = ""


ROWS_A_POINT = 4
"""Up to this many rows a point are sent raw: an envelope of so few rows would show waves that do not exist."""
_OVERVIEW = 512
_FIRST_KEYS, _MORE_KEYS = 4, 16
_AT_ONCE = 400
"""Curves of a part of the axis that are read together: the page shows coarser ones meanwhile, and a second read of
each run costs more than the first frame gains."""
_NOTHING = "nothing"
"""A cache entry for a key that a run does not have."""


_KEPT_WHILE_LIVE = 16_000
"""Bytes of the largest curve of a live run that is kept. The long ones of runs with a row a second are outdated before
they are asked for again; kept, they would grow with the rows."""

_TAIL = 0.05
"""Quantiles that bound a curve's usual values."""


class Reach(NamedTuple):
    """Which part of a series, and at which resolution."""

    x: str | None
    points: int
    start: float | None
    stop: float | None


class Heights(NamedTuple):
    """The range of a series' values.

    Attributes:
      ends: (smallest, largest) finite value; usual: the same without outliers; middle: a value between them.
    """

    ends: tuple[float, float] | None
    usual: tuple[float, float] | None
    middle: float


class Found(NamedTuple):
    """A series that was read.

    Attributes:
      series: its points; is_raw: whether they are rows.
      span: (first, last) x of the whole series.
    """

    series: Series
    is_raw: bool
    span: tuple[float, float] | None
    heights: Heights


def many_series(context: ServerContext, ask: SeriesAsk) -> Streamed:
    """Frames, one per key."""
    rows = context.rows(ask.runs)
    keys = list(dict.fromkeys(ask.keys))
    limits = context.limits
    if len(rows) * len(keys) > limits.series:
        raise Refused(
            "too_large",
            f"{len(rows)} runs x {len(keys)} keys; at most {limits.series:,} curves at once",
            "Ask in parts.",
        )
    check_points(ask.points, limits.points)
    if len(rows) * len(keys) * ask.points > limits.total_points * ROWS_A_POINT:
        raise Refused(
            "too_large",
            f"{len(rows) * len(keys):,} curves of {ask.points} points are too many",
            "Ask for fewer points.",
        )
    check_range(ask.start, ask.stop)
    fields: list[str] = list(dict.fromkeys(ask.fields))
    curves = len(rows) * len(keys)
    large = curves >= context.limits.zipped_curves or curves * ask.points >= context.limits.zipped_points
    return Streamed(MEDIA_TYPE, _frames(context, rows, keys, ask, fields), many=large)


def _frames(
    context: ServerContext, rows: list[RunRow], keys: list[str], ask: SeriesAsk, fields: list[str]
) -> Iterator[bytes]:
    """One frame per key. Each run is read once for several keys; the first read is of few keys, so that drawing can
    begin early."""
    reach = Reach(ask.x, ask.points, ask.start, ask.stop)
    is_whole = ask.start is None and ask.stop is None
    if not keys or not rows:
        yield Frame().pack(last=True, took_ms=0.0)
    place, size = 0, _FIRST_KEYS if is_whole or len(rows) * len(keys) > _AT_ONCE else len(keys)
    while keys and rows and place < len(keys):
        began = time.perf_counter()
        part = keys[place : place + size]
        series_of_runs = [read_series(context, row, part, reach, ask.attempts) for row in rows]
        for key in part:
            frame = Frame()
            for row, series in zip(rows, series_of_runs, strict=True):
                frame.entries.append(_entry(row, key, reach, series, fields, frame))
                if ask.ghosts:
                    frame.entries += _ghosts(context, row, key, reach, fields, frame)
            place += 1
            yield frame.pack(last=place == len(keys), took_ms=round((time.perf_counter() - began) * 1e3, 1))
        size = _MORE_KEYS


def _entry(row: RunRow, key: str, reach: Reach, read: Read, fields: list[str], frame: Frame) -> SeriesEntry:
    known = read.found.get(key)
    if known is None:
        return SeriesEntry(run=row.key, key=key, x=reach.x or "", kind="none", error=read.error, version=read.version)
    x = plain(axis_name(reach.x, known.series.axis))
    entry = SeriesEntry(run=row.key, key=key, x=x, kind="none", span=known.span, version=read.version)
    if known.span is None and reach.x is not None:
        entry.error = EntryError(
            code="unknown_key", message=f"no row of {key!r} has a reading of {reach.x!r}", hint="Choose another axis."
        )
    _fill(entry, known, fields, frame)
    return entry


def axis_name(asked: str | None, used: str) -> str:
    """The axis's name in the API."""
    return "relative" if asked == "relative" else used


def _error_of(err: BaseException) -> EntryError:
    words = words_of(err)
    return EntryError(code=words.code, message=words.message, hint=words.hint)


class Read(NamedTuple):
    """What was read of a run.

    Attributes:
      found: key -> series, without the keys that the run does not have.
      version: of the data it was read from; error: why nothing could be read.
    """

    found: dict[str, Found]
    version: str
    error: EntryError | None


def read_series(
    context: ServerContext, row: RunRow, keys: Sequence[str], reach: Reach, attempts: Attempts = "effective"
) -> Read:
    """Keys of a run within reach; those that are not cached are read together."""
    stamp = stamp_of(row.folder)
    which = tuple(attempts) if isinstance(attempts, list) else attempts
    known = {key: ("series", row.folder, key, reach, which) for key in keys}
    series_of = {key: context.answers.get(word, stamp) for key, word in known.items()}
    missing = [key for key, series in series_of.items() if series is None]
    error = None
    if missing:
        spans = {key: context.answers.get(("span", row.folder, key, reach.x, which), stamp) for key in missing}
        try:
            with context.book(row) as book:
                read = _read(book, missing, reach, attempts, started(row), spans)
        except (RollbookError, OSError) as err:
            error, read = _error_of(err), {}
        if error is None:
            for key in missing:
                series_of[key] = read.get(key, _NOTHING)
                size = 40 * len(read[key].series) + 500 if key in read else 200
                if not row.is_live or size <= _KEPT_WHILE_LIVE:
                    context.answers.put(known[key], stamp, series_of[key], size)
            for key, series in read.items():
                context.answers.put(("span", row.folder, key, reach.x, which), stamp, series.span, 200)
    there = {key: series for key, series in series_of.items() if isinstance(series, Found)}
    return Read(there, version_of(stamp), error)


def version_of(stamp: object) -> str:
    """A short word for a stamp."""
    return hashlib.blake2b(repr(stamp).encode(), digest_size=6).hexdigest()


def _read(
    book: Book,
    keys: list[str],
    reach: Reach,
    attempts: Attempts,
    began: float,
    spans: dict[str, tuple[float, float] | None],
) -> dict[str, Found]:
    """Keys of a book within reach; `spans` has the known spans of whole series."""
    relative = reach.x == "relative"
    shift = began if relative else 0.0
    x = "time" if relative else reach.x
    start = None if reach.start is None else reach.start + shift
    stop = None if reach.stop is None else reach.stop + shift
    few = reach.points * ROWS_A_POINT
    fitting = book.batch(keys, x=x, points=reach.points, start=start, stop=stop, attempts=attempts, raw=few)
    whole = fitting
    if reach.start is not None or reach.stop is not None:
        unknown = [key for key in fitting if spans.get(key) is None]
        whole = book.batch(unknown, x=x, points=_OVERVIEW, attempts=attempts) if unknown else {}
    series_of = {}
    for key, series in fitting.items():
        span = spans.get(key)
        if key in whole:
            span = _ends(whole[key].x - shift if shift else whole[key].x)
        series_of[key] = Found(_shifted(series, shift) if shift else series, _is_raw(series), span, _heights(series))
    return series_of


def _is_raw(series: Series) -> bool:
    """Whether each point is one row."""
    return bool(np.all(series.count + (series.bad if series.bad is not None else 0) <= 1))


def _shifted(series: Series, shift: float) -> Series:
    return Series(
        series.x - shift, series.mean, series.min, series.max, series.count, series.axis, series.non_finite, series.bad
    )


def _ends(x: NDArray) -> tuple[float, float] | None:
    finite = x[np.isfinite(x)] if x.dtype.kind == "f" else x
    return (float(finite.min()), float(finite.max())) if len(finite) else None


def _fill(entry: SeriesEntry, known: Found, fields: list[str], frame: Frame) -> None:
    """Put the numbers of a series into a frame and note their position in its entry."""
    series = known.series
    entry.n = len(series)
    entry.rows = int(series.count.sum()) + series.non_finite
    if not len(series):
        return
    entry.y_span, entry.robust = known.heights.ends, known.heights.usual
    if known.is_raw:
        entry.kind = "raw"
        entry.arrays = {"x": frame.exact(series.x), "y": frame.exact(series.mean)}
    else:
        entry.kind = "envelope"
        entry.arrays = {"x": frame.steps(series.x.astype(np.float64, copy=False)), **_numbers(known, fields, frame)}
    if series.non_finite and series.bad is not None:
        places = np.flatnonzero(series.bad)
        entry.bad = {"x": frame.exact(series.x[places]), "count": frame.counts(series.bad[places])}
        if known.is_raw:
            values = series.mean[places]
            kinds = np.where(np.isnan(values), 0, np.where(values > 0, 1, 2))
            entry.bad["kind"] = frame.counts(kinds)


def _numbers(known: Found, fields: list[str], frame: Frame) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    for name in fields:
        values = getattr(known.series, name)
        arrays[name] = frame.counts(values) if name == "count" else frame.near(values, known.heights.middle)
    return arrays


def _heights(series: Series) -> Heights:
    low, high = series.min[np.isfinite(series.min)], series.max[np.isfinite(series.max)]
    usual = np.sort(series.mean[np.isfinite(series.mean)])
    middle = float(usual[len(usual) // 2]) if len(usual) else 0.0
    if not len(low) or not len(high):
        return Heights(None, None, middle)
    ends = float(low.min()), float(high.max())
    if not len(usual):
        return Heights(ends, ends, middle)
    first, last = (float(usual[round(share * (len(usual) - 1))]) for share in (_TAIL, 1 - _TAIL))
    margin = (last - first) / 2
    if not margin > 0:
        return Heights(ends, ends, middle)
    return Heights(ends, (max(ends[0], first - margin), min(ends[1], last + margin)), middle)


def _ghosts(
    context: ServerContext, row: RunRow, key: str, reach: Reach, fields: list[str], frame: Frame
) -> list[SeriesEntry]:
    """Abandoned rows, an entry for each attempt that lost some."""
    if int(row.about.get("attempts") or 0) < 2:
        return []
    ghosts = []
    for attempt, counts_in_part, since in _abandoned(context, row):
        try:
            series = _ghost(context, row, key, reach, attempt, counts_in_part, since)
        except (RollbookError, OSError):
            continue
        if not len(series):
            continue
        is_raw = bool(np.all(series.count <= 1))
        entry = SeriesEntry(run=row.key, key=key, x=axis_name(reach.x, series.axis), kind="none", ghost=attempt)
        _fill(entry, Found(series, is_raw, None, _heights(series)), fields, frame)
        ghosts.append(entry)
    return ghosts


def _abandoned(context: ServerContext, row: RunRow) -> list[tuple[int, bool, float | None]]:
    """(attempt, whether some of its rows count, about since when they do not in unix seconds; None: unknown)."""
    with context.book(row) as book:
        about = {"attempts": book.attempts}
    counting = chain(about)
    children = {entry.get("parent"): entry for entry in book.attempts if entry["n"] in counting}
    abandoned: list[tuple[int, bool, float | None]] = []
    for attempt in sorted(entry["n"] for entry in book.attempts):
        if attempt not in counting:
            abandoned.append((attempt, False, None))
        elif counting[attempt] is not None:
            abandoned.append((attempt, True, when_cut(children[attempt].get("cut"))))
    return abandoned


def _ghost(
    context: ServerContext,
    row: RunRow,
    key: str,
    reach: Reach,
    attempt: int,
    counts_in_part: bool,
    since: float | None,
) -> Series:
    with context.book(row) as book:
        x = "time" if reach.x in ("time", "relative") else reach.x or book.series(key, points=1).axis
        around = None if since is None else since - 1
        table = book.arrays([key], x=x, since=around, attempts=[attempt])
        if counts_in_part:  # by the rows: a cut is exact to the row, its time only to the microsecond
            counts = book.arrays([key], x=x, since=around)["time"]
            lost = ~np.isin(table["time"], counts)
            table = {name: cells[lost] for name, cells in table.items()}
    values = table[key].astype(np.float64)
    axis = table[x]
    xs = axis.astype(np.int64) / 1e6 if axis.dtype.kind == "M" else axis.astype(np.float64)
    if reach.x == "relative":
        xs = xs - started(row)
    inside = np.ones(len(xs), dtype=bool)
    if reach.start is not None:
        inside &= xs >= reach.start
    if reach.stop is not None:
        inside &= xs < reach.stop
    return Series.of_rows(xs[inside], values[inside], x, reach.points, most=reach.points * ROWS_A_POINT)


ENDPOINTS = [
    Endpoint(
        "POST",
        "/api/series",
        SeriesAsk,
        MEDIA_TYPE,
        many_series,
        "Many keys of many runs, one frame a key",
        entries=SeriesEntry,
    ),
]
