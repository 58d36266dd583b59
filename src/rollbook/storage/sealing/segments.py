"""Segments that are no longer used become parts: neighbours of a stream together, in order."""

from __future__ import annotations

import os
import time

import numpy as np

from rollbook.errors import Damaged
from rollbook.journal import Head, LeftSegment, Segment, SegmentHeader, WriterInfo
from rollbook.schema.run_files import parse_name
from rollbook.storage.damage import note_head
from rollbook.storage.encode import ROW_GROUP_BYTES
from rollbook.storage.sealing.one_pass import PENDING_SECONDS, SealPass, inside, keep_aside
from rollbook.storage.tabulate import committed_words, segment_table
from rollbook.system.files import names_in
from rollbook.values.array_types import NDArray

_TURNED_BYTES = 128 * 1024
"""How many bytes of rows are converted to columns at a time."""


class SegmentSealing:
    """The segments of all writers in one pass."""

    def __init__(self, seal_pass: SealPass) -> None:
        self._pass = seal_pass

    def seal(self, info: WriterInfo, names: list[str], gone: bool) -> None:
        """Seal the files `names` of one writer; `gone`: it will not write again."""
        streams: dict[tuple[int, int], list[LeftSegment]] = {}
        looked_at: dict[str, int] = {}
        for name in names:
            parsed = parse_name(name)
            if parsed is not None and parsed[0] == "seg":
                left = self._pass.attempt(LeftSegment.look, os.path.join(info.folder, name), gone)
                if left is not None:
                    streams.setdefault(parsed[1:3], []).append(left)
                    looked_at[name] = left.generation
        if not streams:
            return
        time.sleep(Segment.SETTLE_SECONDS)  # everything stored before the state word is now visible, on any machine
        # A part holds all rows of its stream between its first and its last. So a segment that follows one still in use
        # at the first check must wait for it.
        open_since = {} if gone else self._open_since(info, looked_at)
        for stream, lefts in streams.items():
            lefts.sort(key=lambda left: left.first_seq)
            limit = open_since.get(stream, 2**63)
            batch: list[LeftSegment] = []
            size = 0
            for left in lefts:
                if left.first_seq > limit:
                    break
                if batch and size + left.size > ROW_GROUP_BYTES:
                    if not self._seal_batch(info, batch, gone):
                        batch = []
                        break
                    batch, size = [], 0
                batch.append(left)
                size += left.size
            if batch:
                self._seal_batch(info, batch, gone)

    def _open_since(self, info: WriterInfo, looked_at: dict[str, int]) -> dict[tuple[int, int], int]:
        """Per stream the first sequence number of a segment that is in use now, or came into use since the check."""
        segments: dict[tuple[int, int], int] = {}
        for name in names_in(info.folder):
            parsed = parse_name(name)
            if parsed is None or parsed[0] != "seg":
                continue
            now = self._pass.attempt(LeftSegment.look, os.path.join(info.folder, name), False, True)
            if now is not None and now.first_seq and looked_at.get(name) != now.generation:
                segments[parsed[1:3]] = min(now.first_seq, segments.get(parsed[1:3], 2**63))
        return segments

    def _seal_batch(self, info: WriterInfo, batch: list[LeftSegment], gone: bool) -> bool:
        """Write adjacent segments of one stream as one part, then remove them. False if some must wait."""
        done: list[tuple[LeftSegment, int]] = []
        rows = _ChunkedRows(sum(left.size for left in batch))
        header: SegmentHeader | None = None
        waits, last = False, 0
        for left in batch:
            loaded = self._pass.attempt(_load, left, gone)
            if loaded is None:
                if not gone and os.path.exists(left.path):
                    waits = True
                    break
                if os.path.exists(left.path):
                    keep_aside(self._pass.run, left.path, self._pass.report.problems[-1])
                continue
            own, words, damage, head = loaded
            if len(words) and words[:, -1].max() > self._pass.last_of(info.id, own.lane):
                waits = True
                break
            if own.deferred and not gone and self._waits(info, own, words):
                waits = True
                break  # later ones wait, too, so that parts stay in order
            if damage:
                self._pass.report.problems.append(f"{left.path}: {damage}, left out")
                keep_aside(self._pass.run, left.path, damage, copy=True)
            header = own
            done.append((left, head.generation))
            ranges = self._pass.sealed.of(own.table, own.writer, own.lane, f"S{own.stream:03d}")
            sealed = inside(words[:, -1], ranges) | (words[:, -1] <= last)
            if not sealed.all():
                self._doubt(left.path, head, words[~sealed, -1], gone)
            last = max(last, int(words[-1, -1]) if len(words) else 0)
            rows.add(words[~sealed] if sealed.any() else words)
        if header is not None and rows.n:
            self._write_rows(info, header, rows.words())
        for left, generation in done:
            if not left.give_up(generation, gone):
                self._pass.report.problems.append(f"{left.path} was recycled before it was sealed")
            self._pass.report.segments += 1
        return not waits

    def _doubt(self, path: str, head: Head, numbers: NDArray, gone: bool) -> None:
        """Keep that the head of a segment says something else of rows with these numbers, which no file has yet."""
        wrong = head.contradicted(int(numbers[0]), int(numbers[-1]), 0 if gone else 2**63)
        if wrong:
            self._pass.report.problems.append(f"{path}: {wrong}")
            note_head(self._pass.run, path, wrong)

    def _waits(self, info: WriterInfo, header: SegmentHeader, words: NDArray) -> bool:
        """Whether the newest rows may still get values from a device."""
        if not len(words):
            return False
        age_ns = time.time_ns() - int(words[-1, len(header.clocks)]) - header.time_offset
        if age_ns >= PENDING_SECONDS * 1e9:
            return False
        return not self._pass.fills_of(info).has_all(info.id, header.lane, header.deferred, words[:, -1])

    def _write_rows(self, info: WriterInfo, header: SegmentHeader, words: NDArray) -> None:
        fills = self._pass.fills_of(info) if header.deferred else None
        times = words[:, len(header.clocks)] + header.time_offset
        doubtful = self._pass.marks.doubtful(info, header.lane, words[:, -1], times)
        if doubtful is not None:
            meta, aside = segment_table(header, words[doubtful], fills=fills)
            self._pass.write({**meta, "table": "aside", "of": meta["table"]}, aside)
            self._pass.report.aside += aside.num_rows
            words = words[~doubtful]
        if len(words):
            meta, table = segment_table(header, words, fills=fills)
            self._pass.write(meta, table)
            self._pass.report.rows += table.num_rows


class _ChunkedRows:
    """The rows of several segments, converted to columns in chunks that fit the processor's cache.

    Args:
      most_bytes: of all segments together.
    Attributes:
      n: number of rows.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._cells = np.zeros((0, 0), dtype=np.int64)
        self.n = 0

    def add(self, words: NDArray) -> None:
        """Add rows, as [rows, words]."""
        width = words.shape[1]
        if not self.n:
            self._cells = np.empty((width, self._most_bytes // (8 * width) + 1), dtype=np.int64)
        step = max(16, _TURNED_BYTES // (8 * width))
        for start in range(0, len(words), step):
            some = words[start : start + step]
            self._cells[:, self.n : self.n + len(some)] = some.T
            self.n += len(some)

    def words(self) -> NDArray:
        """All rows as [rows, words], each column contiguous in memory."""
        return self._cells[:, : self.n].T


def _load(left: LeftSegment, gone: bool) -> tuple[SegmentHeader, NDArray, str, Head]:
    """(header, rows, what is damaged, its head).

    Raises:
      Damaged: nothing of it can be read, or it belongs to another writer.
    """
    header, data, head, cut = left.load(gone)
    if header.writer != os.path.basename(os.path.dirname(left.path)):
        raise Damaged(f"{left.path} has rows of writer {header.writer}: it belongs in another folder")
    words, damage = committed_words(header, data, head.first_seq)
    return header, words, ", ".join(filter(None, [cut, damage])), head
