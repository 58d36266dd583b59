"""The keeper's files inside a run: its reports, its log, and its lock.

Kept light: `launch` imports it in the training process.
"""

from __future__ import annotations

import json
import os
import time
import weakref

from rollbook.schema.run_files import RunFile
from rollbook.system.files import is_same_file, read_json, try_lock, unlock, write_json
from rollbook.system.guard import ours, tolerating
from rollbook.system.liveness import host_name, identity, is_alive, machine, pid_namespace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def keeper_folder(run_folder: str) -> str:
    """`data/keeper` of a run, an absolute path."""
    return os.path.join(os.path.abspath(run_folder), RunFile.KEEPER)


def host_and_namespace() -> str:
    """A name for what one keeper looks after: this host and pid namespace (a keeper sees no processes of others).

    Machine ids distinguish two hosts with the same name.
    """
    host = "".join(c if c.isalnum() or c in "-_." else "-" for c in host_name()) or "host"
    return ".".join(part for part in (host, pid_namespace(), machine()) if part)


def state_path(run_folder: str) -> str:
    """state.json of this host's keeper: who it is and how far it got."""
    return os.path.join(keeper_folder(run_folder), f"state-{host_and_namespace()}.json")


def troubles_path(run_folder: str) -> str:
    """The file in which a keeper reports sinks that get nothing: {name: {"words": …, "failures": n}}."""
    return os.path.join(keeper_folder(run_folder), RunFile.TROUBLES)


def sweep(folder: str) -> None:
    """Remove temporary files of a keeper that was killed while it replaced a file."""
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        with tolerating(OSError):
            if name.endswith(".tmp") and time.time() - os.stat(path).st_mtime > 60:
                os.unlink(path)


class Lock:
    """At most one keeper per run, host and pid namespace: a lock on data/keeper/lock-<host>, held while it works.

    The file names the holder. A lock whose holder is known to be dead is taken over: the process of a keeper thread may
    have forked a child without Python's hooks, and that child keeps the old descriptor open while it lives.
    """

    def __init__(self, run_folder: str) -> None:
        self.path = os.path.join(keeper_folder(run_folder), f"lock-{host_and_namespace()}")
        self._fd = -1

    def acquire(self) -> bool:
        """Take the lock if no living process holds it. Does not wait.

        Raises:
          OSError: the file cannot be made.
        """
        for _ in range(8):
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                taken = try_lock(fd)
                if taken is None:  # a file system without locks: rely on the name in the file
                    taken = not _held_by_other(self.path)
                if not taken:
                    if not _known_dead(self.path):
                        return False
                    os.unlink(self.path)
                    continue
                if not is_same_file(fd, self.path):  # its last owner removed it in between
                    continue
                os.ftruncate(fd, 0)
                os.pwrite(fd, json.dumps(identity()).encode(), 0)
                self._fd, fd = fd, -1
                _held.add(self)
                return True
            except ours(FileNotFoundError):
                continue
            finally:
                if fd >= 0:
                    os.close(fd)
        return False

    def held(self) -> bool:
        """Whether the lock is still ours: it was not removed or replaced."""
        return self._fd >= 0 and is_same_file(self._fd, self.path)

    def release(self) -> None:
        """Remove the file and release the lock. Calling it twice is fine."""
        if self._fd < 0:
            return
        with tolerating(OSError):
            if self.held():
                os.unlink(self.path)
        if self._fd >= 0:
            unlock(self._fd)
        self.forget()

    def forget(self) -> None:
        """Close the descriptor only: what a forked child does."""
        _held.discard(self)
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def taken(self) -> bool:
        """Whether a living process holds it now. Changes nothing."""
        with tolerating(OSError) as missed:
            fd = os.open(self.path, os.O_RDWR)
        if missed:
            return False
        try:
            free = try_lock(fd, shared=True)
            if free is None:
                return _held_by_other(self.path)
            return not free and not _known_dead(self.path)
        finally:
            unlock(fd)
            os.close(fd)


def _known_dead(path: str) -> bool:
    holder = read_json(path)
    return bool(holder) and is_alive(holder) is False


def _held_by_other(path: str) -> bool:
    holder = read_json(path)
    return bool(holder) and holder.get("pid") != os.getpid() and is_alive(holder) is not False


_held: weakref.WeakSet[Lock] = weakref.WeakSet()
"""The locks that this process holds; a forked child closes its copies of their descriptors."""


def _forget_in_child() -> None:
    for lock in list(_held):
        lock.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)


class Reports:
    """state.json, troubles.json and the log of one run's keeper. A file is replaced only when its content changes.

    Args:
      run_folder: the run's folder.
    Attributes:
      signal_name: the signal that wakes the keeper, "" if none does.
      entry: the file by which a keeper of many runs knows this one, "" in a keeper of one run.
    """

    def __init__(self, run_folder: str) -> None:
        self._folder = run_folder
        self.signal_name = self.entry = ""
        self._state: dict[str, object] = {}
        self._troubles = read_json(troubles_path(run_folder))  # troubles of an earlier keeper are over

    def state(self, phase: str, complete: Iterable[str]) -> None:
        """Report how far the keeper is: `finish()` in the training process reads it.

        Raises:
          OSError: the file cannot be written; the next call tries again.
        """
        state = {**identity(), "phase": phase, "complete": sorted(complete), "signal": self.signal_name}
        if self.entry:
            state["entry"] = self.entry
        if state != self._state:
            write_json(state_path(self._folder), state)
            self._state = state

    @property
    def has_troubles(self) -> bool:
        """Whether the last report had any trouble."""
        return bool(self._troubles)

    def troubles(self, troubles: Mapping[str, object]) -> None:
        """Report which sinks get nothing, and what else is not done: the training process and `rollbook show` read it.

        Raises:
          OSError: the file cannot be written; the next call tries again.
        """
        if troubles != self._troubles:
            write_json(troubles_path(self._folder), troubles)
            self._troubles = dict(troubles)

    def note(self, _cause: str, words: str) -> None:
        """Write a line to data/keeper/log."""
        line = f"{time.strftime('%Y-%m-%d %H:%M:%S')} {words}\n"
        path = os.path.join(keeper_folder(self._folder), "log")
        with tolerating(OSError), open(path, "a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(line)
