"""Several processes read the rows of a thousand runs: each takes some of the runs, the asker takes the others.

Opening a run holds the interpreter for most of its time, so that threads do not help. A helper reads what it is asked
on its stdin, answers once on its stdout and ends; what one that fails does not answer, the asker reads itself.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from rollbook.book import Book
from rollbook.errors import RollbookError
from rollbook.ground import source
from rollbook.server.kept_rows import Rows, packed, unpacked

__all__ = ["ROWS_A_RUN", "RowHelpers", "main", "rows_in"]

ROWS_A_RUN = 5_000
"""Runs of four times so many rows are taken as they are, longer ones as the means of so many stretches."""

_START = 170
"""To start a helper costs as much as to read so many runs."""

_LEAST = 64
"""So many runs a helper reads at least."""

_MOST_SECONDS = 120.0
"""How long helpers may take; what one that hangs was asked for is read by the asker."""

_KILLED_SECONDS = 5.0

_PROGRAM = "import sys; sys.path[:] = {path!r}; from rollbook.server.row_helpers import main; main()"


class _Ask(msgspec.Struct):
    folders: list[str]
    keys: list[str]
    axis: str | None


def rows_in(book: Book, keys: Sequence[str], axis: str | None) -> dict[str, Rows]:
    """{key: (axis, x, y)} of a run; a key that it has not has no rows."""
    read = book.batch(keys, x=axis, points=ROWS_A_RUN, raw=4 * ROWS_A_RUN)
    return {
        key: (series.axis, series.x, series.mean) if (series := read.get(key)) is not None else _NOTHING for key in keys
    }


_NOTHING: Rows = ("", np.zeros(0), np.zeros(0))


class RowHelpers:
    """Helpers at work on some of the runs, from making this until `answers` or `close`.

    Args:
      folders: of the runs that have to be read.
      keys: which; axis: along what, None: each run's own.
    Attributes:
      mine: the folders that are left to the asker, to be read meanwhile.
    """

    def __init__(self, folders: Sequence[str], keys: Sequence[str], axis: str | None) -> None:
        many = _helpers_for(len(folders))
        if any(map(source.is_view, folders)):  # this process alone knows the store
            many = 0
        own = len(folders) if not many else (len(folders) + many * _START) // (many + 1)
        self.mine, others = list(folders[:own]), folders[own:]
        self._answers: list[bytes] = []
        self._helpers: list[subprocess.Popen[bytes]] = []
        self._readers: list[threading.Thread] = []
        command = [sys.executable, "-c", _PROGRAM.format(path=sys.path)]
        for number in range(many):
            share = _Ask(list(others[number::many]), list(keys), axis)
            with contextlib.suppress(OSError):  # too many processes: what is not answered is read by the asker
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
    """So many helpers: half of the cores that we may use at most, on cores that nobody needs, where they are faster."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    busy = int(os.getloadavg()[0]) if hasattr(os, "getloadavg") else 0
    return max(0, min(cores // 2, cores - 1 - busy, (runs - _START) // (_START + _LEAST)))


def main() -> None:
    """What a helper does."""
    ask = msgspec.json.decode(sys.stdin.buffer.read(), type=_Ask)
    rows: dict[str, Rows] = {}
    for folder in ask.folders:
        with contextlib.suppress(RollbookError, OSError):
            of_run: Mapping[str, Rows] = rows_in(Book(folder), ask.keys, ask.axis)
            rows.update({f"{folder}\0{key}": of_key for key, of_key in of_run.items()})
    sys.stdout.buffer.writelines(packed(rows, {}))
    sys.stdout.buffer.flush()
