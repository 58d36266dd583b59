"""What the keepers of many runs on one host cost: memory, processor time, and the time `launch` takes.

python -m benchmarks.keepers               a hundred runs
python -m benchmarks.keepers --runs 10     fewer

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
import time
from pathlib import Path

from rollbook.clocks import STANDARD
from rollbook.journal.liveness import is_alive
from rollbook.journal.writer import Writer
from rollbook.keeper.launch import launch
from rollbook.keeper.places import read_json, state_path


class Keepers:
    """The keepers of runs that this process writes."""

    def __init__(self, root: str, runs: int, sinks: list[str]) -> None:
        self.folders = [os.path.join(root, f"run-{number:03d}") for number in range(runs)]
        self.writers: list[Writer] = []
        self.launch_ms: list[float] = []
        for folder in self.folders:
            os.makedirs(os.path.join(folder, "data", "keeper"))
            writer = Writer(folder, main=True)
            writer.open()
            self.writers.append(writer)
            attempts = [{"n": 1, "writer": writer.id}]
            about = {"id": writer.id[-6:], "status": "running", "clocks": list(STANDARD), "attempts": attempts}
            Path(folder, "run.json").write_text(json.dumps(about))
            plan = {"sinks": [{"name": name} for name in sinks], "host_seconds": 10}
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

    def memory(self) -> tuple[float, float, float]:
        """(mean RSS, mean private, sum of PSS) in MiB."""
        sizes = {"Rss": 0, "Pss": 0, "Private": 0}
        for state in self.states:
            for line in Path(f"/proc/{state['pid']}/smaps_rollup").read_text().splitlines():
                for name in sizes:
                    if line.startswith((f"{name}:", "Private_Clean:", "Private_Dirty:")) and line.startswith(name):
                        sizes[name] += int(line.split()[1])
        n = len(self.states)
        return sizes["Rss"] / n / 1024, sizes["Private"] / n / 1024, sizes["Pss"] / 1024

    def cpu_seconds(self) -> float:
        """Processor time of all keepers so far."""
        fields = [Path(f"/proc/{s['pid']}/stat").read_text().rpartition(")")[2].split() for s in self.states]
        return sum(int(f[11]) + int(f[12]) for f in fields) / os.sysconf("SC_CLK_TCK")

    def log(self, rows: int) -> None:
        """Some rows in every run."""
        for writer in self.writers:
            log = writer.make_log(writer.channel())
            for i in range(rows):
                log({f"loss/{name}": float(i) for name in "abcdefghij"}, env_step=i)

    def end(self) -> None:
        """Kill them: this is about what they cost while they live."""
        for state in self.states:
            if is_alive(state):
                os.kill(int(str(state["pid"])), signal.SIGKILL)
        for writer in self.writers:
            writer.close()


def main() -> None:
    """Print one line per state of the keepers."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.keepers")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--sinks", default="text", help="comma-separated; the keeper's part of the default is text")
    given = parser.parse_args()
    root = tempfile.mkdtemp(prefix="rollbook-keepers-")
    keepers = Keepers(root, given.runs, [name for name in given.sinks.split(",") if name])
    try:
        times = sorted(keepers.launch_ms)
        print(f"{given.runs} runs; launch: median {times[len(times) // 2]:.1f} ms, longest {times[-1]:.1f} ms")
        time.sleep(5)
        _show("idle", keepers)
        keepers.log(200)
        time.sleep(3)
        _show("logging, with sinks", keepers)
        time.sleep(10)
        _show("after a host row", keepers)
    finally:
        keepers.end()
        shutil.rmtree(root, ignore_errors=True)


def _show(what: str, keepers: Keepers) -> None:
    before, began = keepers.cpu_seconds(), time.perf_counter()
    time.sleep(5)
    per_second = (keepers.cpu_seconds() - before) / (time.perf_counter() - began)
    rss, private, together = keepers.memory()
    share = 100 * per_second / len(keepers.states)
    print(
        f"{what:22} RSS {rss:5.1f} MiB, private {private:5.1f} MiB each; together {together:6.0f} MiB; "
        f"{share:.2f} % of a core each"
    )


if __name__ == "__main__":
    main()
