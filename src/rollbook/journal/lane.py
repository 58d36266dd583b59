"""A lane: streams, a frame log and one sequence of row numbers, used by one thread at a time."""

from __future__ import annotations

import errno
import os

from rollbook.journal import format as layout
from rollbook.journal.stream import Stream, pwrite
from rollbook.system.files import pread
from rollbook.system.guard import is_foreign, ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.journal.channel import Shape

NO_DESCRIPTOR = (errno.ENFILE, errno.EMFILE)
"""ENFILE, EMFILE."""


class Receipt:
    """Tells a caller whether a frame was written, also after an exception interrupted the call.

    Attributes:
      seq: the frame's sequence number; 0 until it is known to be in the file.
      lane: the lane of the last try.
    """

    __slots__ = ("lane", "seq")

    def __init__(self) -> None:
        self.seq = 0
        self.lane: Lane | None = None


class _FrameLog:
    """An open frame file. `trying` is the frame that is being appended: (start, size, seq, receipt)."""

    __slots__ = ("end", "fd", "trying")

    def __init__(self, fd: int, end: int) -> None:
        self.fd, self.end = fd, end
        self.trying: tuple[int, int, int, Receipt | None] | None = None

    def close(self) -> None:
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)


class Lane:
    """See the module. `seq` is the last assigned sequence number; it is advanced before anything is written.

    As in a stream, an exception may arrive between any two instructions; the next call continues from there.

    Attributes:
      scopes: scope id -> the keys as spelled by a call -> their stream; used by the hot path.
      shapes: (scope id, full keys, types, deferred keys) -> stream.
    """

    __slots__ = ("_folder", "_limit", "_log", "_number", "index", "scopes", "seq", "shapes")

    def __init__(self, folder: str, index: int, frame_file_bytes: int) -> None:
        self._folder, self.index, self._limit = folder, index, frame_file_bytes
        self.seq = 0
        self.scopes: dict[int, dict[tuple[object, ...], Stream]] = {}
        self.shapes: dict[Shape, Stream] = {}
        self._log: _FrameLog | None = None
        self._number = 0

    @property
    def has_frame_log(self) -> bool:
        """Whether a frame can be appended without another file descriptor."""
        return self._log is not None

    def append(self, payload: bytes, time: int, receipt: Receipt | None = None) -> int:
        """Write one frame and return its sequence number.

        Args:
          receipt: records the frame even if an exception interrupts this function; see `settle`.
        Raises:
          OSError: it could not be written; earlier data is unchanged.
        """
        log = self._log
        if log is not None and log.trying is not None:
            self.settle()
        if log is None or log.end > self._limit:
            log = self._next_file()
        seq = self.seq = self.seq + 1
        data = layout.pack_frame(seq, time, payload)
        if receipt is not None:
            receipt.lane = self
        start = log.end
        log.trying = (start, len(data), seq, receipt)
        if pwrite(log.fd, data, start) != len(data):
            raise OSError(errno.ENOSPC, "No space left on device")
        log.end = start + len(data)
        if receipt is not None:
            receipt.seq = seq
        log.trying = None
        return seq

    def settle(self) -> None:
        """Settle a frame whose writing was interrupted: a whole one stays, because readers may have seen it."""
        log = self._log
        if log is None or log.trying is None:
            return
        start, size, seq, receipt = log.trying
        if _is_whole(log.fd, start, size, seq):
            log.end = start + size
            if receipt is not None:
                receipt.seq = seq
        elif hasattr(os, "ftruncate"):
            os.ftruncate(log.fd, log.end)  # remove the torn frame
        log.trying = None

    def drop(self, stream: Stream) -> None:
        """Close a stream and forget it."""
        stream.close()
        for known in self.scopes.values():
            for keys in [keys for keys, value in known.items() if value is stream]:
                known.pop(keys, None)
        self.shapes.pop(stream.shape, None)

    def close(self) -> None:
        """Leave all segments and close the frame file. Can be repeated."""
        self.scopes.clear()
        for shape, stream in list(self.shapes.items()):
            stream.close()
            self.shapes.pop(shape, None)
        try:
            self.settle()
        finally:
            self._close_log()

    def forget(self) -> None:
        """Release everything in a forked child, without a change to the parent's files."""
        for stream in self.shapes.values():
            stream.forget()
        self.shapes.clear()
        self.scopes.clear()
        self._close_log()

    def _close_log(self) -> None:
        log, self._log = self._log, None
        if log is not None:
            log.close()

    def _next_file(self) -> _FrameLog:
        """Begin another frame file. Without a free descriptor, the open file continues to grow.

        The number is taken first, so that a file left by an interrupt is skipped.
        """
        before = self._log
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        while True:
            number = self._number
            self._number = number + 1
            path = os.path.join(self._folder, layout.frames_name(self.index, number))
            try:
                fd = os.open(path, flags, 0o666)
                break
            except ours(FileExistsError):
                pass
            except OSError as err:
                if before is not None and err.errno in NO_DESCRIPTOR and not is_foreign(err):
                    self._number = number
                    return before
                raise
        try:
            head = layout.frames_file_head(self.index, number)
            if pwrite(fd, head, 0) != len(head):
                raise OSError(errno.ENOSPC, "No space left on device", path)
        except BaseException:
            os.close(fd)
            os.unlink(path)
            raise
        log = self._log = _FrameLog(fd, len(head))
        if before is not None:
            before.close()
        return log


def _is_whole(fd: int, start: int, size: int, seq: int) -> bool:
    """Whether the frame with this size and sequence number is at `start`."""
    import zlib

    data = pread(fd, size, start)
    if len(data) < size:
        return False
    length, crc, written_seq, _time = layout.FRAME_HEAD.unpack_from(data)
    head_size = layout.FRAME_HEAD.size
    return bool(written_seq == seq and length == size - head_size and crc == zlib.crc32(data[8:]))
