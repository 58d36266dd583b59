"""Scores of runs made into a comparison of their groups."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rollbook import stats
from rollbook.compare.comparison import Comparison
from rollbook.compare.group_curve import Floats
from rollbook.compare.scales import no_common_point, scale_of
from rollbook.compare.scores import Entry, Group, Pair
from rollbook.errors import BadInput
from rollbook.stats import Plan, Study, Verdict

__all__ = ["compare"]

_PROFILE_POINTS = 201


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
    delta: float | None = None,
    floor: float | None = None,
    seed: int = 0,
) -> Comparison:
    """Groups of runs compared by one score; see `RunSet.compare`.

    Args:
      entries: the runs, in the order in which they were begun.
      study: a plan and its looks so far; None with `planned` makes a plan now.
      delta, floor: of a new plan; `floor` is what crashed runs are worth everywhere.
    Raises:
      BadInput: no run has a score; groups that differ from the plan's.
    """
    if study is not None and floor is None:
        floor = study.plan.floor
    tasks = tuple(dict.fromkeys(entry.task for entry in entries))
    labels = tuple(dict.fromkeys(entry.group for entry in entries))
    if not any(entry.score is not None for entry in entries):
        raise BadInput(f"compare({metric!r}): none of the {len(entries)} runs has a finite value of it")
    statistic = statistic or ("mean" if len(tasks) == 1 else "iqm")
    scale, notes = scale_of(tasks, normalise)
    groups = [_group([e for e in entries if e.group == label], label, tasks, scale, floor) for label in labels]
    groups = [_with_interval(group, statistic, seed) for group in groups]
    for group in groups:
        notes += _who_is_missing(group, floor)
    apart = _apart(entries, labels)
    notes += apart.values()
    if not apart:
        study = _looked(study, groups, planned, delta, floor, metric)
    verdicts = {} if study is None else {frozenset(v.pair): v for v in study.verdicts()}
    pairs = tuple(
        Pair(a.label, b.label, math.nan, math.nan, None, None, "measured at no common point of the axis")
        if (a.label, b.label) in apart
        else _pair(a, b, verdicts.get(frozenset((a.label, b.label))))
        for a, b in itertools.combinations(groups, 2)
    )
    if len(groups) == 1:
        notes.append(f"All runs have the same {by}: there is one group, and nothing to compare it with.")
    pooled = np.concatenate([group.scores_RT[~np.isnan(group.scores_RT)] for group in groups])
    thresholds = _thresholds(pooled)
    profiles = np.array(
        [
            stats.performance_profile(group.seeds_R if len(tasks) == 1 else complete, thresholds)
            if len(complete := stats.complete_seeds(group.scores_RT)[0])
            else np.full(len(thresholds), np.nan)
            for group in groups
        ]
    )
    return Comparison(
        metric, by, how, tasks, statistic, tuple(groups), pairs, thresholds, profiles, study, tuple(notes)
    )


def _apart(entries: Sequence[Entry], labels: Sequence[str]) -> dict[tuple[str, str], str]:
    """Pairs of groups that have no point of the axis in common, with a sentence each."""
    spans: dict[str, tuple[str, float, float]] = {}
    for entry in entries:
        if entry.span is not None:
            axis, first, last = entry.span
            _, low, high = spans.get(entry.group, entry.span)
            spans[entry.group] = (axis, min(low, first), max(high, last))
    sentences = {}
    for a, b in itertools.combinations([label for label in labels if label in spans], 2):
        (axis, low_a, high_a), (other_axis, low_b, high_b) = spans[a], spans[b]
        if axis == other_axis and (high_a < low_b or high_b < low_a):
            sentences[a, b] = no_common_point(a, (low_a, high_a), b, (low_b, high_b), axis)
    return sentences


def _thresholds(scores: Floats) -> Floats:
    """From a little below the lowest score, above which all are, to a little above the highest."""
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
) -> Group:
    rows: dict[Any, list[float]] = {}
    crashed, running, lacking = [], [], []
    for n, entry in enumerate(entries):
        if entry.running:
            running.append(entry.name)
            continue
        score = entry.score
        if entry.crashed:
            crashed.append(entry.name)
            score = floor
        elif score is None:
            lacking.append(entry.name)
        if score is None:
            continue
        if entry.task in scale:
            zero, one = scale[entry.task]
            score = (score - zero) / (one - zero)
        # Over several tasks a seed is one unit; of one task, or without a seed, each run is.
        unit: object = entry.name if len(tasks) == 1 or entry.seed is None else f"seed {entry.seed}"
        row = rows.setdefault(unit, [math.nan] * len(tasks))
        if not math.isnan(row[tasks.index(entry.task)]):  # the same seed and task once more is a unit of its own
            row = rows.setdefault((unit, n), [math.nan] * len(tasks))
        row[tasks.index(entry.task)] = float(score)
    names = tuple(name if isinstance(name, str) else name[0] for name in rows)
    scores = np.array(list(rows.values()), dtype=np.float64).reshape(len(rows), len(tasks))
    return Group(label, scores, names, None, tuple(crashed), tuple(running), tuple(lacking))


def _with_interval(group: Group, statistic: str, seed: int) -> Group:
    complete, left_out = stats.complete_seeds(group.scores_RT)
    if not len(complete):
        return group
    rng = np.random.default_rng([seed, *group.label.encode("utf-8", "surrogatepass")])
    interval = stats.interval(complete, statistic, rng=rng, left_out=left_out)
    return Group(group.label, group.scores_RT, group.names, interval, group.crashed, group.running, group.without_score)


def _who_is_missing(group: Group, floor: float | None) -> list[str]:
    said = []
    if group.crashed and floor is None:
        said.append(
            f"{group.label}: {_runs(group.crashed)} ended badly and not among the scores. To leave failures out "
            "flatters; say floor=… for what a failed run is worth."
        )
    elif group.crashed:
        said.append(f"{group.label}: {_runs(group.crashed)} ended badly and counts as {floor:g}.")
    if group.running:
        said.append(f"{group.label}: {_runs(group.running)} still being written; not among the scores yet.")
    if group.without_score:
        said.append(f"{group.label}: {_runs(group.without_score)} without a finite value; not among the scores.")
    return said


def _runs(names: Sequence[str]) -> str:
    return f"{len(names)} run{'s' if len(names) > 1 else ''} ({', '.join(names[:3])}{', …' if len(names) > 3 else ''})"


def _looked(
    study: Study | None, groups: Sequence[Group], planned: bool, delta: float | None, floor: float | None, metric: str
) -> Study | None:
    if study is None:
        if not planned or len(groups) < 2:
            return None
        arms = tuple(group.label for group in groups)
        study = Study(Plan(arms=arms, delta=delta, floor=floor, note=metric))
    by_label = {group.label: group for group in groups}
    unknown = [label for label in by_label if label not in study.plan.arms]
    if unknown:
        raise BadInput(
            f"the plan compares {', '.join(study.plan.arms)}; {unknown[0]!r} is not among them. "
            "A new group needs a new plan"
        )
    scores = {arm: by_label[arm].seeds_R if arm in by_label else np.zeros(0) for arm in study.plan.arms}
    return study.look(scores)


def _pair(a: Group, b: Group, verdict: Verdict | None) -> Pair:
    a_R, b_R = a.seeds_R, b.seeds_R
    if not len(a_R) or not len(b_R):
        return Pair(a.label, b.label, math.nan, math.nan, None, verdict)
    wealth = stats.e_process(a_R, b_R)
    complete_a, complete_b = stats.complete_seeds(a.scores_RT)[0], stats.complete_seeds(b.scores_RT)[0]
    return Pair(
        a.label,
        b.label,
        float(a_R.mean() - b_R.mean()),
        float(stats.probability_of_improvement(complete_a, complete_b)),
        float(wealth[-1]) if len(wealth) else None,
        verdict,
    )
