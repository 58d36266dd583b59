"""16 ms a frame: what a hand on the page costs, frame by frame, in a real browser.

    python -m benchmarks.frames                      # both sizes, each gesture 90 frames (some minutes)
    python -m benchmarks.frames --scenes small       # 10 runs x 20 keys x 10,000 rows
    python -m benchmarks.frames --scenes large       # 300 runs x 3,000 keys
    python -m benchmarks.frames --scenes large --hot # and the functions that take most of the processor
    python -m benchmarks.frames --root X             # keeps the runs there for the next time

Two of the runs are written to all the while. For each gesture: the gaps between frames (wall time, so only a quiet
machine tells), and what the main thread of the page computed for each frame (processor time, which other processes
hardly change): script, style, layout and paint together; how much of it was script; the longest task. Needs what
`make test-page` installs.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import rollbook
from benchmarks.harness import end_like_ctrl_c
from benchmarks.page import DRAWN, EACH, our_server, tab_of, until

FRAMES = 90
LONG = 50.0
"""ms: what browsers call a long task."""


@dataclass(frozen=True)
class Scene:
    """Runs that the page shows."""

    runs: int
    keys: int
    rows: int


SCENES = {"small": Scene(10, 20, 10_000), "large": Scene(300, 3_000, 40)}
_LIVE = 2
_WRITES = """
import math, random, sys, time
import rollbook
root, many, keys = sys.argv[1], int(sys.argv[2]), [f"train/k{n:04d}" for n in range(int(sys.argv[3]))]
runs = [rollbook.init("bench", "live", seed=n, dir=root, sinks=[], keeper="inline") for n in range(many)]
step = 0
while True:
    for n, run in enumerate(runs):
        run.log({key: math.sin(step / 40 + n) + random.random() for key in keys}, env_step=step * 10)
    step += 1
    time.sleep(0.25)
"""

_HAND = """
const next = () => new Promise(requestAnimationFrame);
const spot = document.querySelector('.slot.big .plotarea') ?? document.querySelector('.plotarea');
const box = spot.getBoundingClientRect();
const say = (kind, x, y, more) => spot.dispatchEvent(new PointerEvent(kind, {clientX: box.left + x * box.width,
    clientY: box.top + y * box.height, bubbles: true, cancelable: true, pointerId: 1, pointerType: 'mouse', ...more}));
const wheel = deltaY => spot.dispatchEvent(new WheelEvent('wheel', {clientX: box.left + box.width / 2,
    clientY: box.top + box.height / 2, bubbles: true, cancelable: true, deltaY, ctrlKey: true}));
const gaps = [];
let last = await next();
const frame = async act => { act(); const now = await next(); gaps.push(now - last); last = now; };
"""
GESTURES = {
    "at rest, live": "for (let n = 0; n < frames; n++) await frame(() => 0);",
    "cursor over a chart": """say('pointerenter', 0.1, 0.5);
        for (let n = 0; n < frames; n++)
            await frame(() => say('pointermove', 0.1 + 0.8 * Math.abs(Math.sin(n / 20)), 0.5));
        say('pointerleave', 0.5, 0.5);""",
    "zoom": "for (let n = 0; n < frames; n++) await frame(() => wheel(n % 30 < 15 ? -12 : 12));",
    "pan": """spot.setPointerCapture = () => undefined;
        say('pointerdown', 0.5, 0.5, {shiftKey: true, button: 0, buttons: 1});
        for (let n = 0; n < frames; n++)
            await frame(() => say('pointermove', 0.5 + (n % 60 < 30 ? n % 30 : 30 - n % 30) / 150, 0.5,
                                  {shiftKey: true, buttons: 1}));
        say('pointerup', 0.5, 0.5, {shiftKey: true});""",
    "scroll of charts": """const pane = document.querySelector('#charts > .scroll');
        for (let n = 0; n < frames; n++) await frame(() => { pane.scrollTop += n % 60 < 40 ? 60 : -60; });
        pane.scrollTop = 0;""",
    "scroll of the table": """const grid = document.querySelector('.grid.runs');
        for (let n = 0; n < frames; n++) await frame(() => { grid.scrollTop += n % 40 < 20 ? 120 : -120; });
        grid.scrollTop = 0;""",
}
"""What a hand does, a step a frame."""


def main() -> None:
    """Write the runs, measure, print a table."""
    end_like_ctrl_c()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.frames")
    parser.add_argument("--root", help="where the runs are or are to be written (default: a temporary folder)")
    parser.add_argument("--scenes", default=",".join(SCENES))
    parser.add_argument("--gestures", help=f"some of: {', '.join(GESTURES)}")
    parser.add_argument("--frames", type=int, default=FRAMES)
    parser.add_argument("--hot", action="store_true", help="the functions that take most of the processor, too")
    given = parser.parse_args()
    wanted = given.gestures.split(",") if given.gestures else list(GESTURES)
    root = Path(given.root or tempfile.mkdtemp(prefix="rollbook-frames-"))
    try:
        for name in given.scenes.split(","):
            write(root / name, SCENES[name])
            for row in measured(root / name, SCENES[name], wanted, given.frames, given.hot):
                print(row, flush=True)
    finally:
        if given.root is None:
            shutil.rmtree(root, ignore_errors=True)


def write(root: Path, scene: Scene) -> None:
    """The runs of a scene: two are recorded; the others are links to their files, with an id, a seed and a setting."""
    if (root / "written").exists():
        return
    steps, sources = np.arange(scene.rows) * 10, []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        curves = {f"train/k{n:04d}": np.cumsum(rng.normal(size=scene.rows)) + n for n in range(scene.keys)}
        with rollbook.init("bench", "ppo", seed=seed, dir=root / "sources", sinks=[], keeper="inline") as run:
            run.log_many(curves, env_step=steps)
        sources.append(Path(run.folder))
    for place in range(scene.runs):
        source, folder = sources[place % 2], root / "runs" / "bench" / f"ppo-copy{place:04d}"
        shutil.copytree(source, folder, copy_function=os.link)
        about = json.loads((source / "run.json").read_text())
        (folder / "run.json").unlink()  # the others are links to one file
        more = {"id": f"copy{place:04d}", "seed": place % 10, "config": {"lr": 1e-3 * (1 + place // 10)}}
        (folder / "run.json").write_text(json.dumps(about | more))
    (root / "written").touch()


def measured(root: Path, scene: Scene, gestures: Sequence[str], frames: int, hot: bool) -> Iterator[str]:
    """Lines of the table of a scene."""
    words = [sys.executable, "-c", _WRITES, str(root / "runs"), str(_LIVE), str(scene.keys)]
    writer = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with our_server(root / "runs") as (address, _), tab_of() as tab:
            live = _live_runs(root / "runs")
            shown = [*live, *(f"copy{place:04d}" for place in range(10 - len(live)))]
            tab.page.goto(address + EACH + "~".join(f"{one}.{place + 1}" for place, one in enumerate(shown)))
            if until(tab, DRAWN, 4, 120) is None:
                raise SystemExit("four charts were not drawn within two minutes")
            tab.stop_counting()
            tab.page.wait_for_timeout(4_000)
            size = f"{scene.runs} runs x {scene.keys:,} keys x {scene.rows:,} rows"
            yield f"{size}, {len(shown)} drawn, {len(live)} live; load {os.getloadavg()[0]:.1f}"
            yield f"{'':24}{'gap between frames, ms':^26}{'processor time a frame, ms':^30}  longest  long"
            yield f"{'':24}{'p50':>8}{'p95':>8}{'max':>8}  {'p50':>8}{'p95':>8}{'max':>8}{'script':>8}  task, ms  tasks"
            for name in gestures:
                yield row(tab, name, frames, hot)
                tab.page.keyboard.press("0")
                tab.page.wait_for_timeout(800)
    finally:
        writer.kill()
        writer.wait()
        for folder in (root / "runs" / "bench").glob("live-*"):
            shutil.rmtree(folder, ignore_errors=True)


def _live_runs(root: Path) -> list[str]:
    """The ids of the runs that are written to, once they are there."""
    end = time.monotonic() + 60
    while len(found := sorted(root.glob("bench/live-*/run.json"))) < _LIVE and time.monotonic() < end:
        time.sleep(0.1)
    return [path.parent.name.rpartition("-")[2] for path in found]


def row(tab: Any, name: str, frames: int, hot: bool) -> str:
    """One gesture: its frames in a line, and below it the functions that took most."""
    trace: list[dict[str, Any]] = []
    wire = tab.page.context.new_cdp_session(tab.page)
    browser = tab.browser.new_browser_cdp_session()
    browser.on("Tracing.dataCollected", lambda said: trace.extend(said["value"]))
    over: list[object] = []
    browser.on("Tracing.tracingComplete", lambda said: over.append(said))
    if hot:
        wire.send("Profiler.enable")
        wire.send("Profiler.start")
    browser.send(
        "Tracing.start",
        {"traceConfig": {"includedCategories": ["toplevel", "devtools.timeline"]}, "transferMode": "ReportEvents"},
    )
    gaps = tab.page.evaluate(f"async frames => {{ {_HAND} {GESTURES[name]} return gaps; }}", frames)
    browser.send("Tracing.end")
    while not over:
        tab.page.wait_for_timeout(50)
    profile = wire.send("Profiler.stop")["profile"] if hot else None
    for session in (wire, browser):
        with contextlib.suppress(Exception):
            session.detach()
    costs, scripts, tasks = costs_of(trace)
    wall = np.percentile(gaps, [50, 95, 100])
    cpu = np.percentile(costs, [50, 95, 100]) if len(costs) else [np.nan] * 3
    cells = "".join(f"{one:8.1f}" for one in wall) + "  " + "".join(f"{one:8.1f}" for one in cpu)
    longest, many = max(tasks, default=0.0), sum(task > LONG for task in tasks)
    line = f"{name:24}{cells}{scripts / max(1, len(costs)):8.1f}  {longest:8.1f}  {many:5d}"
    return line if profile is None else "\n".join([line, *hottest(profile)])


def costs_of(trace: Sequence[dict[str, Any]]) -> tuple[np.ndarray[Any, Any], float, list[float]]:
    """Processor time in ms: of each frame (all tasks of the page's main thread until the next one), of all script, of
    each task."""
    frames = [event for event in trace if event.get("name") == "FireAnimationFrame"]
    if not frames:
        return np.array([]), 0.0, []
    (thread, _), *_ = Counter((event["pid"], event["tid"]) for event in frames).most_common(1)
    own = [event for event in trace if (event.get("pid"), event.get("tid")) == thread and "tdur" in event]
    tasks = sorted(
        (event for event in own if event["name"] == "ThreadControllerImpl::RunTask"), key=lambda event: event["ts"]
    )
    script = sum(event["tdur"] for event in own if event["name"] in ("FunctionCall", "FireAnimationFrame", "TimerFire"))
    begins = np.array([event["ts"] for event in tasks])
    drawn = [event["ts"] for event in frames if (event["pid"], event["tid"]) == thread]
    edges = np.unique(np.searchsorted(begins, drawn, side="right"))  # all callbacks of a frame run in one task
    places = np.searchsorted(edges, np.arange(len(tasks)), side="right")
    costs = np.bincount(places, [event["tdur"] / 1e3 for event in tasks], minlength=len(edges) + 1)
    return costs[1:-1], script / 1e3, [event["tdur"] / 1e3 for event in tasks]


def hottest(profile: dict[str, Any], many: int = 12) -> list[str]:
    """The functions of a profile by the time in themselves."""
    spent: Counter[str] = Counter()
    names = {node["id"]: node["callFrame"] for node in profile["nodes"]}
    for identity, took in zip(profile["samples"], profile["timeDeltas"], strict=True):
        at = names[identity]
        file = at["url"].rpartition("/")[2]
        spent[f"{at['functionName'] or '(anonymous)'} {file}:{at['lineNumber'] + 1}:{at['columnNumber']}"] += took
    total = sum(spent.values()) or 1
    idle = ("(idle)", "(program)")
    busy = [(name, took) for name, took in spent.most_common(many + 2) if not name.startswith(idle)]
    return [f"    {took / 1e3:8.1f} ms  {100 * took / total:4.1f} %  {name}" for name, took in busy[:many]]


if __name__ == "__main__":
    main()
