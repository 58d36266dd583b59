"""Compares two groups within each seed, for studies where equal seeds share something."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rollbook import stats
from rollbook.compare.group_curve import Floats
from rollbook.compare.scores import Group
from rollbook.stats import Interval
from rollbook.system.brief import brief
from rollbook.system.texts import amount, quantity


@brief
@dataclass(frozen=True, slots=True, eq=False)
class PairedSeeds:
    """The differences of two groups within each common seed.

    Attributes:
      a, b: their labels.
      seeds: the common seeds, in order; several runs of one seed count as their mean.
      differences_N: [seeds], a minus b, of the means over tasks.
      interval: of the mean difference; None without a common seed.
      better_in: number of seeds in which a is better.
      alone: number of runs without a partner.
    """

    a: str
    b: str
    seeds: tuple[int, ...]
    differences_N: Floats
    interval: Interval | None
    better_in: int
    alone: int

    def sentence(self) -> str:
        """How far a is above b within a seed, and how certain that is; the verdict is that of `Comparison.pairs`."""
        if self.interval is None:
            return f"{self.a} and {self.b}: not paired; they have no seed in common."
        n = len(self.seeds)
        of = self.interval
        sure = (
            f"no interval: {of.reason}"
            if of.low is None or of.high is None
            else f"95 % interval {quantity(of.low)} to {quantity(of.high)} if no rare kind of seed was missed "
            f"({of.method})"
        )
        alone = f" Left out, without a partner: {amount(self.alone, 'run')}." if self.alone else ""
        return f"{self.a} minus {self.b} within a seed: {quantity(of.estimate)} on average, n = {n}, {sure}.{alone}"


def paired_seeds(a: Group, b: Group, lower_is_better: bool) -> PairedSeeds:
    """Pair the seeds of two groups. Gains precision if equal seeds share something; otherwise it is harmless."""
    of_a, of_b = _by_seed(a), _by_seed(b)
    seeds = tuple(sorted(of_a.keys() & of_b.keys()))
    differences = np.array([np.mean(of_a[seed]) - np.mean(of_b[seed]) for seed in seeds], dtype=np.float64)
    interval = stats.interval(differences, "mean", rng=np.random.default_rng(0)) if len(seeds) else None
    better = int((differences < 0).sum() if lower_is_better else (differences > 0).sum())
    paired = sum(len(of_a[seed]) + len(of_b[seed]) for seed in seeds)
    return PairedSeeds(a.label, b.label, seeds, differences, interval, better, len(a.seeds_R) + len(b.seeds_R) - paired)


def _by_seed(group: Group) -> dict[int, list[float]]:
    found: dict[int, list[float]] = {}
    for seed, scores_T in zip(group.seeds, group.scores_RT, strict=True):
        if seed is not None and not np.isnan(scores_T).any():
            found.setdefault(seed, []).append(float(scores_T.mean()))
    return found
