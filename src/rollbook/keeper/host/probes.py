"""Probes of the machine: processor, memory, disk, load, the trainer's process tree, GPUs.

    probe = Host(folder="runs/cartpole/ppo-k3v9x2ab", pids=lambda: [trainer_pid])
    probe()     # {"host/cpu_percent": 31.0, "host/memory_percent": …, "host/process/rss_bytes": …, "host/gpu/0/…": …}

A probe knows no run: it returns numbers, and callers ask it on a timer. Values that a machine lacks or hides are
missing from the answer. On Linux only files of /proc and /sys and the driver's library are needed; elsewhere `psutil`
is used if it is installed. Percentages of processes count one core as 100.
"""

from __future__ import annotations

import os
import time

from rollbook.system.files import exists, is_folder
from rollbook.system.guard import handled_by

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import ModuleType
    from typing import Any

    from rollbook.protocols import Probe


share_seconds = 0.0
"""How long values of the whole machine are reused for other runs. A keeper of many runs sets it."""

_known: dict[str, tuple[float, object]] = {}


def _shared(what: str, look: Callable[[], object]) -> Any:
    """A recent result of the call, or a new one."""
    if not share_seconds:
        return look()
    now = time.monotonic()
    known = _known.get(what)
    if known is None or now - known[0] >= share_seconds:
        known = _known[what] = (now, look())
    return known[1]


class Host:
    """All probes that work on this machine, as one.

    Args:
      folder: a folder on the disk whose space is reported.
      pids: returns the processes whose trees are added up; called each time.
      extra: further probes. One that raises is left out of this answer, and after three times in a row permanently.
    """

    def __init__(
        self,
        folder: str,
        pids: Callable[[], Iterable[int]] = lambda: (),
        *,
        extra: Sequence[Probe] = (),
    ) -> None:
        from rollbook.keeper.host.gpu import gpu_probe

        self._probes: list[Probe] = [Cpu(), Memory(), Load(), Disk(folder), ProcessTree(pids)]
        gpu = gpu_probe()
        if gpu is not None:
            self._probes.append(gpu)
        self._probes.extend(extra)
        self._failures: dict[int, int] = {}

    def __call__(self) -> Mapping[str, float]:
        """Everything that can be read now. The first answer lacks rates, which need two measurements."""
        readings: dict[str, float] = {}
        for probe in list(self._probes):
            with handled_by(self._failed, probe):
                readings.update(probe())
                self._failures.pop(id(probe), None)
        return readings

    def _failed(self, probe: Probe, _err: Exception) -> None:
        """Stop asking a probe that failed three times in a row."""
        failures = self._failures[id(probe)] = self._failures.get(id(probe), 0) + 1
        if failures >= 3:
            self._probes.remove(probe)


class Cpu:
    """How busy all cores together were since the last call, in percent."""

    def __init__(self, proc: str = "/proc") -> None:
        self._path = f"{proc}/stat"
        self._last = self._read()

    def __call__(self) -> Mapping[str, float]:
        """{"host/cpu_percent": 0 to 100}; empty if unknown."""
        last, now = self._last, _shared(f"cpu:{self._path}", self._read)
        if last is None or now is None:
            self._last = now
            return {}
        busy, total = now[0] - last[0], now[1] - last[1]
        if total <= 0:
            return {}
        self._last = now
        return {"host/cpu_percent": min(100.0, max(0.0, 100.0 * busy / total))}

    def _read(self) -> tuple[float, float] | None:
        line = _read(self._path).partition("\n")[0].split()
        if len(line) >= 8 and line[0] == "cpu":
            ticks = [float(t) for t in line[1:9]]  # user nice system idle iowait irq softirq steal; guests are in user
            idle = ticks[3] + ticks[4]
            return sum(ticks) - idle, sum(ticks)
        psutil = _psutil()
        if psutil is None:
            return None
        times = psutil.cpu_times()
        total = float(sum(times))
        return total - float(times.idle), total


class Memory:
    """Main memory, and the container's limit if one is set."""

    def __init__(self, proc: str = "/proc", cgroup: str = "/sys/fs/cgroup") -> None:
        self._path, self._cgroup = f"{proc}/meminfo", cgroup

    def __call__(self) -> Mapping[str, float]:
        """Bytes in use and available, percent in use; `host/container_memory_*` if a limit is set."""
        readings: dict[str, float] = _shared(f"memory:{self._path}:{self._cgroup}", self._look)
        return readings

    def _look(self) -> dict[str, float]:
        readings = self._machine()
        limit, used = _number(_read(f"{self._cgroup}/memory.max")), _number(_read(f"{self._cgroup}/memory.current"))
        if limit and used is not None:
            readings["host/container_memory_used_bytes"] = used
            readings["host/container_memory_percent"] = 100.0 * used / limit
        return readings

    def _machine(self) -> dict[str, float]:
        lines = (line.split() for line in _read(self._path).splitlines())
        kib = {words[0]: float(words[1]) for words in lines if len(words) > 1}
        total, available = kib.get("MemTotal:", 0.0) * 1024, kib.get("MemAvailable:", 0.0) * 1024
        if not total:
            psutil = _psutil()
            if psutil is None:
                return {}
            memory = psutil.virtual_memory()
            total, available = float(memory.total), float(memory.available)
        return {
            "host/memory_used_bytes": total - available,
            "host/memory_available_bytes": available,
            "host/memory_percent": 100.0 * (total - available) / total,
        }


class Load:
    """How many processes are running or ready to run, as an average over one minute."""

    def __call__(self) -> Mapping[str, float]:
        """{"host/load": …}; empty on systems without it."""
        try:
            return {"host/load": os.getloadavg()[0]}
        except (OSError, AttributeError):
            return {}


class Disk:
    """Space on the disk that holds `folder`, for an ordinary user."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def __call__(self) -> Mapping[str, float]:
        """Bytes free, and percent in use."""
        statvfs = getattr(os, "statvfs", None)
        if statvfs is not None:
            stat = statvfs(self._folder)
            free, size = float(stat.f_bavail * stat.f_frsize), float(stat.f_blocks * stat.f_frsize)
        else:
            import shutil

            usage = shutil.disk_usage(self._folder)
            free, size = float(usage.free), float(usage.total)
        percent = {"host/disk_percent": 100.0 * (size - free) / size} if size else {}
        return {"host/disk_free_bytes": free, **percent}


class ProcessTree:
    """Memory and processor time of some processes and all their descendants, added up.

    Resident memory counts pages that two of them share twice, as `top` does.

    Args:
      pids: the processes.
      proc: the folder with the system's files about processes.
      clock: seconds, monotonic.
    """

    def __init__(
        self,
        pids: Callable[[], Iterable[int]],
        proc: str = "/proc",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pids, self._proc, self._clock = pids, proc, clock
        self._seconds: dict[tuple[int, str], float] = {}
        self._looked = 0.0

    def __call__(self) -> Mapping[str, float]:
        """Resident bytes, percent of one core since the last call, number of processes; empty if all have gone."""
        roots = list(self._pids())
        now, usage = self._clock(), self._read(roots)
        if not usage:
            self._seconds = {}
            return {}
        used = sum(seconds - self._seconds.get(who, 0.0) for who, (seconds, _) in usage.items())
        answer = {
            "host/process/rss_bytes": sum(rss for _, rss in usage.values()),
            "host/process/count": float(len(usage)),
        }
        if self._seconds and now > self._looked:
            answer["host/process/cpu_percent"] = max(0.0, 100.0 * used / (now - self._looked))
        self._seconds = {who: seconds for who, (seconds, _) in usage.items()}
        self._looked = now
        return answer

    def _read(self, roots: list[int]) -> dict[tuple[int, str], tuple[float, float]]:
        """(pid, start time) -> (seconds of processor time, resident bytes), for the whole tree."""
        if not is_folder(f"{self._proc}/self"):
            return _tree_by_psutil(roots)
        ticks, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
        usage: dict[tuple[int, str], tuple[float, float]] = {}
        todo, seen = list(roots), set(roots)
        children = self._children(roots)
        while todo:
            pid = todo.pop()
            fields = _read(f"{self._proc}/{pid}/stat").rpartition(")")[2].split()
            if len(fields) > 21:
                seconds = (int(fields[11]) + int(fields[12])) / ticks
                usage[pid, fields[19]] = (seconds, float(int(fields[21]) * page))
            for child in children(pid):
                if child not in seen:
                    seen.add(child)
                    todo.append(child)
        return usage

    def _children(self, roots: list[int]) -> Callable[[int], Iterable[int]]:
        """Returns a function that lists the children of a process: from the kernel's list, or else from the parents of
        all processes."""
        if any(exists(f"{self._proc}/{pid}/task/{pid}/children") for pid in roots):
            return self._listed_children
        by_parent: dict[int, list[int]] = {}
        for name in os.listdir(self._proc):
            if name.isdigit():
                fields = _read(f"{self._proc}/{name}/stat").rpartition(")")[2].split()
                if len(fields) > 1:
                    by_parent.setdefault(int(fields[1]), []).append(int(name))
        return lambda pid: by_parent.get(pid, ())

    def _listed_children(self, pid: int) -> Iterable[int]:
        try:
            threads = os.listdir(f"{self._proc}/{pid}/task")
        except OSError:
            return
        for thread in threads:  # a child belongs to the thread that started it
            yield from map(int, _read(f"{self._proc}/{pid}/task/{thread}/children").split())


def _tree_by_psutil(roots: list[int]) -> dict[tuple[int, str], tuple[float, float]]:
    psutil = _psutil()
    usage: dict[tuple[int, str], tuple[float, float]] = {}
    if psutil is None:
        return usage
    for root in roots:
        try:
            top = psutil.Process(root)
            for process in [top, *top.children(recursive=True)]:
                times = process.cpu_times()
                who = (process.pid, str(process.create_time()))
                usage[who] = (float(times.user + times.system), float(process.memory_info().rss))
        except psutil.Error:
            continue
    return usage


def _psutil() -> ModuleType | None:
    try:
        import psutil
    except ImportError:
        return None
    loaded: ModuleType = psutil
    return loaded


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _number(text: str) -> float | None:
    text = text.strip()
    return float(text) if text.isdigit() else None
