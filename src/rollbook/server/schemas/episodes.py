"""Episodes: scatter, table, one with its traces."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from rollbook.server.schemas.common import Alert, Answer, Column, Media, OfRun, Row, Sort

__all__ = [
    "Box",
    "EpisodeAnswer",
    "EpisodeAsk",
    "EpisodesAnswer",
    "EpisodesAsk",
    "IdsAnswer",
    "IdsAsk",
    "Rank",
    "ScatterAsk",
    "ScatterEntry",
    "Trace",
    "TracesAsk",
    "TracesEntry",
]


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
