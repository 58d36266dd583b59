"""What the server keeps of one run, as a source of questions about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TypeVar

import pyarrow as pa

from rollbook.book import Book, Series
from rollbook.book.questions import OVERVIEW, Files, Queries
from rollbook.runs.questions import SeriesQuestion
from rollbook.schema.manifest import Attempts
from rollbook.server.curves.series import read_series
from rollbook.server.shared.catalogue import RunRow
from rollbook.server.shared.rows import contents, table_of
from rollbook.server.shared.sql import with_book, with_tables
from rollbook.server.shared.state import ServerContext

T = TypeVar("T")


class KeptRun:
    """A run of a server; see `book.questions.Source`. SQL is answered by another process."""

    def __init__(self, context: ServerContext, row: RunRow) -> None:
        self._context, self._row = context, row
        self.folder, self.whole_rows = row.folder, context.limits.whole_rows

    def book(self) -> AbstractContextManager[Book]:
        """See `Source.book`."""
        return self._context.book(self._row)

    def newest(self) -> Mapping[str, Mapping[str, int]]:
        """See `Source.newest`; kept until the run changes."""
        return self._context.remembered(
            "newest",
            self._row,
            lambda book: {key: clocks for key, (_value, clocks, _time) in book.latest().items()},
            lambda known: 100 * len(known) + 1_000,
        )

    def rows(self, table: str) -> int:
        """See `Source.rows`."""
        return contents(self._context, self._row).tables.get(table, 0)

    def table(self, name: str, attempts: Attempts = "effective") -> pa.Table:
        """See `Source.table`; kept until the run changes."""
        return table_of(self._context, self._row, name, attempts)

    def asked(
        self,
        names: Sequence[str],
        work: Callable[[Queries], T],
        attempts: Attempts = "effective",
        *,
        frugal: bool = False,
    ) -> T:
        """See `Source.asked`."""
        return with_tables(self._context, self._row, names, attempts, work)

    def curve(self, key: str, x: str) -> Series | None:
        """See `Source.curve`."""
        found = read_series(self._context, self._row, [key], SeriesQuestion(keys=key, x=x, points=OVERVIEW)).found.get(
            key
        )
        return None if found is None else found.series


class ApartFiles(Files):
    """The files of a run, with SQL answered by another process of bounded time and memory."""

    def __init__(self, book: Book) -> None:
        super().__init__(book)
        self._apart = book

    def asked(
        self,
        names: Sequence[str],
        work: Callable[[Queries], T],
        attempts: Attempts = "effective",
        *,
        frugal: bool = False,
    ) -> T:
        """See `Source.asked`."""
        return with_book(self._apart, names, work, attempts)
