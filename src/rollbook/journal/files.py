"""Reads the files of a journal without mapping and without changing them.

A reader that maps a file dies if another process truncates it, so everything is read with `pread`. `segments` handles
rows, `frame_files` frames, and `writers` their owners.
"""

from __future__ import annotations

import os
from contextlib import contextmanager

from rollbook.system.files import open_regular
from rollbook.system.guard import tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

BLOCK = 1024 * 1024
"""Bytes per read."""


class JournalFile:
    """A file open for reading. Not for several threads at once.

    Raises:
      FileNotFoundError: it was unlinked, so its content is in Parquet. Damaged: it is a link, a pipe or a device.
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
        """Close the file. A second call does nothing."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        with tolerating(OSError, AttributeError):
            self.close()

    @contextmanager
    def closed_on_failure(self) -> Iterator[None]:
        """Closes a file that was just opened if reading it fails."""
        try:
            yield
        except BaseException:
            self.close()
            raise
