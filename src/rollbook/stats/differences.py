"""Intervals of a difference of two groups of runs, of the probability of improvement, and of a profile.

    difference(a_RT, b_RT, "iqm", rng=rng).sentence("ppo", "dqn")

Use the interval of the difference, not the overlap of two intervals. These intervals are for one look at finished runs;
while seeds come in, use the repeated interval of `verdict`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rollbook.errors import BadInput
from rollbook.stats._checked_input import Floats, choice, level_of, seeds_by_tasks
from rollbook.stats._special import stdtrit
from rollbook.stats.aggregates import aggregate, placements
from rollbook.stats.bootstrap import expanded_percentile
from rollbook.stats.closed_forms import influence_by_seed
from rollbook.stats.draws import seed_counts
from rollbook.stats.intervals import DRAWS
from rollbook.stats.replicates import replicates
from rollbook.system.brief import brief
from rollbook.system.texts import quantity


@brief
@dataclass(frozen=True)
class Difference:
    """A comparison of two groups with its interval, or with the reason why there is none.

    Attributes:
      statistic: "mean", "iqm" (differences, A minus B) or "probability_of_improvement" (of A over B).
      estimate: its value.
      low: lower end, or None.
      high: upper end, or None.
      level: nominal coverage, for one look.
      method: how the ends were found; "none" without them.
      n_a: seeds of A.
      n_b: seeds of B.
      tasks: tasks.
      reason: why there is no interval; else "".
    """

    statistic: str
    estimate: float
    low: float | None
    high: float | None
    level: float
    method: str
    n_a: int
    n_b: int
    tasks: int
    reason: str = ""

    def as_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)

    def sentence(self, a: str = "A", b: str = "B") -> str:
        """One sentence, the number first."""
        what = {
            "mean": f"Mean of {a} less that of {b}",
            "iqm": f"IQM of {a} less that of {b}",
        }.get(self.statistic, f"Probability that a run of {a} scores more than one of {b}")
        seeds = f"n = {self.n_a} and {self.n_b}"
        if self.low is None or self.high is None:
            return f"{what}: {quantity(self.estimate)} ({seeds}); no interval: {self.reason}."
        return (
            f"{what}: {quantity(self.estimate)}, {100 * self.level:g} % interval {quantity(self.low)} to "
            f"{quantity(self.high)} ({self.method}, {seeds})."
        )


def sentence_of_differences(found: Sequence[tuple[str, str, Difference]]) -> str:
    """Differences of means or IQMs in one sentence, each from the larger to the smaller.

    Args:
      found: (a, b, their difference), at least one, all of one statistic.
    """
    name = {"iqm": "IQMs", "mean": "means"}.get(found[0][2].statistic, found[0][2].statistic)
    parts: list[str] = []
    methods: dict[str, None] = {}
    for a, b, of in found:
        swap = of.estimate < 0
        first, second, size = (b, a, -of.estimate) if swap else (a, b, of.estimate)
        ends = ""
        if of.low is not None and of.high is not None:
            low, high = (-of.high, -of.low) if swap else (of.low, of.high)
            ends, methods[of.method] = f" ({quantity(low)} to {quantity(high)})", None
        parts.append(f"{first} minus {second} {quantity(size)}{ends}")
    what = "Difference" if len(parts) == 1 else "Differences"
    how = f"; nominally {100 * found[0][2].level:g} % intervals ({', '.join(methods)})" if methods else ""
    if len(methods) and len(parts) == 1:
        how = how.replace("intervals", "interval")
    if not methods:
        how = f"; no interval: {found[0][2].reason}"
    return f"{what} of the {name}: {', '.join(parts)}{how}."


def difference(
    a_RT: ArrayLike,
    b_RT: ArrayLike,
    statistic: str = "iqm",
    *,
    rng: np.random.Generator,
    level: float = 0.95,
    draws: int = DRAWS,
) -> Difference:
    """The difference of two groups, A minus B, over whole seeds.

    Means: Welch's interval of the seeds' means over tasks, from 3 seeds per arm. IQM of up to 4 tasks: independent
    resamples of each arm, expanded for the size of the smaller arm, from 5 seeds per arm. IQM of 5 tasks and more:
    winsorised t by seed, from 3 seeds per arm.

    Args:
      a_RT: [seeds of A] or [seeds of A, tasks]; crashed ones at the declared floor.
      b_RT: [seeds of B] or [seeds of B, the same tasks].
      statistic: "mean" or "iqm".
      rng: of the resamples.
      level: nominal coverage.
      draws: number of resamples, if the method needs them.

    Returns:
      A `Difference`; without ends if no valid interval exists.

    Raises:
      BadInput: NaN, or different numbers of tasks.
    """
    choice(statistic, ("mean", "iqm"), "statistic of a difference")
    level_of(level)
    a, b = _both(a_RT, b_RT)
    tasks, fewest = a.shape[1], min(len(a), len(b))
    estimate = float(aggregate(statistic, a) - aggregate(statistic, b))

    def without(why: str) -> Difference:
        return Difference(statistic, estimate, None, None, level, "none", len(a), len(b), tasks, why)

    by_seed = statistic == "iqm" and tasks >= 5
    least = 3 if by_seed or statistic == "mean" else 5
    if fewest < least:
        return without(f"it needs at least {least} seeds of each")
    if statistic == "iqm" and not by_seed:
        if not (np.ptp(a, axis=0).any() or np.ptp(b, axis=0).any()):
            return without("no spread was seen, which is not certainty")
        of_a, of_b = (
            replicates("iqm", arm[:, :, None], seed_counts(len(arm), draws, child))
            for arm, child in zip((a, b), rng.spawn(2), strict=True)
        )
        low, high = expanded_percentile(of_a - of_b, fewest, level)
        ends, method = (float(low[0]), float(high[0])), "expanded percentile bootstrap"
    else:
        of_a, of_b = (influence_by_seed(arm) if by_seed else arm.mean(axis=1) for arm in (a, b))
        reach = _welch_reach(of_a, of_b, level)
        if reach == 0:
            return without("no spread was seen, which is not certainty")
        ends, method = (estimate - reach, estimate + reach), "winsorised t by seed" if by_seed else "Welch's t"
    return Difference(statistic, estimate, *ends, level, method, len(a), len(b), tasks)


def improvement(a_RT: ArrayLike, b_RT: ArrayLike, *, level: float = 0.95) -> Difference:
    """Probability that a run of A scores higher than one of B on the same task, over whole seeds.

    A seed's influence is the share of the other arm's runs that it beats, averaged over tasks. The interval is Welch's
    t on the influences, clipped to 0 and 1. For one task it is the interval of Brunner and Munzel.

    Args:
      a_RT: [seeds of A] or [seeds of A, tasks].
      b_RT: [seeds of B] or [seeds of B, the same tasks].
      level: nominal coverage.

    Returns:
      A `Difference` with statistic "probability_of_improvement"; without ends below 5 seeds per arm, or if every run of
      one arm beats every run of the other.

    Source: Brunner and Munzel (2000); the average over tasks by whole seeds is ours.
    """
    level_of(level)
    a, b = _both(a_RT, b_RT)
    tasks = a.shape[1]
    of_a = np.mean([placements(a[:, t], b[:, t]) for t in range(tasks)], axis=0)
    of_b = np.mean([placements(b[:, t], a[:, t]) for t in range(tasks)], axis=0)
    estimate = float(of_a.mean())
    why = ""
    if min(len(a), len(b)) < 5:
        why = "it needs at least 5 seeds of each"
    elif _welch_reach(of_a, of_b, level) == 0:
        why = "the scores of the two do not overlap, so no spread can be seen"
    if why:
        return Difference("probability_of_improvement", estimate, None, None, level, "none", len(a), len(b), tasks, why)
    reach = _welch_reach(of_a, of_b, level)
    ends = max(estimate - reach, 0.0), min(estimate + reach, 1.0)
    method = "Brunner-Munzel by seed"
    return Difference("probability_of_improvement", estimate, *ends, level, method, len(a), len(b), tasks)


def _both(a_RT: ArrayLike, b_RT: ArrayLike) -> tuple[Floats, Floats]:
    a, b = seeds_by_tasks(a_RT, "a_RT"), seeds_by_tasks(b_RT, "b_RT")
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise BadInput(f"a_RT has the shape {a.shape} and b_RT {b.shape}; both are [seeds, tasks] over the same tasks.")
    return a, b


def _welch_reach(a_N: Floats, b_N: Floats, level: float) -> float:
    """Half the length of Welch's interval of a difference of means; 0 without spread."""
    va, vb = (float(arm.var(ddof=1)) / len(arm) if len(arm) > 1 and np.ptp(arm) > 0 else 0.0 for arm in (a_N, b_N))
    whole = va + vb
    if whole == 0:
        return 0.0
    freedom = 1 / ((va / whole) ** 2 / max(len(a_N) - 1, 1) + (vb / whole) ** 2 / max(len(b_N) - 1, 1))
    return float(stdtrit(freedom, (1 + level) / 2)) * math.sqrt(whole)
