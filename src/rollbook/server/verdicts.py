"""Which group is better, and what differs between groups. `rollbook.compare` computes the numbers and sentences."""

from __future__ import annotations

import math
from typing import Any

from rollbook import compare
from rollbook.errors import BadInput
from rollbook.runs.groups import mixed, plans_below, units_of
from rollbook.runs.results import score_named
from rollbook.server.catalogue import RunRow
from rollbook.server.cells import num, plain
from rollbook.server.columns import common, flat
from rollbook.server.curves import ENDED_BADLY, gathered, refined
from rollbook.server.endpoint import Endpoint
from rollbook.server.schemas.curves import CurvesAsk
from rollbook.server.schemas.edits import LeftOut
from rollbook.server.schemas.verdicts import (
    CompareAnswer,
    CompareAsk,
    CompareGroup,
    ComparePair,
    DiffAnswer,
    DiffAsk,
    DiffRow,
    PartedPair,
    PlanLook,
    PlanRow,
    PlanVerdict,
    Profile,
    SeedValue,
    StoredPlan,
)
from rollbook.server.scoring import finite_lines, place_of_scores, score_up_to
from rollbook.server.shared_state import Hall

__all__ = ["ENDPOINTS", "compared"]

_LEAST_SEEDS = 5
_LACKING = "(not set)"
_GROUP = "\0group"
"""A field that no run has: the group that the page assigned."""
_MOST_PLANS, _MOST_LOOKS = 20, 200


def compared(hall: Hall, ask: CompareAsk) -> CompareAnswer:
    """Groups of runs compared by one score."""
    groups = gathered(hall, ask.groups)
    if not groups:
        raise BadInput("groups=[]: name at least one group")
    if len(groups) > 20:
        raise BadInput(f"{len(groups)} groups; at most 20 are compared at once")
    score = score_named(ask.score, ask.key)
    lines, axis, spoilt = finite_lines(hall, groups, ask.key, ask.x)
    at, at_why = place_of_scores(groups, lines, ask.at)
    entries: list[compare.Entry] = []
    names: dict[str, RunRow] = {}
    every = [row for rows in groups.values() for row in rows]
    abouts = [{**row.about, "path": row.folder} for row in every]
    units = dict(zip((row.key for row in every), units_of(abouts), strict=True))
    label_of = {row.key: name for name, rows in groups.items() for row in rows}
    labelled = [{**about, _GROUP: label_of[row.key]} for row, about in zip(every, abouts, strict=True)]
    for name, rows in groups.items():
        for row in sorted(rows, key=lambda row: row.about.get("created") or 0.0):
            seed = row.about.get("seed")
            names[row.key] = row
            entries.append(
                compare.Entry(
                    group=name,
                    name=row.key,
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
    made = [_group(group, groups[group.label], entries, names, ask.key) for group in comparison.groups]
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
        parted=_parted(hall, groups, ask, axis) if len(groups) > 1 else [],
        plans=_plans(hall, ask.key),
    )


def _group(
    group: compare.Group, rows: list[RunRow], entries: list[compare.Entry], names: dict[str, RunRow], key: str
) -> CompareGroup:
    interval = group.interval
    why = dict.fromkeys(group.crashed, "did not finish")
    why.update(dict.fromkeys(group.running, "still running"))
    why.update(dict.fromkeys(group.without_score, "no finite value"))
    mine = [entry for entry in entries if entry.group == group.label]
    return CompareGroup(
        name=plain(group.label),
        runs=[row.key for row in rows],
        n=len(group.seeds_R),
        missing=[LeftOut(run=name, why=said) for name, said in why.items()],
        centre=_there(interval.estimate) if interval is not None else None,
        low=_there(interval.low) if interval is not None else None,
        high=_there(interval.high) if interval is not None else None,
        method=interval.method if interval is not None else "",
        claim=float(interval.claim) if interval is not None and interval.claim is not None else None,
        sentence=plain(interval.sentence(key)) if interval is not None else f"{key}: no finished run has a value.",
        seeds=[SeedValue(run=e.name, seed=e.seed, value=_there(e.score), counted=e.name in group.names) for e in mine],
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


def _parted(hall: Hall, groups: dict[str, list[RunRow]], ask: CompareAsk, axis: str) -> list[PartedPair]:
    """Along the curves that the page draws of these groups; bands play no part in it, so few draws are enough."""
    along = CurvesAsk(groups=[], keys=[], x=axis or None, statistic=ask.statistic, refine=True)
    curves = next(drawn for drawn in refined(hall, groups, ask.key, along) if not drawn.is_part).curves
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


def _plans(hall: Hall, key: str) -> list[StoredPlan]:
    stored = [plan for root in hall.catalogue.roots for plan in plans_below(root)]
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
                **{name: plain(said[name]) for name in ("a", "b", "outcome", "better", "sentence")},
                chance=_there(said["chance"]),
            )
            for said in plan["verdicts"]
        ],
        **asked,
    )


def _there(value: float | None) -> Any:
    return None if value is None or math.isnan(value) else num(float(value))


def difference(hall: Hall, ask: DiffAsk) -> DiffAnswer:
    """What differs in the configuration of groups, differences first."""
    groups = gathered(hall, ask.groups)
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
