"""From a point of a curve to its cause; episodes; samples; timings."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from rollbook.server.schemas.common import Alert, Answer, Cell, Column, Media, Num, OfRun, Row, Sort

__all__ = [
    "Box",
    "CauseAnswer",
    "CauseAsk",
    "Checkpoints",
    "CostAnswer",
    "EpisodeAnswer",
    "EpisodeAsk",
    "EpisodesAnswer",
    "EpisodesAsk",
    "GroupAnswer",
    "HistoryAnswer",
    "HistoryGroup",
    "HistoryPoint",
    "IdsAnswer",
    "IdsAsk",
    "LogLine",
    "NearTable",
    "Nearest",
    "NoveltyAnswer",
    "NoveltyPoint",
    "OneSampleAnswer",
    "OneSampleAsk",
    "Rank",
    "Reason",
    "SampleAxisAsk",
    "SampleRow",
    "SamplesAnswer",
    "SamplesAsk",
    "ScatterAsk",
    "ScatterEntry",
    "Span",
    "StageAt",
    "StageRow",
    "StagesOver",
    "StepAnswer",
    "StepAsk",
    "StepsASecond",
    "TextLine",
    "TimelineAnswer",
    "TimelineAsk",
    "TimingsAnswer",
    "TimingsAsk",
    "TimingsAt",
    "Tokens",
    "Trace",
    "TracesAsk",
    "TracesEntry",
    "UnusedAnswer",
    "UnusedAsk",
    "Unusual",
    "Value",
]


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


class Nearest(msgspec.Struct, kw_only=True):
    """The nearest row of a table where none is near."""

    id: str
    x: Num
    away: Num


class NearTable(msgspec.Struct, kw_only=True):
    """Rows of a table near a point, in order.

    Attributes:
      total_in_window: how many there are; rows holds the nearest of them.
      nearest: where none is.
    """

    columns: list[Column]
    rows: list[Row]
    total_in_window: int
    nearest: Nearest | None


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


class TextLine(msgspec.Struct, kw_only=True):
    """A logged text or note."""

    time: float | None
    key: str
    text: str
    x: Num
    attempt: int | None = None


class LogLine(msgspec.Struct, kw_only=True):
    """A line of a log file.

    Attributes:
      offset: the byte that it begins at.
      time: as the line says it, or null.
    """

    offset: int
    text: str
    time: float | None


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


class Box(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A rectangle of the scatter."""

    x: str
    x0: float
    x1: float
    y: str
    y0: float
    y1: float


class EpisodesAsk(OfRun, kw_only=True):
    """Which episodes.

    Attributes:
      where: a condition in SQL, such as "return" < 0.
      outcome: how they ended; film, traces: only those that have one.
      box: only those inside a rectangle of the scatter.
    """

    where: str | None = None
    outcome: list[Literal["terminated", "truncated", "cut"]] = []
    film: bool = False
    traces: bool = False
    box: Box | None = None
    sort: list[Sort] = []
    offset: int = 0
    limit: int = 200
    attempts: Literal["effective", "all"] = "effective"


class EpisodesAnswer(Answer, kw_only=True):
    """A window of the episodes. Rows have at least episode_id, return, length, outcome, film, traces, time, clocks."""

    total: int
    matched: int
    offset: int
    columns: list[Column]
    rows: list[Row]


class ScatterAsk(OfRun, kw_only=True):
    """All episodes as points."""

    x: str | None = None
    y: str = "return"
    points: int = 20_000


class ScatterEntry(msgspec.Struct, kw_only=True):
    """The header of the scatter.

    Attributes:
      arrays: x, y, row (a number for `ids`), outcome (0 terminated, 1 truncated, 2 cut), film (0, 1).
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
    """Ids in the order asked; "" for rows that there are not."""

    ids: list[str]


class EpisodeAsk(OfRun, kw_only=True):
    """One episode: its id, or best, worst, first, last."""

    episode: str


class Rank(msgspec.Struct, kw_only=True):
    """How many episodes of how many returned less."""

    lower: int
    of: int


class Trace(msgspec.Struct, kw_only=True):
    """A quantity of every step that was kept."""

    name: str
    group: Literal["reward", "value", "action", "observation", "info"]


class EpisodeAnswer(Answer, kw_only=True):
    """One episode with what belongs to it.

    Attributes:
      start_clocks: where it began, as far as its row says.
      replay_line: a command that shows its film.
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


class SamplesAsk(OfRun, kw_only=True):
    """Which samples.

    Attributes:
      search: words that must all occur in some text of the row.
      where: a condition in SQL, such as reward > 1.
      unique: one row for each different item, its newest.
    """

    search: str | None = None
    where: str | None = None
    sort: list[Sort] = []
    offset: int = 0
    limit: int = 100
    columns: list[str] | None = None
    unique: bool = False
    attempts: Literal["effective", "all"] = "effective"


class SampleRow(msgspec.Struct, kw_only=True):
    """One sample: its name in the API, and its cells."""

    id: str
    cells: Row


class SamplesAnswer(Answer, kw_only=True):
    """A window of the samples."""

    total: int
    matched: int
    offset: int
    columns: list[Column]
    rows: list[SampleRow]


class OneSampleAsk(OfRun, kw_only=True):
    """One sample by its name in the API."""

    id: str


class Tokens(msgspec.Struct, kw_only=True):
    """A completion token by token.

    Attributes:
      text: the tokens, as texts or ids; columns: a number for each (logprob, sampler_logprob, gap, ratio, entropy …).
    """

    text: list[str]
    columns: dict[str, list[Num]]


class OneSampleAnswer(Answer, kw_only=True):
    """One sample, its texts whole."""

    id: str
    cells: Row
    group: str | None
    clocks: dict[str, int]
    tokens: Tokens | None


class GroupAnswer(Answer, kw_only=True):
    """The completions of one prompt at one moment.

    Attributes:
      right: how many have a reward above the group's mean and all alike at the top; null where that says nothing.
      mean, sd: of the rewards (population).
    """

    group: str
    prompt: str | None
    clocks: dict[str, int]
    columns: list[Column]
    rows: list[SampleRow]
    right: int | None
    mean: Num
    sd: Num


class SampleAxisAsk(OneSampleAsk, kw_only=True):
    """One sample along an axis."""

    x: str | None = None


class HistoryPoint(msgspec.Struct, kw_only=True):
    """One time that a prompt was seen."""

    id: str
    x: Num
    time: float | None
    reward: Num
    advantage: Num
    batch: int | None
    text: Cell


class HistoryGroup(msgspec.Struct, kw_only=True):
    """What a prompt scored in one batch.

    Attributes:
      all_equal: all its rewards are the same, so that it taught nothing.
    """

    x: Num
    n: int
    mean: Num
    all_equal: bool


class HistoryAnswer(Answer, kw_only=True):
    """One prompt or item over all of training."""

    item: str
    x: str
    times_seen: int
    points: list[HistoryPoint]
    groups: list[HistoryGroup]
    truncated: bool


class NoveltyPoint(msgspec.Struct, kw_only=True):
    """How much was new in a stretch."""

    x: Num
    rows: int
    new: int
    repeated: int
    share_new: Num


class NoveltyAnswer(Answer, kw_only=True):
    """New and repeated samples over training."""

    x: str
    points: list[NoveltyPoint]


class UnusedAsk(OfRun, kw_only=True):
    """What was not trained on, at a point of the axis; the newest without."""

    x: str | None = None
    at: float | None = None


class Reason(msgspec.Struct, kw_only=True):
    """Groups of one fate."""

    reason: str
    groups: int
    rows: int
    ids: list[str]


class UnusedAnswer(Answer, kw_only=True):
    """What became of the groups of one batch."""

    x: str
    at: Num
    groups: int
    reasons: list[Reason]


class TimingsAsk(OfRun, kw_only=True):
    """Where the time goes."""

    x: str | None = None
    points: int = 80
    start: float | None = None
    stop: float | None = None


class StageRow(msgspec.Struct, kw_only=True):
    """A stage.

    Attributes:
      own: seconds without the stages inside of it; share: of all time told.
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
    """What rollbook itself cost the run, as far as it says so."""

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
    metrics: dict[str, Num]
