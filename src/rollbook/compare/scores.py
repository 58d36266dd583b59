"""The scores of runs, of groups, and of pairs of groups."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rollbook import stats
from rollbook.compare.group_curve import Floats
from rollbook.stats import Interval, Verdict
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
        at a place of the axis that the run went past.
      non_finite: how many of its rows are NaN or infinite and left out.
      otherwise: its score with the other choice of where runs are scored (`Comparison.at_why`); None if there is none.
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
      evidence: e-value against "a seed of a scores better than one of b as often as worse", used without a plan. It may
        be checked at any time. None: no pairs.
      verdict: of the sequential test plan; None without a plan.
      reason: why they are not compared; "" if they are.
      statistic: the statistic of `difference`.
      lower_is_better: whether lower scores are better.
      decides: the evidence needed for a decision; it grows with the number of pairs compared together.
      leads: the group whose seeds scored better in most pairs of seeds, paired in order; "" if neither did.
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
        """The label of the better group, by the plan, or by the evidence without a plan; None: not decided."""
        if self.reason:
            return None
        if self.verdict is not None:
            return self.verdict.better
        return self.leads if self.leads and self.evidence is not None and self.evidence >= self.decides else None

    def sentence(self) -> str:
        """The answer, then how certain it is."""
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
            "Make a plan before the next seeds (plan=…, --plan NAME) for an answer with fewer of them."
        ).replace(".;", ";")

    @property
    def _side(self) -> str:
        return "lower" if self.lower_is_better else "higher"

    def _ahead(self) -> str:
        """Which group has the better statistic, and by how much."""
        name = "IQM" if self.statistic == "iqm" else self.statistic
        if self.difference == 0:
            return f"Their {name}s are equal."
        ahead = self.a if (self.difference > 0) != self.lower_is_better else self.b
        return f"{ahead} is ahead: {name} {self._side} by {abs(self.difference):.4g}."


def in_a_sentence(sentence: str) -> str:
    """A sentence as it continues after a colon: "Mean 434" -> "mean 434", but "IQM 434"."""
    return sentence if sentence[:2].isupper() else sentence[:1].lower() + sentence[1:]
