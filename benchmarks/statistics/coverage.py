"""Do intervals hold what they claim? The project's own intervals on six families of scores, at a nominal 95 %.

    python -m benchmarks.statistics.coverage [studies] [--only claims|one|many|shared|two|solved]

The studies of a batch share their resamples; methods shown for comparison get a quarter of the studies. With 4,000
studies the standard error is 0.35 points near 95 % and 0.5 near 87; a lowest of six families is a minimum of figures
that err so much.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from benchmarks.statistics.families import FAMILIES, truth
from rollbook.stats import (
    bca,
    clopper_pearson,
    decide,
    difference,
    expanded_percentile,
    improvement,
    jackknife,
    percentile,
    pointwise,
    probability_of_improvement,
    replicates,
    run_counts,
    seed_counts,
    student_t,
    winsorised_t,
)
from rollbook.stats.aggregates import iqm

BATCH = 250
ONE = (3, 4, 5, 6, 7, 8, 10, 15, 20, 50)
MANY = (3, 4, 5, 7, 10, 20, 50)
Ends = tuple[np.ndarray, np.ndarray]
Method = Callable[[np.ndarray, np.random.Generator], Ends]


def by_table(statistic: str) -> Method:
    """What `interval` and `band` give; NaN where the table says that nothing is honest."""

    def ends(scores_NTP: np.ndarray, rng: np.random.Generator) -> Ends:
        return pointwise(scores_NTP, statistic, rng=rng, draws=4_999 if len(scores_NTP) < 10 else 1_999)[1:3]

    return ends


def by_bootstrap(statistic: str, way: str, runs: bool = False, draws: int = 1_999) -> Method:
    """A method of which people think that it holds."""

    def ends(scores_NTP: np.ndarray, rng: np.random.Generator) -> Ends:
        n, tasks, _ = scores_NTP.shape
        counts = run_counts(n, tasks, draws, rng) if runs else seed_counts(n, draws, rng)
        drawn = replicates(statistic, scores_NTP, counts)
        if way == "percentile":
            return percentile(drawn)
        if way == "expanded":
            return expanded_percentile(drawn, n)
        function = iqm if statistic == "iqm" else lambda s: s.mean(axis=(0, 1))
        return bca(drawn, function(scores_NTP), jackknife(function, scores_NTP))

    return ends


def t_of_means(scores_NTP: np.ndarray, rng: np.random.Generator) -> Ends:
    return student_t(scores_NTP.mean(axis=1))


def t_of_iqm(scores_NTP: np.ndarray, rng: np.random.Generator) -> Ends:
    return winsorised_t(scores_NTP)


ONE_TASK: dict[str, tuple[str, Method]] = {
    "IQM, **by the table**": ("iqm", by_table("iqm")),
    "mean, **by the table**": ("mean", by_table("mean")),
    "median, **by the table**": ("median", by_table("median")),
    "IQM, percentile (rliable)": ("iqm", by_bootstrap("iqm", "percentile")),
    "IQM, BCa": ("iqm", by_bootstrap("iqm", "bca")),
    "mean, Student's t": ("mean", t_of_means),
    "mean, percentile": ("mean", by_bootstrap("mean", "percentile")),
    "mean, BCa": ("mean", by_bootstrap("mean", "bca")),
    "median, percentile": ("median", by_bootstrap("median", "percentile")),
}
SEVERAL_TASKS: dict[str, tuple[str, Method]] = {
    "IQM, **by the table**": ("iqm", by_table("iqm")),
    "IQM, percentile, stratified (rliable)": ("iqm", by_bootstrap("iqm", "percentile", runs=True)),
    "mean, **by the table**": ("mean", by_table("mean")),
}


def covered(
    method: Method, family: str, n: int, tasks: int, studies: int, true: float, shared: float = 0.0
) -> tuple[float, float]:
    """Share of studies whose interval holds the truth, and the median width; NaN without an interval."""
    rng = np.random.default_rng([n, tasks, studies, *family.encode()])
    shift = offsets(tasks)
    hits, widths = [], []
    for _ in range(max(1, studies // BATCH)):
        scores = FAMILIES[family](rng, (n, tasks, BATCH))
        if shared:  # of the variance of a run, this part is decided by its seed on all tasks
            scores = np.sqrt(1 - shared) * scores + np.sqrt(shared) * rng.normal(size=(n, 1, BATCH))
        scores = scores + np.array(shift)[:, None]
        low, high = method(scores, rng)
        # A study in which all seeds are equal has no interval, and cannot have held the truth.
        hits.append((low - 1e-9 <= true) & (true <= high + 1e-9))
        widths.append(high - low)
    width = np.concatenate(widths)
    if np.isnan(width).all():
        return np.nan, np.nan
    return float(np.mean(np.concatenate(hits))), float(np.nanmedian(width))


def offsets(tasks: int) -> tuple[float, ...]:
    """Tasks differ by up to three standard deviations."""
    return (0.0,) if tasks == 1 else tuple(np.linspace(-1.5, 1.5, tasks).tolist())


def line(name: str, statistic: str, method: Method, seeds: Sequence[int], tasks: int, studies: int) -> str:
    cells = []
    for n in seeds:
        found = {
            family: covered(method, family, n, tasks, studies, truth(family, statistic, offsets(tasks)))
            for family in FAMILIES
        }
        if np.isnan(found["normal"][0]):
            cells.append("none")
            continue
        lowest = min(found, key=lambda family: found[family][0])
        share, width = found["normal"]
        cells.append(f"{100 * share:.0f} / {100 * found[lowest][0]:.1f} {lowest[0]} ({width:.2g})")
    return f"| {name} | " + " | ".join(cells) + " |"


def header(first: str, seeds: Sequence[int]) -> Iterator[str]:
    yield f"| {first} | " + " | ".join(map(str, seeds)) + " |"
    yield "|---" * (len(seeds) + 1) + "|"


def one_task(studies: int) -> Iterator[str]:
    yield from header("one task; n =", ONE)
    for name, (statistic, method) in ONE_TASK.items():
        yield line(name, statistic, method, ONE, 1, studies if "**" in name else studies // 4)


def several_tasks(studies: int) -> Iterator[str]:
    yield from header("tasks, method; n =", MANY)
    for tasks in (5, 10, 26, 2, 3):
        for name, (statistic, method) in SEVERAL_TASKS.items():
            if "**" in name:
                yield line(f"{tasks}, {name}", statistic, method, MANY, tasks, studies)
            elif tasks in (5, 10):
                yield line(f"{tasks}, {name}", statistic, method, MANY, tasks, studies // 2)


def shared_luck(studies: int) -> Iterator[str]:
    seeds = (3, 5, 10, 20)
    true = truth("normal", "iqm", offsets(10))
    yield from header("10 tasks, shared part, method; n =", seeds)
    for shared in (0.0, 0.1, 0.3, 0.6):
        for name in ("IQM, **by the table**", "IQM, percentile, stratified (rliable)"):
            cells = [covered(SEVERAL_TASKS[name][1], "normal", n, 10, studies, true, shared) for n in seeds]
            yield f"| {shared}, {name} | " + " | ".join(f"{100 * c:.1f} ({w:.2g})" for c, w in cells) + " |"


def solved(studies: int) -> Iterator[str]:
    """Exact, no simulation: every number of solving seeds and its probability."""
    seeds = (3, 5, 10, 20, 50)
    rates = np.linspace(0.02, 0.98, 97)
    yield from header("seeds that solve the task; n =", seeds)
    cells = []
    for n in seeds:
        hits = np.arange(n + 1)
        low, high = clopper_pearson(hits, n)
        ways = np.cumprod(np.append(1.0, (n - hits[:-1]) / hits[1:]))[:, None]
        chance = ways * rates ** hits[:, None] * (1 - rates) ** (n - hits[:, None])
        cover = (chance * ((low[:, None] <= rates) & (rates <= high[:, None]))).sum(axis=0)
        width = (chance * (high - low)[:, None]).sum(axis=0).mean()
        cells.append(f"{100 * cover.min():.1f} ({width:.2f})")
    yield "| Clopper-Pearson, lowest over all rates | " + " | ".join(cells) + " |"


def two_groups(studies: int) -> Iterator[str]:
    """Differences of two groups of one family, of which one lies higher by a standard deviation."""
    seeds = (5, 7, 10, 20)
    yield from header("two groups, lowest family; n =", seeds)
    rng_of = np.random.default_rng
    for name, tasks in (("mean", 1), ("IQM", 1), ("IQM", 10), ("improvement", 1), ("improvement", 10)):
        cells = []
        for n in seeds:
            held = {}
            for family in FAMILIES:
                rng = rng_of([n, tasks, *family.encode()])
                wide = FAMILIES[family](rng, (2, 40_000))
                true = probability_of_improvement(wide[0] + 1, wide[1]) if name == "improvement" else 1.0
                hits = 0
                for _ in range(studies):
                    a, b = FAMILIES[family](rng, (2, n, tasks)) + np.array(offsets(tasks))
                    if name == "improvement":
                        found = improvement(a + 1, b)
                    else:
                        found = difference(a + 1, b, name.lower(), rng=rng, draws=1_999)
                    # Groups that do not overlap have no interval; that is said, and is no miss.
                    hits += found.low is None or (found.low - 1e-9 <= true <= found.high + 1e-9)
                held[family] = hits / studies
            lowest = min(held, key=lambda family: held[family])
            cells.append(f"{100 * held['normal']:.0f} / {100 * held[lowest]:.1f} {lowest[0]}")
        yield f"| {name}, {tasks} task{'s' * (tasks > 1)} | " + " | ".join(cells) + " |"


def claims() -> Iterator[str]:
    """The decision table's claims as they stand in the code."""
    yield "| statistic | tasks from | seeds from | method | claims at worst, % |"
    yield "|---|---|---|---|---|"
    from rollbook.stats import DECISIONS

    for row in DECISIONS:
        assert decide(row.statistic, row.seeds, row.tasks) == row
        claim = "-" if row.claim is None else f"{100 * row.claim:g}"
        yield f"| {row.statistic} | {row.tasks} | {row.seeds} | {row.method} | {claim} |"


PARTS: dict[str, Callable[[int], Iterator[str]]] = {
    "claims": lambda studies: claims(),
    "one": one_task,
    "many": several_tasks,
    "shared": shared_luck,
    "two": lambda studies: two_groups(studies // 4),
    "solved": solved,
}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("studies", nargs="?", type=int, default=4_000)
    parser.add_argument("--only", default="", choices=("", *PARTS))
    arguments = parser.parse_args()
    for name, part in PARTS.items():
        if arguments.only in ("", name):
            for text in part(arguments.studies):
                print(text)
                sys.stdout.flush()
            print()
