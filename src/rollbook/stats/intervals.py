"""An interval for a group of runs by the method valid for the statistic and the numbers of seeds and tasks; or the
reason why there is none.

    iqm = interval(scores_RT, "iqm", rng=np.random.default_rng(0))
    iqm.low, iqm.high, iqm.claim           # claim: its coverage in the worst simulated case
    print(iqm.sentence("test/return"))

The decision table is data: `DECISIONS`. Its claims are the lowest coverages over a grid of shapes (5 to 40 % of the
seeds fail or are lucky, skew both ways, heavy tails, a ceiling) in the simulations of docs/statistics.md. For a mean,
and for an IQM over few tasks, no coverage is claimed: a rare kind of seed that was not drawn shifts it, and no method
can include that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rollbook.errors import BadInput
from rollbook.stats._checked_input import Bools, Floats, choice, floats, level_of, seeds_by_tasks
from rollbook.stats.aggregates import aggregate
from rollbook.stats.bootstrap import bootstrap_t, expanded_percentile
from rollbook.stats.closed_forms import (
    clopper_pearson,
    order_statistics,
    order_statistics_coverage,
    student_t,
    winsorised_t,
)
from rollbook.stats.draws import seed_counts
from rollbook.stats.replicates import replicates
from rollbook.system.brief import brief
from rollbook.system.texts import amount, quantity

DRAWS = 4_999
"""Resamples of a bootstrap interval; below 10 seeds its ends are so far out that fewer resamples do not reach them."""


@brief
@dataclass(frozen=True)
class Decision:
    """One row of the decision table.

    Attributes:
      statistic: what is estimated.
      tasks: minimum number of tasks.
      seeds: minimum number of seeds.
      method: "none", "range", "order statistics", "Student's t", "bootstrap-t", "expanded percentile bootstrap",
        "winsorised t by seed" or "Clopper-Pearson".
      claim: the lowest coverage over the grid of shapes at a nominal 95 %; None if nothing is claimed.
      mild: the lowest without strong skew and without failing seeds; None if not measured.
      reason: why there is no interval, in words.
    """

    statistic: str
    tasks: int
    seeds: int
    method: str
    claim: float | None = None
    mild: float | None = None
    reason: str = ""


_ROUNDING = 1e-12
"""Scores that differ by less, relative to the largest, count as equal: the rest is rounding error of sums."""

_FEW = "an interval needs at least 5 seeds"
_THREE = "no 95 % interval of 3 or 4 seeds of one task is honest: where some seeds fail, it covers too little"
_T, _BOOT_T = "Student's t", "bootstrap-t"
_EXPANDED, _WINSORISED = "expanded percentile bootstrap", "winsorised t by seed"

DECISIONS: tuple[Decision, ...] = (
    Decision("mean", 1, 1, "none", reason=_FEW),
    Decision("mean", 1, 3, "none", reason=_THREE),
    Decision("mean", 1, 5, _T, None, 0.94),
    Decision("mean", 1, 7, _BOOT_T, None, 0.92),
    Decision("mean", 1, 15, _BOOT_T, None, 0.93),
    Decision("iqm", 1, 1, "none", reason=_FEW),
    Decision("iqm", 1, 3, "none", reason=_THREE),
    Decision("iqm", 1, 5, _EXPANDED, 0.80, 0.94),
    Decision("iqm", 1, 6, _EXPANDED, 0.86, 0.94),
    Decision("iqm", 1, 7, _EXPANDED, 0.87, 0.95),
    Decision("iqm", 1, 8, _EXPANDED, 0.90, 0.95),
    Decision("iqm", 1, 10, _EXPANDED, 0.92, 0.95),
    Decision("iqm", 2, 1, "none", reason=_FEW),
    Decision("iqm", 2, 5, _EXPANDED, None, 0.92),
    Decision("iqm", 5, 1, "none", reason="an interval over tasks needs at least 3 seeds"),
    Decision("iqm", 5, 3, _WINSORISED, None, 0.93),
    Decision("iqm", 10, 3, _WINSORISED, None, 0.93),
    Decision("iqm", 10, 10, _WINSORISED, 0.87, 0.93),
    Decision("median", 1, 1, "none", reason="an interval of the median needs at least 3 seeds"),
    Decision("median", 1, 3, "range", 0.75, 0.75),
    Decision("median", 1, 4, "range", 0.875, 0.875),
    Decision("median", 1, 5, "range", 0.9375, 0.9375),
    Decision("median", 1, 6, "order statistics", 0.95, 0.95),
    Decision("median", 2, 1, "none", reason="no honest interval of a median over tasks is known; use the IQM"),
    Decision("solved", 1, 1, "none", reason="a share of seeds needs at least 3 of them"),
    Decision("solved", 1, 3, "Clopper-Pearson", 0.95, 0.95),
    Decision("solved", 2, 1, "none", reason="the share of seeds that solve a task is judged task by task"),
    Decision("success_rate", 1, 1, "none", reason=_FEW),
    Decision("success_rate", 1, 5, _T, None, 0.94),
)
"""Searched from the bottom for the first matching row. "optimality_gap" is a mean and uses its rows. For means over
several tasks, each seed is averaged over tasks first, which reduces the problem to one task."""

_LIKE = {"optimality_gap": "mean"}
_STATISTICS = ("mean", "iqm", "median", "optimality_gap", "solved", "success_rate")


def decide(statistic: str, seeds: int, tasks: int = 1) -> Decision:
    """The row of the decision table for this statistic and these numbers of seeds and tasks.

    Raises:
      UnknownOption: no such statistic.
    """
    choice(statistic, _STATISTICS, "statistic with an interval")
    asked = _LIKE.get(statistic, statistic)
    for row in reversed(DECISIONS):
        if row.statistic == asked and row.tasks <= tasks and row.seeds <= seeds:
            return row
    raise BadInput(f"An interval needs runs; there are {seeds} seeds and {tasks} tasks.")


@brief
@dataclass(frozen=True)
class Interval:
    """An estimate with its interval, or with the reason why there is none.

    Attributes:
      statistic: what is estimated.
      estimate: its value.
      low: lower end, or None.
      high: upper end, or None.
      level: nominal coverage.
      method: see `Decision`.
      n: number of seeds.
      tasks: number of tasks.
      claim: the coverage that may be claimed for any scores; None without an interval, at a level other than 95 %, and
        for means.
      mild: the coverage without strong skew and failing seeds.
      reason: why there is no interval; else "".
      smallest: the lowest score of a seed (of its mean over tasks).
      largest: the highest.
      draws: number of resamples; 0 for a closed form.
      left_out: number of seeds left out because they lack a task.
    """

    statistic: str
    estimate: float
    low: float | None
    high: float | None
    level: float
    method: str
    n: int
    tasks: int
    claim: float | None
    mild: float | None
    reason: str
    smallest: float
    largest: float
    draws: int = 0
    left_out: int = 0

    @property
    def is_honest(self) -> bool:
        """Whether it is a valid interval of its level: it has ends and is not only the range of a few seeds."""
        return self.low is not None and self.method != "range"

    def as_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)

    def sentence(self, metric: str = "score") -> str:
        """One sentence: the number, then how certain it is or why that is unknown.

        Args:
          metric: what was measured, for the sentence.
        """
        name = {"iqm": "IQM", "optimality_gap": "Optimality gap", "solved": "Share of seeds that solved the task"}.get(
            self.statistic, self.statistic.replace("_", " ").capitalize()
        )
        span = f"{quantity(self.smallest)} and {quantity(self.largest)}"
        if self.n == 1:
            return f"{metric} {quantity(self.estimate)}: one seed. An interval needs at least 5."
        if self.n == 2 and self.low is None:
            return f"{metric} {span}: two seeds. An interval needs at least 5."
        if self.smallest == self.largest and self.statistic != "solved":
            return (
                f"All {self.n} seeds score {quantity(self.estimate)}. No spread was seen, so no interval can be "
                "computed; this is not certainty."
            )
        few = f"{metric} between {span} ({self.n} seeds). The true median is inside such a range in "
        if self.method == "range" or (self.low is None and self.tasks == 1 and self.n in (3, 4)):
            share = 100 * (1 - 2.0 ** (1 - self.n))
            return f"{few}{share:g} % of studies; so few seeds say nothing surer."
        if self.low is None or self.high is None:
            return f"{name} {quantity(self.estimate)} (n = {self.n}); no interval: {self.reason}."
        left = f" Left out for lack of a task: {amount(self.left_out, 'seed')}." if self.left_out else ""
        ends = f"{quantity(self.low)} to {quantity(self.high)}"
        how = f"{self.method}, {amount(self.n, 'seed')}"
        if self.claim is None:
            return (
                f"{name} {quantity(self.estimate)}, {100 * self.level:g} % interval {ends} if no rare kind of seed was "
                f"missed ({how}).{left}"
            )
        return (
            f"{name} {quantity(self.estimate)}; the true value lies between {ends.replace(' to ', ' and ')} in at "
            f"least {100 * self.claim:g} % of such studies ({how}).{left}"
        )


def sentence_of_several(found: Sequence[tuple[str, Interval]], metric: str = "score") -> str | None:
    """The intervals of several groups in one sentence; None if not the same holds of all of them.

    Args:
      found: (name, interval) of each group.
      metric: what was measured.
    """
    (_, first), *_ = found
    alike = {(of.statistic, of.n, of.method, of.claim, of.level, of.left_out, of.low is None) for _, of in found}
    if len(alike) > 1 or first.left_out or first.statistic not in ("iqm", "mean", "median"):
        return None
    if first.n == 1:
        values = ", ".join(f"{label} {quantity(of.estimate)}" for label, of in found)
        return f"{metric} of one seed each: {values}. An interval needs at least 5."
    if any(of.smallest == of.largest for _, of in found):
        return None
    if first.low is None and first.tasks == 1 and first.n in (3, 4):
        ranges = ", ".join(f"{label} {quantity(of.smallest)} to {quantity(of.largest)}" for label, of in found)
        share = 100 * (1 - 2.0 ** (1 - first.n))
        return (
            f"{metric} of {first.n} seeds each: {ranges}. The true median is inside such a range in {share:g} % of "
            "studies; so few seeds say nothing surer."
        )
    if first.low is None:
        return None
    name = "IQM" if first.statistic == "iqm" else first.statistic.capitalize()
    parts = [
        f"{label} {quantity(of.estimate)} ({quantity(of.low)} to {quantity(of.high)})"
        for label, of in found
        if of.low is not None and of.high is not None
    ]
    sure = (
        f"{100 * first.level:g} % intervals if no rare kind of seed was missed"
        if first.claim is None
        else f"the true value lies between the two in at least {100 * first.claim:g} % of such studies"
    )
    return f"{name}: {', '.join(parts)}; {sure} ({first.method}, {amount(first.n, 'seed')} of each)."


def interval(
    scores_RT: ArrayLike,
    statistic: str = "iqm",
    *,
    rng: np.random.Generator,
    level: float = 0.95,
    draws: int = DRAWS,
    target: float = 1.0,
    left_out: int = 0,
) -> Interval:
    """The estimate and its interval over seeds, by the decision table.

    Args:
      scores_RT: [seeds] or [seeds, tasks], every seed with all tasks (see `complete_seeds`), crashed ones at the
        declared floor. For "solved" booleans; for "success_rate" each seed's own rate, never episodes pooled over
        seeds.
      statistic: "mean", "iqm", "median", "optimality_gap", "solved" or "success_rate".
      rng: of the resamples; the same generator state gives the same interval.
      level: nominal coverage. Claims are for 0.95 only.
      draws: number of resamples, if the method needs them.
      target: of the optimality gap.
      left_out: how many seeds the caller left out, for the sentence.

    Returns:
      An `Interval`; without ends if no valid interval exists.

    Raises:
      BadInput: NaN, no seeds.
      UnknownOption: no such statistic.
    """
    scores = seeds_by_tasks(scores_RT)
    if scores.ndim != 2:
        raise BadInput(f"scores_RT has the shape {scores.shape}; it has to be [seeds] or [seeds, tasks].")
    n, tasks = scores.shape
    row = decide(statistic, n, tasks)
    estimate_P, low_P, high_P, used, why = pointwise(
        scores[:, :, None], statistic, rng=rng, level=level, draws=draws, target=target
    )
    low, high = float(low_P[0]), float(high_P[0])
    per_seed = scores.mean(axis=1)
    ends = bool(np.isfinite(low))
    asked = abs(level - 0.95) < 1e-12
    claim, mild = (row.claim, row.mild) if ends and asked else (None, None)
    if ends and row.method in ("range", "order statistics"):
        claim = mild = order_statistics_coverage(n, level) if row.method == "range" else level
    return Interval(
        statistic,
        float(estimate_P[0]),
        low if ends else None,
        high if ends else None,
        level,
        used if ends else "none",
        n,
        tasks,
        claim,
        mild,
        "" if ends else why,
        float(per_seed.min()),
        float(per_seed.max()),
        draws if used in (_EXPANDED, _BOOT_T) else 0,
        left_out,
    )


def pointwise(
    scores_NTP: Floats,
    statistic: str,
    *,
    rng: np.random.Generator,
    level: float = 0.95,
    draws: int = DRAWS,
    target: float = 1.0,
) -> tuple[Floats, Floats, Floats, str, str]:
    """The estimate and its pointwise interval, all points from the same resamples.

    Args:
      scores_NTP: [seeds, tasks, points], finite.
      statistic: as for `interval`.
      rng: of the resamples.
      level: nominal coverage.
      draws: resamples.
      target: of the optimality gap.

    Returns:
      (estimate, low, high), each [points], the method, and the reason why there is no interval. Ends are NaN where
      there is no interval, or where all seeds are equal up to rounding.
    """
    level_of(level)
    n, tasks, points = scores_NTP.shape
    row = decide(statistic, n, tasks)
    if statistic == "solved":
        if not np.isin(scores_NTP, (0.0, 1.0)).all():
            raise BadInput('"solved" takes booleans, one per seed; compare the scores with the threshold first.')
        estimate = scores_NTP.mean(axis=(0, 1))
        if row.method == "none":
            return estimate, *_no_ends(points), "none", row.reason
        low, high = clopper_pearson(scores_NTP[:, 0].sum(axis=0), n, level)
        return estimate, low, high, row.method, ""
    flip = statistic == "optimality_gap"
    if flip:
        scores_NTP = np.minimum(scores_NTP, target)
    name = "mean" if statistic in ("optimality_gap", "success_rate") else statistic
    estimate = np.atleast_1d(np.asarray(aggregate(name, scores_NTP), dtype=np.float64))
    spread: Bools = (np.ptp(scores_NTP, axis=0) > _ROUNDING * np.abs(scores_NTP).max(axis=0)).any(axis=0)
    method, why = row.method, row.reason
    low, high = _no_ends(points)
    if method != "none" and spread.any():
        low[spread], high[spread], method = _ends(method, name, scores_NTP[:, :, spread], rng, level, draws)
        if statistic == "success_rate":
            low, high = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
    elif method != "none":
        why = "all seeds score the same; no spread was seen, which is not certainty"
    if flip:
        estimate, low, high = target - estimate, target - high, target - low
    return estimate, low, high, method, why


def _ends(
    method: str, statistic: str, scores_NTP: Floats, rng: np.random.Generator, level: float, draws: int
) -> tuple[Floats, Floats, str]:
    """(low, high, method); for bootstrap-t the method that replaces it, if it does so at every point."""
    n = len(scores_NTP)
    if method == _WINSORISED:
        return *winsorised_t(scores_NTP, level), method
    if method == _EXPANDED:
        return *expanded_percentile(replicates(statistic, scores_NTP, seed_counts(n, draws, rng)), n, level), method
    per_seed_NP = scores_NTP.mean(axis=1)
    if method == _T:
        return *student_t(per_seed_NP, level), method
    if method == _BOOT_T:
        low, high, is_t = bootstrap_t(per_seed_NP, seed_counts(n, draws, rng), level)
        return low, high, _T if is_t.all() else method
    return *order_statistics(per_seed_NP, level), method


def _no_ends(points: int) -> tuple[Floats, Floats]:
    return np.full(points, np.nan), np.full(points, np.nan)


def complete_seeds(scores_RT: ArrayLike) -> tuple[Floats, int]:
    """The seeds that have all tasks, and how many were left out.

    Args:
      scores_RT: [seeds, tasks], NaN if a seed has no run of a task. Infinities are refused later.

    Returns:
      ([complete seeds, tasks], left out).
    """
    scores = floats(scores_RT, "scores_RT")
    if scores.ndim != 2:
        raise BadInput(f"scores_RT has the shape {scores.shape}; it has to be [seeds, tasks].")
    whole = ~np.isnan(scores).any(axis=1)
    return scores[whole], int((~whole).sum())
