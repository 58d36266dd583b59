"""Many runs: curves with IQM over 1,000 runs of 20,000 points, and a list of 10,000 runs.

    python -m benchmarks.many_runs            # both; --runs and --listed make it smaller

The goals are 5 s and 300 ms (warm) on two cores. Runs are copies of a few recorded ones, each with an id of its own.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

import rollbook

ROWS = 20_000


def recorded(root: Path, n: int, rows: int) -> list[Path]:
    """A few runs with that many rows of one metric."""
    folders = []
    for seed in range(n):
        rng = np.random.default_rng(seed)
        values = np.cumsum(rng.normal(size=rows)) / 30
        with rollbook.init(
            "study", "ppo", seed=seed, dir=root, sinks=[], keeper="inline", config={"algo": f"a{seed % 4}", "lr": 0.1}
        ) as run:
            run.log_many({"test/return": values}, env_step=np.arange(rows) * 10)
        folders.append(Path(run.folder))
    return folders


def copies(root: Path, sources: list[Path], n: int, *, data: bool) -> None:
    """n runs below `root`, each with its own id, seed and configuration."""
    for place in range(n):
        source = sources[place % len(sources)]
        to = root / "study" / f"ppo-copy{place:05d}"
        if data:
            shutil.copytree(source, to)
        else:
            to.mkdir(parents=True)
        about = json.loads((source / "run.json").read_text())
        about |= {"id": f"copy{place:05d}", "seed": place % 10, "config": {"algo": f"a{place % 4}", "lr": place / 1e4}}
        (to / "run.json").write_text(json.dumps(about))


def seconds(work: object, times: int = 1) -> float:
    """The best of some tries."""
    best = float("inf")
    for _ in range(times):
        begun = time.perf_counter()
        work()  # type: ignore[operator]
        best = min(best, time.perf_counter() - begun)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--listed", type=int, default=10_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        sources = recorded(root / "sources", 4, ROWS)
        copies(root / "many", sources, asked.runs, data=True)
        runs = rollbook.open(root / "many")
        begun, cpu = time.perf_counter(), time.process_time()
        curves = runs.curves("test/return", by="config.algo")
        took, spent = time.perf_counter() - begun, time.process_time() - cpu
        print(
            f"curves and IQM of {len(runs):,} runs x {ROWS:,} points: {took:.2f} s (CPU {spent:.2f} s); "
            f"{len(curves.groups)} groups, n = {int(curves.groups[0].n_P.max())}"
        )
        copies(root / "listed", sources, asked.listed, data=False)
        rollbook.open(root / "listed")

        def work() -> None:
            listed = rollbook.open(root / "listed")
            chosen = listed.where("config.lr < 0.5 and status = 'finished'")
            for group in chosen.group_by("config.algo").values():
                group.newest(50)

        cpu = time.process_time()
        best = seconds(work, 5)
        print(
            f"list, filter, group and sort {asked.listed:,} runs, warm: {best * 1000:.0f} ms "
            f"(CPU {(time.process_time() - cpu) / 5 * 1000:.0f} ms)"
        )


if __name__ == "__main__":
    main()
