"""What is claimed at worst over a grid of shapes: coverage of intervals. `verdicts` has the false winners over it.

    python -m benchmarks.statistics.grid [studies] [--only coverage|repeated]

An unstable arm beside a stable one is the usual case of reinforcement learning. The grid: 5 to 40 % of the seeds fail
or are lucky (and the others differ by a tenth or a fiftieth of that), skew both ways, heavy tails, a ceiling, spreads
that differ up to tenfold.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np

from rollbook.stats import pointwise
from rollbook.stats._special import stdtr

Rng = np.random.Generator
Draw = Callable[[Rng, tuple[int, ...]], np.ndarray]
SHARES = (0.05, 0.1, 0.2, 0.3, 0.4)
NOISES = (0.1, 0.02)
"""Spread among the seeds that did not fail, in units of what failing costs."""


def fails(share: float, noise: float) -> Draw:
    return lambda rng, size: np.where(rng.random(size) < share, 0.0, 1.0) + noise * rng.normal(size=size)


def skewed(sigma: float) -> Draw:
    return lambda rng, size: rng.lognormal(0.0, sigma, size)


def mirrored(draw: Draw) -> Draw:
    return lambda rng, size: -draw(rng, size)


def normal(sd: float) -> Draw:
    return lambda rng, size: sd * rng.normal(size=size)


SHAPES: dict[str, Draw] = {
    "normal": normal(1.0),
    "heavy tails": lambda rng, size: rng.standard_t(3, size),
    **{f"{100 * share:g} % fail, {noise:g}": fails(share, noise) for noise in NOISES for share in SHARES},
    **{f"{100 * share:g} % lucky, {noise:g}": mirrored(fails(share, noise)) for noise in NOISES for share in SHARES},
    **{f"skew {sigma:g} up": skewed(sigma) for sigma in (0.5, 1.0, 1.2)},
    **{f"skew {sigma:g} down": mirrored(skewed(sigma)) for sigma in (0.5, 1.0, 1.2)},
    "capped": lambda rng, size: np.minimum(500.0, rng.normal(490.0, 60.0, size)) / 35.0,
    "dead": lambda rng, size: np.where(rng.random(size) < 0.2, 0.0, rng.normal(3.0, 1.0, size)) / 1.5,
}


@cache
def population(shape: str) -> tuple[float, float, float, float, float]:
    """(mean, IQM, median, and what one seed in a thousand stays below and above) of a shape, from a million draws."""
    scores = np.sort(SHAPES[shape](np.random.default_rng(20), (1_000_000,)))
    cut = len(scores) // 4
    ends = scores[len(scores) // 1000], scores[-len(scores) // 1000]
    return (
        float(scores.mean()),
        float(scores[cut:-cut].mean()),
        float(np.median(scores)),
        float(ends[0]),
        float(ends[1]),
    )


def true(shape: str, statistic: str) -> float:
    return population(shape)[("mean", "iqm", "median").index(statistic)]


# -- coverage


ASKED: tuple[tuple[str, int, tuple[int, ...]], ...] = (
    ("iqm", 1, (5, 6, 7, 8, 10, 12, 15, 20, 30, 50)),
    ("iqm", 2, (5, 7, 10, 20)),
    ("iqm", 5, (3, 5, 7, 10, 20)),
    ("iqm", 10, (3, 5, 10, 20)),
    ("median", 1, (5, 6, 7, 8, 10, 12, 15, 20, 30, 50)),
    ("mean", 1, (5, 7, 10, 15, 20, 50)),
    ("mean", 10, (5, 10, 20)),
)
"""(statistic, tasks, seeds)."""


def coverage(studies: int) -> Iterator[str]:
    """Lowest coverage of what `interval` gives, and of which shape."""
    yield "| statistic, tasks | seeds: lowest coverage, % (shape) |"
    yield "|---|---|"
    for statistic, tasks, seeds in ASKED:
        cells = []
        for n in seeds:
            held = {shape: covered(statistic, shape, n, tasks, studies) for shape in SHAPES}
            lowest = min(held, key=lambda shape: held[shape])
            cells.append(f"{n}: {100 * held[lowest]:.1f} ({lowest})")
        yield f"| {statistic}, {tasks} | " + "; ".join(cells) + " |"


@cache
def pooled(shape: str, statistic: str, tasks: int) -> float:
    """The statistic of a shape over tasks that lie up to three standard deviations apart."""
    scores = SHAPES[shape](np.random.default_rng(21), (tasks, 2_000_000 // tasks))
    scores = np.sort((scores + spread(shape, tasks)[:, None]).ravel())
    cut = len(scores) // 4 if statistic == "iqm" else 0
    return float(np.median(scores)) if statistic == "median" else float(scores[cut : len(scores) - cut].mean())


@cache
def spread(shape: str, tasks: int) -> np.ndarray:
    sd = float(SHAPES[shape](np.random.default_rng(22), (200_000,)).std())
    return np.zeros(1) if tasks == 1 else sd * np.linspace(-1.5, 1.5, tasks)


def covered(statistic: str, shape: str, n: int, tasks: int, studies: int) -> float:
    rng = np.random.default_rng([n, tasks, *statistic.encode(), *shape.encode()])
    truth, hits, batch = pooled(shape, statistic, tasks), 0, 250
    for _ in range(studies // batch):
        scores = SHAPES[shape](rng, (n, tasks, batch)) + spread(shape, tasks)[:, None]
        _, low, high, *_ = pointwise(scores, statistic, rng=rng, draws=4_999 if n < 10 else 1_999)
        hits += int(((low - 1e-9 <= truth) & (truth <= high + 1e-9)).sum())
    return hits / (studies // batch * batch)


# -- verdicts


UNSTEADY = [shape for shape in SHAPES if shape != "normal"]
PAIRS: tuple[tuple[str, str, float], ...] = (
    *((shape, shape, 1.0) for shape in SHAPES),
    *(("normal", "normal", ratio) for ratio in (1 / 3, 0.1)),
    *((shape, "normal", sd) for shape in UNSTEADY for sd in (0.02, 0.1, 1.0)),
    *((f"{100 * share:g} % fail, {noise:g}", f"10 % fail, {noise:g}", 1.0) for share in (0.3, 0.4) for noise in NOISES),
    ("10 % fail, 0.1", "10 % lucky, 0.1", 1.0),
)
"""(shape of a, shape of b, what b's spread is multiplied with)."""


def repeated(studies: int) -> Iterator[str]:
    """False winners of Welch's test at 5 % after each seed from 5 to 22, in per cent."""
    yield "| arms alike | 5 % at each look |"
    yield "|---|---|"
    for shape in ("normal", "heavy tails", "skew 1 up", "30 % fail, 0.1", "dead"):
        a, b = SHAPES[shape](np.random.default_rng([*shape.encode()]), (2, studies, 22))
        looks = np.array([p_of_welch(a[:, :n], b[:, :n]) <= 0.05 for n in range(5, 23)])
        yield f"| {shape} | {100 * float(looks.any(axis=0).mean()):.1f} |"


def p_of_welch(a_SN: np.ndarray, b_SN: np.ndarray) -> np.ndarray:
    """Two-sided p of each study; arms of equal size."""
    n = a_SN.shape[1]
    of_a, of_b = a_SN.var(axis=1, ddof=1) / n, b_SN.var(axis=1, ddof=1) / n
    freedom = (of_a + of_b) ** 2 * (n - 1) / (of_a**2 + of_b**2)
    return np.asarray(2 * stdtr(freedom, -np.abs(a_SN.mean(axis=1) - b_SN.mean(axis=1)) / np.sqrt(of_a + of_b)))


PARTS: dict[str, Callable[[int], Iterator[str]]] = {"coverage": coverage, "repeated": repeated}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("studies", nargs="?", type=int, default=2_000)
    parser.add_argument("--only", default="", choices=("", *PARTS))
    arguments = parser.parse_args()
    for name, part in PARTS.items():
        if arguments.only in ("", name):
            for text in part(arguments.studies):
                print(text)
                sys.stdout.flush()
            print()
