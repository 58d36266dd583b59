"""Where a segment may be mapped into memory, and creating mapped files.

A store into a mapped page without a disk block is SIGBUS, which kills the training. Allocating blocks in advance
(`posix_fallocate`) prevents this only if the file system never moves an allocated block, so not on copy-on-write ones.
Segments are therefore mapped on the file systems below and written with `pwrite` on all others.
"""

from __future__ import annotations

import errno
import mmap
import os

from rollbook.system.files import is_folder, real_path
from rollbook.system.guard import tolerating

SAFE = frozenset({"ext2", "ext3", "ext4", "xfs", "tmpfs"})
_POPULATE_WRITE = 23  # MADV_POPULATE_WRITE, Linux 5.14; Python has no name for it


def is_mappable(folder: str) -> bool:
    """Whether allocated blocks stay in place on the file system of `folder`.

    True for ext2/3/4, xfs, tmpfs, and overlay if its upper layer is on one of them and visible here. Unknown ones give
    False. `ROLLBOOK_MMAP=0` in the environment turns mapping off.
    """
    if os.environ.get("ROLLBOOK_MMAP") == "0" or not hasattr(os, "posix_fallocate"):
        return False
    with tolerating(OSError, ValueError, IndexError):
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            mounts = [line.split() for line in file]
        return _safe(real_path(folder), mounts, depth=0)
    return False


def _safe(folder: str, mounts: list[list[str]], depth: int) -> bool:
    if depth > 2:
        return False
    device = os.stat(folder).st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for fields in reversed(mounts):  # the last mount on a mount point applies
        if fields[2] != wanted:
            continue
        dash = fields.index("-")
        kind = fields[dash + 1]
        if kind in SAFE:
            return True
        if kind == "overlay":
            options = dict(part.partition("=")[::2] for part in fields[dash + 3].split(","))
            upper = options.get("upperdir", "")
            return bool(upper) and is_folder(upper) and _safe(upper, mounts, depth + 1)
        return False
    return False


def create(path: str, header: bytes, size: int) -> mmap.mmap:
    """A new segment file of `size` bytes with all blocks allocated, starting with `header`, mapped and populated.

    Raises:
      OSError: no space (nothing is left behind), or the file cannot be created.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o666)
    try:
        try:
            os.posix_fallocate(fd, 0, size)
            written = os.pwrite(fd, header, 0)
            if written != len(header):
                raise OSError(errno.ENOSPC, "No space left on device", path)
            buffer = mmap.mmap(fd, size)
        except BaseException:
            os.unlink(path)  # a failed allocation may hold part of the space
            raise
    finally:
        os.close(fd)
    populate(buffer)
    return buffer


def populate(buffer: mmap.mmap, start: int = 0, length: int | None = None) -> None:
    """Fault in the pages of a range now, so that later stores need not. Does nothing if the kernel cannot."""
    with tolerating(OSError, AttributeError, ValueError):
        first = start - start % mmap.PAGESIZE
        end = len(buffer) if length is None else start + length
        if end > first:
            buffer.madvise(_POPULATE_WRITE, first, end - first)
