"""Five million samples: memory and cost per batch must stay flat from the first batch to the last.

python -m benchmarks.samples                    5 million items in batches of 512, about a minute
python -m benchmarks.samples --items 1000000    fewer
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import rollbook

BATCH = 512


def resident() -> float:
    """Memory of this process in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> None:
    """Print one line per tenth of the items."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.samples")
    parser.add_argument("--items", type=int, default=5_000_000)
    parser.add_argument("--seen", type=float, default=0.2, help="share of items that come again")
    parser.add_argument("--always", action="store_true", help="tell all items apart exactly")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    with (
        tempfile.TemporaryDirectory(prefix="rollbook-bench-") as folder,
        rollbook.init("bench", dir=folder, sinks=[], keeper="inline") as run,
    ):
        from rollbook.capture.samples import SampleLog

        log = SampleLog(run, exact="always" if given.always else 1_000_000)
        batches = given.items // BATCH
        fresh = wrong = 0
        memory = [resident()]
        costs: list[list[float]] = []
        print(
            f"{'items':>12s}{'us/item':>10s}{'slowest batch, ms':>20s}{'memory, MiB':>14s}{'new taken for known':>22s}"
        )
        for tenth in range(10):
            took = []
            for _ in range(batches // 10):
                again = rng.random(BATCH) < given.seen
                numbers = np.where(again, rng.integers(0, fresh + 1, BATCH), np.arange(fresh + 1, fresh + BATCH + 1))
                fresh += BATCH
                items = [f"C1=CC=C(C=C1)N{number}" for number in numbers]
                reward = rng.random(BATCH)
                start = time.perf_counter()
                logged = log.log_samples(run, items, reward=reward, source="live")
                took.append(time.perf_counter() - start)
                wrong += sum(not new for new, old in zip(logged.new, again, strict=True) if not old)
            costs.append(took)
            memory.append(resident())
            done, each, slowest = (tenth + 1) * batches // 10 * BATCH, sum(took) / len(took) / BATCH, max(took)
            print(
                f"{done:12,d}{1e6 * each:10.2f}{1e3 * slowest:20.2f}{memory[-1]:14.1f}{wrong:22d}",
                flush=True,
            )
        first, last = (sorted(part)[len(part) // 2] for part in (costs[0], costs[-1]))
        print(
            f"median batch: {1e3 * first:.2f} ms at first, {1e3 * last:.2f} ms at last (x {last / first:.2f}); memory "
            f"grew by {memory[-1] - memory[3]:.1f} MiB over the last seven tenths; stated error {log.seen.error:.1e}"
        )


if __name__ == "__main__":
    main()
