"""Tests of the means of two groups of runs of one task: Welch's, and by permutation. `judging` adds ranks.

    welch(a_N, b_N).p

Axes: N the seeds of an arm; the arms may differ in size. Every test is two-sided. None of them may be repeated at the
same level while seeds come in: see `study`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from rollbook.errors import BadInput
from rollbook.stats._checked_input import Floats, Packed, vector
from rollbook.stats._special import stdtr, stdtrit
from rollbook.system.brief import brief

EXACT_SPLITS = 20_000
"""Up to this number of splits of the scores into two arms, all of them are tried."""
_AT_ONCE = 1 << 16
"""Members of splits that are looked at together."""


@brief
@dataclass(frozen=True)
class TwoSampleTest:
    """The result of a test of two arms.

    Attributes:
      method: its name.
      difference: of the means, A minus B.
      statistic: t, the difference in units of its error; NaN if both arms are constant.
      p: two-sided.
      error: standard error of the difference, in its units.
      freedom: degrees of freedom of t; infinite for a permutation test.
      splits: how many splits a permutation test tried, else 0.
      exact: whether p is exact for arms with equal distribution.
    """

    method: str
    difference: float
    statistic: float
    p: float
    error: float
    freedom: float
    splits: int = 0
    exact: bool = False


def welch(a_N: ArrayLike, b_N: ArrayLike) -> TwoSampleTest:
    """Welch's t test of the difference of means, with Satterthwaite's degrees of freedom.

    Two arms that are equal constants have p = 1, two different constants p = 0: use their permutation test.

    Args:
      a_N: [seeds of A], at least 2.
      b_N: [seeds of B], at least 2.

    Returns:
      A `TwoSampleTest`.

    Source: Welch (1947).
    """
    a, b = vector(a_N, "a_N", 2), vector(b_N, "b_N", 2)
    difference = float(a.mean() - b.mean())
    va, vb = float(a.var(ddof=1)) / len(a), float(b.var(ddof=1)) / len(b)
    if np.ptp(a) == 0:  # the mean of equal floats may differ from them by an ulp
        va = 0.0
    if np.ptp(b) == 0:
        vb = 0.0
    if va == 0 and vb == 0:
        difference = float(a[0] - b[0])
        return TwoSampleTest("Welch", difference, math.nan, 1.0 if difference == 0 else 0.0, 0.0, math.inf)
    whole = va + vb
    part = va / whole
    freedom = 1 / (part**2 / (len(a) - 1) + (1 - part) ** 2 / (len(b) - 1))
    t = difference / math.sqrt(whole)
    return TwoSampleTest("Welch", difference, t, 2 * float(stdtr(freedom, -abs(t))), math.sqrt(whole), freedom)


def welch_interval(
    mean_a: ArrayLike,
    variance_a: ArrayLike,
    n_a: ArrayLike,
    mean_b: ArrayLike,
    variance_b: ArrayLike,
    n_b: ArrayLike,
    level: float = 0.95,
) -> tuple[Floats, Floats]:
    """Welch's interval of the difference of two means, A minus B, point by point.

    Args:
      mean_a, variance_a, n_a: [points], of arm A; the variance is divided by n - 1, and n is at least 2.
      mean_b, variance_b, n_b: [points], of arm B.
      level: coverage at each single point, for normal scores.

    Returns:
      (low, high), each [points]; both are the difference itself if neither arm varies.
    """
    square_a, square_b = (
        np.asarray(variance, dtype=np.float64) / np.asarray(n, dtype=np.float64)
        for variance, n in ((variance_a, n_a), (variance_b, n_b))
    )
    total = square_a + square_b
    below = square_a**2 / (np.asarray(n_a) - 1) + square_b**2 / (np.asarray(n_b) - 1)
    freedom = np.divide(total**2, below, out=np.ones_like(total), where=below > 0)
    reach = stdtrit(freedom, (1 + level) / 2) * np.sqrt(total)
    gap = np.asarray(mean_a, dtype=np.float64) - np.asarray(mean_b, dtype=np.float64)
    return gap - reach, gap + reach


def permutation(
    a_N: ArrayLike,
    b_N: ArrayLike,
    *,
    rng: np.random.Generator,
    draws: int = 9_999,
    splits: Packed | None = None,
) -> TwoSampleTest:
    """Permutation test of the studentised difference: exact for arms with equal distribution, robust to unequal
    spreads.

    All splits into two arms are tried if there are at most `EXACT_SPLITS`, else `draws` random ones and the observed
    one. A split as extreme as the observed one counts against a winner.

    Args:
      a_N: [seeds of A], at least 2.
      b_N: [seeds of B], at least 2.
      rng: used only if not all splits are tried.
      draws: random splits.
      splits: these random ones instead, however few there are in all; see `random_splits`.

    Returns:
      A `TwoSampleTest`.

    Source: Janssen (1997); Chung and Romano (2013) for unequal arms.
    """
    a, b = vector(a_N, "a_N", 2), vector(b_N, "b_N", 2)
    if draws < 1:
        raise BadInput(f"draws={draws!r} has to be at least 1.")
    pooled = np.concatenate([a, b])
    order = np.argsort(pooled, kind="stable")
    ordered = pooled[order]
    span = float(ordered[-1] - ordered[0])
    if span == 0:
        return TwoSampleTest("permutation", 0.0, math.nan, 1.0, 0.0, math.inf, 0, True)
    unit = (ordered - ordered.mean()) / span
    seen = order < len(a)
    every = math.comb(len(pooled), len(a))
    exact = splits is None and every <= EXACT_SPLITS
    if exact:
        members = _all_splits(len(pooled), len(a))
    else:
        members = random_splits(len(pooled), len(a), draws, rng) if splits is None else splits
    ratios = _of_means(unit, len(a))
    least = float(ratios(np.packbits(seen[None, :], axis=1))[0]) * (1 - 1e-9)
    as_extreme = sum(int((ratios(some) >= least).sum()) for some in _in_parts(members, 1))
    p = as_extreme / every if exact else (1 + as_extreme) / (1 + len(members))
    arms = unit[seen], unit[~seen]
    gap = float(arms[0].mean() - arms[1].mean())
    ratio, error = _ratio(np.array(gap), np.array(sum(arm.var(ddof=1) / len(arm) for arm in arms)))
    return TwoSampleTest(
        "permutation",
        gap * span,
        math.copysign(float(ratio), gap),
        min(p, 1.0),
        float(error) * span,
        math.inf,
        len(members),
        exact,
    )


@lru_cache(maxsize=16)
def _all_splits(size: int, chosen: int) -> Packed:
    members = np.zeros((math.comb(size, chosen), size), dtype=np.bool_)
    subsets = np.array(list(itertools.combinations(range(size), chosen)), dtype=np.int64)
    np.put_along_axis(members, subsets, True, axis=1)
    packed = np.packbits(members, axis=1)
    packed.flags.writeable = False
    return packed


def random_splits(size: int, chosen: int, draws: int, rng: np.random.Generator) -> Packed:
    """Random choices of a number of members.

    Returns:
      [draws, bytes], a bit for each of `size`, as `np.packbits` packs them: set if it is a member.
    """
    packed = np.empty((draws, -(-size // 8)), dtype=np.uint8)
    for some in _in_parts(packed):
        numbers = rng.random((len(some), size))
        inside = numbers <= np.partition(numbers, chosen - 1, axis=1)[:, chosen - 1 : chosen]
        if np.count_nonzero(inside) != chosen * len(some):  # two equal numbers, of which one is a member
            inside[:] = False
            np.put_along_axis(inside, np.argpartition(numbers, chosen - 1, axis=1)[:, :chosen], True, axis=1)
        some[:] = np.packbits(inside, axis=1)
    return packed


def _in_parts(packed: Packed, each: int = 8) -> Iterator[Packed]:
    """The splits, some at a time: what is computed of them then stays within the processor's cache, and takes no memory
    to speak of. `each`: how many numbers are computed of a byte."""
    some = max(1, _AT_ONCE // (each * packed.shape[1]))
    return (packed[start : start + some] for start in range(0, len(packed), some))


_Ratios = Callable[[Packed], Floats]
"""[splits, bytes] -> [splits], |difference| / error of each."""


def _of_means(ordered: Floats, chosen: int) -> _Ratios:
    """The ratios of means, by sums over each byte of a split that are computed once: an eighth of the work.

    Of two splits with the arms the other way round, both are equal to the bit.
    """
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float64)
    eights = np.zeros((-(-len(ordered) // 8), 8))
    eights.reshape(-1)[: len(ordered)] = ordered
    inside = np.stack([bits @ eights.T, bits @ (eights**2).T], axis=2)
    tables = np.concatenate([inside, inside[::-1]], axis=2).transpose(1, 0, 2).copy()  # [bytes, 256, sums of both arms]
    sizes = chosen, len(ordered) - chosen

    def ratios(packed: Packed) -> Floats:
        sums, of_byte = np.zeros((2, len(packed), 4))
        for table, byte in zip(tables, np.ascontiguousarray(packed.T), strict=True):
            sums += np.take(table, byte, axis=0, out=of_byte, mode="clip")  # "raise" would copy
        means = [sums[:, 2 * arm] / size for arm, size in enumerate(sizes)]
        whole = np.zeros(len(packed))
        for arm, size in enumerate(sizes):
            whole += np.maximum(sums[:, 2 * arm + 1] / size - means[arm] ** 2, 0.0) / (size - 1)
        return _ratio(means[0] - means[1], whole)[0]

    return ratios


def _ratio(gap: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """(|difference| / error, error); values are in units of their range."""
    error = np.sqrt(np.maximum(variance, 1e-24))
    return np.where(np.abs(gap) < 1e-12, 0.0, np.abs(gap) / error), error
