"""What questions about one run read from: its files, or what a server keeps of them in memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, TypeVar

import pyarrow as pa

from rollbook.book.series import ROWS_A_POINT, Series
from rollbook.book.table_protocols import ReadRun
from rollbook.schema.manifest import Attempts

T = TypeVar("T")

OVERVIEW = 512
"""Points of a curve that is only needed to locate rows."""


class Queries(Protocol):
    """Some tables of a run, which answer in SQL.

    Attributes:
      columns: of each table; in_files: those that are read from files, if they are large; empty: the columns of each
        without any value, where that is known.
      keeps: whether `keep` computes an answer once while nothing in it changes.
      streams: whether many rows are of the journal, which take long to decode.
    """

    columns: dict[str, list[str]]
    in_files: list[str]
    empty: Mapping[str, Collection[str]]
    keeps: bool
    streams: bool

    def view(self, name: str, query: str) -> None:
        """Create a view from one of our own queries."""

    def keep(self, name: str, query: str, of: Sequence[str], *, make: bool = True) -> None:
        """The same; a source that keeps answers computes this one once while nothing in it changes.

        Args:
          of: what the query reads: tables, and other text that it depends on.
          make: whether the answer is kept from now on; if not, it is only used if it is there.
        """

    def hold(self, name: str, query: str, of: Sequence[str]) -> None:
        """Create a view of a small answer, which is computed once for all questions that are asked together; see
        `keep`."""

    def only(self, name: str, table: str, condition: str) -> None:
        """Create a view of the rows of a table that meet a condition; blocks without them are not read."""

    def table(self, query: str) -> pa.Table:
        """The answer to one SELECT.

        Raises:
          BadInput: it is no SELECT, or DuckDB does not understand it.
        """


def kept(db: Queries, query: str, of: Sequence[str]) -> pa.Table:
    """The answer to one of our own queries, which a source that keeps answers computes once; `of` as in `keep`."""
    if not db.keeps:  # a view would only be understood twice
        return db.table(query)
    db.keep("kept", query, of)
    return db.table("select * from kept")


class Source(Protocol):
    """One run. Speed is a property of the source; the numbers are the same from each.

    Attributes:
      folder: of the run; whole_rows: larger tables are queried, not read whole.
    """

    folder: str
    whole_rows: int

    def book(self) -> AbstractContextManager[ReadRun]:
        """The book, for the duration of a `with` block."""

    def newest(self) -> Mapping[str, Mapping[str, int]]:
        """Each key, with the clocks of its newest row."""

    def rows(self, table: str) -> int:
        """About how many rows a table has."""

    def table(self, name: str, attempts: Attempts = "effective") -> pa.Table:
        """A whole table. For tables of thousands of rows, not of millions."""

    def asked(
        self,
        names: Sequence[str],
        work: Callable[[Queries], T],
        attempts: Attempts = "effective",
        *,
        frugal: bool = False,
    ) -> T:
        """The result of `work` on some tables; it may be called again if their files move meanwhile.

        Args:
          frugal: in little memory, for answers that are made of all rows.
        """

    def curve(self, key: str, x: str) -> Series | None:
        """A key along an axis, as few points; None if the run does not have it."""


class Files:
    """The files of a run, read at every question. See `Source`."""

    whole_rows = 2_000

    def __init__(self, book: ReadRun) -> None:
        self._book, self.folder = book, str(book.path)

    @contextmanager
    def book(self) -> Iterator[ReadRun]:
        """See `Source.book`."""
        yield self._book

    def newest(self) -> Mapping[str, Mapping[str, int]]:
        """See `Source.newest`."""
        return {key: clocks for key, (_value, clocks, _time) in self._book.latest().items()}

    def rows(self, table: str) -> int:
        """See `Source.rows`."""
        return self._book.row_count(table)

    def table(self, name: str, attempts: Attempts = "effective") -> pa.Table:
        """See `Source.table`."""
        return self._book.table(name, attempts)

    def asked(
        self,
        names: Sequence[str],
        work: Callable[[Queries], T],
        attempts: Attempts = "effective",
        *,
        frugal: bool = False,
    ) -> T:
        """See `Source.asked`."""
        return self._book.asked(names, work, attempts, frugal=frugal)

    def curve(self, key: str, x: str) -> Series | None:
        """See `Source.curve`."""
        shift = float(self._book.info.created or 0.0) if x == "relative" else 0.0
        axis = "time" if x == "relative" else x
        series = self._book.batch([key], x=axis, points=OVERVIEW, raw=ROWS_A_POINT * OVERVIEW).get(key)
        return series if series is None or not shift else shifted(series, shift)


def shifted(series: Series, shift: float) -> Series:
    """A series with an earlier zero of its axis."""
    return Series(
        series.x - shift, series.mean, series.min, series.max, series.count, series.axis, series.non_finite, series.bad
    )
