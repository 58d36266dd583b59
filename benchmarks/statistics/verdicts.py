"""How often the verdict of `compare` names a false winner and finds a true one, over shapes and schedules of looks.

    python -m benchmarks.statistics.verdicts [studies] [--only PART] [--scores FILE]

Parts: one, schedules, power, advice, plans, alike; real with --scores.

Three readings of "no difference": (i) both arms have the same distribution; (ii) neither usually scores better, but
their shapes differ; (iii) their means are equal, but their shapes differ. Only (i) is what the tests are exact for.
The rule is that of `stats.judge` and `stats.open_ended`, worked out for all studies at once; a test holds them alike.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.statistics.grid import PAIRS, SHAPES, normal, true
from rollbook.stats import judge, nominal_levels, open_ended
from rollbook.stats.deciding import seeds_for_difference, seeds_to_decide

DRAWN = 1_999
"""Random splits where there are more than all of 8 against 8."""


@cache
def splits(size: int, chosen: int) -> np.ndarray:
    """[splits, size]: 1 for the members of A; the observed split is not among random ones."""
    if math.comb(size, chosen) <= 12_870:
        places = np.array(list(itertools.combinations(range(size), chosen)))
    else:
        places = np.argsort(np.random.default_rng(size).random((DRAWN, size)), axis=1)[:, :chosen]
    members = np.zeros((len(places), size), np.float32)
    np.put_along_axis(members, places, 1, axis=1)
    return members


def p_values(a_SN: np.ndarray, b_SN: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(side by ranks, or 0 where the means disagree; p of ranks; p of means) of each study; arms of equal size."""
    n = a_SN.shape[1]
    pooled = np.concatenate([a_SN, b_SN], axis=1)
    ordered = np.sort(pooled, axis=1)
    ranks = (pooled[:, :, None] >= ordered[:, None, :]).sum(axis=2) + (pooled[:, :, None] > ordered[:, None, :]).sum(
        axis=2
    )
    means = (pooled - pooled.mean(axis=1, keepdims=True)) / np.maximum(np.ptp(pooled, axis=1, keepdims=True), 1e-300)
    members = splits(2 * n, n)
    p, side = [], np.zeros(len(pooled))
    for values in (ranks - ranks.mean(axis=1, keepdims=True), means):
        seen = values[:, :n].sum(axis=1)
        drawn = values.astype(np.float32) @ members.T
        np.abs(drawn, out=drawn)
        as_far = (drawn >= (np.abs(seen) - 1e-5)[:, None]).sum(axis=1)
        all_of_them = len(members) != DRAWN
        p.append(as_far / len(members) if all_of_them else (1 + as_far) / (1 + len(members)))
        sides = np.where(np.abs(seen) < 1e-5, 0, np.sign(seen))
        side = sides if values is not means else np.where(side == sides, side, 0)
    return side, p[0], p[1]


def decided(a_SN: np.ndarray, b_SN: np.ndarray, limit: float) -> np.ndarray:
    """The winner of each study at one look: 1 a, -1 b, 0 none."""
    side, ranks, means = p_values(a_SN, b_SN)
    return np.where(np.maximum(ranks, means) <= limit, side, 0)


def looked_at(
    a_SN: np.ndarray, b_SN: np.ndarray, looks: Sequence[int], plan: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """(first winner, seeds an arm then or at the end) of each study that is looked at after these numbers of seeds."""
    could, limits = [], []
    for n in looks:  # a look that cannot decide, whatever the scores, spends nothing
        tried = [*could, n]
        limit = float((open_ended(tried) if plan is None else nominal_levels([t / plan for t in tried], 0.05))[-1])
        if 2 / math.comb(2 * n, n) <= limit:
            could, limits = tried, [*limits, limit]
    winner, seeds = np.zeros(len(a_SN), np.int64), np.full(len(a_SN), looks[-1])
    for n, limit in zip(could, limits, strict=True):
        open_ones = np.flatnonzero(winner == 0)
        found = decided(a_SN[open_ones, :n], b_SN[open_ones, :n], limit)
        winner[open_ones] = found
        seeds[open_ones[found != 0]] = n
    return winner, seeds


def by_p(a_SN: np.ndarray, b_SN: np.ndarray) -> np.ndarray:
    """First winners where the next look is chosen by p: one more seed after a near miss, else five, to 22."""
    winner = np.zeros(len(a_SN), np.int64)
    for study in range(len(a_SN)):
        n, before = 5, []
        while n <= 22 and not winner[study]:
            before.append(n)
            side, ranks, means = p_values(a_SN[study : study + 1, :n], b_SN[study : study + 1, :n])
            p = max(ranks[0], means[0])
            if p <= float(open_ended(before)[-1]):
                winner[study] = int(side[0])
            n += 1 if p <= 0.1 else 5
    return winner


# -- shapes

ALIKE = tuple(shape for shape in SHAPES)
UNLIKE = tuple(pair for pair in PAIRS if pair[0] != pair[1] or pair[2] != 1)


@cache
def even(pair: tuple[str, str, float]) -> float:
    """What b is shifted by so that neither arm usually scores better."""
    first, second, scale = pair
    rng = np.random.default_rng(33)
    return float(np.median(SHAPES[first](rng, (1_000_000,)) - scale * SHAPES[second](rng, (1_000_000,))))


def drawn(pair: tuple[str, str, float], reading: str, studies: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    first, second, scale = pair
    rng = np.random.default_rng([*first.encode(), *second.encode(), int(1000 * scale), *reading.encode()])
    a, b = SHAPES[first](rng, (studies, n)), scale * SHAPES[second](rng, (studies, n))
    if reading == "ii":
        b = b + even(pair)
    elif reading == "iii":
        a, b = a - true(first, "mean"), b - scale * true(second, "mean")
    return a, b


def false_winners(
    pair: tuple[str, str, float], reading: str, studies: int, looks: Sequence[int], plan: int | None = None
) -> float:
    """The share of studies with a winner, in per cent."""
    return 100 * float((looked_at(*drawn(pair, reading, studies, looks[-1]), looks, plan)[0] != 0).mean())


def readings() -> dict[str, tuple[tuple[str, str, float], ...]]:
    return {"i": tuple((shape, shape, 1.0) for shape in ALIKE), "ii": UNLIKE, "iii": UNLIKE}


def one(studies: int) -> Iterator[str]:
    """False winners at one look, the worst of each reading, in per cent."""
    rules = ("means at 5 %", "ranks at 5 %", "**both at 5 %**", "**both at 3 %, the first look**")
    yield "| seeds of each | " + " | ".join(rules) + " |"
    yield "|---" * (len(rules) + 1) + "|"
    for n in (4, 5, 6, 8, 10, 12):
        worst = np.zeros((len(rules), 3))
        for reading, pairs in enumerate(readings().values()):
            for pair in pairs:
                side, ranks, means = p_values(*drawn(pair, tuple(readings())[reading], studies, n))
                larger = np.where(side != 0, np.maximum(ranks, means), 1.0)
                shares = [
                    (means <= 0.05).mean(),
                    (ranks <= 0.05).mean(),
                    (larger <= 0.05).mean(),
                    (larger <= 0.03).mean(),
                ]
                worst[:, reading] = np.maximum(worst[:, reading], 100 * np.array(shares))
        yield f"| {n} | " + " | ".join(" / ".join(f"{value:.1f}" for value in each) for each in worst) + " |"


SCHEDULES: dict[str, tuple[int, ...]] = {
    "one look at 5": (5,),
    "one look at 10": (10,),
    "5, 10, 20": (5, 10, 20),
    "4, 8, 16": (4, 8, 16),
    "each seed 5 to 22": tuple(range(5, 23)),
}


def schedules(studies: int) -> Iterator[str]:
    """False winners over schedules of looks, the worst of each reading, in per cent."""
    yield "| looks at | (i) the same distribution | (ii) neither usually better | (iii) equal means |"
    yield "|---|---|---|---|"
    for name, looks in SCHEDULES.items():
        cells = []
        for reading, pairs in readings().items():
            found = {
                pair: 100 * float((looked_at(*drawn(pair, reading, studies, looks[-1]), looks)[0] != 0).mean())
                for pair in pairs
            }
            worst = max(found, key=lambda pair: found[pair])
            cells.append(
                f"{found[worst]:.1f} ({worst[0] if reading == 'i' else ' : '.join(worst[:2]) + f' x {worst[2]:.2g}'})"
            )
        yield f"| {name} | " + " | ".join(cells) + " |"
    for shape in ("normal", "30 % fail, 0.1"):
        a, b = drawn((shape, shape, 1.0), "i", min(studies, 1_000), 22)
        yield f"| the next look chosen by p, {shape} | {100 * float((by_p(a, b) != 0).mean()):.1f} | | |"


def power(studies: int) -> Iterator[str]:
    """How often the better arm is named, on normal scores, in per cent (mean seeds of each)."""
    shifts = (0.5, 1.0, 1.5, 2.0, 3.0)
    yield "| looks at | " + " | ".join(f"d = {shift:g}" for shift in shifts) + " |"
    yield "|---" * (len(shifts) + 1) + "|"
    plans = {f"plan to {end}, each seed": (tuple(range(4, end + 1)), end) for end in (10, 22)}
    for name, (looks, end) in {**{name: (looks, None) for name, looks in SCHEDULES.items()}, **plans}.items():
        cells = []
        for shift in shifts:
            rng = np.random.default_rng([int(10 * shift), looks[-1]])
            a, b = normal(1.0)(rng, (studies, looks[-1])) + shift, normal(1.0)(rng, (studies, looks[-1]))
            winner, seeds = looked_at(a, b, looks, end)
            cells.append(f"{100 * float((winner == 1).mean()):.0f} ({seeds.mean():.1f})")
        yield f"| {name} | " + " | ".join(cells) + " |"


def advice(studies: int) -> Iterator[str]:
    """What "N seeds of each decide with a chance of 80 %" is worth: studies that five seeds did not decide go on to N.

    Before a study, the difference is known; after one look it is taken from the share of pairs won, which five seeds
    know badly.
    """
    yield "| scores | d | N named before, decided, % | N named after 5 seeds (quartiles) | decided, % |"
    yield "|---|---|---|---|---|"
    for shape, d in itertools.product(("normal", "heavy tails", "skew 1 up", "30 % fail, 0.1"), (1.0, 1.5, 2.0)):
        rng = np.random.default_rng([*shape.encode(), int(10 * d)])
        spread = float(SHAPES[shape](np.random.default_rng(1), (100_000,)).std()) if shape != "heavy tails" else 3**0.5

        def two(n: int, d: float = d, spread: float = spread) -> tuple[np.ndarray, np.ndarray]:
            a, b = (SHAPES[shape](rng, (studies, n)) for _ in "ab")  # noqa: B023  (asked at once)
            return a + d * spread, b

        first = float(open_ended([5])[-1])
        before = seeds_for_difference(d, lambda n: float(open_ended([n])[-1])) or 0
        found = 100 * float((decided(*two(before), float(open_ended([before])[-1])) == 1).mean())
        a, b = two(60)
        left = np.flatnonzero(decided(a[:, :5], b[:, :5], first) == 0)
        won = (a[left, :5, None] > b[left, None, :5]).mean(axis=(1, 2))
        said: list[int] = []
        right = 0
        for study, share in zip(left, won, strict=True):
            n = asked_after_five(float(max(share, 1 - share)))
            said.append(n)
            right += bool(n <= 60 and decided(a[[study], :n], b[[study], :n], float(open_ended([5, n])[-1]))[0] == 1)
        quarters = " / ".join(f"{n:.0f}" if n < 200 else "more than 60" for n in np.quantile(said, (0.25, 0.5, 0.75)))
        yield f"| {shape} | {d:g} | {before}, {found:.0f} | {quarters} | {100 * right / max(len(left), 1):.0f} |"


@cache
def asked_after_five(share: float) -> int:
    """The seeds of each that are named after five that did not decide; 200 if there are more than 60."""
    return seeds_to_decide(share, lambda n: float(open_ended([5, n])[-1]), least=6, most=60) or 200


def plans(studies: int) -> Iterator[str]:
    """False winners of plans that are looked at after each seed, the worst of each reading, in per cent."""
    yield "| plan to | first look that can decide | (i) | (ii) | (iii) |"
    yield "|---|---|---|---|---|"
    for end in (5, 10, 22):
        looks = tuple(range(4, end + 1))
        first = next(n for n in looks if 2 / math.comb(2 * n, n) <= nominal_levels([n / end], 0.05)[0])
        cells = [
            f"{max(false_winners(pair, reading, studies, looks, end) for pair in pairs):.1f}"
            for reading, pairs in readings().items()
        ]
        yield f"| {end} | {first} | " + " | ".join(cells) + " |"


def alike(studies: int) -> Iterator[str]:
    """False winners among groups of one distribution, in per cent, for the shapes where few studies showed most."""
    yield "| both groups | looks at 4, 8, 16 | looks at 5, 10, 20 | a plan to 10, each seed |"
    yield "|---|---|---|---|"
    for shape in ("normal", "heavy tails", "skew 1 up", "10 % lucky, 0.02", "30 % fail, 0.1"):
        how: tuple[tuple[Sequence[int], int | None], ...] = (
            ((4, 8, 16), None),
            ((5, 10, 20), None),
            (range(6, 11), 10),
        )
        found = [false_winners((shape, shape, 1.0), "i", studies, looks, plan) for looks, plan in how]
        yield f"| {shape} | " + " | ".join(f"{share:.1f}" for share in found) + " |"


def real(studies: int, path: str = "") -> Iterator[str]:
    """Published scores: the share of pairs decided on the first seeds, and contradicted by the others."""
    tasks = json.loads(Path(path).read_text())
    decided_at: dict[int, list[int]] = {}
    both = won = contradicted = clearly = 0
    for task in tasks:
        for a, b in itertools.combinations([np.array(s) for s in task["scores"].values() if len(s) >= 4], 2):
            n = min(len(a), len(b))
            found = judge(a, b)
            decided_at.setdefault(n, []).append(int(found.side != 0 and found.p <= 0.03))
            if len(a) >= 5 and len(b) >= 5:
                found = judge(a[:5], b[:5])
                decided_at.setdefault(-5, []).append(int(found.side != 0 and found.p <= 0.03))
            if n >= 10:
                first, second = judge(a[:5], b[:5]), judge(a[5:10], b[5:10])
                both += 1
                if first.side and first.p <= 0.03:
                    won += 1
                    contradicted += int(second.difference * first.side < 0)
                    clearly += int(second.ahead * first.side < 0)
    yield "| seeds of each | pairs | decided, % |"
    yield "|---|---|---|"
    for n, found in sorted(decided_at.items()):
        yield f"| {n if n > 0 else 'the first 5'} | {len(found)} | {100 * np.mean(found):.0f} |"
    yield f"Of {both} pairs with ten seeds the first five decide {won} ({100 * won / max(both, 1):.0f} %)."
    yield f"The other five have the means the other way round in {contradicted}, and the seeds in {clearly}."


PARTS: dict[str, Callable[[int], Iterator[str]]] = {
    "one": one,
    "schedules": schedules,
    "power": power,
    "advice": advice,
    "plans": plans,
    "alike": alike,
}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("studies", nargs="?", type=int, default=1_000)
    parser.add_argument("--only", default="", choices=("", "real", *PARTS))
    parser.add_argument("--scores", default="", help="JSON: a list of {scores: {name: [score of a seed, …]}}")
    arguments = parser.parse_args()
    chosen = {name: part for name, part in PARTS.items() if arguments.only in ("", name)}
    if arguments.scores:
        chosen |= {"real": lambda studies: real(studies, arguments.scores)}
    for part in chosen.values():
        for text in part(arguments.studies):
            print(text)
            sys.stdout.flush()
        print()
