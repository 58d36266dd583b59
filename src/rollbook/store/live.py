"""The journal of a run as pieces of tables: what has not been sealed yet, looked at without changing anything."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rollbook.errors import Damaged, NewerFormat
from rollbook.journal import format as layout
from rollbook.journal.files import SETTLE_SECONDS, FrameFile, Look, Segment, WriterInfo, parse_name
from rollbook.store.durable import DurableMarks
from rollbook.store.fills import Fills
from rollbook.store.layout import journal_folder
from rollbook.store.tabulate import FrameTables, Meta, committed_words, segment_table

__all__ = ["LiveJournal", "LiveSegment", "Moved", "Snapshot"]


_TRIES = 50
"""How often a snapshot is taken anew because a writer changed segments meanwhile; then it is good enough."""


class Moved(Exception):
    """A journal file was sealed or recycled while it was being read: list again and start over."""


class LiveSegment:
    """The rows that one segment held at the moment of a snapshot; read when asked for.

    Attributes:
      meta: what is known without reading the rows.
      lowest_seq, last_seq, rows: as the look found them. While its writer uses a segment there may be more rows in it.
    """

    def __init__(self, path: str, header: layout.SegmentHeader, look: Look, info: WriterInfo, journal: LiveJournal):
        self.path, self.header, self._look, self._info, self._journal = path, header, look, info, journal
        self.lowest_seq, self.last_seq, self.rows = look.lowest_seq, look.last_seq, look.count
        self.is_active = look.state == layout.ACTIVE
        self.up_to = look.last_seq
        self.meta, _ = segment_table(header, np.zeros((0, header.row_words), dtype=np.int64))
        self.meta.update(first_seq=self.lowest_seq, last_seq=self.last_seq, rows=self.rows, clocks=list(header.clocks))
        self._words: Any = None

    def words(self) -> Any:
        """The rows as [rows, words], all those of the lane's first `up_to` numbers.

        Raises:
          Moved: the segment was recycled or unlinked since the look.
        """
        if self._words is None:
            look = self._look
            try:
                with Segment(self.path) as segment:
                    if self.is_active:
                        look.upper = self.header.capacity
                    data = segment.copy(look, 0)
            except (FileNotFoundError, Damaged):
                raise Moved(self.path) from None
            if data is None:
                raise Moved(self.path)
            words, odd = committed_words(self.header, data, look.first_seq, self.up_to)
            if odd:
                self._journal.problems[self.path] = f"{self.path}: {odd} rows have impossible sequence numbers"
            times = words[:, len(self.header.clocks)] + self.header.time_offset
            doubtful = self._journal.marks.doubtful(self._info, self.header.lane, words[:, -1], times)
            if doubtful is not None:
                self._journal.problems[self.path] = (
                    f"{self.path}: {int(doubtful.sum())} rows were not on the disk for certain when the machine went "
                    "down; they are set aside"
                )
                words = words[~doubtful]
            self._words = words
        return self._words

    def read(self, columns: Sequence[str] | None, fills: Fills) -> pa.Table:
        """Columns of the rows."""
        _, table = segment_table(self.header, self.words(), None if columns is None else _keys(columns), fills)
        return table if columns is None else table.select([n for n in columns if n in table.column_names])


class Snapshot:
    """What the journal held at one moment.

    Attributes:
      segments: rows of streams.
      frames: (description, table) of each group of each frame file.
      fills: values that came later, as far as they are in the journal.
      writers: all writers that have a folder there.
      tops: (writer, lane) -> the last sequence number that was found.
    """

    def __init__(self) -> None:
        self.tops: dict[tuple[str, int], int] = {}
        self.segments: list[LiveSegment] = []
        self.frames: list[tuple[Meta, pa.Table]] = []
        self.fills = Fills()
        self.writers: list[WriterInfo] = []


class LiveJournal:
    """Looks at the journal of one run, again and again. Decoded frames are remembered while their file only grows.

    Args:
      run: the run's folder.
    Attributes:
      problems: path -> what is wrong there, as far as it was looked at.
      marks: the durable marks, as of the last snapshot.
    """

    def __init__(self, run: str) -> None:
        self._run = run
        self._logs: dict[str, _Log] = {}
        self._writers: dict[str, WriterInfo] = {}
        self.problems: dict[str, str] = {}
        self.marks = DurableMarks(run)

    def snapshot(self) -> Snapshot:
        """What is there now: of each lane all rows up to the last one that a look found, and none behind it.

        Waits a millisecond if a writer may be writing, so that what was seen can be believed.
        """
        self.marks = DurableMarks(self._run)
        for _ in range(_TRIES):
            found = Snapshot()
            found.writers = self._list_writers()
            names = {info.id: _names(info.folder) for info in found.writers}
            sealed = self._look_at_all(found, names)
            if any(segment.is_active for segment in found.segments):
                if any(info.closed is None for info in found.writers):
                    time.sleep(SETTLE_SECONDS)
                # A segment that came into use since it was listed holds rows that others' numbers already speak of.
                if any(set(_names(info.folder)) - set(names[info.id]) for info in found.writers):
                    continue
                if any(_generation(path) != generation for path, generation in sealed):
                    continue
            break
        for segment in found.segments:
            segment.up_to = found.tops[segment.header.writer, segment.header.lane]
        return found

    def _look_at_all(self, found: Snapshot, names: dict[str, list[str]]) -> list[tuple[str, int]]:
        """Fill a snapshot; (path, generation) of the segments that are sealed already."""
        sealed: list[tuple[str, int]] = []
        logs: dict[str, _Log] = {}
        for info in found.writers:
            for name in names[info.id]:
                parsed = parse_name(name)
                if parsed is None:
                    continue
                path = os.path.join(info.folder, name)
                lane = (info.id, parsed[1])
                try:
                    if parsed[0] == "seg":
                        top, generation = self._look(path, info, found)
                        sealed += [(path, generation)] if generation >= 0 else []
                    else:
                        logs[path] = log = self._scan(path, parsed[1], info, found.fills)
                        top = log.last_seq
                    found.tops[lane] = max(found.tops.get(lane, 0), top)
                except FileNotFoundError:
                    continue
                except (Damaged, NewerFormat, OSError) as err:
                    if not _just_begun(path):
                        self.problems[path] = str(err)
        for log in logs.values():
            found.frames += log.tables(found.fills)
        self._logs = logs
        return sealed

    def _list_writers(self) -> list[WriterInfo]:
        folder = journal_folder(self._run)
        names = _names(folder)
        for gone in self._writers.keys() - set(names):
            del self._writers[gone]
        for name in names:
            known = self._writers.get(name)
            if known is None or not known.about:
                if not os.path.isdir(os.path.join(folder, name)):
                    continue
                known = self._writers[name] = WriterInfo(os.path.join(folder, name))
            known.look_closed()
        return [self._writers[name] for name in names if name in self._writers]

    def _look(self, path: str, info: WriterInfo, found: Snapshot) -> tuple[int, int]:
        """(last sequence number, generation if the segment is sealed or just being recycled, else -1)."""
        with Segment(path) as segment:
            generation, _, state = segment.head()
            if state == layout.SEALED or generation % 2:
                return 0, generation  # its rows are in Parquet, which is listed after the journal
            look = segment.look()
            if look is None:
                return 0, generation
            if look.count or state == layout.ACTIVE:
                found.segments.append(LiveSegment(path, segment.header, look, info, self))
            return look.last_seq, -1

    def _scan(self, path: str, lane: int, info: WriterInfo, fills: Fills) -> _Log:
        inode = os.stat(path).st_ino
        log = self._logs.get(path)
        if log is None or log.inode != inode:
            log = _Log(path, inode, lane, info)
        log.scan(self.problems)
        for payload in log.fill_payloads:
            fills.add_frame(info.id, lane, payload)
        return log


class _Log:
    """One frame file and the tables that its frames give."""

    def __init__(self, path: str, inode: int, lane: int, info: WriterInfo) -> None:
        self.path, self.inode, self._lane, self._info = path, inode, lane, info
        self._end = self.last_seq = 0
        self._tables = FrameTables(info, lane)
        self._pending: list[tuple[int, int, dict[str, Any]]] = []
        self._built: list[tuple[Meta, pa.Table]] | None = None
        self.fill_payloads: list[dict[str, Any]] = []

    def scan(self, problems: dict[str, str]) -> None:
        """Take in the frames that are new."""
        with FrameFile(self.path, self._info.time_offset) as file:
            for seq, time_ns, payload, end in file.frames(self._end):
                self._end, self._built, self.last_seq = end, None, seq
                if "fill" in payload:
                    self.fill_payloads.append(payload)
                if isinstance(payload.get("deferred"), list):
                    self._pending.append((seq, time_ns, payload))
                else:
                    self._tables.add(seq, time_ns, payload)
            torn = file.torn_bytes()
            texts = [text for _, text in file.problems]
        if torn and self._info.closed is not None:
            texts.append(f"{torn} bytes behind the last whole frame are torn")
        texts += self._tables.problems
        if texts:
            problems[self.path] = f"{self.path}: {'; '.join(texts)}"

    def tables(self, fills: Fills) -> list[tuple[Meta, pa.Table]]:
        """(description, table) of each group. Rare rows that waited for device values have those that came."""
        if self._built is None:
            self._built = self._tables.tables()
        if not self._pending:
            return self._built
        late = FrameTables(self._info, self._lane, fills)
        for seq, time_ns, payload in self._pending:
            late.add(seq, time_ns, payload)
        return self._built + late.tables()


def _keys(columns: Sequence[str]) -> list[str]:
    """The keys that columns stand for, under both spellings."""
    return [*columns, *(name[6:] for name in columns if name.startswith("value/"))]


def _just_begun(path: str) -> bool:
    """Whether a file is so young that its writer may be creating it at this moment."""
    try:
        return time.time() - os.stat(path).st_mtime < 1.0
    except OSError:
        return True


def _generation(path: str) -> int:
    """The generation of a segment now; -1 if it is gone."""
    try:
        with open(path, "rb", buffering=0) as file:
            file.seek(layout.GENERATION_AT)
            data = file.read(layout.WORD.size)
        return int(layout.WORD.unpack(data)[0])
    except (OSError, struct.error):
        return -1


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
