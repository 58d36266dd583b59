"""From scores of runs to a comparison of their groups."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from rollbook import stats
from rollbook.compare.comparison import Comparison, ScoreEnd
from rollbook.compare.facts import Fact
from rollbook.compare.facts_of_runs import (
    differing_ends,
    differing_leaders,
    groups_apart,
    missing_runs,
    none_finished,
    on_other_axes,
    same_curves,
    unlike_counts,
)
from rollbook.compare.group_curve import Floats
from rollbook.compare.group_scores import group_of, with_interval
from rollbook.compare.scales import scale_of
from rollbook.compare.scores import Entry, Group, Pair
from rollbook.compare.seeding import generator
from rollbook.errors import BadInput, UnknownOption, did_you_mean
from rollbook.schema.aliases import lower_is_better
from rollbook.stats import Plan, Study, Verdict
from rollbook.system.texts import amount

_PROFILE_POINTS = 201
_PLANNED = 22
"""Seeds of each group at the end of a plan, if none is named."""


def centre(scores: Sequence[float]) -> float:
    """What `compare` shows of one group, without an interval: the IQM of its scores."""
    return float(stats.iqm(scores))


def compare(
    entries: Sequence[Entry],
    *,
    metric: str,
    by: str,
    how: str,
    normalise: object = None,
    statistic: str | None = None,
    study: Study | None = None,
    planned: bool = False,
    seeds: int | None = None,
    delta: float | None = None,
    floor: float | None = None,
    direction: str | None = None,
    against: str | None = None,
    paired: bool = False,
    seed: int = 0,
    facts: Iterable[Fact] = (),
    end: ScoreEnd | None = None,
    environments: Mapping[str, str] | None = None,
) -> Comparison:
    """Compare groups of runs by one score; see `RunSet.compare`.

    Args:
      entries: the runs, in the order in which they started.
      metric: the key that was measured, for the words of the result.
      by, how: the field that forms the groups, and how a run's metric became one number; for the words of the result.
      normalise, statistic: as in `RunSet.compare`.
      study: the looks so far, and the plan, if `planned`; None: this is the first.
      planned: whether there is a plan: without `study`, make one now.
      seeds: of a new plan: those of each group at its end.
      delta: the largest difference of means that would not matter; floor: the score of crashed runs.
      direction: whether "higher" or "lower" is better. None: the name of the metric decides
        (`aliases.lower_is_better`); after `normalise` higher is better.
      against: the one group that each other one is compared with; None: each with each.
      paired: whether equal seeds are compared with each other.
      seed: of resampling and splits.
      facts: further facts for the reader.
      end: where on the axis the scores end; None: each run's own end, on an axis without a name.
      environments: label of each group -> its environment. Groups of different ones are in no pair, and the pairs of
        each share the error by themselves. None: all pairs.
    Raises:
      BadInput: no run has a score; groups, floor, delta, statistic or direction differ from the plan's.
      UnknownOption: `direction` has another value.
    """
    if direction not in (None, "higher", "lower"):
        raise UnknownOption(f'direction={direction!r}: it has to be "higher" or "lower" (is better)')
    if not planned or study is None:
        lower = direction == "lower" or (direction is None and normalise is None and lower_is_better(metric))
        options = Plan(delta=delta, floor=floor, lower_is_better=lower, against=against, paired=paired, note=metric)
    else:  # a plan was made for one question: its own options hold
        asked = {"delta": delta, "floor": floor, "against": against, "seeds": seeds, "paired": paired or None}
        _same_question(study.plan, direction, asked)
        options = study.plan
    if not any(entry.score is not None for entry in entries):
        raise BadInput(f"compare({metric!r}): none of {amount(len(entries), 'run')} has a finite value of it")
    statistic, end = statistic or "iqm", end or ScoreEnd()
    given = entries
    entries, labels = _of_this_metric(given)
    tasks = tuple(dict.fromkeys(entry.task for entry in entries))
    if options.against is not None and options.against not in labels:
        raise UnknownOption(
            f"compare(against={options.against!r}): there is no such group.",
            did_you_mean(options.against, list(labels)),
        )
    # The scores of each group with its interval, and what is missing in it.
    scale, of_scale = scale_of(tasks, normalise, [entry.score for entry in entries if entry.score is not None])
    groups = [
        with_interval(
            group_of(
                [entry for entry in entries if entry.group == label],
                label,
                tasks,
                scale,
                options.floor,
                lower_is_better=options.lower_is_better,
            ),
            statistic,
            seed,
        )
        for label in labels
    ]
    unfinished = none_finished(entries, end)
    missing = [] if unfinished else [fact for group in groups for fact in missing_runs(group, options.floor, entries)]
    apart = groups_apart(entries, labels)
    # One look at all pairs: verdicts allow for the looks before it.
    if study is None or not planned:
        arms = labels if planned and len(labels) > 1 else ()
        plan = replace(options, seeds=(seeds or _PLANNED) if planned else None, arms=arms)
        study = Study(plan, study.looks if study is not None else ())
    if len(groups) > 1 or study.plan.arms:
        study = _looked(study, groups, tasks, scale, apart, environments)
    pairs = _pairs(study, groups, statistic, seed, environments)
    # The facts in the order in which readers see them.
    facts = [*facts, *on_other_axes(given, end.axis)]
    facts += [*_without_score(given, labels, facts), *of_scale, *unfinished, *missing, *apart.values()]
    if len(groups) == 1:
        alone = len({entry.group for entry in given}) == 1
        facts.append(Fact("one group", groups[0].label, values={"by": by, "alone": alone}))
    facts += [*differing_ends(entries, end), *unlike_counts(entries, labels, how), *same_curves(entries, pairs)]
    if not planned:
        facts += differing_leaders(entries, pairs, end, tasks, scale, options.floor)
    pooled = np.concatenate([group.scores_RT[~np.isnan(group.scores_RT)] for group in groups])
    thresholds = _thresholds(pooled)
    return Comparison(
        metric=metric,
        by=by,
        how=how,
        tasks=tasks,
        statistic=statistic,
        groups=tuple(groups),
        pairs=pairs,
        thresholds_H=thresholds,
        profiles_GH=_profiles(groups, len(tasks), thresholds, options.lower_is_better),
        study=study,
        facts=tuple(facts),
        lower_is_better=options.lower_is_better,
        normalised=normalise is not None,
        end=end,
        entries=tuple(entries),
    )


def _of_this_metric(entries: Sequence[Entry]) -> tuple[list[Entry], tuple[str, ...]]:
    """The runs and the labels of the groups of which a run has the metric, or may have had it at its end."""
    known = {
        entry.group
        for entry in entries
        if entry.crashed or entry.running or entry.stopped or entry.never or entry.score is not None
    }
    of_metric = [entry for entry in entries if entry.group in known]
    return of_metric, tuple(dict.fromkeys(entry.group for entry in of_metric))


def _without_score(entries: Sequence[Entry], labels: Sequence[str], facts: Iterable[Fact]) -> list[Fact]:
    """The groups that are left out because no run of them has the metric, unless it is on another axis."""
    explained = {fact.group for fact in facts if fact.kind == "on another axis"}
    runs_of = Counter(entry.group for entry in entries if entry.group not in {*labels, *explained})
    return [Fact("groups without score", values={"runs_of": dict(runs_of)})] if runs_of else []


def _looked(
    study: Study,
    groups: Sequence[Group],
    tasks: Sequence[str],
    scale: Mapping[str, tuple[float, float]],
    apart: Container[tuple[str, str]],
    environments: Mapping[str, str] | None,
) -> Study:
    """The study after a look at the pairs with a common point of the axis; those of an environment share the error."""
    floor, floors = study.plan.floor, None
    if floor is not None and scale:
        floors = [(floor - scale[task][0]) / (scale[task][1] - scale[task][0]) for task in tasks]
    found: list[Verdict] = []
    for family in _families(study.plan.pairs([group.label for group in groups]), environments):
        study = study.look(
            {group.label: group.judged_RT for group in groups},
            seeds={group.label: group.judged_seeds for group in groups},
            floors=floors,
            common_scale=bool(scale),
            pairs=[(a, b) for a, b in family if (a, b) not in apart and (b, a) not in apart],
        )
        found += study.verdicts
    return replace(study, verdicts=tuple(found))


def _pairs(
    study: Study, groups: Sequence[Group], statistic: str, seed: int, environments: Mapping[str, str] | None
) -> tuple[Pair, ...]:
    """The pairs of one environment, with the verdicts of the study."""
    plan, verdicts = study.plan, {frozenset((v.a, v.b)): v for v in study.verdicts}
    of_label = {group.label: group for group in groups}
    shown = [
        pair
        for family in _families([*itertools.combinations(of_label, 2)], environments)
        for pair in family
        if plan.against in (None, *pair)
    ]
    of_difference = seed if len(shown) <= MOST_DIFFERENCES and not plan.paired else None
    return tuple(
        _pair(
            of_label[a],
            of_label[b],
            verdicts.get(frozenset((a, b))),
            statistic,
            plan.lower_is_better,
            of_difference,
        )
        for a, b in shown
    )


def _families(pairs: Sequence[tuple[str, str]], environments: Mapping[str, str] | None) -> list[list[tuple[str, str]]]:
    """Pairs of groups by environment, without those of two different ones; all in one without environments."""
    if environments is None:
        return [[*pairs]]
    families: dict[str, list[tuple[str, str]]] = {}
    for a, b in pairs:
        if environments[a] == environments[b]:
            families.setdefault(environments[a], []).append((a, b))
    return [*families.values()]


def _profiles(groups: Sequence[Group], tasks: int, thresholds: Floats, lower: bool) -> Floats:
    """[groups, thresholds]: the share of a group's scores that are better than a threshold; NaN without scores."""
    better = -1.0 if lower else 1.0
    profiles = np.full((len(groups), len(thresholds)), np.nan)
    for row, group in enumerate(groups):
        complete = stats.complete_seeds(group.scores_RT)[0]
        if len(complete):
            scores = group.seeds_R if tasks == 1 else complete
            profiles[row] = stats.performance_profile(better * scores, better * thresholds)
    return profiles


def _same_question(plan: Plan, direction: str | None, asked: Mapping[str, object]) -> None:
    """Raise if the request differs from the plan's question."""
    made_for = {name: getattr(plan, name) for name in asked}
    made_for["direction"] = "lower" if plan.lower_is_better else "higher"
    for name, value in {**asked, "direction": direction}.items():
        if value is not None and value != made_for[name]:
            raise BadInput(
                f"compare({name}={value!r}): this plan was made with {name}={made_for[name]!r}, and a plan is fixed at "
                f"its first look.",
                f"Leave {name} out, or make a new plan for seeds that were not looked at",
            )


def _thresholds(scores: Floats) -> Floats:
    """Thresholds from just below the lowest score (all scores are above it) to just above the highest."""
    if not len(scores):
        return np.zeros(0)
    low, high = float(scores.min()), float(scores.max())
    beyond = 0.02 * ((high - low) or abs(high) or 1.0)
    return np.linspace(low - beyond, high + beyond, _PROFILE_POINTS)


MOST_DIFFERENCES = 10
"""With up to this many pairs the interval of each difference is computed: more would not be read. With 3 or 4 seeds it
is the interval of the difference of means."""


def _pair(a: Group, b: Group, verdict: Verdict | None, statistic: str, lower: bool, seed: int | None = None) -> Pair:
    """`seed`: of the resamples of the interval of the difference; None: without one."""
    reason = "" if verdict is not None else "measured at no common point of the axis"
    complete_a, complete_b = stats.complete_seeds(a.scores_RT)[0], stats.complete_seeds(b.scores_RT)[0]
    if verdict is None or not len(complete_a) or not len(complete_b):
        return Pair(a.label, b.label, math.nan, math.nan, verdict, reason, statistic, lower)
    higher = float(stats.probability_of_improvement(complete_a, complete_b))
    difference = float(stats.aggregate(statistic, complete_a) - stats.aggregate(statistic, complete_b))
    interval = None
    if seed is not None and statistic != "median":
        rng = generator(seed, f"{a.label} {b.label}")
        few = 3 <= min(len(complete_a), len(complete_b)) < 5 and complete_a.shape[1] < 5  # no IQM of them has one
        interval = stats.difference(complete_a, complete_b, "mean" if few else statistic, rng=rng)
    return Pair(
        a.label, b.label, difference, 1 - higher if lower else higher, verdict, reason, statistic, lower, interval
    )
