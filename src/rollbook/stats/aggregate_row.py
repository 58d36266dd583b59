"""Median, IQM, mean and optimality gap of one group over its tasks, each with a bootstrap interval, as in papers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rollbook.errors import UnknownOption, did_you_mean
from rollbook.stats._checked_input import Floats
from rollbook.stats.aggregates import aggregate
from rollbook.stats.bootstrap import expanded_percentile, percentile
from rollbook.stats.draws import Counts, run_counts, seed_counts
from rollbook.stats.intervals import decide
from rollbook.stats.iqm_bootstrap import iqm_of_counts
from rollbook.stats.replicates import replicates
from rollbook.system.brief import brief

_DRAWS = {"runs": 2_000, "seeds": 4_999}
_NAMES = {"median": "Median", "iqm": "IQM", "mean": "Mean", "optimality_gap": "Optimality gap"}


@brief
@dataclass(frozen=True, slots=True)
class Aggregate:
    """One number for a group.

    Attributes:
      statistic: "median", "iqm", "mean" or "optimality_gap". With several tasks the median is that of the tasks' means.
      name: a readable name.
      estimate: of the scores.
      low, high: 95 % interval; None if there are too few runs for a valid one.
      draws: number of resamples; 0 without an interval.
    """

    statistic: str
    name: str
    estimate: float
    low: float | None = None
    high: float | None = None
    draws: int = 0


def aggregate_row(scores_RT: Floats, *, gap: bool, resample: str, rng: np.random.Generator) -> tuple[Aggregate, ...]:
    """The aggregates of a group.

    Args:
      scores_RT: [runs, tasks], without NaN, at least one run.
      gap: whether the optimality gap is meaningful: scores are normalised, and 1 is the goal.
      resample: "runs": percentile intervals of a bootstrap stratified by task, as in rliable. "seeds": whole seeds are
        drawn, and the percentiles are expanded, more so for few seeds (`expanded_percentile`).
      rng: only its spawned children are used.
    Raises:
      UnknownOption: another value of `resample`.
    """
    if resample not in _DRAWS:
        raise UnknownOption(f"resample={resample!r} is not known.", did_you_mean(resample, list(_DRAWS)))
    runs, tasks = scores_RT.shape
    estimates = {
        name: float(aggregate("median_of_task_means" if name == "median" and tasks > 1 else name, scores_RT))
        for name in _NAMES
        if gap or name != "optimality_gap"
    }
    draws = _DRAWS[resample]
    if decide("iqm", runs, tasks).method == "none":
        return tuple(Aggregate(name, _NAMES[name], estimate) for name, estimate in estimates.items())
    counts = seed_counts(runs, draws, rng) if resample == "seeds" else run_counts(runs, tasks, draws, rng)
    found = []
    for name, estimate in estimates.items():
        replicates_B = _REPLICATES[name](scores_RT, counts)
        low, high = expanded_percentile(replicates_B, runs) if resample == "seeds" else percentile(replicates_B)
        found.append(Aggregate(name, _NAMES[name], estimate, float(low[0]), float(high[0]), draws))
    return tuple(found)


def _task_means(scores_RT: Floats, counts: Counts) -> Floats:
    """The mean of each task in each resample: [draws, tasks]."""
    runs, tasks = scores_RT.shape
    if counts.shape[1] == runs:
        sums = np.einsum("br,rt->bt", counts, scores_RT)
    else:
        sums = np.einsum("brt,rt->bt", counts.reshape(-1, runs, tasks), scores_RT)
    return np.asarray(sums / runs)


def _medians(scores_RT: Floats, counts: Counts) -> Floats:
    if scores_RT.shape[1] == 1:
        return replicates("median", scores_RT[:, :, None], counts)[:, 0]
    return np.asarray(np.median(_task_means(scores_RT, counts), axis=1))


_REPLICATES: dict[str, Callable[[Floats, Counts], Floats]] = {
    "median": _medians,
    "iqm": lambda scores_RT, counts: iqm_of_counts(scores_RT[:, :, None], counts)[:, 0],
    "mean": lambda scores_RT, counts: _task_means(scores_RT, counts).mean(axis=1),
    "optimality_gap": lambda scores_RT, counts: 1 - _task_means(np.minimum(scores_RT, 1.0), counts).mean(axis=1),
}
"""Statistic -> function that returns its value for each resample, [draws]."""
