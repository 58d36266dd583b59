"""Curves of runs: many keys of many runs in one answer, raw or as an envelope of about one point a pixel."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np

from rollbook.book import ROWS_A_POINT, Book, Series
from rollbook.errors import RollbookError, UnknownKey
from rollbook.runs.questions import SeriesQuestion
from rollbook.runs.reading import Read, check, check_key, facts_of, is_raw, keys_of, no_reading, series_of_run, unread
from rollbook.schema.manifest import chain, when_cut
from rollbook.server.asking import asked_of, shape_of
from rollbook.server.curves.memory import Memory
from rollbook.server.frames import MEDIA_TYPE, Array, Frame
from rollbook.server.shared.catalogue import RunRow
from rollbook.server.shared.endpoint import Endpoint, Streamed
from rollbook.server.shared.rows import axis_name, check_points, started
from rollbook.server.shared.shapes import Ask, Refused, plain, words_of
from rollbook.server.shared.state import ServerContext, stamp_of
from rollbook.values.array_types import NDArray

Field = Literal["mean", "min", "max", "count"]


SeriesAsk = shape_of(
    SeriesQuestion,
    (
        "fields",
        Annotated[list[Field], msgspec.Meta(description="which numbers of a reduced point.")],
        msgspec.field(default_factory=lambda: list[Field](("mean", "min", "max"))),
    ),
    (
        "ghosts",
        Annotated[bool, msgspec.Meta(description="also what rewinds abandoned, as entries of their own.")],
        False,
    ),
    defaults={"points": 800},
)


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
      notes: in the first entry of a key, remarks about all of its runs.
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
    notes: list[str] = []
    version: str = ""


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


class Heights(NamedTuple):
    """The range of a series' values.

    Attributes:
      ends: (smallest, largest) finite value; usual: the same without outliers; middle: a value between them.
    """

    ends: tuple[float, float] | None
    usual: tuple[float, float] | None
    middle: float


class SeriesRead(NamedTuple):
    """A series that was read.

    Attributes:
      series: its points; is_raw: whether they are rows.
      span: (first, last) x of the whole series.
    """

    series: Series
    is_raw: bool
    span: tuple[float, float] | None
    heights: Heights


def many_series(context: ServerContext, ask: Ask) -> Streamed:
    """Frames, one per key."""
    asked: Any = ask
    question, rows = asked_of(context, ask, SeriesQuestion)
    check(question)
    keys = keys_of(question)
    limits = context.limits
    if len(rows) * len(keys) > limits.series:
        raise Refused(
            "too_large",
            f"{len(rows)} runs x {len(keys)} keys; at most {limits.series:,} curves at once",
            "Ask in parts.",
        )
    points = limits.points if question.points is None else question.points
    check_points(points, limits.points)
    if question.points is not None and len(rows) * len(keys) * points > limits.total_points * ROWS_A_POINT:
        raise Refused(
            "too_large",
            f"{len(rows) * len(keys):,} curves of {points} points are too many",
            "Ask for fewer points.",
        )
    fields: list[str] = list(dict.fromkeys(asked.fields))
    curves = len(rows) * len(keys)
    large = curves >= limits.zipped_curves or curves * points >= limits.zipped_points
    return Streamed(MEDIA_TYPE, _frames(context, rows, keys, question, fields, asked.ghosts), many=large)


def _frames(
    context: ServerContext, rows: list[RunRow], keys: list[str], ask: SeriesQuestion, fields: list[str], ghosts: bool
) -> Iterator[bytes]:
    """One frame per key. Each run is read once for several keys; the first read is of few keys, so that drawing can
    begin early."""
    is_whole = ask.start is None and ask.stop is None
    if not keys or not rows:
        yield Frame().pack(last=True, took_ms=0.0)
    source = KeptSeries(context, rows)
    bounded = ask if ask.points is not None else msgspec.structs.replace(ask, points=context.limits.points)
    done, size = 0, _FIRST_KEYS if is_whole or len(rows) * len(keys) > _AT_ONCE else len(keys)
    while keys and rows and done < len(keys):
        began = time.perf_counter()
        part = keys[done : done + size]
        kept = [read_series(context, row, part, bounded) for row in rows]
        read = {row.folder: of_run.read for row, of_run in zip(rows, kept, strict=True)}
        for key in part:
            frame, entries = Frame(), []
            unknown = _unknown(key, source, read)
            for row, of_run in zip(rows, kept, strict=True):
                entries.append(_entry(row, key, ask, of_run, fields, frame, unknown))
                if ghosts:
                    entries += _ghosts(context, row, key, bounded, fields, frame)
            facts = facts_of(ask, key, source.rows, read) + (unread(source.rows, read) if key == keys[-1] else [])
            entries[0].notes = [plain(fact.sentence) for fact in facts]
            frame.entries = [*entries]
            done += 1
            yield frame.pack(last=done == len(keys), took_ms=round((time.perf_counter() - began) * 1e3, 1))
        size = _MORE_KEYS


class KeptSeries(Memory):
    """The same runs, with the series that are kept of them."""

    def series(self, ask: SeriesQuestion) -> dict[str, Read]:
        """See `SeriesSource.series`."""
        keys = keys_of(ask)
        return {row.folder: read_series(self.context, row, keys, ask).read for row in self.of_table}

    def keys(self) -> dict[str, tuple[Sequence[str], Mapping[str, str]]]:
        """See `Source.keys`; of runs whose newest values are known without a look at their files."""
        known = {row.folder: facts for row in self.of_table if (facts := self.context.facts.known(row)) is not None}
        others = [row for row in self.of_table if row.folder not in known]
        found: dict[str, tuple[Sequence[str], Mapping[str, str]]] = {
            folder: ([*facts.latest], {}) for folder, facts in known.items()
        }
        return found | (Memory(self.context, others).keys() if others else {})


def _unknown(key: str, source: KeptSeries, read: Mapping[str, Read]) -> EntryError | None:
    """That none of the runs has a key."""
    try:
        check_key(key, source, read)
    except UnknownKey as err:
        return _error_of(err)
    return None


def _entry(
    row: RunRow, key: str, ask: SeriesQuestion, kept: Kept, fields: list[str], frame: Frame, unknown: EntryError | None
) -> SeriesEntry:
    known = kept.found.get(key)
    if known is None:
        error = unknown if kept.error is None else _error_of(kept.error)
        return SeriesEntry(run=row.key, key=key, x=ask.x or "", kind="none", error=error, version=kept.version)
    x = plain(axis_name(ask.x, known.series.axis))
    entry = SeriesEntry(run=row.key, key=key, x=x, kind="none", span=known.span, version=kept.version)
    if known.span is None and ask.x is not None:
        nothing = no_reading(key, ask.x)
        entry.error = EntryError(code="unknown_axis", message=nothing.statement, hint=nothing.advice)
    if ask.points is None and not known.is_raw:
        rows = int(known.series.count.sum()) + known.series.non_finite
        entry.error = EntryError(
            code="too_large", message=f"{key!r} has {rows:,} rows here", hint="Ask for a number of points."
        )
        return entry
    _fill(entry, known, fields, frame)
    return entry


def _error_of(err: BaseException) -> EntryError:
    words = words_of(err)
    return EntryError(code=words.code, message=words.message, hint=words.hint)


class Kept(NamedTuple):
    """What was read of a run, now or before.

    Attributes:
      found: key -> series, without the keys that the run does not have.
      version: of the data it was read from; error: why nothing could be read.
    """

    found: dict[str, SeriesRead]
    version: str
    error: Exception | None

    @property
    def read(self) -> Read:
        """The same without what is of the page alone."""
        return Read({key: one.series for key, one in self.found.items()}, self.error)


def read_series(context: ServerContext, row: RunRow, keys: Sequence[str], ask: SeriesQuestion) -> Kept:
    """Keys of a run as the question wants them; those that are not kept are read together."""
    stamp = stamp_of(row.folder)
    which = ask.attempts if isinstance(ask.attempts, str) else tuple(ask.attempts)
    asked = (ask.x, ask.points, ask.start, ask.stop, which)
    known = {key: ("series", row.folder, key, asked) for key in keys}
    series_of = {key: context.answers.get(word, stamp) for key, word in known.items()}
    missing = [key for key, series in series_of.items() if series is None]
    error: Exception | None = None
    if missing:
        spans = {key: context.answers.get(("span", row.folder, key, ask.x, which), stamp) for key in missing}
        try:
            with context.book(row) as book:
                read = _read(book, missing, ask, started(row), spans)
        except (RollbookError, OSError) as err:
            error, read = err, {}
        if error is None:
            for key in missing:
                series_of[key] = read.get(key, _NOTHING)
                size = 40 * len(read[key].series) + 500 if key in read else 200
                if not row.is_live or size <= _KEPT_WHILE_LIVE:
                    context.answers.put(known[key], stamp, series_of[key], size)
            for key, series in read.items():
                context.answers.put(("span", row.folder, key, ask.x, which), stamp, series.span, 200)
    there = {key: series for key, series in series_of.items() if isinstance(series, SeriesRead)}
    return Kept(there, version_of(stamp), error)


def version_of(stamp: object) -> str:
    """A short word for a stamp."""
    return hashlib.blake2b(repr(stamp).encode(), digest_size=6).hexdigest()


def _read(
    book: Book, keys: list[str], ask: SeriesQuestion, began: float, spans: dict[str, tuple[float, float] | None]
) -> dict[str, SeriesRead]:
    """Keys of a book; `spans` has the known spans of whole series."""
    fitting = series_of_run(book, keys, ask, began)
    whole = fitting
    if ask.start is not None or ask.stop is not None:
        unknown = [key for key in fitting if spans.get(key) is None]
        overview = msgspec.structs.replace(ask, points=_OVERVIEW, start=None, stop=None)
        whole = series_of_run(book, unknown, overview, began) if unknown else {}
    return {
        key: SeriesRead(
            series, is_raw(series), _ends(whole[key].x) if key in whole else spans.get(key), _heights(series)
        )
        for key, series in fitting.items()
    }


def _ends(x: NDArray) -> tuple[float, float] | None:
    finite = x[np.isfinite(x)] if x.dtype.kind == "f" else x
    return (float(finite.min()), float(finite.max())) if len(finite) else None


def _fill(entry: SeriesEntry, known: SeriesRead, fields: list[str], frame: Frame) -> None:
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
        where = np.flatnonzero(series.bad)
        entry.bad = {"x": frame.exact(series.x[where]), "count": frame.counts(series.bad[where])}
        if known.is_raw:
            values = series.mean[where]
            kinds = np.where(np.isnan(values), 0, np.where(values > 0, 1, 2))
            entry.bad["kind"] = frame.counts(kinds)


def _numbers(known: SeriesRead, fields: list[str], frame: Frame) -> dict[str, Array]:
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
    context: ServerContext, row: RunRow, key: str, ask: SeriesQuestion, fields: list[str], frame: Frame
) -> list[SeriesEntry]:
    """Abandoned rows, an entry for each attempt that lost some."""
    if int(row.about.get("attempts") or 0) < 2:
        return []
    ghosts = []
    for attempt, counts_in_part, since in _abandoned(context, row):
        try:
            series = _ghost(context, row, key, ask, attempt, counts_in_part, since)
        except (RollbookError, OSError):
            continue
        if not len(series):
            continue
        entry = SeriesEntry(run=row.key, key=key, x=axis_name(ask.x, series.axis), kind="none", ghost=attempt)
        _fill(entry, SeriesRead(series, is_raw(series), None, _heights(series)), fields, frame)
        ghosts.append(entry)
    return ghosts


def _abandoned(context: ServerContext, row: RunRow) -> list[tuple[int, bool, float | None]]:
    """(attempt, whether some of its rows count, about since when they do not in unix seconds; None: unknown)."""
    with context.book(row) as book:
        about = book.info
    counting = chain(about)
    abandoned: list[tuple[int, bool, float | None]] = []
    for attempt in sorted(entry.n for entry in about.attempts):
        if attempt not in counting:
            abandoned.append((attempt, False, None))
        elif counting[attempt] is not None:
            abandoned.append((attempt, True, when_cut(counting[attempt])))
    return abandoned


def _ghost(
    context: ServerContext,
    row: RunRow,
    key: str,
    ask: SeriesQuestion,
    attempt: int,
    counts_in_part: bool,
    since: float | None,
) -> Series:
    points = ask.points or 1
    with context.book(row) as book:
        x = "time" if ask.x in ("time", "relative") else ask.x or book.series(key, points=1).axis
        around = None if since is None else since - 1
        table = book.arrays([key], x=x, since=around, attempts=[attempt])
        if counts_in_part:  # by the rows: a cut is exact to the row, its time only to the microsecond
            counts = book.arrays([key], x=x, since=around)["time"]
            lost = ~np.isin(table["time"], counts)
            table = {name: cells[lost] for name, cells in table.items()}
    values = table[key].astype(np.float64)
    axis = table[x]
    xs = axis.astype(np.int64) / 1e6 if axis.dtype.kind == "M" else axis.astype(np.float64)
    if ask.x == "relative":
        xs = xs - started(row)
    inside = np.ones(len(xs), dtype=bool)
    if ask.start is not None:
        inside &= xs >= ask.start
    if ask.stop is not None:
        inside &= xs < ask.stop
    return Series.of_rows(xs[inside], values[inside], x, points, most=points * ROWS_A_POINT)


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
