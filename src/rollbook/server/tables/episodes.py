"""Episodes: all of them as points and as a table; one with its traces, videos and rewards."""

from __future__ import annotations

import math
from typing import Any, Literal

import msgspec
import numpy as np
import pyarrow as pa

from rollbook.book.questions import (
    OUTCOMES,
    Episodes,
    axis_values,
    chosen_rows,
    clocks_of,
    in_time,
    numbers,
    outcomes,
    position_in_sql,
    see_episodes,
)
from rollbook.errors import UnknownKey, did_you_mean
from rollbook.server.asking import of_one_run, shape_of_one
from rollbook.server.curves.one_run import KeptRun
from rollbook.server.frames import MEDIA_TYPE, Frame
from rollbook.server.shared.catalogue import RunRow
from rollbook.server.shared.endpoint import Endpoint, Streamed
from rollbook.server.shared.rows import check_points, check_window, default_axis, shown_rows, started
from rollbook.server.shared.shapes import (
    Alert,
    Answer,
    Media,
    OfRun,
    Refused,
    Row,
    TableColumn,
    columns_of,
    plain,
    rows_of,
)
from rollbook.server.shared.sql import Locked, with_tables
from rollbook.server.shared.state import ServerContext
from rollbook.server.tables.health import alerts_of, media_of
from rollbook.system.files import pasted
from rollbook.values.array_types import NDArray

EpisodesAsk = shape_of_one(Episodes, defaults={"limit": 200})


class EpisodesAnswer(Answer, kw_only=True):
    """A window of the episodes. Rows have at least episode_id, return, length, outcome, video, traces, time, clocks."""

    total: int
    matched: int
    offset: int
    columns: list[TableColumn]
    rows: list[Row]


class ScatterAsk(OfRun, kw_only=True):
    """All episodes as points."""

    x: str | None = None
    y: str = "return"
    points: int = 20_000


class ScatterEntry(msgspec.Struct, kw_only=True):
    """The header of the scatter.

    Attributes:
      arrays: x, y, row (a number for `ids`), outcome (0 terminated, 1 truncated, 2 cut), video (0, 1).
      of: how many episodes there are; thinned: whether some are left out: the lowest and highest of each stretch stay.
    """

    x: str
    y: str
    n: int
    of: int
    thinned: bool
    arrays: dict[str, Any]


class IdsAsk(OfRun, kw_only=True):
    """The ids of some points of the scatter."""

    rows: list[int]


class IdsAnswer(Answer, kw_only=True):
    """Ids in the requested order; "" for rows that do not exist."""

    ids: list[str]


class EpisodeAsk(OfRun, kw_only=True):
    """One episode: its id, or best, worst, first, last."""

    episode: str


class Rank(msgspec.Struct, kw_only=True):
    """How many episodes returned less, how many the same (this one included), and the number of episodes."""

    lower: int
    equal: int
    of: int


class Trace(msgspec.Struct, kw_only=True):
    """A quantity of every step that was kept."""

    name: str
    group: Literal["reward", "value", "action", "observation", "info"]


class EpisodeAnswer(Answer, kw_only=True):
    """One episode with what belongs to it.

    Attributes:
      start_clocks: the readings of the clocks at its begin, if its row has them.
      replay_line: a command that shows its video.
    """

    id: str
    row: Row
    rank: Rank | None
    clocks: dict[str, int]
    start_clocks: dict[str, int]
    rewards: list[Row]
    media: list[Media]
    alerts: list[Alert]
    checkpoint: Row | None
    previous: str | None
    next: str | None
    traces: list[Trace]
    steps: int
    replay_line: str | None


class TracesAsk(EpisodeAsk, kw_only=True):
    """Which traces; all (at most 64) without."""

    names: list[str] = []


class TracesEntry(msgspec.Struct, kw_only=True):
    """The header of the traces.

    Attributes:
      t: the number of each step; arrays: by trace.
    """

    episode: str
    n: int
    t: Any
    arrays: dict[str, Any]


_SEEN = ("episodes", "media")
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


def episodes(context: ServerContext, ask: OfRun) -> EpisodesAnswer:
    """A window of the episodes."""
    question, row = of_one_run(ask, Episodes), context.row(ask.run)
    check_window(context.limits, question)
    page = chosen_rows(question, KeptRun(context, row), counted=True)
    shown = shown_rows(page.table, axis_values(page.table, default_axis(context, row), started(row)))
    for cells, scope in zip(shown, page.table["scope"].to_pylist(), strict=True):
        cells["scope"] = scope
    return EpisodesAnswer(
        total=page.total, matched=page.matched, offset=question.offset, columns=columns_of(page.table), rows=shown
    )


def scatter(context: ServerContext, ask: ScatterAsk) -> Streamed:
    """All episodes as points."""
    check_points(ask.points, 200_000)
    row = context.row(ask.run)
    x = ask.x or default_axis(context, row)
    began = started(row)

    def work(db: Locked) -> pa.Table:
        columns = see_episodes(db)
        for name in (x, ask.y):
            if name not in ("time", "relative") and name not in columns:
                raise UnknownKey(f"the episodes have no column {name!r:.80}.", did_you_mean(name, columns))
        points = (
            f"{position_in_sql(x, began, columns)} as x, {position_in_sql(ask.y, began, columns)} as y, outcome, video"
        )
        return db.table(f"select {points} from shown{in_time(columns)}")

    table = with_tables(context, row, _SEEN, "effective", work)
    xs, ys = numbers(table["x"]), numbers(table["y"])
    chosen = np.flatnonzero(np.isfinite(xs))
    thinned = len(chosen) > ask.points
    if thinned:
        chosen = _thinned(xs, ys, chosen, ask.points)
    frame = Frame()
    ends = np.array([OUTCOMES.index(word) for word in table["outcome"].to_pylist()], dtype=np.int64)
    videos = numbers(table["video"]).astype(np.int64)
    arrays = {
        "x": frame.exact(xs[chosen]),
        "y": frame.exact(ys[chosen]),
        "row": frame.counts(chosen),
        "outcome": frame.counts(ends[chosen]),
        "video": frame.counts(videos[chosen]),
    }
    entry = ScatterEntry(x=plain(x), y=plain(ask.y), n=len(chosen), of=table.num_rows, thinned=thinned, arrays=arrays)
    frame.entries.append(entry)
    return Streamed(MEDIA_TYPE, iter([frame.pack(last=True, took_ms=0.0)]))


def _thinned(xs: NDArray, ys: NDArray, chosen: NDArray, points: int) -> NDArray:
    """Fewer points along x: the lowest and highest of each interval, and some between."""
    order = chosen[np.argsort(xs[chosen], kind="stable")]
    picked: set[int] = set()
    for part in np.array_split(order, max(1, points // 4)):
        finite = part[np.isfinite(ys[part])]
        if len(finite):
            picked |= {int(finite[np.argmin(ys[finite])]), int(finite[np.argmax(ys[finite])])}
        picked |= {int(part[0]), int(part[len(part) // 2])}
    return np.array(sorted(picked), dtype=np.int64)


def shown_ids(context: ServerContext, row: RunRow) -> pa.Table:
    """episode_id, video and traces of all episodes, by time."""

    def work(db: Locked) -> pa.Table:
        columns = see_episodes(db)
        identity = "episode_id" if "episode_id" in columns else "null as episode_id"
        return db.table(f"select {identity}, video, traces from shown{in_time(columns)}")

    return with_tables(context, row, _SEEN, "effective", work)


def ids(context: ServerContext, ask: IdsAsk) -> IdsAnswer:
    """The ids of some points of the scatter."""
    if len(ask.rows) > context.limits.rows:
        raise Refused("too_large", f"{len(ask.rows):,} rows; at most {context.limits.rows:,} at once")

    def work(db: Locked) -> dict[int, str]:
        columns = db.columns["episodes"]
        if "episode_id" not in columns or not ask.rows:
            return {}
        numbered = f"select episode_id, row_number() over ({in_time(columns)}) - 1 as n from episodes"
        wanted = ", ".join(str(int(n)) for n in ask.rows)
        numbered_rows = db.table(f"select * from ({numbered}) where n in ({wanted})")
        return dict(zip(numbered_rows["n"].to_pylist(), numbered_rows["episode_id"].to_pylist(), strict=True))

    names = with_tables(context, context.row(ask.run), ["episodes"], "effective", work)
    return IdsAnswer(ids=[plain(str(names.get(n) or "")) for n in ask.rows])


def episode(context: ServerContext, ask: EpisodeAsk) -> EpisodeAnswer:
    """One episode with what belongs to it."""
    row = context.row(ask.run)
    x = default_axis(context, row)
    with context.book(row) as book:
        record = book.episode(ask.episode)
        clocks = book.clocks
        rewards, media, steps = record.rewards(), record.media(), _without(record.steps(), clocks)
        checkpoint = record.checkpoint()
        name = book.id  # seeds of a study share their name
    rank, previous, following = with_tables(
        context, row, ["episodes"], "effective", lambda db: _beside(db, record.id, record.row.get("return"))
    )
    (shown,) = rows_of(record.table, None)
    # The alerts whose evidence names this episode, and not all that were raised while it went on.
    mine = [
        alert
        for alert in alerts_of(context, row, x)
        if isinstance(alert.evidence, dict) and alert.evidence.get("episode_id") == record.id
    ]
    here = media_of(context, row, media, x)
    return EpisodeAnswer(
        id=plain(record.id),
        row={**shown, "outcome": OUTCOMES[int(outcomes(record.table)[0])]},
        rank=rank,
        clocks=clocks_of(record.row, clocks),
        start_clocks={
            clock: int(record.row[f"start_{clock}"])
            for clock in clocks
            if isinstance(record.row.get(f"start_{clock}"), int)
        },
        rewards=rows_of(rewards) if rewards.num_rows else [],
        media=here,
        alerts=mine,
        checkpoint=plain(checkpoint, 300) if checkpoint else None,
        previous=previous,
        next=following,
        traces=[Trace(name=plain(trace), group=_group(trace)) for trace in _traces(steps)],
        steps=steps.num_rows,
        replay_line=f"rollbook play {pasted(name)} --episode {pasted(str(plain(record.id)))}"
        if any(m.kind == "video" and m.there for m in here)
        else None,
    )


def _beside(db: Locked, identity: str, score: object) -> tuple[Rank | None, str | None, str | None]:
    """(how many episodes have a lower return, the previous one, the next one) of an episode."""
    columns = db.columns["episodes"]
    rank = None
    if "return" in columns and isinstance(score, (int, float)) and not math.isnan(score):
        scores = 'select try_cast("return" as double) as score from episodes'
        both = "count(*) as n, count(*) filter (score < $1) as lower, count(*) filter (score = $1) as equal"
        cells = db.table(f"select {both} from ({scores}) where not isnan(score)", [float(score)]).to_pylist()[0]
        rank = Rank(lower=int(cells["lower"]), equal=int(cells["equal"]), of=int(cells["n"]))
    if "episode_id" not in columns:
        return rank, None, None
    order = in_time(columns)
    line = f"lag(episode_id) over ({order}) as p, lead(episode_id) over ({order}) as n"
    neighbours = db.table(
        f"select p, n from (select episode_id, {line} from episodes) where episode_id = ? limit 1", [identity]
    )
    (near,) = neighbours.to_pylist() or [{"p": None, "n": None}]
    return rank, *(None if near[side] is None else plain(str(near[side])) for side in ("p", "n"))  # type: ignore[return-value]


def _without(steps: pa.Table, clocks: tuple[str, ...]) -> pa.Table:
    """The steps without clocks: these give an episode's position, not its content."""
    return steps.drop_columns([clock for clock in clocks if clock in steps.column_names])


def _traces(steps: pa.Table) -> dict[str, NDArray]:
    """Every quantity of the steps as an array; vectors as name[0], name[1], …."""
    curves: dict[str, NDArray] = {}
    for field in steps.schema:
        if field.name in _NOT_TRACES or len(curves) >= 512:
            continue
        for name, values in _arrays_of(field.name, steps[field.name].to_pylist()):
            if np.isfinite(values).any():
                curves[name] = values
    return curves


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


def traces(context: ServerContext, ask: TracesAsk) -> Streamed:
    """The traces of one episode, a number a step."""
    if len(ask.names) > _MOST_TRACES:
        raise Refused("too_large", f"{len(ask.names)} traces; at most {_MOST_TRACES} at once")
    row = context.row(ask.run)
    with context.book(row) as book:
        record = book.episode(ask.episode)
        steps = _without(record.steps(), book.clocks)
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
            f"episode {record.id!r:.60} has no trace {unknown[0]!r:.60}.", did_you_mean(unknown[0], list(known))
        )
    frame = Frame()
    numbers = steps["t"].to_pylist() if "t" in steps.column_names else list(range(steps.num_rows))
    t = frame.exact(np.array([math.nan if n is None else float(n) for n in numbers], dtype=np.float64))
    arrays = {plain(name): frame.exact(known[name]) for name in names}
    frame.entries.append(TracesEntry(episode=plain(record.id), n=steps.num_rows, t=t, arrays=arrays))
    return Streamed(MEDIA_TYPE, iter([frame.pack(last=True, took_ms=0.0)]))


ENDPOINTS = [
    Endpoint(
        "POST",
        "/api/runs/{run}/episodes",
        EpisodesAsk,
        EpisodesAnswer,
        episodes,
        "A window of the episodes",
        lane="question",
    ),
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
