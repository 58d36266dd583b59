"""The scores of runs, of their groups, and of two groups beside each other."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rollbook import stats
from rollbook.compare.group_curve import Floats
from rollbook.stats import Interval, Verdict

__all__ = ["Entry", "Group", "Pair", "in_a_sentence"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One run of a comparison.

    Attributes:
      group, name: its group and what it is called.
      seed: its seed; None if it has none.
      task: "" where there is only one.
      score: None where the run has no value of the metric.
      crashed, running: how it stands.
      span: (axis, first, last) of its finite values; None where that is not known.
    """

    group: str
    name: str
    seed: int | None
    task: str
    score: float | None
    crashed: bool = False
    running: bool = False
    span: tuple[str, float, float] | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """The scores of one group.

    Attributes:
      label: what the runs have in common.
      scores_RT: [seeds, tasks]; NaN where a seed has no score of a task.
      names: [seeds]; the runs (of several tasks: the seeds) in the order in which they were begun.
      interval: of the statistic.
      crashed, running, without_score: names of the runs that ended badly, go on, or have no value of the metric.
    """

    label: str
    scores_RT: Floats
    names: tuple[str, ...]
    interval: Interval | None
    crashed: tuple[str, ...] = ()
    running: tuple[str, ...] = ()
    without_score: tuple[str, ...] = ()

    @property
    def seeds_R(self) -> Floats:
        """[seeds], the mean over tasks of each seed that has all of them."""
        complete: Floats = self.scores_RT[~np.isnan(self.scores_RT).any(axis=1)].mean(axis=1)
        return complete


@dataclass(frozen=True, slots=True)
class Pair:
    """Two groups beside each other.

    Attributes:
      a, b: their labels.
      difference: of the means over seeds, a minus b; NaN where one has none.
      improvement: probability that a seed of a scores more than a seed of b (averaged over tasks), ties count half.
      evidence: e-value against "both are alike" without a plan; may be looked at any time, 20 decides. None: no pairs.
      verdict: by the plan of looks; None without one.
      reason: why they are not compared at all, "" if they are.
    """

    a: str
    b: str
    difference: float
    improvement: float
    evidence: float | None
    verdict: Verdict | None = None
    reason: str = ""

    def sentence(self) -> str:
        """The answer first, then how sure it is."""
        if self.reason:
            return f"{self.a} and {self.b}: not compared; they were {self.reason}."
        if self.verdict is not None:
            verdict_words = self.verdict.sentence()
            return verdict_words if self.verdict.better else f"{self.a} and {self.b}: {in_a_sentence(verdict_words)}"
        if math.isnan(self.difference):
            return f"{self.a} and {self.b}: not decided; one of them has no finished seed with a score."
        better, worse = (self.a, self.b) if self.difference > 0 else (self.b, self.a)
        if self.evidence is not None and self.evidence >= stats.DECIDES:
            return (
                f"{better} is better than {worse}: evidence {self.evidence:.3g} (20 decides), which may be looked at "
                "after every seed."
            )
        so_far = "none yet" if self.evidence is None else f"{self.evidence:.3g} of the 20 that decide"
        return (
            f"{self.a} and {self.b}: not decided. {better} is ahead by {abs(self.difference):.4g}; evidence {so_far}. "
            "Make a plan before the next seeds (plan=…) for an answer with fewer of them."
        )


def in_a_sentence(sentence: str) -> str:
    """A sentence as it goes on behind a colon: "Mean 434" -> "mean 434", but "IQM 434"."""
    return sentence if sentence[:2].isupper() else sentence[:1].lower() + sentence[1:]
