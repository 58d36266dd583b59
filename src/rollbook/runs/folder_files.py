"""Files of a folder of runs, in its .rollbook/: one process writes such a file at a time."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rollbook.system.files import is_folder, try_lock, unlock

FOLDER = ".rollbook"
_PATIENCE = 2.0
"""Seconds to wait for another process that writes the same file; then it is written without the lock."""


@contextmanager
def alone_at(path: str) -> Iterator[None]:
    """Inside the block, no other process writes this file.

    Raises:
      OSError: its folder cannot be written.
    """
    folder = os.path.dirname(path)
    if not is_folder(os.path.dirname(folder)):
        raise FileNotFoundError(f"{os.path.dirname(folder)} is not a folder")
    os.makedirs(folder, exist_ok=True)
    fd = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o644)
    try:
        until = time.monotonic() + _PATIENCE
        while try_lock(fd) is False and time.monotonic() < until:
            time.sleep(0.01)
        yield
    finally:
        unlock(fd)
        os.close(fd)
