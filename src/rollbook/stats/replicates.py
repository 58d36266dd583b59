"""A statistic of each resample, and of the sample without each seed.

counts_BN = seed_counts(10, 4_999, rng)
replicates_BP = replicates("iqm", scores_NTP, counts_BN)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from rollbook.errors import BadInput
from rollbook.stats._checked_input import Floats, choice
from rollbook.stats.draws import Counts
from rollbook.stats.iqm_bootstrap import iqm_of_counts


def replicates(statistic: str | Callable[[Floats], ArrayLike], scores_NTP: Floats, counts: Counts) -> Floats:
    """The statistic of each resample at each point.

    Args:
      statistic: "mean", "iqm" or "median" of all runs together; or a function of scores [N, T, P] that returns [P],
        called once per draw.
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
    if statistic == "iqm":
        return iqm_of_counts(scores_NTP, counts)
    counts_BV = np.repeat(counts, tasks, axis=1) if whole and tasks > 1 else counts
    values_VP = scores_NTP.reshape(n * tasks, points)
    if statistic == "mean":
        centre = values_VP.mean(axis=0)
        sums = np.einsum("bv,vp->bp", counts_BV.astype(np.float64), values_VP - centre)  # no BLAS threads
        return np.asarray(sums / len(values_VP) + centre)
    return _medians(values_VP, counts_BV)


def _medians(values_VP: Floats, counts_BV: Counts) -> Floats:
    """The one or two middle values of each resample, found by counting up to them: [B, P]."""
    size, points = values_VP.shape
    result = np.empty((len(counts_BV), points))
    for point in range(points):
        order = np.argsort(values_VP[:, point], kind="stable")
        ordered = values_VP[order, point]
        reached = np.cumsum(counts_BV[:, order], axis=1, dtype=np.int32)
        lower, upper = (reached > (size - 1) // 2).argmax(axis=1), (reached > size // 2).argmax(axis=1)
        result[:, point] = (ordered[lower] + ordered[upper]) / 2
    return result


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


def jackknife(statistic: Callable[[Floats], ArrayLike], scores_NTP: Floats, whole: bool = True) -> Floats:
    """The statistic without each seed, or, for one task, without each run.

    Args:
      statistic: of scores [N, T, P], returns [P].
      scores_NTP: at least 2 seeds.
      whole: leave out whole seeds; otherwise `scores_NTP` must have one task.

    Returns:
      [N, P].
    """
    if len(scores_NTP) < 2 or (not whole and scores_NTP.shape[1] != 1):
        raise BadInput(f"Leaving one out needs at least 2 seeds, and one task for single runs; got {scores_NTP.shape}.")
    rows = [np.atleast_1d(np.asarray(statistic(np.delete(scores_NTP, i, axis=0)))) for i in range(len(scores_NTP))]
    return np.stack(rows).astype(np.float64)
