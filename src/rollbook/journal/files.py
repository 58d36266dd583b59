"""Reading the files of a journal without mapping and without changing them.

A reader that maps a file dies when somebody truncates it, so everything is read with `pread`. `segments` knows the
rows, `frame_files` the frames, `writers` whose they are.
"""

from __future__ import annotations

import os
from contextlib import contextmanager

from rollbook.ground.files import open_regular
from rollbook.ground.foreign import tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

__all__ = ["BLOCK", "JournalFile"]

BLOCK = 1024 * 1024
"""Bytes read at once."""


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
