"""The progress of each writer: the last sequence number per lane, and the changed journal files, without reading
values.

A segment's rows are in order, so a search over commit words finds its newest row with a few reads of eight bytes, at
any rate of rows. Frames are counted by their heads.
"""

from __future__ import annotations

import os
import struct
import time

from rollbook.journal import format as layout
from rollbook.schema.run_files import parse_name
from rollbook.system.files import pread
from rollbook.system.guard import tolerating

_HOLE = 4  # consecutive rows that interrupted calls may have left unwritten before a written one
_HEAD = 48
_FRAMES_CHUNK = 1 << 16
_NEXT_BYTES = 1 << 14
"""Bytes per read: at usual rates, everything new since the last look."""


class FileProgress:
    """One segment or frame file of a writer.

    Attributes:
      path, lane: its path and its lane.
      last: the newest sequence number seen in it, 0 for none.
      left: its writer has finished with it (more may come only through recycling, which begins with a new generation).
      size: its length in bytes.
      changed: rows or frames arrived since the user of this object last set `changed` to False.
    """

    __slots__ = (
        "_capacity",
        "_done",
        "_end",
        "_fd",
        "_generation",
        "_head",
        "_header",
        "_is_known",
        "_length",
        "_width",
        "changed",
        "lane",
        "last",
        "left",
        "number",
        "path",
        "size",
    )

    def __init__(self, path: str, lane: int, number: int) -> None:
        self.path, self.lane, self.number = path, lane, number
        self.last, self.size = 0, 0
        self.left, self.changed = False, False
        self._generation, self._done = -1, 0
        self._header = self._width = self._capacity = 0
        self._end = 0
        self._fd, self._head, self._length = -1, b"", -1
        self._is_known = False  # whether a finished frame file was read to its end

    @property
    def is_frames(self) -> bool:
        """Whether it holds frames, not rows."""
        return self.number >= 0

    def look(self) -> None:
        """Read what is new. A file that is gone, or is being recycled, keeps its former state.

        Raises:
          OSError: it cannot be opened.
        """
        if self._is_known:
            return
        was_left = self.left
        fd = self._open()
        if self.is_frames:
            self._look_at_frames(fd)
            self._is_known = was_left  # so that thousands of finished files cost nothing
        else:
            self._look_at_rows(fd)
        if self.left or os.name == "nt":  # there may be hundreds; and Windows cannot remove open files
            self.let_go()

    def _open(self) -> int:
        """The file. It stays open for the next look; `Positions` closes it when names have changed."""
        if self._fd < 0:
            self._fd = os.open(self.path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0))
        return self._fd

    def quiet(self) -> bool:
        """Whether nothing is new since the last look: reads a few bytes of a file that stays open."""
        try:
            fd = self._open()
        except OSError:
            return False
        if self.is_frames:
            return os.fstat(fd).st_size == self._length
        if pread(fd, _HEAD, 0) != self._head:
            return False
        return self._done >= self._capacity or not any(self._words(fd, self._done, _HOLE))

    def _words(self, fd: int, first: int, n: int) -> list[int]:
        """The commit words of this many rows, or of fewer at the end."""
        data = pread(fd, self._width * min(n, self._capacity - first), self._header + self._width * first)
        whole = memoryview(data)[: len(data) // self._width * self._width].cast("Q")
        return whole[self._width // 8 - 1 :: self._width // 8].tolist()

    def let_go(self) -> None:
        """Close the files that looks keep open."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def _look_at_rows(self, fd: int) -> None:
        head = self._head = pread(fd, _HEAD, 0)
        if len(head) < _HEAD or head[:8] != layout.SEGMENT_MAGIC:
            return
        header, generation, first_seq, words, capacity, state = struct.unpack_from("<IQQIIQ", head, 12)
        if generation % 2 or not words or not header:
            return
        if generation != self._generation:
            self._generation, self._done = generation, 0
            self._header, self._width, self._capacity = header, words * 8, capacity
            self.size = header + words * 8 * capacity
        done, last = self._search(fd, max(1, first_seq))
        if done != self._done:
            self._done, self.last, self.changed = done, last, True
        self.left = state in (layout.LEFT, layout.DROPPED)

    def _search(self, fd: int, first_seq: int) -> tuple[int, int]:
        """The number of rows, and the commit word of the last one."""
        low, last = self._done, self.last  # all rows before `low` exist
        rows = max(_HOLE, _NEXT_BYTES // self._width)
        empty = 0
        for at, seq in enumerate(self._words(fd, low, rows), low):
            empty = 0 if seq >= first_seq else empty + 1
            if not empty:
                low, last = at + 1, seq
            elif empty == _HOLE:
                return low, last
        step = rows
        while low < self._capacity:
            seq, at = self._word(fd, min(low + step - 1, self._capacity - 1), first_seq)
            if seq:
                low, last = at + 1, seq
                step *= 2
            elif step == 1:
                break
            else:
                step = max(1, step // 2) if step < 4 else step // 4
        return low, last

    def _word(self, fd: int, row: int, first_seq: int) -> tuple[int, int]:
        """(commit word, row) of `row`, or of the next written one after a small hole; (0, row) if there is none."""
        for at in range(row, min(row + _HOLE, self._capacity)):
            data = pread(fd, 8, self._header + self._width * (at + 1) - 8)
            seq = int.from_bytes(data, "little")
            if len(data) == 8 and seq >= first_seq:
                return seq, at
        return 0, row

    def _look_at_frames(self, fd: int) -> None:
        self.size = self._length = os.fstat(fd).st_size
        at = self._end or layout.FRAMES_FILE_HEAD.size
        while at + layout.FRAME_HEAD.size <= self.size:
            chunk = pread(fd, _FRAMES_CHUNK, at)
            inside = 0
            while inside + layout.FRAME_HEAD.size <= len(chunk):
                length, _, seq, _ = layout.FRAME_HEAD.unpack_from(chunk, inside)
                end = at + inside + layout.FRAME_HEAD.size + length
                if not seq or end > self.size:  # a tail that is being written, or stays incomplete
                    self._end = at + inside
                    return
                self.last, self.changed = max(self.last, seq), True
                inside += layout.FRAME_HEAD.size + length
            if not inside:
                break
            at += inside
            self._end = at


class Positions:
    """The journal files of one writer, read repeatedly.

    Args:
      folder: the writer's folder.
      grain_ns: for how long after a change the folder's time stamp may hide another change.
    """

    def __init__(self, folder: str, grain_ns: int) -> None:
        self.folder, self._grain_ns = folder, grain_ns
        self.files: dict[str, FileProgress] = {}
        self._listed, self._is_settled = -1, False
        self.new_names = False  # a new file: its folder must be made durable too

    def look(self) -> dict[str, int]:
        """Read what is new. Returns {lane: last sequence number}, with lanes as text as in the files.

        Everything up to these numbers was written before the look ended. But the look may have read a file before its
        last rows arrived: see `settle`.
        """
        self._list()
        lanes: dict[str, int] = {}
        newest: dict[int, int] = {}
        for file in self.files.values():
            with tolerating(OSError):
                file.look()
                lanes[str(file.lane)] = max(lanes.get(str(file.lane), 0), file.last)
                if file.is_frames:
                    newest[file.lane] = max(newest.get(file.lane, 0), file.number)
        for file in self.files.values():
            if file.is_frames:
                file.left = file.number < newest[file.lane] if file.lane in newest else file.left
        return lanes

    def _list(self) -> None:
        """Find new files, forget removed ones."""
        with tolerating(OSError) as missed:
            changed = os.stat(self.folder).st_mtime_ns  # before listing: later changes are seen at the next look
            if changed == self._listed and self._is_settled:
                return
            names = os.listdir(self.folder)
        if missed:
            changed, names = -1, []
        self._listed, self._is_settled = changed, time.time_ns() - changed > self._grain_ns
        self.let_go()
        present = set()
        for name in names:
            parts = parse_name(name)
            if parts is not None:
                present.add(name)
                if name not in self.files:
                    kind, lane, _stream, number = parts
                    path = os.path.join(self.folder, name)
                    self.files[name] = FileProgress(path, lane, number if kind == "log" else -1)
                    self.new_names = True
        for name in self.files.keys() - present:
            del self.files[name]

    def quiet(self) -> bool:
        """Whether nothing is new since the last look: reads a few bytes of each growing file.

        Closing a writer adds a new name to the folder, which this also sees.
        """
        try:
            if os.stat(self.folder).st_mtime_ns != self._listed:
                return False
            return all(file.left or file.quiet() for file in self.files.values())
        except OSError:
            return False

    def let_go(self) -> None:
        """Close the files that looks keep open."""
        for file in self.files.values():
            file.let_go()

    def settle(self) -> None:
        """Look again.

        A lane is used by one thread at a time, and its numbers grow. So after this second look, everything that `look`
        returned is in files that either were synced before or have `changed`.
        """
        self.look()
