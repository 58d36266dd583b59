"""Reads the rows of one segment file, also while its writer adds more.

The current stores of a live writer become visible in any order. So a row counts only after two looks:

    first = segment.look()        # which commit words exist
    ...                           # at least Segment.SETTLE_SECONDS later, unless the writer has gone
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
from rollbook.journal.files import JournalFile
from rollbook.schema.run_files import parse_name
from rollbook.system.files import open_regular, pread
from rollbook.system.guard import raising, tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any, TypeAlias

    RawRow: TypeAlias = tuple[int, int, tuple[int, ...], tuple[float | int, ...]]
    """(seq, unix nanoseconds, clocks, values) of one row; clocks and values in the order of the header."""

_LARGEST_JUMP = 2**40
"""A commit word this far above its neighbour is damage, not a sequence number."""


class MisnamedSegment(Damaged):
    """A segment under another name than its own: its rows may be in another file, too."""


class Head:
    """The words in a segment's head that change while it is in use.

    Attributes:
      generation: increased twice each time its writer recycles it. first_seq: the lowest number that its rows may have.
      said_first: the same as the head has it, of which one damaged bit makes another number.
      state: who may use it; see `format`.
    """

    __slots__ = ("first_seq", "generation", "said_first", "state")

    def __init__(self, generation: int, said_first: int, state: int) -> None:
        self.generation, self.said_first, self.state = generation, said_first, state
        self.first_seq = layout.lowest_number(generation, said_first)

    def contradicted(self, lowest: int, last: int, sealed: int) -> str:
        """What its head claims about its rows that is not true; "" if nothing.

        Args:
          lowest, last: the numbers of the first and the last row, 0 if there is none.
          sealed: the last number that is in Parquet; above all others while the writer lives.
        """
        claim = ""
        if last and self.first_seq < self.said_first and lowest < self.said_first:
            claim = f"begin at number {self.said_first:,}"
        elif last > sealed and (self.is_sealed or self.is_changing):
            claim = "are sealed" if self.is_sealed else "are being replaced"
        return claim and f"its head says that its rows {claim}; a bit of it has changed. All rows were read"

    @property
    def is_active(self) -> bool:
        """Whether its writer is using it."""
        return self.state == layout.ACTIVE

    @property
    def is_sealed(self) -> bool:
        """Whether its rows are in Parquet."""
        return self.state == layout.SEALED

    @property
    def is_changing(self) -> bool:
        """Whether its writer is recycling it."""
        return self.generation % 2 == 1


class Look:
    """The result of a look at a segment's commit words.

    Attributes:
      generation, first_seq, state: the head at the time of the look.
      start: the row index at which the look began.
      upper: one more than the index of the last committed row; `start` if there was none.
      lowest_seq, last_seq: the sequence numbers of the first and the last committed row, 0 if there was none.
      count: number of committed rows in [start, upper).
    """

    __slots__ = ("count", "first_seq", "generation", "last_seq", "lowest_seq", "start", "state", "upper")

    def __init__(self, generation: int, first_seq: int, state: int, start: int) -> None:
        self.generation, self.first_seq, self.state = generation, first_seq, state
        self.start = self.upper = start
        self.lowest_seq = self.last_seq = self.count = 0


class Segment(JournalFile):
    """One segment file. Open while in use; not for several threads at once.

    Attributes:
      header: its state when opened; generation, first_seq and state continue to change in the file (see `look`).
      row: the struct of one row.
      damaged_rows: number of rows that `rows` left out because of an invalid commit word.
      SETTLE_SECONDS: how long ago a commit word must have been seen before its row is accepted.
      ACTIVE, LEFT: states; a writer leaves a segment when it is full.

    Raises:
      FileNotFoundError: it was unlinked, so its rows are in Parquet.
      Damaged, NewerFormat: not a readable segment. `Damaged` also while a writer is creating the file.
    """

    SETTLE_SECONDS = 0.001
    ACTIVE, LEFT = layout.ACTIVE, layout.LEFT

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        self.damaged_rows = 0
        with self.closed_on_failure():
            self.header = self._read_header()
            self._check_owner()
        self.row = layout.row_struct(len(self.header.clocks), self.header.types)
        self.width = self.row.size

    def _read_header(self) -> layout.SegmentHeader:
        data = pread(self._fd, 4096, 0)
        if len(data) >= layout.HEAD.size:
            meta_size = layout.HEAD.unpack_from(data)[9]
            if layout.HEAD.size + meta_size > len(data):
                size = os.fstat(self._fd).st_size
                data = pread(self._fd, min(size, layout.HEAD.size + meta_size), 0)
        return self.header_in(data, self.path)

    def _check_owner(self) -> None:
        """A copy under another name has rows that count once, in the original."""
        header, parsed = self.header, parse_name(os.path.basename(self.path))
        if parsed is not None and parsed != ("seg", header.lane, header.stream, header.slot):
            own = f"lane {header.lane}, stream {header.stream}, slot {header.slot}"
            raise MisnamedSegment(f"{self.path} is a copy: it describes itself as {own}. Its rows are not read")

    def head(self) -> Head:
        """Its current head."""
        head = _head(self._fd)
        if head is None:
            raise Damaged(f"{self.path} was cut to {os.fstat(self._fd).st_size} bytes")
        return head

    @staticmethod
    def peek(path: str) -> Head | None:
        """The head of a segment without reading rows; None if it is gone, or was never started."""
        with tolerating(OSError, Damaged), open(open_regular(path), "rb", buffering=0) as file:
            return _head(file.fileno())
        return None

    @staticmethod
    def header_in(data: bytes, path: str) -> layout.SegmentHeader:
        """The header in the first bytes of a damaged segment.

        Raises:
          Damaged, NewerFormat: they cannot be read.
        """
        wrong = f"{path}: the description of its columns makes no sense"
        with raising(lambda err: Damaged(f"{wrong} ({err!r})"), ValueError, KeyError, TypeError, struct.error):
            return layout.unpack_header(data, path)

    @staticmethod
    def header_by_description(data: bytes, path: str) -> tuple[layout.SegmentHeader, bool]:
        """The header of a segment whose head is damaged, from the description of its columns behind the head, and
        whether the checksum confirms it.

        Raises:
          Damaged, ValueError, KeyError, TypeError, struct.error: the description is damaged, too.
        """
        text = bytes(data[layout.HEAD.size : layout.HEAD.size + (1 << 20)]).partition(b"\0")[0]
        meta, _ = json.JSONDecoder().raw_decode(text.decode("utf-8", "strict"))
        head, header_size, width, _ = layout.pack_header(meta, first_seq=1, size=len(data))
        with raising(lambda err: Damaged(f"{path}: {err!r}"), ValueError, KeyError, TypeError, struct.error):
            header = layout.unpack_header(head, path)
        header.capacity = max(0, len(data) - header_size) // width
        return header, struct.unpack_from("<I", data, layout.HEAD.size - 4)[0] == zlib.crc32(text.rstrip(b"\0"))

    @staticmethod
    def header_for(meta: dict[str, Any], path: str) -> layout.SegmentHeader:
        """The header that a writer gives a new segment; `meta` as `format.pack_header` takes it."""
        head, *_ = layout.pack_header(meta, first_seq=1, size=layout.FIRST_SEGMENT_BYTES)
        return layout.unpack_header(head, path)

    @staticmethod
    def fence(path: str) -> None:
        """Tell its writer that another process took over the run: its later rows are not effective."""
        with open(path, "r+b") as file:
            file.seek(layout.FENCE_AT)
            file.write(layout.WORD.pack(1))

    def has_row_at(self, index: int, first_seq: int) -> bool:
        """Whether one of the next few rows from `index` is committed: the cheap check of a poll."""
        data = pread(self._fd, self.width * min(8, max(0, self.header.capacity - index)), self._at(index))
        return any(word >= first_seq for word in self.commit_words(data))

    def look(self, start: int = 0, *, thorough: bool = True) -> Look | None:
        """Which rows from index `start` on are committed. None while the writer recycles the segment.

        With `thorough=False` the look ends at the first stretch of 64 KiB or more without a committed row. If the
        numbers in the first 64 KiB and in the last slot are successive, it counts all slots without reading them.
        """
        head = self.head()
        if head.is_changing:
            return None
        first_seq = head.first_seq
        look = Look(head.generation, first_seq, head.state, start)
        index, size = start, 64 * 1024  # a larger buffer is new memory each time, which costs more than reading
        capacity = self.header.capacity
        while index < capacity:
            wanted = max(1, size // self.width)
            data = pread(self._fd, self.width * min(wanted, capacity - index), self._at(index))
            words = self.commit_words(data)
            if not words:
                break
            good = _committed(words, first_seq)
            if good:
                good = self._plausible(words, good, look.last_seq or first_seq)
            if good:
                look.upper, look.last_seq = index + good[-1] + 1, words[good[-1]]
                look.lowest_seq = look.lowest_seq or words[good[0]]
                look.count += len(good)
            elif not thorough:
                break
            index += len(words)
            if not thorough and index - start == len(words) and self._goes_on_to_its_end(look, index):
                look.count, look.last_seq = capacity - start, look.last_seq + capacity - index
                look.upper = capacity
                break
        return look

    def _goes_on_to_its_end(self, look: Look, index: int) -> bool:
        """Whether the slots before `index` hold successive numbers, and the last one what follows from them."""
        left = self.header.capacity - index
        if left <= 0 or look.upper != index or look.last_seq - look.lowest_seq != index - look.start - 1:
            return False
        last = self.commit_words(pread(self._fd, self.width, self._at(self.header.capacity - 1)))
        return last == [look.last_seq + left]

    def copy(self, look: Look, start: int | None = None) -> bytes | None:
        """A copy of the bytes of the rows [start, look.upper); None if the segment was recycled since the look."""
        start = look.start if start is None else start
        data = pread(self._fd, self.width * max(0, look.upper - start), self._at(start))
        return data if self.head().generation == look.generation else None

    def all_rows(self) -> bytes:
        """The current bytes of all row slots of the file, committed or not."""
        room = min(self.width * self.header.capacity, os.fstat(self._fd).st_size - self.header.header_size)
        data = pread(self._fd, max(0, room), self.header.header_size)
        whole = len(data) // self.width * self.width
        return data if whole == len(data) else data[:whole]

    def cut_short(self) -> str:
        """What is wrong with its length: a segment has room for all of its rows from the start. "" if nothing."""
        size, whole = os.fstat(self._fd).st_size, self.header.header_size + self.width * self.header.capacity
        return f"cut to {size:,} of {whole:,} bytes" if size < whole else ""

    def words(self) -> tuple[bytes, Look] | None:
        """All rows up to the last committed one as raw bytes (holes included), and the look that found them.

        None if the segment is being recycled: its former rows are in Parquet. For callers with one segment. Callers
        with many look at all of them, wait once, and copy.
        """
        for _ in range(100):
            look = self.look()
            if look is not None:
                if look.state == layout.ACTIVE and look.count:
                    time.sleep(self.SETTLE_SECONDS)
                data = self.copy(look)
                if data is not None:
                    return data, look
            time.sleep(self.SETTLE_SECONDS)
        return None

    def settled(self) -> tuple[bytes, Look] | None:
        """Its committed rows as the content of a finished segment, and the look that found them.

        None if it has no rows, or they are in Parquet.
        """
        words_and_look = self.words()
        if words_and_look is None:
            return None
        data, look = words_and_look
        if not look.count or look.state == layout.SEALED:
            return None
        head = bytearray(pread(self._fd, self.header.header_size, 0))
        struct.pack_into("<QQ", head, layout.GENERATION_AT, look.generation, look.first_seq)
        struct.pack_into("<I", head, layout.CAPACITY_AT, len(data) // self.width)
        rows = bytearray(data)
        words = memoryview(rows).cast("Q")
        step = self.header.row_words
        for at in range(step - 1, len(words), step):
            if words[at] > look.last_seq:  # committed after the look: its values may be incomplete
                words[at] = 0
        words.release()
        return bytes(head) + bytes(rows), look

    def rows(self, data: bytes, first_seq: int, after_seq: int = 0, up_to: int | None = None) -> Iterator[RawRow]:
        """The committed rows in `data` (a copy of whole rows) with a seq in (after_seq, up_to], in order."""
        n_clocks = len(self.header.clocks)
        offset = self.header.time_offset
        whole = len(data) // self.width * self.width
        words = self.commit_words(data)
        lowest = max(first_seq, after_seq + 1)
        highest = up_to if up_to is not None else (max(words, default=0))
        good = _committed(words, first_seq)
        plausible = self._plausible(words, good, first_seq)
        self.damaged_rows += len(good) - len(plausible)
        if (
            len(plausible) == whole // self.width
            and plausible
            and words[0] >= lowest
            and words[plausible[-1]] <= highest
        ):
            for fields in self.row.iter_unpack(data[:whole]):
                yield fields[-1], fields[n_clocks] + offset, fields[:n_clocks], fields[n_clocks + 1 : -1]
            return
        unpack = self.row.unpack_from
        for i in plausible:
            if lowest <= words[i] <= highest:
                fields = unpack(data, i * self.width)
                yield fields[-1], fields[n_clocks] + offset, fields[:n_clocks], fields[n_clocks + 1 : -1]

    def committed(self, after_seq: int = 0) -> Iterator[RawRow]:
        """The rows with a sequence number above `after_seq`, in order: (seq, unix ns, clocks, values).

        Waits a millisecond if the segment is in use. Yields nothing while it is being recycled.
        """
        words = self.words()
        if words is not None:
            data, look = words
            yield from self.rows(data, look.first_seq, after_seq)

    def _at(self, index: int) -> int:
        return self.header.header_size + index * self.width

    def commit_words(self, data: bytes) -> list[int]:
        """The commit word of each whole row in `data`; 0 or an old number means no row."""
        step = self.header.row_words
        whole = len(data) // self.width * self.width
        return memoryview(data)[:whole].cast("Q")[step - 1 :: step].tolist() if whole else []

    @staticmethod
    def are_in_order(words: list[int], first_seq: int) -> bool:
        """Whether all of these commit words are rows, in order."""
        if not words:
            return True
        return words[0] >= first_seq and words[-1] - first_seq < _LARGEST_JUMP and words == sorted(words)

    @classmethod
    def plausible(cls, words: list[int], first_seq: int) -> Sequence[int]:
        """The indices of the words that are rows."""
        return cls._plausible(words, _committed(words, first_seq), first_seq)

    @staticmethod
    def _plausible(words: list[int], good: Sequence[int], before: int) -> Sequence[int]:
        """Those of the indices `good` whose words increase: a damaged word must not count as a sequence number."""
        values = words if len(good) == len(words) else [words[i] for i in good]
        if values == sorted(values) and (not values or values[-1] - before < _LARGEST_JUMP):
            return good
        return Segment.longest_increase(good, values, before)

    @staticmethod
    def longest_increase(indices: Sequence[int], values: list[int], before: int) -> list[int]:
        """The longest part of `indices` in which `values` increase and stay below before + 2**40."""
        from bisect import bisect_left

        tails: list[int] = []
        ends: list[int] = []
        previous: list[int] = [-1] * len(values)
        for i, value in enumerate(values):
            if value - before >= _LARGEST_JUMP:
                continue
            at = bisect_left(tails, value)
            previous[i] = ends[at - 1] if at else -1
            if at == len(tails):
                tails.append(value)
                ends.append(i)
            else:
                tails[at] = value
                ends[at] = i
        chain: list[int] = []
        i = ends[-1] if ends else -1
        while i >= 0:
            chain.append(indices[i])
            i = previous[i]
        return chain[::-1]


def _committed(words: list[int], first_seq: int) -> Sequence[int]:
    """The indices of committed rows. For a full segment these are all, which is much faster to check."""
    if words and min(words) >= first_seq:
        return range(len(words))
    return [i for i, word in enumerate(words) if word >= first_seq]


def _head(fd: int) -> Head | None:
    data = pread(fd, layout.HEAD.size, 0)
    if len(data) < layout.HEAD.size:
        return None
    fields = layout.HEAD.unpack(data)
    return Head(fields[3], fields[4], fields[7])
