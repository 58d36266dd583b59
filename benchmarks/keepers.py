"""What the keepers of many runs on one host cost: memory, processor time, and the time `launch` takes.

python -m benchmarks.keepers               a hundred runs, one keeper; it is killed in the end, and rows are counted
python -m benchmarks.keepers --runs 10     fewer
ROLLBOOK_KEEPER=run python -m benchmarks.keepers       a keeper each

Proportional memory (PSS) counts a page that n processes share as 1/n in each: the sum is what the keepers really take.
Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rollbook.health import DEFAULT
from rollbook.journal.writer import Writer
from rollbook.keeper.launch import launch
from rollbook.keeper.own_files import read_json, state_path
from rollbook.schema.clocks import STANDARD
from rollbook.system.liveness import is_alive


class Keepers:
    """The keepers of runs that this process writes."""

    def __init__(self, root: str, runs: int, sinks: list[str], rules: Sequence[str] = DEFAULT) -> None:
        self.folders = [os.path.join(root, f"run-{number:03d}") for number in range(runs)]
        self.writers: list[Writer] = []
        self.logs: list[Any] = []
        self.rows = 0
        self.launch_ms: list[float] = []
        for folder in self.folders:
            os.makedirs(os.path.join(folder, "data", "keeper"))
            writer = Writer(folder, main=True)
            writer.open()
            self.writers.append(writer)
            self.logs.append(writer.make_log(writer.channel()))
            attempts = [{"n": 1, "writer": writer.id}]
            about = {
                "format": 1,
                "nonce": writer.id,
                "id": writer.id[-6:],
                "status": "running",
                "clocks": list(STANDARD),
                "attempts": attempts,
            }
            Path(folder, "run.json").write_text(json.dumps(about))
            asked = [{"name": name} for name in rules]
            plan = {"sinks": [{"name": name} for name in sinks], "host_seconds": 10, "rules": asked}
            Path(folder, "data", "keeper", "plan.json").write_text(json.dumps(plan))
            began = time.perf_counter()
            launch(folder)
            self.launch_ms.append((time.perf_counter() - began) * 1000)
        self.states = [self._wait_for_state(folder) for folder in self.folders]

    def _wait_for_state(self, folder: str) -> dict[str, object]:
        for _ in range(6000):
            state = read_json(state_path(folder))
            if state:
                return state
            time.sleep(0.01)
        raise SystemExit(f"the keeper of {folder} did not come up; see data/keeper/log there")

    def pids(self) -> set[int]:
        """The keepers."""
        return {int(str(state["pid"])) for state in self.states}

    def memory(self) -> tuple[float, float, float]:
        """(mean RSS, mean private, sum of PSS) in MiB."""
        sizes = {"Rss": 0, "Pss": 0, "Private": 0}
        for pid in self.pids():
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                for name in sizes:
                    if line.startswith((f"{name}:", "Private_Clean:", "Private_Dirty:")) and line.startswith(name):
                        sizes[name] += int(line.split()[1])
        n = len(self.pids())
        return sizes["Rss"] / n / 1024, sizes["Private"] / n / 1024, sizes["Pss"] / 1024

    def cpu_seconds(self) -> float:
        """Processor time of all keepers so far."""
        fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in self.pids()]
        return sum(int(f[11]) + int(f[12]) for f in fields) / os.sysconf("SC_CLK_TCK")

    def log(self, rows: int, a_second: float = 0.0) -> None:
        """Some rows in every run, at once or at a rate."""
        for i in range(rows):
            began = time.perf_counter()
            for log in self.logs:
                log({f"loss/{name}": float(i) for name in "abcdefghij"}, env_step=self.rows + i)
            if a_second:
                time.sleep(max(0.0, 1 / a_second - (time.perf_counter() - began)))
        self.rows += rows

    def kill(self) -> float:
        """Kill the one keeper; seconds until all are kept again. The first run starts another, as its tick does."""
        (former,) = self.pids()
        os.kill(former, signal.SIGKILL)
        began = time.perf_counter()
        while not launch(self.folders[0]):
            time.sleep(0.01)
        left = set(self.folders)
        while left:
            left = {f for f in left if read_json(state_path(f)).get("pid") in (None, former)}
            time.sleep(0.01)
        seconds = time.perf_counter() - began
        self.states = [self._wait_for_state(folder) for folder in self.folders]
        return seconds

    def count(self) -> int:
        """Say goodbye and read every run; how many rows are missing or too many."""
        from rollbook.book.book import Book

        wrong = 0
        for writer, folder in zip(self.writers, self.folders, strict=True):
            writer.close()
            table = Book(folder).metrics(["loss/a"])
            steps = sorted(step for step in table["env_step"].to_pylist() if step is not None)
            wrong += steps != list(range(self.rows))
        return wrong

    def end(self) -> None:
        """Kill them: this is about what they cost while they live."""
        for state in {int(str(state["pid"])): state for state in self.states}.values():
            if is_alive(state):
                os.kill(int(str(state["pid"])), signal.SIGKILL)
        for writer in self.writers:
            writer.close()


def main() -> None:
    """Print one line per state of the keepers."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.keepers")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--sinks", default="text", help="comma-separated; the keeper's part of the default is text")
    parser.add_argument("--no-rules", action="store_true", help="without the default health rules")
    given = parser.parse_args()
    root = tempfile.mkdtemp(prefix="rollbook-keepers-")
    os.environ["ROLLBOOK_RUNTIME_DIR"] = os.path.join(root, "runtime")  # a keeper that nobody else shares
    sinks = [name for name in given.sinks.split(",") if name]
    keepers = Keepers(root, given.runs, sinks, () if given.no_rules else DEFAULT)
    try:
        times = sorted(keepers.launch_ms)
        print(f"{given.runs} runs; launch: median {times[len(times) // 2]:.1f} ms, longest {times[-1]:.1f} ms")
        time.sleep(25)
        _show("idle", keepers, 20.0)
        keepers.log(200)
        time.sleep(3)
        _show("logging, with sinks", keepers)
        time.sleep(10)
        _show("after a host row", keepers)
        if os.environ.get("ROLLBOOK_KEEPER") != "run":
            threading.Thread(target=keepers.log, args=(450, 10.0), daemon=True).start()
            time.sleep(25)
            _show("10 rows a second each", keepers, 15.0)
            before = keepers.kill()
            time.sleep(6)
            print(f"killed: all runs are kept again after {before:.1f} s; runs with a wrong row: {keepers.count()}")
    finally:
        keepers.end()
        shutil.rmtree(root, ignore_errors=True)


def _show(what: str, keepers: Keepers, seconds: float = 5.0) -> None:
    before, began = keepers.cpu_seconds(), time.perf_counter()
    time.sleep(seconds)
    per_second = (keepers.cpu_seconds() - before) / (time.perf_counter() - began)
    rss, private, together = keepers.memory()
    share = 100 * per_second / len(keepers.states)
    print(
        f"{what:22} RSS {rss:5.1f} MiB, private {private:5.1f} MiB each; together {together:6.0f} MiB; "
        f"{share:.2f} % of a core each, {100 * per_second:.1f} % together"
    )


if __name__ == "__main__":
    main()
