"""Segments that their writers have left: they wait to be sealed and are then released."""

from __future__ import annotations

import os

from rollbook.errors import Damaged
from rollbook.journal import format as layout
from rollbook.journal.segments import Head, Segment
from rollbook.system.files import open_regular, pread
from rollbook.system.guard import tolerating


class LeftSegment:
    """A segment that its writer has left. Its rows are in memory only while they are sealed.

    Attributes:
      path, size: its path and its size in bytes.
      generation: its value at the time of the look.
      first_seq: the number of its first row, 0 without rows; orders the segments of a stream.
    """

    __slots__ = ("first_seq", "generation", "path", "size")

    def __init__(self, path: str, size: int, generation: int, first_seq: int) -> None:
        self.path, self.size, self.generation, self.first_seq = path, size, generation, first_seq

    @classmethod
    def look(cls, path: str, gone: bool, in_use: bool = False) -> LeftSegment | None:
        """The segment, or None if its writer has not left it (and it is not `in_use`) or it is sealed.

        If a writer is `gone`, all its segments are returned: whether its rows are sealed is seen in the sealed files,
        because one damaged bit of the state word would say so, too.
        """
        fd = open_regular(path)
        try:
            data = pread(fd, layout.HEAD.size, 0)
            if len(data) < layout.HEAD.size or not any(data):
                if gone and not any(pread(fd, layout.LARGEST_SEGMENT_BYTES * 2, 0)):
                    _unlink(path)  # nothing was ever written to it
                    return None
                return cls(path, 0, 0, 0) if gone else None
            magic, _, header_size, generation, first_seq, words, _, state, *_ = layout.HEAD.unpack(data)
            if magic != layout.SEGMENT_MAGIC:
                return cls(path, 0, 0, 0)  # comes first in its stream; `load` reports the problem
            first_seq = layout.lowest_number(generation, first_seq)
            is_taken = state == layout.SEALED or generation % 2 or (state == layout.ACTIVE and not in_use)
            if is_taken and not gone:
                return None
            return cls(path, os.fstat(fd).st_size, generation, _first_row(fd, header_size, words, first_seq))
        finally:
            os.close(fd)

    def load(self, gone: bool) -> tuple[layout.SegmentHeader, bytes, Head, str]:
        """(header, the bytes of all rows, the head's changing words, what is wrong with its length).

        Args:
          gone: its writer will not write again. If it ended while recycling the segment, there are no new rows.
        Raises:
          Damaged: the segment is damaged, or was just recycled.
        """
        with Segment(self.path) as segment:
            head = segment.head()
            data = segment.all_rows()
            if (head.is_changing and not gone) or segment.head().generation != head.generation:
                raise Damaged(f"{self.path} changed while it was being sealed")
            return segment.header, data, head, segment.cut_short()

    def give_up(self, generation: int, gone: bool) -> bool:
        """Mark a live writer's segment as sealed, so that it can be reused; unlink one that will not be reused.

        Args:
          generation: of the sealed rows. gone: its writer will not write again.
        Returns:
          False, without any change, if it was recycled meanwhile.
        """
        fd = open_regular(self.path, os.O_RDWR)
        try:
            fields = layout.HEAD.unpack(pread(fd, layout.HEAD.size, 0))
            if fields[3] != generation:
                return False
            if not gone and fields[7] == layout.LEFT:
                os.lseek(fd, layout.STATE_AT, os.SEEK_SET)
                os.write(fd, layout.WORD.pack(layout.SEALED))
                return True
        finally:
            os.close(fd)
        if gone or fields[7] == layout.DROPPED:
            _unlink(self.path)
        return True


def _unlink(path: str) -> None:
    with tolerating(FileNotFoundError):
        os.unlink(path)


def _first_row(fd: int, header_size: int, words: int, first_seq: int) -> int:
    """The number of the first committed row of a segment, 0 without one."""
    width = 8 * max(1, min(words, 1 << 20))
    offset = header_size
    while True:
        data = pread(fd, width * max(1, 65536 // width), offset)
        row = 0
        for end in range(width, len(data) + 1, width):
            row = layout.WORD.unpack_from(data, end - 8)[0]
            if row >= max(1, first_seq):
                return int(row)
        if len(data) < width * max(1, 65536 // width):
            return 0
        offset += len(data)
