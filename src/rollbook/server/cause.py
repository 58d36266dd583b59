"""From a point of a curve to its cause: what every table holds near that step."""

from __future__ import annotations

import math
import os

import numpy as np

from rollbook.errors import BadInput, RollbookError
from rollbook.ground.arrow import take_table
from rollbook.ground.stages import own_seconds
from rollbook.server.alerts import alerts_of, media_of
from rollbook.server.catalogue import RunRow
from rollbook.server.cells import cells_of, num, plain
from rollbook.server.endpoint import Endpoint
from rollbook.server.episodes import with_outcome
from rollbook.server.logs import lines_near, log_files
from rollbook.server.metrics_around import Around
from rollbook.server.rows import (
    axis_values,
    default_axis,
    near,
    rows_near,
    seconds_column,
    shown_rows,
    table_of,
)
from rollbook.server.samples import near_samples
from rollbook.server.schemas.cause import CauseAnswer, CauseAsk, Checkpoints, StageAt, StepAnswer, StepAsk, TimingsAt
from rollbook.server.schemas.common import Media, Row
from rollbook.server.schemas.logs import LogLine, TextLine
from rollbook.server.series import started
from rollbook.server.shared_state import Hall

__all__ = ["ENDPOINTS", "cause"]

_LOG_LINES = 12
_TEXTS = 8


def cause(hall: Hall, ask: CauseAsk) -> CauseAnswer:
    """What happened near a point."""
    if not 1 <= ask.rows <= 100:
        raise BadInput(f"rows={ask.rows}: 1 to 100")
    if not math.isfinite(ask.at) or (ask.window is not None and not 0 <= ask.window < math.inf):
        raise BadInput("at and window are finite numbers")
    row = hall.row(ask.run)
    x = ask.x or default_axis(hall, row)
    began = started(row)
    around = Around(hall, row, x, ask.at, ask.key)
    clock, place, moment = around.clock, around.place, around.moment
    window = ask.window if ask.window is not None and clock == x else around.usual_window()
    value = around.value()
    unusual, looked_at = around.unusual()
    table, total = rows_near(hall, row, "episodes", clock, place, window, began)
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
        alerts=[a for a in alerts_of(hall, row, clock) if isinstance(a.x, float) and abs(a.x - place) <= window],
        episodes=episodes,
        films=_films(hall, row, clock, place, window, shown_ids, began),
        samples=near_samples(hall, row, clock, place, window, ask.rows),
        checkpoint=_checkpoints(hall, row, clock, place, began),
        timings=_timings(hall, row, moment.time),
        text=_texts(hall, row, clock, place, window, began),
        log_name=log_name,
        log=log,
    )


def _films(hall: Hall, row: RunRow, clock: str, at: float, window: float, ids: set[str], began: float) -> list[Media]:
    """Films of the episodes shown, and pictures near the point."""
    table, _ = rows_near(hall, row, "media", clock, at, window, began)
    if not table.num_rows:
        return []
    places = axis_values(table, clock, began)
    own = table["episode_id"].to_pylist() if "episode_id" in table.column_names else [None] * table.num_rows
    chosen = [n for n in range(table.num_rows) if str(own[n]) in ids or abs(places[n] - at) <= window]
    chosen.sort(key=lambda n: abs(places[n] - at) if math.isfinite(places[n]) else math.inf)
    return media_of(hall, row, take_table(table, np.array(chosen[:6], dtype=np.int64)), clock)


def _checkpoints(hall: Hall, row: RunRow, clock: str, at: float, began: float) -> Checkpoints:
    table = table_of(hall, row, "checkpoints")
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


def _timings(hall: Hall, row: RunRow, moment: float | None) -> TimingsAt | None:
    """Where the time went around a moment, compared with a usual interval of that length."""
    if moment is None:
        return None
    table, _ = rows_near(hall, row, "timings", "time", moment, 0.0, 0.0)
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


def _texts(hall: Hall, row: RunRow, clock: str, at: float, window: float, began: float) -> list[TextLine]:
    table, _ = rows_near(hall, row, "text", clock, at, window, began)
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


def step(hall: Hall, ask: StepAsk) -> StepAnswer:
    """The next or previous row of a key on the axis."""
    row = hall.row(ask.run)
    x = ask.x or default_axis(hall, row)
    shift = started(row) if x == "relative" else 0.0
    axis, at = ("time", ask.at + shift) if x == "relative" else (x, ask.at)
    reach = 1.0
    with hall.book(row) as book:
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
