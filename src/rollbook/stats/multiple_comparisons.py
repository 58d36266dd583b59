"""Many comparisons at once: step-down corrections over pairs of algorithms and over tasks.

holm({"a-b": 0.01, "a-c": 0.04})         # adjusted p of each
step_down_tasks(a_RT, b_RT, rng=rng)     # which tasks differ: one p per task, valid for all together
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from rollbook.errors import BadInput
from rollbook.stats._checked_input import Floats, seeds_by_tasks, vector


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Adjusted p-values. Rejecting those up to 0.05 gives a false rejection in at most 5 % of families, for any
    dependence.

    Args:
      p_values: name -> p, from 0 to 1.

    Returns:
      name -> adjusted p, in the order given.

    Source: Holm (1979).
    """
    names = list(p_values)
    if not names:
        return {}
    p = vector([p_values[name] for name in names], "p_values")
    if (p < 0).any() or (p > 1).any():
        raise BadInput("p-values lie between 0 and 1.")
    order = np.argsort(p, kind="stable")
    steps = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    adjusted = np.empty(len(p))
    adjusted[order] = steps
    return {name: float(value) for name, value in zip(names, adjusted, strict=True)}


def step_down_tasks(a_RT: ArrayLike, b_RT: ArrayLike, *, rng: np.random.Generator, draws: int = 9_999) -> Floats:
    """On which tasks do two algorithms differ? Permutes whole seeds; the largest ratio of the remaining tasks decides.

    Whole seeds change sides, so luck that a seed shares over tasks is taken into account. This is more powerful than
    Holm if tasks depend on each other. Exact for algorithms of equal distribution; see `two_samples.permutation`.

    Args:
      a_RT: [seeds of A, tasks], at least 2 seeds.
      b_RT: [seeds of B, the same tasks].
      rng: of the permutations.
      draws: random permutations, in addition to the observed one.

    Returns:
      [tasks], adjusted two-sided p-values.

    Source: Westfall and Young (1993), step-down maxT.
    """
    a, b = seeds_by_tasks(a_RT, "a_RT"), seeds_by_tasks(b_RT, "b_RT")
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise BadInput(f"a_RT has the shape {a.shape} and b_RT {b.shape}; both are [seeds, tasks] over the same tasks.")
    if min(len(a), len(b)) < 2:
        raise BadInput(f"A test needs at least 2 seeds an arm; there are {len(a)} and {len(b)}.")
    pooled = np.concatenate([a, b])
    span = np.ptp(pooled, axis=0)
    unit = (pooled - pooled.mean(axis=0)) / np.where(span > 0, span, 1.0)
    seen = _ratios(unit, (np.arange(len(pooled)) < len(a))[None, :])[0]
    order = np.argsort(-seen, kind="stable")
    as_large = np.zeros(len(seen))
    for begin in range(0, draws, 1_000):
        many = min(1_000, draws - begin)
        members = np.argsort(rng.random((many, len(pooled))), axis=1) < len(a)
        drawn = _ratios(unit, members)[:, order]
        temporary = np.maximum.accumulate(drawn[:, ::-1], axis=1)[:, ::-1]  # the largest of this task and later ones
        as_large += (temporary >= seen[order] * (1 - 1e-9)).sum(axis=0)
    steps = np.maximum.accumulate((1 + as_large) / (1 + draws))
    adjusted = np.empty(len(seen))
    adjusted[order] = steps
    return adjusted


def _ratios(values_NT: Floats, members_SN: np.ndarray) -> Floats:
    """|difference of means| / Welch's error for each split and task."""
    shape = (len(members_SN), values_NT.shape[1])
    gap, whole = np.zeros(shape), np.zeros(shape)
    for sign, inside in ((1.0, members_SN), (-1.0, ~members_SN)):
        size = int(inside[0].sum())
        weight = inside.astype(np.float64)
        mean = weight @ values_NT / size
        gap += sign * mean
        whole += np.maximum(weight @ values_NT**2 / size - mean**2, 0.0) / (size - 1)
    difference = np.abs(gap)
    ratio = difference / np.sqrt(np.maximum(whole, 1e-24))
    return np.asarray(np.where(difference < 1e-12, 0.0, ratio), dtype=np.float64)
