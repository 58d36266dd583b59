"""The open files of a journal between polls: which exist, how far they are read, what is new."""

from __future__ import annotations

import os
import time
from array import array
from bisect import bisect_right

from rollbook.errors import Damaged, NewerFormat
from rollbook.journal.frame_files import FrameFile
from rollbook.journal.rows import row_maker
from rollbook.journal.segments import Look, Segment
from rollbook.journal.writers import WriterInfo
from rollbook.schema.run_files import parse_name
from rollbook.system.guard import handled_by, tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_RELIST_SECONDS = 0.1
"""A folder changed within this time is listed again: its time stamp may not show the next change."""

_THOROUGH_EVERY = 16
"""After this many polls a segment is searched to its end, in case holes hide rows from a quick look."""


class Listing:
    """The names in a folder, read again only after the folder has changed."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._stamp: tuple[int, int] | None = None

    def names(self, force: bool = False) -> list[str] | None:
        """Sorted names, or None if unchanged since the last call."""
        with tolerating(OSError):
            stat = os.stat(self._folder)
            stamp = (stat.st_mtime_ns, stat.st_ino)
            if stamp == self._stamp and not force:
                return None
            fresh = abs(time.time_ns() - stat.st_mtime_ns) < _RELIST_SECONDS * 1e9
            self._stamp = None if fresh else stamp
            return sorted(os.listdir(self._folder))
        self._stamp = None
        return []

    def forget(self) -> None:
        """Read the folder again at the next call."""
        self._stamp = None


class WriterFiles:
    """The open files of one writer, by lane.

    Attributes:
      segments, logs: lane -> file name -> state.
      problems: path -> what could not be read; shared with the reader.
    """

    def __init__(self, folder: str, problems: dict[str, str]) -> None:
        self.folder, self.problems = folder, problems
        self.info = WriterInfo(folder)
        self._listing = Listing(folder)
        self.segments: dict[int, dict[str, SegmentState]] = {}
        self.logs: dict[int, dict[str, LogState]] = {}

    def close(self) -> None:
        """Close all files."""
        for state in self._states():
            state.file.close()
        self.segments.clear()
        self.logs.clear()
        self._listing.forget()

    def lanes(self) -> list[int]:
        """All known lanes."""
        return sorted(self.segments.keys() | self.logs.keys() | self.info.last_seqs().keys())

    def refresh(self, force: bool = False) -> None:
        """Open new files, forget removed ones."""
        names = self._listing.names(force)
        if names is None:
            return
        if not self.info.clocks:
            self.info = WriterInfo(self.folder)
        self.info.look_closed()
        seen = set(names)
        by_lane: list[dict[str, Any]] = [*self.segments.values(), *self.logs.values()]
        for states in by_lane:
            for name in [name for name in states if name not in seen]:
                states.pop(name).file.close()
        for name in names:
            parsed = parse_name(name)
            if parsed is not None:
                self._open(name, parsed[0], parsed[1])

    def top(self, lane: int, after: int) -> int:
        """The first look: the highest sequence number in a lane, `after` if nothing is new."""
        tops = [after]
        if self.info.closed is not None:
            tops.append(self.info.last_seqs().get(lane, 0))
        for segment in self.segments.get(lane, {}).values():
            tops.append(self.safely(segment, segment.top, after))
        for log in self.logs.get(lane, {}).values():
            tops.append(self.safely(log, log.top))
        return max(tops)

    def fills(self, lane: int, lowest: int, highest: int) -> dict[int, dict[str, object]]:
        """Values that arrived later for rows of `lane` in [lowest, highest]: {seq: {key: value}}."""
        filled: dict[int, dict[str, object]] = {}
        for log_lane, logs in self.logs.items():
            for log in logs.values():
                self.safely(log, log.top)
                for payload in log.fill_payloads():
                    if payload.get("lane", log_lane) == lane:
                        collect_fill(payload, lowest, highest, filled)
        return filled

    def safely(self, state: SegmentState | LogState, do: Callable[..., int], *args: int) -> int:
        """`do(*args)`; if the file cannot be read, records a problem and returns 0."""
        with self.noting(state.file.path):
            return do(*args)
        return 0

    def noting(self, where: str) -> handled_by:
        """Around the reading of a file: a damaged or unreadable one becomes a problem of this path."""
        return handled_by(self._note, where, kinds=(OSError, Damaged))

    def _note(self, where: str, err: Exception) -> None:
        self.problems[where] = str(err)

    def _states(self) -> list[SegmentState | LogState]:
        groups: list[dict[str, Any]] = [*self.segments.values(), *self.logs.values()]
        return [state for group in groups for state in group.values()]

    def _open(self, name: str, kind: str, lane: int) -> None:
        path = os.path.join(self.folder, name)
        states: dict[str, Any] = (self.segments if kind == "seg" else self.logs).setdefault(lane, {})
        # A file that is unlinked meanwhile is passed over.
        with tolerating(OSError), handled_by(self._refused, path, kinds=(Damaged, NewerFormat)):
            inode = os.stat(path).st_ino
            known = states.get(name)
            if known is not None:
                if known.inode == inode:
                    return
                states.pop(name).file.close()
            if kind == "seg":
                states[name] = SegmentState(Segment(path), inode)
            else:
                states[name] = LogState(FrameFile(path, self.info.time_offset), inode)
            self.problems.pop(path, None)

    def _refused(self, path: str, err: Exception) -> None:
        self._note(path, err)
        self._listing.forget()  # it may be new: look again at the next poll


class Block:
    """Rows of one segment, copied: whole rows from index `start` on, of one generation.

    Attributes:
      words: the commit word of each.
      whole: all of them are committed, in order. True for almost every block.
      left_out: number of committed rows before `start` that are not copied.
    """

    __slots__ = ("data", "first_seq", "generation", "left_out", "segment", "start", "whole", "words")

    def __init__(self, segment: SegmentState, data: bytes, look: Look, start: int) -> None:
        self.segment, self.data, self.start = segment, data, start
        self.generation, self.first_seq = look.generation, look.first_seq
        words = self.words = segment.file.commit_words(data)
        self.whole = segment.file.are_in_order(words, self.first_seq)
        self.left_out = 0

    def count(self, after: int, up_to: int) -> int:
        """Number of rows in (after, up_to], with those left out."""
        if self.whole:
            return max(0, bisect_right(self.words, up_to) - bisect_right(self.words, after)) + self.left_out
        lowest = max(self.first_seq, after + 1)
        return sum(1 for word in self.words if lowest <= word <= up_to) + self.left_out

    def rows_between(self, after: int, up_to: int) -> bytes:
        """The bytes of the rows in (after, up_to], without holes."""
        width = self.segment.file.width
        if self.whole:
            first, end = bisect_right(self.words, after), bisect_right(self.words, up_to)
            return self.data if end - first == len(self.words) else self.data[first * width : end * width]
        chosen = self.segment.file.plausible(self.words, self.first_seq)
        rows = [self.data[i * width : (i + 1) * width] for i in chosen if after < self.words[i] <= up_to]
        return b"".join(rows)

    def passed(self, seq: int) -> None:
        """Store in the segment's state that the rows up to `seq` have been read."""
        index = len(self.words)
        while index and not self.first_seq <= self.words[index - 1] <= seq:
            index -= 1
        if index:
            self.segment.hint = (self.generation, seq, self.start + index)


class SegmentState:
    """An open segment, and how far it has been read.

    Attributes:
      make: creates a `Row` from a raw row.
      hint: (generation, seq, index): rows of this generation up to seq are before index.
      seen: the result of the last look for the highest number.
    """

    def __init__(self, file: Segment, inode: int) -> None:
        self.file, self.inode = file, inode
        self.make = row_maker(file.header)
        self.hint = (-1, 0, 0)
        self.seen: Look | None = None
        self._polls = 0

    def top(self, after: int) -> int:
        """The highest sequence number, 0 if none is above `after`."""
        head = self.file.head()
        start = self._start(head.generation, after)
        self._polls += 1
        thorough = self._polls % _THOROUGH_EVERY == 0
        self.seen = None
        if start and not thorough and not self.file.has_row_at(start, head.first_seq):
            return 0
        look = self.seen = self.file.look(start, thorough=thorough)
        return 0 if look is None else look.last_seq

    def block(self, after: int, *, thorough: bool) -> Block | None:
        """The current rows above `after`; None if there are none or the segment is being recycled.

        Unless `thorough`, only those that `top` saw. Rows committed since then are later, or are missed and counted.
        """
        look, start = self.seen, 0
        if thorough:
            look = self.file.look()
        elif look is not None:
            start = max(look.start, self._start(look.generation, after))
        if look is None or not look.count:
            return None
        data = self.file.copy(look, start)
        return None if data is None else Block(self, data, look, start)

    def last_row(self, after: int) -> Block | None:
        """The last row that `top` saw; None if it was not the only one, or is gone."""
        look = self.seen
        if look is None or not look.count or look.lowest_seq <= after:
            return None
        data = self.file.copy(look, look.upper - 1)
        block = None if data is None else Block(self, data, look, look.upper - 1)
        if block is None or block.words != [look.last_seq]:
            return None
        block.left_out = look.count - 1
        return block

    def _start(self, generation: int, after: int) -> int:
        return self.hint[2] if self.hint[0] == generation and self.hint[1] <= after else 0


class LogState:
    """An open frame file, and the positions of its frames.

    Attributes:
      seqs, starts: sequence number and offset of each frame, in order.
      pending: offsets of rare rows that wait for values.
    """

    def __init__(self, file: FrameFile, inode: int) -> None:
        self.file, self.inode = file, inode
        self.seqs = array("q")
        self.starts = array("q")
        self.pending: set[int] = set()
        self._fills: list[int] = []
        self._last = 0

    def top(self) -> int:
        """Find new frames; returns the highest sequence number of all."""
        for seq, _time_ns, payload, start, _end in self.file.scan(self.file.end):
            if seq <= self._last or seq >= 2**62:
                continue
            self._last = seq
            self.seqs.append(seq)
            self.starts.append(start)
            if payload[1:6] == b"\xa4fill":
                self._fills.append(start)
            elif b"\xa8deferred" in payload[:65536]:
                self.pending.add(start)
        return self._last

    def between(self, after: int, up_to: int) -> list[int]:
        """Start positions of the frames in (after, up_to]."""
        first = bisect_right(self.seqs, after)
        return self.starts[first : bisect_right(self.seqs, up_to)].tolist()

    def fill_payloads(self) -> Iterator[dict[str, object]]:
        """The frames with values for earlier rows."""
        for start in self._fills:
            with tolerating(OSError, Damaged):
                yield self.file.payload_at(start)[2]


def collect_fill(payload: dict[str, Any], lowest: int, highest: int, fills: dict[int, dict[str, Any]]) -> None:
    """Add a fill frame's values for the rows in [lowest, highest] to `found`. Invalid frames add nothing."""
    with tolerating(KeyError, TypeError, ValueError, AttributeError, IndexError):
        seqs = _plain(payload["fill"])
        has = payload.get("has") or {}
        for key, cells in payload["columns"].items():
            there = _plain(has[key]) if key in has else None
            for i, (seq, value) in enumerate(zip(seqs, _plain(cells), strict=True)):
                if lowest <= seq <= highest and value is not None and (there is None or there[i]):
                    fills.setdefault(seq, {})[str(key)] = value


def _plain(cells: Any) -> list[Any]:
    return cells if isinstance(cells, list) else list(cells.rows())
