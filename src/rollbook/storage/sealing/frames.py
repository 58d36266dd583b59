"""Frame files that are no longer used become parts: one per group of frames with the same columns."""

from __future__ import annotations

import os
import time

import numpy as np

from rollbook.journal import FrameFile, WriterInfo
from rollbook.storage.frame_tables import FrameTables
from rollbook.storage.sealing.one_pass import PENDING_SECONDS, SealPass, frame_files_in, inside, keep_aside, unlink
from rollbook.storage.tabulate import seq_range
from rollbook.system.texts import amount
from rollbook.values.arrow import take_table, to_numpy

_BATCH_BYTES = 16 * 1024 * 1024


class FrameSealing:
    """The frame files of all writers in one pass."""

    def __init__(self, seal_pass: SealPass) -> None:
        self._pass = seal_pass

    def seal(self, info: WriterInfo, names: list[str], gone: bool) -> None:
        """Seal the files `names` of one writer; the newest of each lane stays while the writer may use it again."""
        lanes: dict[int, list[str]] = {}
        for lane, _, path in frame_files_in(info.folder, names):
            lanes.setdefault(lane, []).append(path)
        for lane, paths in lanes.items():
            batch: list[str] = []
            size = 0
            for path in paths if gone else paths[:-1]:
                own = _size(path)
                if batch and size + own > _BATCH_BYTES:
                    if not self._seal_batch(info, lane, batch, gone):
                        batch = []
                        break
                    batch, size = [], 0
                batch.append(path)
                size += own
            if batch:
                self._seal_batch(info, lane, batch, gone)

    def _seal_batch(self, info: WriterInfo, lane: int, paths: list[str], gone: bool) -> bool:
        """Write adjacent frame files of one lane as one part per group, then remove them. False if some must wait."""
        done: list[tuple[str, str]] = []
        frames: list[tuple[int, int, dict[str, object]]] = []
        later = waits = False
        last = self._pass.last_of(info.id, lane)
        for path in paths:
            batch = self._pass.attempt(_read, path, info)
            if batch is None:
                if not gone and os.path.exists(path):
                    waits = True
                    break  # later ones wait, too, so that parts stay in order
                if os.path.exists(path):
                    keep_aside(self._pass.run, path, self._pass.report.problems[-1])
                continue
            own, damaged, problems = batch
            if any(seq > last for seq, _, _ in own):
                waits = True
                break
            if not gone and any(self._is_pending(info, lane, *frame) for frame in own):
                waits = True  # its values have not arrived yet
                break
            later = later or any("deferred" in payload for _, _, payload in own)
            frames += own
            done.append((path, damaged))
            self._pass.report.problems += [f"{path}: {text}" for text in problems]
        tables = FrameTables(info, lane, self._pass.fills_of(info) if later else None)
        for frame in frames:
            tables.add(*frame)
        for meta, table in tables.tables():
            ranges = self._pass.sealed.of(meta["table"], info.id, lane, meta["group"])
            if ranges:
                seqs = to_numpy(table["seq"])[0]
                table = take_table(table, np.flatnonzero(~inside(seqs, ranges)))
                meta = {**meta, **seq_range(to_numpy(table["seq"])[0], to_numpy(table["time"])[0])}
            if table.num_rows:
                self._pass.write(meta, table)
                self._pass.report.rows += table.num_rows
        self._pass.report.problems += tables.problems
        for path, damaged in done:
            if damaged:
                keep_aside(self._pass.run, path, damaged)
            else:
                unlink(path)
            self._pass.report.frame_files += 1
        return not waits

    def _is_pending(self, info: WriterInfo, lane: int, seq: int, time_ns: int, payload: dict[str, object]) -> bool:
        later = payload.get("deferred")
        if not isinstance(later, list) or time.time_ns() - time_ns >= PENDING_SECONDS * 1e9:
            return False
        return len(self._pass.fills_of(info).of_row(info.id, lane, seq)) < len(later)


def _read(path: str, info: WriterInfo) -> tuple[list[tuple[int, int, dict[str, object]]], str, list[str]]:
    """(frames, why the file has more than could be read or "", its problems)."""
    with FrameFile(path, info.time_offset) as file:
        frames = [(seq, time_ns, payload) for seq, time_ns, payload, _ in file.frames()]
        problems = [text for _, text in file.problems]
        if file.is_torn_by_damage():
            problems.append(f"the {amount(file.torn_bytes(), 'byte')} behind its last whole record are damaged")
    return frames, "; ".join(problems), problems


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
