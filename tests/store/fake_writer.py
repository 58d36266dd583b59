"""A journal writer for tests: the same bytes as the real one, and every step in the test's hands."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from rollbook.journal import format as layout
from rollbook.journal.frames import encode
from rollbook.schema.clocks import STANDARD, UNKNOWN
from rollbook.system.liveness import identity


class FakeStream:
    """Rows of one key set. Slots are recycled only when the test seals and says so."""

    def __init__(self, lane: FakeLane, number: int, keys: tuple[str, ...], types: str, **meta: Any) -> None:
        self.lane, self.number, self.keys, self.types = lane, number, keys, types
        self.size = meta.pop("size", 4096)
        self.meta = {
            "writer": lane.writer.id, "attempt": lane.writer.attempt, "lane": lane.index, "stream": number,
            "table": "metrics", "scope": "", "at": "", "keys": list(keys), "types": types, "deferred": [],
            "clocks": list(lane.writer.clocks), "time_offset": lane.writer.time_offset, **meta,
        }  # fmt: skip
        self.row = layout.row_struct(len(lane.writer.clocks), types)
        self.slots: list[Path] = []
        self.path: Path | None = None
        self.index = self.capacity = self.header_size = 0

    def row_bytes(self, values: tuple[Any, ...], clocks: dict[str, int], seq: int, mono: int) -> bytes:
        readings = [clocks.get(name, UNKNOWN) for name in self.lane.writer.clocks]
        return self.row.pack(*readings, mono, *values, seq)

    def log(self, *values: Any, mono: int | None = None, **clocks: int) -> int:
        """One committed row; its sequence number."""
        if self.path is None or self.index >= self.capacity:
            self.roll()
        assert self.path is not None
        seq = self.lane.next_seq()
        at = self.header_size + self.index * self.row.size
        self.index += 1
        data = self.row_bytes(values, clocks, seq, self.lane.writer.mono() if mono is None else mono)
        with open(self.path, "r+b") as file:
            file.seek(at)
            file.write(data)
        return seq

    def hole(self) -> int:
        """What an interrupt leaves: place and number are used up, nothing is committed."""
        if self.path is None or self.index >= self.capacity:
            self.roll()
        self.index += 1
        return self.lane.next_seq()

    def torn(self, *values: Any) -> None:
        """A row whose values are there and whose commit word is not."""
        if self.path is None or self.index >= self.capacity:
            self.roll()
        assert self.path is not None
        data = self.row_bytes(values, {}, 0, 1)
        with open(self.path, "r+b") as file:
            file.seek(self.header_size + self.index * self.row.size)
            file.write(data)

    def leave(self, state: int = layout.LEFT) -> None:
        """Leave the segment; one that stays for another use is full, so here it gets as many rows as it has."""
        if self.path is not None:
            if state == layout.LEFT:
                self.make_room(self.path, self.index)
            self.set_word(self.path, layout.STATE_AT, state)
        self.path = None

    def make_room(self, path: Path, rows: int) -> None:
        with open(path, "r+b") as file:
            file.seek(layout.CAPACITY_AT)
            file.write(rows.to_bytes(4, "little"))
            file.truncate(self.header_size + rows * self.row.size)

    def roll(self, recycle: bool = True) -> None:
        self.leave()
        if recycle:
            for path in self.slots:
                if path.exists() and self.word(path, layout.STATE_AT) == layout.SEALED:
                    generation = self.word(path, layout.GENERATION_AT)
                    self.set_word(path, layout.GENERATION_AT, generation + 1)
                    self.make_room(path, self.capacity)
                    self.set_word(path, layout.FIRST_SEQ_AT, self.lane.seq + 1)
                    self.set_word(path, layout.STATE_AT, layout.ACTIVE)
                    self.set_word(path, layout.GENERATION_AT, generation + 2)
                    self.path, self.index = path, 0
                    return
        slot = len(self.slots)
        header, self.header_size, width, self.capacity = layout.pack_header(
            {**self.meta, "slot": slot}, first_seq=1, size=self.size
        )
        self.path = self.lane.writer.folder / layout.segment_name(self.lane.index, self.number, slot)
        self.path.write_bytes(header + bytes(width * self.capacity))
        self.slots.append(self.path)
        self.index = 0

    @staticmethod
    def word(path: Path, at: int) -> int:
        return int(layout.WORD.unpack(path.read_bytes()[at : at + 8])[0])

    @staticmethod
    def set_word(path: Path, at: int, value: int) -> None:
        with open(path, "r+b") as file:
            file.seek(at)
            file.write(layout.WORD.pack(value))


class FakeLane:
    def __init__(self, writer: FakeWriter, index: int) -> None:
        self.writer, self.index, self.seq, self.number = writer, index, 0, -1
        self.streams: list[FakeStream] = []
        self.log_path: Path | None = None

    def next_seq(self) -> int:
        self.seq += 1
        return self.seq

    def stream(self, *keys: str, types: str | None = None, **meta: Any) -> FakeStream:
        made = FakeStream(self, len(self.streams), keys, types or "d" * len(keys), **meta)
        self.streams.append(made)
        return made

    def frame(self, payload: dict[str, Any], mono: int | None = None) -> int:
        if self.log_path is None:
            self.number += 1
            self.log_path = self.writer.folder / layout.frames_name(self.index, self.number)
            self.log_path.write_bytes(layout.frames_file_head(self.index, self.number))
        seq = self.next_seq()
        with open(self.log_path, "ab") as file:
            file.write(layout.pack_frame(seq, self.writer.mono() if mono is None else mono, encode(payload)[0]))
        return seq

    def roll_log(self) -> None:
        self.log_path = None

    def rare(self, values: dict[str, Any], scope: str = "", at: str = "", table: str = "metrics", **clocks: int) -> int:
        return self.frame(
            {
                "table": table,
                "scope": scope,
                "at": at,
                "clocks": self.clocks(clocks),
                "keys": list(values),
                "values": list(values.values()),
            }
        )

    def chunk(self, table: str, columns: dict[str, Any], n: int, scope: str = "", at: str = "", **rest: Any) -> int:
        extra = {name: rest.pop(name) for name in ("clock_columns", "time_column") if name in rest}
        return self.frame(
            {"table": table, "scope": scope, "at": at, "clocks": self.clocks(rest), "n": n, "columns": columns, **extra}
        )

    def mark(self, mark: str, keys: tuple[str, ...] = (), **clocks: int) -> int:
        return self.frame({"mark": mark, "scope": "", "clocks": self.clocks(clocks), "keys": list(keys)})

    def clocks(self, known: dict[str, int]) -> list[int]:
        return [known.get(name, UNKNOWN) for name in self.writer.clocks]


GONE = {**identity(), "start_time": "0"}
"""A process that had the number of this one and is no more."""


class FakeWriter:
    """`start` is unix seconds; its monotonic clock starts at 1 s and moves by 1 ms a record.

    It writes on another host, whose processes cannot be judged; with `**identity()` it is this process, which lives,
    and with `**GONE` one of this host that has died.
    """

    def __init__(
        self,
        run: Path,
        id: str = "w1",
        *,
        attempt: int = 1,
        start: float = 1_700_000_000.0,
        clocks: tuple[str, ...] = STANDARD,
        step_ns: int = 1_000_000,
        **about: Any,
    ) -> None:
        self.run, self.id, self.attempt, self.clocks = run, id, attempt, clocks
        self.folder = run / "data" / "journal" / id
        self.folder.mkdir(parents=True)
        self._mono, self._step = 1_000_000_000, step_ns
        self.time_offset = int(start * 1e9) - self._mono
        self.lanes: list[FakeLane] = []
        self.about = {
            "format": 1, "writer": id, "attempt": attempt, "main": True, "host": "h", "boot_id": "b", "pid_ns": "n",
            "pid": 1, "start_time": "s", "nonce": "x", "time_offset": self.time_offset, "clocks": list(clocks),
            "rank": None, **about,
        }  # fmt: skip
        (self.folder / "writer.json").write_text(json.dumps(self.about))

    def mono(self) -> int:
        self._mono += self._step
        return self._mono

    def lane(self) -> FakeLane:
        made = FakeLane(self, len(self.lanes))
        self.lanes.append(made)
        return made

    def close(self) -> None:
        for lane in self.lanes:
            for stream in lane.streams:
                stream.leave(layout.DROPPED)
        text = json.dumps({"lanes": {str(lane.index): lane.seq for lane in self.lanes}, "time": 0, "drops": {}})
        (self.folder / "closed.json").write_text(text)


def make_run(root: Path, project: str = "proj", name: str = "run", id: str = "abcd1234", **fields: Any) -> Path:
    """A run folder with a run.json."""
    folder = root / project / f"{name}-{id}"
    (folder / "data" / "journal").mkdir(parents=True)
    run = {
        "format": 1, "rollbook": "0.1.0", "id": id, "project": project, "name": name, "nonce": "x",
        "status": "running", "created": 1_700_000_000.0, "ended": None, "seed": 0, "group": None, "job_type": None,
        "tags": [], "notes": "", "parent": None, "forked_from": None, "total": {}, "clocks": list(STANDARD),
        "config": {}, "summary": {}, "host": "h", "boot_id": "b", "command": [], "python": "3.11", "git": {},
        "packages": {}, "drops": {}, "x": "env_step",
        "attempts": [{"n": 1, "parent": None, "cut": None, "started": 1_700_000_000.0, "ended": None,
                      "status": "running", "writer": "w1", "host": "h", "offsets": {}}],
        **fields,
    }  # fmt: skip
    (folder / "run.json").write_text(json.dumps(run))
    return folder


def write_run(folder: Path, **fields: Any) -> None:
    """Change fields of run.json by an atomic replace."""
    run = {**json.loads((folder / "run.json").read_text()), **fields}
    temporary = folder / "run.json.tmp"
    temporary.write_text(json.dumps(run))
    os.replace(temporary, folder / "run.json")
