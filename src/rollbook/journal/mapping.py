"""Where a segment may be mapped into memory, and making the files that are.

A store into a mapped page that the file system cannot back is SIGBUS, which kills the training. Block allocation made
ahead (`posix_fallocate`) prevents that only where the file system never moves an allocated block: not on copy-on-write
ones. So segments are mapped on the file systems below and written with `pwrite` everywhere else.
"""

from __future__ import annotations

import errno
import mmap
import os

from rollbook.ground.files import is_folder, real_path
from rollbook.ground.foreign import tolerating

__all__ = ["create", "is_mappable"]

SAFE = frozenset({"ext2", "ext3", "ext4", "xfs", "tmpfs"})
_POPULATE_WRITE = 23  # MADV_POPULATE_WRITE, Linux 5.14; Python has no name for it


def is_mappable(folder: str, mountinfo: str = "/proc/self/mountinfo") -> bool:
    """Whether allocated blocks stay where they are on the file system of `folder`.

    Known to be so: ext2/3/4, xfs, tmpfs, and overlay whose upper layer lies on one of them and can be seen from here.
    Unknown means no. `ROLLBOOK_MMAP=0` in the environment turns mapping off.
    """
    if os.environ.get("ROLLBOOK_MMAP") == "0" or not hasattr(os, "posix_fallocate"):
        return False
    with tolerating(OSError, ValueError, IndexError):
        with open(mountinfo, encoding="utf-8", errors="surrogateescape") as file:
            mounts = [line.split() for line in file]
        return _safe(real_path(folder), mounts, depth=0)
    return False


def _safe(folder: str, mounts: list[list[str]], depth: int) -> bool:
    if depth > 2:
        return False
    device = os.stat(folder).st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for fields in reversed(mounts):  # the last mount on a point is the one in force
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
    """A new segment file of `size` bytes with all its blocks allocated, begun with `header`, mapped and populated.

    Raises:
      OSError: no space (nothing is left behind), or the file cannot be made.
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
            os.unlink(path)  # a failed allocation may have taken part of the space
            raise
    finally:
        os.close(fd)
    populate(buffer)
    return buffer


def populate(buffer: mmap.mmap, start: int = 0, length: int | None = None) -> None:
    """Fault the pages of a range in now, so that no later store has to; where the kernel cannot, nothing happens."""
    with tolerating(OSError, AttributeError, ValueError):
        first = start - start % mmap.PAGESIZE
        end = len(buffer) if length is None else start + length
        if end > first:
            buffer.madvise(_POPULATE_WRITE, first, end - first)
