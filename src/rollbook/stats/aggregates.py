"""One number (or one curve) for a group of runs: mean, median, IQM, optimality gap, probability of improvement, ranks.

    iqm(scores_RT)                                   # a number
    iqm(curves_RTP)                                  # [points]
    probability_of_improvement(ppo_RT, dqn_RT)

Axes: R runs, T tasks, P points, H thresholds. A vector is the runs of one task. Runs and tasks are the first two axes;
further axes are kept. NaN and infinities are refused: the caller decides the score of a crashed run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rollbook.errors import BadInput
from rollbook.stats._checked_input import Floats, choice, scores_of_tasks, seeds_by_tasks, vector
from rollbook.stats._quadrature import nodes_and_weights


def mean(scores_RT: ArrayLike) -> Any:
    """Mean over runs and tasks.

    Args:
      scores_RT: [runs], [runs, tasks] or [runs, tasks, ...].

    Returns:
      A float, or an array of the further axes.
    """
    return _plain(_pooled(scores_RT).mean(axis=0))


def median(scores_RT: ArrayLike) -> Any:
    """Median of all runs of all tasks together.

    Args:
      scores_RT: [runs], [runs, tasks] or [runs, tasks, ...].

    Returns:
      A float, or an array of the further axes.
    """
    return _plain(np.median(_pooled(scores_RT), axis=0))


def median_of_task_means(scores_RT: ArrayLike) -> Any:
    """Median over tasks of each task's mean over runs, as in older papers on Atari. For one task it is the mean.

    Args:
      scores_RT: [runs], [runs, tasks] or [runs, tasks, ...].

    Returns:
      A float, or an array of the further axes.
    """
    return _plain(np.median(seeds_by_tasks(scores_RT).mean(axis=0), axis=0))


def iqm(scores_RT: ArrayLike) -> Any:
    """Interquartile mean: the mean of the middle half of all runs and tasks together.

    The floor(V / 4) smallest and largest of V values are left out: none of three, two of four. So IQMs of 3 seeds and
    of 4 or 5 seeds of one task estimate different things and must not be compared.

    Args:
      scores_RT: [runs], [runs, tasks] or [runs, tasks, ...], in comparable units over tasks.

    Returns:
      A float, or an array of the further axes.

    Raises:
      BadInput: NaN or infinite scores, or no scores.

    Source: Agarwal et al., Deep Reinforcement Learning at the Edge of the Statistical Precipice (2021).
    """
    return _plain(trimmed_mean(_pooled(scores_RT)))


def trimmed_mean(values_V: Floats) -> Any:
    """Mean of the middle half along the first axis."""
    size = len(values_V)
    cut = size // 4
    if not cut:
        return values_V.mean(axis=0)
    return np.partition(values_V, (cut, size - cut - 1), axis=0)[cut : size - cut].mean(axis=0)


def optimality_gap(scores_RT: ArrayLike, target: float = 1.0) -> Any:
    """How far runs are below `target` on average; a run above it counts as 0, not as a negative gap.

    Args:
      scores_RT: [runs], [runs, tasks] or [runs, tasks, ...].
      target: the score to reach, 1 for normalised scores.

    Returns:
      A float, or an array of the further axes.

    Source: Agarwal et al. (2021).
    """
    return _plain(target - np.minimum(_pooled(scores_RT), target).mean(axis=0))


AGGREGATES = {
    "mean": mean,
    "median": median,
    "iqm": iqm,
    "optimality_gap": optimality_gap,
    "median_of_task_means": median_of_task_means,
}
"""Name -> function of scores_RT."""


def aggregate(statistic: str, scores_RT: ArrayLike) -> Any:
    """The statistic with this name: "mean", "median", "iqm", "optimality_gap" or "median_of_task_means".

    Args:
      statistic: a name of `AGGREGATES`.
      scores_RT: [runs], [runs, tasks] or [runs, tasks, ...].

    Returns:
      A float, or an array of the further axes.

    Raises:
      UnknownOption: no such statistic.
    """
    return AGGREGATES[choice(statistic, AGGREGATES, "statistic")](scores_RT)


def performance_profile(scores_RT: ArrayLike, thresholds_H: ArrayLike) -> Floats:
    """Share of runs, over all tasks together, with a score above each threshold.

    Args:
      scores_RT: [runs] or [runs, tasks].
      thresholds_H: [thresholds], in any order.

    Returns:
      [thresholds], each from 0 to 1.

    Source: Dolan and More (2002); as the run-score distribution in Agarwal et al. (2021).
    """
    return _share_above(_pooled(scores_RT).ravel(), thresholds_H)


def profile_of_task_means(scores_RT: ArrayLike, thresholds_H: ArrayLike) -> Floats:
    """Share of tasks whose mean over runs is above each threshold.

    Args:
      scores_RT: [runs] or [runs, tasks].
      thresholds_H: [thresholds], in any order.

    Returns:
      [thresholds], each from 0 to 1.
    """
    return _share_above(seeds_by_tasks(scores_RT).mean(axis=0), thresholds_H)


def _share_above(values: Floats, thresholds_H: ArrayLike) -> Floats:
    thresholds = vector(thresholds_H, "thresholds_H")
    return 1.0 - np.searchsorted(np.sort(values), thresholds, side="right") / len(values)


def probability_of_improvement(
    scores_x: ArrayLike | Sequence[ArrayLike], scores_y: ArrayLike | Sequence[ArrayLike]
) -> float:
    """Probability that a run of X scores more than a run of Y on the same task, averaged over tasks; ties count half.

    Args:
      scores_x: [runs], [runs, tasks], or a list with one vector of runs per task.
      scores_y: the same tasks in the same order; the number of runs may differ.

    Returns:
      From 0 to 1.

    Raises:
      BadInput: the numbers of tasks differ.

    Source: Agarwal et al. (2021); per task the Mann-Whitney statistic divided by its maximum.
    """
    tasks_x, tasks_y = scores_of_tasks(scores_x, "scores_x"), scores_of_tasks(scores_y, "scores_y")
    if len(tasks_x) != len(tasks_y):
        raise BadInput(f"scores_x has {len(tasks_x)} tasks and scores_y {len(tasks_y)}; they have to be the same ones.")
    return float(np.mean([placements(x, y).mean() for x, y in zip(tasks_x, tasks_y, strict=True)]))


def placements(x: Floats, y: Floats) -> Floats:
    """For each value of x the share of y below it; ties count half."""
    ordered = np.sort(y)
    return (np.searchsorted(ordered, x, "left") + np.searchsorted(ordered, x, "right")) / (2 * len(y))


def rank_distribution(scores: Sequence[ArrayLike]) -> Floats:
    """Probability of each rank of each algorithm per task, when one run of each is drawn; rank 0 is the highest score.

    Exact, without sampling: given a run's score, the others beat it independently; ties are broken at random.

    Args:
      scores: per algorithm [runs] or [runs, tasks]; the same tasks in the same order.

    Returns:
      [algorithms, tasks, ranks]; each row of ranks sums to 1. The mean over tasks is the aggregate rank distribution;
      `(result * arange(algorithms)).sum(-1)` is the mean rank.

    Source: Agarwal et al. (2021) ask this question and sample; the exact sum is ours.
    """
    tables = [seeds_by_tasks(table, f"scores[{i}]") for i, table in enumerate(scores)]
    if len({table.shape[1] for table in tables}) > 1:
        raise BadInput(f"The algorithms have {[t.shape[1] for t in tables]} tasks; they have to be the same ones.")
    many = len(tables)
    nodes, weights = nodes_and_weights(many // 2 + 1)  # exact for polynomials of the ties' degree
    lots, weights = (nodes + 1) / 2, weights / 2
    result = np.zeros((many, tables[0].shape[1], many))
    for task in range(tables[0].shape[1]):
        columns = [np.sort(table[:, task]) for table in tables]
        for i, own in enumerate(columns):
            chance = np.zeros((len(own), len(lots), many))
            chance[:, :, 0] = 1.0
            for rival in (column for j, column in enumerate(columns) if j != i):
                above = 1 - np.searchsorted(rival, own, "right") / len(rival)
                equal = 1 - above - np.searchsorted(rival, own, "left") / len(rival)
                beaten = (above[:, None] + equal[:, None] * lots)[:, :, None]
                moved = np.concatenate([np.zeros_like(chance[:, :, :1]), chance[:, :, :-1]], axis=2)
                chance = chance * (1 - beaten) + moved * beaten
            result[i, task] = weights @ chance.mean(axis=0)
    return result


def _pooled(scores: ArrayLike) -> Floats:
    """[runs * tasks, ...]."""
    array = seeds_by_tasks(scores)
    return array.reshape(-1, *array.shape[2:])


def _plain(value: Any) -> Any:
    return float(value) if np.ndim(value) == 0 else value
