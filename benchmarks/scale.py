"""Many writers of one run, and how many of their rows are lost, doubled or misplaced: the goal is none.

    python -m benchmarks.scale                         # light writers on three hosts, one of them without the folder
    python -m benchmarks.scale --actors 40             # and Ray actors on three nodes, with an interpreter that has Ray

Waves of processes write one run. Each notes how far it got after `log` has returned (in a file of its own, which
survives SIGKILL), and many are killed at a random moment. A third of them are on a host that does not see the run's
folder and keeps a part of it, which is joined at the end. With actors: one node is removed and one actor comes back.
Hosts are played on one machine by $ROLLBOOK_HOST.
"""

from __future__ import annotations

import argparse
import os
import pickle
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROWS = 400
_WAVE = 30

# One small parent a wave: it imports once and forks, as a launcher of ranks does.
_WAVE_OF_WRITERS = """
import os, pickle, struct, sys, time
from rollbook.cluster import ray  # noqa: F401
first, n, rows, folder = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
with open(os.path.join(folder, sys.argv[5]), "rb") as file:
    told = pickle.load(file)
children = []
for number in range(first, first + n):
    pid = os.fork()
    if pid:
        children.append(pid)
        continue
    run = told.writer()
    acknowledged = os.open(os.path.join(folder, f"acknowledged-{number}"), os.O_RDWR | os.O_CREAT)
    os.pwrite(acknowledged, struct.pack("<qq", 0, os.getpid()), 0)
    for i in range(rows):
        run.log({"who": float(number), "i": float(i)}, env_step=i)
        os.pwrite(acknowledged, struct.pack("<q", i + 1), 0)
        if i % 20 == 19:
            time.sleep(0.05)
    run.finish()
    os._exit(0)
for pid in children:
    os.waitpid(pid, 0)
"""


def main() -> int:
    """Run it and print the counts; 1 if any row was lost, doubled or misplaced."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--writers", type=int, default=500, help="light writers, over all waves")
    parser.add_argument("--kills", type=int, default=150, help="how many of them are killed")
    parser.add_argument("--actors", type=int, default=0, help="Ray actors at once; 0: without Ray")
    parser.add_argument("--folder", default=None, help="where; default: among temporary files; removed at the end")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rollbook-scale-", dir=chosen.folder) as folder:
        return _run(Path(folder), chosen.writers, chosen.kills, chosen.actors)


def _run(folder: Path, writers: int, kills: int, actors: int) -> int:
    import rollbook
    from rollbook.book.book import Book
    from rollbook.cluster.ray import Address, address
    from rollbook.repair.joining import join

    began, chance = time.monotonic(), random.Random(0)
    run = rollbook.init("scale", "over", dir=folder / "home", sinks=[])
    seen = address(run)
    unseen = Address("/folders/of/another/host" + seen.folder, seen.nonce, seen.page)
    for name, told in (("seen", seen), ("unseen", unseen)):
        (folder / name).write_bytes(pickle.dumps(told))
    acknowledged: dict[int, int] = {}
    killed = _waves(folder, writers, kills, chance)
    for path in folder.glob("acknowledged-*"):
        acknowledged[int(path.name.rpartition("-")[2])] = int.from_bytes(path.read_bytes()[:8], "little")
    if actors:
        acknowledged |= _actors(folder, actors, seen, unseen)
    logged = time.monotonic() - began
    run.finish()
    part = folder / "root-2" / "scale" / run.folder.name
    parts = [part] if part.is_dir() else []
    for own in parts:
        join(own, run.folder, force=True)
    book = Book(run.folder)
    table = book.metrics(["who", "i"])
    rows = Counter(zip(table["who"].to_pylist(), table["i"].to_pylist(), strict=True))
    steps = table["env_step"].to_pylist()
    misplaced = sum(step != i for step, i in zip(steps, table["i"].to_pylist(), strict=True))
    doubled = sum(n - 1 for n in rows.values())
    lost = sum((float(who), float(i)) not in rows for who, n in acknowledged.items() for i in range(n))
    died = sum(writer["state"] != "closed" for writer in book.writers)
    print(
        f"{len(acknowledged):,} writers ({died} of {len(book.writers)} ended without a goodbye, {killed} were killed), "
        f"{sum(acknowledged.values()):,} rows acknowledged, {len(rows):,} read: {lost} lost, {doubled} doubled, "
        f"{misplaced} misplaced; {logged:.0f} s of writing, {time.monotonic() - began:.0f} s in all"
    )
    return 1 if lost or doubled or misplaced else 0


def _waves(folder: Path, writers: int, kills: int, chance: random.Random) -> int:
    killed, first = 0, 0
    while first < writers:
        n = min(_WAVE, writers - first)
        host = (first // _WAVE) % 3
        environment = {
            **os.environ,
            "ROLLBOOK_HOST": f"host-{host}",
            "ROLLBOOK_DIR": str(folder / f"root-{host}"),
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        environment.pop("ROLLBOOK_RUN_ID", None)
        told = "unseen" if host == 2 else "seen"
        words = [sys.executable, "-c", _WAVE_OF_WRITERS, str(first), str(n), str(ROWS), str(folder), told]
        wave = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        victims = chance.sample(
            range(first, first + n), round(kills * (first + n) / writers) - round(kills * first / writers)
        )
        killed += _kill(folder, victims, wave, chance)
        wave.wait(300)
        first += n
    return killed


def _kill(folder: Path, victims: list[int], wave: subprocess.Popen[bytes], chance: random.Random) -> int:
    """Kill each of these once it has logged a random number of rows."""
    wanted = {number: chance.randrange(1, ROWS - 40) for number in victims}
    killed = 0
    while wanted and wave.poll() is None:
        for number, after in list(wanted.items()):
            try:
                data = (folder / f"acknowledged-{number}").read_bytes()
            except FileNotFoundError:
                continue
            if len(data) == 16 and int.from_bytes(data[:8], "little") >= after:
                try:
                    os.kill(int.from_bytes(data[8:], "little"), signal.SIGKILL)
                    killed += 1
                except ProcessLookupError:
                    pass
                del wanted[number]
        time.sleep(0.005)
    return killed


def _actors(folder: Path, actors: int, seen: Any, unseen: Any) -> dict[int, int]:
    """Actors on three nodes; one is killed and comes back, one node is removed. {who: rows that were acknowledged}."""
    import ray
    from ray.cluster_utils import Cluster

    small = {"include_dashboard": False, "object_store_memory": 80 * 1024**2}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, **small})
    try:
        nodes = []
        for host in range(3):
            own = {
                "ROLLBOOK_HOST": f"host-{host}",
                "ROLLBOOK_DIR": str(folder / f"root-{host}"),
                "PYTHONPATH": os.pathsep.join(sys.path),
            }
            nodes.append(cluster.add_node(num_cpus=4, resources={f"host{host}": 1000}, env_vars=own, **small))
        ray.init(address=cluster.address, log_to_driver=False, configure_logging=False)
        cluster.wait_for_nodes()

        @ray.remote(num_cpus=0)
        class Sampler:
            def __init__(self, told: Any, who: int) -> None:
                self.run, self.who, self.done = told.writer(), who, 0

            def sample(self, n: int) -> int:
                for _ in range(n):
                    self.run.log({"who": float(self.who), "i": float(self.done)}, env_step=self.done)
                    self.done += 1
                return self.done

            def pid(self) -> int:
                return os.getpid()

        made = {}
        for n in range(actors):
            host, who = n % 3, 100_000 + n
            told = unseen if host == 2 else seen
            made[who] = Sampler.options(resources={f"host{host}": 1}, max_restarts=1 if n == 0 else 0).remote(told, who)
        acknowledged = {who: int(ray.get(actor.sample.remote(ROWS), timeout=300)) for who, actor in made.items()}
        os.kill(ray.get(made[100_000].pid.remote()), signal.SIGKILL)  # it comes back, as a new writer that begins at 0
        cluster.remove_node(nodes[1], allow_graceful=False)
        for n in range(actors):
            if n % 3 == 0 and n:
                acknowledged[100_000 + n] = int(ray.get(made[100_000 + n].sample.remote(50), timeout=120))
        return acknowledged
    finally:
        ray.shutdown()
        cluster.shutdown()


if __name__ == "__main__":
    sys.exit(main())
