"""How often each seed, or each run of a task, is drawn in a resample.

Axes: N seeds, T tasks, B draws. Draws are made in blocks of 50, each from its own generator spawned from `rng`. So the
first thousand draws do not depend on the total number, and threads do not change the result.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rollbook.errors import BadInput

Counts: TypeAlias = NDArray[np.int16]

BLOCK = 50
"""Draws per generator; small blocks stay in the processor's cache."""


def seed_counts(seeds: int, draws: int, rng: np.random.Generator) -> Counts:
    """How often each seed is drawn, with replacement, in each resample.

    Args:
      seeds: N, from 1 to 32,767.
      draws: B, at least 1.
      rng: only its spawned children are used.

    Returns:
      [B, N]; each row sums to N.
    """
    return _counts(seeds, 1, draws, rng)


def run_counts(seeds: int, tasks: int, draws: int, rng: np.random.Generator) -> Counts:
    """The same for each task separately (stratified); valid only if runs of one seed on two tasks share no luck.

    Args:
      seeds: N.
      tasks: T.
      draws: B.
      rng: only its spawned children are used.

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
