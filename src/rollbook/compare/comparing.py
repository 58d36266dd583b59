"""From scores of runs to a comparison of their groups."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from rollbook import stats
from rollbook.compare.comparison import Comparison, ScoreEnd
from rollbook.compare.facts import Fact
from rollbook.compare.group_curve import Floats
from rollbook.compare.scales import no_common_point, scale_of
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
    lower = direction == "lower" or (direction is None and normalise is None and lower_is_better(metric))
    # A plan was made for one question; its own options hold.
    if study is not None and planned:
        asked = {"delta": delta, "floor": floor, "against": against, "seeds": seeds, "paired": paired or None}
        _same_question(study.plan, direction, asked)
        floor, lower, delta = study.plan.floor, study.plan.lower_is_better, study.plan.delta
        against, paired = study.plan.against, study.plan.paired
    # Groups without any run of this metric are left out, and named.
    statistic = statistic or "iqm"
    if not any(entry.score is not None for entry in entries):
        raise BadInput(f"compare({metric!r}): none of {amount(len(entries), 'run')} has a finite value of it")
    known = {
        entry.group
        for entry in entries
        if entry.crashed or entry.running or entry.stopped or entry.never or entry.score is not None
    }
    end = end or ScoreEnd()
    facts = [*facts, *_on_other_axes(entries, end.axis)]
    elsewhere = {fact.group for fact in facts if fact.kind == "on another axis"}
    others = Counter(entry.group for entry in entries if entry.group not in known | elsewhere)
    if others:
        facts.append(Fact("groups without score", values={"runs_of": dict(others)}))
    alone = len({entry.group for entry in entries}) == 1
    labels = tuple(dict.fromkeys(entry.group for entry in entries if entry.group in known))
    entries = [entry for entry in entries if entry.group in known]
    tasks = tuple(dict.fromkeys(entry.task for entry in entries))
    # The scores of each group, its interval, and what is missing in it.
    scale, of_scale = scale_of(tasks, normalise, [entry.score for entry in entries if entry.score is not None])
    facts += of_scale
    groups = [_group([e for e in entries if e.group == label], label, tasks, scale, floor, lower) for label in labels]
    groups = [_with_interval(group, statistic, seed) for group in groups]
    none_finished = _none_finished(entries, end)
    facts += none_finished
    for group in groups if not none_finished else ():
        facts += _who_is_missing(group, floor, entries)
    apart = _apart(entries, labels)
    facts += apart.values()
    if against is not None and against not in labels:
        raise UnknownOption(
            f"compare(against={against!r}): there is no such group.", did_you_mean(against, list(labels))
        )
    # One look at all pairs: verdicts allow for the looks before it.
    if study is None or not planned:
        plan = Plan(
            seeds=(seeds or _PLANNED) if planned else None,
            arms=labels if planned and len(labels) > 1 else (),
            against=against,
            delta=delta,
            floor=floor,
            lower_is_better=lower,
            paired=paired,
            note=metric,
        )
        study = Study(plan, study.looks if study is not None else ())
    if len(groups) > 1 or study.plan.arms:
        floors = (
            None if floor is None or not scale else [(floor - scale[t][0]) / (scale[t][1] - scale[t][0]) for t in tasks]
        )
        found: list[Verdict] = []
        for family in _families(study.plan.pairs(labels), environments):
            study = study.look(
                {group.label: group.judged_RT for group in groups},
                seeds={group.label: group.judged_seeds for group in groups},
                floors=floors,
                common_scale=bool(scale),
                pairs=[(a, b) for a, b in family if (a, b) not in apart and (b, a) not in apart],
            )
            found += study.verdicts
        study = replace(study, verdicts=tuple(found))
    verdicts = {frozenset((v.a, v.b)): v for v in study.verdicts}
    of_label = {group.label: group for group in groups}
    beside = [
        pair
        for family in _families([*itertools.combinations(of_label, 2)], environments)
        for pair in family
        if against in (None, *pair)
    ]
    of_difference = seed if len(beside) <= MOST_DIFFERENCES and not paired else None
    pairs = tuple(
        _pair(of_label[a], of_label[b], verdicts.get(frozenset((a, b))), statistic, lower, of_difference)
        for a, b in beside
    )
    # What readers should know besides, and the profiles.
    if len(groups) == 1:
        facts.append(Fact("one group", groups[0].label, values={"by": by, "alone": alone}))
    facts += _ends(entries, end)
    facts += _best_of_unlike_counts(entries, labels, how)
    facts += _of_same_curves(entries, pairs)
    if not planned:
        facts += _leaders(entries, pairs, end, tasks, scale, floor)
    pooled = np.concatenate([group.scores_RT[~np.isnan(group.scores_RT)] for group in groups])
    thresholds = _thresholds(pooled)
    profiles = _profiles(groups, len(tasks), thresholds, lower)
    return Comparison(
        metric=metric,
        by=by,
        how=how,
        tasks=tasks,
        statistic=statistic,
        groups=tuple(groups),
        pairs=pairs,
        thresholds_H=thresholds,
        profiles_GH=profiles,
        study=study,
        facts=tuple(facts),
        lower_is_better=lower,
        normalised=normalise is not None,
        end=end,
        entries=tuple(entries),
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


def _apart(entries: Sequence[Entry], labels: Sequence[str]) -> dict[tuple[str, str], Fact]:
    """Pairs of groups without a common point of the axis."""
    spans: dict[str, tuple[str, float, float]] = {}
    for entry in entries:
        if entry.span is not None:
            axis, first, last = entry.span
            _, low, high = spans.get(entry.group, entry.span)
            spans[entry.group] = (axis, min(low, first), max(high, last))
    facts = {}
    for a, b in itertools.combinations([label for label in labels if label in spans], 2):
        (axis, low_a, high_a), (other_axis, low_b, high_b) = spans[a], spans[b]
        if axis == other_axis and (high_a < low_b or high_b < low_a):
            facts[a, b] = no_common_point(a, (low_a, high_a), b, (low_b, high_b), axis)
    return facts


def _thresholds(scores: Floats) -> Floats:
    """Thresholds from just below the lowest score (all scores are above it) to just above the highest."""
    if not len(scores):
        return np.zeros(0)
    low, high = float(scores.min()), float(scores.max())
    beyond = 0.02 * ((high - low) or abs(high) or 1.0)
    return np.linspace(low - beyond, high + beyond, _PROFILE_POINTS)


def _group(
    entries: Sequence[Entry],
    label: str,
    tasks: tuple[str, ...],
    scale: Mapping[str, tuple[float, float]],
    floor: float | None,
    lower: bool = False,
) -> Group:
    rows: dict[object, list[list[float]]] = {}
    failed: dict[object, set[int]] = {}  # unit -> tasks in which it crashed, or never reached the level
    names: dict[object, str] = {}
    seeds: dict[object, int | None] = {}
    same: dict[object, str] = {}  # unit and task -> what its runs have in common
    crashed, without_score, again, ends_in_nan, copies = [], [], [], [], []
    with_rows: dict[tuple[str, str], int | None] = {}  # task and rows -> the seed that had them first
    crashed_of: dict[object, list[str]] = {}  # unit -> its runs that crashed
    # Which runs repeat the configuration, seed and code of an earlier one.
    first_of: dict[str, str] = {}
    for entry in entries:
        if entry.unit and first_of.setdefault(f"{entry.unit} {entry.task}", entry.name) != entry.name:
            again.append(entry.name)
    running = [entry.name for entry in entries if entry.running]
    # If a seed was run again after a failure, the finished run counts.
    finished = {
        (e.unit, e.task)
        for e in entries
        if e.unit and not (e.crashed or e.running or e.stopped or e.unfinished or e.score is None)
    }
    # One row of scores for each unit, with a column for each task.
    for n, entry in enumerate(entries):
        score = entry.score
        if (
            entry.running
            or entry.stopped
            or ((entry.crashed or entry.unfinished) and (entry.unit, entry.task) in finished)
        ):
            continue
        if entry.rows_digest and not entry.crashed:
            first = with_rows.setdefault((entry.task, entry.rows_digest), entry.seed)
            if first is not None and entry.seed is not None and first != entry.seed:
                copies.append(entry.name)
                continue
        if entry.crashed:
            crashed.append(entry.name)
            score = floor
        elif score is None:
            without_score.append(entry.name)
        elif entry.ends_in_nan:
            ends_in_nan.append(entry.name)
        if score is None and not entry.crashed and not entry.never:
            continue
        # Over several tasks a seed is one unit. With one task, or without a seed, each run (or set of repeats) is one.
        name = first_of.get(f"{entry.unit} {entry.task}", entry.name)
        unit: object = name
        if len(tasks) > 1 and entry.seed is not None:
            unit = name = f"seed {entry.seed}"
            if (unit, entry.task) in same and not (entry.unit and same[unit, entry.task] == entry.unit):
                unit = (unit, n)  # the same seed and task of another configuration
        same[unit, entry.task] = entry.unit
        seeds[unit] = entry.seed
        task = tasks.index(entry.task)
        failed.setdefault(unit, set()).update({task} if entry.crashed or entry.never else ())
        if entry.crashed:
            crashed_of.setdefault(unit, []).append(entry.name)
        if score is None:
            continue
        if entry.task in scale:
            zero, one = scale[entry.task]
            score = (score - zero) / (one - zero)
        names[unit] = name
        rows.setdefault(unit, [[] for _ in tasks])[task].append(float(score))
    # A verdict counts units that failed, too: as worse than every score.
    scores = _means(rows, rows, tasks)
    judged = _means(failed, rows, tasks)
    for at, cells in enumerate(failed.values()):
        judged[at, list(cells)] = math.inf if lower else -math.inf
    has_all_tasks: list[bool] = np.logical_not(np.isnan(judged).any(axis=1)).tolist()
    complete = list(zip(failed, has_all_tasks, strict=True))
    return Group(
        label=label,
        scores_RT=scores,
        names=tuple(names[unit] for unit in rows),
        interval=None,
        crashed=tuple(crashed),
        running=tuple(running),
        without_score=tuple(without_score),
        again=tuple(again),
        ends_in_nan=tuple(ends_in_nan),
        seeds=tuple(seeds[unit] for unit in rows),
        judged_RT=judged[has_all_tasks],
        judged_seeds=tuple(seeds[unit] for unit, has_all in complete if has_all),
        crashed_alone=tuple(name for unit, has_all in complete if not has_all for name in crashed_of.get(unit, ())),
        copies=tuple(copies),
    )


def _means(units: Iterable[object], rows: Mapping[object, list[list[float]]], tasks: tuple[str, ...]) -> Floats:
    """[units, tasks]: the mean of each cell; NaN if it is empty."""
    found = [
        [math.fsum(each) / len(each) if each else math.nan for each in rows.get(unit, [[] for _ in tasks])]
        for unit in units
    ]
    return np.array(found, dtype=np.float64).reshape(len(found), len(tasks))


def _with_interval(group: Group, statistic: str, seed: int) -> Group:
    complete, left_out = stats.complete_seeds(group.scores_RT)
    if not len(complete):
        return group
    rng = generator(seed, group.label)
    interval = stats.interval(complete, statistic, rng=rng, left_out=left_out)
    rounding = 1e-12 * float(np.abs(complete).max())  # of sums over resamples: an end at 0 would read -8.9e-15
    low, high = (0.0 if end is not None and abs(end) < rounding else end for end in (interval.low, interval.high))
    return replace(group, interval=replace(interval, low=low, high=high))


def _who_is_missing(group: Group, floor: float | None, entries: Sequence[Entry]) -> list[Fact]:
    called = {entry.name: entry.called or entry.name for entry in entries}
    never = {entry.name for entry in entries if entry.never}  # these count, as the slowest
    of_kind = {
        "crashed": tuple(name for name in group.crashed if name not in group.crashed_alone),
        "crashed alone": group.crashed_alone,
        "running": group.running,
        "without score": tuple(name for name in group.without_score if name not in never),
        "ends in nan": group.ends_in_nan,
        "repeated": group.again,
        "same curve": group.copies,
        "stopped": tuple(e.name for e in entries if e.group == group.label and e.stopped),
        "unfinished": tuple(e.name for e in entries if e.group == group.label and e.unfinished),
    }
    return [
        Fact(
            kind,
            group.label,
            tuple(called[name] for name in names),
            {} if kind != "crashed" or floor is None else {"floor": floor},
        )
        for kind, names in of_kind.items()
        if names
    ]


_UNLIKE_COUNTS = 1.5
"""The best of so many times as many rows is compared with a warning."""


def _best_of_unlike_counts(entries: Sequence[Entry], labels: Sequence[str], how: str) -> list[Fact]:
    """That scores are each the best of many rows, and some groups have far more rows than others."""
    if how.strip().lower() not in ("best", "max", "min"):
        return []
    counts = {}
    for label in labels:
        rows = sorted(e.rows for e in entries if e.group == label and e.score is not None and not e.running)
        if rows:
            counts[label] = rows[len(rows) // 2]
    if len(counts) < 2 or max(counts.values()) <= _UNLIKE_COUNTS * min(counts.values()):
        return []
    return [Fact("rows differ", values={"how": how, "rows_of": counts})]


def _of_same_curves(entries: Sequence[Entry], pairs: Sequence[Pair]) -> list[Fact]:
    """The pairs of groups in which equal seeds have the very same rows: what differs between them has no effect."""
    of_group: dict[str, dict[tuple[str, int], str]] = {}
    for entry in entries:
        if entry.rows_digest and entry.seed is not None:
            of_group.setdefault(entry.group, {})[entry.task, entry.seed] = entry.rows_digest
    facts = []
    for pair in pairs:
        a, b = of_group.get(pair.a, {}), of_group.get(pair.b, {})
        both = [seed for seed in a if seed in b]
        same = sum(a[seed] == b[seed] for seed in both)
        if same > len(both) / 2:
            facts.append(Fact("groups of same curves", values={"a": pair.a, "b": pair.b, "n": same, "of": len(both)}))
    return facts


_ENDS_ALIKE = 0.05
"""Ends that differ by at most this share of the longest run are equal: seeds end within an episode of each other."""


def _none_finished(entries: Sequence[Entry], end: ScoreEnd) -> list[Fact]:
    """That no run counts because none has finished, and up to where all of them have come."""
    if not all(entry.crashed or entry.running or entry.stopped for entry in entries):
        return []
    spans = [entry.span for entry in entries if entry.span is not None]
    names = {entry.called or entry.name for entry in entries}
    values: dict[str, object] = {"running": sum(entry.running for entry in entries)}
    if len(spans) == len(entries) and len({axis for axis, _, _ in spans}) == 1:
        first, last = max(span[1] for span in spans), min(span[2] for span in spans)
        values |= {"axis": spans[0][0], "first": last} if first < last else {}
    return [Fact("none finished", "", tuple(sorted(names)), values)]


def _on_other_axes(entries: Sequence[Entry], axis: str) -> list[Fact]:
    """The runs without a score because the axis of the scores is not theirs, by group."""
    found: dict[tuple[str, str], list[str]] = {}
    for entry in entries:
        if entry.score is None and entry.span is not None and axis and entry.span[0] != axis:
            found.setdefault((entry.group, entry.span[0]), []).append(entry.called or entry.name)
    return [
        Fact("on another axis", group, tuple(runs), {"axis": axis, "own": own}) for (group, own), runs in found.items()
    ]


def _ends(entries: Sequence[Entry], end: ScoreEnd) -> list[Fact]:
    """Whether the runs that count end at different positions of one axis, or have different axes."""
    counted = [
        (e.group, e.span)
        for e in entries
        if e.span is not None and e.score is not None and not (e.crashed or e.running or e.stopped)
    ]
    spans = [span for _, span in counted]
    if end.kind == "chosen" or not spans:
        return []
    if len({axis for axis, _, _ in spans}) > 1:
        axes = {group: [*dict.fromkeys(span[0] for label, span in counted if label == group)] for group, _ in counted}
        return [Fact("axes differ", values={"axes_of": axes})]
    if ends_alike(spans):
        return []
    (axis, *_), ends = spans[0], [last for _, _, last in spans]
    of_groups = {group: [span for label, span in counted if label == group] for group, _ in counted}
    of_group = {group: max(last for _, _, last in own) for group, own in of_groups.items() if ends_alike(own)}
    values = {"axis": axis, "first": min(ends), "last": max(ends), "at": end.kind}
    return [Fact("ends differ", values=values | ({"of_group": of_group} if len(of_group) == len(of_groups) else {}))]


def ends_alike(spans: Sequence[tuple[str, float, float]]) -> bool:
    """Whether runs, (axis, first, last) each, end at about the same position of one axis."""
    if not spans:
        return True
    ends = [last for _, _, last in spans]
    return max(ends) - min(ends) <= _ENDS_ALIKE * (max(ends) - min(first for _, first, _ in spans))


def _leaders(
    entries: Sequence[Entry],
    pairs: Sequence[Pair],
    end: ScoreEnd,
    tasks: tuple[str, ...],
    scale: Mapping[str, tuple[float, float]],
    floor: float | None,
) -> list[Fact]:
    """The pairs that would have the other leader if runs were scored at the other choice of the end."""
    if end.kind == "chosen" or all(entry.otherwise is None for entry in entries):
        return []
    others = [replace(entry, score=entry.otherwise) for entry in entries]
    complete = {
        label: stats.complete_seeds(
            _group([e for e in others if e.group == label], label, tasks, scale, floor).scores_RT
        )
        for label in {label for pair in pairs for label in (pair.a, pair.b)}
    }
    facts = []
    for pair in pairs:
        a, b = complete[pair.a][0], complete[pair.b][0]
        if pair.reason or not len(a) or not len(b) or math.isnan(pair.difference):
            continue
        other = float(stats.aggregate(pair.statistic, a) - stats.aggregate(pair.statistic, b))
        if other * pair.difference >= 0:
            continue
        own, common = (pair.difference, other) if end.kind == "own end" else (other, pair.difference)
        leads = {
            name: pair.a if (difference > 0) != pair.lower_is_better else pair.b
            for name, difference in (("own_leader", own), ("common_leader", common))
        }
        facts.append(
            Fact(
                "leaders differ",
                values={
                    "a": pair.a,
                    "b": pair.b,
                    "statistic": pair.statistic,
                    "own": own,
                    "common": common,
                    **leads,
                    "axis": end.axis,
                    "common_end": end.common_end,
                    "side": "lower" if pair.lower_is_better else "higher",
                },
            )
        )
    return facts


MOST_DIFFERENCES = 10
"""Of so many pairs the interval of the difference is found; of more nobody reads it. Of 3 or 4 seeds it is that of the
means."""


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
