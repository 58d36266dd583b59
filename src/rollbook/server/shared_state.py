"""Shared by all parts of the server: settings, the catalogue of runs, open books, and cached answers."""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from rollbook.book import Book
from rollbook.server.catalogue import Catalogue, RunRow
from rollbook.server.facts import FactsShelf
from rollbook.server.readers import Readers, stamp_of
from rollbook.server.refusals import Refused
from rollbook.server.settings import Settings

__all__ = ["Hall", "Shelf"]

Made = TypeVar("Made")


class Shelf:
    """A cache of finished answers by request; the least recently used go first. Any thread may use it.

    An answer belongs to a stamp of its source. A newer answer replaces it, so that no unusable answers pile up while
    runs are written.

    Args:
      most_bytes: how much is kept.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most, self._size = most_bytes, 0
        self._items: OrderedDict[object, tuple[object, int, object]] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """Bytes kept."""
        return self._size

    def get(self, key: object, stamp: object) -> Any:
        """The cached value of a key for that stamp; None if there is none."""
        with self._lock:
            item = self._items.get(key)
            if item is None or item[2] != stamp:
                return None
            self._items.move_to_end(key)
            return item[0]

    def put(self, key: object, stamp: object, value: object, size: int) -> None:
        """Keep a value of this many bytes, in place of one with an older stamp."""
        with self._lock:
            old = self._items.pop(key, None)
            self._size -= old[1] if old is not None else 0
            if size > self._most // 8:
                return
            self._size += size
            self._items[key] = (value, size, stamp)
            while self._size > self._most:
                _, (_, freed, _) = self._items.popitem(last=False)
                self._size -= freed


class Hall:
    """The server's shared state.

    Args:
      settings: how it was started.
    Attributes:
      identity: different for each server, so that a page notices a new one.
      asked_at: when the last request came (monotonic seconds).
      catalogue, readers, facts, shelf: the runs, the books, their newest values, the finished answers.
      group_rows: the rows behind curves and comparisons of groups (`group_rows.py`).
      reading_many: held while the rows of many runs are read, so that two requests do not read the same runs.
      listeners: called, in any thread, when requested numbers of the table have been read.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings, self.limits = settings, settings.limits
        self.identity = secrets.token_hex(6)
        self.asked_at = time.monotonic()
        self.catalogue = Catalogue(settings.roots)
        self.readers = Readers(self.limits.open_books)
        self.shelf, self.group_rows = Shelf(self.limits.cache_bytes), Shelf(self.limits.group_bytes)
        self.reading_many = threading.Lock()
        self.listeners: list[Callable[[], None]] = []
        self.facts = FactsShelf(self.readers, self._facts_came)

    def _facts_came(self) -> None:
        for listener in list(self.listeners):
            listener()

    @property
    def title(self) -> str:
        """A short name for the location of the runs."""
        if self.settings.title:
            return self.settings.title
        home = os.path.expanduser("~")
        words = [
            root.replace(home, "~", 1) if root.startswith(home + os.sep) else root for root in self.catalogue.roots
        ]
        return words[0] + (f" and {len(words) - 1} more" if len(words) > 1 else "")

    @property
    def only(self) -> str | None:
        """The run that the server was started for, if it was started for one."""
        roots = self.catalogue.roots
        if len(roots) != 1 or not os.path.isfile(os.path.join(roots[0], "run.json")):
            return None
        return next(iter(self.catalogue.snapshot(5.0).rows), None)

    def row(self, run: str) -> RunRow:
        """The run of that name in the API."""
        return self.catalogue.row(run)

    def rows(self, runs: Sequence[str]) -> list[RunRow]:
        """Several of them.

        Raises:
          Refused: more than one request may ask for, or an unknown one.
        """
        if len(runs) > self.limits.runs:
            raise Refused(
                "too_large", f"{len(runs):,} runs were asked for; at most {self.limits.runs:,} at once", "Choose fewer."
            )
        return [self.row(run) for run in dict.fromkeys(runs)]

    @contextmanager
    def book(self, row: RunRow) -> Iterator[Book]:
        """The book of a run, lent to this thread alone."""
        with self.readers.book(row.folder) as book:
            yield book

    def remembered(
        self, what: object, row: RunRow, make: Callable[[Book], Made], size: Callable[[Made], int] | int = 1_000
    ) -> Made:
        """The result of `make` for a run's book, kept until the run has new data."""
        key, stamp = (what, row.folder), stamp_of(row.folder)
        answer: Made | None = self.shelf.get(key, stamp)
        if answer is None:
            with self.book(row) as book:
                answer = make(book)
            self.shelf.put(key, stamp, answer, size(answer) if callable(size) else size)
        return answer
