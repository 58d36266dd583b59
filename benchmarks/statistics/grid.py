"""What is claimed at worst over a grid of shapes: coverage of intervals, and false winners of arms of one mean.

    python -m benchmarks.statistics.grid [studies] [--only coverage|verdicts|power|evidence|repeated]

An unstable arm beside a stable one is the usual case of reinforcement learning. The grid: 5 to 40 % of the seeds fail
or are lucky (and the others differ by a tenth or a fiftieth of that), skew both ways, heavy tails, a ceiling, spreads
that differ up to tenfold. The verdict is that of `stats.Study` with a look after each seed, worked out for all studies
at once (`decisions`); a test holds the two alike.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from rollbook.stats import DECIDES, Plan, e_process, nominal_levels, permutation, pointwise
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


@dataclass(frozen=True)
class Decided:
    """Of each study [studies]: the winner (1 a, -1 b, 0 none), seeds an arm then, and whether it would still be so with
    one more failed seed of the winner."""

    winner: np.ndarray
    seeds: np.ndarray
    holds: np.ndarray


def moments(scores_SN: np.ndarray, centre: str) -> tuple[np.ndarray, np.ndarray, int]:
    """(mean or trimmed mean, squared standard error, seeds that count) of each study."""
    n = scores_SN.shape[1]
    cut = n // 4 if centre == "iqm" else 0
    if not cut:
        return scores_SN.mean(axis=1), scores_SN.var(axis=1, ddof=1) / n, n
    ordered = np.sort(scores_SN, axis=1)
    left = n - 2 * cut
    clipped = np.clip(ordered, ordered[:, cut : cut + 1], ordered[:, n - cut - 1 : n - cut])
    return ordered[:, cut : n - cut].mean(axis=1), (n - 1) * clipped.var(axis=1, ddof=1) / (left * (left - 1)), left


def p_values(a_SN: np.ndarray, b_SN: np.ndarray, centre: str) -> tuple[np.ndarray, np.ndarray]:
    """(difference, two-sided p) of Welch's test, or Yuen's, of each study."""
    (mean_a, square_a, n_a), (mean_b, square_b, n_b) = moments(a_SN, centre), moments(b_SN, centre)
    total = np.maximum(square_a + square_b, 1e-300)
    freedom = total**2 / np.maximum(square_a**2 / (n_a - 1) + square_b**2 / (n_b - 1), 1e-300)
    gap = mean_a - mean_b
    return gap, 2 * stdtr(freedom, -np.abs(gap) / np.sqrt(total))


def decisions(a_SN: np.ndarray, b_SN: np.ndarray, plan: Plan, floor: float) -> Decided:
    """What a `Study` of two arms decides that is looked at after each seed; [studies, seeds] of each arm."""
    studies = len(a_SN)
    levels = nominal_levels([n / plan.n_max for n in range(plan.n_min, plan.n_max + 1)], plan.alpha, plan.spending)
    winner, seeds = np.zeros(studies, np.int64), np.full(studies, plan.n_max)
    holds = np.zeros(studies, np.bool_)

    def passes(a: np.ndarray, b: np.ndarray, level: float, side: int) -> bool:
        gap, p = p_values(a[None], b[None], plan.centre)
        if np.sign(gap[0]) != side or p[0] > level:
            return False
        rng = np.random.default_rng([plan.seed, 0, len(a), len(b)])
        return bool(permutation(a, b, rng=rng, draws=plan.draws, centre=plan.centre).p <= level)

    for n, level in zip(range(plan.n_min, plan.n_max + 1), levels.tolist(), strict=True):
        gap, p = p_values(a_SN[:, :n], b_SN[:, :n], plan.centre)
        for study in np.flatnonzero((winner == 0) & (p <= level) & (gap != 0)):
            a, b, side = a_SN[study, :n], b_SN[study, :n], int(np.sign(gap[study]))
            if not passes(a, b, level, side):
                continue
            winner[study], seeds[study] = side, n
            a_down, b_down = (np.append(a, floor), b) if side > 0 else (a, np.append(b, floor))
            holds[study] = passes(a_down, b_down, plan.alpha, side)
    return Decided(winner, seeds, holds)


UNSTEADY = [shape for shape in SHAPES if shape != "normal"]
PAIRS: tuple[tuple[str, str, float], ...] = (
    *((shape, shape, 1.0) for shape in SHAPES),
    *(("normal", "normal", ratio) for ratio in (1 / 3, 0.1)),
    *((shape, "normal", sd) for shape in UNSTEADY for sd in (0.02, 0.1, 1.0)),
    *((f"{100 * share:g} % fail, {noise:g}", f"10 % fail, {noise:g}", 1.0) for share in (0.3, 0.4) for noise in NOISES),
    ("10 % fail, 0.1", "10 % lucky, 0.1", 1.0),
)
"""(shape of a, shape of b, what b's spread is multiplied with)."""
KINDS = {
    "alike": lambda first, second, scale: first == second and scale == 1,
    "spreads 3 and 10 to 1": lambda first, second, scale: first == second,
    "failing seeds, unlike": lambda first, second, scale: "fail" in first and "lucky" not in second,
    "lucky seeds, unlike": lambda first, second, scale: "lucky" in first + second,
    "other shapes, unlike": lambda first, second, scale: True,
}
"""The first that fits a pair."""


def arms(
    pair: tuple[str, str, float], centre: str, studies: int, most: int, shift: float = 0.0
) -> tuple[np.ndarray, np.ndarray, float]:
    """Scores of two arms [studies, seeds] of one mean (or IQM), and the floor: what one seed in a thousand is below."""
    first, second, scale = pair
    rng = np.random.default_rng([*first.encode(), *second.encode(), int(1000 * scale), *centre.encode()])
    a = SHAPES[first](rng, (studies, most)) - true(first, centre) + shift
    b = scale * (SHAPES[second](rng, (studies, most)) - true(second, centre))
    low_a, low_b = population(first)[3] - true(first, centre), scale * (population(second)[3] - true(second, centre))
    return a, b, min(low_a, low_b)


def false_winners(pair: tuple[str, str, float], centre: str, studies: int) -> tuple[float, float]:
    """Shares of studies of the default plan with a winner, and with one that holds with one more failed seed."""
    plan = Plan(("a", "b"), centre=centre)
    a, b, floor = arms(pair, centre, studies, plan.n_max)
    found = decisions(a, b, plan, floor)
    return float((found.winner != 0).mean()), float(found.holds.mean())


def verdicts(studies: int) -> Iterator[str]:
    """False winners of the default plan, the worst of each kind of arms, in per cent."""
    for centre, name in (("mean", "mean"), ("iqm", "IQM")):
        yield f"| arms of equal {name} | pairs | decided, worst | with one more failed seed, worst |"
        yield "|---|---|---|---|"
        found = {pair: false_winners(pair, centre, studies) for pair in PAIRS}
        for kind in KINDS:
            mine = [pair for pair in PAIRS if next(k for k, fits in KINDS.items() if fits(*pair)) == kind]
            cells = []
            for grade in (0, 1):
                worst = max(mine, key=lambda pair, grade=grade: found[pair][grade])
                first, second, scale = worst
                words = first if first == second and scale == 1 else f"{first} : {second} x {scale:.2g}"
                cells.append(f"{100 * found[worst][grade]:.1f} ({words})")
            yield f"| {kind} | {len(mine)} | " + " | ".join(cells) + " |"
        yield ""


def power(studies: int) -> Iterator[str]:
    """How often the plan names the better arm, in per cent; d in standard deviations between seeds."""
    yield "| normal scores | by the mean (seeds an arm) | with one more failed seed | by the IQM (seeds an arm) |"
    yield "|---|---|---|---|"
    for shift in (0.5, 1.0, 1.5, 2.0):
        cells = []
        for centre in ("mean", "iqm"):
            plan = Plan(("a", "b"), centre=centre)
            a, b, floor = arms(("normal", "normal", 1.0), centre, studies, plan.n_max, shift)
            found = decisions(a, b, plan, floor)
            cells.append(f"{100 * float((found.winner > 0).mean()):.1f} ({found.seeds.mean():.1f})")
            if centre == "mean":
                cells.append(f"{100 * float(found.holds.mean()):.1f}")
        yield f"| d = {shift:g} | " + " | ".join(cells) + " |"


def evidence(studies: int) -> Iterator[str]:
    """How often evidence has reached 20, in per cent: false where neither arm usually scores more, else power."""
    most, ends = 60, (10, 20, 40, 60)
    yield "| pairs of seeds | by " + " | by ".join(map(str, ends)) + " |"
    yield "|---" * (len(ends) + 1) + "|"
    cases: dict[str, tuple[Draw, float]] = {
        "normal, alike": (normal(1.0), 0.0),
        "wins by little as often as it loses by much": (
            lambda rng, size: np.where(rng.random(size) < 0.5, 0.1, -5.0), 0.0,
        ),
        **{f"normal, d = {shift:g}": (normal(1.0), shift) for shift in (0.5, 1.0, 2.0)},
    }  # fmt: skip
    for name, (draw, shift) in cases.items():
        rng = np.random.default_rng([*name.encode()])
        a = draw(rng, (studies, most)) + shift
        b = (normal(1.0) if "normal" in name else normal(0.01))(rng, (studies, most))
        reached = np.array(
            [np.maximum.accumulate(e_process(*arm))[np.array(ends) - 1] for arm in zip(a, b, strict=True)]
        )
        yield f"| {name} | " + " | ".join(f"{100 * share:.1f}" for share in (reached >= DECIDES).mean(axis=0)) + " |"


def repeated(studies: int) -> Iterator[str]:
    """False winners of Welch's test at 5 % after each seed from 5 to 22, in per cent."""
    yield "| arms alike | 5 % at each look |"
    yield "|---|---|"
    for shape in ("normal", "heavy tails", "skew 1 up", "30 % fail, 0.1", "dead"):
        a, b, _ = arms((shape, shape, 1.0), "mean", studies, 22)
        looks = np.array([p_values(a[:, :n], b[:, :n], "mean")[1] <= 0.05 for n in range(5, 23)])
        yield f"| {shape} | {100 * float(looks.any(axis=0).mean()):.1f} |"


PARTS: dict[str, Callable[[int], Iterator[str]]] = {
    "coverage": coverage,
    "verdicts": verdicts,
    "power": power,
    "evidence": evidence,
    "repeated": repeated,
}


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
