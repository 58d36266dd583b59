"""Bootstrap intervals: percentile, expanded percentile, BCa, bootstrap-t; of whole seeds or of the runs of each task.

    counts_BN = seed_counts(10, 4_999, rng)                   # how often each seed is drawn
    replicates_BP = replicates("iqm", scores_NTP, counts_BN)
    low_P, high_P = expanded_percentile(replicates_BP, seeds=10)

Axes: N seeds, T tasks, V = N x T runs, P points, B draws. Draws are made in blocks of 50, each from a generator of its
own that `rng` spawns: the first thousand draws of a larger number are the same, and threads change nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri, stdtrit

from rollbook.errors import BadInput
from rollbook.stats._given import Bools, Floats, choice, finite, level_of

__all__ = [
    "BLOCK",
    "bca",
    "bootstrap_t",
    "expanded_level",
    "expanded_percentile",
    "jackknife",
    "percentile",
    "replicates",
    "run_counts",
    "seed_counts",
]

BLOCK = 50
"""Draws a generator makes; small blocks stay in the processor's cache."""
Counts = NDArray[np.int16]


def seed_counts(seeds: int, draws: int, rng: np.random.Generator) -> Counts:
    """How often each of so many seeds is drawn, with replacement, in each resample.

    Args:
      seeds: N, from 1 to 32,767.
      draws: B, at least 1.
      rng: only its spawned children are drawn from.

    Returns:
      [B, N]; each row sums to N.
    """
    return _counts(seeds, 1, draws, rng)


def run_counts(seeds: int, tasks: int, draws: int, rng: np.random.Generator) -> Counts:
    """The same for every task by itself (stratified): right only where runs of one seed on two tasks share no luck.

    Args:
      seeds: N.
      tasks: T.
      draws: B.
      rng: only its spawned children are drawn from.

    Returns:
      [B, N * T], run n of task t at n * T + t.
    """
    return _counts(seeds, tasks, draws, rng)


def _counts(seeds: int, tasks: int, draws: int, rng: np.random.Generator) -> Counts:
    if seeds < 1 or tasks < 1 or draws < 1 or seeds > np.iinfo(np.int16).max:
        raise BadInput(
            f"{seeds} seeds, {tasks} tasks and {draws} draws: each has to be at least 1, seeds at most 32,767."
        )
    counts = np.empty((draws, seeds * tasks), np.int16)
    blocks = range(0, draws, BLOCK)
    for begin, child in zip(blocks, rng.spawn(len(blocks)), strict=True):
        counts[begin : begin + BLOCK] = counts_of_block(seeds, tasks, child)[: draws - begin]
    return counts


def counts_of_block(seeds: int, tasks: int, rng: np.random.Generator) -> Counts:
    """[BLOCK, seeds * tasks]."""
    index = rng.integers(seeds, size=(BLOCK, seeds, tasks), dtype=np.int32)
    index *= tasks
    index += np.arange(tasks, dtype=np.int32)
    index += np.arange(BLOCK, dtype=np.int32)[:, None, None] * np.int32(seeds * tasks)
    return np.bincount(index.ravel(), minlength=BLOCK * seeds * tasks).reshape(BLOCK, -1).astype(np.int16)


def replicates(statistic: str | Callable[[Floats], ArrayLike], scores_NTP: Floats, counts: Counts) -> Floats:
    """The statistic of each resample at each point.

    Args:
      statistic: "mean", "iqm" or "median" of all runs together; or a function of scores [N, T, P] that returns [P],
        which is called once a draw.
      scores_NTP: [seeds, tasks, points].
      counts: [B, N] of whole seeds or [B, N * T] of runs.

    Returns:
      [B, P].
    """
    n, tasks, points = scores_NTP.shape
    whole = counts.shape[1] == n
    if not whole and counts.shape[1] != n * tasks:
        raise BadInput(f"counts has {counts.shape[1]} columns; {n} seeds and {tasks} tasks need {n} or {n * tasks}.")
    if callable(statistic):
        return _called(statistic, scores_NTP, counts, whole)
    choice(statistic, ("mean", "iqm", "median"), "statistic to resample")
    counts_BV = np.repeat(counts, tasks, axis=1) if whole and tasks > 1 else counts
    values_VP = scores_NTP.reshape(n * tasks, points)
    if statistic == "mean":
        centre = values_VP.mean(axis=0)
        return np.asarray(counts_BV.astype(np.float64) @ (values_VP - centre) / len(values_VP) + centre)
    size = len(values_VP)
    cut = size // 4 if statistic == "iqm" else (size - 1) // 2
    result = np.empty((len(counts_BV), points))
    order = np.argsort(values_VP, axis=0, kind="stable")
    for point in range(points):
        place = order[:, point]
        weights = trim_weights(counts_BV[:, place], cut)
        result[:, point] = weights @ values_VP[place, point] / (size - 2 * cut)
    return result


def trim_weights(counts_BV: Counts, cut: int) -> Floats:
    """How often each sorted value is among the middle ones of a resample: without its `cut` smallest and largest."""
    top = np.cumsum(counts_BV, axis=1, dtype=np.int32)
    size = int(top[0, -1])
    inside = np.minimum(top, size - cut) - np.maximum(top - counts_BV, cut)
    return np.asarray(np.maximum(inside, 0), dtype=np.float64)


def _called(function: Callable[[Floats], ArrayLike], scores_NTP: Floats, counts: Counts, whole: bool) -> Floats:
    n, tasks, points = scores_NTP.shape
    result = np.empty((len(counts), points))
    for draw, row in enumerate(counts):
        if whole:
            sample = scores_NTP[np.repeat(np.arange(n), row)]
        else:
            by_task = row.reshape(n, tasks)
            sample = np.stack([scores_NTP[np.repeat(np.arange(n), by_task[:, t]), t] for t in range(tasks)], axis=1)
        result[draw] = function(sample)
    return result


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
    """A percentile interval taken farther out, as far as n seeds and t instead of the normal distribution ask for.

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
    """Bias-corrected and accelerated percentile interval. For means below 20 seeds no better than the percentile's.

    Args:
      replicates_BP: [draws] or [draws, points].
      estimate_P: the statistic of the sample itself.
      jackknife_VP: the statistic without each unit that is resampled; see `jackknife`.
      level: nominal coverage.

    Returns:
      (low, high), each [points]; both the estimate where the replicates are all equal.

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
        shift = float(ndtri(below))
        ends = [shift + float(ndtri(share)) for share in (tail, 1 - tail)]
        levels = [float(ndtr(shift + z / (1 - skew * z))) for z in ends]
        low[point], high[point] = np.quantile(column, levels)
    return low, high


def jackknife(statistic: Callable[[Floats], ArrayLike], scores_NTP: Floats, whole: bool = True) -> Floats:
    """The statistic without each seed, or, of the runs of one task, without each run.

    Args:
      statistic: of scores [N, T, P], returns [P].
      scores_NTP: at least 2 seeds.
      whole: leave out whole seeds; otherwise `scores_NTP` has to have one task.

    Returns:
      [N, P].
    """
    if len(scores_NTP) < 2 or (not whole and scores_NTP.shape[1] != 1):
        raise BadInput(f"Leaving one out needs at least 2 seeds, and one task for single runs; got {scores_NTP.shape}.")
    rows = [np.atleast_1d(np.asarray(statistic(np.delete(scores_NTP, i, axis=0)))) for i in range(len(scores_NTP))]
    return np.stack(rows).astype(np.float64)


def bootstrap_t(values_NP: ArrayLike, counts_BN: Counts, level: float = 0.95) -> tuple[Floats, Floats, Bools]:
    """Interval of a mean from resampled t ratios; Student's t where resamples without spread make an end infinite.

    Args:
      values_NP: [seeds] or [seeds, points]; of several tasks the seeds' means over tasks.
      counts_BN: of `seed_counts`.
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
    mean = weights @ unit
    variance = np.maximum(weights @ unit**2 - mean**2, 0.0)
    variance[variance < 1e-14] = 0.0  # a resample of copies of one seed, up to rounding
    drawn_error = np.sqrt(variance / (n - 1))
    mean[np.abs(mean) < 1e-14] = 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where((mean == 0) & (drawn_error == 0), 0.0, mean / drawn_error)
    left, right = _between(ratio, tail, 1 - tail)
    with np.errstate(invalid="ignore"):
        low, high = -right * error, -left * error
    usable = np.isfinite(low) & np.isfinite(high)
    reach = float(stdtrit(n - 1, 1 - tail)) * error
    low, high = np.where(usable, low, -reach), np.where(usable, high, reach)
    return centre + low * span, centre + high * span, ~usable


def _between(values_BP: Floats, low: float, high: float) -> tuple[Floats, Floats]:
    """The order statistics at two levels; floor(level x (draws + 1)), the ends mirror each other."""
    draws = len(values_BP)
    first = min(max(math.floor(low * (draws + 1) + 1e-9) - 1, 0), draws - 1)
    last = min(max(draws - 1 - (math.floor((1 - high) * (draws + 1) + 1e-9) - 1), 0), draws - 1)
    ordered = np.partition(values_BP, (first, min(last, draws - 1)), axis=0)
    return ordered[first], ordered[min(last, draws - 1)]


def _columns(values: ArrayLike) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    return array[:, None] if array.ndim == 1 else array
