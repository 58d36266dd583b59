"""Helper processes of a server, each of which reads some of a thousand runs.

Opening a run holds the interpreter most of the time, so threads do not help. A helper reads its request from stdin,
answers once on stdout and ends. If a helper fails, the caller reads its runs.
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

from rollbook.book import Book
from rollbook.errors import RollbookError
from rollbook.schema import source
from rollbook.server.curves.kept_rows import Rows, packed, rows_in, unpacked

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
