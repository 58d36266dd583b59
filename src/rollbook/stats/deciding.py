"""How many seeds decide: the power of the verdict, for use before a study and after a look that did not decide.

    power_to_decide(10, 1.5, limit=0.03)       # 0.78: ten seeds of each, a difference of 1.5 standard deviations
    seeds_to_decide(0.86, lambda n: 0.03)      # the same from the share of pairs of seeds that one arm wins

The tests are those of `judging`, at the limit of the look in question. Scores are taken for normal, of equal spread.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from rollbook.errors import BadInput
from rollbook.stats._special import ndtri
from rollbook.stats.exact_ranks import rank_sum_counts, signed_rank_counts
from rollbook.stats.judging import FEWEST, least_p
from rollbook.stats.sample_size import power

POWER = 0.8
"""The chance for which seeds are counted where no other is asked for."""
_RANKS = 0.9
"""Both tests of n normal scores find together what a t test of 0.9 n finds; ranks alone 3 / pi.

By simulation (4,000 studies for each of seven differences from 0.8 to 3 standard deviations, at the seeds named for
80 % and one more or less): the share that decides lies 0.00 to 0.02 above what is promised, at four seeds 0.01 below.
Of pairs (500 studies for each of five differences from 0.6 to 1.8, 8 to 26 pairs) it lies from 0.02 below to 0.06
above, at seven pairs up to 0.05 below.
"""
_COUNTED = 25
"""Seeds of each up to which the steps of p are counted; beyond, they are too small to matter."""


def fewest_that_decide(
    limit: Callable[[int], float], above: int = 0, most: int = 200, paired: bool = False
) -> int | None:
    """The fewest seeds of each arm whose clearest possible scores would decide; None if `most` could not.

    Args:
      limit: number of seeds -> what p must not exceed at a look at them.
      above: only numbers above this one.
      most: the largest number to try.
      paired: whether equal seeds are compared with each other.
    """
    for n in range(max(above + 1, FEWEST), most + 1):
        if least_p(n, n, paired) <= limit(n):
            return n
    return None


def power_to_decide(seeds: int, difference: float, limit: float = 0.03, paired: bool = False) -> float:
    """The chance that a look at this many seeds of each arm names the better one.

    Args:
      seeds: of each arm.
      difference: of the means, in standard deviations between seeds.
      limit: what p must not exceed; 0.03 at the first look at one pair.
      paired: whether equal seeds are compared with each other; then in standard deviations of that difference.

    Returns:
      From 0 to 1, for normal scores of equal spread.
    """
    if seeds < 2:
        return 0.0
    level = attainable(seeds, limit, paired)
    if level <= 0 or seeds < FEWEST:
        return 0.0
    return power(seeds, abs(difference) * math.sqrt(_RANKS), alpha=min(level, 0.5), paired=paired)


@lru_cache(maxsize=4096)
def attainable(seeds: int, limit: float, paired: bool = False) -> float:
    """The largest p of ranks without ties that does not exceed the limit; 0 if there is none."""
    if least_p(seeds, seeds, paired) > limit:
        return 0.0
    if seeds > _COUNTED:
        return limit
    counts = signed_rank_counts(seeds) if paired else rank_sum_counts(seeds)
    tail = 2 * np.cumsum(counts) / counts.sum()
    under = tail[tail <= limit * (1 + 1e-12)]
    return float(under[-1]) if len(under) else 0.0


def detectable(seeds: int, limit: float = 0.03, power: float = POWER) -> float:
    """The smallest difference, in standard deviations, that this many seeds of each arm find with this power.

    Args:
      seeds: of each arm.
      limit: the p that a verdict must not exceed; 0.03 is that of a first look at one pair, without a plan.
      power: the probability with which the difference is found.
    Returns:
      Infinity if so few seeds cannot decide whatever they score.
    """
    if power_to_decide(seeds, 60.0, limit) < power:
        return math.inf
    low, high = 0.0, 1.0
    while power_to_decide(seeds, high, limit) < power:
        low, high = high, 2 * high
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if power_to_decide(seeds, middle, limit) >= power else (middle, high)
    return high


def seeds_for_difference(
    difference: float,
    limit: Callable[[int], float],
    power: float = POWER,
    least: int = FEWEST,
    most: int = 10_000,
    paired: bool = False,
) -> int | None:
    """The smallest number of seeds of each arm that finds a difference with this power; None if `most` does not.

    Args:
      difference: in standard deviations between seeds.
      limit: number of seeds -> what p must not exceed at a look at them.
      power: wanted.
      least, most: the numbers to try.
      paired: see `power_to_decide`.
    """
    if not 0 < power < 1:
        raise BadInput(f"power={power!r} has to lie between 0 and 1.")
    if difference == 0 or least > most:
        return None

    def enough(n: int) -> bool:
        return power_to_decide(n, difference, limit(n), paired) >= power

    for n in range(least, min(least + 12, most) + 1):  # p moves in steps there, so power does not only rise
        if enough(n):
            return n
    low, high = least + 12, 2 * (least + 12)
    while high < most and not enough(high):
        low, high = high, 2 * high
    high = min(high, most)
    if low >= high or not enough(high):
        return None
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def difference_of_share(won: float, pairs: int) -> float:
    """The difference of normal scores, in standard deviations, of which one arm wins this share of the pairs of seeds.

    Args:
      won: the share, ties half.
      pairs: how many pairs there were; where all were won, half a pair less is taken.
    """
    edge = 0.5 / max(pairs, 1)
    return abs(math.sqrt(2) * ndtri(min(max(won, edge), 1 - edge)))


def seeds_to_decide(
    won: float,
    limit: Callable[[int], float],
    least: int | None,
    most: int = 200,
    paired: bool = False,
    power: float = POWER,
    pairs: int = 25,
) -> int | None:
    """Seeds of each arm that decide with this power if the difference is as it looks now; None: more than `most`.

    Args:
      won: the share of the pairs of seeds that one arm won, ties half.
      limit: number of seeds -> what p must not exceed at a look at them.
      least: the fewest to think of; None: there is no further look.
      most: the largest number to try.
      paired: see `power_to_decide`.
      power: wanted.
      pairs: how many pairs of seeds there were.
    """
    if least is None:
        return None
    difference = difference_of_share(won, pairs)
    if paired:
        difference /= math.sqrt(2)
    return seeds_for_difference(difference, limit, power, least, most, paired)
