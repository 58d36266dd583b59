"""The scores of runs, of their groups, and of two groups beside each other."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rollbook import stats
from rollbook.compare.group_curve import Floats
from rollbook.ground.brief import brief
from rollbook.stats import Interval, Verdict

__all__ = ["Entry", "Group", "Pair", "in_a_sentence"]


@brief
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
      unit: the same for runs of one configuration, seed and code, which count as one; "" for a run of its own.
      ends_in_nan: whether its last row is NaN or infinite, so that an earlier one is its score.
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


@brief
@dataclass(frozen=True, slots=True)
class Group:
    """The scores of one group.

    Attributes:
      label: what the runs have in common.
      scores_RT: [seeds, tasks]; NaN where a seed has no score of a task.
      names: [seeds]; the runs (of several tasks: the seeds) in the order in which they were begun.
      interval: of the statistic.
      crashed, running, without_score: names of the runs that did not finish, go on, or have no value of the metric.
      again: names of the runs that repeat an earlier one of the same configuration, seed and code.
      ends_in_nan: names of the runs whose last row is not finite.
      seeds: [seeds], the seed of each row of scores; None where it has none.
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

    @property
    def seeds_R(self) -> Floats:
        """[seeds], the mean over tasks of each seed that has all of them."""
        complete: Floats = self.scores_RT[~np.isnan(self.scores_RT).any(axis=1)].mean(axis=1)
        return complete


@brief
@dataclass(frozen=True, slots=True)
class Pair:
    """Two groups beside each other.

    Attributes:
      a, b: their labels.
      difference: of the statistic of the comparison, a minus b; NaN where one has none.
      improvement: probability that a seed of a scores better than a seed of b (averaged over tasks), ties count half.
      evidence: e-value against "a seed of a scores better than one of b as often as worse", without a plan; may be
        looked at any time. None: no pairs.
      verdict: by the plan of looks; None without one.
      reason: why they are not compared at all, "" if they are.
      statistic: of the difference.
      lower_is_better: whether lower scores are better.
      decides: the evidence that decides, which grows with the number of pairs that are compared together.
      leads: the group whose seeds scored better in most pairs of seeds, in their order; "" where neither did.
    """

    a: str
    b: str
    difference: float
    improvement: float
    evidence: float | None
    verdict: Verdict | None = None
    reason: str = ""
    statistic: str = "mean"
    lower_is_better: bool = False
    decides: float = stats.DECIDES
    leads: str = ""

    @property
    def better(self) -> str | None:
        """The label of the better group: by the plan, or by the evidence where there is none; None: not decided."""
        if self.reason:
            return None
        if self.verdict is not None:
            return self.verdict.better
        return self.leads if self.leads and self.evidence is not None and self.evidence >= self.decides else None

    def sentence(self) -> str:
        """The answer first, then how sure it is."""
        if self.reason:
            return f"{self.a} and {self.b}: not compared; they were {self.reason}."
        if self.verdict is not None:
            verdict_words = self.verdict.sentence()
            return verdict_words if self.verdict.better else f"{self.a} and {self.b}: {in_a_sentence(verdict_words)}"
        if math.isnan(self.difference):
            return f"{self.a} and {self.b}: not decided; one of them has no finished seed with a score."
        lower = "; lower is better" if self.lower_is_better else ""
        if self.better is not None:
            worse = self.b if self.better == self.a else self.a
            return (
                f"{self.better} is better than {worse}: its seeds usually score {self._side}, evidence "
                f"{self.evidence:.3g} ({self.decides:g} decides{lower}), which may be looked at after every seed. "
                f"{self._ahead()}"
            )
        so_far = "none yet" if self.evidence is None else f"{self.evidence:.3g} of the {self.decides:g} that decide"
        return (
            f"{self.a} and {self.b}: not decided. {self._ahead()}; evidence {so_far}{lower}. "
            "Make a plan before the next seeds (plan=…) for an answer with fewer of them."
        ).replace(".;", ";")

    @property
    def _side(self) -> str:
        return "lower" if self.lower_is_better else "higher"

    def _ahead(self) -> str:
        """Which of them has the better statistic, and by how much."""
        name = "IQM" if self.statistic == "iqm" else self.statistic
        if self.difference == 0:
            return f"Their {name}s are equal."
        ahead = self.a if (self.difference > 0) != self.lower_is_better else self.b
        return f"{ahead} is ahead: {name} {self._side} by {abs(self.difference):.4g}."


def in_a_sentence(sentence: str) -> str:
    """A sentence as it goes on behind a colon: "Mean 434" -> "mean 434", but "IQM 434"."""
    return sentence if sentence[:2].isupper() else sentence[:1].lower() + sentence[1:]
