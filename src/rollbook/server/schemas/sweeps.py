"""The settings of a sweep beside its scores."""

from __future__ import annotations

from typing import Literal

import msgspec

from rollbook.server.schemas.common import Answer, Ask, Cell, Num

__all__ = ["SweepAnswer", "SweepAsk", "SweepProject", "SweepSetting", "TriedConfiguration", "TriedSeed"]


class SweepAsk(Ask, kw_only=True):
    """Which setting goes along with a score.

    Attributes:
      project: of which runs; "": the one with most configurations.
      key: the metric; "": the one that tells most.
      at: up to where on the axis; null: what every finished run has reached.
      filter, search: as of the table of runs.
    """

    project: str = ""
    key: str = ""
    at: float | None = None
    score: str = "mean of the last 10%"
    filter: str | None = None
    search: str | None = None


class SweepProject(msgspec.Struct, kw_only=True):
    """Runs that were started for one question."""

    project: str
    runs: int
    configurations: int


class TriedSeed(msgspec.Struct, kw_only=True):
    """A run that counts, and its score."""

    run: str
    seed: int | None
    value: Num


class TriedConfiguration(msgspec.Struct, kw_only=True):
    """A configuration; values stand in the order of the settings.

    Attributes:
      name: as the table of runs calls it; group: the row that it has there.
      may_be_best: whether the seeds leave it open that this is the best.
      crashed, running, without_score: runs that do not count.
    """

    name: str
    group: str
    runs: list[str]
    values: list[Cell]
    mean: Num
    std: Num
    may_be_best: bool
    seeds: list[TriedSeed]
    crashed: int
    running: int
    without_score: int


class SweepSetting(msgspec.Struct, kw_only=True):
    """A setting that varies, the most important first.

    Attributes:
      column: as in the table of runs; together: those that always change with it.
      share: of the variance of the scores that goes along with it; null where nothing can be said, and `why` says why.
      low, high: over other seeds, 90 %.
    """

    column: str
    together: list[str]
    share: Num
    low: Num
    high: Num
    levels: int
    why: str


class SweepAnswer(Answer, kw_only=True):
    """A sweep: the answer first, then what it rests on.

    Attributes:
      seeds: the share of the variance between seeds of one configuration.
      chance: the share that the first setting reaches in 5 % of sweeps where none matters.
      configurations: the best first.
    """

    project: str
    projects: list[SweepProject]
    key: str
    keys: list[str]
    x: str
    at: Num
    at_why: str
    score: str
    better: Literal["higher", "lower"]
    sentence: str
    todo: str
    notes: list[str]
    seeds: Num
    chance: Num
    settings: list[SweepSetting]
    configurations: list[TriedConfiguration]
    left_out: int
