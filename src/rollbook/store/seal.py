"""Turn the journal of a run into Parquet, as far as its writers have left it.

    python -m rollbook.store.seal RUN [--final]

Sealing is safe to interrupt at any point and harmless to repeat: names are deterministic, a part appears whole or not
at all, and a journal file is given up only when its rows are on the disk as Parquet. Live writers are never disturbed:
of theirs only segments they have left are touched. Writers of another host or pid namespace are left alone.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rollbook.errors import Damaged, NewerFormat
from rollbook.journal import format as layout
from rollbook.journal.files import parse_name, pread
from rollbook.journal.frame_files import FrameFile
from rollbook.journal.frames import decode
from rollbook.journal.liveness import is_alive, same_place
from rollbook.journal.segments import SETTLE_SECONDS, Segment
from rollbook.journal.writers import WriterInfo, list_writers
from rollbook.store.columns import take_table, to_numpy
from rollbook.store.durable import DurableMarks
from rollbook.store.encode import ROW_GROUP_BYTES, write_part
from rollbook.store.fills import Fills
from rollbook.store.frame_tables import FrameTables
from rollbook.store.layout import PartName, data_folder, read_json, table_folder, write_json
from rollbook.store.parts import Part, PartShelf, covers_of
from rollbook.store.pyramid import pyramid_path
from rollbook.store.tabulate import Meta, committed_words, segment_table, seq_range

__all__ = ["SealReport", "keep_aside", "main", "seal"]

PENDING_SECONDS = 5.0
"""A segment waits this long for values that are still on a device; they are fetched within 2 s, or never."""

_LOCK_SECONDS = 60.0
_LOG_BYTES = 16 * 1024 * 1024

T = TypeVar("T")
NDArray = npt.NDArray[Any]


class SealReport:
    """What one sealing did. `str()` says it in a line.

    Attributes:
      segments, frame_files: journal files sealed.
      rows: rows written to Parquet (lines, for rare rows).
      aside: rows set aside after a power loss.
      merged: parts that became part of a larger one.
      problems: what could not be read or written; the files stay where they are.
    """

    def __init__(self) -> None:
        self.segments = self.frame_files = self.rows = self.aside = self.merged = 0
        self.problems: list[str] = []

    def __str__(self) -> str:
        text = f"sealed {self.rows:,} rows from {self.segments} segments and {self.frame_files} frame files"
        if self.merged:
            text += f", merged {self.merged} parts"
        if self.aside:
            text += f", set {self.aside:,} rows aside that a power loss made doubtful"
        return text + "".join(f"; {problem}" for problem in self.problems)


def seal(run: str | os.PathLike[str], *, final: bool = False, take_over: bool = False) -> SealReport:
    """Seal what can be sealed.

    Args:
      run: the run's folder.
      final: the run is over: also merge the parts of each stream, and all small groups.
      take_over: also seal writers that cannot be judged from here (another host). Only if they are known to be gone.
    Raises:
      OSError: the disk is full, or the folder cannot be written. What was sealed before that stays sealed.
    """
    folder = os.fspath(run)
    report = SealReport()
    with _only_one(folder, wait=_LOCK_SECONDS if final else 0.0) as mine:
        if not mine:
            report.problems.append("another process is sealing this run")
            return report
        _Sealing(folder, report, take_over).work()
        from rollbook.store.merge import merge

        report.merged = merge(folder, final=final, problems=report.problems)
        if final:
            _remove_empty_writers(folder)
    return report


class _Sealing:
    """One pass over the journal."""

    def __init__(self, run: str, report: SealReport, take_over: bool) -> None:
        self._run, self._report, self._take_over = run, report, take_over
        self._marks = DurableMarks(run)
        self._sealed = _SealedRanges(run)
        self._fills: dict[str, Fills] = {}

    def work(self) -> None:
        """Segments first: once the late values are in their rows, the frames that brought them may go."""
        _sweep(self._run)
        for info in list_writers(self._run):
            if self._take_over or same_place(info.about) or is_alive(info.about) is False:
                gone = self._take_over or info.closed is not None or is_alive(info.about) is False
                names = _names(info.folder)
                self._seal_segments(info, names, gone)
                self._seal_logs(info, names, gone)

    # -- segments

    def _seal_segments(self, info: WriterInfo, names: list[str], gone: bool) -> None:
        streams: dict[tuple[int, int], list[_Left]] = {}
        looked_at: dict[str, int] = {}
        for name in names:
            parsed = parse_name(name)
            if parsed is not None and parsed[0] == "seg":
                left = self._try(_Left.look, os.path.join(info.folder, name), gone)
                if left is not None:
                    streams.setdefault(parsed[1:3], []).append(left)
                    looked_at[name] = left.generation
        if not streams:
            return
        time.sleep(SETTLE_SECONDS)  # what was stored before the state word is visible now, on any machine
        # A part holds all rows of its stream between its first and its last. So what was left after a segment that was
        # still in use when it was looked at has to wait for that one.
        open_since = {} if gone else self._open_since(info, looked_at)
        for stream, lefts in streams.items():
            lefts.sort(key=lambda left: left.first_seq)
            limit = open_since.get(stream, 2**63)
            batch: list[_Left] = []
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
        """Per stream the first sequence number of a segment that is in use now, or came into use since the looks."""
        found: dict[tuple[int, int], int] = {}
        for name in _names(info.folder):
            parsed = parse_name(name)
            if parsed is None or parsed[0] != "seg":
                continue
            now = self._try(_Left.look, os.path.join(info.folder, name), False, True)
            if now is not None and now.first_seq and looked_at.get(name) != now.generation:
                found[parsed[1:3]] = min(now.first_seq, found.get(parsed[1:3], 2**63))
        return found

    def _try(self, work: Callable[..., T], *arguments: Any) -> T | None:
        """What work gives; None and a problem if a file is damaged, None alone if it is gone."""
        try:
            return work(*arguments)
        except FileNotFoundError:
            return None
        except (Damaged, NewerFormat) as err:
            self._report.problems.append(str(err))
            return None

    def _seal_batch(self, info: WriterInfo, batch: list[_Left], gone: bool) -> bool:
        """Neighbouring segments of one stream become one part; then they are given up. False if some have to wait."""
        done: list[tuple[_Left, int]] = []
        blocks: list[NDArray] = []
        header: layout.SegmentHeader | None = None
        waits = False
        for left in batch:
            found = self._try(left.load)
            if found is None:
                if gone and os.path.exists(left.path):
                    keep_aside(self._run, left.path)
                continue
            own, words, odd, generation = found
            if odd:
                self._report.problems.append(f"{left.path}: {odd} rows have impossible numbers and were left out")
            if own.deferred and not gone and self._waits(info, own, words):
                waits = True
                break  # later ones wait with it, so that parts stay in order
            header = own
            done.append((left, generation))
            ranges = self._sealed.of(own.table, own.writer, own.lane, f"S{own.stream:03d}")
            blocks.append(words[~_inside(words[:, -1], ranges)] if ranges else words)
        if header is not None and any(len(block) for block in blocks):
            self._write_rows(info, header, np.concatenate(blocks))
        for left, generation in done:
            self._give_up(left, generation, gone)
            self._report.segments += 1
        return not waits

    def _waits(self, info: WriterInfo, header: layout.SegmentHeader, words: NDArray) -> bool:
        """Whether the newest rows may still get values from a device."""
        if not len(words):
            return False
        age_ns = time.time_ns() - int(words[-1, len(header.clocks)]) - header.time_offset
        if age_ns >= PENDING_SECONDS * 1e9:
            return False
        return not self._fills_of(info).has_all(info.id, header.lane, header.deferred, words[:, -1])

    def _write_rows(self, info: WriterInfo, header: layout.SegmentHeader, words: NDArray) -> None:
        fills = self._fills_of(info) if header.deferred else None
        times = words[:, len(header.clocks)] + header.time_offset
        doubtful = self._marks.doubtful(info, header.lane, words[:, -1], times)
        if doubtful is not None:
            meta, aside = segment_table(header, words[doubtful], fills=fills)
            self._write({**meta, "table": "aside", "of": meta["table"]}, aside)
            self._report.aside += aside.num_rows
            words = words[~doubtful]
        if len(words):
            meta, table = segment_table(header, words, fills=fills)
            self._write(meta, table)
            self._report.rows += table.num_rows

    def _give_up(self, left: _Left, generation: int, gone: bool) -> None:
        """Mark a live writer's segment as sealed, so that it is used again; unlink one that nobody will use."""
        fd = os.open(left.path, os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0))
        try:
            head = layout.HEAD.unpack(pread(fd, layout.HEAD.size, 0))
            if head[3] != generation:
                self._report.problems.append(f"{left.path} was recycled before it was sealed")
                return
            if not gone and head[7] == layout.LEFT:
                os.lseek(fd, layout.STATE_AT, os.SEEK_SET)
                os.write(fd, layout.WORD.pack(layout.SEALED))
                return
        finally:
            os.close(fd)
        if gone or head[7] == layout.DROPPED:
            _unlink(left.path)

    # -- frames

    def _fills_of(self, info: WriterInfo) -> Fills:
        """The late values of one writer; found when they are first asked for."""
        if info.id not in self._fills:
            fills = self._fills[info.id] = Fills()
            for part in self._sealed.parts("fills"):
                if part.meta["writer"] == info.id:
                    table = self._try(part.read)
                    if table is not None:
                        fills.add_table(info.id, table)
            for lane, _, path in _logs(info.folder, _names(info.folder)):
                self._try(_collect_fills, path, info, lane, fills)
        return self._fills[info.id]

    def _seal_logs(self, info: WriterInfo, names: list[str], gone: bool) -> None:
        lanes: dict[int, list[str]] = {}
        for lane, _, path in _logs(info.folder, names):
            lanes.setdefault(lane, []).append(path)
        for lane, paths in lanes.items():
            batch: list[str] = []
            size = 0
            for path in paths if gone else paths[:-1]:
                own = _size(path)
                if batch and size + own > _LOG_BYTES:
                    self._seal_log_batch(info, lane, batch, gone)
                    batch, size = [], 0
                batch.append(path)
                size += own
            if batch:
                self._seal_log_batch(info, lane, batch, gone)

    def _seal_log_batch(self, info: WriterInfo, lane: int, paths: list[str], gone: bool) -> None:
        """Neighbouring frame files of one lane become one part a group; then they are given up."""
        done: list[tuple[str, bool]] = []
        frames: list[tuple[int, int, dict[str, Any]]] = []
        later = False
        for path in paths:
            found = self._try(_read_log, path, info)
            if found is None:
                if gone and os.path.exists(path):
                    keep_aside(self._run, path)
                continue
            own, damaged, problems = found
            if not gone and any(self._is_pending(info, lane, *frame) for frame in own):
                break  # its values are still on their way
            later = later or any("deferred" in payload for _, _, payload in own)
            frames += own
            done.append((path, damaged))
            self._report.problems += [f"{path}: {text}" for text in problems]
        tables = FrameTables(info, lane, self._fills_of(info) if later else None)
        for frame in frames:
            tables.add(*frame)
        for meta, table in tables.tables():
            ranges = self._sealed.of(meta["table"], info.id, lane, meta["group"])
            if ranges:
                seqs = to_numpy(table["seq"])[0]
                table = take_table(table, np.flatnonzero(~_inside(seqs, ranges)))
                meta = {**meta, **seq_range(to_numpy(table["seq"])[0], to_numpy(table["time"])[0])}
            if table.num_rows:
                self._write(meta, table)
                self._report.rows += table.num_rows
        self._report.problems += tables.problems
        for path, damaged in done:
            if damaged:
                keep_aside(self._run, path)
            else:
                _unlink(path)
            self._report.frame_files += 1

    def _is_pending(self, info: WriterInfo, lane: int, seq: int, time_ns: int, payload: dict[str, Any]) -> bool:
        later = payload.get("deferred")
        if not isinstance(later, list) or time.time_ns() - time_ns >= PENDING_SECONDS * 1e9:
            return False
        return len(self._fills_of(info).of_row(info.id, lane, seq)) < len(later)

    def _write(self, meta: Meta, table: pa.Table) -> None:
        group = meta["group"]
        name = PartName(meta["writer"], meta["lane"], group if group[0] == "S" else group[0], meta["first_seq"])
        is_wide = meta["table"] == "metrics" and group != "R"
        levels = pyramid_path(self._run, meta["table"], str(name)) if is_wide else ""
        write_part(os.path.join(table_folder(self._run, meta["table"]), str(name)), meta, table, levels)


class _SealedRanges:
    """What is in Parquet already: sealed before an interruption."""

    def __init__(self, run: str) -> None:
        self._shelf = PartShelf(run)
        self._ranges: dict[str, dict[tuple[str, int, str], list[tuple[int, int]]]] = {}

    def of(self, table: str, writer: str, lane: int, group: str) -> list[tuple[int, int]]:
        """(first, last) sequence numbers of the parts of a group, as they were when the pass began."""
        if table not in self._ranges:
            found = self._ranges[table] = {}
            for part in self.parts(table):
                for whose, number, kind, first, last in covers_of(part.meta):
                    found.setdefault((whose, number, kind), []).append((first, last))
        return self._ranges[table].get((writer, lane, group), [])

    def parts(self, table: str) -> list[Part]:
        """The sealed parts of a table."""
        for _ in range(10):
            try:
                return self._shelf.parts(table)
            except FileNotFoundError:
                continue
        return []


class _Left:
    """A segment that its writer has left; its rows are only in memory while they are written.

    Attributes:
      path, size: where it is, and its bytes.
      generation: as it was when it was looked at.
      first_seq: the number of its first row, 0 if it has none; segments of a stream are in order by it.
    """

    __slots__ = ("first_seq", "generation", "path", "size")

    def __init__(self, path: str, size: int, generation: int, first_seq: int) -> None:
        self.path, self.size, self.generation, self.first_seq = path, size, generation, first_seq

    @classmethod
    def look(cls, path: str, gone: bool, in_use: bool = False) -> _Left | None:
        """None if its writer has not left it (and not `in_use`), or it is sealed: then it goes, if its writer has."""
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0))
        try:
            data = pread(fd, layout.HEAD.size, 0)
            if len(data) < layout.HEAD.size or not any(data):
                if gone and not any(pread(fd, layout.LARGEST_SEGMENT_BYTES * 2, 0)):
                    _unlink(path)  # it was never begun
                    return None
                return cls(path, 0, 0, 0) if gone else None
            _, _, header_size, generation, first_seq, words, _, state, *_ = layout.HEAD.unpack(data)
            if gone and (state == layout.SEALED or generation % 2):
                _unlink(path)  # its rows are sealed; if its writer died while recycling it, new ones had not come
            if state == layout.SEALED or generation % 2 or (state == layout.ACTIVE and not gone and not in_use):
                return None
            return cls(path, os.fstat(fd).st_size, generation, _first_row(fd, header_size, words, first_seq))
        finally:
            os.close(fd)

    def load(self) -> tuple[layout.SegmentHeader, NDArray, int, int]:
        """(header, rows, how many were implausible, generation).

        Raises:
          Damaged: the segment is, or was recycled just now.
        """
        with Segment(self.path) as segment:
            look = segment.look()
            data = segment.copy(look) if look is not None else None
            if look is None or data is None:
                raise Damaged(f"{self.path} changed while it was being sealed")
            words, odd = committed_words(segment.header, data, look.first_seq)
            return segment.header, words, odd, look.generation


def _first_row(fd: int, header_size: int, words: int, first_seq: int) -> int:
    """The number of the first committed row of a segment; 0 if there is none."""
    width = 8 * max(1, min(words, 1 << 20))
    offset = header_size
    while True:
        data = pread(fd, width * max(1, 65536 // width), offset)
        found = 0
        for end in range(width, len(data) + 1, width):
            found = layout.WORD.unpack_from(data, end - 8)[0]
            if found >= max(1, first_seq):
                return int(found)
        if len(data) < width * max(1, 65536 // width):
            return 0
        offset += len(data)


def _inside(seqs: NDArray, ranges: list[tuple[int, int]]) -> NDArray:
    """Which numbers lie in one of the ranges."""
    found = np.zeros(len(seqs), dtype=bool)
    for first, last in ranges:
        found |= (seqs >= first) & (seqs <= last)
    return found


def _collect_fills(path: str, info: WriterInfo, lane: int, fills: Fills) -> None:
    with FrameFile(path) as file:
        for _, _, payload, _, _ in file.scan():
            if payload[1:6] == b"\xa4fill":
                fills.add_frame(info.id, lane, decode(payload))


def _read_log(path: str, info: WriterInfo) -> tuple[list[tuple[int, int, dict[str, Any]]], bool, list[str]]:
    """(frames, whether more is in the file than could be read, what is wrong with it)."""
    with FrameFile(path, info.time_offset) as file:
        frames = [(seq, time_ns, payload) for seq, time_ns, payload, _ in file.frames()]
        problems = [text for _, text in file.problems]
        damaged = bool(file.torn_bytes() and _looks_torn_by_damage(file)) or any("damaged" in text for text in problems)
    return frames, damaged, problems


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _looks_torn_by_damage(file: FrameFile) -> bool:
    """Whether more than one unfinished frame follows the last whole one."""
    end, size = file.end, file.end + file.torn_bytes()
    fd = os.open(file.path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        os.lseek(fd, end, os.SEEK_SET)
        head = os.read(fd, layout.FRAME_HEAD.size)
    finally:
        os.close(fd)
    if len(head) < layout.FRAME_HEAD.size or not any(head):
        return False
    length = layout.FRAME_HEAD.unpack(head)[0]
    return bool(end + layout.FRAME_HEAD.size + length < size)


def keep_aside(run: str, path: str) -> str:
    """Move a damaged file out of the way of readers, to data/aside; `rollbook repair` looks for what is whole in it.

    Returns:
      Where it is now. Its name begins with that of the folder it was in: its writer's, or its table's.
    """
    folder = os.path.join(data_folder(run), "aside")
    os.makedirs(folder, exist_ok=True)
    target = os.path.join(folder, f"{os.path.basename(os.path.dirname(path))}.{os.path.basename(path)}")
    while os.path.exists(target):
        target += "~"
    os.replace(path, target)
    return target


def _logs(folder: str, names: list[str]) -> list[tuple[int, int, str]]:
    """(lane, number, path) of the frame files in a writer's folder, in order."""
    found = []
    for name in names:
        parsed = parse_name(name)
        if parsed is not None and parsed[0] == "log":
            found.append((parsed[1], parsed[3], os.path.join(folder, name)))
    return sorted(found)


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _sweep(run: str) -> None:
    """Remove what interrupted sealings left half-written. The lock is held, so nobody is writing them."""
    for table in _names(data_folder(run)):
        if table in ("journal", "keeper"):
            continue
        folder = os.path.join(data_folder(run), table)
        for name in _names(folder):
            if name.endswith(".tmp"):
                _unlink(os.path.join(folder, name))


def _remove_empty_writers(run: str) -> None:
    """Keep the pages of writers that have closed and are sealed in one file instead of a folder each."""
    path = os.path.join(data_folder(run), "writers.json")
    known = read_json(path) or {}
    empty = [
        info
        for info in list_writers(run)
        if info.closed is not None and info.about and not set(_names(info.folder)) - {"writer.json", "closed.json"}
    ]
    if not empty:
        return
    write_json(path, {**known, **{info.id: {**info.about, "closed": info.closed} for info in empty}})
    for info in empty:
        for name in ("closed.json", "writer.json"):
            _unlink(os.path.join(info.folder, name))
        try:
            os.rmdir(info.folder)
        except OSError:
            continue


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return


@contextmanager
def _only_one(run: str, wait: float) -> Iterator[bool]:
    """Whether this process may seal the run now: one at a time, per host."""
    folder = os.path.join(data_folder(run), "keeper")
    os.makedirs(folder, exist_ok=True)
    try:
        import fcntl
    except ImportError:  # Windows: names are deterministic and parts appear whole, so two sealers do no harm
        yield True
        return
    fd = os.open(os.path.join(folder, "seal-lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        end = time.monotonic() + wait
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() >= end:
                    yield False
                    return
                time.sleep(0.05)
        yield True
    finally:
        os.close(fd)


def main(arguments: list[str] | None = None) -> int:
    """`python -m rollbook.store.seal RUN [--final]`."""
    import argparse

    parser = argparse.ArgumentParser(prog="python -m rollbook.store.seal", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("run", help="the run's folder")
    parser.add_argument("--final", action="store_true", help="the run is over: also merge its parts")
    options = parser.parse_args(arguments)
    try:
        report = seal(options.run, final=options.final)
    except OSError as err:
        sys.stderr.write(f"rollbook: sealing {options.run} stopped: {err}\n")
        return 1
    for problem in report.problems:
        sys.stderr.write(f"rollbook: {problem}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
