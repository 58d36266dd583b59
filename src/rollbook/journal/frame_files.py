"""Reads the frames of one frame file, also while its writer appends."""

from __future__ import annotations

import os
import zlib

from rollbook.errors import Damaged, NewerFormat
from rollbook.journal import format as layout
from rollbook.journal.files import BLOCK, JournalFile
from rollbook.journal.frames import decode
from rollbook.system.files import pread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class FrameFile(JournalFile):
    """One frame file. Open while in use; not for several threads at once.

    Attributes:
      lane, number: from the file's head.
      end: where the last `scan` or `frames` stopped: the end of the last whole frame.
      problems: (offset, text) of frames that were skipped because of a wrong checksum, each once.

    Raises:
      FileNotFoundError: it was unlinked, so its frames are in Parquet.
      Damaged, NewerFormat: not a frame file. `Damaged` also while a writer is creating it.
    """

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

        Stops at a torn tail (`end` has the position). A frame with a wrong checksum is skipped and added to `problems`
        if a good one follows it. `rollbook repair` searches for further frames.
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
                    return
                base, block, at = offset, pread(self._fd, max(BLOCK, size), offset), 0
                if len(block) < size:
                    return
            payload = block[at + head_size : at + size]
            if zlib.crc32(payload, zlib.crc32(block[at + 8 : at + head_size])) != crc or not seq:
                if self._frame(offset + size) is None:
                    return
                problem = (offset, f"the frame at byte {offset} is damaged (checksum differs); it was left out")
                if problem not in self.problems:
                    self.problems.append(problem)
                offset += size
                continue
            self.end = offset + size
            yield seq, mono + self.time_offset, payload, offset, self.end
            offset = self.end

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
    def whole_in(data: bytes) -> Iterator[tuple[int, int, bytes]]:
        """(seq, monotonic ns, payload) of every whole frame in `data`, at any position.

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
                    yield seq, mono, data[at + head : end]
                    at, last = end, seq
                    continue
            at += 1

    def is_torn_by_damage(self) -> bool:
        """Whether more than one incomplete frame follows the last whole one."""
        head = pread(self._fd, layout.FRAME_HEAD.size, self.end)
        if len(head) < layout.FRAME_HEAD.size or not any(head):
            return False
        length = layout.FRAME_HEAD.unpack(head)[0]
        return bool(layout.FRAME_HEAD.size + length < self.torn_bytes())

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
