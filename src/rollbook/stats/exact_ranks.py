"""Exact p-values of sums of ranks, ties included: every split, or every choice of signs, is counted.

    splits_as_far(ranks_N, 5)     # two arms: the first five values against the others
    signs_as_far(ranks_N, 9)      # pairs: the sum of the ranks with a plus

The values are integers, such as twice the midranks, so the counts are those of a sum, not of a list of all splits.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from rollbook.stats._checked_input import Floats, Ints
from rollbook.stats._special import ndtr

_MOST_STEPS = 200_000_000
"""Additions of one count; beyond it, p is that of the normal limit."""


def doubled_midranks(values: ArrayLike) -> Ints:
    """[N], twice the rank of each value from 1; ties get the mean of their ranks."""
    x = np.asarray(values, dtype=np.float64)
    ordered = np.sort(x)
    below = np.searchsorted(ordered, x, "left") + np.searchsorted(ordered, x, "right") + 1
    return np.asarray(below, dtype=np.int64)


def splits_as_far(values_N: Ints, first: int) -> float:
    """The share of all splits whose sum is at least as far from its mean as the sum of the first values.

    Args:
      values_N: [N] integers.
      first: how many of them, from the start, form the observed arm; from 1 to N - 1.

    Returns:
      A two-sided p, above 0. Exact unless the count would be too long (about 60 seeds an arm); then of the normal
      limit, with a correction for continuity.
    """
    every = len(values_N)
    arm = values_N[:first] if 2 * first <= every else values_N[first:]
    chosen, low = len(arm), int(values_N.min())
    shifted = np.sort(values_N - low)
    step = math.gcd(*shifted.tolist())
    if step == 0:
        return 1.0
    shifted //= step
    seen, total = (int(arm.sum()) - chosen * low) // step, int(shifted.sum())
    far = abs(every * seen - chosen * total)
    top = int(shifted[-chosen:].sum())
    if every * (chosen + 1) * (top + 1) > _MOST_STEPS:
        variance = chosen * (every - chosen) / (every - 1) * float(shifted.var())
        return min(2 * float(ndtr(-max(far / every - 0.5, 0.0) / math.sqrt(variance))), 1.0)
    ways = np.zeros((chosen + 1, top + 1))
    ways[0, 0] = 1
    for value in shifted.tolist():
        ways[1:, value:] += ways[:-1, : top + 1 - value].copy()
    counts = ways[chosen]
    beyond = np.abs(every * np.arange(top + 1) - chosen * total) >= far
    return min(float(counts[beyond].sum() / counts.sum()), 1.0)


def signs_as_far(values_N: Ints, seen: int) -> float:
    """The share of all choices of signs in which the sum of the positive values is as far from its mean as `seen`.

    Args:
      values_N: [N] integers above 0; at most a few hundred.
      seen: the observed sum of those with a plus.

    Returns:
      A two-sided p, above 0; 1 without any value.
    """
    total = int(values_N.sum())
    counts = np.zeros(total + 1)
    counts[0] = 1
    for value in np.sort(values_N).tolist():
        counts[value:] += counts[: total + 1 - value].copy()
    beyond = np.abs(2 * np.arange(total + 1) - total) >= abs(2 * seen - total)
    return min(float(counts[beyond].sum() / counts.sum()), 1.0)


@lru_cache(maxsize=64)
def rank_sum_counts(n: int) -> Floats:
    """[n * n + 1]: in how many splits of 2 n different scores one arm of n wins 0, 1, … pairs."""
    counts = np.zeros((n + 1, n * n + 1))
    counts[0, 0] = 1
    for rank in range(2 * n):
        for chosen in range(min(rank + 1, n), 0, -1):
            wins = rank - (chosen - 1)  # members of the other arm below
            if wins <= n * n:
                counts[chosen, wins:] += counts[chosen - 1, : n * n + 1 - wins].copy()
    found: Floats = counts[n]
    return found


@lru_cache(maxsize=64)
def signed_rank_counts(n: int) -> Floats:
    """[n * (n + 1) / 2 + 1]: in how many choices of signs the ranks 1 to n with a plus have the sum 0, 1, …"""
    counts: Floats = np.zeros(n * (n + 1) // 2 + 1)
    counts[0] = 1
    for rank in range(1, n + 1):
        counts[rank:] += counts[:-rank].copy()
    return counts


def fewest_split(n_a: int, n_b: int) -> float:
    """The smallest two-sided p that a test of these many seeds can have: 2 / C(n_a + n_b, n_a)."""
    return min(2 / math.comb(n_a + n_b, n_a), 1.0)


def any_shape(share: float, n: int) -> float:
    """A bound on p that holds whatever the shapes of two arms of which neither usually scores better.

    The share of pairs won is a mean over pairings of n independent numbers between 0 and 1 with mean 1/2, so Chernoff's
    bound holds for it.

    Args:
      share: of the pairs of seeds that one arm won, ties half.
      n: seeds of the smaller arm.

    Returns:
      At most 1; 2 ** (1 - n) if one arm won all pairs. Not corrected for several looks or pairs of groups.

    Source: Hoeffding (1963), section 5, for means over pairings.
    """
    w = max(share, 1 - share)
    rest = (1 - w) * math.log(1 - w) if w < 1 else 0.0
    return min(2 * math.exp(-n * (math.log(2) + w * math.log(w) + rest)), 1.0)
