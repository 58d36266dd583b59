"""Where the time goes: stages over training, as a timeline, and rollbook's own cost."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rollbook.book.stages import own_seconds
from rollbook.server.catalogue import RunRow
from rollbook.server.cells import num, plain
from rollbook.server.endpoint import Endpoint
from rollbook.server.hall import Hall
from rollbook.server.refusals import Refused
from rollbook.server.rows import axis_values, default_axis, numbers, seconds_column, table_of
from rollbook.server.schemas.points import (
    CostAnswer,
    Span,
    StageRow,
    StagesOver,
    StepsASecond,
    TimelineAnswer,
    TimelineAsk,
    TimingsAnswer,
    TimingsAsk,
)
from rollbook.server.schemas.runs import RunAsk
from rollbook.server.series import check_points, check_range, started
from rollbook.storage.columns import to_numpy

__all__ = ["ENDPOINTS"]

NDArray = npt.NDArray[Any]

_MOST_STAGES = 200
_MOST_SPANS = 20_000


def _columns(table: pa.Table) -> tuple[list[str], NDArray, NDArray]:
    """(names of stages, the number of the name of each row, its seconds)."""
    names: dict[str, int] = {}
    if not table.num_rows:
        return [], np.zeros(0, dtype=np.int64), np.zeros(0)
    coded = table["name"].combine_chunks().dictionary_encode()
    coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
    words = [str(word) for word in coded.dictionary.to_pylist()]
    names = {word: n for n, word in enumerate(words)}
    places = to_numpy(coded.indices)[0].astype(np.int64)
    seconds = numbers(table["seconds"])
    return list(names), places, np.nan_to_num(seconds, nan=0.0, posinf=0.0, neginf=0.0)


def timings(hall: Hall, ask: TimingsAsk) -> TimingsAnswer:
    """Stages, and how they changed over training."""
    check_points(ask.points, 2_000)
    check_range(ask.start, ask.stop)
    row = hall.row(ask.run)
    x = ask.x or default_axis(hall, row)
    table = table_of(hall, row, "timings")
    names, stage, seconds = _columns(table)
    places = axis_values(table, x, started(row)) if table.num_rows else np.zeros(0)
    inside = np.isfinite(places)
    inside &= (places >= (-math.inf if ask.start is None else ask.start)) & (
        places < (math.inf if ask.stop is None else ask.stop)
    )
    counted = inside if ask.start is not None or ask.stop is not None else np.ones(len(places), dtype=bool)
    totals = {name: float(seconds[counted & (stage == n)].sum()) for n, name in enumerate(names)}
    own = dict(zip(names, own_seconds(names, np.array(list(totals.values()))).tolist(), strict=True))
    whole = sum(own.values())
    stages = []
    for n, name in enumerate(names[:_MOST_STAGES]):
        mine = seconds[counted & (stage == n)]
        if not len(mine):
            continue
        stages.append(
            StageRow(
                name=plain(name),
                depth=name.count("/"),
                total=totals[name],
                own=own[name],
                share=own[name] / whole if whole else 0.0,
                median=num(float(np.median(mine))),
                p99=num(float(np.quantile(mine, 0.99))),
                calls=len(mine),
            )
        )
    stages.sort(key=lambda entry: -entry.own)
    return TimingsAnswer(
        x=plain(x),
        stages=stages,
        over=_over(names[:_MOST_STAGES], stage[inside], seconds[inside], places[inside], ask.points),
        steps_per_second=_speed(hall, row, x, ask),
    )


def _over(names: list[str], stage: NDArray, seconds: NDArray, places: NDArray, points: int) -> StagesOver:
    if not len(places):
        return StagesOver(x=[], width=0.0, seconds={}, other=None)
    low, high = float(places.min()), float(places.max())
    width = (high - low) / points or 1.0
    stretch = np.clip(((places - low) / width).astype(np.int64), 0, points - 1)
    used = np.flatnonzero(np.bincount(stretch, minlength=points))
    sums = [np.bincount(stretch[stage == n], weights=seconds[stage == n], minlength=points) for n in range(len(names))]
    own = own_seconds(names, np.array(sums))
    return StagesOver(
        x=[low + (n + 0.5) * width for n in used.tolist()],
        width=width,
        seconds={plain(name): total[used].tolist() for name, total in zip(names, own, strict=True)},
        other=None,
    )


def _speed(hall: Hall, row: RunRow, x: str, ask: TimingsAsk) -> StepsASecond:
    """Readings of the axis a second, from the times of the rows that know it."""
    empty = StepsASecond(now=None, x=[], y=[])
    facts = hall.facts.now(row)
    if x in ("time", "relative") or not facts.latest:
        return empty
    key = next((key for key in facts.latest if not key.startswith(("host/", "rollbook/"))), None)
    if key is None:
        return empty
    with hall.book(row) as book:
        table = book.metrics([key], x=x, start=ask.start, stop=ask.stop)
    places, times = axis_values(table, x, 0.0), seconds_column(table)
    if len(places) < 2:
        return empty
    chosen = np.unique(np.linspace(0, len(places) - 1, ask.points + 1).astype(np.int64))
    dx, dt = np.diff(places[chosen]), np.diff(times[chosen])
    good = (dt > 0) & (dx > 0)
    speed = dx[good] / dt[good]
    middle = ((places[chosen][1:] + places[chosen][:-1]) / 2)[good]
    return StepsASecond(now=num(float(speed[-1])) if len(speed) else None, x=middle.tolist(), y=speed.tolist())


def timeline(hall: Hall, ask: TimelineAsk) -> TimelineAnswer:
    """Stages as they followed each other in wall time."""
    if not 1 <= ask.pixels <= 10_000:
        raise Refused("too_large", f"pixels={ask.pixels}: 1 to 10,000")
    check_range(ask.since, ask.until)
    row = hall.row(ask.run)
    table = table_of(hall, row, "timings")
    if not table.num_rows:
        return TimelineAnswer(since=None, until=None, first=None, last=None, names=[], lanes=[], spans=[])
    names, stage, seconds = _columns(table)
    ends = seconds_column(table)
    begins = ends - seconds
    first, last = float(begins.min()), float(ends.max())
    since, until = _stretch(begins, ends, ask)
    writers = table["writer"].to_pylist() if "writer" in table.column_names else [""] * table.num_rows
    lanes = {writer: n for n, writer in enumerate(dict.fromkeys(writers))}
    pixel = (until - since) / ask.pixels
    depth = np.array([name.count("/") for name in names], dtype=np.int64)
    seen = np.flatnonzero((ends > since) & (begins < until))
    spans: list[Span] = []
    short: dict[tuple[int, int, int, int], Span] = {}
    for n in seen[np.argsort(begins[seen], kind="stable")].tolist():
        lane, number = lanes[writers[n]], int(stage[n])
        begin, end = float(begins[n]), float(ends[n])
        span = Span(lane=lane, depth=int(depth[number]), name=number, start=begin, end=end, merged=1)
        if end - begin < pixel:
            place = (lane, span.depth, number, int((begin - since) / pixel) if pixel > 0 else 0)
            known = short.get(place)
            if known is not None:
                known.end, known.merged = max(known.end, end), known.merged + 1
                continue
            short[place] = span
        spans.append(span)
        if len(spans) >= _MOST_SPANS:
            break
    return TimelineAnswer(
        since=since,
        until=until,
        first=first,
        last=last,
        names=[plain(n) for n in names],
        lanes=[plain(str(w)) for w in lanes],
        spans=spans,
    )


def _stretch(begins: NDArray, ends: NDArray, ask: TimelineAsk) -> tuple[float, float]:
    """The stretch that was asked for; without, the last rows of the run that make a picture."""
    last = float(ends.max())
    until = last if ask.until is None else ask.until
    if ask.since is not None:
        return ask.since, max(until, ask.since + 1e-6)
    recent = np.sort(begins[ends <= until])[-200:]
    since = float(recent[0]) if len(recent) else until - 1.0
    return since, max(until, since + 1e-6)


def cost(hall: Hall, ask: RunAsk) -> CostAnswer:
    """What rollbook itself cost the run, as far as the run says so."""
    row = hall.row(ask.run)
    facts = hall.facts.now(row)
    own = {key: value for key, value in facts.latest.items() if key.startswith("rollbook/")}
    with hall.book(row) as book:
        drops, created, ended = dict(book.info.get("drops") or {}), book.info.get("created"), book.info.get("ended")
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
