"""Which group is better, and what differs between groups. `rollbook.compare` computes the numbers and sentences."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec
import numpy as np

from rollbook import compare
from rollbook.errors import BadInput
from rollbook.runs.groups import mixed, plans_below, units_of
from rollbook.runs.results import score_named
from rollbook.server.curves.groups import ENDED_BADLY, CurvesAsk, Group, gathered, refined, rows_of_runs
from rollbook.server.runs.columns import common, flat
from rollbook.server.runs.one_run import LeftOut
from rollbook.server.shared.catalogue import RunRow
from rollbook.server.shared.endpoint import Endpoint
from rollbook.server.shared.rows import default_axis
from rollbook.server.shared.shapes import Answer, Ask, Cell, Num, num, plain
from rollbook.server.shared.state import ServerContext, stamp_of
from rollbook.values.array_types import NDArray


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


def finite_lines(
    context: ServerContext, groups: dict[str, list[RunRow]], key: str, x: str | None
) -> tuple[dict[str, tuple[NDArray, NDArray]], str, set[str]]:
    """run -> (x, values) of its finite rows, the axis, and the runs whose last row is not finite."""
    axis = (
        x or default_axis(context, next(row for rows in groups.values() for row in rows))
        if any(groups.values())
        else ""
    )
    every = [row for rows in groups.values() for row in rows]
    stamps = {row.folder: stamp_of(row.folder) for row in every}
    read = rows_of_runs(context, every, key, axis, stamps)
    finite = {
        run: (rows_of_run.x[np.isfinite(rows_of_run.y)].astype(np.float64), rows_of_run.y[np.isfinite(rows_of_run.y)])
        for run, rows_of_run in read.items()
    }
    spoilt = {run for run, rows_of_run in read.items() if len(rows_of_run.y) and not np.isfinite(rows_of_run.y[-1])}
    return finite, axis, spoilt


def place_of_scores(
    groups: dict[str, list[RunRow]], lines: dict[str, tuple[NDArray, NDArray]], at: float | None
) -> tuple[float | None, str]:
    """The position where runs are compared: the requested one, else what every finished run has reached."""
    if at is not None:
        return at, "as chosen"
    ends = [
        float(lines[row.key][0].max())
        for rows in groups.values()
        for row in rows
        if row.key in lines and len(lines[row.key][0]) and row.status == "finished"
    ]
    if not ends:
        return None, "no run has finished; each counts as far as it has come"
    return min(ends), f"reached by all {len(ends)} finished runs"


def score_up_to(
    line: tuple[NDArray, NDArray] | None, at: float | None, score: Callable[[NDArray, NDArray], float]
) -> float | None:
    """The score of a run's values up to a position of the axis; None if it has no values there."""
    if line is None:
        return None
    x, values = line
    if at is not None:
        x, values = x[x <= at], values[x <= at]
    if not len(x):
        return None
    number = float(score(x, values))
    return number if math.isfinite(number) else None


_LEAST_SEEDS = 5
_LACKING = "(not set)"
_GROUP = "\0group"
"""A field that no run has: the group that the page assigned."""
_MOST_PLANS, _MOST_LOOKS = 20, 200


def _names(rows: Sequence[RunRow]) -> dict[str, str]:
    """Run -> what it is called: its name and seed, and its id where another run is called the same."""
    called: dict[str, str] = {}
    for row in rows:
        name = str(row.about.get("name") or row.key)
        seed = row.about.get("seed")
        called[row.key] = name if seed is None else f"{name} seed {seed}"
    often = Counter(called.values())
    return {run: name if often[name] == 1 else f"{name} ({run})" for run, name in called.items()}


def compared(context: ServerContext, ask: CompareAsk) -> CompareAnswer:
    """Groups of runs compared by one score."""
    groups = gathered(context, ask.groups)
    if not groups:
        raise BadInput("groups=[]: name at least one group")
    if len(groups) > 20:
        raise BadInput(f"{len(groups)} groups; at most 20 are compared at once")
    score = score_named(ask.score, ask.key)
    lines, axis, spoilt = finite_lines(context, groups, ask.key, ask.x)
    at, at_why = place_of_scores(groups, lines, ask.at)
    entries: list[compare.Entry] = []
    every = [row for rows in groups.values() for row in rows]
    names = _names(every)
    abouts = [{**row.about, "path": row.folder} for row in every]
    units = dict(zip((row.key for row in every), units_of(abouts), strict=True))
    label_of = {row.key: name for name, rows in groups.items() for row in rows}
    labelled = [{**about, _GROUP: label_of[row.key]} for row, about in zip(every, abouts, strict=True)]
    for name, rows in groups.items():
        for row in sorted(rows, key=lambda row: row.about.get("created") or 0.0):
            seed = row.about.get("seed")
            entries.append(
                compare.Entry(
                    group=name,
                    name=names[row.key],
                    seed=seed if isinstance(seed, int) else None,
                    task="",
                    score=score_up_to(lines.get(row.key), at, score),
                    crashed=row.status in ENDED_BADLY,
                    running=row.status == "running",
                    unit=units[row.key],
                    ends_in_nan=row.key in spoilt,
                )
            )
    comparison = compare.compare(
        entries, metric=ask.key, by="group", how=ask.score, statistic=ask.statistic, floor=ask.floor,
        notes=mixed(labelled, _GROUP, None),
    )  # fmt: skip
    run_of = {name: run for run, name in names.items()}
    made = [_group(group, groups[group.label], entries, run_of, ask) for group in comparison.groups]
    pairs = [_pair(pair) for pair in comparison.pairs]
    return CompareAnswer(
        key=ask.key,
        x=plain(axis),
        at=num(at) if at is not None else None,
        at_why=at_why,
        score=ask.score,
        statistic=comparison.statistic,
        level=0.95,
        sentence=plain(" ".join(pair.sentence for pair in pairs) if pairs else made[0].sentence),
        notes=[plain(note) for note in comparison.notes],
        groups=made,
        pairs=pairs,
        profile=Profile(
            tau=[float(t) for t in comparison.thresholds_H],
            groups={
                plain(group.label): [_there(v) for v in row]
                for group, row in zip(comparison.groups, comparison.profiles_GH, strict=True)
            },
        )
        if len(comparison.thresholds_H)
        else None,
        plan=[_plan(group) for group in comparison.groups],
        parted=_parted(context, groups, ask, axis) if len(groups) > 1 else [],
        plans=_plans(context, ask.key),
    )


def _group(
    group: compare.Group, rows: list[RunRow], entries: list[compare.Entry], run_of: dict[str, str], ask: CompareAsk
) -> CompareGroup:
    interval, key = group.interval, ask.key
    worth = {name: ask.floor for name in group.crashed if ask.floor is not None}
    why = dict.fromkeys(group.crashed, "did not finish")
    why.update(dict.fromkeys(group.running, "still running"))
    why.update(dict.fromkeys(group.without_score, "no finite value"))
    mine = [entry for entry in entries if entry.group == group.label]
    return CompareGroup(
        name=plain(group.label),
        runs=[row.key for row in rows],
        n=len(group.seeds_R),
        missing=[LeftOut(run=run_of[name], why=reason) for name, reason in why.items() if name not in group.names],
        centre=_there(interval.estimate) if interval is not None else None,
        low=_there(interval.low) if interval is not None else None,
        high=_there(interval.high) if interval is not None else None,
        method=interval.method if interval is not None else "",
        claim=float(interval.claim) if interval is not None and interval.claim is not None else None,
        sentence=plain(interval.sentence(key)) if interval is not None else f"{key}: no finished run has a value.",
        seeds=[
            SeedValue(
                run=run_of[e.name],
                seed=e.seed,
                value=_there(worth.get(e.name, e.score)),
                counted=e.name in group.names,
            )
            for e in mine
        ],
    )


def _pair(pair: compare.Pair) -> ComparePair:
    verdict = "cannot say" if math.isnan(pair.difference) else "undecided"
    if pair.better is not None:
        verdict = "better" if pair.better == pair.a else "worse"
    return ComparePair(
        a=plain(pair.a),
        b=plain(pair.b),
        verdict=verdict,  # type: ignore[arg-type]
        sentence=plain(pair.sentence()),
        difference=_there(pair.difference),
        low=None,
        high=None,
        better=_there(pair.improvement),
        evidence=_there(pair.evidence),
        decides=pair.decides,
    )


def _plan(group: compare.Group) -> PlanRow:
    scores = group.seeds_R
    n = len(scores)
    todo = f"run {_LEAST_SEEDS - n} more, then look" if n < _LEAST_SEEDS else "look after each further seed"
    return PlanRow(group=plain(group.label), n=n, sd=num(float(scores.std(ddof=1))) if n > 1 else None, todo=todo)


def _parted(context: ServerContext, groups: dict[str, list[RunRow]], ask: CompareAsk, axis: str) -> list[PartedPair]:
    """Along the curves that the page draws of these groups; bands play no part in it, so few draws are enough."""
    along = CurvesAsk(groups=[], keys=[], x=axis or None, statistic=ask.statistic, refine=True)
    curves = next(drawn for drawn in refined(context, groups, ask.key, along) if not drawn.is_part).curves
    return [
        PartedPair(
            a=plain(pair.a),
            b=plain(pair.b),
            ahead=plain(pair.ahead),
            x=_there(pair.x),
            last=_there(pair.last),
            sentence=plain(pair.sentence()),
        )
        for pair in (curves.parted() if curves is not None else ())
    ]


def _plans(context: ServerContext, key: str) -> list[StoredPlan]:
    stored = [plan for root in context.catalogue.roots for plan in plans_below(root)]
    stored.sort(key=lambda plan: plan["asked"].get("metric") != key)
    return [_stored(plan) for plan in stored[:_MOST_PLANS]]


def _stored(plan: dict[str, Any]) -> StoredPlan:
    asked = {name: plain(str(plan["asked"].get(name, ""))) for name in ("metric", "by", "score")}
    return StoredPlan(
        name=plain(plan["name"]),
        arms=[plain(arm) for arm in plan["arms"]],
        n_min=plan["n_min"],
        n_max=plan["n_max"],
        alpha=plan["alpha"],
        looks=[
            PlanLook(
                a=plain(look["pair"][0]),
                b=plain(look["pair"][1]),
                **{name: look[name] for name in ("n", "level", "outcome")},
                **{name: _there(look[name]) for name in ("difference", "low", "high")},
            )
            for look in plan["looks"][-_MOST_LOOKS:]
        ],
        verdicts=[
            PlanVerdict(
                **{name: plain(verdict[name]) for name in ("a", "b", "outcome", "better", "sentence")},
                chance=_there(verdict["chance"]),
            )
            for verdict in plan["verdicts"]
        ],
        **asked,
    )


def _there(value: float | None) -> Any:
    return None if value is None or math.isnan(value) else num(float(value))


def difference(context: ServerContext, ask: DiffAsk) -> DiffAnswer:
    """What differs in the configuration of groups, differences first."""
    groups = gathered(context, ask.groups)
    configs = {name: [flat(row.about.get("config") or {}) for row in rows] for name, rows in groups.items()}
    paths = dict.fromkeys(path for each in configs.values() for config in each for path in config)
    rows = []
    for path in paths:
        values = [
            common([config.get(path, _LACKING) for config in each]) if each else None for each in configs.values()
        ]
        rows.append(DiffRow(path=plain(path), values=values, differs=any(value != values[0] for value in values)))
    rows.sort(key=lambda row: not row.differs)
    return DiffAnswer(
        groups=[plain(name) for name in groups], rows=rows[:2_000], equal=sum(not row.differs for row in rows)
    )


ENDPOINTS = [
    Endpoint(
        "POST", "/api/compare", CompareAsk, CompareAnswer, compared, "Which group is better, and how sure that is"
    ),
    Endpoint("POST", "/api/diff", DiffAsk, DiffAnswer, difference, "What differs between the configurations of groups"),
]
