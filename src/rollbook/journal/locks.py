"""Locks on files: at most one holder among the processes of a host, let go of by the system when the holder dies.

    with PageLock(run_folder):
        ...                         # read run.json, judge, replace it

A page lock is held for milliseconds, by whoever changes run.json without being its writer: a process that continues
the run, the keeper of one that crashed, `rollbook repair`.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["PageLock", "try_lock"]

_PAUSE = 0.005


def try_lock(fd: int, *, shared: bool = False) -> bool | None:
    """True: locked. False: somebody else has it. None: this file system (or system) knows no locks."""
    try:
        import fcntl
    except ModuleNotFoundError:  # Windows
        return _try_lock_windows(fd)
    try:
        fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _try_lock_windows(fd: int) -> bool | None:
    try:
        import msvcrt
    except ModuleNotFoundError:
        return None
    lock: Any = msvcrt
    try:
        os.lseek(fd, 1 << 30, os.SEEK_SET)  # far behind the text, which others may read
        lock.locking(fd, lock.LK_NBLCK, 1)
    except OSError:
        return False
    return True


class PageLock:
    """Keeps others from replacing a run's run.json between our look at it and our own writing.

    Never raises and never waits for long: where no lock can be had (a file system without locks, a folder that cannot
    be written, a holder that hangs), things go on without it.

    Args:
      run_folder: the run's folder; None holds nothing.
      seconds: how long to wait for another holder.
    """

    def __init__(self, run_folder: str | None, seconds: float = 2.0) -> None:
        self._path = None if run_folder is None else os.path.join(run_folder, "data", "page.lock")
        self._seconds = seconds
        self._fd = -1

    def __enter__(self) -> PageLock:
        if self._path is None:
            return self
        try:
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError:
            return self
        until = time.monotonic() + self._seconds
        while try_lock(self._fd) is False and time.monotonic() < until:
            time.sleep(_PAUSE)
        return self

    def __exit__(self, *_exc: object) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
