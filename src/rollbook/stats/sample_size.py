"""The power to detect a difference, and the number of seeds it needs: for use before a study, not after it.

power(seeds=16, difference=1.0)            # 0.78: a difference of one standard deviation between seeds
seeds_for(power=0.8, difference=1.0)       # 17
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from rollbook.errors import BadInput
from rollbook.stats._checked_input import Floats, finite
from rollbook.stats._quadrature import nodes_and_weights
from rollbook.stats._special import gammaln, ndtr, stdtrit

_NODES = 400


def power(seeds: int, difference: float, alpha: float = 0.05, seeds_b: int | None = None) -> float:
    """Power of one two-sided t test of two arms of normal scores with equal spread.

    Args:
      seeds: of arm A, at least 2.
      difference: of the means, in standard deviations between seeds.
      alpha: the level of a single test; a plan with several looks has slightly less power at the same n_max.
      seeds_b: of arm B; default: as many as A.

    Returns:
      From alpha to 1.

    Source: the noncentral t distribution; Cohen (1988) has the tables.
    """
    other_seeds = seeds if seeds_b is None else seeds_b
    if min(seeds, other_seeds) < 2:
        raise BadInput(f"A test needs at least 2 seeds an arm; asked for {seeds} and {other_seeds}.")
    if not 0 < alpha < 1:
        raise BadInput(f"alpha={alpha!r} has to lie between 0 and 1.")
    freedom = seeds + other_seeds - 2
    shift = abs(float(difference)) / math.sqrt(1 / seeds + 1 / other_seeds)
    edge = float(stdtrit(freedom, 1 - alpha / 2))
    # Given the estimated spread s (chi over its root mean square) the t statistic is normal.
    begin, end = _likely_spread(freedom)
    nodes, weights = nodes_and_weights(_NODES)
    spread = (end - begin) / 2 * (nodes + 1) + begin
    log_density = (
        math.log(2)
        + freedom / 2 * math.log(freedom / 2)
        - float(gammaln(freedom / 2))
        + (freedom - 1) * np.log(spread)
        - freedom / 2 * spread**2
    )
    beyond = ndtr(shift - edge * spread) + ndtr(-shift - edge * spread)
    return float(min((np.exp(log_density) * beyond) @ weights * (end - begin) / 2, 1.0))


def _likely_spread(freedom: int) -> tuple[float, float]:
    """The range of s / sigma, except for one case in 10 ** 16."""
    reach = 9.0 / math.sqrt(2 * freedom)
    return max(1 - reach, 1e-12), 1 + reach + 4.0 / freedom


def seeds_for(power: float, difference: float, alpha: float = 0.05, most: int = 10_000) -> int | None:
    """The smallest number of seeds per arm with at least this power; None if `most` is not enough.

    Args:
      power: wanted, above alpha and below 1.
      difference: in standard deviations between seeds, not 0.
      alpha: of a single test.
      most: the largest number to try.

    Returns:
      Seeds per arm.
    """
    if not alpha < power < 1 or difference == 0:
        raise BadInput(f"power={power!r} has to lie between alpha and 1 and difference={difference!r} away from 0.")
    low, high = 2, 4
    while _power_of(high, difference, alpha) < power:
        low, high = high, 2 * high
        if low >= most:
            return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _power_of(middle, difference, alpha) >= power else (middle + 1, high)
    return low if low <= most else None


_power_of = power


def power_table(seeds: ArrayLike, differences: ArrayLike, alpha: float = 0.05) -> Floats:
    """Power for several numbers of seeds and differences.

    Args:
      seeds: [rows], seeds per arm.
      differences: [columns], in standard deviations between seeds.
      alpha: of a single test.

    Returns:
      [rows, columns].
    """
    rows, columns = np.atleast_1d(finite(seeds, "seeds")), np.atleast_1d(finite(differences, "differences"))
    return np.array([[power(int(n), float(d), alpha) for d in columns] for n in rows])
