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
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from rollbook.errors import Damaged, NewerFormat
from rollbook.journal import format as layout
from rollbook.journal.files import SETTLE_SECONDS, FrameFile, Segment, WriterInfo, list_writers, parse_name
from rollbook.journal.frames import decode
from rollbook.journal.liveness import is_alive, same_place
from rollbook.store.columns import take_table
from rollbook.store.durable import DurableMarks
from rollbook.store.encode import ROW_GROUP_BYTES, write_part
from rollbook.store.fills import Fills
from rollbook.store.layout import PartName, data_folder, read_json, table_folder, write_json
from rollbook.store.parts import PartShelf, covers_of
from rollbook.store.pyramid import pyramid_path
from rollbook.store.tabulate import FrameTables, Meta, committed_words, segment_table

__all__ = ["SealReport", "main", "seal"]

PENDING_SECONDS = 5.0
"""A segment waits this long for values that are still on a device; they are fetched within 2 s, or never."""

_LOCK_SECONDS = 60.0


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
    def __init__(self, run: str, report: SealReport, take_over: bool) -> None:
        self._run, self._report, self._take_over = run, report, take_over
        self._shelf = PartShelf(run)
        self._marks = DurableMarks(run)
        self._fills = Fills()

    def work(self) -> None:
        _sweep(self._run)
        writers = [info for info in list_writers(self._run) if self._may_touch(info)]
        for info in writers:
            self._collect_fills(info)
        for info in writers:
            gone = self._take_over or info.closed is not None or is_alive(info.about) is False
            # Segments first: once the fills are in their rows, the frames that brought them may go.
            self._seal_segments(info, gone)
            self._seal_logs(info, gone)

    def _may_touch(self, info: WriterInfo) -> bool:
        return self._take_over or same_place(info.about) or is_alive(info.about) is False

    # -- segments

    def _seal_segments(self, info: WriterInfo, gone: bool) -> None:
        streams: dict[tuple[int, int], list[tuple[int, str]]] = {}
        for name in _names(info.folder):
            parsed = parse_name(name)
            if parsed is not None and parsed[0] == "seg":
                streams.setdefault(parsed[1:3], []).append((parsed[3], os.path.join(info.folder, name)))
        for paths in streams.values():
            waiting = [found for _, path in sorted(paths) if (found := self._try(info, path, gone)) is not None]
            waiting.sort(key=lambda sealable: sealable.first)
            while waiting:
                batch: list[_Sealable] = []
                while waiting and (not batch or sum(s.bytes for s in batch) + waiting[0].bytes <= ROW_GROUP_BYTES):
                    batch.append(waiting.pop(0))
                try:
                    self._seal_batch(info, batch, gone)
                except Damaged as err:
                    self._report.problems.append(str(err))

    def _try(self, info: WriterInfo, path: str, gone: bool) -> _Sealable | None:
        try:
            return self._sealable(info, path, gone)
        except FileNotFoundError:
            return None
        except (Damaged, NewerFormat) as err:
            if gone and _never_begun(path):
                _unlink(path)
            else:
                self._report.problems.append(str(err))
            return None

    def _sealable(self, info: WriterInfo, path: str, gone: bool) -> _Sealable | None:
        """A segment that its writer has left, or None if it has not, or the segment is sealed already."""
        with Segment(path) as segment:
            _, _, state = segment.head()
            if state == layout.SEALED:
                if gone:
                    _unlink(path)
                return None
            if state == layout.ACTIVE and not gone:
                return None
            time.sleep(SETTLE_SECONDS)  # what was stored before the state word is visible now, on any machine
            sealable = _Sealable.load(segment)
        if sealable is None:
            if gone:
                self._report.problems.append(f"{path}: its writer died while recycling it; nothing was in it")
                _unlink(path)
            return None
        if sealable.odd:
            self._report.problems.append(
                f"{path}: {sealable.odd} rows have impossible sequence numbers and were left out"
            )
        header = sealable.header
        if header.deferred and not gone and len(sealable.words):
            age = time.time_ns() - sealable.last_time
            seqs = sealable.words[:, -1]
            if age < PENDING_SECONDS * 1e9 and not self._fills.has_all(info.id, header.lane, header.deferred, seqs):
                return None
        sealable.forget()
        return sealable

    def _seal_batch(self, info: WriterInfo, batch: list[_Sealable], gone: bool) -> None:
        """Neighbouring segments of one stream become one part; then they are given up."""
        header = batch[0].header
        loaded = [sealable.load_again() for sealable in batch if sealable.first and not self._is_sealed(sealable)]
        if loaded:
            words = np.concatenate(loaded) if len(loaded) > 1 else loaded[0]
            times = words[:, len(header.clocks)] + header.time_offset
            doubtful = self._marks.doubtful(info, header.lane, words[:, -1], times)
            meta, table = segment_table(header, words, fills=self._fills)
            if doubtful is not None:
                aside = take_table(table, np.flatnonzero(doubtful))
                self._write({**meta, "table": "aside", "of": meta["table"]}, aside)
                self._report.aside += aside.num_rows
                meta, table = segment_table(header, words[~doubtful], fills=self._fills)
            if table.num_rows:
                self._write(meta, table)
                self._report.rows += table.num_rows
        for sealable in batch:
            self._give_up(sealable, gone)
            self._report.segments += 1

    def _is_sealed(self, sealable: _Sealable) -> bool:
        header = sealable.header
        return self._has_part(header.table, header.writer, header.lane, f"S{header.stream:03d}", sealable.first)

    def _has_part(self, table: str, writer: str, lane: int, group: str, seq: int) -> bool:
        """Whether a part holds that row already: sealed before an interruption."""
        return any(
            (w, n, g) == (writer, lane, group) and first <= seq <= last
            for part in self._parts(table)
            for w, n, g, first, last in covers_of(part.meta)
        )

    def _parts(self, table: str) -> list[Any]:
        for _ in range(10):
            try:
                return list(self._shelf.parts(table))
            except FileNotFoundError:
                continue
        return []

    def _give_up(self, sealable: _Sealable, gone: bool) -> None:
        """Mark a live writer's segment as sealed, so that it is used again; unlink one that nobody will use."""
        fd = os.open(sealable.path, os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0))
        try:
            head = layout.HEAD.unpack(_read_at(fd, layout.HEAD.size))
            generation, state = head[3], head[7]
            if generation != sealable.generation:
                self._report.problems.append(f"{sealable.path} was recycled before it was sealed")
                return
            if not gone and state == layout.LEFT:
                os.lseek(fd, layout.STATE_AT, os.SEEK_SET)
                os.write(fd, layout.WORD.pack(layout.SEALED))
                return
        finally:
            os.close(fd)
        if gone or state == layout.DROPPED:
            _unlink(sealable.path)

    # -- frames

    def _collect_fills(self, info: WriterInfo) -> None:
        for part in self._parts("fills"):
            if part.meta["writer"] == info.id:
                try:
                    self._fills.add_table(info.id, part.read())
                except (Damaged, FileNotFoundError, KeyError) as err:
                    self._report.problems.append(str(err))
        for lane, _, path in _logs(info.folder):
            try:
                with FrameFile(path) as file:
                    for _, _, payload, _, _ in file.scan():
                        if payload[1:6] == b"\xa4fill":
                            self._fills.add_frame(info.id, lane, decode(payload))
            except (OSError, Damaged, NewerFormat):
                continue  # said when the file itself is sealed

    def _seal_logs(self, info: WriterInfo, gone: bool) -> None:
        logs = _logs(info.folder)
        newest = {lane: max(number for other, number, _ in logs if other == lane) for lane, _, _ in logs}
        for lane, number, path in logs:
            if gone or number < newest[lane]:
                try:
                    self._seal_log(info, lane, path, gone)
                except FileNotFoundError:
                    continue
                except (Damaged, NewerFormat) as err:
                    self._report.problems.append(str(err))

    def _seal_log(self, info: WriterInfo, lane: int, path: str, gone: bool) -> None:
        tables = FrameTables(info, lane, self._fills)
        now_ns = time.time_ns()
        with FrameFile(path, info.time_offset) as file:
            for seq, time_ns, payload, _ in file.frames():
                later = payload.get("deferred")
                if not gone and isinstance(later, list) and self._is_pending(info, lane, seq, later, now_ns - time_ns):
                    return  # its values are still on their way
                tables.add(seq, time_ns, payload)
            torn, problems = file.torn_bytes(), [text for _, text in file.problems]
            damaged = bool(torn and _looks_torn_by_damage(file)) or any("damaged" in text for text in problems)
        self._report.problems += [f"{path}: {text}" for text in problems] + tables.problems
        for meta, table in tables.tables():
            if not self._has_part(meta["table"], info.id, lane, meta["group"], meta["first_seq"]):
                self._write(meta, table)
                self._report.rows += table.num_rows
        if damaged:
            _keep_aside(self._run, path)
        else:
            _unlink(path)
        self._report.frame_files += 1

    def _is_pending(self, info: WriterInfo, lane: int, seq: int, later: list[Any], age_ns: int) -> bool:
        return age_ns < PENDING_SECONDS * 1e9 and len(self._fills.of_row(info.id, lane, seq)) < len(later)

    def _write(self, meta: Meta, table: pa.Table) -> None:
        group = meta["group"]
        kind = group if group[0] == "S" else group[0]
        name = PartName(meta["writer"], meta["lane"], kind, meta["first_seq"])
        is_wide = meta["table"] == "metrics" and group != "R"
        levels = pyramid_path(self._run, meta["table"], str(name)) if is_wide else ""
        write_part(os.path.join(table_folder(self._run, meta["table"]), str(name)), meta, table, levels)


class _Sealable:
    """A segment whose rows can be sealed. The rows themselves are only in memory while they are written."""

    def __init__(self, path: str, header: layout.SegmentHeader, words: Any, odd: int, generation: int) -> None:
        self.path, self.header, self.words, self.odd, self.generation = path, header, words, odd, generation
        self.bytes = words.nbytes
        self.first = int(words[0, -1]) if len(words) else 0
        self.last_time = int(words[-1, len(header.clocks)]) + header.time_offset if len(words) else 0

    @classmethod
    def load(cls, segment: Segment) -> _Sealable | None:
        """The rows of a segment; None if its writer died in the middle of recycling it."""
        look = segment.look()
        data = segment.copy(look) if look is not None else None
        if look is None or data is None:
            return None
        words, odd = committed_words(segment.header, data, look.first_seq)
        return cls(segment.path, segment.header, words, odd, look.generation)

    def forget(self) -> None:
        """Let go of the rows."""
        self.words = None

    def load_again(self) -> Any:
        """The rows; the segment does not change once its writer has left it."""
        with Segment(self.path) as segment:
            again = _Sealable.load(segment)
        if again is None or again.generation != self.generation:
            raise Damaged(f"{self.path} changed while it was being sealed")
        return again.words


def _never_begun(path: str) -> bool:
    """Whether a writer died between making a segment's file and writing its head: there was never a row in it."""
    try:
        with open(path, "rb") as file:
            return not any(file.read(layout.HEAD.size))
    except OSError:
        return False


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


def _keep_aside(run: str, path: str) -> None:
    """Move a damaged journal file out of the way of readers; `rollbook repair` looks for frames in it."""
    folder = os.path.join(data_folder(run), "aside")
    os.makedirs(folder, exist_ok=True)
    writer = os.path.basename(os.path.dirname(path))
    os.replace(path, os.path.join(folder, f"{writer}.{os.path.basename(path)}"))


def _logs(folder: str) -> list[tuple[int, int, str]]:
    """(lane, number, path) of the frame files in a writer's folder, in order."""
    found = []
    for name in _names(folder):
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


def _read_at(fd: int, size: int) -> bytes:
    os.lseek(fd, 0, os.SEEK_SET)
    return os.read(fd, size)


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
