"""Runs of every kind, damage of every kind, and a careful reader that knows what can still be read.

The careful reader shares nothing with rollbook's own: it compares bytes with those before the damage, reads Parquet
column by column, takes a row of a segment or a frame if every byte of it is what it was.
"""

from __future__ import annotations

import json
import random
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import rollbook
from live_copies import copy_live
from rollbook.book.book import Book
from rollbook.storage import seal

Values = Counter[tuple[str, Any]]
"""How often each (key, value) is there."""

ROWS = 1200
_IDENTITY = {"time", "scope", "at", "attempt", "writer", "lane", "seq", "index"}
_CLOCKS = {"env_step", "gradient_step", "epoch", "episode", "policy_version", "step"}


# -- runs


def _fill(run: rollbook.Run, start: int, stop: int, *, checkpoints: bool = True) -> None:
    for i in range(start, stop):
        run.log({"loss": i * 0.5, "entropy": 1.0 / (i + 1), "count": 3 * i}, env_step=i)
        if i % 10 == 0:
            run.log({"eval/score": float(i)}, gradient_step=i)
        if i % 100 == 0:
            run.note(f"note {i}")
            run.log({f"rare{i}": float(i)})
            run.log_episode(return_=float(i), length=i + 1)
        if checkpoints and i % 1000 == 999:
            run.save_checkpoint({"weights": np.arange(200.0) + i, "step": i}, score=float(i))
            run.log_image("frame", np.full((4, 4, 3), i % 255, dtype=np.uint8))


def _as_if_killed(folder: Path, source: Path) -> Path:
    copy_live(source, folder)
    for page in folder.glob("data/journal/*/writer.json"):
        page.write_text(json.dumps({**json.loads(page.read_text()), "pid": 2**22 + 1, "start_time": "0"}))
    return folder


def make(kind: str, root: Path) -> Path:
    """A run: "small", "sealed", "merged", "killed", "half" (killed, partly sealed) or "rewound"."""
    options: dict[str, Any] = {"dir": root, "sinks": [], "keeper": "inline", "rules": (), "config": {"lr": 0.1}}
    run = rollbook.init("p", kind, **options)
    if kind == "small":
        _fill(run, 0, 60)
    elif kind == "merged":
        for _ in range(2):
            _fill(run, 0, 300, checkpoints=False)
            run.finish()
            run = rollbook.init("p", kind, resume="must", **options)
        _fill(run, 300, 400)
    elif kind == "rewound":
        _fill(run, 0, 1500)
        run.finish()
        run = rollbook.init("p", kind, resume="must", **options)
        run.restore("last")
        _fill(run, 1000, 1600)
    else:
        _fill(run, 0, ROWS)
    if kind in ("killed", "half"):
        if kind == "half":
            seal(run.folder)
        folder = _as_if_killed(root / "p" / f"{kind}-0000000{len(kind)}", Path(run.folder))
        run.finish()
        return folder
    run.finish()
    return Path(run.folder)


KINDS = ("small", "sealed", "merged", "killed", "half", "rewound")


# -- damage


def _flip(data: bytearray, rng: random.Random) -> None:
    for _ in range(rng.choice([1, 1, 3, 30])):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _cut(data: bytearray, rng: random.Random) -> None:
    del data[rng.choice([len(data) // 2, rng.randrange(len(data))]) :]


def _blank(data: bytearray, rng: random.Random) -> None:
    size = rng.choice([512, 4096])
    at = rng.randrange(max(1, len(data) // size)) * size
    data[at : at + size] = bytes(len(data[at : at + size]))


def _noise(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data))
    data[at : at + 300] = rng.randbytes(len(data[at : at + 300]))


def _insert(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data))
    data[at:at] = rng.randbytes(300)


def _grow(data: bytearray, rng: random.Random) -> None:
    data += rng.randbytes(100)


_HURTS: list[Callable[[bytearray, random.Random], None]] = [_flip, _flip, _cut, _blank, _blank, _noise, _insert, _grow]


def files_of(folder: Path) -> list[Path]:
    """The files of a run that damage is done to: all but locks."""
    found = (
        path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock" and "lock" not in path.name
    )
    return sorted(path for path in found if path.stat().st_size)


def damage(folder: Path, rng: random.Random) -> str:
    """Damage some files; returns what was done, for a message."""
    files = files_of(folder)
    with_rows = [path for path in files if path.suffix in (".parquet", ".seg", ".log") and "data" in path.parts]
    done = []
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        path = rng.choice(with_rows if rng.random() < 0.75 else files)
        if not path.exists() or not path.stat().st_size:
            continue
        kind = rng.random()
        if kind < 0.08:
            path.unlink()
            done.append(f"delete {path.relative_to(folder)}")
        elif kind < 0.14:
            other = rng.choice([each for each in files if each.exists() and each.suffix == path.suffix])
            if other.exists():
                mine, theirs = path.read_bytes(), other.read_bytes()
                path.write_bytes(theirs)
                other.write_bytes(mine)
                done.append(f"swap {path.relative_to(folder)} with {other.relative_to(folder)}")
        else:
            hurt = rng.choice(_HURTS)
            data = bytearray(path.read_bytes())
            hurt(data, rng)
            path.write_bytes(data)
            done.append(f"{hurt.__name__[1:]} {path.relative_to(folder)}")
    return "; ".join(done)


# -- the careful reader


def readable(folder: Path, original: Path) -> Values:
    """Every value of metrics, notes and episodes that a careful reader gets from a damaged run."""
    values: Values = Counter()
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or "aside" in path.parts:
            continue
        if path.suffix == ".parquet":
            values += _of_parquet(path)
        elif path.suffix == ".seg":
            values += _of_segment(path, original / path.relative_to(folder))
        elif path.suffix == ".log" and "frames" in path.name:
            values += _of_frames(path, original / path.relative_to(folder))
    return values


def _of_parquet(path: Path) -> Values:
    values: Values = Counter()
    parts = path.parts
    try:
        file = pq.ParquetFile(path, page_checksum_verification=True)
        schema = file.schema_arrow
        described = (file.metadata.metadata or {}).get(b"rollbook", b"{}")
        if described == b"{}" and "columns" in path.name:
            return values
        table = str(json.loads(described).get("table") or parts[len(parts) - 1 - parts[::-1].index("data") + 1])
        if table not in ("metrics", "text", "episodes") or path.name in ("abandoned.parquet", "writers.parquet"):
            return values
        is_long = {"key", "value"} <= set(schema.names) and table == "metrics"
        for group in range(file.num_row_groups):
            n = file.metadata.row_group(group).num_rows
            columns: dict[str, list[Any]] = {}
            for name in schema.names:
                try:
                    column = file.read_row_group(group, columns=[name], use_threads=False)[name]
                    column.validate(full=True)
                    if len(column) == n:
                        columns[name] = column.to_pylist()
                except (pa.ArrowException, OSError, ValueError, OverflowError):
                    continue
            if is_long and {"key", "value"} <= columns.keys():
                pairs = zip(columns["key"], columns["value"], strict=True)
                values.update((key, value) for key, value in pairs if value is not None and key is not None)
            elif not is_long:
                for name in columns.keys() - _IDENTITY - _CLOCKS:
                    label = name if table == "metrics" else f"{table}.{name}"
                    if table == "metrics" or name in ("text", "return"):
                        values.update((label, cell) for cell in columns[name] if cell is not None)
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError):
        return values
    return values


def _of_segment(path: Path, original: Path) -> Values:
    values: Values = Counter()
    data, before = path.read_bytes(), original.read_bytes() if original.exists() else b""
    head_size, first_seq = struct.unpack_from("<I", before, 12)[0], struct.unpack_from("<Q", before, 24)[0]
    words, state = struct.unpack_from("<I", before, 32)[0], struct.unpack_from("<Q", before, 40)[0]
    size = struct.unpack_from("<I", before, 56)[0]
    if data[:head_size] != before[:head_size] or state == 2:
        return values
    about = json.loads(before[64 : 64 + size])
    n_clocks = len(about["clocks"])
    width = 8 * words
    if about["table"] != "metrics":
        return values
    for start in range(head_size, min(len(data), len(before)) - width + 1, width):
        row = data[start : start + width]
        if row == before[start : start + width] and struct.unpack_from("<Q", row, width - 8)[0] >= max(1, first_seq):
            for place, (key, kind) in enumerate(zip(about["keys"], about["types"], strict=True)):
                cell = struct.unpack_from("<d" if kind == "d" else "<q", row, 8 * (n_clocks + 1 + place))[0]
                values[key, cell] += 1
    return values


def _of_frames(path: Path, original: Path) -> Values:
    values: Values = Counter()
    data, before = path.read_bytes(), original.read_bytes()
    if data[:32] != before[:32]:
        return values
    at = found = 32
    while at + 24 <= len(before):
        length, crc = struct.unpack_from("<II", before, at)
        frame = before[at : at + 24 + length]
        if len(frame) < 24 + length or zlib.crc32(frame[8:]) != crc:
            break
        at += len(frame)
        there = data.find(frame, found)
        if there < 0:
            continue
        found = there + len(frame)
        values.update(_of_payload(msgspec.msgpack.decode(frame[24:], ext_hook=lambda code, raw: raw)))
    return values


def _of_payload(payload: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    if payload.get("table") == "metrics" and "keys" in payload:
        yield from zip(payload["keys"], payload["values"], strict=True)
    elif payload.get("table") == "text":
        yield from (("text.text", text) for text in payload["columns"]["text"])
    elif payload.get("table") == "episodes":
        yield from (("episodes.return", number) for number in payload["columns"]["return"])


def of_book(folder: Path) -> Values:
    """The same values, as rollbook reads them."""
    book = Book(folder)
    values: Values = Counter()
    keys = list(book.keys())
    metrics = book.metrics(keys, attempts="all")
    for key in {*keys} & {*metrics.column_names}:
        values.update((key, cell) for cell in metrics[key].to_pylist() if cell is not None)
    for table, name in (("text", "text"), ("episodes", "return")):
        cells = book.table(table, attempts="all")
        if name in cells.column_names:
            values.update((f"{table}.{name}", cell) for cell in cells[name].to_pylist() if cell is not None)
    return values
