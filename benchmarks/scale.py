"""Many writers of one run, and how many of their rows are lost, doubled or misplaced: the goal is none.

    python -m benchmarks.scale                        # light writers, Ray actors, a store that is away for two minutes
    python -m benchmarks.scale --actors 0             # without Ray
    python -m benchmarks.scale --no-store             # into folders alone

Waves of processes write one run, on three hosts played by $ROLLBOOK_HOST; two of them do not see the run's folder, keep
parts of it, and ship them. Each notes how far it got after `log` has returned, in a file of its own which survives
SIGKILL, and many are killed at a random moment. Beside them actors log on three nodes; one of them is killed twice and
comes back, a second run loses its driver, one node goes, and in the end its host vanishes with its disk. The store is
moto behind a proxy that fails, resets, cuts and loses answers, and is away for two minutes. What was acknowledged is
then looked for in the store. With an interpreter that has Ray and moto (`scripts/framework_env.py rllib`).
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ROWS = 400
_WAVE = 30
_HOSTS = 3
_AWAY = (20.0, 120.0)
"""When the store goes away after the first wave has begun, and for how long, in seconds."""
_CALM = 75.0
"""After that the store answers for so long before a host vanishes: a keeper's longest pause and a shipment."""
_INTERVAL = 20.0
_FAULTS = {"busy": 0.05, "reset": 0.03, "cut": 0.03, "lost": 0.05}
_MARK = "ROLLBOOK_SCALE"
_PATIENT = {
    "RAY_raylet_start_wait_time_s": "120",
    "RAY_health_check_timeout_ms": "60000",
    "RAY_health_check_failure_threshold": "20",
    "RAY_gcs_server_request_timeout_seconds": "120",
    "RAY_DISABLE_IMPORT_WARNING": "1",
}
"""Forty processes on two cores leave Ray's own parts waiting."""

# One small parent a wave: it imports once and forks, as a launcher of ranks does.
_WAVE_OF_WRITERS = """
import os, pickle, sys, time
from benchmarks.scale import Acknowledged
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
    acknowledged = Acknowledged(folder, number)
    for i in range(rows):
        run.log({"who": float(number), "i": float(i)}, env_step=i)
        acknowledged.note(i + 1)
        if i % 20 == 19:
            time.sleep(0.05)
    run.finish()
    os._exit(0)
for pid in children:
    os.waitpid(pid, 0)
"""

_DRIVER = """
import os, sys
import ray, rollbook
from benchmarks.scale import sampler
from rollbook.run.ray import Address, address
cluster, root, folder, remote = sys.argv[1:5]
ray.init(address=cluster, log_to_driver=False, configure_logging=False)
run = rollbook.init("scale", "driver", dir=root, sinks=[], remote=remote or None)
seen = address(run)
unseen = Address("/folders/of/another/host" + seen.folder, seen.nonce, seen.page)
actors = [sampler(ray, 200_000 + n, [seen, unseen][n], f"host{n}", folder, 0) for n in range(2)]
ray.get([actor.sample.remote(300) for actor in actors])
print(run.folder, flush=True)
os.kill(os.getpid(), 9)
"""


class Acknowledged:
    """How far a writer got and who it is, in a file that outlives it.

    Args:
      folder: where these files are.
      who: the number of the writer; a life that follows another takes the next free one, a million further.
    """

    def __init__(self, folder: str, who: int) -> None:
        while True:
            try:
                flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
                self._fd = os.open(os.path.join(folder, f"acknowledged-{who}"), flags)
                break
            except FileExistsError:
                who += 1_000_000
        self.who = who
        os.pwrite(self._fd, (0).to_bytes(8, "little") + os.getpid().to_bytes(8, "little"), 0)

    def note(self, n: int) -> None:
        """`log` has returned for so many rows."""
        os.pwrite(self._fd, n.to_bytes(8, "little"), 0)


def sampler(ray: Any, who: int, told: Any, node: str, folder: str, restarts: int) -> Any:
    """An actor on a node that logs as many rows as it is asked to."""

    @ray.remote(num_cpus=0)
    class Sampler:
        def __init__(self, told: Any, who: int, folder: str) -> None:
            self.run, self.acknowledged, self.done = told.writer(), Acknowledged(folder, who), 0

        def sample(self, n: int) -> int:
            for _ in range(n):
                row = {"who": float(self.acknowledged.who), "i": float(self.done)}
                self.run.log(row, env_step=self.done)
                self.done += 1
                self.acknowledged.note(self.done)
                if self.done % 20 == 0:
                    time.sleep(0.02)
            return self.done

        def pid(self) -> int:
            return os.getpid()

        def finish(self) -> None:
            self.run.finish()

    return Sampler.options(resources={node: 1}, max_restarts=restarts).remote(told, who, folder)


def rows(context: Any) -> Iterator[Any]:
    """The line of the table: without Ray and without a store, which take minutes; the program has both."""
    from benchmarks import harness
    from benchmarks.lines import Line

    options = ["--writers", f"{context.size(510)}", "--kills", f"{context.size(153)}", "--actors", "0", "--no-store"]
    words = [sys.executable, "-m", "benchmarks.scale", "--folder", context.root, *options]
    done = subprocess.run(words, env=harness.environment(context.root), stdout=subprocess.PIPE, text=True)
    counts = json.loads(done.stdout.splitlines()[-1])  # it ends with 1 if rows were lost: the line says so
    wrong = counts["lost"] + counts["doubled"] + counts["misplaced"]
    note = (
        f"of {counts['acknowledged']:,} acknowledged; {counts['writers']} writers, {counts['killed']} killed; "
        f"{counts['peak MiB'] / 1024:.1f} GiB, {counts['all s']} s"
    )
    yield Line("F", "over test: rows lost, doubled or misplaced", wrong, "rows", goal=0, note=note)


def main() -> int:
    """Run it and print the counts; 1 if any row was lost, doubled or misplaced."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--writers", type=int, default=510, help="light writers, over all waves")
    parser.add_argument("--kills", type=int, default=153, help="how many of them are killed")
    parser.add_argument("--actors", type=int, default=42, help="Ray actors at once; 0: without Ray")
    parser.add_argument("--no-store", action="store_true", help="no store, and so no outage")
    parser.add_argument("--away", type=float, default=_AWAY[1], help="seconds that the store is away")
    parser.add_argument("--folder", default=None, help="where; default: among temporary files; removed at the end")
    chosen = parser.parse_args()
    if chosen.actors and find_spec("ray") is None:
        parser.error("Ray is not installed here; --actors 0 goes without")
    if not chosen.no_store and (find_spec("moto") is None or find_spec("obstore") is None):
        parser.error("moto and obstore are not installed here; --no-store goes without")
    with tempfile.TemporaryDirectory(prefix="rollbook-scale-", dir=chosen.folder, ignore_cleanup_errors=True) as folder:
        over = _Over(Path(folder), chosen)
        try:
            counts = over.run()
        finally:
            over.close()
        print(json.dumps(counts))
        return 1 if counts["lost"] or counts["doubled"] or counts["misplaced"] else 0


class _Over:
    """The test."""

    def __init__(self, folder: Path, chosen: Any) -> None:
        self.folder, self.chosen = folder, chosen
        self.began = time.monotonic()
        self.over, self.vanished = threading.Event(), threading.Event()
        self.vanished_at = 0.0
        self.killed = self.actors_at_once = 0
        self.peak = 0.0
        self.cluster: Any = None
        self.store: Any = None
        self.proxy: Any = None
        self.remote = ""
        self.nodes: list[Any] = []
        self.made: dict[int, Any] = {}
        self.chance = random.Random(0)
        os.environ[_MARK] = str(folder)
        sys.path[:0] = [str(ROOT / "src"), str(ROOT)]  # an environment of frameworks does not hold rollbook
        os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:2])

    def report(self, words: str) -> None:
        sys.stderr.write(f"{time.monotonic() - self.began:6.1f} s  {words}\n")
        sys.stderr.flush()

    def run(self) -> dict[str, Any]:
        threading.Thread(target=self._watch_memory, daemon=True).start()
        if self.chosen.actors:
            self._start_cluster()
        if not self.chosen.no_store:
            self._start_store()
        import rollbook
        from rollbook.run.ray import Address, address

        run = rollbook.init("scale", "over", dir=self.folder / "home", sinks=[], remote=self.remote or None)
        self.seen = address(run)
        self.unseen = Address("/folders/of/another/host" + self.seen.folder, self.seen.nonce, self.seen.page)
        for name, told in (("seen", self.seen), ("unseen", self.unseen)):
            (self.folder / name).write_bytes(pickle.dumps(told))
        works: list[Any] = [self._events]
        if self.chosen.actors:
            self._start_actors()
            works.append(self._sample)
        threads = [threading.Thread(target=work) for work in works]
        for thread in threads:
            thread.start()
        driver = self._start_driver() if self.chosen.actors else None
        self._waves()
        self.over.set()
        for thread in threads:
            thread.join()
        driven = Path(driver.communicate(timeout=120)[0].split()[-1]) if driver is not None else None
        self.killed += driver is not None
        self._end_actors()
        logged = time.monotonic() - self.began
        self.report("writing is over")
        run.finish()
        return self._counts(run.folder, driven, logged)

    def close(self) -> None:
        if self.cluster is not None:
            import ray

            ray.shutdown()
            self.cluster.shutdown()
        if self.proxy is not None:
            self.proxy.close()
            self.store.close()
        for pid in _processes({_MARK: str(self.folder)}):
            if pid != os.getpid():
                _kill(pid)

    # -- what is there

    def _start_cluster(self) -> None:
        import ray
        from ray.cluster_utils import Cluster

        until = time.monotonic() + 60
        while os.getloadavg()[0] > 8 and time.monotonic() < until:  # its parts give each other up on a busy machine
            time.sleep(2.0)
        for name, value in _PATIENT.items():
            os.environ.setdefault(name, value)
        small = {"include_dashboard": False, "object_store_memory": 80 * 1024**2}
        for turn in range(3):
            try:
                self.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, **small})
                for host in range(_HOSTS):
                    own = {"ROLLBOOK_HOST": f"host-{host}", "ROLLBOOK_DIR": str(self.folder / f"root-{host}")}
                    place = {"resources": {f"host{host}": 1000}, "env_vars": {**self._environment(), **own}}
                    self.nodes.append(self.cluster.add_node(num_cpus=4, **place, **small))
                ray.init(address=self.cluster.address, log_to_driver=False, configure_logging=False)
                self.cluster.wait_for_nodes()
                break
            except Exception as err:
                self.report(f"Ray did not come up: {err}")
                if turn == 2:
                    raise
                ray.shutdown()
                if self.cluster is not None:
                    self.cluster.shutdown()
                self.nodes.clear()
        self.report(f"a head and {_HOSTS} nodes are up")

    def _environment(self) -> dict[str, str]:
        """What all processes have; the address of the store is known before there is one."""
        if "AWS_ENDPOINT_URL" not in os.environ and not self.chosen.no_store:
            import socket

            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self.port = probe.getsockname()[1]
            os.environ.update(
                AWS_ACCESS_KEY_ID="key",
                AWS_SECRET_ACCESS_KEY="secret",
                AWS_REGION="us-east-1",
                AWS_ALLOW_HTTP="true",
                AWS_ENDPOINT_URL=f"http://127.0.0.1:{self.port}",
                ROLLBOOK_CACHE=str(self.folder / "cache"),
            )
        return {
            name: value
            for name, value in os.environ.items()
            if name.startswith(("AWS_", "ROLLBOOK_", "PYTHON", "RAY_"))
        }

    def _start_store(self) -> None:
        sys.path.append(str(ROOT / "tests" / "support"))
        from stores import Moto, Proxy

        self._environment()
        self.store = Moto()
        self.proxy = Proxy(self.store.address, port=self.port)
        for name, chance in _FAULTS.items():
            setattr(self.proxy.faults, name, chance)
        self.remote = f"s3://{self.store.bucket('scale')}/lab"
        self.report("a store is up")

    def _start_actors(self) -> None:
        import ray

        for n in range(self.chosen.actors):
            host, who = n % _HOSTS, 100_000 + n
            told = self.unseen if host else self.seen
            restarts = 2 if n == 0 else 0
            self.made[who] = sampler(ray, who, told, f"host{host}", str(self.folder), restarts)
        pids = ray.get([actor.pid.remote() for actor in self.made.values()], timeout=300)
        self.actors_at_once = len(set(pids))
        self.report(f"{self.actors_at_once} actors at once")

    # -- what happens

    def _waves(self) -> None:
        first, host = 0, 0
        writers, kills = self.chosen.writers, self.chosen.kills
        while first < writers:
            n = min(_WAVE, writers - first)
            host = (host + 1) % (_HOSTS - self.vanished.is_set())
            own = {"ROLLBOOK_HOST": f"host-{host}", "ROLLBOOK_DIR": str(self.folder / f"root-{host}")}
            told = "unseen" if host else "seen"
            words = [sys.executable, "-c", _WAVE_OF_WRITERS, str(first), str(n), str(ROWS), str(self.folder), told]
            environment = {**os.environ, **own}
            environment.pop("ROLLBOOK_RUN_ID", None)
            with (self.folder / "waves").open("ab") as said:
                wave = subprocess.Popen(words, env=environment, stdout=said, stderr=said)
            (self.folder / f"host-of-{first}").write_text(f"{host} {n}")
            share = round(kills * (first + n) / writers) - round(kills * first / writers)
            self._kill_some(self.chance.sample(range(first, first + n), share), wave)
            wave.wait(300)
            first += n
            self.report(f"{first} light writers, {self.killed} killed")

    def _kill_some(self, victims: list[int], wave: subprocess.Popen[bytes]) -> None:
        """Kill each of these once it has logged a random number of rows."""
        wanted = {number: self.chance.randrange(1, ROWS - 40) for number in victims}
        while wanted and wave.poll() is None:
            for number, after in list(wanted.items()):
                try:
                    data = (self.folder / f"acknowledged-{number}").read_bytes()
                except FileNotFoundError:
                    continue
                if len(data) == 16 and int.from_bytes(data[:8], "little") >= after:
                    self.killed += _kill(int.from_bytes(data[8:], "little"))
                    del wanted[number]
            time.sleep(0.005)

    def _start_driver(self) -> Any:
        words = [sys.executable, "-c", _DRIVER, self.cluster.address, str(self.folder / "home"), str(self.folder)]
        return subprocess.Popen(
            [*words, self.remote], stdout=subprocess.PIPE, stderr=(self.folder / "driver").open("wb"), text=True
        )

    def _sample(self) -> None:
        """Rounds of the actors; the first of them is killed twice and goes on as another writer."""
        import ray

        turn = 0
        while not self.over.is_set() or not (self.vanished.is_set() or self.chosen.no_store):
            asked = [actor.sample.remote(60) for actor in self.made.values()]
            ray.wait(asked, num_returns=len(asked), timeout=60)
            if turn in (2, 6):
                with _told_later(ray):
                    self.killed += _kill(ray.get(self.made[100_000].pid.remote(), timeout=60))
            turn += 1
            time.sleep(3.0)

    def _events(self) -> None:
        """The store goes and comes back; then a host vanishes."""
        if self.chosen.no_store:
            return
        time.sleep(_AWAY[0])
        self.proxy.faults.away = True
        self.report("the store is away")
        time.sleep(self.chosen.away)
        self.proxy.faults.away = False
        self.report("the store is back")
        time.sleep(_CALM)
        lost = _HOSTS - 1
        self.vanished_at = time.time()
        self.vanished.set()
        for pid in _processes({_MARK: str(self.folder), "ROLLBOOK_HOST": f"host-{lost}"}):
            _kill(pid)
        root = self.folder / f"root-{lost}"
        if root.exists():
            root.rename(self.folder / "vanished")
        if self.cluster is not None:
            self.cluster.remove_node(self.nodes[lost], allow_graceful=False)
        self.report(f"host-{lost} has vanished with its disk")

    def _end_actors(self) -> None:
        if not self.chosen.actors:
            return
        import ray

        with _told_later(ray):
            ray.wait([actor.finish.remote() for actor in list(self.made.values())[::2]], timeout=60)
        cluster, self.cluster = self.cluster, None
        ray.shutdown()
        cluster.shutdown()

    # -- what is there in the end

    def _counts(self, home: Path, driven: Path | None, logged: float) -> dict[str, Any]:
        import rollbook
        from rollbook.book.book import Book
        from rollbook.book.repair.joining import join

        acknowledged = self._acknowledged()
        gone = self._of_the_vanished(acknowledged)
        folders = [path for path in (home, driven) if path is not None]
        folders += [path for host in range(1, _HOSTS) for path in (self.folder / f"root-{host}").glob("scale/*")]
        until = time.monotonic() + 240
        while self.remote and not all(map(_is_shipped, folders)) and time.monotonic() < until:
            time.sleep(0.5)
        shipped = time.monotonic() - self.began
        self.report(f"{sum(map(_is_shipped, folders))} of {len(folders)} folders are in the store")
        if self.remote:
            for name in _FAULTS:
                setattr(self.proxy.faults, name, 0.0)
            books = list(rollbook.open(self.remote))
        else:
            for part in folders[1 + (driven is not None) :]:
                join(part, home if part.name == home.name else driven or home, force=True)
            books = [Book(path) for path in (home, driven) if path is not None]
        rows: Counter[tuple[float, float]] = Counter()
        misplaced = died = writers = 0
        for book in books:
            table = book.metrics(["who", "i"])
            rows.update(zip(table["who"].to_pylist(), table["i"].to_pylist(), strict=True))
            steps = table["env_step"].to_pylist()
            misplaced += sum(step != i for step, i in zip(steps, table["i"].to_pylist(), strict=True))
            died += sum(writer["state"] != "closed" for writer in book.writers)
            writers += len(book.writers)
        missing = [(who, i) for who, n in acknowledged.items() for i in range(n) if (float(who), float(i)) not in rows]
        unshipped = {row for row in missing if row[0] in gone}
        return {
            "writers": len(acknowledged),
            "of which known to readers": writers,
            "ended without a goodbye": died,
            "killed": self.killed,
            "actors at once": self.actors_at_once,
            "acknowledged": sum(acknowledged.values()),
            "read": len(rows),
            "lost": len(missing) - len(unshipped),
            "doubled": sum(n - 1 for n in rows.values()),
            "misplaced": misplaced,
            "gone with the host that vanished": len(unshipped),
            "of which oldest, s": self._oldest(unshipped),
            "requests": dict(self.proxy.verbs()) if self.proxy is not None else {},
            "peak MiB": round(self.peak),
            "writing s": round(logged),
            "shipped s": round(shipped),
            "all s": round(time.monotonic() - self.began),
        }

    def _acknowledged(self) -> dict[int, int]:
        found = {}
        for path in self.folder.glob("acknowledged-*"):
            found[int(path.name.rpartition("-")[2])] = int.from_bytes(path.read_bytes()[:8], "little")
        return found

    def _of_the_vanished(self, acknowledged: dict[int, int]) -> set[int]:
        """The writers of the host that vanished."""
        if not self.vanished.is_set():
            return set()
        gone = {who for who in acknowledged if 100_000 <= who < 200_000 and who % _HOSTS == (100_000 + 2) % _HOSTS}
        for path in self.folder.glob("host-of-*"):
            host, n = map(int, path.read_text().split())
            if host == _HOSTS - 1:
                first = int(path.name.rpartition("-")[2])
                gone |= set(range(first, first + n))
        return gone

    def _oldest(self, unshipped: set[tuple[int, int]]) -> float:
        """How long before the host vanished the oldest row was logged that went with it."""
        from rollbook.book.book import Book

        oldest = self.vanished_at
        for part in (self.folder / "vanished").glob("scale/*"):
            table = Book(part).metrics(["who", "i"])
            times = table["time"].cast("int64").to_pylist()
            for who, i, at in zip(table["who"].to_pylist(), table["i"].to_pylist(), times, strict=True):
                if (int(who), int(i)) in unshipped:
                    oldest = min(oldest, at / 1e6)
        return round(self.vanished_at - oldest, 1)

    def _watch_memory(self) -> None:
        while True:
            own = {os.getpid(), *_processes({_MARK: str(self.folder)})}
            self.peak = max(self.peak, sum(map(_pss, own)))
            time.sleep(5.0)


class _told_later:
    """What an actor that is killed raises into its caller says nothing new."""

    def __init__(self, ray: Any) -> None:
        self.errors = (ray.exceptions.RayError,)

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, *rest: Any) -> bool:
        return kind is not None and issubclass(kind, self.errors)


def _is_shipped(folder: Path) -> bool:
    from rollbook.schema.addresses import backlog

    said = backlog(folder) or {}
    return bool(said.get("done") and said.get("final"))


def _processes(wanted: dict[str, str]) -> Iterator[int]:
    """Those that have these in their environment."""
    lines = {f"{name}={value}".encode() for name, value in wanted.items()}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if lines <= set((entry / "environ").read_bytes().split(b"\0")):
                    yield int(entry.name)
            except OSError:
                continue


def _pss(pid: int) -> float:
    """MiB."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0.0


def _kill(pid: int) -> int:
    try:
        os.kill(pid, signal.SIGKILL)
        return 1
    except ProcessLookupError:
        return 0


if __name__ == "__main__":
    sys.exit(main())
