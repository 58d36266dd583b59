"""Reading a journal back, without the store."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rollbook.journal.frame_files import FrameFile
from rollbook.journal.segments import Segment
from rollbook.journal.writers import list_writers


class Read:
    """One row as it stands in the journal."""

    def __init__(self, seq: int, time: int, clocks: dict[str, int], values: dict[str, Any], where: str) -> None:
        self.seq, self.time, self.clocks, self.values, self.where = seq, time, clocks, values, where


def _pieces(run_folder: Path) -> Iterator[tuple[str, Any, str]]:
    for info in list_writers(run_folder):
        for name in sorted(os.listdir(info.folder)):
            path = os.path.join(info.folder, name)
            if os.path.getsize(path):  # else it was never begun
                yield info.id, info, path


def read_rows(run_folder: Path) -> list[Read]:
    """All scalar rows of a run's journal, by writer, lane and sequence."""
    found = []
    for writer, info, path in _pieces(run_folder):
        if path.endswith(".seg"):
            with Segment(path) as segment:
                header = segment.header
                for seq, time, clocks, values in segment.committed():
                    known = {n: c for n, c in zip(header.clocks, clocks, strict=True) if c != -(2**63)}
                    cells = dict(zip(header.keys, values, strict=True))
                    found.append((writer, header.lane, Read(seq, time, known, cells, "stream")))
        elif path.endswith(".log"):
            with FrameFile(path, info.time_offset) as file:
                lane = int(os.path.basename(path)[1:3])
                for seq, time, payload, _end in file.frames():
                    if "keys" in payload and payload.get("table") == "metrics":
                        names = info.clocks
                        known = {n: c for n, c in zip(names, payload["clocks"], strict=True) if c != -(2**63)}
                        cells = dict(zip(payload["keys"], payload["values"], strict=True))
                        found.append((writer, lane, Read(seq, time, known, cells, "frame")))
    return [row for _w, _l, row in sorted(found, key=lambda item: (item[0], item[1], item[2].seq))]


def read_frames(run_folder: Path) -> list[dict[str, Any]]:
    """All frame payloads that are no single rows."""
    found = []
    for _writer, info, path in _pieces(run_folder):
        if path.endswith(".log"):
            with FrameFile(path, info.time_offset) as file:
                found += [payload for _s, _t, payload, _e in file.frames() if "keys" not in payload]
    return found
