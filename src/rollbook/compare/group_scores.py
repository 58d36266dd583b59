"""The scores of one group of runs: which runs count, as which unit, and what became of the others."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rollbook import stats
from rollbook.compare.group_curve import Floats
from rollbook.compare.scores import Entry, Group
from rollbook.compare.seeding import generator


def group_of(
    entries: Sequence[Entry],
    label: str,
    tasks: tuple[str, ...],
    scale: Mapping[str, tuple[float, float]],
    floor: float | None,
    *,
    lower_is_better: bool = False,
) -> Group:
    """The scores of a group, without an interval.

    Args:
      entries: its runs, in the order in which they started.
      label: its name.
      tasks: all tasks of the comparison.
      scale: task -> (score worth 0, score worth 1); {} leaves scores unchanged.
      floor: the score of a run that crashed; None: it has none.
      lower_is_better: whether a run that failed is judged as inf instead of -inf.
    """
    first_of = _first_of_repeats(entries)
    counting, copies = _that_count(entries)
    units = _Units(tasks, first_of)
    scored: dict[int, _Unit] = {}  # by identity, in the order of their first score
    for entry in counting:
        if not (entry.crashed or entry.never) and entry.score is None:
            continue
        unit, task = units.of(entry), tasks.index(entry.task)
        if entry.crashed:
            unit.crashed.append(entry.name)
        if entry.crashed or entry.never:
            unit.failed.add(task)
        score = floor if entry.crashed else entry.score
        if score is None:
            continue
        if entry.task in scale:
            zero, one = scale[entry.task]
            score = (score - zero) / (one - zero)
        unit.scores[task].append(float(score))
        scored.setdefault(id(unit), unit)
    # A verdict counts units that failed, too: as worse than every score.
    judged = _means(units.all, len(tasks))
    for row, unit in enumerate(units.all):
        judged[row, list(unit.failed)] = math.inf if lower_is_better else -math.inf
    has_all_tasks: list[bool] = np.logical_not(np.isnan(judged).any(axis=1)).tolist()
    complete = [unit for unit, has_all in zip(units.all, has_all_tasks, strict=True) if has_all]
    partial = [unit for unit, has_all in zip(units.all, has_all_tasks, strict=True) if not has_all]
    finished = [entry for entry in counting if not entry.crashed]
    return Group(
        label=label,
        scores_RT=_means(scored.values(), len(tasks)),
        names=tuple(unit.name for unit in scored.values()),
        interval=None,
        crashed=tuple(entry.name for entry in counting if entry.crashed),
        running=tuple(entry.name for entry in entries if entry.running),
        without_score=tuple(entry.name for entry in finished if entry.score is None),
        again=tuple(e.name for e in entries if e.unit and first_of[e.unit, e.task] != e.name),
        ends_in_nan=tuple(entry.name for entry in finished if entry.score is not None and entry.ends_in_nan),
        seeds=tuple(unit.seed for unit in scored.values()),
        judged_RT=judged[has_all_tasks],
        judged_seeds=tuple(unit.seed for unit in complete),
        crashed_alone=tuple(name for unit in partial for name in unit.crashed),
        copies=tuple(copies),
    )


def _first_of_repeats(entries: Sequence[Entry]) -> dict[tuple[str, str], str]:
    """(unit, task) -> the first run with this configuration, seed and code."""
    first_of: dict[tuple[str, str], str] = {}
    for entry in entries:
        if entry.unit:
            first_of.setdefault((entry.unit, entry.task), entry.name)
    return first_of


def _that_count(entries: Sequence[Entry]) -> tuple[list[Entry], list[str]]:
    """The runs that count, and the names of those with the very rows of another seed, which do not.

    If a seed was run again after a failure, the finished run counts.
    """
    finished = {
        (e.unit, e.task)
        for e in entries
        if e.unit and not (e.crashed or e.running or e.stopped or e.unfinished or e.score is None)
    }
    counting, copies = [], []
    with_rows: dict[tuple[str, str], int | None] = {}  # task and rows -> the seed that had them first
    for entry in entries:
        failed = entry.crashed or bool(entry.unfinished)
        if entry.running or entry.stopped or (failed and (entry.unit, entry.task) in finished):
            continue
        if entry.rows_digest and not entry.crashed:
            first = with_rows.setdefault((entry.task, entry.rows_digest), entry.seed)
            if first is not None and entry.seed is not None and first != entry.seed:
                copies.append(entry.name)
                continue
        counting.append(entry)
    return counting, copies


@dataclass
class _Unit:
    """What a test counts as one: over several tasks a seed; else a run, with the runs that repeat it.

    Attributes:
      name: of the seed, or of the first run.
      scores: [tasks], those of its runs.
      failed: the tasks in which it crashed, or never reached the level.
      crashed: its runs that crashed.
      configurations: task -> what its runs have in common, "" for nothing.
    """

    name: str
    seed: int | None
    scores: list[list[float]]
    failed: set[int] = field(default_factory=set)
    crashed: list[str] = field(default_factory=list)
    configurations: dict[str, str] = field(default_factory=dict)


class _Units:
    """The units of a group, made as its runs come."""

    def __init__(self, tasks: tuple[str, ...], first_of: Mapping[tuple[str, str], str]) -> None:
        self.all: list[_Unit] = []
        self._tasks, self._first_of = tasks, first_of
        self._by_name: dict[str, _Unit] = {}

    def of(self, entry: Entry) -> _Unit:
        """The unit that this run belongs to."""
        name = self._first_of.get((entry.unit, entry.task), entry.name)
        unit = self._by_name.get(name)
        if len(self._tasks) > 1 and entry.seed is not None:
            name = f"seed {entry.seed}"
            unit = self._by_name.get(name)
            if unit is not None and entry.task in unit.configurations:
                repeats = entry.unit and unit.configurations[entry.task] == entry.unit
                unit = unit if repeats else self._add(name, entry)  # else: this seed and task of another configuration
        if unit is None:
            unit = self._by_name[name] = self._add(name, entry)
        unit.configurations[entry.task] = entry.unit
        return unit

    def _add(self, name: str, entry: Entry) -> _Unit:
        unit = _Unit(name, entry.seed, [[] for _ in self._tasks])
        self.all.append(unit)
        return unit


def _means(units: Iterable[_Unit], tasks: int) -> Floats:
    """[units, tasks]: the mean of each cell; NaN if it is empty."""
    found = [[math.fsum(each) / len(each) if each else math.nan for each in unit.scores] for unit in units]
    return np.array(found, dtype=np.float64).reshape(len(found), tasks)


def with_interval(group: Group, statistic: str, seed: int) -> Group:
    """The group with the interval of a statistic; unchanged if no unit has all tasks."""
    complete, left_out = stats.complete_seeds(group.scores_RT)
    if not len(complete):
        return group
    rng = generator(seed, group.label)
    interval = stats.interval(complete, statistic, rng=rng, left_out=left_out)
    rounding = 1e-12 * float(np.abs(complete).max())  # of sums over resamples: an end at 0 would read -8.9e-15
    low, high = (0.0 if end is not None and abs(end) < rounding else end for end in (interval.low, interval.high))
    return replace(group, interval=replace(interval, low=low, high=high))
