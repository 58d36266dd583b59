"""Evidence that may be checked after every seed, without a plan: e-processes on pairs of seeds.

e_process(a_N, b_N)[-1] >= 20     # decided; false in at most one of 20 studies, however often it is checked
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rollbook.stats._checked_input import Floats, vector

DECIDES = 20.0
"""Evidence that decides one comparison, 1 / 0.05; for m comparisons made together each needs m times as much."""
_BETS = (-0.85, -0.45, 0.45, 0.85)


def e_process(a_N: ArrayLike, b_N: ArrayLike) -> Floats:
    """Evidence against "a seed of A scores more than one of B as often as less" after each pair of seeds.

    Seed i of A is paired with seed i of B, in order of arrival; seeds beyond the shorter arm wait for a partner. The
    evidence is the average wealth of four gamblers. Each bets a fixed share of its wealth on which of the two scores
    more. If neither usually does, that is a fair coin for any shapes of the two arms: the expected wealth never grows,
    and P(it ever reaches e) is at most 1 / e. Nothing is bet on ties. Bets that also use the size of a difference would
    need fewer seeds, but would be fair only for arms of equal shape.

    Args:
      a_N: [seeds] of A in order of arrival; crashed ones at the declared floor.
      b_N: [seeds] of B.

    Returns:
      [pairs]; 1 is no evidence, 20 decides. Empty if an arm has no seed.

    Source: betting as in Shafer (2021) and Ramdas et al. (2023).
    """
    a, b = vector(a_N, "a_N", 0), vector(b_N, "b_N", 0)
    pairs = min(len(a), len(b))
    sides = np.sign(np.subtract(a[:pairs], b[:pairs]))
    wealth = np.cumprod(1 + np.outer(_BETS, sides), axis=1)
    return np.asarray(wealth.mean(axis=0), dtype=np.float64)
