"""The comparison of groups, its plan, and what differs between runs."""

from __future__ import annotations

from typing import Literal

import msgspec

from rollbook.server.schemas.common import Answer, Ask, Cell, Num
from rollbook.server.schemas.curves import Group
from rollbook.server.schemas.edits import LeftOut

__all__ = [
    "CompareAnswer",
    "CompareAsk",
    "CompareGroup",
    "ComparePair",
    "DiffAnswer",
    "DiffAsk",
    "DiffRow",
    "PlanRow",
    "Profile",
    "SeedValue",
]


class CompareAsk(Ask, kw_only=True):
    """Which group is better.

    Attributes:
      at: up to where on the axis; null: what every finished run has reached.
      score: how a run's values up to there become one number: "mean of the last 10%", "last", "max" …
      floor: what a run that crashed is worth; null: it is left out, and said.
    """

    groups: list[Group]
    key: str
    x: str | None = None
    at: float | None = None
    score: str = "mean of the last 10%"
    statistic: Literal["iqm", "mean", "median"] = "iqm"
    floor: float | None = None


class SeedValue(msgspec.Struct, kw_only=True):
    """What one run scores; counted: whether that is among the scores (runs that go on or crashed are not)."""

    run: str
    seed: int | None
    value: Num
    counted: bool


class CompareGroup(msgspec.Struct, kw_only=True):
    """What a group scores."""

    name: str
    runs: list[str]
    n: int
    missing: list[LeftOut]
    centre: Num
    low: Num
    high: Num
    method: str
    claim: float | None
    sentence: str
    seeds: list[SeedValue]


class ComparePair(msgspec.Struct, kw_only=True):
    """One group beside another.

    Attributes:
      verdict: of a against b.
      difference: of the statistic, a - b; low, high: its repeated interval where there is a plan.
      better: the probability that a run of a scores better than one of b.
      evidence: against "neither usually scores better"; may be looked at any time; `decides` is how much decides.
    """

    a: str
    b: str
    verdict: Literal["better", "worse", "same", "undecided", "cannot say"]
    sentence: str
    difference: Num
    low: Num
    high: Num
    better: Num
    evidence: Num
    decides: float


class Profile(msgspec.Struct, kw_only=True):
    """The share of runs above a score, by group."""

    tau: list[float]
    groups: dict[str, list[Num]]


class PlanRow(msgspec.Struct, kw_only=True):
    """Whether a group has enough seeds."""

    group: str
    n: int
    sd: Num
    todo: str


class PartedPair(msgspec.Struct, kw_only=True):
    """From where on two groups stay apart at each point; x: null where they do not."""

    a: str
    b: str
    ahead: str | None
    x: Num
    last: Num
    sentence: str


class PlanLook(msgspec.Struct, kw_only=True):
    """One look of a plan at a pair; difference: of the means, a - b, with its repeated interval."""

    a: str
    b: str
    n: int
    level: float
    difference: Num
    low: Num
    high: Num
    outcome: str


class PlanVerdict(msgspec.Struct, kw_only=True):
    """What a plan says of a pair now; chance: that its end decides, if things go on as they are."""

    a: str
    b: str
    outcome: str
    better: str | None
    chance: Num
    sentence: str


class StoredPlan(msgspec.Struct, kw_only=True):
    """A comparison that was planned beforehand and is kept beside the runs."""

    name: str
    metric: str
    by: str
    score: str
    arms: list[str]
    n_min: int
    n_max: int
    alpha: float
    looks: list[PlanLook]
    verdicts: list[PlanVerdict]


class CompareAnswer(Answer, kw_only=True):
    """The comparison of groups: a sentence first, then what it rests on.

    Attributes:
      parted: of each pair of groups, along the axis.
      plans: those kept beside the runs, of this metric first.
    """

    key: str
    x: str
    at: Num
    at_why: str
    score: str
    statistic: str
    level: float
    sentence: str
    notes: list[str]
    groups: list[CompareGroup]
    pairs: list[ComparePair]
    profile: Profile | None
    plan: list[PlanRow]
    parted: list[PartedPair] = []
    plans: list[StoredPlan] = []


class DiffAsk(Ask, kw_only=True):
    """Of which groups."""

    groups: list[Group]


class DiffRow(msgspec.Struct, kw_only=True):
    """A field of the configuration in each group; {distinct, values} where it differs inside."""

    path: str
    values: list[Cell]
    differs: bool


class DiffAnswer(Answer, kw_only=True):
    """What differs between the groups, differences first."""

    groups: list[str]
    rows: list[DiffRow]
    equal: int
