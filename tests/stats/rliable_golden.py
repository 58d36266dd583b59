"""What rliable says of some random tables: run where it is installed, this file writes the one beside it.

    pip install rliable "pandas<3" "arch<8"

The tables come from a seeded generator, so that only results are stored. rliable 1.2.0.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

GOLDEN = Path(__file__).with_suffix(".json")
CASES = 40
THRESHOLDS = [-1.0, -0.25, 0.0, 0.5, 1.0, 2.0]


def tables(case: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores of two algorithms, [runs, tasks]: other numbers of runs, ties in every third case."""
    rng = np.random.default_rng([77, case])
    tasks = int(rng.integers(1, 30))
    x, y = (rng.normal(0.5, 1.0, (int(rng.integers(1, 25)), tasks)) for _ in range(2))
    return (x.round(1), y.round(1)) if case % 3 == 0 else (x, y)


def of_rliable(x: np.ndarray, y: np.ndarray) -> dict[str, object]:
    from rliable import library, metrics

    return {
        "mean": metrics.aggregate_mean(x),
        "median_of_task_means": metrics.aggregate_median(x),
        "iqm": metrics.aggregate_iqm(x),
        "optimality_gap": metrics.aggregate_optimality_gap(x),
        "probability_of_improvement": metrics.probability_of_improvement(x, y),
        "profile": [float(library.run_score_deviation(x, tau)) for tau in THRESHOLDS],
        "profile_of_task_means": [float(library.mean_score_deviation(x, tau)) for tau in THRESHOLDS],
    }


def of_rollbook(x: np.ndarray, y: np.ndarray) -> dict[str, object]:
    from rollbook import stats

    return {
        "mean": stats.mean(x),
        "median_of_task_means": stats.median_of_task_means(x),
        "iqm": stats.iqm(x),
        "optimality_gap": stats.optimality_gap(x),
        "probability_of_improvement": stats.probability_of_improvement(x, y),
        "profile": stats.performance_profile(x, THRESHOLDS).tolist(),
        "profile_of_task_means": stats.profile_of_task_means(x, THRESHOLDS).tolist(),
    }


if __name__ == "__main__":
    found = [
        {k: v if isinstance(v, list) else float(v) for k, v in of_rliable(*tables(c)).items()} for c in range(CASES)
    ]
    GOLDEN.write_text(json.dumps(found, indent=None, separators=(",", ":")).replace("},{", "},\n{") + "\n")
    print(f"{CASES} cases written to {GOLDEN.name}")
