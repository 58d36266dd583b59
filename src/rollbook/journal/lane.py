"""A lane: streams, a frame log and one sequence of row numbers, used by one thread at a time."""

from __future__ import annotations

import os

from rollbook.journal import format as layout
from rollbook.journal.stream import Stream, pwrite

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Lane"]


class Lane:
    """See the module. `seq` is the last sequence number given out; it is advanced before anything is written.

    Attributes:
      scopes: scope id -> the keys as a call spells them -> their stream; what the hot path looks up.
      shapes: (scope id, full keys, types, deferred keys) -> stream.
    """

    __slots__ = ("_end", "_fd", "_folder", "_limit", "_number", "index", "scopes", "seq", "shapes")

    def __init__(self, folder: str, index: int, frame_file_bytes: int) -> None:
        self._folder, self.index, self._limit = folder, index, frame_file_bytes
        self.seq = 0
        self.scopes: dict[int, dict[tuple[Any, ...], Stream]] = {}
        self.shapes: dict[tuple[Any, ...], Stream] = {}
        self._fd, self._end, self._number = -1, 0, 0

    def append(self, payload: bytes, time: int) -> int:
        """Write one frame and return its sequence number.

        Raises:
          OSError: it could not be written; what was there before is untouched.
        """
        if self._fd < 0 or self._end > self._limit:
            self._next_file()
        seq = self.seq = self.seq + 1
        data = layout.pack_frame(seq, time, payload)
        start, self._end = self._end, self._end + len(data)
        try:
            if pwrite(self._fd, data, start) != len(data):
                raise OSError(28, "No space left on device")
        except BaseException as err:
            # After an interrupt the frame may be whole, and a reader may have seen it; then it stays.
            if isinstance(err, OSError) or os.pread(self._fd, len(data), start) != data:
                self._end = start
            raise
        return seq

    def drop(self, stream: Stream) -> None:
        """Close a stream and forget it."""
        self.shapes.pop(stream.shape, None)
        for known in self.scopes.values():
            for keys in [keys for keys, value in known.items() if value is stream]:
                del known[keys]
        stream.close()

    def close(self) -> None:
        """Leave all segments and close the frame file."""
        for stream in list(self.shapes.values()):
            stream.close()
        self.shapes.clear()
        self.scopes.clear()
        self._close_file()

    def forget(self) -> None:
        """Let go of everything in a forked child, leaving the parent's files alone."""
        for stream in self.shapes.values():
            stream.forget()
        self.shapes.clear()
        self.scopes.clear()
        self._close_file()

    def _close_file(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _next_file(self) -> None:
        path = os.path.join(self._folder, layout.frames_name(self.index, self._number))
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        fd = os.open(path, flags, 0o644)
        head = layout.frames_file_head(self.index, self._number)
        self._number += 1
        try:
            if pwrite(fd, head, 0) != len(head):
                raise OSError(28, "No space left on device", path)
        except BaseException:
            os.close(fd)
            os.unlink(path)
            raise
        self._close_file()
        self._fd, self._end = fd, len(head)
