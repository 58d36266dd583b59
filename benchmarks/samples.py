"""Five million samples: memory and cost per batch must stay flat from the first batch to the last.

python -m benchmarks.samples                    5 million items in batches of 512, about a minute
python -m benchmarks.samples --items 1000000    fewer
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import rollbook
from benchmarks import harness
from benchmarks.lines import Context, Line

BATCH, ITEMS = 512, 5_000_000


def resident() -> float:
    """Memory of this process in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def measure(items: int, share: float, exact: int | str, tell: bool) -> dict[str, Any]:
    """Log the items in batches; figures per tenth of them, printed as they come if `tell`."""
    rng = np.random.default_rng(0)
    tenths: list[dict[str, float]] = []
    with (
        tempfile.TemporaryDirectory(prefix="rollbook-bench-") as folder,
        rollbook.init("bench", dir=folder, sinks=[], keeper="inline") as run,
    ):
        from rollbook.capture.samples.recorder import SampleLog

        log = SampleLog(run, exact=exact)
        batches = items // BATCH
        fresh = wrong = 0
        for tenth in range(10):
            took = []
            for _ in range(batches // 10):
                again = rng.random(BATCH) < share
                numbers = np.where(again, rng.integers(0, fresh + 1, BATCH), np.arange(fresh + 1, fresh + BATCH + 1))
                fresh += BATCH
                texts = [f"C1=CC=C(C=C1)N{number}" for number in numbers]
                reward = rng.random(BATCH)
                start = time.perf_counter()
                logged = log.log_samples(run, texts, reward=reward, source="live")
                took.append(time.perf_counter() - start)
                wrong += sum(not new for new, old in zip(logged.new, again, strict=True) if not old)
            now = {
                "items": (tenth + 1) * batches // 10 * BATCH,
                "us_per_item": 1e6 * sum(took) / len(took) / BATCH,
                "median_us_per_item": 1e6 * sorted(took)[len(took) // 2] / BATCH,
                "slowest_ms": 1e3 * max(took),
                "memory_mib": resident(),
                "wrong": wrong,
            }
            tenths.append(now)
            if tell:
                print(
                    f"{now['items']:12,d}{now['us_per_item']:10.2f}{now['slowest_ms']:20.2f}{now['memory_mib']:14.1f}"
                    f"{wrong:22d}",
                    flush=True,
                )
        return {"tenths": tenths, "error": log.seen.error}


def rows(context: Context) -> Iterator[Line]:
    """Lines for the table of numbers, measured in a process of its own."""
    words = ["-m", "benchmarks.samples", "--json", f"--items={context.size(ITEMS)}"]
    tenths = json.loads(harness.python(context.root, *words))["tenths"]
    # Beyond the first million a filter stands behind the set: the second million pays for both, as all later ones do.
    growth = tenths[-1]["memory_mib"] - tenths[3]["memory_mib"]
    yield Line("S1", "5 million samples, memory over the last three", growth, "MiB", goal=10)
    first, settled, last = (tenths[n]["median_us_per_item"] for n in (0, 3, -1))
    what, note = "cost of an item, the last half million", f"{first:.1f} us in the first half million"
    yield Line("S1", what, last, "us", "its own second million", settled, 1.5, note=note)


def main() -> None:
    """Print one line per tenth of the items."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.samples")
    parser.add_argument("--items", type=int, default=ITEMS)
    parser.add_argument("--seen", type=float, default=0.2, help="share of items that come again")
    parser.add_argument("--always", action="store_true", help="tell all items apart exactly")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if not given.json:
        columns = f"{'items':>12s}{'us/item':>10s}{'slowest batch, ms':>20s}{'memory, MiB':>14s}"
        print(f"{columns}{'new taken for known':>22s}")
    found = measure(given.items, given.seen, "always" if given.always else 1_000_000, not given.json)
    if given.json:
        print(json.dumps(found))
        return
    tenths = found["tenths"]
    first, last = tenths[0]["median_us_per_item"], tenths[-1]["median_us_per_item"]
    print(
        f"median: {first:.2f} us an item at first, {last:.2f} us at last (x {last / first:.2f}); memory grew by "
        f"{tenths[-1]['memory_mib'] - tenths[3]['memory_mib']:.1f} MiB over the last six tenths; stated error "
        f"{found['error']:.1e}"
    )


if __name__ == "__main__":
    main()
