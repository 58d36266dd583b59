"""Episodes: all of them as points and as a table; one with its traces, films and rewards."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rollbook.book.expressions import condition
from rollbook.errors import UnknownKey
from rollbook.server.alerts import alerts_of, media_of
from rollbook.server.catalogue import RunRow
from rollbook.server.cells import columns_of, plain, rows_of
from rollbook.server.endpoint import Endpoint, Streamed
from rollbook.server.frames import MEDIA_TYPE, Frame
from rollbook.server.hall import Hall
from rollbook.server.locked_sql import Locked, order_by
from rollbook.server.refusals import Refused
from rollbook.server.rows import axis_values, clocks_of, default_axis, shown_rows, table_of
from rollbook.server.schemas.points import (
    EpisodeAnswer,
    EpisodeAsk,
    EpisodesAnswer,
    EpisodesAsk,
    IdsAnswer,
    IdsAsk,
    Rank,
    ScatterAsk,
    ScatterEntry,
    Trace,
    TracesAsk,
    TracesEntry,
)
from rollbook.server.series import check_points, started
from rollbook.storage.columns import from_numpy, strings, take_table

__all__ = ["ENDPOINTS", "outcomes", "with_outcome"]

NDArray = npt.NDArray[Any]

_OUTCOMES = ("terminated", "truncated", "cut")
_MOST_TRACES = 64
_NOT_TRACES = {
    "time",
    "scope",
    "at",
    "attempt",
    "writer",
    "lane",
    "seq",
    "index",
    "episode_id",
    "t",
    "agent",
    "terminated",
    "truncated",
}
_GROUPS = (
    ("reward", "reward"),
    ("value", "value"),
    ("advantage", "value"),
    ("action", "action"),
    ("obs", "observation"),
)


def outcomes(table: pa.Table) -> NDArray:
    """How each episode ended: 0 terminated, 1 truncated, 2 cut short."""
    n = table.num_rows
    ended = [
        table[name].to_pylist() if name in table.column_names else [None] * n for name in ("terminated", "truncated")
    ]
    complete = table["complete"].to_pylist() if "complete" in table.column_names else [None] * n
    return np.array(
        [2 if whole is False or not (a or b) else 0 if a else 1 for a, b, whole in zip(*ended, complete, strict=True)],
        dtype=np.int64,
    )


def with_outcome(hall: Hall, row: RunRow, attempts: str = "effective") -> pa.Table:
    """The episodes of a run with how they ended, whether they were filmed, and whether their steps were kept."""
    table = table_of(hall, row, "episodes", attempts)
    ends = outcomes(table)
    films = _filmed(hall, row)
    ids = table["episode_id"].to_pylist() if "episode_id" in table.column_names else [None] * table.num_rows
    kept = table["steps_kept"].to_pylist() if "steps_kept" in table.column_names else [None] * table.num_rows
    for name, cells in (
        ("outcome", strings([_OUTCOMES[end] for end in ends])),
        ("film", from_numpy(np.array([identity in films for identity in ids], dtype=bool))),
        ("traces", from_numpy(np.array([bool(cell) for cell in kept], dtype=bool))),
    ):
        if name in table.column_names:
            table = table.drop_columns([name])
        table = table.append_column(name, cells)
    return table


def _filmed(hall: Hall, row: RunRow) -> set[str]:
    media = table_of(hall, row, "media")
    if "episode_id" not in media.column_names or not media.num_rows:
        return set()
    both = media.select(["episode_id", "kind"]).to_pylist()
    return {str(cells["episode_id"]) for cells in both if cells["kind"] == "video" and cells["episode_id"]}


def episodes(hall: Hall, ask: EpisodesAsk) -> EpisodesAnswer:
    """A window of the episodes."""
    if not 0 <= ask.limit <= hall.limits.rows or ask.offset < 0:
        raise Refused(
            "too_large", f"offset={ask.offset}, limit={ask.limit}: a window has 0 to {hall.limits.rows:,} rows"
        )
    row = hall.row(ask.run)
    table = with_outcome(hall, row, ask.attempts)
    total = table.num_rows
    if ask.box is not None:
        xs, ys = axis_values(table, ask.box.x, started(row)), axis_values(table, ask.box.y, started(row))
        inside = (xs >= ask.box.x0) & (xs <= ask.box.x1) & (ys >= ask.box.y0) & (ys <= ask.box.y1)
        table = take_table(table, np.flatnonzero(inside))
    conditions = []
    if ask.outcome:
        conditions.append("outcome in (" + ", ".join(f"'{word}'" for word in ask.outcome) + ")")
    conditions += [name for name, wanted in (("film", ask.film), ("traces", ask.traces)) if wanted]
    if ask.where and ask.where.strip():
        conditions.append(condition(ask.where).text)
    order = order_by(ask.sort, table.column_names) or " order by time desc"
    with Locked(hall.limits, {"episodes": table}) as db:
        where = f" where {' and '.join(conditions)}" if conditions else ""
        matched = int(db.table(f"select count(*) as n from episodes{where}")["n"][0].as_py())
        found = db.table(f"select * from episodes{where}{order} limit {ask.limit} offset {ask.offset}")
    places = axis_values(found, default_axis(hall, row), started(row))
    shown = shown_rows(found, places)
    return EpisodesAnswer(total=total, matched=matched, offset=ask.offset, columns=columns_of(found), rows=shown)


def scatter(hall: Hall, ask: ScatterAsk) -> Streamed:
    """All episodes as points."""
    check_points(ask.points, 200_000)
    row = hall.row(ask.run)
    table = with_outcome(hall, row)
    x = ask.x or default_axis(hall, row)
    for name in (x, ask.y):
        if name not in ("time", "relative") and name not in table.column_names:
            raise UnknownKey(
                f"the episodes have no column {name!r:.80}. Available: {', '.join(sorted(table.column_names))[:400]}"
            )
    xs, ys = axis_values(table, x, started(row)), axis_values(table, ask.y, started(row))
    chosen = np.flatnonzero(np.isfinite(xs))
    thinned = len(chosen) > ask.points
    if thinned:
        chosen = _thinned(xs, ys, chosen, ask.points)
    frame = Frame()
    ends = np.array([_OUTCOMES.index(word) for word in table["outcome"].to_pylist()], dtype=np.int64)
    films = np.array(table["film"].to_pylist(), dtype=np.int64)
    arrays = {
        "x": frame.exact(xs[chosen]),
        "y": frame.exact(ys[chosen]),
        "row": frame.counts(chosen),
        "outcome": frame.counts(ends[chosen]),
        "film": frame.counts(films[chosen]),
    }
    entry = ScatterEntry(x=plain(x), y=plain(ask.y), n=len(chosen), of=table.num_rows, thinned=thinned, arrays=arrays)
    frame.entries.append(entry)
    return Streamed(MEDIA_TYPE, iter([frame.pack(last=True, took_ms=0.0)]))


def _thinned(xs: NDArray, ys: NDArray, chosen: NDArray, points: int) -> NDArray:
    """Fewer points along x: of each stretch its lowest and highest, and some between."""
    order = chosen[np.argsort(xs[chosen], kind="stable")]
    kept: set[int] = set()
    for part in np.array_split(order, max(1, points // 4)):
        finite = part[np.isfinite(ys[part])]
        if len(finite):
            kept |= {int(finite[np.argmin(ys[finite])]), int(finite[np.argmax(ys[finite])])}
        kept |= {int(part[0]), int(part[len(part) // 2])}
    return np.array(sorted(kept), dtype=np.int64)


def ids(hall: Hall, ask: IdsAsk) -> IdsAnswer:
    """The ids of some points of the scatter."""
    if len(ask.rows) > hall.limits.rows:
        raise Refused("too_large", f"{len(ask.rows):,} rows; at most {hall.limits.rows:,} at once")
    table = table_of(hall, hall.row(ask.run), "episodes")
    known = table["episode_id"] if "episode_id" in table.column_names else None
    return IdsAnswer(
        ids=[
            plain(str(known[n].as_py() or "")) if known is not None and 0 <= n < table.num_rows else ""
            for n in ask.rows
        ]
    )


def episode(hall: Hall, ask: EpisodeAsk) -> EpisodeAnswer:
    """One episode with what belongs to it."""
    row = hall.row(ask.run)
    x = default_axis(hall, row)
    with hall.book(row) as book:
        found = book.episode(ask.episode)
        clocks = book.clocks
        rewards, media, steps = found.rewards(), found.media(), _without(found.steps(), clocks)
        checkpoint = found.checkpoint()
        name = f"{book.project}/{book.name}"
    table = table_of(hall, row, "episodes")
    known = [str(cell) for cell in table["episode_id"].to_pylist()] if "episode_id" in table.column_names else []
    place = known.index(found.id) if found.id in known else None
    (shown,) = rows_of(found.table, None)
    mine = [
        alert
        for alert in alerts_of(hall, row, x)
        if isinstance(alert.evidence, dict) and alert.evidence.get("episode_id") == found.id
    ]
    here = media_of(hall, row, media, x)
    return EpisodeAnswer(
        id=plain(found.id),
        row={**shown, "outcome": _OUTCOMES[int(outcomes(found.table)[0])]},
        rank=_rank(table, found.row.get("return")),
        clocks=clocks_of(found.row, clocks),
        start_clocks={
            clock: int(found.row[f"start_{clock}"])
            for clock in clocks
            if isinstance(found.row.get(f"start_{clock}"), int)
        },
        rewards=rows_of(rewards) if rewards.num_rows else [],
        media=here,
        alerts=mine,
        checkpoint=plain(checkpoint, 300) if checkpoint else None,
        previous=known[place - 1] if place else None,
        next=known[place + 1] if place is not None and place + 1 < len(known) else None,
        traces=[Trace(name=plain(trace), group=_group(trace)) for trace in _traces(steps)],
        steps=steps.num_rows,
        replay_line=f"rollbook play {name} --episode {plain(found.id)}"
        if any(m.kind == "video" and m.there for m in here)
        else None,
    )


def _rank(table: pa.Table, score: Any) -> Rank | None:
    if "return" not in table.column_names or not isinstance(score, (int, float)) or math.isnan(score):
        return None
    others = [cell for cell in table["return"].to_pylist() if isinstance(cell, (int, float)) and not math.isnan(cell)]
    return Rank(lower=sum(cell < score for cell in others), of=len(others))


def _without(steps: pa.Table, clocks: tuple[str, ...]) -> pa.Table:
    """The steps without clocks: they say where an episode stands, not what happened in it."""
    return steps.drop_columns([clock for clock in clocks if clock in steps.column_names])


def _traces(steps: pa.Table) -> dict[str, NDArray]:
    """Every quantity of the steps as an array; vectors as name[0], name[1], …."""
    found: dict[str, NDArray] = {}
    for field in steps.schema:
        if field.name in _NOT_TRACES or len(found) >= 512:
            continue
        for name, values in _arrays_of(field.name, steps[field.name].to_pylist()):
            if np.isfinite(values).any():
                found[name] = values
    return found


def _arrays_of(name: str, cells: list[Any]) -> list[tuple[str, NDArray]]:
    first = next((cell for cell in cells if cell is not None), None)
    if isinstance(first, (bool, int, float)):
        return [(name, np.array([math.nan if c is None else float(c) for c in cells], dtype=np.float64))]
    if isinstance(first, list) and first and len(first) <= 64 and all(isinstance(c, (int, float)) for c in first):
        width = len(first)
        rows = [
            [math.nan if v is None else float(v) for v in c]
            if isinstance(c, list) and len(c) == width
            else [math.nan] * width
            for c in cells
        ]
        block = np.array(rows, dtype=np.float64)
        return [(f"{name}[{i}]", block[:, i]) for i in range(width)]
    return []


def _group(name: str) -> Any:
    for word, group in _GROUPS:
        if name.startswith(word):
            return group
    return "info"


def traces(hall: Hall, ask: TracesAsk) -> Streamed:
    """The traces of one episode, a number a step."""
    if len(ask.names) > _MOST_TRACES:
        raise Refused("too_large", f"{len(ask.names)} traces; at most {_MOST_TRACES} at once")
    row = hall.row(ask.run)
    with hall.book(row) as book:
        found = book.episode(ask.episode)
        steps = _without(found.steps(), book.clocks)
    known = _traces(steps)
    names = (
        ask.names
        or sorted(
            known,
            key=lambda name: (
                [group for _, group in _GROUPS].index(_group(name)) if _group(name) != "info" else 9,
                name,
            ),
        )[:_MOST_TRACES]
    )
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UnknownKey(
            f"episode {found.id!r:.60} has no trace {unknown[0]!r:.60}. Available: {', '.join(sorted(known))[:400]}"
        )
    frame = Frame()
    numbers = steps["t"].to_pylist() if "t" in steps.column_names else list(range(steps.num_rows))
    t = frame.exact(np.array([math.nan if n is None else float(n) for n in numbers], dtype=np.float64))
    arrays = {plain(name): frame.exact(known[name]) for name in names}
    frame.entries.append(TracesEntry(episode=plain(found.id), n=steps.num_rows, t=t, arrays=arrays))
    return Streamed(MEDIA_TYPE, iter([frame.pack(last=True, took_ms=0.0)]))


ENDPOINTS = [
    Endpoint("POST", "/api/runs/{run}/episodes", EpisodesAsk, EpisodesAnswer, episodes, "A window of the episodes"),
    Endpoint(
        "GET",
        "/api/runs/{run}/scatter",
        ScatterAsk,
        MEDIA_TYPE,
        scatter,
        "All episodes as points",
        entries=ScatterEntry,
    ),
    Endpoint("GET", "/api/runs/{run}/episode-ids", IdsAsk, IdsAnswer, ids, "The ids of some points of the scatter"),
    Endpoint(
        "GET",
        "/api/runs/{run}/episodes/{episode}",
        EpisodeAsk,
        EpisodeAnswer,
        episode,
        "One episode with what belongs to it",
    ),
    Endpoint(
        "GET",
        "/api/runs/{run}/episodes/{episode}/traces",
        TracesAsk,
        MEDIA_TYPE,
        traces,
        "The traces of one episode",
        entries=TracesEntry,
    ),
]
