"""The rows that a server keeps of a run: how they are read, as bytes, and on disk between two servers.

One file per root, key and axis in the user's cache folder. Its rows of a run are valid while the run is unchanged
(`state.stamp_of`). A lost or unwritable file costs only time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from rollbook.book import ROWS_A_POINT, Book, Series
from rollbook.runs.reward_parts import Parts, of_metrics
from rollbook.storage import Pieces
from rollbook.system.files import remove, replacing, user_cache
from rollbook.values.array_types import NDArray


class Rows(NamedTuple):
    """What is kept of a key of a run.

    Attributes:
      axis, x, y: its rows; is_whole: whether these are all of them, as they were logged.
      parts: the parts of the run's reward, if the same read found them; None: its rollouts must be read to know.
    """

    axis: str
    x: NDArray
    y: NDArray
    is_whole: bool
    parts: Parts | None = None


ROWS_A_RUN = 5_000
"""Runs of up to four times as many rows are taken unreduced; longer ones as the means of this many intervals."""
_MOST_BYTES, _MOST_FILES = 128 << 20, 16
_KINDS = {"i": np.dtype("<i8"), "f": np.dtype("<f8")}


def rows_in(book: Book, keys: Sequence[str], axis: str | None) -> dict[str, Rows]:
    """The rows of each key of a run; a missing key has none."""

    def work(tables: Mapping[str, Pieces]) -> tuple[dict[str, Series], Parts | None]:
        read = book.batch(keys, x=axis, points=ROWS_A_RUN, raw=ROWS_A_POINT * ROWS_A_RUN)
        return read, None if book.files.holds("rollouts") else of_metrics(tables["metrics"])

    read, parts = book.files.read(["metrics"], work)
    return {
        key: Rows(series.axis, series.x, series.mean, _is_whole(series), parts)
        if (series := read.get(key)) is not None
        else Rows("", np.zeros(0), np.zeros(0), True, parts)
        for key in keys
    }


def _is_whole(series: Series) -> bool:
    """Whether each point is one row."""
    if not len(series):
        return True
    bad = 0 if series.bad is None else series.bad
    return bool(np.all(series.count + bad <= 1)) and series.non_finite == int(np.sum(~np.isfinite(series.mean)))


class _Span(msgspec.Struct, array_like=True):
    """Where the rows of a run are: rows of 8 + 8 bytes from `start`; x of kind i or f, y of kind f."""

    stamp: str
    axis: str
    kind: str
    start: int
    rows: int
    is_whole: bool = True
    parts: Parts | None = None


def keep(roots: Sequence[str], key: str, x: str | None, stamps: Mapping[str, object], rows: Mapping[str, Rows]) -> None:
    """Keep the rows of runs, by folder; nothing if there are too many rows."""
    if sum(16 * len(of_run.x) for of_run in rows.values()) > _MOST_BYTES:
        return
    path = _path(roots, key, x)
    with contextlib.suppress(OSError):
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with replacing(path) as temporary, open(temporary, "wb") as file:
            file.writelines(packed(rows, {folder: _word(stamps[folder]) for folder in rows}))
        _remove_old(os.path.dirname(path))


def kept(roots: Sequence[str], key: str, x: str | None, stamps: Mapping[str, object]) -> dict[str, Rows]:
    """folder -> the kept rows of those runs that are unchanged since."""
    try:
        with open(_path(roots, key, x), "rb") as file:
            content = file.read(_MOST_BYTES + (32 << 20))
    except OSError:
        return {}
    return {
        folder: rows for folder, stamp, rows in unpacked(content) if folder in stamps and stamp == _word(stamps[folder])
    }


def packed(rows: Mapping[str, Rows], stamps: Mapping[str, str]) -> list[bytes]:
    """Rows by name as bytes, each with its entry of `stamps` ("" if it has none)."""
    spans: dict[str, _Span] = {}
    parts: list[bytes] = []
    start = 0
    for name, (axis, xs, ys, is_whole, reward_parts) in rows.items():
        if xs.dtype.kind not in _KINDS or xs.dtype.itemsize != 8:
            continue
        spans[name] = _Span(stamps.get(name, ""), axis, xs.dtype.kind, start, len(xs), is_whole, reward_parts)
        parts += [xs.astype(_KINDS[xs.dtype.kind], copy=False).tobytes(), ys.astype("<f8", copy=False).tobytes()]
        start += 16 * len(xs)
    header = msgspec.json.encode(spans)
    return [len(header).to_bytes(8, "little"), header, *parts]


def unpacked(content: bytes) -> Iterator[tuple[str, str, Rows]]:
    """(name, stamp, rows) of packed bytes, without a truncated end; the arrays share the bytes."""
    size = int.from_bytes(content[:8], "little")
    try:
        spans = msgspec.json.decode(content[8 : 8 + size], type=dict[str, _Span])
    except msgspec.MsgspecError:
        return
    for name, span in spans.items():
        at = 8 + size + span.start
        if span.kind not in _KINDS or span.rows < 0 or span.start < 0 or at + 16 * span.rows > len(content):
            continue
        xs = np.frombuffer(content, _KINDS[span.kind], span.rows, at)
        ys = np.frombuffer(content, "<f8", span.rows, at + 8 * span.rows)
        yield name, span.stamp, Rows(span.axis, xs, ys, span.is_whole, span.parts)


def _word(stamp: object) -> str:
    return hashlib.blake2b(repr(stamp).encode(), digest_size=12).hexdigest()


def _path(roots: Sequence[str], key: str, x: str | None) -> str:
    return os.path.join(user_cache(), "rows", f"{_word((3, tuple(roots), key, x))}.rows")


def _remove_old(folder: str) -> None:
    with os.scandir(folder) as entries:
        files = sorted((entry for entry in entries if entry.name.endswith(".rows")), key=lambda e: e.stat().st_mtime)
    for entry in files[:-_MOST_FILES]:
        remove(entry.path)
