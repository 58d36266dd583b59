"""The files of a journal, looked at without mapping them and without changing them.

A reader that maps a file dies when somebody truncates it, so everything here is read with `pread`. What a live writer
is just storing becomes visible in any order; therefore a row counts only after two looks:

    first = segment.look()        # which commit words are there
    ...                           # at least SETTLE_SECONDS later, unless the writer has gone
    rows = segment.copy(first)    # the rows up to the last one of those; None if the segment was recycled meanwhile
"""

from __future__ import annotations

import json
import os
import struct
import time
import zlib

from rollbook.errors import Damaged
from rollbook.journal import format as layout
from rollbook.journal.frames import decode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TypeAlias

    RawRow: TypeAlias = tuple[int, int, tuple[int, ...], tuple[float | int, ...]]
    """(seq, unix nanoseconds, clocks, values) of one row; clocks and values in the order of the header."""

__all__ = [
    "SETTLE_SECONDS",
    "FrameFile",
    "Look",
    "Segment",
    "WriterInfo",
    "list_writers",
    "parse_name",
    "pread",
]

SETTLE_SECONDS = 0.001
"""How long a commit word must have been seen before the row in front of it is believed."""

_LARGEST_JUMP = 2**40
"""A commit word this far beyond its neighbour is damage and no sequence number."""

_BLOCK = 1024 * 1024


def _seek_and_read(fd: int, size: int, offset: int) -> bytes:
    os.lseek(fd, offset, os.SEEK_SET)
    return os.read(fd, size)


_pread = getattr(os, "pread", _seek_and_read)


def pread(fd: int, size: int, offset: int) -> bytes:
    """`size` bytes at `offset`, fewer only at the end of the file."""
    data: bytes = _pread(fd, size, offset)
    if len(data) in (size, 0):
        return data
    parts = [data]
    have = len(data)
    while have < size:
        data = _pread(fd, size - have, offset + have)
        if not data:
            break
        parts.append(data)
        have += len(data)
    return b"".join(parts)


def _open(path: str) -> int:
    return os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0))


class WriterInfo:
    """One process that wrote to the run, from its writer.json and closed.json.

    Attributes:
      id: the writer's name, which is its folder's name.
      folder: its folder under data/journal.
      about: all of writer.json; {} if it cannot be read.
      attempt, main, host, boot_id, pid_ns, pid, start_time, time_offset, clocks, rank: fields of it.
      closed: all of closed.json, or None while the writer has not closed.
      problem: "" or why writer.json could not be read.
    """

    about: dict[str, Any]

    __slots__ = (
        "about", "attempt", "boot_id", "clocks", "closed", "folder", "host", "id", "main", "pid", "pid_ns", "problem",
        "rank", "start_time", "time_offset",
    )  # fmt: skip

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.id = os.path.basename(folder)
        self.problem = ""
        about, self.problem = _read_json(os.path.join(folder, "writer.json"))
        self.closed: dict[str, Any] | None = None
        self.adopt(about or {})
        if not self.clocks:
            self._ask_a_segment()
        self.look_closed()

    def adopt(self, about: dict[str, Any]) -> None:
        """Take the fields from the content of a writer.json."""
        self.about = about
        get = about.get
        self.attempt = _int(get("attempt"), 1)
        self.main = bool(get("main"))
        self.host, self.boot_id, self.pid_ns = str(get("host", "")), str(get("boot_id", "")), str(get("pid_ns", ""))
        self.pid, self.start_time = _int(get("pid"), 0), str(get("start_time", ""))
        self.time_offset = _int(get("time_offset"), 0)
        clocks = get("clocks")
        self.clocks = tuple(map(str, clocks)) if isinstance(clocks, list) else ()
        self.rank = get("rank")

    def look_closed(self) -> bool:
        """Whether the writer has closed, as of now."""
        if self.closed is None:
            self.closed = _read_json(os.path.join(self.folder, "closed.json"))[0]
        return self.closed is not None

    def last_seqs(self) -> dict[int, int]:
        """The last sequence number of each lane, as a clean close left them; {} without one."""
        lanes = (self.closed or {}).get("lanes")
        if not isinstance(lanes, dict):
            return {}
        return {int(lane): _int(seq, 0) for lane, seq in lanes.items() if str(lane).isdigit()}

    def _ask_a_segment(self) -> None:
        """Without a writer.json the heads of the segments say the same."""
        for name in _names(self.folder):
            if name.endswith(".seg"):
                try:
                    with Segment(os.path.join(self.folder, name)) as segment:
                        header = segment.header
                except (OSError, Damaged):
                    continue
                self.clocks, self.time_offset, self.attempt = header.clocks, header.time_offset, header.attempt
                return


def list_writers(run_folder: str | os.PathLike[str]) -> list[WriterInfo]:
    """All writers that have a folder in the journal of the run, by name (which begins with the time they started)."""
    journal = os.path.join(run_folder, "data", "journal")
    folders = [os.path.join(journal, name) for name in _names(journal)]
    return [WriterInfo(folder) for folder in folders if os.path.isdir(folder)]


def parse_name(name: str) -> tuple[str, int, int, int] | None:
    """("seg", lane, stream, slot) or ("log", lane, 0, number) of a journal file's name; None for other files."""
    parts = name.split(".")
    try:
        if len(parts) == 4 and parts[3] == "seg" and parts[0][:1] == "L" and parts[1][:1] == "S":
            return "seg", int(parts[0][1:]), int(parts[1][1:]), int(parts[2])
        if len(parts) == 4 and parts[3] == "log" and parts[0][:1] == "L" and parts[1] == "frames":
            return "log", int(parts[0][1:]), 0, int(parts[2])
    except ValueError:
        pass
    return None


class Look:
    """What a look at a segment's commit words found.

    Attributes:
      generation, first_seq, state: the head, as it stood.
      start: the row index at which the look began.
      upper: one more than the index of the last committed row; `start` if there was none.
      lowest_seq, last_seq: the sequence numbers of the first and the last committed row, 0 if there was none.
      count: committed rows in [start, upper).
    """

    __slots__ = ("count", "first_seq", "generation", "last_seq", "lowest_seq", "start", "state", "upper")

    def __init__(self, generation: int, first_seq: int, state: int, start: int) -> None:
        self.generation, self.first_seq, self.state = generation, first_seq, state
        self.start = self.upper = start
        self.lowest_seq = self.last_seq = self.count = 0


class Segment:
    """One segment file. Open while in use; not for several threads at once.

    Attributes:
      header: as it stood when opened; generation, first_seq and state go on changing in the file (see `look`).
      row: the struct of one row.
      damaged_rows: how many rows `rows` left out because their commit word could not be right.

    Raises:
      FileNotFoundError: it was unlinked, so its rows are in Parquet.
      Damaged, NewerFormat: not a segment that can be read. `Damaged` also while a writer is just creating the file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self.damaged_rows = 0
        self._fd = _open(self.path)
        try:
            self.header = self._read_header()
        except BaseException:
            self.close()
            raise
        self.row = layout.row_struct(len(self.header.clocks), self.header.types)
        self.width = self.row.size

    def __enter__(self) -> Segment:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file; twice is fine."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        try:
            self.close()
        except (OSError, AttributeError):
            return

    def _read_header(self) -> layout.SegmentHeader:
        data = pread(self._fd, 4096, 0)
        if len(data) >= layout.HEAD.size:
            meta_size = layout.HEAD.unpack_from(data)[9]
            if layout.HEAD.size + meta_size > len(data):
                size = os.fstat(self._fd).st_size
                data = pread(self._fd, min(size, layout.HEAD.size + meta_size), 0)
        try:
            return layout.unpack_header(data, self.path)
        except (ValueError, KeyError, TypeError, struct.error) as err:
            raise Damaged(f"{self.path}: the description of its columns makes no sense ({err!r})") from None

    def head(self) -> tuple[int, int, int]:
        """(generation, first_seq, state) as they stand now."""
        data = pread(self._fd, layout.HEAD.size, 0)
        if len(data) < layout.HEAD.size:
            raise Damaged(f"{self.path} was cut to {len(data)} bytes")
        fields = layout.HEAD.unpack(data)
        return fields[3], fields[4], fields[7]

    def has_row_at(self, index: int, first_seq: int) -> bool:
        """Whether one of the few rows from `index` on is committed: the cheap question of a poll."""
        data = pread(self._fd, self.width * min(8, max(0, self.header.capacity - index)), self._at(index))
        return any(word >= first_seq for word in self.commit_words(data))

    def look(self, start: int = 0, *, thorough: bool = True) -> Look | None:
        """Which rows from index `start` on are committed. None while the writer is recycling the segment.

        With `thorough=False` the look ends at the first stretch of 64 KiB or more without a committed row.
        """
        generation, first_seq, state = self.head()
        if generation % 2:
            return None
        found = Look(generation, first_seq, state, start)
        index, size = start, _BLOCK if thorough else 64 * 1024
        capacity = self.header.capacity
        while index < capacity:
            wanted = max(1, size // self.width)
            data = pread(self._fd, self.width * min(wanted, capacity - index), self._at(index))
            words = self.commit_words(data)
            if not words:
                break
            good = [i for i, word in enumerate(words) if word >= first_seq]
            if good:
                good = self._plausible(words, good, found.last_seq or first_seq)
            if good:
                found.upper, found.last_seq = index + good[-1] + 1, words[good[-1]]
                found.lowest_seq = found.lowest_seq or words[good[0]]
                found.count += len(good)
            elif not thorough:
                break
            index += len(words)
            size = _BLOCK
        return found

    def copy(self, look: Look, start: int | None = None) -> bytes | None:
        """The bytes of the rows [start, look.upper), copied now; None if the segment was recycled since the look."""
        start = look.start if start is None else start
        data = pread(self._fd, self.width * max(0, look.upper - start), self._at(start))
        return data if self.head()[0] == look.generation else None

    def all_rows(self) -> bytes:
        """The bytes of all whole rows that the file has room for, committed or not, as they are now."""
        room = min(self.width * self.header.capacity, os.fstat(self._fd).st_size - self.header.header_size)
        data = pread(self._fd, max(0, room), self.header.header_size)
        whole = len(data) // self.width * self.width
        return data if whole == len(data) else data[:whole]

    def words(self) -> tuple[bytes, Look] | None:
        """All rows up to the last committed one as raw bytes (holes included), and the look that found them.

        None if the segment is being recycled: its former rows are in Parquet. For callers with one segment; those
        with many look at all of them, wait once, and copy.
        """
        for _ in range(100):
            look = self.look()
            if look is not None:
                if look.state == layout.ACTIVE and look.count:
                    time.sleep(SETTLE_SECONDS)
                data = self.copy(look)
                if data is not None:
                    return data, look
            time.sleep(SETTLE_SECONDS)
        return None

    def rows(self, data: bytes, first_seq: int, after_seq: int = 0, up_to: int | None = None) -> Iterator[RawRow]:
        """The committed rows in `data` (a copy of whole rows) whose seq lies in (after_seq, up_to], in order."""
        n_clocks = len(self.header.clocks)
        offset = self.header.time_offset
        whole = len(data) // self.width * self.width
        words = self.commit_words(data)
        lowest = max(first_seq, after_seq + 1)
        highest = up_to if up_to is not None else (max(words, default=0))
        good = [i for i, word in enumerate(words) if first_seq <= word]
        kept = self._plausible(words, good, first_seq)
        self.damaged_rows += len(good) - len(kept)
        if len(kept) == whole // self.width and kept and words[0] >= lowest and words[kept[-1]] <= highest:
            for fields in self.row.iter_unpack(data[:whole]):
                yield fields[-1], fields[n_clocks] + offset, fields[:n_clocks], fields[n_clocks + 1 : -1]
            return
        unpack = self.row.unpack_from
        for i in kept:
            if lowest <= words[i] <= highest:
                fields = unpack(data, i * self.width)
                yield fields[-1], fields[n_clocks] + offset, fields[:n_clocks], fields[n_clocks + 1 : -1]

    def committed(self, after_seq: int = 0) -> Iterator[RawRow]:
        """The rows with a sequence number above `after_seq`, in order: (seq, unix ns, clocks, values).

        Waits a millisecond if the segment is in use. Yields nothing if it is just being recycled.
        """
        found = self.words()
        if found is not None:
            data, look = found
            yield from self.rows(data, look.first_seq, after_seq)

    def _at(self, index: int) -> int:
        return self.header.header_size + index * self.width

    def commit_words(self, data: bytes) -> list[int]:
        """The commit word of each whole row in `data`; 0 or an old number stands for no row."""
        step = self.header.row_words
        whole = len(data) // self.width * self.width
        return memoryview(data)[:whole].cast("Q")[step - 1 :: step].tolist() if whole else []

    @staticmethod
    def _plausible(words: list[int], good: list[int], before: int) -> list[int]:
        """Of the indices `good`, those whose words increase: a damaged word must not pass for a sequence number."""
        values = [words[i] for i in good]
        if values == sorted(values) and (not values or values[-1] - before < _LARGEST_JUMP):
            return good
        return longest_increase(good, values, before)


def longest_increase(places: list[int], values: list[int], before: int) -> list[int]:
    """The longest part of `places` along which `values` increase and stay below before + 2**40."""
    from bisect import bisect_left

    tails: list[int] = []
    tail_places: list[int] = []
    previous: list[int] = [-1] * len(values)
    for i, value in enumerate(values):
        if value - before >= _LARGEST_JUMP:
            continue
        at = bisect_left(tails, value)
        previous[i] = tail_places[at - 1] if at else -1
        if at == len(tails):
            tails.append(value)
            tail_places.append(i)
        else:
            tails[at] = value
            tail_places[at] = i
    chain: list[int] = []
    i = tail_places[-1] if tail_places else -1
    while i >= 0:
        chain.append(places[i])
        i = previous[i]
    return chain[::-1]


class FrameFile:
    """One frame file. Open while in use; not for several threads at once.

    Attributes:
      lane, number: from the file's head.
      end: where the last `scan` or `frames` stopped: the end of the last whole frame.
      problems: (offset, text) of frames that were skipped because their checksum differs, each once.

    Raises:
      FileNotFoundError: it was unlinked, so its frames are in Parquet.
      Damaged, NewerFormat: not a frame file. `Damaged` also while a writer is just creating it.
    """

    def __init__(self, path: str | os.PathLike[str], time_offset: int = 0) -> None:
        self.path = os.fspath(path)
        self.time_offset = time_offset
        self.problems: list[tuple[int, str]] = []
        self.end = layout.FRAMES_FILE_HEAD.size
        self._fd = _open(self.path)
        try:
            self._read_head()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> FrameFile:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file; twice is fine."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        try:
            self.close()
        except (OSError, AttributeError):
            return

    def _read_head(self) -> None:
        from rollbook.errors import NewerFormat

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
        """Whole frames from `offset` on, undecoded: (seq, unix ns, payload, start, end offset).

        Stops at a torn tail (`end` says where). A frame whose checksum differs is skipped and reported in `problems`
        if a good one follows it; finding the next one after that is the business of `rollbook repair`.
        """
        self.end = offset = max(offset, layout.FRAMES_FILE_HEAD.size)
        head_size = layout.FRAME_HEAD.size
        base, block = offset, pread(self._fd, _BLOCK, offset)
        while True:
            at = offset - base
            if at + head_size > len(block):
                base, block, at = offset, pread(self._fd, _BLOCK, offset), 0
                if len(block) < head_size:
                    return
            length, crc, seq, mono = layout.FRAME_HEAD.unpack_from(block, at)
            size = head_size + length
            if at + size > len(block):
                if length > layout.LARGEST_FRAME or offset + size > os.fstat(self._fd).st_size:
                    return
                base, block, at = offset, pread(self._fd, max(_BLOCK, size), offset), 0
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

    def frames(self, offset: int = 0) -> Iterator[tuple[int, int, dict[str, Any], int]]:
        """Whole frames from `offset` on: (seq, unix ns, payload, end offset). What cannot be decoded is reported."""
        for seq, time_ns, data, start, end in self.scan(offset):
            try:
                payload = decode(data)
            except Damaged as err:
                self.problems.append((start, str(err)))
                continue
            yield seq, time_ns, payload, end

    def payload_at(self, start: int) -> tuple[int, int, dict[str, Any]]:
        """(seq, unix ns, payload) of the frame that `scan` found at `start`.

        Raises:
          Damaged: there is no whole frame at that place any more.
        """
        found = self._frame(start)
        if found is None:
            raise Damaged(f"{self.path}: there is no whole frame at byte {start}")
        return found[0], found[1] + self.time_offset, decode(found[2])

    def torn_bytes(self) -> int:
        """How many bytes lie behind `end`: a torn frame, or one that is being written."""
        return max(0, os.fstat(self._fd).st_size - self.end)

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


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _read_json(path: str) -> tuple[dict[str, Any] | None, str]:
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except FileNotFoundError:
        return None, f"{path} is missing"
    except (OSError, ValueError, RecursionError) as err:
        return None, f"{path} cannot be read ({err})"
    return (found, "") if isinstance(found, dict) else (None, f"{path} holds no JSON object")


def _int(value: Any, default: int) -> int:
    return value if type(value) is int else default
