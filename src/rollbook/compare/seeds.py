"""How many seeds would decide between two groups, from what their seeds have shown so far."""

from __future__ import annotations

import math

from rollbook import stats
from rollbook.compare.scores import Group
from rollbook.stats import SeedRange

__all__ = ["FEWEST", "seeds_to_decide"]

FEWEST = 10
"""Seeds a group: of fewer the range says next to nothing (`stats.seeds_needed`)."""


def seeds_to_decide(a: Group, b: Group, power: float = 0.8) -> SeedRange | None:
    """Seeds a group with which one two-sided test at 5 % would find the present difference of means with this power.

    Returns:
      At the quartiles of the plausible differences, from 1 to 100 or None beyond; None where a group has fewer than
      `FEWEST` seeds, or all scores are equal.
    """
    seeds_a, seeds_b = a.seeds_R, b.seeds_R
    if min(len(seeds_a), len(seeds_b)) < FEWEST:
        return None
    error = math.sqrt(float(seeds_a.var(ddof=1)) / len(seeds_a) + float(seeds_b.var(ddof=1)) / len(seeds_b))
    if not error > 0:
        return None
    n = 2 / (1 / len(seeds_a) + 1 / len(seeds_b))
    return stats.seeds_needed(float(seeds_a.mean() - seeds_b.mean()), error, n, power=power)
