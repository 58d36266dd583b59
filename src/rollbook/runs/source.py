"""What questions about runs read from: the files, or what a server keeps of them in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from rollbook.errors import RollbookError
from rollbook.system.guard import tolerating
from rollbook.values.array_types import NDArray

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.book import Book, Series

T = TypeVar("T")
Row: TypeAlias = Mapping[str, Any]
"""A run as `RunSet.rows` lists it."""


class KeyRows(NamedTuple):
    """A key of a run: every row of it, in order of the axis; NaN and infinite rows included.

    Attributes:
      axis: its name.
      x, y: [rows].
      is_whole: whether these are the rows as they were logged, and not means of intervals of a long run.
    """

    axis: str
    x: NDArray
    y: NDArray
    is_whole: bool = True


class Source(Protocol):
    """Some runs, and their rows. Speed is a property of the source; the numbers are the same from each.

    Attributes:
      rows: the runs, one mapping each.
      root: the folder that holds them, where plans are kept; "" if there is none.
    """

    @property
    def rows(self) -> Sequence[Row]:
        """See above."""

    @property
    def root(self) -> str:
        """See above."""

    def each(self, key: str, x: str | None, take: Callable[[KeyRows], T]) -> dict[str, T]:
        """Apply `take` to a key of every run, by path; without the runs that have no row of it. Rows are freed at once.

        Args:
          key: a key, or a canonical name.
          x: the axis; None: each run's own.
          take: called in any thread.
        Raises:
          UnknownKey: none of the runs has it.
        """

    def key_rows(self, key: str, x: str | None) -> dict[str, KeyRows]:
        """A key of every run along one axis, by path; without the runs that have no row of it there.

        A source may have means of intervals of long runs instead of their rows; see `KeyRows.is_whole`.

        Args:
          key: a key, or a canonical name.
          x: the axis; None: that of the first run that has the key.
        Raises:
          UnknownKey: none of the runs has it.
        """

    def keys(self) -> dict[str, tuple[Sequence[str], Mapping[str, str]]]:
        """The keys of each run, and key -> its canonical name, by path; without runs that cannot be read."""

    def facts(self, name: str, take: Callable[[Book], T], rows: Sequence[Row] | None = None) -> dict[str, T]:
        """What `take` makes of the book of each run, by path; without runs that cannot be read.

        Args:
          rows: some of the runs; None: all.
          name: of these facts; a source may keep them under it until the run changes.
          take: called in any thread.
        """


_MOST_OPEN = 2_000
"""Books that stay open during a question."""


class Files:
    """The files of the runs, read at every question, and opened once for it. See `Source`."""

    def __init__(self, rows: Sequence[Row], root: str) -> None:
        self.rows, self.root = rows, root
        self._books: dict[str, Book] = {}

    def _book(self, row: Row) -> Book:
        """The book of a run. Called in any thread, for one run in one thread at a time."""
        from rollbook.book import Book

        path = str(row["path"])
        book = self._books.get(path) or Book(path)
        if len(self._books) < _MOST_OPEN:
            self._books[path] = book
        return book

    def each(self, key: str, x: str | None, take: Callable[[KeyRows], T]) -> dict[str, T]:
        """See `Source.each`."""
        from rollbook.runs.results import taken_of

        taken = taken_of(self.rows, [key], lambda series: take(_as_key_rows(series)), x=x, opened=self._book)
        return {path: of_key[key] for path, of_key in taken.items() if key in of_key}

    def key_rows(self, key: str, x: str | None) -> dict[str, KeyRows]:
        """See `Source.key_rows`."""
        from rollbook.runs.results import taken_of

        read = self.each(key, x, lambda rows: rows)
        axis = x or next((rows.axis for rows in read.values() if len(rows.x)), None)
        for row in self.rows:  # a run with another axis of its own is read along that of the first run
            path = str(row["path"])
            if path in read and x is None and read[path].axis != axis:
                read[path] = taken_of([row], [key], _as_key_rows, x=axis, opened=self._book)[path][key]
        return {path: rows for path, rows in read.items() if len(rows.x)}

    def facts(self, name: str, take: Callable[[Book], T], rows: Sequence[Row] | None = None) -> dict[str, T]:
        """See `Source.facts`."""
        from rollbook.runs.results import for_each_run

        def one_run(row: Row) -> list[T]:
            with tolerating(RollbookError, OSError):
                return [take(self._book(row))]
            return []

        rows = self.rows if rows is None else rows
        made = for_each_run(rows, one_run)
        return {str(row["path"]): each for row, some in zip(rows, made, strict=True) for each in some}

    def keys(self) -> dict[str, tuple[Sequence[str], Mapping[str, str]]]:
        """See `Source.keys`."""
        return self.facts("keys", lambda book: (book.keys(), {key: name for name, key in book.canonical().items()}))


def _as_key_rows(series: Series) -> KeyRows:
    return KeyRows(series.axis, series.x, series.mean)
