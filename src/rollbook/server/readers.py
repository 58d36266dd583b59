"""Open books, shared by all requests: one reader per run, used by one request at a time; the least recently used closes
first."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from rollbook.book import Book
from rollbook.errors import RollbookError
from rollbook.ground import files, source
from rollbook.ground.liveness import is_alive
from rollbook.server.refusals import Refused

__all__ = ["Readers", "look_again", "stamp_of"]

_SEAT_SECONDS = 60.0
"""How long a request waits for others about the same run; answers also have deadlines."""

Stamp = tuple[object, ...]


class _Seat:
    """One book, and whether it is in use."""

    __slots__ = ("book", "lock", "users")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.book: Book | None = None
        self.users = 0


class Readers:
    """Books by folder. Any thread may use it; each book is lent to one at a time.

    Args:
      most: how many stay open in addition to those in use.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._seats: OrderedDict[str, _Seat] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._seats)

    @contextmanager
    def book(self, folder: str) -> Iterator[Book]:
        """The book of a run's folder, for the duration of the block.

        Raises:
          NotARun, NewerFormat: see `Book`. Refused: others have used it for a minute.
        """
        with self._lock:
            seat = self._seats.get(folder)
            if seat is None:
                seat = self._seats[folder] = _Seat()
            self._seats.move_to_end(folder)
            seat.users += 1
        try:
            if not seat.lock.acquire(timeout=_SEAT_SECONDS):
                raise Refused(
                    "timeout", f"this run has been read by others for {_SEAT_SECONDS:g} s", "Ask again later."
                )
            try:
                if seat.book is None:
                    seat.book = Book(folder)
                yield seat.book
            finally:
                seat.lock.release()
        finally:
            with self._lock:
                seat.users -= 1
                if seat.book is None and not seat.users:
                    self._seats.pop(folder, None)
                self._shrink()

    def forget(self, folder: str) -> None:
        """Close an unused book; its folder is gone."""
        with self._lock:
            seat = self._seats.get(folder)
            if seat is not None and not seat.users:
                del self._seats[folder]

    def _shrink(self) -> None:
        while len(self._seats) > self._most:
            idle = next((folder for folder, seat in self._seats.items() if not seat.users), None)
            if idle is None:
                return
            del self._seats[idle]


_LOOK_SECONDS, _LOOK_SELDOM_SECONDS = 10.0, 60.0
"""How old the copy of a run of a store may be while somebody looks at it: a live one, and one that has ended."""
_looked: dict[str, float] = {}


def look_again(folder: str, *, is_live: bool) -> None:
    """Bring a run of a store up to date, some seconds after the last time; costs nothing for other folders."""
    if not source.is_view(folder):
        return
    wait = _LOOK_SECONDS if is_live else _LOOK_SELDOM_SECONDS
    if time.monotonic() - _looked.get(folder, -wait) >= wait:
        _looked[folder] = time.monotonic()
        with suppress(RollbookError):  # what is in the cache is shown; the list of runs says that the store is away
            source.freshen(folder)


def stamp_of(folder: str) -> Stamp:
    """A stamp that changes when a run has new data. It takes a few stat calls and reads nothing.

    A mapped store raises no file event: while a run is written, its keeper's heartbeat shows new rows. A run whose
    writer may live and whose keeper was not heard of counts as new each second.
    """
    data = os.path.join(folder, "data")
    page, heart = _time_of(os.path.join(folder, "run.json")), _time_of(os.path.join(data, "keeper", "heartbeat"))
    journal: list[tuple[str, int, int, bool]] = []
    tables: list[object] = []
    try:
        with os.scandir(data) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.name == "journal":
                    journal = _journal(entry.path)
                elif entry.name != "keeper" and entry.is_dir():
                    tables.append((entry.name, entry.stat().st_mtime_ns))
    except OSError:
        pass
    unheard = bool(journal) and (heart is None or time.time_ns() - heart > 3_000_000_000)
    writing = unheard and any(
        not closed and not _is_dead(os.path.join(data, "journal", w)) for w, _, _, closed in journal
    )
    return (page, heart, tuple(journal), tuple(tables), int(time.time()) if writing else 0)


_DEAD: set[str] = set()
"""Writers, by folder, whose process has gone; it does not come back."""


def _is_dead(writer: str) -> bool:
    if writer not in _DEAD and is_alive(files.read_json(os.path.join(writer, "writer.json"))) is False:
        _DEAD.add(writer)
    return writer in _DEAD


def _journal(path: str) -> list[tuple[str, int, int, bool]]:
    """(writer, sizes of its files, whether it closed) of each writer."""
    growth: list[tuple[str, int, int, bool]] = []
    try:
        writers = sorted(os.listdir(path))
    except OSError:
        return growth
    for writer in writers:
        total, names, closed = 0, 0, False
        try:
            with os.scandir(os.path.join(path, writer)) as entries:
                for entry in entries:
                    closed |= entry.name == "closed.json"
                    total += entry.stat().st_size
                    names += 1
        except OSError:
            continue
        growth.append((writer, total, names, closed))
    return growth


def _time_of(path: str) -> int | None:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return None
