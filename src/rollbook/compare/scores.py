"""The scores of runs, of groups, and of pairs of groups."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rollbook.compare.group_curve import Floats
from rollbook.stats import Difference, Interval, Verdict
from rollbook.stats.verdict import remark
from rollbook.system.brief import brief


@brief
@dataclass(frozen=True, slots=True)
class Entry:
    """One run of a comparison.

    Attributes:
      group, name: its group and its name.
      seed: its seed; None if it has none.
      task: "" if there is only one task.
      score: None if the run has no value of the metric.
      crashed, running: its status.
      span: (axis, first, last) of its finite values; None if unknown.
      unit: equal for runs with equal configuration, seed and code, which count as one; "" if the run is its own unit.
      ends_in_nan: whether its last row is NaN or infinite; its score is then from an earlier row.
      called: what people call it; "" for its name.
      rows, of: how many finite rows its score is made of the whole of, and how many it has; they differ if scores stop
        at a position of the axis that the run went past.
      non_finite: how many of its rows are NaN or infinite and left out.
      otherwise: its score with the other choice of where runs are scored (`Comparison.at_why`); None if there is none.
      never: whether it came to its end without reaching the level that its score is about.
      unfinished: the status of a run that did not finish, though it has all rows that its score needs; else "".
      stopped: whether it was killed, and so was every run of its group: that says nothing about the group.
      rows_digest: equal for runs with the very same rows; "" if they are too few, or too alike, to tell.
    """

    group: str
    name: str
    seed: int | None
    task: str
    score: float | None
    crashed: bool = False
    running: bool = False
    span: tuple[str, float, float] | None = None
    unit: str = ""
    ends_in_nan: bool = False
    called: str = ""
    rows: int = 0
    of: int = 0
    non_finite: int = 0
    otherwise: float | None = None
    never: bool = False
    unfinished: str = ""
    stopped: bool = False
    rows_digest: str = ""


@brief
@dataclass(frozen=True, slots=True)
class Group:
    """The scores of one group.

    Attributes:
      label: the common value of the runs.
      scores_RT: [seeds, tasks]; NaN where a seed has no score for a task.
      names: [seeds]; the runs (with several tasks: the seeds) in the order in which they started.
      interval: of the statistic.
      crashed, running, without_score: names of the runs that did not finish, still run, or have no value of the metric.
      again: names of the runs that repeat an earlier one with the same configuration, seed and code.
      ends_in_nan: names of the runs whose last row is not finite.
      seeds: [seeds], the seed of each row of scores; None if it has none.
      judged_RT: [seeds that count in a verdict, tasks]: those that have all tasks, and those that failed: -inf,
        or inf if lower is better.
      judged_seeds: [the same], the seed of each.
      crashed_alone: of the crashed runs, those whose seed has no run of another task: no verdict counts it.
      copies: names of the runs with the very rows of a run of another seed; they do not count.
    """

    label: str
    scores_RT: Floats
    names: tuple[str, ...]
    interval: Interval | None
    crashed: tuple[str, ...] = ()
    running: tuple[str, ...] = ()
    without_score: tuple[str, ...] = ()
    again: tuple[str, ...] = ()
    ends_in_nan: tuple[str, ...] = ()
    seeds: tuple[int | None, ...] = ()
    judged_RT: Floats = field(default_factory=lambda: np.zeros((0, 1)))
    judged_seeds: tuple[int | None, ...] = ()
    crashed_alone: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()

    @property
    def seeds_R(self) -> Floats:
        """[seeds], the mean over tasks of each seed that has all tasks."""
        complete: Floats = self.scores_RT[~np.isnan(self.scores_RT).any(axis=1)].mean(axis=1)
        return complete


@brief
@dataclass(frozen=True, slots=True)
class Pair:
    """Two groups compared.

    Attributes:
      a, b: their labels.
      difference: of the comparison's statistic, a minus b; NaN if one group has none.
      improvement: probability that a seed of a scores better than a seed of b (averaged over tasks); ties count half.
      verdict: which is better, and how sure that is; None if they are not compared.
      reason: why they are not compared; "" if they are.
      statistic: the statistic of `difference`.
      lower_is_better: whether lower scores are better.
      interval: of the difference, nominally 95 % at one look; None if it is not known.
    """

    a: str
    b: str
    difference: float
    improvement: float
    verdict: Verdict | None = None
    reason: str = ""
    statistic: str = "mean"
    lower_is_better: bool = False
    interval: Difference | None = None

    @property
    def better(self) -> str | None:
        """The label of the better group; None: not decided."""
        return self.verdict.better if self.verdict is not None else None

    def sentence(self) -> str:
        """The answer, and how certain it is."""
        if self.verdict is None:
            return f"{self.a} and {self.b}: not compared; they were {self.reason}."
        return self.verdict.sentence()

    def remark(self) -> str:
        """The same in words for every reader, without options of Python or of the command line."""
        return self.sentence() if self.verdict is None else remark(self.verdict)

    def as_data(self) -> dict[str, Any]:
        """The pair and its verdict as plain data for JSON; numbers that are not finite are None."""
        numbers = {"difference": self.difference, "improvement": self.improvement}
        data = {name: value if math.isfinite(value) else None for name, value in numbers.items()}
        verdict = {} if self.verdict is None else self.verdict.as_data() | {"difference_of_means": None}
        if self.verdict is not None and math.isfinite(self.verdict.difference):
            verdict["difference_of_means"] = self.verdict.difference
        if self.interval is not None:
            data |= {"difference_low": self.interval.low, "difference_high": self.interval.high}
            verdict = {**verdict, "interval_of": self.interval.statistic}
        return {"a": self.a, "b": self.b, **verdict, **data, "reason": self.reason, "sentence": self.sentence()}


def in_a_sentence(sentence: str) -> str:
    """A sentence as it continues after a colon: "Mean 434" -> "mean 434", but "IQM 434"."""
    return sentence if sentence[:2].isupper() else sentence[:1].lower() + sentence[1:]
