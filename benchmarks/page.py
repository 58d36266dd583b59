"""The page beside TensorBoard: the same runs, in the same browser, one after the other.

    python -m benchmarks --rows P                    # the same, as a row of the table
    python -m benchmarks.page                        # writes the runs, then measures (about five minutes)
    python -m benchmarks.page --write-only --root X  # the runs alone, to measure them when the machine is quiet
    python -m benchmarks.page --root X               # measure runs that were written before
    python -m benchmarks.page --parts frames,range   # some of: first, many, frames, live, range, table

Needs what `make test-page` installs, and the package `tensorboard`. The promise names 100 runs x 20 charts x 10^6
points; TensorBoard's files of that would be 90 GB, so the default is 20 runs x 20 charts x 10,000 points, and what is
compared are ratios. The two pages take turns, each in a fresh browser; the figures are medians. A chart counts once its
curves are drawn: frames and axes alone, which TensorBoard shows a second or more before, are no chart. Processor times
are of all processes of the browser and of the server together.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import rollbook
from benchmarks.harness import descendants, end_like_ctrl_c
from benchmarks.lines import Context, Line, NotMeasured
from benchmarks.many_runs import copies, recorded

KEYS = [f"{scope}/{name}" for scope in ("train", "update", "test", "time") for name in ("a", "b", "c", "d", "e")]
PARTS = ("first", "many", "frames", "live", "range", "table")
TURNS = 3
BUILT = Path(rollbook.__file__).parent / "server" / "page" / "index.html"
WIDE = {"width": 1600, "height": 1000}
FRAMES = 90
TICKS = os.sysconf("SC_CLK_TCK")
_REST = 2_500
"""ms that a browser gets to start: what it does for itself then is of no page."""

DRAWN = """many => {
    const seen = window.seenDrawn ??= new Set();
    for (const canvas of document.querySelectorAll('.chart .plotarea .clip canvas')) {
        if (seen.has(canvas) || canvas.width < 2 || !canvas.closest('.plotarea').dataset.drawn) continue;
        const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
        for (let i = 3; i < data.length; i += 4) if (data[i] > 0) { seen.add(canvas); break; }
    }
    return seen.size >= many;
}"""
"""Each canvas is read until it was seen drawn: to read them all each time would cost more than the page."""
CARDS = """many => {
    const seen = window.seenDrawn ??= new Set();
    for (const canvas of document.querySelectorAll('line-chart .series-view > canvas')) {
        if (seen.has(canvas) || canvas.width < 2) continue;
        const copy = document.createElement('canvas');
        [copy.width, copy.height] = [canvas.width, canvas.height];
        const pen = copy.getContext('2d');
        pen.drawImage(canvas, 0, 0);
        const data = pen.getImageData(0, 0, copy.width, copy.height).data;
        for (let i = 3; i < data.length; i += 4) if (data[i] > 0) { seen.add(canvas); break; }
    }
    return seen.size >= many;
}"""
"""The same for TensorBoard, whose canvases hold the curves alone and are drawn by a worker: a copy can be read."""


def main() -> None:
    """Write the runs, measure, print."""
    end_like_ctrl_c()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page")
    parser.add_argument("--root", help="where the runs are or are to be written (default: a temporary folder)")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--write-only", action="store_true")
    given = parser.parse_args()
    root = Path(given.root or tempfile.mkdtemp(prefix="rollbook-page-"))
    try:
        write(root, given.runs, given.rows)
        if not given.write_only:
            for line in measured(root, given.parts.split(",")):
                print(line.text(), flush=True)
    finally:
        if given.root is None:
            shutil.rmtree(root, ignore_errors=True)


def values(seed: int, place: int, rows: int) -> np.ndarray[Any, Any]:
    """One curve: a walk with a few spikes and a gap of NaN."""
    rng = np.random.default_rng([seed, place])
    found = np.cumsum(rng.normal(size=rows)) / np.sqrt(rows) + place
    found[rng.integers(0, rows, 3)] *= 4
    found[rows // 3] = np.nan
    return found


def write(root: Path, runs: int, rows: int) -> None:
    """The same curves as runs of rollbook and as event files; what is there already stays."""
    done = root / "written.json"
    if done.exists():
        return
    from rollbook.sinks.event_files import Messages

    messages = Messages("the benchmark")
    steps = np.arange(rows) * 10
    for seed in range(runs):
        curves = {key: values(seed, place, rows) for place, key in enumerate(KEYS)}
        with rollbook.init(
            "bench",
            "ppo",
            seed=seed,
            config={"lr": 1e-3 * (1 + seed % 2)},
            dir=root / "runs",
            sinks=[],
            keeper="inline",
            total={"env_step": int(steps[-1])},
        ) as run:
            run.log_many(curves, env_step=steps)
        folder = root / "events" / f"seed_{seed}"
        folder.mkdir(parents=True)
        with open(folder / "events.out.tfevents.1700000000.bench", "wb") as file:
            file.write(messages.framed(messages.version(1.7e9)))
            for row in range(rows):
                summaries = [messages.scalar(key, float(curve[row])) for key, curve in curves.items()]
                file.write(messages.framed(messages.event(1.7e9 + row / 100, int(steps[row]), summaries)))
    done.write_text(json.dumps({"runs": runs, "rows": rows}))


def cpu_of(pids: list[int]) -> float:
    """Processor seconds of some processes and all that they started."""
    total = 0.0
    for pid in {one for parent in pids for one in (parent, *descendants(parent))}:
        with contextlib.suppress(OSError, IndexError, ValueError):
            words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += (int(words[11]) + int(words[12])) / TICKS
    return total


def program_of_browser() -> str | None:
    """Chromium, where there is one."""
    return os.environ.get("ROLLBOOK_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")


class Tab:
    """A tab of a browser of its own, and what it cost.

    Attributes:
      bytes: what came over the wire, compressed as it was; scripts: of that, JavaScript.
    """

    def __init__(self, playwright: Any) -> None:
        program = program_of_browser()
        before = set(descendants(os.getpid()))
        self.browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        self.page = self.browser.new_context(viewport=WIDE).new_page()
        self.pids = sorted(set(descendants(os.getpid())) - before)
        self.bytes = self.scripts = 0
        self._kinds: dict[str, str] = {}
        self._wire = self.page.context.new_cdp_session(self.page)
        self._wire.send("Network.enable")
        self._wire.on("Network.responseReceived", lambda said: self._kinds.update({said["requestId"]: said["type"]}))
        self._wire.on("Network.dataReceived", self._received)
        self.page.wait_for_timeout(_REST)

    def _received(self, said: dict[str, Any]) -> None:
        size = said.get("encodedDataLength") or 0
        self.bytes += size
        if self._kinds.get(said["requestId"]) == "Script":
            self.scripts += size

    def stop_counting(self) -> None:
        """Count no bytes any more: a browser that is asked to keeps every answer for whoever counts."""
        self._wire.detach()

    def cpu(self) -> float:
        """Processor seconds of the browser so far."""
        return cpu_of(self.pids)

    def first_paint(self) -> float:
        """Seconds from the navigation to the first contentful paint."""
        entry = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN"
        return float(self.page.evaluate(entry)) / 1e3

    def close(self) -> None:
        """End the browser."""
        self.browser.close()


@contextlib.contextmanager
def tab_of() -> Iterator[Tab]:
    """A fresh browser: nothing is cached."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        tab = Tab(playwright)
        try:
            yield tab
        finally:
            tab.close()


def until(tab: Tab, predicate: str, many: int, seconds: float) -> float | None:
    """Seconds until a predicate holds; None where it does not."""
    begun = time.perf_counter()
    try:
        tab.page.wait_for_function(predicate, arg=many, timeout=seconds * 1e3, polling=50)
    except Exception:
        return None
    return time.perf_counter() - begun


def ui_words(folder: Path, port: int) -> list[str]:
    """The command that serves the page."""
    return ["ui", str(folder), "--port", str(port), "--no-open"]


@contextlib.contextmanager
def our_server(folder: Path, **environment: str) -> Iterator[tuple[str, int]]:
    """`rollbook ui` in a process of its own; its address, once it answers, and its process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with serving([sys.executable, "-m", "rollbook", *ui_words(folder, port)], port, **environment) as pid:
        yield f"http://127.0.0.1:{port}/", pid


@contextlib.contextmanager
def serving(words: list[str], port: int, **environment: str) -> Iterator[int]:
    """A server in a process of its own, once its port answers; its pid."""
    silent = subprocess.DEVNULL
    process = subprocess.Popen(words, stdout=silent, stderr=silent, env={**os.environ, **environment})
    try:
        for _ in range(1_200):
            if process.poll() is not None:
                raise RuntimeError(f"{' '.join(words)} ended with {process.returncode}")
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
                break
            time.sleep(0.05)
        yield process.pid
    finally:
        process.terminate()
        process.wait(20)


def measured(root: Path, parts: list[str]) -> Iterator[Line]:
    """A line for each figure."""
    said = json.loads((root / "written.json").read_text())
    note = f"{said['runs']} runs x {len(KEYS)} charts x {said['rows']:,} points"
    if "first" in parts:
        yield from first_view(root, note)
    if "many" in parts:
        yield from many_seeds(root)
    if "frames" in parts or "range" in parts:
        yield from gestures(root / "runs", note, parts)
    if "live" in parts:
        yield from live_frames()
    if "table" in parts:
        yield from table(root, note)


def rows(context: Context) -> Iterator[Line]:
    """Row P of the table.

    Raises:
      NotMeasured: no browser can be driven, or the page was not built.
    """
    if find_spec("playwright") is None or program_of_browser() is None or not BUILT.is_file():
        raise NotMeasured("Playwright, Chromium and the page: make test-page")
    root = Path(context.root) / "page"
    write(root, 20, context.size(10_000))
    yield from measured(root, [part for part in PARTS if part != "first" or context.has("tensorboard")])


@contextlib.contextmanager
def their_server(events: Path) -> Iterator[tuple[str, int, float]]:
    """TensorBoard, once it has loaded the files: its address, its process and the seconds that this took."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "tensorboard.main", "--logdir", str(events), "--port", str(port)]
    started = time.perf_counter()
    with serving([*words, "--reload_interval", "600"], port) as pid:
        _wait_for_runs(port, len(list(events.iterdir())))
        yield f"http://127.0.0.1:{port}/#timeseries", pid, time.perf_counter() - started


def opened(address: str, pid: int, drawn: str) -> dict[str, float]:
    """What it takes from an address to three charts, in a fresh browser."""
    with tab_of() as tab:
        spent = tab.cpu() + cpu_of([pid])
        begun = time.perf_counter()
        tab.page.goto(address, wait_until="commit")
        shown = until(tab, drawn, 3, 90)
        took = time.perf_counter() - begun
        cpu = tab.cpu() + cpu_of([pid]) - spent
        return {
            "three": took if shown is not None else float("nan"),
            "cpu": cpu,
            "paint": tab.first_paint(),
            "bytes": tab.bytes / 1e6,
            "scripts": tab.scripts / 1e3,
        }


def _wait_for_page(address: str) -> None:
    import urllib.request

    for _ in range(400):
        with contextlib.suppress(OSError), urllib.request.urlopen(address, timeout=20) as answer:
            answer.read()
            return
        time.sleep(0.05)


def _wait_for_runs(port: int, many: int) -> None:
    import urllib.request

    asked = f"http://127.0.0.1:{port}/data/plugin/scalars/tags"
    for _ in range(240):
        with contextlib.suppress(OSError, ValueError), urllib.request.urlopen(asked, timeout=5) as answer:
            if len(json.load(answer)) >= many:
                return
        time.sleep(0.5)


EACH = "#/runs?g=none&marks=0&show="


def drawn_runs(folder: Path, many: int = 10) -> str:
    """The address of a view with so many runs drawn one by one, as both pages show them."""
    ids = sorted(path.parent.name.rpartition("-")[2] for path in folder.glob("*/*/run.json"))
    return EACH + "~".join(f"{one}.{place % 10 + 1}" for place, one in enumerate(ids[:many]))


def first_view(root: Path, note: str) -> Iterator[Line]:
    """From the address to pictures, in turns."""
    ours: list[dict[str, float]] = []
    again: list[dict[str, float]] = []
    theirs: list[dict[str, float]] = []
    starts = []
    view = drawn_runs(root / "runs", len(list((root / "runs" / "bench").glob("*/run.json"))))
    with their_server(root / "events") as (their_address, their_pid, loaded):
        for _ in range(TURNS):
            theirs.append(opened(their_address, their_pid, CARDS))
            began = time.perf_counter()
            with our_server(root / "runs") as (address, pid):
                _wait_for_page(address)
                starts.append(time.perf_counter() - began)
                ours.append(opened(address + view, pid, DRAWN))
                again.append(opened(address + view, pid, DRAWN))

    def of(what: str, who: list[dict[str, float]]) -> list[float]:
        return [one[what] for one in who]

    note += f"; {TURNS} turns, load {os.getloadavg()[0]:.0f}"
    yield line(
        "the server answers, after its start",
        float(np.median(starts)),
        "s",
        loaded,
        note="TensorBoard's once it has loaded the runs",
    )
    yield line("first paint", of("paint", ours), "s", of("paint", theirs), goal=1.0)
    new, known = "the first three charts, a new server", "the first three charts, a server that knows the runs"
    yield line(new, of("three", ours), "s", of("three", theirs), ratio=1 / 5, note=note)
    yield line(known, of("three", again), "s", of("three", theirs), ratio=1 / 5)
    yield line(f"{new}, CPU", of("cpu", ours), "s", of("cpu", theirs), note="all of browser and server")
    yield line(f"{known}, CPU", of("cpu", again), "s", of("cpu", theirs))
    yield line("sent for the first view", of("bytes", ours), "MB", of("bytes", theirs), goal=1.0)
    yield line("JavaScript of the first view", of("scripts", ours), "kB", of("scripts", theirs), goal=60)


MANY = 1_000


def many_seeds(root: Path) -> Iterator[Line]:
    """The first curve of four groups of many runs that no server has read, 20,000 rows each."""
    folder = root / "seeds"
    if not folder.exists():
        copies(folder, recorded(root / "sources", 4, 20_000), MANY, data=True)
    with tempfile.TemporaryDirectory() as cache, our_server(folder, XDG_CACHE_HOME=cache) as (address, pid):
        _wait_for_page(address)
        with tab_of() as tab:
            spent = tab.cpu() + cpu_of([pid])
            begun = time.perf_counter()
            tab.page.goto(f"{address}#/runs?g=config.algo", wait_until="commit")
            until(tab, DRAWN, 1, 90)
            first, cpu = time.perf_counter() - begun, tab.cpu() + cpu_of([pid]) - spent
            until(tab, FULL, 1, 90)
            note = f"of all runs after {time.perf_counter() - begun:.1f} s; load {os.getloadavg()[0]:.0f}"
            yield line(f"the first curve of {MANY:,} runs, ever", first, "s", None, goal=1.0, note=note)
            yield line(f"the first curve of {MANY:,} runs, ever, CPU", cpu, "s", None)


FULL = "many => !document.body.innerText.includes('a finer one is on its way')"

_WRITES = """
import math, random, sys, time
import rollbook
root, many, keys = sys.argv[1], int(sys.argv[2]), sys.argv[3].split()
runs = [rollbook.init("live", "ppo", seed=n, dir=root, sinks=[], keeper="inline") for n in range(many)]
step = 0
while True:
    for _ in range(20 if step else 2_000):
        for n, run in enumerate(runs):
            run.log({key: math.sin(step / 4000 + n) + random.random() for key in keys}, env_step=step)
        step += 1
    time.sleep(1)
"""


def live_frames() -> Iterator[Line]:
    """Ten live runs, twenty rows a second each, twenty charts: at rest, and while a hand zooms."""
    with tempfile.TemporaryDirectory(prefix="rollbook-live-") as root:
        words = [sys.executable, "-c", _WRITES, root, "10", " ".join(KEYS)]
        writer = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            while len(list(Path(root).glob("live/*"))) < 10:
                time.sleep(0.1)
            with our_server(Path(root)) as (address, _), tab_of() as tab:
                tab.page.goto(address + drawn_runs(Path(root)))
                until(tab, DRAWN, 6, 60)
                tab.stop_counting()
                tab.page.wait_for_timeout(5_000)
                before = tab.cpu()
                tab.page.wait_for_timeout(10_000)
                share = (tab.cpu() - before) / 10
                yield line(
                    "live: CPU of a frame at rest",
                    1e3 * share / 60,
                    "ms",
                    None,
                    goal=16,
                    note=f"the browser takes {100 * share:.0f} % of a core, 60 frames a second",
                )
                box = tab.page.locator(".slot.big .plotarea").first.bounding_box()
                x, y = box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.5
                tab.page.mouse.move(x, y)
                before, begun = tab.cpu(), time.perf_counter()
                frames = tab.page.evaluate(WHEEL, [3 * FRAMES, x, y])
                spent, lasted = tab.cpu() - before, time.perf_counter() - begun
                yield line(
                    "live: zoom, CPU a frame",
                    1e3 * spent / max(1, frames),
                    "ms",
                    None,
                    goal=16,
                    note=f"{frames / lasted:.0f} frames a second",
                )
        finally:
            writer.kill()
            writer.wait()


def gestures(folder: Path, note: str, parts: list[str]) -> Iterator[Line]:
    """Twenty linked charts of ten runs under a hand."""
    with our_server(folder) as (address, _), tab_of() as tab:
        page = tab.page
        page.goto(f"{address}{drawn_runs(folder)}")
        until(tab, DRAWN, 6, 60)
        page.wait_for_timeout(1500)
        box = page.locator(".slot.big .plotarea").first.bounding_box()
        x, y = box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.5
        page.mouse.move(x, y)
        if "frames" in parts:
            for name, act in (("zoom", WHEEL), ("pan", PAN)):
                if act is PAN:
                    page.evaluate(CLOSER, [6, x, y])
                    page.wait_for_timeout(2500)
                before, begun = tab.cpu(), time.perf_counter()
                frames = page.evaluate(act, [FRAMES, x, y])
                spent, lasted = tab.cpu() - before, time.perf_counter() - begun
                each = 1e3 * spent / max(1, frames)
                yield line(
                    f"{name}: processor time a frame",
                    each,
                    "ms",
                    None,
                    goal=16,
                    note=f"{note}, 10 drawn; {frames / lasted:.0f} frames a second",
                )
                page.wait_for_timeout(800)
        if "range" in parts:
            page.evaluate("performance.clearResourceTimings()")
            took = []
            for share in (0.2, 0.5, 0.7):
                page.keyboard.press("0")
                page.wait_for_timeout(900)
                page.mouse.move(box["x"] + box["width"] * share, y)
                page.mouse.down()
                page.mouse.move(box["x"] + box["width"] * (share + 0.08), y, steps=4)
                page.evaluate("performance.clearResourceTimings()")
                page.mouse.up()
                page.wait_for_timeout(1500)
                took += page.evaluate(RANGES)
            yield line(
                "a new range, all charts in view",
                float(np.median(took or [np.nan])),
                "ms",
                None,
                goal=150,
                note=f"{len(took)} ranges, the server's and the wire's part",
            )


RANGES = """performance.getEntriesByType('resource')
    .filter(entry => entry.name.endsWith('/series')).map(entry => entry.duration)"""
_HAND = """
const area = document.elementFromPoint(x, y).closest('.plotarea');
const next = () => new Promise(requestAnimationFrame);
const at = {clientX: x, clientY: y, bubbles: true, cancelable: true};
const wheel = deltaY => area.dispatchEvent(new WheelEvent('wheel', {...at, deltaY, ctrlKey: true}));
"""
WHEEL = (
    "async ([frames, x, y]) => {"
    + _HAND
    + """
    for (let n = 0; n < frames; n++) { wheel(n % 30 < 15 ? -12 : 12); await next(); }
    return frames;
}"""
)
CLOSER = "async ([frames, x, y]) => {" + _HAND + "for (let n = 0; n < frames; n++) { wheel(-60); await next(); } }"
PAN = (
    "async ([frames, x, y]) => {"
    + _HAND
    + """
    const say = (kind, dx) => area.dispatchEvent(
        new PointerEvent(kind, {...at, clientX: x + dx, shiftKey: true, button: 0, buttons: 1, pointerId: 1}));
    area.setPointerCapture = () => undefined;
    say('pointerdown', 0);
    for (let n = 0; n < frames; n++) {
        say('pointermove', 10 + (n % 60 < 30 ? n % 30 : 30 - n % 30) * 4);
        await next();
    }
    say('pointerup', 40);
    return frames;
}"""
)


def table(root: Path, note: str) -> Iterator[Line]:
    """10,000 runs in the table, scrolled a page a frame."""
    many = root / "many"
    if not many.exists():
        sources = sorted(path.parent for path in (root / "runs" / "bench").glob("*/run.json"))[:2]
        copies(many, sources, 10_000, data=False)
    with our_server(many) as (address, _), tab_of() as tab:
        begun = time.perf_counter()
        tab.page.goto(f"{address}#/runs?g=none&cols=status~seed~config.lr")
        until(tab, "many => document.querySelectorAll('.grid-body .name').length >= many", 20, 90)
        shown = time.perf_counter() - begun
        tab.page.wait_for_timeout(1500)
        before = tab.cpu()
        frames, seconds = tab.page.evaluate(SCROLL, 90)
        spent = 1e3 * (tab.cpu() - before) / frames
        yield line("10,000 runs: rows on the screen", shown, "s", None)
        yield line(
            "10,000 runs: scrolling, processor time a frame",
            spent,
            "ms",
            None,
            note=f"{frames / seconds:.0f} frames a second, 400 px each",
        )


SCROLL = """async frames => {
    const box = document.querySelector('.grid');
    const begun = performance.now();
    for (let n = 0; n < frames; n++) { box.scrollTop += 400; await new Promise(requestAnimationFrame); }
    return [frames, (performance.now() - begun) / 1e3];
}"""


def line(
    what: str,
    ours: float | list[float],
    unit: str,
    theirs: float | list[float] | None,
    *,
    goal: float | None = None,
    ratio: float | None = None,
    note: str = "",
) -> Line:
    """A line of the table."""
    return Line("P", what, ours, unit, "tensorboard" if theirs is not None else "", theirs, ratio, goal, note)


if __name__ == "__main__":
    main()
