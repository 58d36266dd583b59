"""From a point of a curve to its cause; `book.questions.cause` answers it."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from rollbook.book.questions import Cause, LogLine, Near, Surroundings, around, cells_of, next_row, seconds_column
from rollbook.server.asking import of_one_run, shape_of_one
from rollbook.server.curves.one_run import KeptRun
from rollbook.server.shared.catalogue import RunRow
from rollbook.server.shared.endpoint import Endpoint
from rollbook.server.shared.rows import NearTable, near_table
from rollbook.server.shared.shapes import Alert, Answer, Media, Num, OfRun, Row, num, plain, rows_of
from rollbook.server.shared.state import ServerContext
from rollbook.server.tables.files import TextLine
from rollbook.server.tables.health import alerts_in, media_of

CauseAsk = shape_of_one(Cause)


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
    """Where the time went near the point, and how long the same usually takes."""

    seconds: Num
    median: Num
    stages: list[StageAt]


class CauseAnswer(Answer, kw_only=True):
    """What went on near a point, from every table.

    Attributes:
      sentences: the answer in words.
      clocks: all clocks at that moment.
      unusual: keys that left their usual range, most first.
      log: lines of the newest log near that moment.
      values: with `everything`, the newest value of each key; others: the nearest rows of the other tables.
    """

    run: str
    name: str
    seed: int | None
    status: str
    attempt: int | None
    sentences: list[str]
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
    videos: list[Media]
    samples: NearTable
    checkpoint: Checkpoints
    timings: TimingsAt | None
    text: list[TextLine]
    log_name: str | None
    log: list[LogLine]
    values: list[Row] | None = None
    others: dict[str, list[Row]] = {}


class StepAsk(OfRun, kw_only=True):
    """The next or previous row of a key."""

    at: float
    key: str
    x: str | None = None
    by: Literal[1, -1] = 1


class StepAnswer(Answer, kw_only=True):
    """Where it is; null: there is none."""

    at: Num


_LONGEST_SAMPLE, _LONGEST_TEXT = 160, 2_000


def cause(context: ServerContext, ask: OfRun) -> CauseAnswer:
    """What happened near a point."""
    row = context.row(ask.run)
    return _shown(context, row, around(of_one_run(ask, Cause), KeptRun(context, row)))


def _shown(context: ServerContext, row: RunRow, found: Surroundings) -> CauseAnswer:
    """The answer in the form of the API."""
    seed = row.about.get("seed")
    timings = found.timings
    return CauseAnswer(
        run=row.key,
        name=plain(str(row.about.get("name") or "")),
        seed=seed if type(seed) is int else None,
        status=row.status,
        attempt=found.attempt,
        sentences=[plain(sentence, None) for sentence in found.sentences()],
        x=plain(found.x),
        at=found.at,
        time=found.time,
        clocks=found.clocks,
        window=found.window,
        value=None if found.value is None else Value(**_finite(found.value)),
        unusual=[Unusual(**_finite(each)) for each in found.unusual],
        looked_at=found.looked_at,
        alerts=alerts_in(context, row, found.alerts.table, found.x),
        episodes=near_table(found.episodes),
        videos=media_of(context, row, found.media.table, found.x),
        samples=near_table(found.samples, _LONGEST_SAMPLE),
        checkpoint=Checkpoints(before=_row(found.before), after=_row(found.after)),
        timings=None
        if timings is None
        else TimingsAt(
            seconds=num(timings.seconds),
            median=None if timings.median is None else num(timings.median),
            stages=[StageAt(name=plain(each.name), seconds=each.seconds, share=each.share) for each in timings.stages],
        ),
        text=_texts(found.text),
        log_name=found.log_name,
        log=list(found.log),
        values=None if found.values is None else rows_of(found.values),
        others={name: rows_of(table) for name, table in found.others.items()},
    )


def _finite(found: Any) -> dict[str, Any]:
    """The fields of an entry in a form that JSON can hold."""
    return {name: num(cell) if isinstance(cell, float) else plain(cell) for name, cell in found._asdict().items()}


def _row(cells: dict[str, Any] | None) -> Row | None:
    return None if cells is None else {plain(name): plain(cell, 300) for name, cell in cells.items()}


def _texts(found: Near) -> list[TextLine]:
    if not found.table.num_rows:
        return []
    return [
        TextLine(
            time=float(moment),
            key=plain(str(cells.get("key") or "")),
            text=plain(str(cells.get("text") or "")[:_LONGEST_TEXT]),
            x=num(float(position)),
        )
        for cells, moment, position in zip(
            cells_of(found.table), seconds_column(found.table), found.positions, strict=True
        )
    ]


def step(context: ServerContext, ask: StepAsk) -> StepAnswer:
    """The next or previous row of a key on the axis."""
    position = next_row(KeptRun(context, context.row(ask.run)), ask.key, ask.x, ask.at, ask.by)
    return StepAnswer(at=None if position is None else num(position))


ENDPOINTS = [
    Endpoint(
        "GET", "/api/runs/{run}/cause", CauseAsk, CauseAnswer, cause, "What went on near a point, from every table"
    ),
    Endpoint("GET", "/api/runs/{run}/step", StepAsk, StepAnswer, step, "The next or previous row of a key"),
]
