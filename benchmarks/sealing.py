"""Does sealing keep up with writers at full speed? Rows a second of processor time, of both.

python -m benchmarks.sealing              16 writers, 200,000 rows of 20 floats each

The writers log one after the other and nothing is sealed meanwhile; then it is sealed as the keeper's child does it
while a run goes on, where it has four processes for it, and at the run's end. So neither figure is of a machine that
has enough cores or too few, and their ratio says how many cores sealing takes beside so many writers at full speed.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from benchmarks import harness

WRITERS, ROWS, PROCESSES, TURNS = 16, 200_000, 4, 3

_SEAL = """
import sys
from rollbook.storage.sealing.folder import seal
print(seal(sys.argv[1], final="--final" in sys.argv, processes=int(sys.argv[2])))
"""

_WRITE = """
import json, os, sys, time, rollbook
run = rollbook.init("bench", "sealing", dir=sys.argv[1], sinks=[], keeper="inline")
row = {f"train/k{n:02d}": 0.5 * n for n in range(20)}
rows, writers, seconds = int(sys.argv[2]), int(sys.argv[3]), []
from rollbook.run.ray import address
told = address(run)
for _ in range(writers):
    read, write = os.pipe()
    if not os.fork():
        own = told.writer()
        began = time.thread_time()
        for step in range(rows):
            row["train/k07"] = step * 0.3
            row["train/k11"] = step ** 0.5
            own.log(row, env_step=step)
        os.write(write, json.dumps(time.thread_time() - began).encode())
        own.finish()
        os._exit(0)
    os.wait()
    seconds.append(json.loads(os.read(read, 100)))
print(json.dumps([str(run.folder), seconds]), flush=True)
os._exit(0)
"""


def measure(root: str, writers: int = WRITERS, rows: int = ROWS) -> dict[str, float]:
    """Thousands of rows a second of processor time: of a writer at best, of sealing, and of that with the merging at
    the end."""
    out = tempfile.mkdtemp(dir=root)
    try:
        command = [sys.executable, "-c", _WRITE, out, str(rows), str(writers)]
        done = subprocess.run(command, env=harness.environment(out), capture_output=True, text=True, check=True)
        folder, seconds = json.loads(done.stdout.strip().splitlines()[-1])
        spent = []
        for final in ([], ["--final"]):
            before = _children()
            child = [sys.executable, "-c", _SEAL, folder, str(PROCESSES), *final]
            subprocess.run(child, env=harness.environment(out), check=True, stdout=subprocess.DEVNULL)
            spent.append(_children() - before)
    finally:
        shutil.rmtree(out, ignore_errors=True)
    thousands = writers * rows / 1e3
    return {
        "a writer logs": rows / 1e3 / min(seconds),
        "sealing": thousands / spent[0],
        "sealing and merging": thousands / sum(spent),
    }


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def rows(context: Any) -> Iterator[Any]:
    """The lines of the table."""
    from benchmarks.lines import Line

    turns = [measure(context.root, WRITERS, context.size(ROWS // TURNS)) for _ in range(min(TURNS, context.repeat))]
    logging, sealing, merging = ([1e3 / turn[name] for turn in turns] for name in turns[0])
    note = f"{PROCESSES} processes seal for {WRITERS} writers"
    yield Line("K", "sealing a row of 20 floats, CPU", sealing, "us", "logging it", logging, note=note)
    yield Line("K", "the same, merged at the end", merging, "us", "logging it", logging)
    cores, most = [WRITERS * both / one for both, one in zip(merging, logging, strict=True)], WRITERS / 2
    note = f"beside {WRITERS} cores that log; sealing may take half of a machine's cores"
    yield Line("K", f"sealing keeps up with {WRITERS} writers at full speed on", cores, "cores", goal=most, note=note)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sealing")
    parser.add_argument("--writers", type=int, default=WRITERS)
    parser.add_argument("--rows", type=int, default=ROWS)
    given = parser.parse_args()
    told = measure(tempfile.gettempdir(), given.writers, given.rows)
    print({name: f"{rate:.0f} thousand rows a second of processor time" for name, rate in told.items()})


if __name__ == "__main__":
    main()
