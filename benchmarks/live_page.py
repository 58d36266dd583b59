"""The page left open while many runs are written: is the memory of server and page flat?

    python -m benchmarks.live_page                    # an hour with 50 live runs
    python -m benchmarks.live_page --minutes 10       # shorter; the growth an hour is extrapolated, and said to be

One process writes all runs, a row of eight keys a second each; the page shows ten of them. Once a minute: resident
memory of the server and of the whole browser, and the page's heap after a collection. What is judged is the second
half: in the first, caches fill.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.page import DRAWN, EACH, Tab, our_server, tab_of, until

_WRITES = """
import math, random, sys, time
import rollbook
root, many, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
runs = [rollbook.init("live", "ppo", seed=n, config={"lr": 1e-3 * (1 + n % 5)}, dir=root, sinks=[], keeper="inline",
                      total={"env_step": int(seconds) * 100}) for n in range(many)]
begun, step = time.monotonic(), 0
while time.monotonic() - begun < seconds:
    for n, run in enumerate(runs):
        values = {f"train/{name}": math.sin(step / 40 + n) + random.random() for name in "abcdefgh"}
        run.log(values, env_step=step * 100)
    step += 1
    time.sleep(max(0.0, begun + step - time.monotonic()))
for run in runs:
    run.finish()
"""


def main() -> None:
    """Write, look, print a line a minute and the growth at the end."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live_page")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--drawn", type=int, default=10)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rollbook-live-") as root:
        words = [sys.executable, "-c", _WRITES, root, str(given.runs), str(given.minutes * 60 + 30)]
        writer = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _wait_for(Path(root) / "live", given.runs)
            with our_server(Path(root)) as (address, pid), tab_of() as tab:
                ids = sorted(path.name.rpartition("-")[2] for path in (Path(root) / "live").iterdir())[: given.drawn]
                tab.page.goto(address + EACH + "~".join(f"{one}.{place + 1}" for place, one in enumerate(ids)))
                until(tab, DRAWN, 3, 60)
                tab.stop_counting()
                report(tab, pid, given.minutes)
        finally:
            writer.kill()
            writer.wait()


def _wait_for(folder: Path, many: int) -> None:
    for _ in range(600):
        with contextlib.suppress(OSError):
            if len(list(folder.iterdir())) >= many:
                return
        time.sleep(0.2)


def resident(pids: list[int]) -> float:
    """MiB of resident memory of some processes together."""
    total = 0.0
    for pid in pids:
        with contextlib.suppress(OSError, IndexError):
            total += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 2**20
    return total


def heap(tab: Tab) -> float:
    """MiB that the page's objects take after a collection."""
    wire: Any = tab.page.context.new_cdp_session(tab.page)
    wire.send("HeapProfiler.collectGarbage")
    used = float(wire.send("Runtime.getHeapUsage")["usedSize"]) / 2**20
    wire.detach()
    return used


def report(tab: Tab, pid: int, minutes: float) -> None:
    """A line a minute, then the growth of the second half, an hour."""
    rows: list[tuple[float, float, float, float]] = []
    begun = time.monotonic()
    every = min(60.0, minutes * 60 / 10)
    while (at := time.monotonic() - begun) < minutes * 60:
        rows.append((at / 3600, resident([pid]), resident(tab.pids), heap(tab)))
        print(f"{at / 60:5.1f} min   server {rows[-1][1]:6.1f} MiB   browser {rows[-1][2]:6.1f} MiB   "
              f"page {rows[-1][3]:5.2f} MiB", flush=True)  # fmt: skip
        tab.page.wait_for_timeout(every * 1e3)
    second = np.array(rows[len(rows) // 2 :])
    for place, name in ((1, "server"), (2, "browser"), (3, "page")):
        slope = float(np.polyfit(second[:, 0], second[:, place], 1)[0]) if len(second) > 2 else float("nan")
        note = "" if minutes >= 60 else f" (extrapolated from the last {minutes / 2:g} minutes)"
        print(f"{name}: {slope:+.1f} MiB an hour{note}")


if __name__ == "__main__":
    main()
