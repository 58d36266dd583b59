"""Runs a worker as a fresh process and accounts for its whole tree: CPU, memory, bytes on disk, time to the last exit.

The caller becomes the subreaper of what it starts, so a helper process that was re-parented (rollbook's keeper,
wandb-core) comes back here and its CPU time counts.
"""

from __future__ import annotations

import compileall
import contextlib
import ctypes
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.lines import FORMER

HERE = Path(__file__).resolve().parent
SOURCES = HERE.parent / "src"
_PR_SET_CHILD_SUBREAPER = 36


def become_subreaper() -> None:
    """Let orphans of what we start come back to us (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def compile_sources() -> None:
    """Write bytecode as an installer does; else each measured process compiles what changed since the last one that
    could keep it."""
    for place in (SOURCES, HERE):
        compileall.compile_dir(place, quiet=2)


def environment(home: str, sources: Path = SOURCES) -> dict[str, str]:
    """A quiet, offline environment with a home of its own and one thread per library."""
    return {
        **os.environ,
        "HOME": home,
        "XDG_CACHE_HOME": os.path.join(home, ".cache"),
        "ROLLBOOK_RUNTIME_DIR": os.path.join(home, "runtime"),  # a keeper that nobody else shares
        "PYTHONPATH": os.pathsep.join((str(sources), str(HERE.parent))),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONWARNINGS": "ignore",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "WANDB_MODE": "offline",
        "WANDB_SILENT": "true",
        "WANDB_ERROR_REPORTING": "false",
        "DO_NOT_TRACK": "1",
    }


def descendants(pid: int) -> list[int]:
    """All processes below `pid`."""
    found, todo = [], [pid]
    while todo:
        parent = todo.pop()
        try:
            for task in os.listdir(f"/proc/{parent}/task"):
                children = Path(f"/proc/{parent}/task/{task}/children").read_text().split()
                found += map(int, children)
                todo += map(int, children)
        except OSError:
            continue
    return found


@contextlib.contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in the block once it has lasted so long, and again each ten seconds until it ends."""

    def ring(*_: object) -> None:
        raise TimeoutError(f"not done after {seconds / 60:.1f} minutes")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001), 10.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def end_like_ctrl_c() -> None:
    """Let SIGTERM and SIGHUP end this program as Ctrl-C does: what it started ends, and what it measured is said."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)


def end_children() -> None:
    """Kill and reap what a row has left, so that the next one has the machine for itself."""
    for pid in descendants(os.getpid()):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


def bytes_in(folder: str | Path) -> int:
    """The bytes of all files below a folder."""
    return sum(path.lstat().st_size for path in Path(folder).rglob("*") if path.is_file())


class Job:
    """One worker process. `wait_all` reaps it.

    Attributes:
      former: the sources of another commit, which the logger `FORMER` uses.
    """

    former: ClassVar[Path] = SOURCES

    def __init__(self, root: str, arguments: list[str], out: str | None = None) -> None:
        self.home = tempfile.mkdtemp(prefix="home-", dir=root)
        self.out = out or tempfile.mkdtemp(prefix="out-", dir=root)
        self.result = os.path.join(self.home, "result.json")
        self.error = os.path.join(self.home, "stderr.txt")
        is_former = FORMER in arguments[1:2]
        arguments = ["rollbook" if word == FORMER else word for word in arguments]
        command = [sys.executable, "-m", "benchmarks.worker", *arguments, "--out", self.out, "--result", self.result]
        with open(self.error, "w") as stderr:
            self.process = subprocess.Popen(
                command,
                env=environment(self.home, self.former if is_former else SOURCES),
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
            )

    def figures(self) -> dict[str, Any]:
        """What the worker wrote."""
        try:
            with open(self.result, encoding="utf-8") as file:
                return dict(json.load(file))
        except (OSError, ValueError):
            raise RuntimeError(f"worker failed: {Path(self.error).read_text()[-2000:]}") from None

    def clean(self) -> None:
        """Remove its folders."""
        shutil.rmtree(self.home, ignore_errors=True)
        shutil.rmtree(self.out, ignore_errors=True)


def wait_all(jobs: list[Job], orphan_seconds: float = 40.0) -> tuple[float, float]:
    """Wait for the jobs and everything they left behind; (CPU seconds, peak MiB of the trees' memory)."""
    peak = [0.0]
    stop = threading.Event()
    page = os.sysconf("SC_PAGE_SIZE")

    def sample() -> None:
        while not stop.wait(0.05):
            total = 0
            for pid in descendants(os.getpid()):
                try:
                    total += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * page
                except (OSError, IndexError):
                    continue
            peak[0] = max(peak[0], total / 2**20)

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    cpu, left, ended = 0.0, {job.process.pid: job for job in jobs}, time.perf_counter()
    while True:
        try:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            break
        if pid == 0:
            if not left and time.perf_counter() - ended > orphan_seconds:
                for orphan in descendants(os.getpid()):
                    os.kill(orphan, 9)
            time.sleep(0.003)
            continue
        cpu += usage.ru_utime + usage.ru_stime
        job = left.pop(pid, None)
        if job is not None:
            job.process.returncode = os.waitstatus_to_exitcode(status)
            ended = time.perf_counter()
    stop.set()
    thread.join()
    return cpu, peak[0]


def run(root: str, arguments: list[str], *, keep: bool = False) -> dict[str, Any]:
    """One worker to its end; its figures and cpu_seconds, peak_mib, bytes, out."""
    job = Job(root, arguments)
    cpu, peak = wait_all([job])
    figures = job.figures()
    figures.update(cpu_seconds=cpu, peak_mib=peak, bytes=bytes_in(job.out), out=job.out)
    if not keep:
        job.clean()
    return figures


def python(root: str, *words: str, sources: Path = SOURCES) -> str:
    """The last line that a program prints, run with a home of its own below `root` and rollbook's `sources`.

    Raises:
      RuntimeError: it failed; with the end of what it said.
    """
    home = tempfile.mkdtemp(prefix="home-", dir=root)
    done = subprocess.run([sys.executable, *words], env=environment(home, sources), capture_output=True, text=True)
    shutil.rmtree(home, ignore_errors=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)[:200]} failed: {done.stderr[-2000:]}")
    return done.stdout.strip().splitlines()[-1]


def median(values: list[float]) -> float:
    """The median."""
    return statistics.median(values)
