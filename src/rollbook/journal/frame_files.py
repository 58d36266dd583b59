"""Reads the frames of one frame file, also while its writer appends."""

from __future__ import annotations

import os
import re
import zlib

from rollbook.errors import Damaged, NewerFormat
from rollbook.journal import format as layout
from rollbook.journal.files import BLOCK, JournalFile
from rollbook.journal.frames import decode
from rollbook.system.files import pread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


_PAYLOAD = re.compile(rb"(?:[\x80-\x8f]|\xde..)(?:\xa5table|\xa4mark|\xa4fill)", re.DOTALL)
"""How the payload of every frame begins. Used to find the next whole frame in a damaged file."""


class FrameFile(JournalFile):
    """One frame file. Open while in use; not for several threads at once.

    Attributes:
      lane, number: from the file's head.
      end: where the last `scan` or `frames` stopped: the end of the last whole frame.
      problems: (offset, text) of what was skipped because it is no whole frame, each once.
      BEGIN, HEAD: bytes of the file's head, and of the head of each frame.

    Raises:
      FileNotFoundError: it was unlinked, so its frames are in Parquet.
      Damaged, NewerFormat: not a frame file. `Damaged` also while a writer is creating it.
    """

    BEGIN, HEAD = layout.FRAMES_FILE_HEAD.size, layout.FRAME_HEAD.size

    def __init__(self, path: str | os.PathLike[str], time_offset: int = 0) -> None:
        super().__init__(path)
        self.time_offset = time_offset
        self.problems: list[tuple[int, str]] = []
        self.end = layout.FRAMES_FILE_HEAD.size
        with self.closed_on_failure():
            self._read_head()

    def _read_head(self) -> None:
        data = pread(self._fd, layout.FRAMES_FILE_HEAD.size, 0)
        if len(data) < layout.FRAMES_FILE_HEAD.size:
            raise Damaged(f"{self.path} has {len(data)} bytes, less than the head of a frame file; it was never begun")
        magic, version, self.lane, self.number = layout.FRAMES_FILE_HEAD.unpack(data)
        if magic != layout.FRAMES_MAGIC:
            raise Damaged(f"{self.path} does not begin with a frame file's magic bytes; found {magic!r}")
        if version > layout.VERSION:
            raise NewerFormat(
                f"{self.path} has format {version}; this rollbook reads up to {layout.VERSION}. Upgrade rollbook."
            )

    def scan(self, offset: int = 0) -> Iterator[tuple[int, int, bytes, int, int]]:
        """Whole frames from `offset` on, not decoded: (seq, unix ns, payload, start, end offset).

        Stops at a torn tail (`end` has the position). Bytes that are no whole frame are skipped and added to `problems`
        if a whole one follows them anywhere.
        """
        self.end = offset = max(offset, layout.FRAMES_FILE_HEAD.size)
        head_size = layout.FRAME_HEAD.size
        base, block = offset, pread(self._fd, BLOCK, offset)
        while True:
            at = offset - base
            if at + head_size > len(block):
                base, block, at = offset, pread(self._fd, BLOCK, offset), 0
                if len(block) < head_size:
                    return
            length, crc, seq, mono = layout.FRAME_HEAD.unpack_from(block, at)
            size = head_size + length
            if at + size > len(block):
                if length > layout.LARGEST_FRAME or offset + size > os.fstat(self._fd).st_size:
                    following = self._behind(offset)
                    if following is None:
                        return
                    offset = following
                    continue
                base, block, at = offset, pread(self._fd, max(BLOCK, size), offset), 0
                if len(block) < size:
                    return
            payload = block[at + head_size : at + size]
            if zlib.crc32(payload, zlib.crc32(block[at + 8 : at + head_size])) != crc or not seq:
                following = self._behind(offset)
                if following is None:
                    return
                offset = following
                continue
            self.end = offset + size
            yield seq, mono + self.time_offset, payload, offset, self.end
            offset = self.end

    def _behind(self, offset: int) -> int | None:
        """Where the next whole frame begins, if the bytes at `offset` are none; None if none follows."""
        data = pread(self._fd, max(0, os.fstat(self._fd).st_size - offset), offset)
        for found in _PAYLOAD.finditer(data, self.HEAD + 1):
            start = found.start() - self.HEAD
            if self._frame(offset + start) is not None:
                if self._frame(offset) is not None:
                    return offset  # it was being written
                text = f"{start} damaged bytes at byte {offset} are no whole record; they were left out"
                if (offset, text) not in self.problems:
                    self.problems.append((offset, text))
                return offset + start
        return None

    def frames(self) -> Iterator[tuple[int, int, dict[str, object], int]]:
        """All whole frames: (seq, unix ns, payload, end offset). Undecodable ones go to `problems`."""
        for seq, time_ns, data, start, end in self.scan(0):
            try:
                payload = decode(data)
            except Damaged as err:
                self.problems.append((start, str(err)))
                continue
            yield seq, time_ns, payload, end

    def payload_at(self, start: int) -> tuple[int, int, dict[str, object]]:
        """(seq, unix ns, payload) of the frame that `scan` found at `start`.

        Raises:
          Damaged: there is no longer a whole frame at this position.
        """
        frame = self._frame(start)
        if frame is None:
            raise Damaged(f"{self.path}: there is no whole frame at byte {start}")
        return frame[0], frame[1] + self.time_offset, decode(frame[2])

    def payload(self, start: int, end: int) -> bytes:
        """The payload of the frame that `scan` found from `start` to `end`, not decoded."""
        begin = start + layout.FRAME_HEAD.size
        return pread(self._fd, end - begin, begin)

    def size(self) -> int:
        """The current size of the file in bytes."""
        return os.fstat(self._fd).st_size

    def torn_bytes(self) -> int:
        """Number of bytes after `end`: a torn frame, or one that is being written."""
        return max(0, os.fstat(self._fd).st_size - self.end)

    @staticmethod
    def whole_in(data: bytes) -> Iterator[tuple[int, int, bytes, int]]:
        """(seq, monotonic ns, payload, start) of every whole frame in `data`, at any position.

        Frames are found by their checksum at any byte, so one damaged length does not lose the frames after it.
        """
        at, last = 0, 0
        head = layout.FRAME_HEAD.size
        while at + head <= len(data):
            length, crc, seq, mono = layout.FRAME_HEAD.unpack_from(data, at)
            end = at + head + length
            # Cheap checks first: at most positions the length or the number is invalid.
            if length and end <= len(data) and last < seq < last + 2**40:
                rest = zlib.crc32(data[at + 8 : at + head])
                if zlib.crc32(memoryview(data)[at + head : end], rest) == crc:
                    yield seq, mono, data[at + head : end], at
                    at, last = end, seq
                    continue
            at += 1

    def is_torn_by_damage(self) -> bool:
        """Whether more than one incomplete frame follows the last whole one, or blank bytes: no writer leaves these."""
        torn = self.torn_bytes()  # first: what is behind an unfinished frame now is not what a writer appends next
        head = pread(self._fd, layout.FRAME_HEAD.size, self.end)
        if not any(head):
            return bool(head)
        if len(head) < layout.FRAME_HEAD.size:
            return False
        length = layout.FRAME_HEAD.unpack(head)[0]
        return bool(layout.FRAME_HEAD.size + length < torn) and self._frame(self.end) is None

    def _frame(self, offset: int) -> tuple[int, int, bytes] | None:
        """(seq, monotonic ns, payload) of the frame at `offset` if it is whole."""
        data = pread(self._fd, 4096, offset)
        head_size = layout.FRAME_HEAD.size
        if len(data) < head_size:
            return None
        length, crc, seq, mono = layout.FRAME_HEAD.unpack_from(data)
        if not seq or length > layout.LARGEST_FRAME or offset + head_size + length > os.fstat(self._fd).st_size:
            return None
        if head_size + length > len(data):
            data = pread(self._fd, head_size + length, offset)
        payload = data[head_size : head_size + length]
        return (seq, mono, payload) if zlib.crc32(payload, zlib.crc32(data[8:head_size])) == crc else None
