"""Final scores of imagined training runs and their true centres; standard deviations are near 1."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

Rng = np.random.Generator
Size = tuple[int, ...]


def normal(rng: Rng, size: Size) -> np.ndarray:
    return rng.normal(size=size)


def skewed(rng: Rng, size: Size) -> np.ndarray:
    """Lognormal with sigma 1: a few seeds are far better than the others."""
    return rng.lognormal(0.0, 1.0, size) / 2.16


def failing(rng: Rng, size: Size) -> np.ndarray:
    """30 % of the seeds do not learn."""
    learned = rng.random(size) >= 0.3
    return np.where(learned, rng.normal(1.0, 0.15, size), rng.normal(0.0, 0.1, size)) / 0.48


def heavy(rng: Rng, size: Size) -> np.ndarray:
    """Student's t with 3 degrees of freedom."""
    return rng.standard_t(3, size) / np.sqrt(3.0)


def capped(rng: Rng, size: Size) -> np.ndarray:
    """CartPole-like: 43 % of the seeds are at the cap of 500."""
    return np.minimum(500.0, rng.normal(490.0, 60.0, size)) / 35.0


def dead(rng: Rng, size: Size) -> np.ndarray:
    """20 % of the seeds crashed and count as zero."""
    return np.where(rng.random(size) < 0.2, 0.0, rng.normal(3.0, 1.0, size)) / 1.5


FAMILIES: dict[str, Callable[[Rng, Size], np.ndarray]] = {
    "normal": normal,
    "skewed": skewed,
    "failing": failing,
    "heavy tails": heavy,
    "capped": capped,
    "dead": dead,
}


@cache
def truth(family: str, statistic: str, offsets: tuple[float, ...] = (0.0,), draws: int = 4_000_000) -> float:
    """The statistic of the population: of the mixture of tasks that differ by `offsets`."""
    rng = np.random.default_rng(20)
    pooled = np.concatenate([FAMILIES[family](rng, (draws // len(offsets),)) + shift for shift in offsets])
    if statistic == "mean":
        return float(pooled.mean())
    if statistic == "median":
        return float(np.median(pooled))
    pooled.sort()
    cut = len(pooled) // 4
    return float(pooled[cut : len(pooled) - cut].mean())
