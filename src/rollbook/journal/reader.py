"""Committed rows of live or dead journals, in order, after a cursor: for sinks, the terminal and `Book.tail`.

    reader = JournalReader(run_folder)
    cursor = {}                          # {writer: {lane: last sequence number}}; plain data, saved by its owner
    for row in reader.rows_since(cursor):
        ...                              # `cursor` has been moved past `row` already

Why nothing is lost or repeated: only one thread at a time writes a lane. So the highest sequence number that one look
finds proves that all rows before it are finished. A second look, a millisecond later, reads exactly the rows up to that
number. A row missing then was either never written (an interrupt) or has been sealed meanwhile; the latter are read
from `sealed`, the store's view of the Parquet files.
"""

from __future__ import annotations

import heapq
import os
import time
from itertools import pairwise

from rollbook.journal.block_columns import BlockPiece
from rollbook.journal.frame_files import FrameFile
from rollbook.journal.open_files import Block, Listing, LogState, WriterFiles
from rollbook.journal.rows import rows_of_frame, thinned
from rollbook.journal.segments import Segment
from rollbook.journal.writers import WriterInfo, list_writers
from rollbook.schema.columns import RowsPiece
from rollbook.schema.run_files import journal_folder
from rollbook.schema.tables import FORWARDED, timing_name
from rollbook.system.files import is_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Protocol, TypeAlias

    from rollbook.protocols import Row
    from rollbook.schema.columns import Piece

    Cursor: TypeAlias = dict[str, dict[int, int]]

    class SealedRows(Protocol):
        """The rows in Parquet. The store provides it; without it a reader sees live rows only."""

        def lanes(self) -> dict[str, dict[int, int]]:
            """{writer: {lane: highest sequence number in Parquet}}. Cheap when nothing has changed."""

        def rows(
            self,
            writer: str,
            lane: int,
            after: int,
            up_to: int,
            tables: frozenset[str],
            *,
            most: int = 0,
            newest: bool = False,
        ) -> Iterable[Row]:
            """The rows of a lane with after < seq <= up_to, by seq. `most` limits the rows of a large chunk; with
            `newest`, at least the last row of each key set.
            """


__all__ = [
    "FrameFile",
    "JournalReader",
    "Segment",
    "WriterInfo",
    "list_writers",
    "newest_rows",
    "rows_since",
]

OWN_SCOPE = "rollbook"
"""The scope of rows that rollbook writes about itself."""

_TIMINGS = frozenset(["timings"])

HOLD_SECONDS = 3.0
"""How long a row waits for values still on a device. They are fetched within 2 s, or never."""


def rows_since(
    run_folder: str | os.PathLike[str], cursor: Cursor, *, tables: frozenset[str] = FORWARDED
) -> Iterator[Row]:
    """The rows after `cursor`, in order of time; moves `cursor` in place. See `JournalReader.rows_since`."""
    with JournalReader(run_folder, tables=tables) as reader:
        yield from reader.rows_since(cursor)


def newest_rows(run_folder: str | os.PathLike[str], cursor: Cursor) -> list[Row]:
    """The newest row of each stream after `cursor`; moves `cursor` in place."""
    with JournalReader(run_folder) as reader:
        return reader.newest_rows(cursor)


class JournalReader:
    """Follows the journal of one run. Keeps files open between polls, so that a poll without new rows is cheap.

    One thread at a time. Never changes the folder and never raises for its content; see `problems`.

    Args:
      run_folder: the run's folder. It may still be empty.
      sealed: the store's view of the rows in Parquet.
      tables: the tables whose rows to return; by default those for sinks.
      most_of_frame: limit of rows for a larger chunk of numbers (`log_many`), evenly spaced, including the last; 0:
        all.

    Attributes:
      problems: path -> what could not be read there.
    """

    def __init__(
        self,
        run_folder: str | os.PathLike[str],
        *,
        sealed: SealedRows | None = None,
        tables: frozenset[str] = FORWARDED,
        most_of_frame: int = 0,
    ) -> None:
        self._most_of_frame = most_of_frame
        self._journal = journal_folder(run_folder)
        self._sealed, self._tables = sealed, tables
        self._writers: dict[str, WriterFiles] = {}
        self._listing = Listing(self._journal)
        self.problems: dict[str, str] = {}

    def __enter__(self) -> JournalReader:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all files. The reader can still be used, and opens them again."""
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()
        self._listing.forget()

    def rows_since(self, cursor: Cursor) -> Iterator[Row]:
        """The rows committed after `cursor`, lanes merged by time. At the end, `cursor` is after all of them.

        The cursor is moved past a row before the row is yielded; a frame of several rows counts as passed with its last
        row. So a caller that stops early can continue at the right place. A row with values still on a device is held
        back, with all later rows of its lane, until the values arrive or 3 s have passed.
        """
        windows = self._windows(cursor)
        for _time_ns, rows, seq, window in self._merged(windows):
            yield from rows[:-1]
            window.reached(cursor, seq)
            yield rows[-1]
        for window in windows:
            window.reached(cursor, window.up_to)

    def batches(self, cursor: Cursor, most_rows: int = 4096) -> Iterator[tuple[list[Row], Cursor]]:
        """The same in lists of about `most_rows` rows, each with the cursor to save after the list is delivered.

        `cursor` itself is not moved. A frame is never split. The last list may be empty: then only the cursor is new.
        """
        moving = {writer: dict(lanes) for writer, lanes in _tidy(cursor).items()}
        windows = self._windows(moving)
        if not windows:
            return
        batch: list[Row] = []
        for _time_ns, rows, seq, window in self._merged(windows):
            batch += rows
            window.reached(moving, seq)
            if len(batch) >= most_rows:
                yield batch, {writer: dict(lanes) for writer, lanes in moving.items()}
                batch = []
        for window in windows:
            window.reached(moving, window.up_to)
        yield batch, moving

    def newest_rows(self, cursor: Cursor, *, sum_timings: bool = False) -> list[Row]:
        """The newest row of each stream and rare key set after `cursor`, and all texts, media and marks, by time.

        With `sum_timings`, the value of a timing is the total time of its stage in all rows after `cursor`. Rows sealed
        since the last poll are left out unless their writer has closed: newer ones follow.
        """
        windows = self._windows(cursor, whole=_TIMINGS if sum_timings else frozenset())
        newest: dict[tuple[object, ...], tuple[int, Row]] = {}
        for window in windows:
            window.newest(newest, self._sealed, sum_timings)
            window.reached(cursor, window.up_to)
        return [row for _, row in sorted(newest.values(), key=lambda item: item[0])]

    def columns(
        self,
        cursor: Cursor,
        *,
        most_bytes: int,
        is_late: Callable[[], bool],
        leave_out: Callable[[str], bool] = lambda writer: False,
    ) -> Iterator[ColumnsRead]:
        """The rows after `cursor` as columns, in stretches; `cursor` itself is not moved. For health rules.

        Rows already in Parquet are not read. If a lane has more rows than fit in one stretch, rows of different lanes
        may come slightly out of order.

        Args:
          most_bytes: the size of a stretch, in each lane.
          is_late: called after each stretch; once it returns true, only the last stretch of each lane follows.
          leave_out: writers whose rows are skipped.
        """
        moving = {writer: dict(lanes) for writer, lanes in _tidy(cursor).items()}
        windows = self._looked_at_once(moving)
        if not windows:
            return
        now = time.time_ns()
        lanes = [window.stretches(most_bytes) for window in windows]
        while lanes:
            skipped, read = 0, ColumnsRead()
            if is_late():
                skipped = sum(window.up_to - window.after for lane in lanes for window in lane[:-1])
                lanes = [lane[-1:] for lane in lanes]
            taken: list[_Window] = []
            for lane in lanes:
                window = lane.pop(0)
                end = window.up_to
                if leave_out(window.writer.info.id):
                    lane.clear()
                else:
                    window.second_look(now)
                    skipped += window.missing()
                    taken.append(window)
                    if window.up_to < end:
                        lane.clear()  # it waits for values
                window.reached(moving, window.up_to)
            lanes = [lane for lane in lanes if lane]
            for window in taken:
                window.put_columns(read)
            if read.went_back:  # the order of rows tells what came before and after it
                read = ColumnsRead()
                rows = (row for _time, rows, _seq, _window in self._merged(taken) for row in rows)
                read.in_order = [row for row in rows if row.scope != OWN_SCOPE]
            read.skipped, read.cursor = skipped, {writer: dict(seqs) for writer, seqs in moving.items()}
            yield read

    def skip(self, cursor: Cursor) -> None:
        """Move `cursor` after all current rows."""
        for window in self._windows(cursor):
            window.reached(cursor, window.up_to)

    # -- how a poll goes

    def _looked_at_once(self, cursor: Cursor) -> list[_Window]:
        """What may be new in each lane, for a second look a millisecond later."""
        _tidy(cursor)
        self._refresh()
        windows = self._new_live(cursor)
        windows += self._new_sealed(cursor, {(w.writer.info.id, w.lane) for w in windows})
        if any(window.writer.info.closed is None for window in windows):
            time.sleep(Segment.SETTLE_SECONDS)
        return windows

    def _windows(self, cursor: Cursor, whole: frozenset[str] | None = None) -> list[_Window]:
        """What is new in each lane: two looks, one millisecond apart. `whole`: see `_Window.second_look`."""
        windows = self._looked_at_once(cursor)
        now = time.time_ns()
        for window in windows:
            window.second_look(now, whole)
        return [window for window in windows if window.up_to > window.after]

    def _new_live(self, cursor: Cursor) -> list[_Window]:
        windows = []
        for name, writer in self._writers.items():
            for lane in writer.lanes():
                after = cursor.get(name, {}).get(lane, 0)
                top = writer.top(lane, after)
                if top > after:
                    windows.append(_Window(writer, lane, after, top, self._tables, self._most_of_frame))
        return windows

    def _new_sealed(self, cursor: Cursor, known: set[tuple[str, int]]) -> list[_Window]:
        """Lanes without new rows in the journal, but with rows in Parquet after the cursor."""
        windows: list[_Window] = []
        for name, lanes in (self._sealed.lanes() if self._sealed is not None else {}).items():
            for lane, last in lanes.items():
                after = cursor.get(name, {}).get(lane, 0)
                if last > after and (name, lane) not in known:
                    writer = self._writers.get(name) or WriterFiles(os.path.join(self._journal, name), self.problems)
                    windows.append(_Window(writer, lane, after, last, self._tables, self._most_of_frame))
        return windows

    def _refresh(self) -> None:
        names = self._listing.names()
        if names is not None:
            for gone in self._writers.keys() - set(names):
                self._writers.pop(gone).close()
            for name in names:
                folder = os.path.join(self._journal, name)
                if name not in self._writers and is_folder(folder):
                    self._writers[name] = WriterFiles(folder, self.problems)
        for writer in self._writers.values():
            writer.refresh()

    def _merged(self, windows: list[_Window]) -> Iterator[_Item]:
        return heapq.merge(*(window.ordered(self._sealed) for window in windows), key=_time_of)


class ColumnsRead:
    """One result of `JournalReader.columns`.

    Attributes:
      pieces: rows of the run, by table and stream.
      in_order: instead of pieces, all rows with their marks, if the run went back among them.
      went_back: a piece was left out for this reason.
      skipped: number of rows that were skipped, because there were too many or they had been sealed.
      cursor: where to continue.
    """

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.in_order: list[Row] = []
        self.went_back = False
        self.skipped = 0
        self.cursor: Cursor = {}


class _Window:
    """The content of one lane in (after, up_to]."""

    def __init__(
        self, writer: WriterFiles, lane: int, after: int, up_to: int, tables: frozenset[str], most: int
    ) -> None:
        self.writer, self.lane, self.after, self.up_to = writer, lane, after, up_to
        self._tables, self._most = tables, most
        self._blocks: list[Block] = []
        self._frames: list[tuple[LogState, list[int]]] = []
        self._fills: dict[int, dict[str, object]] = {}

    def reached(self, cursor: Cursor, seq: int) -> None:
        """Move the cursor of this lane."""
        lanes = cursor.setdefault(self.writer.info.id, {})
        lanes[self.lane] = max(seq, lanes.get(self.lane, 0))

    def second_look(self, now_ns: int, whole: frozenset[str] | None = None) -> None:
        """Copy the rows found; if some are missing, list the folder again and read everything.

        Args:
          whole: the tables of which every row is needed. For the others, the last row of each segment is copied, unless
            rows wait for values. None: all tables.
        """
        self._take(whole)
        if self._count() < self.up_to - self.after:
            self.writer.refresh(force=True)
            self._take(thorough=True)
        pending = [(log, start) for log, starts in self._frames for start in log.pending.intersection(starts)]
        if pending or any(block.segment.file.header.deferred for block in self._blocks):
            if any(block.left_out for block in self._blocks):
                self.second_look(now_ns)  # the window may have to end before the last rows
                return
            self._fills = self.writer.fills(self.lane, self.after + 1, self.up_to)
            if self.writer.info.closed is None:
                self._hold(now_ns - int(HOLD_SECONDS * 1e9), pending)
        for block in self._blocks:
            block.passed(self.up_to)

    def stretches(self, most_bytes: int) -> list[_Window]:
        """The same, split into windows of about this many bytes of rows."""
        seen = [(s.seen, s.file.width) for s in self.writer.segments.get(self.lane, {}).values() if s.seen is not None]
        starts = sorted((look.lowest_seq, (look.upper - look.start) * width) for look, width in seen if look.count)
        ends, size = [], 0
        for lowest, length in starts:
            if size and size + length > most_bytes and self.after < lowest - 1 < self.up_to:
                ends.append(lowest - 1)
                size = 0
            size += length
        bounds = [self.after, *dict.fromkeys(ends), self.up_to]
        return [
            _Window(self.writer, self.lane, after, up_to, self._tables, self._most) for after, up_to in pairwise(bounds)
        ]

    def missing(self) -> int:
        """Number of rows that were not found."""
        return max(0, self.up_to - self.after - self._count())

    def put_columns(self, read: ColumnsRead) -> None:
        """Add the content to `read`."""
        tables: dict[str, list[Row]] = {}
        for block in self._blocks:
            header = block.segment.file.header
            if header.table not in self._tables or header.scope == OWN_SCOPE:
                continue
            if header.deferred:
                for _seq, _time_ns, rows in self._of_block(block):
                    tables.setdefault(header.table, []).extend(rows)
            else:
                read.pieces.append(BlockPiece(header, block.rows_between(self.after, self.up_to)))
        for log, starts in self._frames:
            for _seq, _time_ns, rows in self._of_log(log, starts, self._most):
                for row in rows:
                    read.went_back = read.went_back or row.mark == "rewind"
                    if not row.mark and row.scope != OWN_SCOPE:
                        tables.setdefault(row.table, []).append(row)
        read.pieces += [RowsPiece(table, sorted(rows, key=lambda row: row.seq)) for table, rows in tables.items()]

    def ordered(self, sealed: SealedRows | None) -> Iterator[_Item]:
        """The content of the window by sequence number; missing numbers are read from `sealed`."""
        expected, latest = self.after + 1, 0
        for seq, time_ns, rows in heapq.merge(*self._sources(), key=_seq_of):
            if seq > self.up_to:
                break
            if seq < expected:
                continue  # the same row twice: damage
            if seq > expected and sealed is not None:
                yield from self._from_sealed(sealed, expected - 1, seq - 1, latest)
            expected, latest = seq + 1, max(latest, time_ns)
            if rows:
                yield latest, rows, seq, self
        if expected <= self.up_to and sealed is not None:
            yield from self._from_sealed(sealed, expected - 1, self.up_to, latest)

    def newest(
        self, newest: dict[tuple[object, ...], tuple[int, Row]], sealed: SealedRows | None, sum_timings: bool = False
    ) -> None:
        """Put the newest row of each kind into `newest`, unless a newer one is there."""
        if self.writer.info.closed is not None and sealed is not None:
            for time_ns, rows, _, _ in self._from_sealed(sealed, self.after, self.up_to, 0, newest=True):
                for row in rows:
                    _keep(newest, time_ns, row)
        for block in self._blocks:
            file = block.segment.file
            if file.header.table in self._tables:
                last, adds = None, sum_timings and file.header.table == "timings"
                spent = [0.0] * len(file.header.keys)
                data = block.rows_between(self.after, self.up_to)
                for last in file.rows(data if adds else data[-file.width :], block.first_seq):
                    if adds:
                        spent = [before + seconds for before, seconds in zip(spent, last[3], strict=True)]
                if last is not None:
                    values = tuple(spent) if adds else last[3]
                    _keep(newest, last[1], block.segment.make(*last[:3], values, self._fills.get(last[0])), adds)
        for log, starts in self._frames:
            for _, time_ns, rows in self._of_log(log, starts, most=1):
                for row in rows:
                    _keep(newest, time_ns, row, sum_timings and all(timing_name(key) is not None for key in row.values))

    # -- where rows come from

    def _take(self, whole: frozenset[str] | None = None, *, thorough: bool = False) -> None:
        self._blocks, self._frames = [], []
        for segment in self.writer.segments.get(self.lane, {}).values():
            seen = None if thorough else segment.seen  # rows may have arrived since: with too few, look again
            if seen is not None and seen.count and (seen.lowest_seq > self.up_to or seen.last_seq <= self.after):
                continue
            with self.writer.noting(segment.file.path):
                block = None
                if whole is not None and not thorough and segment.file.header.table not in whole:
                    block = segment.last_row(self.after)
                block = block or segment.block(self.after, thorough=thorough)
                if block is not None:
                    self._blocks.append(block)
        for log in self.writer.logs.get(self.lane, {}).values():
            self.writer.safely(log, log.top)
            starts = log.between(self.after, self.up_to)
            if starts:
                self._frames.append((log, starts))

    def _count(self) -> int:
        rows = sum(block.count(self.after, self.up_to) for block in self._blocks)
        return rows + sum(len(starts) for _, starts in self._frames)

    def _hold(self, young_ns: int, pending: list[tuple[LogState, int]]) -> None:
        """End the window before the first row younger than `young_ns` that still waits for a value."""
        for block in self._blocks:
            file = block.segment.file
            if file.header.deferred:
                for seq, time_ns, _, _ in file.rows(block.data, block.first_seq, self.after, self.up_to):
                    if time_ns > young_ns and self._waits(seq, file.header.deferred):
                        self.up_to = min(self.up_to, seq - 1)
                        break
        for log, start in pending:
            payload = self._payload(log, start)
            later = payload[2].get("deferred") if payload is not None else None
            if payload is not None and isinstance(later, list):
                seq, time_ns, _ = payload
                if time_ns > young_ns and self._waits(seq, later):
                    self.up_to = min(self.up_to, seq - 1)

    def _waits(self, seq: int, later: Iterable[str]) -> bool:
        filled = self._fills.get(seq, {})
        return any(key not in filled for key in later)

    def _payload(self, log: LogState, start: int) -> tuple[int, int, dict[str, object]] | None:
        with self.writer.noting(f"{log.file.path}@{start}"):
            return log.file.payload_at(start)
        return None

    def _sources(self) -> list[Iterator[tuple[int, int, list[Row]]]]:
        """(seq, unix ns, rows) of all live records, one iterator per file; [] for rows that were not requested."""
        sources = [self._of_block(block) for block in self._blocks]
        return sources + [self._of_log(log, starts, self._most) for log, starts in self._frames]

    def _of_block(self, block: Block) -> Iterator[tuple[int, int, list[Row]]]:
        file, make, fills = block.segment.file, block.segment.make, self._fills
        wanted = file.header.table in self._tables
        for seq, time_ns, clocks, values in file.rows(block.data, block.first_seq, self.after, self.up_to):
            yield seq, time_ns, [make(seq, time_ns, clocks, values, fills.get(seq))] if wanted else []

    def _of_log(self, log: LogState, starts: list[int], most: int) -> Iterator[tuple[int, int, list[Row]]]:
        info = self.writer.info
        for start in starts:
            frame = self._payload(log, start)
            if frame is not None:
                seq, time_ns, payload = frame
                filled = self._fills.get(seq)
                payload = thinned(payload, most) if most else payload
                yield seq, time_ns, rows_of_frame(payload, seq, time_ns, self.lane, info, self._tables, filled)

    def _from_sealed(
        self, sealed: SealedRows, after: int, up_to: int, latest: int, newest: bool = False
    ) -> Iterator[_Item]:
        group: list[Row] = []
        own = self.writer.info.id
        for row in sealed.rows(own, self.lane, after, up_to, self._tables, most=self._most, newest=newest):
            if group and group[-1].seq != row.seq:
                latest = max(latest, int(group[-1].time * 1e9))
                yield latest, group, group[-1].seq, self
                group = []
            group.append(row)
        if group:
            yield max(latest, int(group[-1].time * 1e9)), group, group[-1].seq, self


if TYPE_CHECKING:
    _Item: TypeAlias = tuple[int, list[Row], int, _Window]
    """(unix ns, never going back in a lane; the rows of one record; its seq; its window)."""


def _keep(newest: dict[tuple[object, ...], tuple[int, Row]], time_ns: int, row: Row, adds: bool = False) -> None:
    if row.mark or any(not isinstance(value, (float, int)) for value in row.values.values()):
        kind: tuple[object, ...] = (row.writer, row.lane, row.seq, *row.values)  # newer rows do not replace these
    else:
        kind = (row.scope, *row.values)
    known = newest.get(kind)
    if known is not None and adds:
        values = {key: known[1].values[key] + value for key, value in row.values.items()}  # type: ignore[operator]
        from dataclasses import replace

        time_ns, row = max(time_ns, known[0]), replace(row, values=values)
    if known is None or known[0] <= time_ns:
        newest[kind] = (time_ns, row)


def _tidy(cursor: Cursor) -> Cursor:
    """Convert the lanes of a cursor that was stored as JSON back to integers, in place."""
    for name, lanes in cursor.items():
        if any(type(lane) is not int for lane in lanes):
            cursor[name] = {int(lane): seq for lane, seq in lanes.items()}
    return cursor


def _seq_of(item: tuple[int, int, list[Row]]) -> int:
    return item[0]


def _time_of(item: _Item) -> int:
    return item[0]
