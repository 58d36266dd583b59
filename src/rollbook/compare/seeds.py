"""How many seeds would decide between two groups, and which difference a number of seeds can detect."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rollbook import stats
from rollbook.compare.scores import Group, Pair
from rollbook.errors import BadInput
from rollbook.stats import SeedRange
from rollbook.system.brief import brief

FEWEST = 10
"""Seeds per group below which the range is too wide to be useful (`stats.seeds_needed`)."""


@brief
@dataclass(frozen=True)
class SeedPlan:
    """Which difference a number of seeds can detect.

    Attributes:
      std: standard deviation of the scores between seeds; pooled over the groups, if there are runs.
      power: wanted power of one two-sided t test at 5 %.
      difference: the difference to detect, in units of the score; None if not given.
      needed: seeds per group for it; None if no difference is given, or if more than 10,000 are needed.
      detectable: seeds per group -> the smallest difference detected with that power.
      pairs: for runs: the groups, their seeds and difference, and the range of seeds that would decide between them.
    """

    std: float
    power: float
    difference: float | None
    needed: int | None
    detectable: dict[int, float]
    pairs: list[dict[str, Any]] = field(default_factory=list)

    def as_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        rows = [{"seeds": n, "difference": size} for n, size in self.detectable.items()]
        return {
            "std": self.std, "power": self.power, "difference": self.difference, "seeds_needed": self.needed,
            "detectable": rows, "pairs": self.pairs,
        }  # fmt: skip

    def sentences(self) -> list[str]:
        """The result in words, the answer first."""
        lines = []
        if self.difference is not None:
            seeds = "More than 10,000" if self.needed is None else f"{self.needed:,}"
            lines.append(f"{seeds} seeds a group find a difference of {self.difference:g} with {self.power:.0%} power.")
        for pair in self.pairs:
            low, high = pair["seeds_needed"] or (None, None)
            range_ = SeedRange(low, high)
            words = f"{pair['a']} ({pair['seeds_a']} seeds) and {pair['b']} ({pair['seeds_b']}) differ by "
            words += f"{pair['difference']:.4g}"
            if pair["seeds_needed"] is None:
                lines.append(f"{words}. How many seeds would decide that can be told from {FEWEST} seeds a group on.")
            else:
                lines.append(f"{words}; one t test finds that with {range_} seeds a group, at {self.power:.0%} power.")
        lines.append(f"The scores of seeds have a standard deviation of {self.std:.4g}.")
        return lines


def as_planned(std: float, difference: float | None, power: float, counts: Sequence[int]) -> SeedPlan:
    """A plan for scores with this standard deviation between seeds; `counts` are the seed counts to report."""
    needed = stats.seeds_for(power, difference / std) if difference is not None else None
    return SeedPlan(std, power, difference, needed, {n: std * detectable(n, power) for n in counts})


def as_seen(
    groups: Sequence[Group], pairs: Sequence[Pair], difference: float | None, power: float, counts: Sequence[int]
) -> SeedPlan:
    """A plan from the observed standard deviation between seeds, pooled over the groups.

    Raises:
      BadInput: no group has two seeds, or all scores of each group are equal.
    """
    scores = {group.label: group.seeds_R for group in groups}
    freedom = sum(len(some) - 1 for some in scores.values() if len(some) > 1)
    squares = sum(float(((some - some.mean()) ** 2).sum()) for some in scores.values() if len(some) > 1)
    if not freedom or not squares > 0:
        raise BadInput("how far scores of one group lie apart is not known: no group has two seeds of different scores")
    plan = as_planned(math.sqrt(squares / freedom), difference, power, counts)
    by_label = {group.label: group for group in groups}
    for pair in pairs:
        a, b = scores[pair.a], scores[pair.b]
        if len(a) and len(b):
            plan.pairs.append(
                {
                    "a": pair.a, "b": pair.b, "seeds_a": len(a), "seeds_b": len(b),
                    "difference": float(np.mean(a) - np.mean(b)),
                    "seeds_needed": to_decide(by_label[pair.a], by_label[pair.b], power),
                }
            )  # fmt: skip
    return plan


def detectable(seeds: int, power: float = 0.8) -> float:
    """The smallest difference of means, in standard deviations, that this many seeds per group detect."""
    low, high = 0.0, 1.0
    while stats.power(seeds, high) < power:
        low, high = high, 2 * high
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if stats.power(seeds, middle) >= power else (middle, high)
    return high


def to_decide(a: Group, b: Group, power: float = 0.8) -> list[int | None] | None:
    """Seeds per group with which one two-sided test at 5 % detects the present difference of means with this power.

    Returns:
      [fewest, most]: at the quartiles of the plausible differences, from 1 to 100, or None beyond. None if a group has
      fewer than `FEWEST` seeds, or all scores are equal.
    """
    seeds_a, seeds_b = a.seeds_R, b.seeds_R
    if min(len(seeds_a), len(seeds_b)) < FEWEST:
        return None
    error = math.sqrt(float(seeds_a.var(ddof=1)) / len(seeds_a) + float(seeds_b.var(ddof=1)) / len(seeds_b))
    if not error > 0:
        return None
    n = 2 / (1 / len(seeds_a) + 1 / len(seeds_b))
    range_ = stats.seeds_needed(float(seeds_a.mean() - seeds_b.mean()), error, n, power=power)
    return [range_.low, range_.high]
