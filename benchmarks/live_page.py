"""The page left open while many runs are written: is the memory of server and page flat?

    python -m benchmarks.live_page                    # an hour with 50 live runs
    python -m benchmarks.live_page --minutes 10       # shorter; the growth an hour is extrapolated, and said to be
    python -m benchmarks.live_page --minutes 10 --rate 6    # as many rows as in an hour
    python -m benchmarks.live_page --log hour.txt     # the lines into a file, too

One process writes all runs, a row of eight keys a second each (--rate); the page shows ten of them. Once a minute:
memory of the server (resident, and its share of what others map too), of the whole browser, and what each took of a
core. What is judged is the second half: in the first, caches fill.

A debugger is attached at the start, in the middle and at the end alone, to ask for the page's heap: a browser keeps
every answer for one that stays (10 MiB a minute), and a page some 0.2 MiB of each that came and went.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import end_like_ctrl_c
from benchmarks.page import DRAWN, EACH, cpu_of, descendants, our_server, program_of_browser

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
    end_like_ctrl_c()
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
            until(lambda: len(list(Path(root).glob("live/*/run.json"))) >= given.runs, 120, "the runs")
            with our_server(Path(root)) as (address, pid):
                ids = sorted(path.parent.name.rpartition("-")[2] for path in (Path(root) / "live").glob("*/run.json"))[
                    : given.drawn
                ]
                view = address + EACH + "~".join(f"{one}.{place + 1}" for place, one in enumerate(ids))
                with browser_at(view, Path(root) / "profile") as browser:
                    report(browser, pid, writer.pid, given.minutes, given.log)
        finally:
            writer.kill()
            writer.wait()


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


class Browser:
    """A browser that shows one page, with nobody attached.

    Attributes:
      pids: its processes.
    """

    def __init__(self, process: subprocess.Popen[bytes], profile: Path) -> None:
        self._port = profile / "DevToolsActivePort"
        until(self._port.exists, 60, "the browser")
        self.pids = sorted({process.pid, *descendants(process.pid)})

    def ask(self, question: Callable[[Any], Any]) -> Any:
        """What a function of the page (Playwright's) returns; a debugger is attached for it and leaves."""
        from playwright.sync_api import sync_playwright

        with sync_playwright() as playwright:
            port = self._port.read_text().split()[0]
            attached = playwright.chromium.connect_over_cdp(f"http://127.0.0.1:{port}")
            try:
                return question(attached.contexts[0].pages[0])
            finally:
                attached.close()


@contextlib.contextmanager
def browser_at(view: str, profile: Path) -> Iterator[Browser]:
    """A browser that shows a view, once it has drawn three charts."""
    words = [str(program_of_browser()), "--headless=new", "--no-sandbox", "--remote-debugging-port=0"]
    words += [f"--user-data-dir={profile}", "--window-size=1440,900", view]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        browser = Browser(process, profile)
        browser.ask(lambda page: page.wait_for_function(DRAWN, arg=3, timeout=60_000).dispose())
        browser.pids = sorted({process.pid, *descendants(process.pid)})
        yield browser
    finally:
        process.kill()
        process.wait()


def until(ready: Callable[[], bool], seconds: float, what: str) -> None:
    """Wait until something is there."""
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            raise SystemExit(f"{what}: not there after {seconds:g} s")
        time.sleep(0.05)


def heap(page: Any) -> float:
    """MiB that the page's objects take after a collection."""
    wire: Any = page.context.new_cdp_session(page)
    wire.send("HeapProfiler.collectGarbage")
    used = float(wire.send("Runtime.getHeapUsage")["usedSize"]) / 2**20
    wire.detach()
    return used


def report(browser: Browser, server: int, writer: int, minutes: float, log: str | None = None) -> None:
    """A line a minute, then the growth of the second half, an hour."""

    def say(words: str) -> None:
        print(words, flush=True)
        if log is not None:
            with open(log, "a") as file:
                file.write(words + "\n")

    def of_page() -> None:
        say(f"heap of the page after a collection: {browser.ask(heap):.2f} MiB")

    rows: list[tuple[float, ...]] = []
    of_page()
    begun = before = time.monotonic()
    every = min(60.0, minutes * 60 / 10)
    spent = (cpu_of([writer]), cpu_of([server]), cpu_of(browser.pids))
    while (now := time.monotonic()) - begun < minutes * 60:
        at = (now - begun) / 60
        own = _memory(server)
        rows.append((at / 60, own["Rss"], own["Pss"], resident(browser.pids)))
        total = (cpu_of([writer]), cpu_of([server]), cpu_of(browser.pids))
        took = [100 * (new - old) / max(1.0, now - before) for new, old in zip(total, spent, strict=True)]
        before, spent = now, total
        say(
            f"{at:5.1f} min   server {own['Rss']:6.1f} MiB (pss {own['Pss']:6.1f})   browser {rows[-1][3]:6.1f}   "
            f"of a core: writer {took[0]:4.1f} %, server {took[1]:4.1f} %, browser {took[2]:4.1f} %   "
            f"load {os.getloadavg()[0]:.1f}"
        )
        if at <= minutes / 2 < at + every / 60:
            of_page()
        time.sleep(every)
    of_page()
    second = np.array(rows[len(rows) // 2 :])
    note = "" if minutes >= 60 else f" (extrapolated from the last {minutes / 2:g} minutes)"
    for place, name in ((1, "server"), (2, "server, pss"), (3, "browser")):
        slope = float(np.polyfit(second[:, 0], second[:, place], 1)[0]) if len(second) > 2 else float("nan")
        low, high = second[:, place].min(), second[:, place].max()
        say(f"{name}: {slope:+.1f} MiB an hour{note}; {low:.1f} to {high:.1f} MiB in the second half")


if __name__ == "__main__":
    main()
