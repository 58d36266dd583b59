"""Where the time goes, and what recording costs."""

from __future__ import annotations

import msgspec

from rollbook.server.schemas.common import Answer, Num, OfRun

__all__ = [
    "CostAnswer",
    "Span",
    "StageRow",
    "StagesOver",
    "StepsASecond",
    "TimelineAnswer",
    "TimelineAsk",
    "TimingsAnswer",
    "TimingsAsk",
]


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
