"""Intervals from resamples: percentile, expanded percentile, BCa and bootstrap-t.

    low_P, high_P = expanded_percentile(replicates_BP, seeds=10)

Axes: N seeds, P points, B draws.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from rollbook.errors import BadInput
from rollbook.stats._checked_input import Bools, Floats, finite, level_of
from rollbook.stats._special import ndtr, ndtri, stdtrit
from rollbook.stats.draws import Counts


def percentile(replicates_BP: ArrayLike, level: float = 0.95) -> tuple[Floats, Floats]:
    """The middle part of the replicates, as in rliable. Too narrow below 20 seeds; see `expanded_percentile`.

    Args:
      replicates_BP: [draws] or [draws, points].
      level: the share in the middle.

    Returns:
      (low, high), each [points].
    """
    tail = (1 - level_of(level)) / 2
    return _between(_columns(replicates_BP), tail, 1 - tail)


def expanded_level(seeds: int, level: float = 0.95) -> float:
    """The tail of the bootstrap distribution where the expanded percentile interval ends.

    Source: Hesterberg, What Teachers Should Know About the Bootstrap (2015), section 5.2.
    """
    if seeds < 2:
        raise BadInput(f"An expanded percentile interval needs at least 2 seeds; there are {seeds}.")
    tail = (1 - level_of(level)) / 2
    return float(ndtr(math.sqrt(seeds / (seeds - 1)) * float(stdtrit(seeds - 1, tail))))


def expanded_percentile(replicates_BP: ArrayLike, seeds: int, level: float = 0.95) -> tuple[Floats, Floats]:
    """A percentile interval expanded for n seeds and for t instead of the normal distribution.

    Args:
      replicates_BP: [draws] or [draws, points]; below 10 seeds at least 4,999 draws.
      seeds: n.
      level: nominal coverage.

    Returns:
      (low, high), each [points].
    """
    tail = expanded_level(seeds, level)
    return _between(_columns(replicates_BP), tail, 1 - tail)


def bca(
    replicates_BP: ArrayLike, estimate_P: ArrayLike, jackknife_VP: ArrayLike, level: float = 0.95
) -> tuple[Floats, Floats]:
    """Bias-corrected and accelerated percentile interval. For means below 20 seeds no better than the percentile one.

    Args:
      replicates_BP: [draws] or [draws, points].
      estimate_P: the statistic of the sample.
      jackknife_VP: the statistic without each resampled unit; see `jackknife`.
      level: nominal coverage.

    Returns:
      (low, high), each [points]; both are the estimate if all replicates are equal.

    Source: Efron (1987); percentiles interpolate linearly, as in scipy.
    """
    boot = _columns(replicates_BP)
    estimate, left_out = np.atleast_1d(finite(estimate_P, "estimate_P")), _columns(jackknife_VP)
    tail = (1 - level_of(level)) / 2
    low, high = np.empty(boot.shape[1]), np.empty(boot.shape[1])
    for point in range(boot.shape[1]):
        column = boot[:, point]
        below = ((column < estimate[point]).mean() + (column <= estimate[point]).mean()) / 2
        pull = left_out[:, point].mean() - left_out[:, point]
        spread = float((pull**2).sum())
        skew = float((pull**3).sum()) / (6 * spread**1.5) if spread > 0 else 0.0
        if not 0 < below < 1:
            low[point], high[point] = (estimate[point],) * 2 if np.ptp(column) == 0 else (column.min(), column.max())
            continue
        shift = ndtri(below)
        ends = [shift + ndtri(share) for share in (tail, 1 - tail)]
        levels = [float(ndtr(shift + z / (1 - skew * z))) for z in ends]
        low[point], high[point] = np.quantile(column, levels)
    return low, high


_FARTHEST = 5.0
"""Ranges of the scores from their mean: an end farther out is invalid."""


def bootstrap_t(values_NP: ArrayLike, counts_BN: Counts, level: float = 0.95) -> tuple[Floats, Floats, Bools]:
    """Interval of a mean from resampled t ratios; Student's t if resamples without spread move an end too far out.

    With nearly equal scores and one outlier, a resample without the outlier has almost no spread, and its ratio may be
    huge. An end more than five times the range of the scores from their mean is invalid. Using t instead changes the
    coverage over normal, lognormal, t3, capped and failing seeds by at most 0.3 points.

    Args:
      values_NP: [seeds] or [seeds, points]; with several tasks the seeds' means over tasks.
      counts_BN: from `seed_counts`.
      level: nominal coverage.

    Returns:
      (low, high, whether it is Student's t), each [points].

    Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 12.
    """
    values = _columns(values_NP)
    n = len(values)
    if n < 2:
        raise BadInput(f"An interval of a mean needs at least 2 seeds; there are {n}.")
    tail = (1 - level_of(level)) / 2
    centre, span = values.mean(axis=0), np.maximum(np.ptp(values, axis=0), np.finfo(float).tiny)
    unit = (values - centre) / span
    error = unit.std(axis=0, ddof=1) / math.sqrt(n)
    weights = counts_BN.astype(np.float64) / n
    # einsum: its sums, and so the bytes of the interval, do not depend on the number of BLAS threads.
    mean = np.einsum("bn,np->bp", weights, unit)
    variance = np.maximum(np.einsum("bn,np->bp", weights, unit**2) - mean**2, 0.0)
    variance[variance < 1e-14] = 0.0  # a resample of copies of one seed, up to rounding
    drawn_error = np.sqrt(variance / (n - 1))
    mean[np.abs(mean) < 1e-14] = 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where((mean == 0) & (drawn_error == 0), 0.0, mean / drawn_error)
    left, right = _between(ratio, tail, 1 - tail)
    with np.errstate(invalid="ignore"):
        low, high = -right * error, -left * error
    usable = (np.abs(low) <= _FARTHEST) & (np.abs(high) <= _FARTHEST)
    reach = float(stdtrit(n - 1, 1 - tail)) * error
    low, high = np.where(usable, low, -reach), np.where(usable, high, reach)
    return centre + low * span, centre + high * span, ~usable


def _between(values_BP: Floats, low: float, high: float) -> tuple[Floats, Floats]:
    """The order statistics at two levels: floor(level x (draws + 1)); the ends mirror each other."""
    draws = len(values_BP)
    first = min(max(math.floor(low * (draws + 1) + 1e-9) - 1, 0), draws - 1)
    last = min(max(draws - 1 - (math.floor((1 - high) * (draws + 1) + 1e-9) - 1), 0), draws - 1)
    ordered = np.partition(values_BP, (first, min(last, draws - 1)), axis=0)
    return ordered[first], ordered[min(last, draws - 1)]


def _columns(values: ArrayLike) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    return array[:, None] if array.ndim == 1 else array
