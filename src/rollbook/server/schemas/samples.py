"""Samples: table, one over training, groups of a prompt, novelty."""

from __future__ import annotations

from typing import Literal

import msgspec

from rollbook.server.schemas.common import Answer, Cell, Column, Num, OfRun, Row, Sort

__all__ = [
    "GroupAnswer",
    "HistoryAnswer",
    "HistoryGroup",
    "HistoryPoint",
    "NoveltyAnswer",
    "NoveltyPoint",
    "OneSampleAnswer",
    "OneSampleAsk",
    "Reason",
    "SampleAxisAsk",
    "SampleRow",
    "SamplesAnswer",
    "SamplesAsk",
    "Tokens",
    "UnusedAnswer",
    "UnusedAsk",
]


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
