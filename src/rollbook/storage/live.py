"""The journal of a run as pieces of tables: the unsealed rows, read without changing anything.

A snapshot has the rows of each lane up to one sequence number and none after it: the highest number found in the first
pass over all files of the lane. A lane is written by one thread at a time, so all rows up to that number are finished.
Files that were created after the listing are found by a second listing.
"""

from __future__ import annotations

import copy
import os
import time
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from heapq import merge
from weakref import ref

import numpy as np
import pyarrow as pa

from rollbook.errors import Damaged, NewerFormat
from rollbook.journal import FrameFile, MisnamedSegment, Segment, SegmentHeader, WriterInfo, decode
from rollbook.schema.run_files import journal_folder, parse_name
from rollbook.schema.source import is_view
from rollbook.storage.durable import DurableMarks
from rollbook.storage.fills import Fills
from rollbook.storage.frame_tables import FrameTables, may_have, table_of
from rollbook.storage.sealed_so_far import SealedSoFar
from rollbook.storage.tabulate import Meta, committed_words, last_row, segment_meta, segment_names, segment_rows
from rollbook.system.files import names_in
from rollbook.system.guard import handled_by, raising, tolerating
from rollbook.system.liveness import is_alive
from rollbook.system.texts import amount
from rollbook.system.tuning import TUNING
from rollbook.values.arrow import empty_table, take_table, to_numpy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.values.array_types import NDArray

_MOST_KEPT_BYTES = 256 * 1024 * 1024
"""Maximum rows of segments kept in memory between the first pass and reading; others are read again."""


class Moved(Exception):
    """A journal file was sealed or recycled while it was being read: list again and start over."""


class LiveSegment:
    """The rows of one segment at the moment of a snapshot.

    Attributes:
      path, header, meta: of the segment; the metadata come from its header.
      generation: of the segment, when it was read.
      is_active: whether its writer was using it.
      is_final: whether all rows are here and can no longer change.
      rows, lowest_seq, last_seq: of the committed rows found.
    """

    def __init__(self, segment: Segment, sealed: int = 2**63) -> None:
        head = self._head = segment.head()
        self._sealed = sealed
        self.path, self.header = segment.path, segment.header
        self.generation, self._first_seq = head.generation, head.first_seq
        self.is_active = head.is_active
        self.is_final = not self.is_active
        self.meta = segment_meta(self.header)
        self.problem = ""
        self._words: NDArray | None = None
        self._up_to: int | None = None
        self._cut = segment.cut_short()
        self._take(segment.all_rows())
        self.size = 0 if self._words is None else self._words.nbytes

    @property
    def kept_bytes(self) -> int:
        """How many bytes of its rows are in memory."""
        return 0 if self._words is None else self._words.nbytes

    def settle(self, up_to: int) -> bool:
        """Take the rows up to a sequence number, of which at least the last was just seen; False if they are gone."""
        self._up_to = up_to
        if not self.is_active and self.last_seq <= up_to:
            return True
        self.is_final = False
        try:
            self._take(self._read())
        except Moved:
            return False
        return True

    def words(self) -> NDArray:
        """The rows as [rows, words].

        Raises:
          Moved: they were not kept, and the segment was recycled or unlinked since.
        """
        if self._words is None:
            self._take(self._read())
        assert self._words is not None
        return self._words

    def leave_out(self, rows: NDArray) -> None:
        """Remove rows: a boolean array."""
        self._words = self.words()[~rows]
        self._count()

    def forget(self) -> None:
        """Free the rows; they can be read again while the segment exists."""
        self._words = None

    def read(self, columns: Sequence[str] | None, fills: Fills) -> pa.Table:
        """Columns of the rows."""
        keys = None
        if columns is not None:
            wanted, stored = set(columns), self.meta["stored"]
            keys = [key for key in self.meta["keys"] if stored.get(key, key) in wanted]
        table = segment_rows(self.header, self.words(), keys, fills)
        there = set(table.column_names)
        return table if columns is None else table.select([name for name in columns if name in there])

    def tail(self, rows: int) -> LiveSegment:
        """The same segment with only its last rows."""
        newest = copy.copy(self)
        newest.meta, newest._words = dict(self.meta), self.words()[-rows:]
        newest._count()
        return newest

    @property
    def names(self) -> list[str]:
        """The names of its columns."""
        return segment_names(self.header, self.words())

    def last_row(self) -> tuple[int, dict[str, int], dict[str, object]] | None:
        """See `storage.tabulate.last_row`."""
        return last_row(self.header, self.words())

    def last_time(self) -> int:
        """The unix ns of its newest row; 0 without rows."""
        times = self.words()[:, len(self.header.clocks)]
        return int(times.max()) + self.header.time_offset if len(times) else 0

    def _read(self) -> bytes:
        with raising(lambda _: Moved(self.path), FileNotFoundError, Damaged), Segment(self.path) as segment:
            data = segment.all_rows()
            if segment.head().generation != self.generation:
                raise Moved(self.path)
        return data

    def _take(self, data: bytes) -> None:
        self._words, damage = committed_words(self.header, data, self._first_seq, self._up_to)
        self._count()
        wrong = self._head.contradicted(self.lowest_seq, self.last_seq, self._sealed)
        damage = ", ".join(filter(None, [self._cut, damage, wrong]))
        self.problem = f"{self.path}: {damage}" if damage else ""

    def _count(self) -> None:
        assert self._words is not None
        self.rows = len(self._words)
        self.lowest_seq = int(self._words[0, -1]) if self.rows else 0
        self.last_seq = int(self._words[-1, -1]) if self.rows else 0
        self.meta.update(first_seq=self.lowest_seq, last_seq=self.last_seq, rows=self.rows)


def _seqs(table: pa.Table) -> NDArray:
    return to_numpy(table["seq"])[0]


class LiveFrames:
    """The rows of one group of frames of one frame file, in memory or read again on request.

    Attributes:
      meta: their metadata; see `storage.tabulate.Meta`.
      rows: number of rows.
      size: approximate bytes in memory.
      names: of their columns.
      empty: their table without rows.
    """

    def __init__(self, meta: Meta, table: pa.Table, load: _Load | None) -> None:
        self.meta, self.rows, self.size = meta, table.num_rows, int(table.nbytes)
        self.names: list[str] = table.column_names
        self.empty = empty_table(table.schema)
        self._seqs: NDArray = _seqs(table).copy()
        self._table = table if load is None else None
        self._load = load
        self._kept: NDArray | None = None

    @property
    def seqs(self) -> NDArray:
        """The sequence number of each row."""
        return self._seqs if self._kept is None else self._seqs[self._kept]

    def table(self) -> pa.Table:
        """All columns of the rows.

        Raises:
          Moved, FileNotFoundError: they were not kept, and the file was sealed since.
        """
        table = self._table if self._load is None else self._load()
        if table is None:
            raise Moved(str(self.meta["table"]))
        return table if self._kept is None else take_table(table, self._kept)

    def read(self, columns: Sequence[str] | None) -> pa.Table:
        """Columns of the rows; missing ones are left out."""
        if columns is None:
            return self.table()
        return self.table().select([name for name in columns if name in self.names])

    def outside(self, sealed: Sequence[tuple[int, int]], top: int | None) -> LiveFrames:
        """The rows up to `top` that are not sealed."""
        inside = np.zeros(self.rows, dtype=bool) if top is None else self._seqs > top
        for first, last in sealed:
            inside |= (self._seqs >= first) & (self._seqs <= last)
        if not inside.any():
            return self
        left = copy.copy(self)
        left._kept = kept = np.flatnonzero(~inside)
        left.size, left.rows = self.size * len(kept) // max(1, self.rows), len(kept)
        return left


class Snapshot:
    """The contents of the journal at one moment.

    Attributes:
      segments: rows of streams.
      frames: rows of frames, by group and file.
      fills: the late values in the journal.
      writers: all writers with a folder there.
      tops: (writer, lane) -> the last sequence number of the snapshot.
    """

    def __init__(self) -> None:
        self.segments: list[LiveSegment] = []
        self.frames: list[LiveFrames] = []
        self.fills = Fills()
        self.writers: list[WriterInfo] = []
        self.tops: dict[tuple[str, int], int] = {}


class _Seen:
    """What a snapshot has read so far.

    Attributes:
      generations: path -> the generation of a segment when it was read; 0 for frame files.
      segments: by path and generation; a segment may be found in two generations.
      logs: the frame files by path.
    """

    def __init__(self) -> None:
        self.generations: dict[str, int] = {}
        self.segments: dict[tuple[str, int], LiveSegment] = {}
        self.logs: dict[str, _Log] = {}


class LiveJournal:
    """Reads the journal of one run repeatedly, and caches what can no longer change.

    Args:
      run: the run's folder.
    Attributes:
      problems: path -> problem, for the files read so far.
      marks: the durable marks, as of the last snapshot.
    """

    def __init__(self, run: str) -> None:
        self._run = run
        self._logs: dict[str, _Log] = {}
        self._writers: dict[str, WriterInfo] = {}
        self._left: dict[str, LiveSegment] = {}
        self._kept_bytes = self._kept_frames = 0
        self.problems: dict[str, str] = {}
        self.marks = DurableMarks(run)

    @property
    def kept_bytes(self) -> int:
        """About how many bytes of rows stay in memory until the next snapshot."""
        return sum(log.kept_bytes for log in self._logs.values()) + sum(left.kept_bytes for left in self._left.values())

    def forget(self) -> None:
        """Free what is kept; the next snapshot reads it again. Any thread may call it."""
        self._logs, self._left = {}, {}

    @property
    def tables(self) -> set[str]:
        """The tables that had frames in the last snapshot, decoded or not."""
        return {name for log in self._logs.values() for name in log.tables}

    def snapshot(
        self,
        sealed: Callable[[], dict[tuple[str, int], int]],
        tables: Collection[str],
        having: tuple[str, str] | None = None,
    ) -> Snapshot:
        """The current contents.

        Waits a millisecond if a writer may be writing, so that the rows seen are complete.

        Args:
          sealed: returns (writer, lane) -> the highest sequence number in Parquet; called after the first pass. Rows
            that the first pass missed because they were being sealed are there, and the snapshot reaches at least that
            number.
          tables: whose frames are read; those of other tables are not decoded.
          having: a column and its text: of frames, only those that may have such a row are decoded.
        """
        asked, tables = tables, tables if having is None else ()
        self.marks = DurableMarks(self._run)
        self._kept_bytes = self._kept_frames = 0
        snapshot = Snapshot()
        snapshot.writers = self._list_writers()
        seen = _Seen()
        for info in snapshot.writers:
            self._look_at(info, seen, tables)
        for segment in seen.segments.values():
            _raise(snapshot.tops, segment.header.writer, segment.header.lane, segment.last_seq)
        for log in seen.logs.values():
            _raise(snapshot.tops, *log.whose, log.last_seq)
        self._reach(sealed(), snapshot.tops, seen, tables)
        writing = [info for info in snapshot.writers if info.closed is None and snapshot.tops]
        if writing:
            time.sleep(Segment.SETTLE_SECONDS)
        for info in writing:
            self._look_at(info, seen, tables)
        for segment in seen.segments.values():
            top = snapshot.tops.setdefault((segment.header.writer, segment.header.lane), 0)
            if segment.settle(top) and segment.rows:
                snapshot.segments.append(segment)
        self._judge(snapshot)
        for log in seen.logs.values():
            for payload in log.fill_payloads:
                snapshot.fills.add_frame(*log.whose, payload)
        for log in seen.logs.values():
            fills = snapshot.fills
            snapshot.frames += log.rows(fills) if having is None else log.rows_having(asked, *having, fills)
        self._keep(seen)
        return snapshot

    def _reach(
        self,
        sealed: dict[tuple[str, int], int],
        tops: dict[tuple[str, int], int],
        seen: _Seen,
        tables: Collection[str],
    ) -> None:
        """Raise `tops` to what is sealed; frame files of those lanes are read on: earlier rows may have come there."""
        before = dict(tops)
        for (writer, lane), last in sealed.items():
            _raise(tops, writer, lane, last)
        for path, log in seen.logs.items():
            if tops[log.whose] > before[log.whose]:
                with handled_by(self._note, path, kinds=(Damaged, NewerFormat, OSError)), tolerating(FileNotFoundError):
                    seen.logs[path] = self._scan(path, log.whose[1], log.info, tables)

    def _keep(self, seen: _Seen) -> None:
        """Keep what the next snapshot need not read again, and the problems of segments."""
        self._logs = seen.logs
        left = {path: segment for (path, _), segment in seen.segments.items() if segment.is_final}
        # Less than a keeper seals at once is read again each time: kept, it would be much over many live runs.
        self._left = left if sum(segment.size for segment in left.values()) > TUNING.seal_bytes else {}
        self.problems.update({segment.path: segment.problem for segment in seen.segments.values() if segment.problem})
        _share_memory(self)

    def _list_writers(self) -> list[WriterInfo]:
        folder = journal_folder(self._run)
        names = [] if os.path.islink(folder) else names_in(folder)
        for gone in self._writers.keys() - set(names):
            del self._writers[gone]
        for name in names:
            known = self._writers.get(name)
            if known is None or not known.about:
                path = os.path.join(folder, name)
                if os.path.islink(path) or not os.path.isdir(path):
                    continue
                known = self._writers[name] = WriterInfo(os.path.join(folder, name))
            known.look_closed()
        return [self._writers[name] for name in names if name in self._writers]

    def _look_at(self, info: WriterInfo, seen: _Seen, tables: Collection[str]) -> None:
        """Read the writer's new files, and its segments that were recycled since."""
        for name in names_in(info.folder):
            parsed = parse_name(name)
            if parsed is None:
                continue
            path = os.path.join(info.folder, name)
            if path in seen.generations:
                head = Segment.peek(path) if parsed[0] == "seg" else None
                if parsed[0] == "log" or (head is not None and head.generation == seen.generations[path]):
                    continue
            seen.generations[path] = 0
            with handled_by(self._note, path, kinds=(Damaged, NewerFormat, OSError)), tolerating(FileNotFoundError):
                if parsed[0] == "log":
                    seen.logs[path] = self._scan(path, parsed[1], info, tables)
                    continue
                segment, seen.generations[path] = self._look(path, info)
                if segment is not None:
                    seen.segments[path, segment.generation] = segment

    def _note(self, path: str, err: Exception) -> None:
        if isinstance(err, MisnamedSegment) or not _just_begun(path):
            self.problems[path] = str(err)

    def _look(self, path: str, info: WriterInfo) -> tuple[LiveSegment | None, int]:
        """(the segment, its generation); the segment is None if its rows are in Parquet (listed after the journal).

        Its own head is trusted in this only while its writer lives: one damaged bit could claim it.
        """
        known = self._left.get(path)
        if known is not None:
            head = Segment.peek(path)
            if head is not None and head.generation == known.generation and not head.is_sealed:
                return known, head.generation
        with Segment(path) as segment:
            head = segment.head()
            is_taken = head.is_sealed or head.is_changing
            if is_taken and info.closed is None and is_alive(info.about) is not False:
                return None, head.generation
            if segment.header.writer != os.path.basename(os.path.dirname(path)):
                raise Damaged(f"{path} has rows of writer {segment.header.writer}: it belongs in another folder")
            live = LiveSegment(segment, self._sealed_before(segment.header) if is_taken else 2**63)
            if segment.head().generation != head.generation:
                return None, head.generation
        self._kept_bytes += live.size
        if self._kept_bytes > _MOST_KEPT_BYTES:
            live.forget()
        return live, head.generation

    def _sealed_before(self, header: SegmentHeader) -> int:
        """The last number of a stream that was sealed in this folder."""
        if is_view(self._run):
            return 2**63
        stream = (header.table, header.writer, header.lane, f"S{header.stream:03d}")
        return SealedSoFar(self._run).lasts.get(stream, 0)

    def _judge(self, snapshot: Snapshot) -> None:
        """Remove what a power loss made doubtful."""
        rebooted = {info.id: info for info in snapshot.writers if self.marks.rebooted(info)}
        for segment in snapshot.segments if rebooted else ():
            header = segment.header
            if header.writer in rebooted:
                words = segment.words()
                times = words[:, len(header.clocks)] + header.time_offset
                doubtful = self.marks.doubtful(rebooted[header.writer], header.lane, words[:, -1], times)
                if doubtful is not None:
                    self.problems[segment.path] = (
                        f"{segment.path}: {int(doubtful.sum())} rows were not on the disk for certain when the machine "
                        "went down; they are set aside"
                    )
                    segment.leave_out(doubtful)
        snapshot.segments = [segment for segment in snapshot.segments if segment.rows]

    def _scan(self, path: str, lane: int, info: WriterInfo, tables: Collection[str]) -> _Log:
        inode = os.stat(path).st_ino
        log = self._logs.get(path)
        if log is None or log.inode != inode:
            log = _Log(path, inode, lane, info)
        self._kept_frames += log.scan(tables, self.problems, TUNING.kept_frame_bytes - self._kept_frames)
        return log


_kept: dict[int, tuple[ref[LiveJournal], int]] = {}
"""By id: each journal, and how many bytes it keeps between its snapshots; the one that was read last is the last.
Without a lock, which a forked process could inherit locked: each change is one step of the interpreter."""


def _share_memory(journal: LiveJournal) -> None:
    """Note how many bytes a journal keeps. If all keep too many, the journals read least recently drop theirs."""
    number = id(journal)
    _kept.pop(number, None)
    if not journal.kept_bytes:  # so that thousands of runs that have ended cost nothing here
        return
    _kept[number] = (ref(journal), journal.kept_bytes)  # without a callback: what is raised in one, Python swallows
    known = [(other_id, other(), size) for other_id, (other, size) in [*_kept.items()]]
    over = -TUNING.kept_live_bytes
    for other_id, that, size in known:
        if that is None:
            _kept.pop(other_id, None)
        else:
            over += size
    for other_id, that, size in known:
        if over <= 0:
            return
        if that is not None and _kept.pop(other_id, None) is not None:
            that.forget()
            over -= size


class _Frames:
    """Where the frames of one table are in a file: 32 bytes for each."""

    def __init__(self) -> None:
        self._numbers = array("q")

    def __len__(self) -> int:
        return len(self._numbers) // 4

    def add(self, frame: _Frame) -> None:
        """One more, behind the others."""
        self._numbers.extend(frame)

    def between(self, start: int, stop: int) -> Iterator[_Frame]:
        """The frames with start <= position < stop."""
        cells = iter(self._numbers[4 * start : 4 * stop])
        return zip(cells, cells, cells, cells, strict=True)


class _Log:
    """One frame file and the rows of its frames by table. Each frame is located once, and decoded when needed."""

    def __init__(self, path: str, inode: int, lane: int, info: WriterInfo) -> None:
        self.path, self.inode, self._lane, self.info = path, inode, lane, info
        self.whose = (info.id, lane)
        self.last_seq = 0
        self._end = 0
        self._frames: dict[str, _Frames] = {}
        self._taken: dict[str, _Taken] = {}
        self._texts: dict[int, str] = {}
        self._pending: dict[int, tuple[int, int, dict[str, object]]] = {}
        self._fills: dict[int, dict[str, object]] = {}

    @property
    def kept_bytes(self) -> int:
        """About how many bytes it holds."""
        rows = sum(taken.kept_bytes for taken in self._taken.values())
        return rows + sum(32 * len(frames) for frames in self._frames.values())

    @property
    def tables(self) -> Collection[str]:
        """The tables that its frames belong to."""
        return self._frames.keys()

    @property
    def fill_payloads(self) -> list[dict[str, object]]:
        """The late values in its frames."""
        return list(self._fills.values())

    def scan(self, tables: Collection[str], problems: dict[str, str], spare: int) -> int:
        """Read the new frames of some tables, up to the present end of the file, which may grow meanwhile.

        Frames of other tables are skipped without decoding.

        Args:
          spare: how many bytes of frames may stay in memory; larger tables are read again on request.
        Returns:
          How many bytes of frames stay in memory.
        """
        wanted = {*tables, "fills", ""}
        with FrameFile(self.path, self.info.time_offset) as file:
            size = file.size()
            for name in wanted:
                if self._taken.setdefault(name, self._nothing()).count < len(self._frames.get(name, ())):
                    self._catch_up(file, name)  # including frames that were skipped
            for seq, time_ns, data, begin, end in file.scan(self._end):
                self.last_seq = max(self.last_seq, seq)
                table = table_of(data)
                frame = (seq, time_ns, begin, end)
                self._frames.setdefault(table, _Frames()).add(frame)
                if table in wanted and self._taken[table].tables is None:
                    self._catch_up(file, table)
                elif table in wanted:
                    self._take(self._taken[table], frame, data)
                if end >= size:
                    break
            self._end, torn = file.end, file.torn_bytes()
            is_damaged = file.is_torn_by_damage()
            for begin, text in file.problems:
                self._texts[begin] = text
        kept = sum(
            taken.bytes for name, taken in self._taken.items() if name not in wanted and taken.tables is not None
        )
        for name in wanted:
            taken = self._taken[name]
            many = taken.bytes > spare - kept and name not in ("fills", "")
            taken.build(partial(self._load, name, taken.count) if many else None)
            kept += 0 if taken.tables is None else taken.bytes
        texts = [self._texts[begin] for begin in sorted(self._texts)]
        if torn and (is_damaged or self.info.closed is not None):
            texts.append(f"torn behind the last whole record: {amount(torn, 'byte')}")
        for taken in self._taken.values():
            texts += taken.problems
        if texts:
            problems[self.path] = f"{self.path}: {'; '.join(texts)}"
        return kept

    def rows(self, fills: Fills) -> list[LiveFrames]:
        """The rows of each group; rare rows include the device values that have arrived."""
        built = [rows for taken in self._taken.values() for rows in taken.built or ()]
        if not self._pending:
            return built
        late = FrameTables(self.info, self._lane, fills)
        for seq, time_ns, payload in self._pending.values():
            late.add(seq, time_ns, payload)
        return built + [LiveFrames(meta, table, None) for meta, table in late.tables()]

    def rows_having(self, tables: Collection[str], column: str, text: str, fills: Fills) -> list[LiveFrames]:
        """At least the rows of some tables that have this text in a column, from the frames that were located.

        Raises:
          Moved, FileNotFoundError: the file was sealed since.
        """
        found = FrameTables(self.info, self._lane, fills)
        frames = [self._frames[name] for name in {*tables, ""} & self._frames.keys()]
        for frame in self._decoded(merge(*(each.between(0, len(each)) for each in frames)), may_have(column, text)):
            found.add(*frame)
        return [LiveFrames(meta, table, None) for meta, table in found.tables()]

    def _nothing(self) -> _Taken:
        return _Taken(FrameTables(self.info, self._lane))

    def _catch_up(self, file: FrameFile, name: str) -> None:
        """Read all located frames of a table; from the first one if they were freed."""
        if self._taken[name].tables is None:
            self._taken[name] = self._nothing()
        taken = self._taken[name]
        frames = self._frames[name]
        for frame in frames.between(taken.count, len(frames)):
            self._take(taken, frame, file.payload(frame[2], frame[3]))

    def _take(self, taken: _Taken, frame: _Frame, data: bytes) -> None:
        seq, time_ns, begin, _ = frame
        taken.count += 1
        taken.bytes += len(data)
        taken.built = None
        try:
            payload = decode(data)
        except Damaged as err:
            self._texts[begin] = str(err)
            return
        if "fill" in payload:
            self._fills[begin] = payload
        if isinstance(payload.get("deferred"), list):
            self._pending[begin] = (seq, time_ns, payload)
        elif taken.tables is not None:
            taken.tables.add(seq, time_ns, payload)

    def _load(self, name: str, count: int) -> dict[str, pa.Table]:
        """{group: table} of the first frames of a table, read again."""
        tables = FrameTables(self.info, self._lane)
        for frame in self._decoded(self._frames[name].between(0, count)):
            if not isinstance(frame[2].get("deferred"), list):
                tables.add(*frame)
        return {f"{meta['table']}\0{meta['group']}": table for meta, table in tables.tables()}

    def _decoded(
        self, frames: Iterable[_Frame], is_wanted: Callable[[bytes], bool] | None = None
    ) -> Iterator[tuple[int, int, dict[str, object]]]:
        """(seq, unix ns, payload) of located frames, read again; of those that are not wanted nothing is decoded."""
        with FrameFile(self.path, self.info.time_offset) as file:
            if os.stat(self.path).st_ino != self.inode:
                raise Moved(self.path)
            for seq, time_ns, begin, end in frames:
                data = file.payload(begin, end)
                if is_wanted is None or is_wanted(data):
                    with tolerating(Damaged):  # it is reported where a whole table is read
                        yield seq, time_ns, decode(data)


_Load = Callable[[], "pa.Table | None"]
"""Returns the rows; None for none."""
_Frame = tuple[int, int, int, int]
"""seq, unix ns, start, end offset"""
_BESIDE_A_FRAME = 600
"""Bytes of memory that a decoded frame takes in addition to its cells."""


class _Taken:
    """The rows from the frames of one table of one file.

    Attributes:
      tables: the decoded frames; None after they were freed.
      built: the rows; None if frames were added since.
      count, bytes: of the frames.
    """

    def __init__(self, tables: FrameTables) -> None:
        self.tables: FrameTables | None = tables
        self.problems: list[str] = []
        self.built: list[LiveFrames] | None = None
        self.count = self.bytes = 0

    @property
    def kept_bytes(self) -> int:
        """About how many bytes of its rows are in memory."""
        return 0 if self.tables is None else self.bytes + _BESIDE_A_FRAME * self.count

    def build(self, load: Callable[[], dict[str, pa.Table]] | None) -> None:
        """Build the rows; with `load`, free them and use it to read them on request."""
        if self.tables is None or (self.built is not None and load is None):
            return

        def of_group(meta: Meta) -> _Load | None:
            group = f"{meta['table']}\0{meta['group']}"
            return None if load is None else lambda: load().get(group)

        self.built = [LiveFrames(meta, table, of_group(meta)) for meta, table in self.tables.tables()]
        self.problems = self.tables.problems
        if load is not None:
            self.tables = None


def _raise(tops: dict[tuple[str, int], int], writer: str, lane: int, seq: int) -> None:
    tops[writer, lane] = max(seq, tops.get((writer, lane), 0))


def _just_begun(path: str) -> bool:
    """Whether a file is so new that its writer may still be creating it."""
    with tolerating(OSError):
        return time.time() - os.stat(path).st_mtime < 1.0
    return True
