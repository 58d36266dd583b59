"""Verdicts that are looked at after every seed, by the project's own `Study`: false winners, power, seeds used.

    python -m benchmarks.statistics.peeking [studies] [--only CASE]     10,000 studies: about 40 minutes of one core

Every study is a `Study` of the default plan that is looked at after each seed from 5 to 22. Beside it stands what
people do: Welch's test at 5 % after each seed. Evidence is looked at after each pair up to 60 seeds an arm.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.statistics.families import FAMILIES, truth
from rollbook.stats import DECIDES, Plan, Study, e_process, welch

PLAN = Plan(("a", "b"))
Arms = tuple[np.ndarray, np.ndarray]


def alike(family: str, difference: float) -> Callable[[np.random.Generator, int], Arms]:
    """Both arms from one family, one of them shifted."""

    def draw(rng: np.random.Generator, most: int) -> Arms:
        return FAMILIES[family](rng, (most,)) + difference, FAMILIES[family](rng, (most,))

    return draw


def unlike(name: str) -> Callable[[np.random.Generator, int], Arms]:
    """Arms of one mean and different shape."""

    def draw(rng: np.random.Generator, most: int) -> Arms:
        if name == "sd 3 against 1":
            return 3 * rng.normal(size=most), rng.normal(size=most)
        family = name.partition(" against")[0]
        return FAMILIES[family](rng, (most,)) - truth(family, "mean"), rng.normal(size=most)

    return draw


CASES = {
    **{f"{family}, alike": alike(family, 0.0) for family in FAMILIES},
    **{name: unlike(name) for name in ("sd 3 against 1", "dead against normal", "skewed against normal")},
    **{f"{family}, d = 1": alike(family, 1.0) for family in FAMILIES},
    "normal, d = 0.5": alike("normal", 0.5),
    "normal, d = 2": alike("normal", 2.0),
}


def decided_at(a: np.ndarray, b: np.ndarray, number: int) -> int | None:
    """Seeds an arm at which the plan names a winner."""
    study = Study(Plan(("a", "b"), seed=number))
    for n in range(PLAN.n_min, PLAN.n_max + 1):
        study = study.look({"a": a[:n], "b": b[:n]})
        if study.looks[-1].outcome != "open":
            return n
    return None


def row(case: str, studies: int) -> list[str]:
    rng = np.random.default_rng([5, *case.encode()])
    planned: list[int | None] = []
    repeated = 0
    evident = np.zeros(61)
    false = "d =" not in case
    for number in range(studies):
        a, b = CASES[case](rng, 60)
        planned.append(decided_at(a, b, number))
        repeated += any(welch(a[:n], b[:n]).p <= 0.05 for n in range(5, 23))
        reached = np.flatnonzero(e_process(a, b) >= DECIDES)
        if len(reached):
            evident[reached[0] + 1 :] += 1
    share = np.mean([n is not None for n in planned])
    seeds = np.mean([n or PLAN.n_max for n in planned])
    error = np.sqrt(share * (1 - share) / studies)
    early = f"{100 * evident[20] / studies:.1f}" if not false else ""
    return [
        case, f"**{100 * share:.2f}** +- {100 * error:.2f}", f"{seeds:.1f}", f"{100 * repeated / studies:.1f}", early,
        f"{100 * evident[60] / studies:.1f}",
    ]  # fmt: skip


def table(studies: int, only: str) -> Iterator[str]:
    yield "| scores | decided by the plan, % | seeds an arm | 5 % at each look, % | e >= 20 by 20 seeds, % | by 60, % |"
    yield "|---|---|---|---|---|---|"
    for case in CASES:
        if only in case:
            yield "| " + " | ".join(row(case, studies)) + " |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("studies", nargs="?", type=int, default=10_000)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    for line in table(arguments.studies, arguments.only):
        print(line)
        sys.stdout.flush()
