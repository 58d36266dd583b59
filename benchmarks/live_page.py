"""The page left open while many runs are written: is the memory of server and page flat?

    python -m benchmarks.live_page                    # an hour with 50 live runs
    python -m benchmarks.live_page --minutes 10       # shorter; the growth an hour is extrapolated, and said to be
    python -m benchmarks.live_page --minutes 10 --rate 6    # as many rows as in an hour
    python -m benchmarks.live_page --log hour.txt     # the lines into a file, too

One process writes all runs, a row of eight keys a second each (--rate); the page shows ten of them. Once a minute:
memory of the server (resident, and its share of what others map too), of the whole browser, the page's heap after a
collection, and what each took of a core. What is judged is the second half: in the first, caches fill.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.page import DRAWN, EACH, Tab, cpu_of, our_server, tab_of, until

_WRITES = """
import math, random, sys, time
import rollbook
root, many, seconds, rate = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
runs = [rollbook.init("live", "ppo", seed=n, config={"lr": 1e-3 * (1 + n % 5)}, dir=root, sinks=[], keeper="inline",
                      total={"env_step": int(seconds * rate) * 100}) for n in range(many)]
begun, step = time.monotonic(), 0
while time.monotonic() - begun < seconds:
    for n, run in enumerate(runs):
        values = {f"train/{name}": math.sin(step / 40 + n) + random.random() for name in "abcdefgh"}
        run.log(values, env_step=step * 100)
    step += 1
    time.sleep(max(0.0, begun + step / rate - time.monotonic()))
for run in runs:
    run.finish()
"""


def main() -> None:
    """Write, look, print a line a minute and the growth at the end."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live_page")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=1.0, help="rows of each run a second")
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--drawn", type=int, default=10)
    parser.add_argument("--log", help="a file that takes the lines, too")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rollbook-live-") as root:
        words = [sys.executable, "-c", _WRITES, root, str(given.runs), str(given.minutes * 60 + 30), str(given.rate)]
        writer = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _wait_for(Path(root) / "live", given.runs)
            with our_server(Path(root)) as (address, pid), tab_of() as tab:
                ids = sorted(path.parent.name.rpartition("-")[2] for path in (Path(root) / "live").glob("*/run.json"))[
                    : given.drawn
                ]
                tab.page.goto(address + EACH + "~".join(f"{one}.{place + 1}" for place, one in enumerate(ids)))
                until(tab, DRAWN, 3, 60)
                tab.stop_counting()
                report(tab, pid, writer.pid, given.minutes, given.log)
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
    return sum(_memory(pid)["Rss"] for pid in pids)


def _memory(pid: int) -> dict[str, float]:
    """MiB of a process: Rss, and Pss, in which a page that several processes map counts in parts."""
    found = {"Rss": 0.0, "Pss": 0.0}
    with contextlib.suppress(OSError):
        for row in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
            name, size, *_ = row.split()
            if name[:-1] in found:
                found[name[:-1]] = int(size) / 1024
    return found


def heap(tab: Tab) -> float:
    """MiB that the page's objects take after a collection."""
    wire: Any = tab.page.context.new_cdp_session(tab.page)
    wire.send("HeapProfiler.collectGarbage")
    used = float(wire.send("Runtime.getHeapUsage")["usedSize"]) / 2**20
    wire.detach()
    return used


def report(tab: Tab, server: int, writer: int, minutes: float, log: str | None = None) -> None:
    """A line a minute, then the growth of the second half, an hour."""

    def say(words: str) -> None:
        print(words, flush=True)
        if log is not None:
            with open(log, "a") as file:
                file.write(words + "\n")

    rows: list[tuple[float, ...]] = []
    begun = before = time.monotonic()
    every = min(60.0, minutes * 60 / 10)
    spent = (cpu_of([writer]), cpu_of([server]), tab.cpu())
    while (now := time.monotonic()) - begun < minutes * 60:
        at = (now - begun) / 60
        own = _memory(server)
        rows.append((at / 60, own["Rss"], own["Pss"], resident(tab.pids), heap(tab)))
        total = (cpu_of([writer]), cpu_of([server]), tab.cpu())
        took = [100 * (new - old) / max(0.1, now - before) for new, old in zip(total, spent, strict=True)]
        before, spent = now, total
        say(f"{at:5.1f} min   server {own['Rss']:6.1f} MiB (pss {own['Pss']:6.1f})   browser {rows[-1][3]:6.1f}   "
            f"page {rows[-1][4]:5.2f}   of a core: writer {took[0]:4.1f} %, server {took[1]:4.1f} %, "
            f"browser {took[2]:4.1f} %   load {os.getloadavg()[0]:.1f}")  # fmt: skip
        tab.page.wait_for_timeout(every * 1e3)
    second = np.array(rows[len(rows) // 2 :])
    note = "" if minutes >= 60 else f" (extrapolated from the last {minutes / 2:g} minutes)"
    for place, name in ((1, "server"), (2, "server, pss"), (3, "browser"), (4, "page")):
        slope = float(np.polyfit(second[:, 0], second[:, place], 1)[0]) if len(second) > 2 else float("nan")
        low, high = second[:, place].min(), second[:, place].max()
        say(f"{name}: {slope:+.1f} MiB an hour{note}; {low:.1f} to {high:.1f} MiB in the second half")


if __name__ == "__main__":
    main()
