"""A file of 4 MiB that is deleted when the disk is full: sealing needs space before it frees any."""

from __future__ import annotations

import os

from rollbook.keeper.own_files import keeper_folder
from rollbook.system.guard import tolerating

_BYTES = 4 * 1024 * 1024


class Ballast:
    """Holds data/keeper/ballast while there is room for it.

    Args:
      run_folder: the run's folder.
    """

    def __init__(self, run_folder: str) -> None:
        self._folder = keeper_folder(run_folder)
        self.path = os.path.join(self._folder, "ballast")

    def free_bytes(self) -> int | None:
        """Free space on the run's disk; None if unknown."""
        with tolerating(OSError, AttributeError):
            stat = os.statvfs(self._folder)
            return stat.f_bavail * stat.f_frsize
        return None

    def tight(self) -> bool:
        """Whether there is less free space than the ballast takes."""
        free = self.free_bytes()
        return free is not None and free < _BYTES

    def hold(self) -> None:
        """Make the file, if it is missing and there is ample space. Never takes the last bytes of a disk."""
        free = self.free_bytes()
        if free is None or free < 16 * _BYTES or not hasattr(os, "posix_fallocate"):
            return
        with tolerating(OSError) as missed:
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
        if missed:
            return
        try:
            with tolerating(OSError) as full:
                if os.fstat(fd).st_size < _BYTES:
                    os.posix_fallocate(fd, 0, _BYTES)
            if full:
                self.give_up()
        finally:
            os.close(fd)

    def give_up_if_tight(self) -> bool:
        """Remove the file if the disk is nearly full. Returns whether it was."""
        if self.tight():
            self.give_up()
            return True
        return False

    def give_up(self) -> None:
        """Remove the file."""
        with tolerating(OSError):
            os.unlink(self.path)
