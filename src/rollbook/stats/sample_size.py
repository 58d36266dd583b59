"""The power of a t test to detect a difference: for use before a study, not after it.

power(seeds=16, difference=1.0)            # 0.78: a difference of one standard deviation between seeds
"""

from __future__ import annotations

import math

import numpy as np

from rollbook.errors import BadInput
from rollbook.stats._quadrature import nodes_and_weights
from rollbook.stats._special import gammaln, many_ndtr, stdtrit

_NODES = 400


def power(seeds: int, difference: float, alpha: float = 0.05, paired: bool = False) -> float:
    """Power of one two-sided t test of two arms of normal scores with equal spread.

    Args:
      seeds: of each arm, at least 2.
      difference: of the means, in standard deviations between seeds.
      alpha: the level of a single test; a plan with several looks has slightly less power at the same n_max.
      paired: whether equal seeds are compared with each other; then `difference` is in standard deviations of that
        difference.

    Returns:
      From alpha to 1.

    Source: the noncentral t distribution; Cohen (1988) has the tables.
    """
    if seeds < 2:
        raise BadInput(f"A test needs at least 2 seeds an arm; asked for {seeds}.")
    if not 0 < alpha < 1:
        raise BadInput(f"alpha={alpha!r} has to lie between 0 and 1.")
    freedom = seeds - 1 if paired else 2 * seeds - 2
    shift = abs(float(difference)) * math.sqrt(seeds if paired else seeds / 2)
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
    beyond = many_ndtr(shift - edge * spread) + many_ndtr(-shift - edge * spread)
    return float(min((np.exp(log_density) * beyond) @ weights * (end - begin) / 2, 1.0))


def _likely_spread(freedom: int) -> tuple[float, float]:
    """The range of s / sigma, except for one case in 10 ** 16."""
    reach = 9.0 / math.sqrt(2 * freedom)
    return max(1 - reach, 1e-12), 1 + reach + 4.0 / freedom
