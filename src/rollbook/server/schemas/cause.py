"""From a point of a curve to its cause."""

from __future__ import annotations

from typing import Literal

import msgspec

from rollbook.server.schemas.common import Alert, Answer, Column, Media, Num, OfRun, Row
from rollbook.server.schemas.logs import LogLine, TextLine

__all__ = [
    "CauseAnswer",
    "CauseAsk",
    "Checkpoints",
    "NearTable",
    "Nearest",
    "StageAt",
    "StepAnswer",
    "StepAsk",
    "TimingsAt",
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
