"""Where the time goes: stages over training, as a timeline, and rollbook's own cost."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from rollbook.book.questions import SECONDS, Over, Stages, axis_values, check_range, chosen_stages, over, seconds_column
from rollbook.server.asking import of_one_run, shape_of_one
from rollbook.server.curves.one_run import KeptRun
from rollbook.server.shared.catalogue import RunRow
from rollbook.server.shared.endpoint import Endpoint
from rollbook.server.shared.shapes import Answer, Num, OfRun, Refused, RunAsk, num, plain
from rollbook.server.shared.sql import Locked, with_tables
from rollbook.server.shared.state import ServerContext

_STRETCHES = 80
TimingsAsk = shape_of_one(Stages, defaults={"stretches": _STRETCHES})


class StageRow(msgspec.Struct, kw_only=True):
    """A stage.

    Attributes:
      own: seconds without the stages inside of it; share: `own` as a share of all timed seconds.
    """

    name: str
    depth: int
    total: float
    own: float
    share: float
    median: Num
    p99: Num
    calls: int


class StagesOver(msgspec.Struct, kw_only=True):
    """Seconds of each stage (its own) per stretch of the axis."""

    x: list[Num]
    width: float
    seconds: dict[str, list[float]]
    other: list[float] | None


class StepsASecond(msgspec.Struct, kw_only=True):
    """Readings of the axis per second of wall time."""

    now: Num
    x: list[Num]
    y: list[Num]


class TimingsAnswer(Answer, kw_only=True):
    """Where the time goes: stages, and how that changed."""

    x: str
    stages: list[StageRow]
    over: StagesOver
    steps_per_second: StepsASecond


class TimelineAsk(OfRun, kw_only=True):
    """A stretch of wall time; the last seconds without."""

    since: float | None = None
    until: float | None = None
    pixels: int = 1_200


class Span(msgspec.Struct, kw_only=True, array_like=True):
    """[lane, depth, number of the name, start, end, how many short ones it stands for]."""

    lane: int
    depth: int
    name: int
    start: float
    end: float
    merged: int


class TimelineAnswer(Answer, kw_only=True):
    """Stages as they followed each other.

    Attributes:
      first, last: of the whole run.
    """

    since: float | None
    until: float | None
    first: float | None
    last: float | None
    names: list[str]
    lanes: list[str]
    spans: list[Span]


class CostAnswer(Answer, kw_only=True):
    """What rollbook itself cost the run, as far as it was measured; reports: what is known of each cause of drops."""

    seconds: Num
    share: Num
    log_median_us: Num
    log_p99_us: Num
    keeper_seconds: Num
    keeper_bytes: Num
    rows: int
    refused: int
    lost: int
    bytes: int
    drops: dict[str, int]
    reports: dict[str, str]
    metrics: dict[str, Num]


_MOST_STAGES, _MOST_STRETCHES = 200, 2_000
_MOST_SPANS = 20_000


def timings(context: ServerContext, ask: Any) -> TimingsAnswer:
    """Stages, and how they changed over training."""
    question, row = of_one_run(ask, Stages), context.row(ask.run)
    if question.stretches > _MOST_STRETCHES:
        raise Refused("too_large", f"stretches={question.stretches:,}; at most {_MOST_STRETCHES:,}")
    page = chosen_stages(question, KeptRun(context, row))
    stages = page.table.slice(0, _MOST_STAGES).to_pylist()
    spent = over(stages) if question.stretches else Over([], 0.0, {})
    own = {plain(name): seconds for name, seconds in spent.own.items()}
    return TimingsAnswer(
        x=plain(page.x),
        stages=[_stage_row(stage) for stage in stages],
        over=StagesOver(x=list(spent.x), width=spent.width, seconds=own, other=None),
        steps_per_second=_speed(context, row, page.x, question),
    )


def _stage_row(stage: Mapping[str, Any]) -> StageRow:
    return StageRow(
        name=plain(stage["name"]),
        depth=stage["name"].count("/"),
        total=stage["seconds"],
        own=stage["own"],
        share=stage["share"],
        median=num(stage["median"]),
        p99=num(stage["p99"]),
        calls=stage["calls"],
    )


def _speed(context: ServerContext, row: RunRow, x: str, ask: Stages) -> StepsASecond:
    """Readings of the axis a second, from the times of the rows that have it."""
    empty = StepsASecond(now=None, x=[], y=[])
    facts = context.facts.now(row)
    if x in ("time", "relative") or not facts.latest:
        return empty
    key = next((key for key in facts.latest if not key.startswith(("host/", "rollbook/"))), None)
    if key is None:
        return empty
    with context.book(row) as book:
        table = book.metrics([key], x=x, start=ask.start, stop=ask.stop)
    positions, times = axis_values(table, x, 0.0), seconds_column(table)
    if len(positions) < 2:
        return empty
    chosen = np.unique(np.linspace(0, len(positions) - 1, (ask.stretches or _STRETCHES) + 1).astype(np.int64))
    dx, dt = np.diff(positions[chosen]), np.diff(times[chosen])
    good = (dt > 0) & (dx > 0)
    speed = dx[good] / dt[good]
    middle = ((positions[chosen][1:] + positions[chosen][:-1]) / 2)[good]
    return StepsASecond(now=num(float(speed[-1])) if len(speed) else None, x=middle.tolist(), y=speed.tolist())


def timeline(context: ServerContext, ask: TimelineAsk) -> TimelineAnswer:
    """Stages in the order of wall time."""
    if not 1 <= ask.pixels <= 10_000:
        raise Refused("too_large", f"pixels={ask.pixels}: 1 to 10,000")
    check_range(ask.since, ask.until)
    row = context.row(ask.run)
    return with_tables(context, row, ["timings"], "effective", lambda db: _timeline(db, ask))


def _timeline(db: Locked, ask: TimelineAsk) -> TimelineAnswer:
    names = _see_spans(db)
    if not names:
        return TimelineAnswer(since=None, until=None, first=None, last=None, names=[], lanes=[], spans=[])
    ends = db.table("select min(begin) as first, max(stop) as last from spent").to_pylist()[0]
    lanes = [
        str(w) for w in db.table("select lane from spent group by lane order by min(stop), lane")["lane"].to_pylist()
    ]
    since, until = _stretch(db, float(ends["last"]), ask)
    pixel = (until - since) / ask.pixels
    # stages shorter than a pixel are drawn together with others of their kind in that pixel
    short = f"stop - begin < {pixel!r}"
    together = f"case when {short} then cast(floor((begin - {since!r}) / {pixel!r}) as bigint) else -n end"
    seen = "select *, row_number() over () as n from spent where stop > ? and begin < ?"
    spans = "min(begin) as begin, max(stop) as stop, count(*) as merged"
    groups = f"group by lane, stage, {together} order by begin limit {_MOST_SPANS}"
    spans_of_lane = db.table(f"select lane, stage, {spans} from ({seen}) {groups}", [since, until])
    lane_of, name_of = {lane: n for n, lane in enumerate(lanes)}, {name: n for n, name in enumerate(names)}
    return TimelineAnswer(
        since=since,
        until=until,
        first=float(ends["first"]),
        last=float(ends["last"]),
        names=[plain(n) for n in names],
        lanes=[plain(w) for w in lanes],
        spans=[
            Span(
                lane=lane_of[str(cells["lane"])],
                depth=str(cells["stage"]).count("/"),
                name=name_of[str(cells["stage"])],
                start=float(cells["begin"]),
                end=float(cells["stop"]),
                merged=int(cells["merged"]),
            )
            for cells in spans_of_lane.to_pylist()
        ],
    )


def _see_spans(db: Locked) -> list[str]:
    """Create the view `spent` of the timings: stage, seconds, begin, stop, lane. Returns the stages in order of
    appearance."""
    columns = db.columns["timings"]
    if "name" not in columns:
        return []
    lane = "writer" if "writer" in columns else "''"
    cells = f"cast(name as varchar) as stage, {SECONDS} as seconds, epoch_us(time) / 1e6 as stop, {lane} as lane"
    db.view("spent", f"select *, stop - seconds as begin from (select {cells} from timings)")
    stages = db.table("select stage from spent group by stage order by min(begin), stage")
    return [str(name) for name in stages["stage"].to_pylist()]


def _stretch(db: Locked, last: float, ask: TimelineAsk) -> tuple[float, float]:
    """The requested range; by default, the last rows of the run that fill a picture."""
    until = last if ask.until is None else ask.until
    if ask.since is not None:
        return ask.since, max(until, ask.since + 1e-6)
    recent = "select begin from spent where stop <= ? order by begin desc limit 200"
    since = db.table(f"select min(begin) as since from ({recent})", [until])["since"][0].as_py()
    since = until - 1.0 if since is None else float(since)
    return since, max(until, since + 1e-6)


def cost(context: ServerContext, ask: RunAsk) -> CostAnswer:
    """rollbook's own cost in the run, as far as it is recorded."""
    row = context.row(ask.run)
    facts = context.facts.now(row)
    own = {key: value for key, value in facts.latest.items() if key.startswith("rollbook/")}
    with context.book(row) as book:
        drops, created, ended = dict(book.info.drops), book.info.created, book.info.ended
        reports = book.info.reports or {}
        rows = book.files.read(["metrics"], lambda pieces: sum(piece.rows for piece in pieces["metrics"]))
    spent = _first(own, "rollbook/seconds", "rollbook/log_seconds")
    lasted = (ended or facts.heard or created or 0) - (created or 0)
    return CostAnswer(
        seconds=num(spent),
        share=num(spent / lasted) if spent is not None and lasted > 0 else None,
        log_median_us=num(_first(own, "rollbook/microseconds_per_row", "rollbook/log_us", "rollbook/log_median_us")),
        log_p99_us=num(_first(own, "rollbook/log_p99_us")),
        keeper_seconds=num(_first(own, "rollbook/keeper_cpu_seconds", "rollbook/keeper_seconds")),
        keeper_bytes=num(_first(own, "rollbook/keeper_bytes", "rollbook/keeper_rss")),
        rows=int(rows),
        refused=sum(n for cause, n in drops.items() if type(n) is int and "lost" not in cause),
        lost=sum(n for cause, n in drops.items() if type(n) is int and "lost" in cause),
        bytes=_bytes(row.folder),
        drops={plain(str(cause)): n for cause, n in drops.items() if type(n) is int},
        reports={plain(cause): plain(words) for cause, words in reports.items() if cause in drops},
        metrics={plain(key): num(value) for key, value in own.items()},
    )


def _first(values: dict[str, Any], *names: str) -> float | None:
    return next((float(values[name]) for name in names if isinstance(values.get(name), (int, float))), None)


def _bytes(folder: str) -> int:
    total = 0
    for here, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not os.path.islink(os.path.join(here, name))]
        for name in names:
            try:
                total += os.lstat(os.path.join(here, name)).st_size
            except OSError:
                continue
    return total


ENDPOINTS = [
    Endpoint(
        "GET",
        "/api/runs/{run}/timings",
        TimingsAsk,
        TimingsAnswer,
        timings,
        "Where the time goes: stages over training",
    ),
    Endpoint(
        "GET", "/api/runs/{run}/timeline", TimelineAsk, TimelineAnswer, timeline, "Stages as they followed each other"
    ),
    Endpoint("GET", "/api/runs/{run}/cost", RunAsk, CostAnswer, cost, "What rollbook itself cost the run"),
]
