"""The files of a journal: their names, and reading them without mapping and without changing them.

A reader that maps a file dies when somebody truncates it, so everything is read with `pread`. `segments` knows the
rows, `frame_files` the frames, `writers` whose they are.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager

from rollbook.errors import Damaged
from rollbook.ground.foreign import is_foreign, tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

__all__ = ["BLOCK", "JournalFile", "names_in", "open_regular", "parse_name", "pread"]

BLOCK = 1024 * 1024
"""Bytes read at once."""


def _seek_and_read(fd: int, size: int, offset: int) -> bytes:
    os.lseek(fd, offset, os.SEEK_SET)
    return os.read(fd, size)


_pread = getattr(os, "pread", _seek_and_read)


def pread(fd: int, size: int, offset: int) -> bytes:
    """`size` bytes at `offset`, fewer only at the end of the file."""
    data: bytes = _pread(fd, size, offset)
    if len(data) in (size, 0):
        return data
    parts = [data]
    have = len(data)
    while have < size:
        data = _pread(fd, size - have, offset + have)
        if not data:
            break
        parts.append(data)
        have += len(data)
    return b"".join(parts)


def open_regular(path: str | os.PathLike[str], flags: int = os.O_RDONLY) -> int:
    """A descriptor of a regular file. A pipe is not waited for, a device not opened for long, a link not followed.

    Raises:
      FileNotFoundError: it is gone. Damaged: it is no regular file. OSError: it cannot be opened.
    """
    for name in ("O_CLOEXEC", "O_BINARY", "O_NONBLOCK", "O_NOFOLLOW"):
        flags |= getattr(os, name, 0)
    try:
        fd = os.open(path, flags)
    except FileNotFoundError as raised:
        if is_foreign(raised):
            raise
        raise
    except OSError as err:
        if is_foreign(err):
            raise
        if err.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR, errno.EMLINK):
            raise Damaged(f"{os.fspath(path)} is a link or no file at all; it is not opened") from None
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise Damaged(f"{os.fspath(path)} is not a regular file; it is not opened")
    return fd


class JournalFile:
    """A file that is open for reading. Not for several threads at once.

    Raises:
      FileNotFoundError: it was unlinked, so what it held is in Parquet. Damaged: it is a link, a pipe or a device.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._fd = -1
        self._fd = open_regular(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file; twice is fine."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        with tolerating(OSError, AttributeError):
            self.close()

    @contextmanager
    def closed_on_failure(self) -> Iterator[None]:
        """For what is read while it is opened: a file that cannot be read is not left open."""
        try:
            yield
        except BaseException:
            self.close()
            raise


def parse_name(name: str) -> tuple[str, int, int, int] | None:
    """("seg", lane, stream, slot) or ("log", lane, 0, number) of a journal file's name; None for other files."""
    parts = name.split(".")
    with tolerating(ValueError):
        if len(parts) == 4 and parts[3] == "seg" and parts[0][:1] == "L" and parts[1][:1] == "S":
            return "seg", int(parts[0][1:]), int(parts[1][1:]), int(parts[2])
        if len(parts) == 4 and parts[3] == "log" and parts[0][:1] == "L" and parts[1] == "frames":
            return "log", int(parts[0][1:]), 0, int(parts[2])
    return None


def names_in(folder: str) -> list[str]:
    """The names in a folder, sorted; none if there is no folder."""
    with tolerating(OSError):
        return sorted(os.listdir(folder))
    return []
