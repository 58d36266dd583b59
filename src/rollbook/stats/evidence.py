"""Evidence that may be looked at after every seed, without a plan: e-processes on pairs of seeds.

e_process(a_N, b_N)[-1] >= 20     # decided; false in at most one of 20 studies, however often one looks
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rollbook.stats._checked_input import Floats, vector

__all__ = ["DECIDES", "e_process"]

DECIDES = 20.0
"""Evidence at which one comparison is decided: 1 / 0.05."""
_BETS = (-2.0, -1.0, -0.5, 0.5, 1.0, 2.0)


def e_process(a_N: ArrayLike, b_N: ArrayLike) -> Floats:
    """Evidence against "both arms have the same distribution" after each pair of seeds.

    Seed i of A is paired with seed i of B, in order of arrival; seeds beyond the shorter arm wait for their partner.
    The wealth of six gamblers is averaged: each bets tanh(r D_i / s_i) of its wealth on the sign of the difference D_i,
    where s_i is the root mean square of the differences up to this one. Given |D_i| that sign is a fair coin if the
    arms are distributed alike, whatever their shape: the expected wealth never grows, and P(it ever reaches e) is at
    most 1 / e. Ties bet nothing.

    Args:
      a_N: [seeds] of A in order of arrival; crashed ones at the declared floor.
      b_N: [seeds] of B.

    Returns:
      [pairs]; 1 is no evidence, 20 decides. Empty where an arm has no seed.

    Source: betting as in Shafer (2021) and Ramdas et al. (2023); the tanh bets are ours.
    """
    a, b = vector(a_N, "a_N", 0), vector(b_N, "b_N", 0)
    pairs = min(len(a), len(b))
    if not pairs:
        return np.empty(0)
    gap = a[:pairs] - b[:pairs]
    largest = float(np.abs(gap).max())
    if largest == 0:
        return np.ones(pairs)
    gap = gap / largest  # squares of very large or small scores stay in range
    scale = np.sqrt(np.cumsum(gap**2) / np.arange(1, pairs + 1))
    bold = np.divide(gap, scale, out=np.zeros(pairs), where=scale > 0)
    wealth = np.cumprod(1 + np.tanh(np.outer(_BETS, bold)), axis=1)
    return np.asarray(wealth.mean(axis=0), dtype=np.float64)
