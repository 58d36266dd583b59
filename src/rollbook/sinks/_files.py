"""Shared by all sinks that append to files: complete writes, positions, and cutting back.

A sink decides which bytes go to the end of which file; this module decides when. Files are opened for each `write` and
closed after it, so nothing is held while a run is idle. If a folder inside the run was moved away, it is made again.
"""

from __future__ import annotations

import os

from rollbook.system.files import make_folders
from rollbook.system.guard import tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rollbook.protocols import Row, RunInfo

_BINARY = getattr(os, "O_BINARY", 0)  # Windows would change line ends


class FileSink:
    """A sink whose output is one or more files below the run's folder that only grow at their end.

    `write` is all or nothing. If one file cannot take its bytes (a full disk), all files and the format's memory go
    back to their former state. The error is raised, so that the same rows can be offered again.

    Subclasses define `_owned`, `_render`, and if they have memory `_remember`, `_recall` and `_reread`.
    """

    accepts: frozenset[type] = frozenset()

    def __init__(self) -> None:
        self._folder = ""
        self._lengths: dict[str, int] = {}
        self._ready = False

    def open(self, run: RunInfo) -> None:
        """Find the files that an earlier attempt left. Nothing is created before the first row."""
        self._folder = run.path
        self._ready = False
        self._lengths = {path: size for path in self._owned() if (size := self._size(path))}
        self._opened(run)

    def write(self, rows: Sequence[Row]) -> None:
        """Append these rows. When this returns, the operating system has their bytes."""
        self._get_ready()
        before = self._remember()
        parts: dict[str, list[bytes]] = {}
        try:
            for path, data in self._render(rows):
                parts.setdefault(path, []).append(data)
            self._append(parts)
        except BaseException:
            self._recall(before)
            raise

    def close(self) -> None:
        """Nothing to do: no file is open between writes."""

    def position(self) -> dict[str, int]:
        """File (relative to the run's folder) -> its length."""
        return dict(self._lengths)

    def truncate(self, position: Mapping[str, int]) -> None:
        """Cut this sink's files back to `position`; files that it does not name are emptied.

        A file that is shorter than its position stays unchanged. Names in `position` that are not this sink's files are
        ignored.
        """
        for path, length in list(self._lengths.items()):
            target = max(0, min(length, int(position.get(path, 0))))
            if target < length:
                os.truncate(self._at(path), target)
            if target:
                self._lengths[path] = target
            else:
                del self._lengths[path]
        self._ready = True
        self._reread()

    def _opened(self, run: RunInfo) -> None:
        """Take what is needed from `run`."""

    def _owned(self) -> Iterable[str]:
        """The files of this sink that exist, relative to the run's folder, with "/" between the parts."""
        raise TypeError(f"{type(self).__name__} does not say which files are its own")

    def _render(self, rows: Sequence[Row]) -> Iterator[tuple[str, bytes]]:
        """What `rows` add to which files. Must depend only on the rows, not on how many came in one call."""
        raise TypeError(f"{type(self).__name__} does not say what it writes")

    def _whole(self, path: str, size: int) -> int:
        """How many bytes of a file without a position are complete. Here: up to its last line end."""
        with open(path, "rb") as file:
            end = size
            while end:
                start = max(0, end - 65536)
                file.seek(start)
                newline = file.read(end - start).rfind(b"\n")
                if newline >= 0:
                    return start + newline + 1
                end = start
        return 0

    def _remember(self) -> object:
        """A token that `_recall` can go back to."""
        return None

    def _recall(self, token: object) -> None:
        """Go back to `token`."""

    def _reread(self) -> None:
        """Restore the format's memory from the files in their present state."""

    def _get_ready(self) -> None:
        if self._ready:
            return
        for path, length in list(self._lengths.items()):  # not cut back before: a torn end would spoil the next row
            whole = self._whole(self._at(path), length)
            if whole < length:
                os.truncate(self._at(path), whole)
                self._lengths[path] = whole
            if not whole:
                del self._lengths[path]
        self._ready = True
        self._reread()

    def _at(self, path: str) -> str:
        return os.path.join(self._folder, path)

    def _size(self, path: str) -> int:
        with tolerating(FileNotFoundError):
            return os.stat(self._at(path)).st_size
        return 0

    def _append(self, parts: Mapping[str, Sequence[bytes]]) -> None:
        lengths: dict[str, int] = {}
        try:
            for path, data in parts.items():
                self._append_one(path, b"".join(data), lengths)
        except BaseException:
            for path, length in lengths.items():
                os.truncate(self._at(path), length)
            raise
        for path, length in lengths.items():
            self._lengths[path] = length + sum(map(len, parts[path]))

    def _append_one(self, path: str, data: bytes, lengths: dict[str, int]) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | _BINARY | getattr(os, "O_CLOEXEC", 0)
        target = self._at(path)
        with tolerating(FileNotFoundError) as missed:
            handle = os.open(target, flags, 0o666)
        if missed:
            make_folders(os.path.dirname(target), inside=self._folder)
            handle = os.open(target, flags, 0o666)
        try:
            lengths[path] = os.fstat(handle).st_size
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(handle, rest) :]
        finally:
            os.close(handle)
