"""Tests of two groups of runs of one task: Welch, studentised permutation, ranks.

    welch(a_N, b_N).p

Axes: N the seeds of an arm; the arms may differ in size. Every test is two-sided. None of them may be repeated at the
same level while seeds come in: see `verdict`.
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
from rollbook.stats._checked_input import Bools, Floats, Packed, choice, vector
from rollbook.stats._special import stdtr, stdtrit
from rollbook.stats.exact_ranks import doubled_midranks, splits_as_far
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
      difference: A minus B in what the test compares: means, trimmed means, or P(A > B) - 1/2.
      statistic: t, z, or NaN if both arms are constant.
      p: two-sided.
      error: standard error of the difference, in its units.
      freedom: degrees of freedom of t; infinite for z.
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


def yuen(a_N: ArrayLike, b_N: ArrayLike) -> TwoSampleTest:
    """Yuen's test of the difference of the means of the middle halves, with winsorised errors.

    Weaker than Welch's test on normal scores, stronger with heavy tails. Constants as in `welch`.

    Args:
      a_N: [seeds of A], at least 4.
      b_N: [seeds of B], at least 4.

    Returns:
      A `TwoSampleTest`.

    Source: Yuen (1974).
    """
    a, b = vector(a_N, "a_N", 4), vector(b_N, "b_N", 4)
    centres, parts = [], []
    for arm in (a, b):
        cut = len(arm) // 4
        ordered = np.sort(arm)
        trimmed = ordered[cut : len(arm) - cut]
        clipped = np.clip(arm, trimmed[0], trimmed[-1])
        variance = float(clipped.var(ddof=1)) if trimmed[-1] > trimmed[0] else 0.0
        centres.append(float(trimmed.mean()) if variance else float(trimmed[0]))
        parts.append((variance * (len(arm) - 1) / (len(trimmed) * (len(trimmed) - 1)), len(trimmed)))
    difference = centres[0] - centres[1]
    whole = parts[0][0] + parts[1][0]
    if whole == 0:
        return TwoSampleTest("Yuen", difference, math.nan, 1.0 if difference == 0 else 0.0, 0.0, math.inf)
    freedom = 1 / sum((v / whole) ** 2 / (size - 1) for v, size in parts)
    t = difference / math.sqrt(whole)
    return TwoSampleTest("Yuen", difference, t, 2 * float(stdtr(freedom, -abs(t))), math.sqrt(whole), freedom)


def permutation(
    a_N: ArrayLike,
    b_N: ArrayLike,
    *,
    rng: np.random.Generator,
    draws: int = 9_999,
    centre: str = "mean",
    most_splits: int = EXACT_SPLITS,
    splits: Packed | None = None,
) -> TwoSampleTest:
    """Permutation test of the studentised difference: exact for arms with equal distribution, robust to unequal
    spreads.

    All splits into two arms are tried if there are at most `most_splits`, else `draws` random ones and the observed
    one. A split as extreme as the observed one counts against a winner.

    Args:
      a_N: [seeds of A], at least 2.
      b_N: [seeds of B], at least 2.
      rng: used only if not all splits are tried.
      draws: random splits.
      centre: "mean" (Welch's ratio) or "iqm" (Yuen's: trimmed means over winsorised errors).
      most_splits: of more, only `draws` random ones are tried.
      splits: instead of random ones; see `random_splits`.

    Returns:
      A `TwoSampleTest`.

    Source: Janssen (1997); Chung and Romano (2013) for unequal arms.
    """
    a, b = vector(a_N, "a_N", 2), vector(b_N, "b_N", 2)
    choice(centre, ("mean", "iqm"), "centre")
    if draws < 1:
        raise BadInput(f"draws={draws!r} has to be at least 1.")
    pooled = np.concatenate([a, b])
    order = np.argsort(pooled, kind="stable")
    ordered = pooled[order]
    span = float(ordered[-1] - ordered[0])
    if span == 0:
        return TwoSampleTest("permutation", 0.0, math.nan, 1.0, 0.0, math.inf, 0, True)
    unit = (ordered - ordered.mean()) / span
    seen = (order < len(a))[None, :]
    seen_S, seen_gap, seen_error = _studentised(unit, seen, centre)
    every = math.comb(len(pooled), len(a))
    exact = every <= most_splits
    if exact:
        members = _all_splits(len(pooled), len(a))
    else:
        members = random_splits(len(pooled), len(a), draws, rng) if splits is None else splits
        draws = len(members)
    ratios = _of_means(unit, len(a)) if centre == "mean" else _of_trimmed_means(unit)
    least = float(ratios(np.packbits(seen, axis=1))[0]) * (1 - 1e-9)
    parts = _in_parts(members, 1 if centre == "mean" else 8)
    as_extreme = sum(int((ratios(some) >= least).sum()) for some in parts)
    p = as_extreme / every if exact else (1 + as_extreme) / (1 + draws)
    signed = math.copysign(float(seen_S[0]), float(seen_gap[0]))
    return TwoSampleTest(
        "permutation",
        float(seen_gap[0]) * span,
        signed,
        min(p, 1.0),
        float(seen_error[0]) * span,
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
"""[splits, bytes] -> [splits], |difference| / error of each; see `_studentised`."""


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


def _of_trimmed_means(ordered: Floats) -> _Ratios:
    def ratios(packed: Packed) -> Floats:
        members = np.unpackbits(packed, axis=1, count=len(ordered)).astype(np.bool_)
        return _studentised(ordered, members, "iqm")[0]

    return ratios


def _studentised(ordered: Floats, members_SN: Bools, centre: str) -> tuple[Floats, Floats, Floats]:
    """|difference| / error, the difference and the error of each split of sorted values; S splits, N values."""
    gap, whole = np.zeros(len(members_SN)), np.zeros(len(members_SN))
    for sign, inside in ((1.0, members_SN), (-1.0, ~members_SN)):
        size = int(inside[0].sum())
        cut = size // 4 if centre == "iqm" else 0
        if cut:
            mean, variance = _trimmed(ordered, inside, size, cut)
        else:
            weight = inside.astype(np.float64)
            mean = weight @ ordered / size
            variance = np.maximum(weight @ ordered**2 / size - mean**2, 0.0) * size / (size - 1)
        gap += sign * mean
        whole += variance / size / (1 - 2 * cut / size) ** 2
    ratio, error = _ratio(gap, whole)
    return ratio, gap, error


def _ratio(gap: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """(|difference| / error, error); values are in units of their range."""
    error = np.sqrt(np.maximum(variance, 1e-24))
    return np.where(np.abs(gap) < 1e-12, 0.0, np.abs(gap) / error), error


def _trimmed(ordered: Floats, inside_SN: Bools, size: int, cut: int) -> tuple[Floats, Floats]:
    """Mean of the middle values and winsorised variance of the members of each split."""
    values = np.broadcast_to(ordered, inside_SN.shape)[inside_SN].reshape(len(inside_SN), size)
    mean = values[:, cut : size - cut].mean(axis=1)
    clipped = np.clip(values, values[:, cut : cut + 1], values[:, size - cut - 1 : size - cut])
    return mean, clipped.var(axis=1, ddof=1)


def mann_whitney(a_N: ArrayLike, b_N: ArrayLike) -> TwoSampleTest:
    """Rank test of Wilcoxon, Mann and Whitney: do both arms have the same distribution?

    Exact, with ties too, up to about 60 seeds an arm; beyond, the normal limit.

    Args:
      a_N: [seeds of A], at least 2.
      b_N: [seeds of B], at least 2.

    Returns:
      A `TwoSampleTest`; its difference is P(A > B) - 1/2, ties count half.

    Source: Mann and Whitney (1947).
    """
    a, b = vector(a_N, "a_N", 2), vector(b_N, "b_N", 2)
    na, nb = len(a), len(b)
    ranks = doubled_midranks(np.concatenate([a, b]))
    wins = int(ranks[:na].sum()) / 2 - na * (na + 1) / 2
    error = math.sqrt(na * nb / (na + nb - 1) * float(ranks.var())) / 2
    if error == 0:
        return TwoSampleTest("Mann-Whitney", 0.0, math.nan, 1.0, 0.0, math.inf, 0, True)
    away = wins - na * nb / 2
    z = math.copysign(max(abs(away) - 0.5, 0.0) / error, away)
    p, pairs = splits_as_far(ranks, na), na * nb
    return TwoSampleTest("Mann-Whitney", away / pairs, z, p, error / pairs, math.inf, 0, pairs <= 2_500)


def brunner_munzel(a_N: ArrayLike, b_N: ArrayLike) -> TwoSampleTest:
    """Rank test of P(A > B) = 1/2; the arms may differ in spread and shape.

    Args:
      a_N: [seeds of A], at least 2.
      b_N: [seeds of B], at least 2.

    Returns:
      A `TwoSampleTest`; its difference is P(A > B) - 1/2. If the arms do not overlap, the error is unknown, and p is
      that of `mann_whitney`.

    Source: Brunner and Munzel (2000).
    """
    a, b = vector(a_N, "a_N", 2), vector(b_N, "b_N", 2)
    above_b, above_a = _shares_below(a, b), _shares_below(b, a)
    difference = float(above_b.mean() - 0.5)
    va, vb = float(above_b.var(ddof=1)) / len(a), float(above_a.var(ddof=1)) / len(b)
    whole = va + vb
    if whole == 0:
        return TwoSampleTest("Brunner-Munzel", difference, math.nan, mann_whitney(a, b).p, 0.0, math.inf)
    part = va / whole
    freedom = 1 / (part**2 / (len(a) - 1) + (1 - part) ** 2 / (len(b) - 1))
    t = difference / math.sqrt(whole)
    return TwoSampleTest("Brunner-Munzel", difference, t, 2 * float(stdtr(freedom, -abs(t))), math.sqrt(whole), freedom)


def _shares_below(x: Floats, y: Floats) -> Floats:
    ordered = np.sort(y)
    return np.asarray(
        (np.searchsorted(ordered, x, "left") + np.searchsorted(ordered, x, "right")) / (2 * len(y)), dtype=np.float64
    )
