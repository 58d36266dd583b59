"""Intervals without resampling: Student's t, winsorised t by seed, order statistics, Clopper-Pearson.

Axes: N seeds, T tasks, P points. All are vectorised over points; NaN is refused by their callers.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from rollbook.errors import BadInput
from rollbook.stats._checked_input import Floats, finite, level_of
from rollbook.stats._special import bdtr, betaincinv, stdtrit
from rollbook.stats.aggregates import iqm


def student_t(values_NP: ArrayLike, level: float = 0.95) -> tuple[Floats, Floats]:
    """Student's interval of the mean.

    Args:
      values_NP: [seeds] or [seeds, points], at least 2 seeds.
      level: nominal coverage.

    Returns:
      (low, high), each [points].
    """
    values = _columns(values_NP, 2)
    n = len(values)
    centre = values.mean(axis=0)
    reach = float(stdtrit(n - 1, (1 + level_of(level)) / 2)) * values.std(axis=0, ddof=1) / math.sqrt(n)
    return centre - reach, centre + reach


def winsorised_t(scores_NTP: ArrayLike, level: float = 0.95) -> tuple[Floats, Floats]:
    """Interval of the IQM of several tasks, with whole seeds as the unit.

    A run's influence on the pooled IQM is its value clipped at the pooled quartiles, centred within its task, and
    divided by the share that is kept. A seed's influence is the mean over its tasks. The interval is Student's t on
    these n numbers. It is valid whether or not the runs of a seed share luck over tasks.

    Args:
      scores_NTP: [seeds, tasks] or [seeds, tasks, points]; at least 2 seeds. Valid from 5 tasks; fails with 2.
      level: nominal coverage.

    Returns:
      (low, high), each [points].

    Source: Tukey and McLaughlin (1963) for one sample; by seed over tasks it is ours, see docs/statistics.md.
    """
    scores = finite(scores_NTP, "scores_NTP")
    if scores.ndim == 2:
        scores = scores[:, :, None]
    n = len(scores)
    if n < 2:
        raise BadInput(f"An interval over whole seeds needs at least 2 of them; there are {n}.")
    influence = _influence(scores)
    centre = np.asarray(iqm(scores), dtype=np.float64)
    reach = float(stdtrit(n - 1, (1 + level_of(level)) / 2)) * influence.std(axis=0, ddof=1) / math.sqrt(n)
    return centre - reach, centre + reach


def influence_by_seed(scores_NT: Floats) -> Floats:
    """[seeds]: how each seed moves the pooled IQM. Their mean is 0; their spread is that of the IQM's error."""
    return _influence(scores_NT[:, :, None])[:, 0]


def _influence(scores_NTP: Floats) -> Floats:
    n, tasks, points = scores_NTP.shape
    size, cut = n * tasks, n * tasks // 4
    ordered = np.sort(scores_NTP.reshape(size, points), axis=0)
    clipped = np.clip(scores_NTP, ordered[cut], ordered[size - cut - 1])
    return np.asarray((clipped - clipped.mean(axis=0)).mean(axis=1) / (1 - 2 * cut / size), dtype=np.float64)


def order_statistics(values_NP: ArrayLike, level: float = 0.95) -> tuple[Floats, Floats]:
    """Interval of the median between two of the seeds; valid for any distribution, with ties.

    Args:
      values_NP: [seeds] or [seeds, points].
      level: wanted coverage; with too few seeds for it, the range of the seeds.

    Returns:
      (low, high), each [points]; see `order_statistics_coverage` for their coverage.
    """
    values = np.sort(_columns(values_NP, 1), axis=0)
    k = _outermost(len(values), level_of(level))
    return values[k - 1], values[len(values) - k]


def order_statistics_coverage(seeds: int, level: float = 0.95) -> float:
    """The minimum coverage of `order_statistics`; 1 - 2 ** (1 - n) if it is the range of the seeds.

    Args:
      seeds: how many.
      level: the coverage that was asked for, above 0 and below 1.

    Source: Thompson (1936).
    """
    k = _outermost(seeds, level_of(level))
    return 1 - 2 * float(bdtr(k - 1, seeds, 0.5))


def _outermost(seeds: int, level: float) -> int:
    """The largest k with P(Binomial(n, 1/2) < k) <= (1 - level) / 2, at least 1."""
    k = 1
    while k < (seeds + 1) // 2 and float(bdtr(k, seeds, 0.5)) <= (1 - level) / 2:
        k += 1
    return k


def clopper_pearson(solved: ArrayLike, seeds: ArrayLike, level: float = 0.95) -> tuple[Floats, Floats]:
    """Interval of the share of seeds that solve the task; covers at least its level at every true share.

    Args:
      solved: seeds that solved it, from 0 to `seeds`.
      seeds: at least 1.
      level: coverage.

    Returns:
      (low, high), of the shape of the arguments, from 0 to 1.

    Source: Clopper and Pearson (1934).
    """
    hits, n = np.broadcast_arrays(finite(solved, "solved"), finite(seeds, "seeds"))
    if (n < 1).any() or (hits < 0).any() or (hits > n).any() or (hits != np.round(hits)).any():
        raise BadInput("solved has to be whole numbers from 0 to the number of seeds, which is at least 1.")
    tail = (1 - level_of(level)) / 2
    low = np.where(hits == 0, 0.0, betaincinv(np.maximum(hits, 1), n - hits + 1, tail))
    high = np.where(hits == n, 1.0, betaincinv(hits + 1, np.maximum(n - hits, 1), 1 - tail))
    return low, high


def _columns(values: ArrayLike, least: int) -> Floats:
    array = finite(values, "values_NP")
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or len(array) < least:
        raise BadInput(f"values_NP has the shape {array.shape}; it has to be [seeds] or [seeds, points], n >= {least}.")
    return array
