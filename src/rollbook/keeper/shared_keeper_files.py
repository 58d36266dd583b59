"""Where the shared keeper of a user and host is found, and which runs it looks after: files, no socket.

    <runtime folder>/<key>/keeper.lock     held (flock) by the keeper while it works; names the keeper
    <runtime folder>/<key>/starting        touched when a trainer starts the keeper: a hundred trainers start one
    <runtime folder>/<key>/runs/<hash>     the entry of a run: names its folder; replaced or touched to wake the keeper

The runtime folder is $ROLLBOOK_RUNTIME_DIR, else $XDG_RUNTIME_DIR/rollbook, else rollbook-<uid> in the folder for
temporary files; only the user can access it. The key covers everything that a keeper shares with its trainer:
permissions, interpreter and packages, credentials. Trainers that differ in any of these have different keepers. Kept
light: `launch` imports it in the training process.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import time
import zlib

from rollbook.schema.finished import keeper_file
from rollbook.schema.run_files import RunFile
from rollbook.system.files import is_folder, make_folders, read_json, try_lock, unlock
from rollbook.system.liveness import boot_id, identity, is_alive, pid_namespace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

MODE_VARIABLE = "ROLLBOOK_KEEPER"
"""host (the default): one keeper for all runs of this user and host that may share one; run: one for each run."""

_MATTERS = (
    "AWS_",
    "AZURE_",
    "GOOGLE_",
    "GCE_",
    "GCS_",
    "CLOUDSDK_",
    "SSL_",
    "ROLLBOOK_",
    "LD_",
    "CUDA_",
    "NVIDIA_",
    "HIP_",
    "ROCR_",  # which devices the host rows describe
)
_DOES_NOT = frozenset(
    {"ROLLBOOK_DIR", "ROLLBOOK_RUN_ID", "ROLLBOOK_RUN_PID", "ROLLBOOK_PROJECT", "ROLLBOOK_KEEPER_PATH", MODE_VARIABLE}
)
_STARTING_SECONDS = 3.0
_OLD_SECONDS = 7 * 86_400.0


def may_share(run_folder: str) -> bool:
    """Whether a run may share a keeper: all its sinks are our file sinks, and its rules are ours.

    Services keep state in the process, and foreign code may do anything: those runs have a separate keeper.
    """
    if os.name != "posix" or os.environ.get(MODE_VARIABLE) == "run":
        return False
    plan = keeper_file(run_folder, RunFile.PLAN)
    from rollbook.health import are_ours
    from rollbook.sinks import are_files

    sinks, rules = plan.get("sinks"), plan.get("rules")
    return are_files(sinks if isinstance(sinks, list) else []) and are_ours(rules if isinstance(rules, list) else [])


def shared_keeper() -> SharedKeeper | None:
    """The shared keeper of this process; None if none is possible because no folder belongs to this user alone."""
    root = os.environ.get("ROLLBOOK_RUNTIME_DIR", "")
    if not root:
        own = os.environ.get("XDG_RUNTIME_DIR", "")
        if own and is_folder(own) and os.access(own, os.W_OK):
            root = os.path.join(own, "rollbook")
        else:
            root = os.path.join(os.environ.get("TMPDIR") or "/tmp", f"rollbook-{os.getuid()}")
    try:
        make_folders(root, mode=0o700)
        about = os.lstat(root)
        if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & 0o022:
            return None  # others could wake it, or put runs there
        return SharedKeeper(os.path.join(root, _key()))
    except OSError:
        return None


def _key() -> str:
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    variables = sorted(
        (name, value)
        for name, value in os.environ.items()
        if name not in _DOES_NOT and (name.startswith(_MATTERS) or name.lower().endswith("_proxy") or name == "HOME")
    )
    parts = [
        os.geteuid(),
        os.getegid(),
        sorted(os.getgroups()),
        _umask(),
        boot_id(),
        pid_namespace(),
        _namespace("mnt"),
        _namespace("net"),
        _groups_of_processes(),
        _processors(),
        sys.executable,
        sys.version,
        package,
        _age(package),
        sys.path,
        variables,
    ]
    text = json.dumps(parts, default=repr).encode("utf-8", "backslashreplace")
    # It reveals no secret, and only this user can read it.
    return f"{zlib.crc32(text):08x}{zlib.adler32(text[::-1]):08x}"


def _umask() -> str:
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            return next((line.split()[1] for line in file if line.startswith("Umask:")), "")
    except OSError:
        return ""


def _namespace(kind: str) -> str:
    try:
        return str(os.stat(f"/proc/self/ns/{kind}").st_ino)
    except OSError:
        return ""


def _groups_of_processes() -> str:
    """The control groups of this process (a batch job, a container): each is limited and ended as a whole."""
    try:
        with open("/proc/self/cgroup", encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _processors() -> list[int]:
    """The processors that this process may use: a keeper runs where its trainer does."""
    try:
        return sorted(os.sched_getaffinity(0))
    except (OSError, AttributeError):
        return []


def _age(package: str) -> int:
    """Changes when the package is installed again under the same path."""
    try:
        return os.stat(os.path.join(package, "_version.py")).st_mtime_ns
    except OSError:
        return 0


class SharedKeeper:
    """One keeper and its runs, as files.

    Args:
      folder: where they are.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._entries = os.path.join(folder, "runs")
        self._lock_path = os.path.join(folder, "keeper.lock")
        self._fd = -1

    # -- in the training process

    def announce(self, run_folder: str) -> str:
        """Ask for a run to be looked after, and wake the keeper if there is one. Returns the path of the run's entry.

        Raises:
          OSError: it cannot be written.
        """
        make_folders(self._entries, mode=0o700)
        entry = self.entry_of(run_folder)
        temporary = f"{entry}.{os.urandom(4).hex()}.tmp"
        with open(temporary, "wb") as file:
            file.write(os.fsencode(os.path.abspath(run_folder)))
        os.replace(temporary, entry)
        self.wake()
        return entry

    def entry_of(self, run_folder: str) -> str:
        """The path of a run's entry."""
        name = os.fsencode(os.path.abspath(run_folder))
        return os.path.join(self._entries, f"{zlib.crc32(name):08x}{zlib.adler32(name[::-1]):08x}")

    def wake(self) -> bool:
        """Wake the keeper. False if there is none."""
        holder = self.keeper()
        if holder is None:
            return False
        import signal

        try:
            os.kill(int(holder["pid"]), signal.SIGUSR1)
        except (OSError, KeyError, TypeError, ValueError):
            return False
        return True

    def keeper(self) -> dict[str, Any] | None:
        """The living process that holds the lock, if any."""
        try:
            fd = os.open(self._lock_path, os.O_RDWR)
        except OSError:
            return None
        try:
            if try_lock(fd, shared=True):
                return None
        finally:
            unlock(fd)
            os.close(fd)
        holder = read_json(self._lock_path)
        return holder if holder and is_alive(holder) is not False else None

    def may_start(self) -> bool:
        """Whether this process is to start the keeper: no other has just done so. Notes that it does."""
        path = os.path.join(self.folder, "starting")
        try:
            if 0 <= time.time() - os.stat(path).st_mtime < _STARTING_SECONDS:
                return False
        except OSError:
            pass
        try:
            with open(path, "wb"):
                os.utime(path)
        except OSError:
            return False
        return True

    # -- in the keeper

    def acquire(self) -> bool:
        """Become its keeper; False if there is one.

        Raises:
          OSError: the lock cannot be made.
        """
        make_folders(self._entries, mode=0o700)
        fd = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        if not try_lock(fd):
            os.close(fd)
            return False
        os.ftruncate(fd, 0)
        os.pwrite(fd, json.dumps(identity()).encode(), 0)
        self._fd = fd
        try:
            os.unlink(os.path.join(self.folder, "starting"))  # if we die, the next one may start at once
        except FileNotFoundError:
            pass
        return True

    def release(self) -> None:
        """Release the lock. The file stays: otherwise a process that has just opened it would hold a lock that others
        cannot see."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.ftruncate(fd, 0)
            unlock(fd)
            os.close(fd)

    def remove_old(self) -> None:
        """Remove the folders of other environments (a past job, a removed venv) that had no runs for a week."""
        root = os.path.dirname(self.folder)
        for name in os.listdir(root):
            other = SharedKeeper(os.path.join(root, name))
            try:
                if time.time() - os.stat(other._entries).st_mtime > _OLD_SECONDS:
                    other._remove()
            except OSError:
                continue  # in use, not a keeper's, or removed by another keeper

    def _remove(self) -> None:
        fd = os.open(self._lock_path, os.O_RDWR)
        try:
            if try_lock(fd):
                os.rmdir(self._entries)  # fails if there is an entry
                for name in {"keeper.lock", "starting", "log"}.intersection(os.listdir(self.folder)):
                    os.unlink(os.path.join(self.folder, name))
                os.rmdir(self.folder)
        finally:
            os.close(fd)

    def entries(self) -> Iterator[tuple[str, tuple[int, int], str]]:
        """(path, stamp, run folder) of every entry; the stamp changes when a trainer replaces or touches it."""
        try:
            with os.scandir(self._entries) as found:
                paths = [each.path for each in found if not each.name.endswith(".tmp")]
        except OSError:
            return
        for path in paths:
            try:
                about = os.stat(path)
                with open(path, "rb") as file:
                    yield path, (about.st_ino, about.st_mtime_ns), os.fsdecode(file.read(65536))
            except OSError:
                continue
