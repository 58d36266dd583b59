"""The rows of the table: each measures one promise and yields a line per peer."""

from __future__ import annotations

import mmap
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks import harness
from benchmarks.harness import Job, median, wait_all
from benchmarks.lines import Context, Line, NotMeasured

Turns = dict[str, list[float]]
"""A figure of each logger, one for each turn."""


FEWER = {"wandb": 8000, "tensorboard": 3000}
"""Peers that take so long that they write fewer rows."""


def _in_turns(context: Context, loggers: list[str], steps: int, pick: str, *arguments: str) -> Turns:
    """A figure of each logger, the loggers taking turns."""
    found: Turns = {name: [] for name in loggers}
    for _ in range(context.repeat):
        for name in loggers:
            rows = context.size(min(steps, FEWER.get(name, steps)))
            found[name].append(harness.run(context.root, ["write", name, "--steps", f"{rows}", *arguments])[pick])
    return found


def row_1(context: Context) -> Iterator[Line]:
    """`log` of 20 floats, back to back. "packing" is what no logger can be below; see `loggers.Packing`."""
    peers = ["packing", *context.has("sb3-csv", "wandb", "tensorboard", "acme-csv")]
    found = _in_turns(context, ["rollbook", *peers], 20_000, "median_us")
    ours, what = found["rollbook"], "log of 20 floats, median"
    yield Line(1, what, ours, "us", goal=2.5)
    goals = {"sb3-csv": 1 / 12, "wandb": 1 / 45, "tensorboard": 1 / 300}
    for peer in peers:
        yield Line(1, what, ours, "us", peer, found[peer], goals.get(peer))


def row_2(context: Context) -> Iterator[Line]:
    """The same among 2 ms of other work: the 99th percentile.

    CPython 3.11 never takes freed tuples of exactly twenty items up again until two thousand of them lie about, so the
    first thousand rows of twenty keys meet fresh memory; they are left out, for all loggers. "packing" meets a cache
    that the work has emptied, too. Page faults count little: six of a thousand rows met one.

    So the percentile tells what a call costs in cold caches, and how cold other programs keep them. At 62306fdd,
    with all caches emptied before each call, the fastest tenth: packing 8 us, a log 12 to 14 (14 to 15 at b6e1e62d),
    Stable-Baselines3's csv 54 to 62. That is 1/4 to 1/4.5 of it, packing alone 1/6 to 1/7: 1/5 needs luck.
    """
    loggers = ["rollbook", "packing", *context.has("sb3-csv")]
    skip = f"{context.size(1000)}"
    found = _in_turns(context, loggers, 2500, "p99_us", "--skip", skip, "--pause", "100000")
    for peer in loggers[1:]:
        what = "among 2 ms of work, p99 after 1,000 rows"
        yield Line(2, what, found["rollbook"], "us", peer, found[peer], 1 / 5 if peer == "sb3-csv" else None)


def row_3(context: Context) -> Iterator[Line]:
    """500 keys a row."""
    loggers = ["rollbook", "packing", *context.has("sb3-csv")]
    found = _in_turns(context, loggers, 1500, "mean_ns_per_point", "--keys", "500")
    for peer in loggers[1:]:
        goal = 1 / 15 if peer == "sb3-csv" else None
        yield Line(3, "500 keys a row, mean per point", found["rollbook"], "ns", peer, found[peer], goal)


def _cpu_a_point(context: Context, steps: dict[str, int]) -> Turns:
    """Nanoseconds of processor time of the whole tree for each point, in turns.

    Of `steps` rows less those of a run of one row, and less the same of the loop without a logger.
    """
    found: Turns = {name: [] for name in steps}

    def spent(logger: str, rows: int) -> float:
        return float(harness.run(context.root, ["write", logger, "--steps", str(rows)])["cpu_seconds"])

    for _ in range(min(3, context.repeat)):
        none = {rows: spent("none", rows) for rows in {1, *map(context.size, steps.values())}}
        for name, n in steps.items():
            rows = context.size(n)
            whole, one = spent(name, rows), spent(name, 1)
            found[name].append((whole - none[rows] - one + none[1]) / (rows * 20) * 1e9)
    return found


def row_4(context: Context) -> Iterator[Line]:
    """CPU of the whole process tree per point, from the first log to sealed."""
    steps = {"sb3-csv": 20_000, **FEWER}
    peers = ["packing", *context.has("sb3-csv", "wandb", "tensorboard")]
    cost = _cpu_a_point(context, {name: steps.get(name, 100_000) for name in ["rollbook", *peers]})
    goals = {"sb3-csv": 1 / 5, "wandb": 1 / 40, "tensorboard": 1 / 150}
    for peer in list(cost)[1:]:
        what = "CPU of the tree per point, sealed"
        yield Line(4, what, cost["rollbook"], "ns", peer, cost[peer], goals.get(peer))


def row_30(context: Context) -> Iterator[Line]:
    """Processor time of a `log` in wandb's shape, less that of the loop without a logger and of a run of one row."""
    peers = ["packing", *context.has("wandb")]
    cost: dict[str, dict[str, list[float]]] = {
        name: {"tree": [], "process": []} for name in ["rollbook-wandb", *peers, "none"]
    }
    for _ in range(min(3, context.repeat)):
        for name, own in cost.items():
            steps = context.size(FEWER.get(name, 100_000))
            whole, one = (
                harness.run(context.root, ["write", name, "--keys", "10", "--steps", str(rows)]) for rows in (steps, 1)
            )
            for part, figure in (("tree", "cpu_seconds"), ("process", "loop_cpu_s")):
                own[part].append((whole[figure] - one[figure]) / steps * 1e6)
    for part, what, goal in (
        ("tree", "wandb.log of ten floats, CPU of the tree", 1 / 30),
        ("process", "the same, the training process alone", None),
    ):
        none = cost["none"][part]
        over = {name: [a - b for a, b in zip(own[part], none, strict=True)] for name, own in cost.items()}
        for peer in peers:
            yield Line(30, what, over["rollbook-wandb"], "us", peer, over[peer], goal if peer == "wandb" else None)


def row_29(context: Context) -> Iterator[Line]:
    """The same with everything on that is on by default, and what the health rules add to it."""
    peers = ["packing", *context.has("sb3-csv")]
    loggers = ["rollbook-defaults", "rollbook", "rollbook-no-rules", *peers]
    cost = _cpu_a_point(context, {name: 20_000 if name == "sb3-csv" else 100_000 for name in loggers})
    what, ours = "CPU of the tree per point, everything on", cost["rollbook-defaults"]
    for peer in peers:
        yield Line(29, what, ours, "ns", peer, cost[peer], 1 / 5 if peer == "sb3-csv" else None)
    what = "the same without sinks, default rules"
    yield Line(29, what, cost["rollbook"], "ns", "no rules", cost["rollbook-no-rules"], 1.15)


def row_5(context: Context) -> Iterator[Line]:
    """PPO that also logs at every environment step; see `worker.train`.

    Measured at 62306fdd in six such trainings: 3.1 to 3.7 %, 1.6 to 1.8 % for packing the same numbers, 11 % for
    Stable-Baselines3's csv. Each is several times what it takes in a loop of its own: the training empties the caches.
    What a log does besides packing is to find its stream by the keys, to check their types, to take the clocks and a
    lane of its own. In caches that were emptied, the types cost 2 of 15 us, every other step less.
    """
    if not context.has("sb3-csv"):
        raise NotMeasured("Stable-Baselines3")
    loggers = ["rollbook", "packing", *context.has("sb3-csv", "tensorboard", "wandb")]
    more: Turns = {name: [] for name in loggers}
    rollouts = 4 if context.dry else 64  # of 256 steps; the first four are left out
    for turn in range(context.repeat):
        for name in [name for name in loggers if turn < 2 or name not in FEWER]:
            words = ["train", name, "--steps", f"{256 * rollouts}", "--skip", "0" if context.dry else "4"]
            more[name].append(harness.run(context.root, words)["percent_more"])
    for name in loggers:
        goal = 3.0 if name == "rollbook" else None
        yield Line(5, f"PPO, log at every step, CPU: {name}", more[name], "% more", goal=goal)


def row_6(context: Context) -> Iterator[Line]:
    """Rows lost after SIGKILL at a random moment, of those whose log returned."""
    lost = 0
    kills = 1 if context.dry else 3 * context.repeat
    for n in range(kills):
        job, done = _kill_after(context, 500 + 331 * n)
        lost += max(0, done - _rows_left(job.out))
        job.clean()
    yield Line(6, f"rows lost in {kills} SIGKILLs", float(lost), "rows", goal=0)


def _kill_after(context: Context, steps: int) -> tuple[Job, int]:
    file = tempfile.NamedTemporaryFile(dir=context.root, delete=False)  # noqa: SIM115 - mapped below, removed with root
    file.write(bytes(16))
    file.flush()
    progress = mmap.mmap(file.fileno(), 16)
    job = Job(context.root, ["write", "rollbook", "--steps", "1000000", "--progress", file.name, "--chunk", "10000"])
    while struct.unpack_from("<q", progress, 0)[0] < steps and job.process.poll() is None:
        time.sleep(0.0002)
    job.process.kill()
    wait_all([job])
    return job, struct.unpack_from("<q", progress, 0)[0]


def _rows_left(out: str) -> int:
    code = (
        "import glob, sys; from rollbook.book.book import Book; "
        "print(Book(glob.glob(sys.argv[1] + '/bench/run-*')[0]).metrics(['m/k00']).num_rows)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code, out], env=harness.environment(out), capture_output=True, text=True, check=True
    )
    return int(found.stdout)


def row_7(context: Context) -> Iterator[Line]:
    """Import and init."""
    loggers = ["rollbook", *context.has("tensorboard", "wandb")]
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in loggers}
    for _ in range(context.repeat):
        for name in loggers:
            found[name].append(harness.run(context.root, ["opening", name]))
    took = {name: [f["open_s"] * 1e3 for f in runs] for name, runs in found.items()}
    heavy = {module for f in found["rollbook"] for module in f["heavy"]}
    note = f"imports {', '.join(sorted(heavy))}" if heavy else "neither numpy, pyarrow nor torch"
    yield Line(7, "import and init", took["rollbook"], "ms", goal=80, note=note)
    yield Line(7, "import and init, memory", [f["rss_mib"] for f in found["rollbook"]], "MiB", goal=10)
    for peer in loggers[1:]:
        yield Line(7, "import and init", took["rollbook"], "ms", peer, took[peer])


def row_8(context: Context) -> Iterator[Line]:
    """Growth of the training process."""
    for what, steps in (("400k", 20_000), ("40M", 2_000_000)):
        rows = context.size(steps)
        grown = harness.run(context.root, ["write", "rollbook", "--steps", f"{rows}", "--chunk", "2000"])
        own = rows * 8 / 2**20  # the harness keeps eight bytes a call for its own latencies
        yield Line(8, f"memory growth, {what} points", grown["rss_growth_mib"] - own, "MiB", goal=25)


def row_9(context: Context) -> Iterator[Line]:
    """Bytes on disk per float64 value, clocks included."""
    loggers = ["rollbook", *context.has("sb3-csv", "wandb", "tensorboard")]
    rows = {name: context.size(FEWER.get(name, 20_000)) for name in loggers}
    found = _in_turns(replace(context, repeat=min(2, context.repeat)), loggers, 20_000, "bytes")
    size = {name: [n / (rows[name] * 20) for n in turns] for name, turns in found.items()}
    yield Line(9, "bytes on disk per value", size["rollbook"], "B", goal=7.5)
    for peer in loggers[1:]:
        yield Line(9, "bytes on disk per value", size["rollbook"], "B", peer, size[peer])


def row_10(context: Context) -> Iterator[Line]:
    """Read one series, and all, of 20 x 20k points. Processor time of all threads, each time in a fresh process.

    One read in ten takes three times as long on a busy machine, so there are nine, of which the interval leaves out one
    at each end.
    """
    loggers = ["rollbook", *context.has("sb3-csv", "tensorboard")]
    steps = {name: context.size(3000 if name == "tensorboard" else 20_000) for name in loggers}
    data = {
        name: harness.run(context.root, ["write", name, "--steps", str(steps[name])], keep=True)["out"]
        for name in loggers
    }
    for what, only, goal in (("one series", "m/k07", 5.0), ("all series", "", 30.0)):
        took: Turns = {name: [] for name in loggers}
        for turn in range(1 if context.dry else 2 * context.repeat - 1):
            for name in [name for name in loggers if turn < 2 or name not in FEWER]:
                seconds = harness.run(context.root, ["read", name, "--data", data[name], "--only", only])["read_cpu_s"]
                took[name].append(seconds * 1e3 * (steps["rollbook"] / steps[name]))
        yield Line(10, f"read {what} of 20 x 20k, CPU", took["rollbook"], "ms", goal=goal)
        for peer in loggers[1:]:
            ours = took["rollbook"][: len(took[peer])]
            yield Line(10, f"read {what} of 20 x 20k, CPU", ours, "ms", peer, took[peer])
    for folder in data.values():
        shutil.rmtree(folder, ignore_errors=True)


def row_11(context: Context) -> Iterator[Line]:
    """Four processes into one run."""
    import rollbook

    out = tempfile.mkdtemp(dir=context.root)
    run = rollbook.init("bench", "run", dir=out, sinks=[])
    folder = str(run.folder)
    steps, turns = context.size(5000), min(3, context.repeat)

    def joined(n: int) -> float:
        jobs = [Job(context.root, ["join", "rollbook", "--data", folder, "--steps", f"{steps}"]) for _ in range(n)]
        for job in jobs:
            job.process.wait()  # for these alone: their run's keeper lives on
        return median([job.figures()["median_us"] for job in jobs])

    one, four = zip(*[(joined(1), joined(4)) for _ in range(turns)], strict=True)
    run.finish()
    missing = 5 * turns * steps - run.book.metrics(["m/k00"]).num_rows
    yield Line(11, "four processes: rows missing", float(missing), "rows", goal=0)
    yield Line(11, "four processes: median cost", four, "us", "one process", one, 1.5)


def row_12(context: Context) -> Iterator[Line]:
    """The envelope of a long series."""
    import duckdb
    import numpy as np

    import rollbook

    points = context.size(100_000_000)
    out = tempfile.mkdtemp(dir=context.root)
    run = rollbook.init("bench", "long", dir=out, sinks=[])
    rng = np.random.default_rng(0)
    size = 1_000_000
    last = 0.0
    for start in range(0, points, size):
        walk = last + np.cumsum(rng.standard_normal(size))
        last = float(walk[-1])
        run.log_many({"m/x": walk}, env_step=np.arange(start, start + size))
    run.finish()
    wait_all([], orphan_seconds=600)  # the keeper, which seals and merges
    files = f"{run.folder}/data/metrics/wide/*.parquet"
    ours, theirs = [], []
    book = run.book
    for _ in range(context.repeat):
        start_s = time.process_time()  # of all threads; the files lie in the cache, and other work changes it little
        envelope = book.series("m/x", x="env_step", points=2000)
        ours.append((time.process_time() - start_s) * 1e3)
        assert 1000 <= len(envelope.x) <= 4000, len(envelope.x)
        start_s = time.process_time()
        duckdb.sql(
            f'select env_step // {points // 2000} b, min("m/x"), max("m/x"), avg("m/x") from '
            f"read_parquet({files!r}, union_by_name = true) "
            "group by b order by b"
        ).fetchall()
        theirs.append((time.process_time() - start_s) * 1e3)
    what = "envelope of 100M rows, 2,000 points, CPU"
    yield Line(12, what, ours, "ms", goal=40)
    yield Line(12, what, ours, "ms", "DuckDB scan", theirs, 1 / 20)


def row_13(context: Context) -> Iterator[Line]:
    """Listing 10,000 runs, warm."""
    import rollbook

    out = tempfile.mkdtemp(dir=context.root)
    run = rollbook.init("bench", "run", dir=out, sinks=[], keeper="inline")
    run.finish()
    page = (Path(run.folder) / "run.json").read_text()
    many = context.size(10_000)
    for n in range(many):
        folder = Path(out) / "bench" / f"run-{n:08d}"
        folder.mkdir()
        (folder / "run.json").write_text(page.replace(run.id, f"{n:08d}"))
    rollbook.open(out).table()
    took = []
    for _ in range(context.repeat):
        start = time.process_time()  # nothing is waited for, and other work changes it little
        rows = rollbook.open(out).table()
        took.append((time.process_time() - start) * 1e3)
        assert len(rows) == many + 1, len(rows)
    yield Line(13, "list 10,000 runs, warm, CPU", took, "ms", goal=300)


ROWS: dict[int, Callable[[Context], Iterator[Line]]] = {
    1: row_1,
    2: row_2,
    3: row_3,
    4: row_4,
    5: row_5,
    6: row_6,
    7: row_7,
    8: row_8,
    9: row_9,
    10: row_10,
    11: row_11,
    12: row_12,
    13: row_13,
    29: row_29,
    30: row_30,
}
