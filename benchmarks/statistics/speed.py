"""What the bootstrap of the IQM costs, and how soon there is a first answer; beside rliable where it is installed.

    python -m benchmarks.statistics.speed [--quick]

In an environment with `rliable "pandas<3" "arch<8"` both are measured in one run, on one thread. rliable's whole job
would take a quarter of an hour: its time for one replicate at one point is measured on 10 points and 100 draws.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy is imported

import argparse
import time
from importlib.util import find_spec

import numpy as np

from rollbook.stats import percentile, refined_iqm, replicates, run_counts

JOBS = (
    # algorithms, seeds, tasks, points, draws
    (10, 50, 57, 200, 2_000),
    (10, 10, 10, 200, 2_000),
    (10, 5, 1, 200, 2_000),
)


def curves(rng: np.random.Generator, seeds: int, tasks: int, points: int) -> np.ndarray:
    walk = rng.normal(size=(seeds, tasks, points)).cumsum(axis=2) / np.sqrt(points)
    return walk + rng.normal(size=(seeds, tasks, 1))


def own(algorithms: int, seeds: int, tasks: int, points: int, draws: int) -> float:
    """CPU seconds of the whole job, percentiles included."""
    rng, spent = np.random.default_rng(1), 0.0
    for _ in range(algorithms):
        given = curves(rng, seeds, tasks, points)
        begin = time.process_time()
        list(refined_iqm(given, rng=rng, stages=(draws,)))
        spent += time.process_time() - begin
    return spent


def rliables(algorithms: int, seeds: int, tasks: int, points: int, draws: int) -> float:
    """CPU seconds that the whole job would take, from 10 points and 100 draws."""
    from rliable import library, metrics

    def at_points(scores: np.ndarray) -> np.ndarray:
        return np.array([metrics.aggregate_iqm(scores[..., p]) for p in range(scores.shape[-1])])

    scores = {"a": curves(np.random.default_rng(1), seeds, tasks, 10)}
    library.get_interval_estimates(scores, at_points, reps=2)
    begin = time.process_time()
    library.get_interval_estimates(scores, at_points, reps=100)
    return (time.process_time() - begin) / 100 / 10 * algorithms * points * draws


def first_answer() -> tuple[float, float]:
    """Wall and CPU seconds until a 10 x 10 x 10 x 200 job can be drawn, marked as preliminary."""
    rng = np.random.default_rng(2)
    given = [curves(rng, 10, 10, 200) for _ in range(10)]
    wall, cpu = time.perf_counter(), time.process_time()
    found = [next(refined_iqm(each, rng=rng)) for each in given]
    assert all(answer.preliminary and answer.draws == 200 for answer in found)
    return time.perf_counter() - wall, time.process_time() - cpu


def exactness() -> float:
    """Largest difference from sorting each resample in float64, in standard deviations of the scores."""
    rng, worst = np.random.default_rng(3), 0.0
    for _ in range(100):
        n, tasks = int(rng.integers(2, 60)), int(rng.integers(2, 30))
        scores = rng.normal(size=(n, tasks, 1))
        scores = np.round(scores) if rng.random() < 0.3 else np.minimum(scores, 0.2)
        counts = run_counts(n, tasks, 20, rng)
        sorted_runs = np.stack([np.sort(np.repeat(scores.ravel(), row)) for row in counts])
        cut = n * tasks // 4
        plain = sorted_runs[:, cut : n * tasks - cut].mean(axis=1)
        worst = max(worst, float(np.abs(replicates("iqm", scores, counts)[:, 0] - plain).max()))
        percentile(plain)
    return worst


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="one algorithm instead of ten, scaled up")
    quick = parser.parse_args().quick
    beside = find_spec("rliable") is not None
    print("| algorithms x seeds x tasks x points x draws | rollbook, CPU s | rliable, CPU s | ratio |")
    print("|---|---|---|---|")
    for algorithms, *job in JOBS:
        mine = own(1, *job) * algorithms if quick else own(algorithms, *job)
        theirs = rliables(algorithms, *job) if beside else float("nan")
        shape = " x ".join(f"{value:,}" for value in (algorithms, *job))
        print(f"| {shape} | {mine:.2f} | {theirs:,.0f} | 1/{theirs / mine:,.0f} |", flush=True)
    wall, cpu = min(first_answer() for _ in range(5))
    print(f"\nFirst answer of 10 x 10 x 10 x 200 from 200 draws: {wall:.2f} s of wall time, {cpu:.2f} s of CPU.")
    print(f"Largest difference from sorting in float64: {exactness():.1e}.")
