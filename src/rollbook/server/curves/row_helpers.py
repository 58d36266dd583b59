"""The rows of a thousand runs: read by several processes, and cached between two servers.

One file per root, key and axis in the user's cache folder. Its rows of a run are valid while the run is unchanged
(`state.stamp_of`). A lost or unwritable file costs only time.

Opening a run holds the interpreter most of the time, so threads do not help. A helper reads its request from stdin,
answers once on stdout and ends. If a helper fails, the caller reads its runs.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np

from rollbook.book import ROWS_A_POINT, Book, Series
from rollbook.errors import RollbookError
from rollbook.schema import source
from rollbook.system.files import remove, replacing, user_cache
from rollbook.values.array_types import NDArray

Rows = tuple[str, NDArray, NDArray, bool]
"""(axis, x, y) of a run, and whether these are all of its rows, as they were logged."""

_MOST_BYTES, _MOST_FILES = 128 << 20, 16
_KINDS = {"i": np.dtype("<i8"), "f": np.dtype("<f8")}


class _Place(msgspec.Struct, array_like=True):
    """Where the rows of a run are: rows of 8 + 8 bytes from `start`; x of kind i or f, y of kind f."""

    stamp: str
    axis: str
    kind: str
    start: int
    rows: int
    is_whole: bool = True


def keep(roots: Sequence[str], key: str, x: str | None, stamps: Mapping[str, object], rows: Mapping[str, Rows]) -> None:
    """Keep the rows of runs, by folder; nothing if there are too many rows."""
    if sum(16 * len(xs) for _, xs, _, _ in rows.values()) > _MOST_BYTES:
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
    places: dict[str, _Place] = {}
    parts: list[bytes] = []
    start = 0
    for name, (axis, xs, ys, is_whole) in rows.items():
        if xs.dtype.kind not in _KINDS or xs.dtype.itemsize != 8:
            continue
        places[name] = _Place(stamps.get(name, ""), axis, xs.dtype.kind, start, len(xs), is_whole)
        parts += [xs.astype(_KINDS[xs.dtype.kind], copy=False).tobytes(), ys.astype("<f8", copy=False).tobytes()]
        start += 16 * len(xs)
    header = msgspec.json.encode(places)
    return [len(header).to_bytes(8, "little"), header, *parts]


def unpacked(content: bytes) -> Iterator[tuple[str, str, Rows]]:
    """(name, stamp, rows) of packed bytes, without a truncated end; the arrays share the bytes."""
    size = int.from_bytes(content[:8], "little")
    try:
        places = msgspec.json.decode(content[8 : 8 + size], type=dict[str, _Place])
    except msgspec.MsgspecError:
        return
    for name, place in places.items():
        at = 8 + size + place.start
        if place.kind not in _KINDS or place.rows < 0 or place.start < 0 or at + 16 * place.rows > len(content):
            continue
        xs = np.frombuffer(content, _KINDS[place.kind], place.rows, at)
        ys = np.frombuffer(content, "<f8", place.rows, at + 8 * place.rows)
        yield name, place.stamp, (place.axis, xs, ys, place.is_whole)


def _word(stamp: object) -> str:
    return hashlib.blake2b(repr(stamp).encode(), digest_size=12).hexdigest()


def _path(roots: Sequence[str], key: str, x: str | None) -> str:
    return os.path.join(user_cache(), "rows", f"{_word((2, tuple(roots), key, x))}.rows")


def _remove_old(folder: str) -> None:
    with os.scandir(folder) as entries:
        files = sorted((entry for entry in entries if entry.name.endswith(".rows")), key=lambda e: e.stat().st_mtime)
    for entry in files[:-_MOST_FILES]:
        remove(entry.path)


ROWS_A_RUN = 5_000
"""Runs of up to four times as many rows are taken unreduced; longer ones as the means of this many intervals."""

_START = 170
"""Starting a helper costs as much as reading this many runs."""

_LEAST = 64
"""A helper reads at least this many runs."""

_MOST_SECONDS = 120.0
"""How long helpers may take; the caller reads the runs of one that hangs."""

_KILLED_SECONDS = 5.0

_PROGRAM = "import sys; sys.path[:] = {path!r}; from rollbook.server.curves.row_helpers import main; main()"


class _Ask(msgspec.Struct):
    folders: list[str]
    keys: list[str]
    axis: str | None


def rows_in(book: Book, keys: Sequence[str], axis: str | None) -> dict[str, Rows]:
    """{key: (axis, x, y)} of a run; a missing key has no rows."""
    read = book.batch(keys, x=axis, points=ROWS_A_RUN, raw=ROWS_A_POINT * ROWS_A_RUN)
    return {
        key: (series.axis, series.x, series.mean, _is_whole(series))
        if (series := read.get(key)) is not None
        else _NOTHING
        for key in keys
    }


def _is_whole(series: Series) -> bool:
    """Whether each point is one row."""
    if not len(series):
        return True
    bad = 0 if series.bad is None else series.bad
    return bool(np.all(series.count + bad <= 1)) and series.non_finite == int(np.sum(~np.isfinite(series.mean)))


_NOTHING: Rows = ("", np.zeros(0), np.zeros(0), True)


class RowHelpers:
    """Helpers that read some of the runs, from construction until `answers` or `close`.

    Args:
      folders: of the runs that have to be read.
      keys: which; axis: along which axis, None: each run's own.
      helpers: how many; None: as idle cores allow, and as many as are worth their start.
    Attributes:
      mine: the folders that the caller reads in the meantime.
    """

    def __init__(
        self, folders: Sequence[str], keys: Sequence[str], axis: str | None, helpers: int | None = None
    ) -> None:
        start = _START if helpers is None else 0
        many = _helpers_for(len(folders)) if helpers is None else helpers
        if any(map(source.is_view, folders)):  # only this process has the store open
            many = 0
        own = len(folders) if not many else (len(folders) + many * start) // (many + 1)
        self.mine, others = list(folders[:own]), folders[own:]
        self._answers: list[bytes] = []
        self._helpers: list[subprocess.Popen[bytes]] = []
        self._readers: list[threading.Thread] = []
        command = [sys.executable, "-c", _PROGRAM.format(path=sys.path)]
        for number in range(many):
            share = _Ask(list(others[number::many]), list(keys), axis)
            with contextlib.suppress(OSError):  # too many processes: the caller reads what is not answered
                pipe = subprocess.PIPE
                helper = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
                reader = threading.Thread(target=self._listen, args=(helper, msgspec.json.encode(share)), daemon=True)
                self._helpers.append(helper)
                self._readers.append(reader)
                reader.start()

    def _listen(self, helper: subprocess.Popen[bytes], asked: bytes) -> None:
        with contextlib.suppress(OSError, ValueError, subprocess.TimeoutExpired):
            self._answers.append(helper.communicate(asked, timeout=_MOST_SECONDS)[0])

    def answers(self) -> dict[tuple[str, str], Rows]:
        """(folder, key) -> its rows, once all helpers are done, without what could not be read."""
        until = time.monotonic() + _MOST_SECONDS
        for reader in self._readers:
            reader.join(max(0.0, until - time.monotonic()))
        rows: dict[tuple[str, str], Rows] = {}
        for content in self._answers:
            for name, _, of_key in unpacked(content):
                folder, _, key = name.partition("\0")
                rows[folder, key] = of_key
        return rows

    def close(self) -> None:
        """End what is still at work."""
        for helper in self._helpers:
            helper.kill()
        for helper, reader in zip(self._helpers, self._readers, strict=True):
            reader.join(_KILLED_SECONDS)
            with contextlib.suppress(subprocess.TimeoutExpired):
                helper.wait(_KILLED_SECONDS)


def _helpers_for(runs: int) -> int:
    """The number of helpers: at most half of the available cores, only idle ones, and only if that is faster."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    busy = int(os.getloadavg()[0]) if hasattr(os, "getloadavg") else 0
    return max(0, min(cores // 2, cores - 1 - busy, (runs - _START) // (_START + _LEAST)))


def main() -> None:
    """The helper's main function."""
    ask = msgspec.json.decode(sys.stdin.buffer.read(), type=_Ask)
    rows: dict[str, Rows] = {}
    for folder in ask.folders:
        with contextlib.suppress(RollbookError, OSError):
            of_run: Mapping[str, Rows] = rows_in(Book(folder), ask.keys, ask.axis)
            rows.update({f"{folder}\0{key}": of_key for key, of_key in of_run.items()})
    sys.stdout.buffer.writelines(packed(rows, {}))
    sys.stdout.buffer.flush()
