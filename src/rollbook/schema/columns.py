"""Rows as columns, for health rules.

    columns.keys()                         the keys of `metrics` with new numbers
    column = columns.column("train/loss")
    max(column.values)                     an array('d'), oldest first; numpy.frombuffer(column.values) costs no copy
    column.clock("env_step")               an array('q'), `schema.clocks.UNKNOWN` if the row did not know it
    column.where(-1)                       the row of a value: clocks, time and identity

`columns_of(rows)` makes columns from rows, for tests.
A column is created on request, so rules that use few keys cost little, no matter how many are logged. Standard library
only: the keeper never loads numpy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from itertools import pairwise
from math import isfinite
from operator import sub

from rollbook.schema.clocks import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from typing import Any, Protocol, TypeAlias

    class Row(Protocol):
        """The needed part of a `protocols.Row`."""

        @property
        def time(self) -> float: ...
        @property
        def clocks(self) -> Mapping[str, int]: ...
        @property
        def values(self) -> Mapping[str, object]: ...
        @property
        def writer(self) -> str: ...
        @property
        def lane(self) -> int: ...
        @property
        def scope(self) -> str: ...
        @property
        def seq(self) -> int: ...
        @property
        def mark(self) -> str: ...
        @property
        def table(self) -> str: ...
        @property
        def attempt(self) -> int: ...

    Part: TypeAlias = "tuple[Piece, array[float], Sequence[int]]"
    """Some rows; the values of a key in them; the row of each value."""

    Where: TypeAlias = dict[str, Any]
    """Identifies a row, as plain JSON data: `clocks` (the known ones), `time` (unix seconds), `row` (writer, lane and
    seq). Used as evidence of an alert."""

__all__ = ["Column", "Columns", "Piece", "RowsPiece", "columns_of"]

_LARGEST = 1.7976931348623157e308


class Piece(ABC):
    """Rows of one table and one attempt in order of time. The reader of the journal creates it; rules see `Columns`.

    Attributes:
      table: the table of the rows.
      attempt: the number of the attempt that logged them.
      keys: keys with a number in some row.
      n: number of rows.
    """

    table = "metrics"
    attempt = 1
    keys: Collection[str] = ()
    n = 0

    @abstractmethod
    def part(self, key: str) -> Part:
        """The numbers of a key.

        Args:
          key: one of `keys`.
        """

    @abstractmethod
    def time(self, row: int) -> int:
        """When a row was logged, in unix nanoseconds.

        Args:
          row: its number, from 0.
        """

    @abstractmethod
    def times(self, step: int = 1) -> list[int]:
        """The times of all rows, or of every n-th row.

        Args:
          step: every how many rows; 1: all.
        """

    @abstractmethod
    def clocks(self, name: str) -> array[int]:
        """The reading of a clock in each row, UNKNOWN if it has none.

        Args:
          name: the clock's name.
        """

    @abstractmethod
    def where(self, row: int) -> Where:
        """The identity of a row.

        Args:
          row: its number, from 0.
        """

    @abstractmethod
    def scope(self, row: int) -> str:
        """The scope that a row was logged through, "" for the run itself.

        Args:
          row: its number, from 0.
        """

    @abstractmethod
    def values(self, row: int) -> Mapping[str, object]:
        """Everything that a row has, also texts.

        Args:
          row: its number, from 0.
        """

    def non_finite(self) -> Collection[str]:
        """The keys with a NaN or an infinity among their values."""
        return [key for key in self.keys if not all(map(isfinite, self.part(key)[1]))]


class RowsPiece(Piece):
    """A piece made from rows of one table and one attempt.

    Args:
      table: their table.
      rows: in order of time.
    """

    def __init__(self, table: str, rows: Sequence[Row]) -> None:
        self.table, self.n, self._rows = table, len(rows), rows
        self.attempt = rows[0].attempt if rows else 1
        self._numbers: dict[str, tuple[array[float], array[int]]] = {}
        for i, row in enumerate(rows):
            for key, value in row.values.items():
                if isinstance(value, (float, int)):
                    numbers = self._numbers.get(key)
                    if numbers is None:
                        numbers = self._numbers[key] = (array("d"), array("q"))
                    try:
                        numbers[0].append(value)
                    except OverflowError:  # an integer beyond the float range does not become an infinity
                        numbers[0].append(_LARGEST if value > 0 else -_LARGEST)
                    numbers[1].append(i)
        self.keys = self._numbers

    def part(self, key: str) -> Part:
        """See `Piece`."""
        return (self, *self._numbers[key])

    def time(self, row: int) -> int:
        """See `Piece`."""
        return int(self._rows[row].time * 1e9)

    def times(self, step: int = 1) -> list[int]:
        """See `Piece`."""
        return [int(row.time * 1e9) for row in self._rows[::step]]

    def clocks(self, name: str) -> array[int]:
        """See `Piece`."""
        return array("q", [row.clocks.get(name, UNKNOWN) for row in self._rows])

    def values(self, row: int) -> Mapping[str, object]:
        """See `Piece`."""
        return self._rows[row].values

    def where(self, row: int) -> Where:
        """See `Piece`."""
        it = self._rows[row]
        identity = {"writer": it.writer, "lane": it.lane, "seq": it.seq}
        return {"clocks": dict(it.clocks), "time": it.time, "row": identity}

    def scope(self, row: int) -> str:
        """See `Piece`."""
        return self._rows[row].scope


class Column:
    """The new numbers of one key, oldest first, from all its streams and writers. Made by `Columns.column`.

    Attributes:
      key: its full name.
      values: array('d'). Integers and booleans are floats here. Do not change it.
    """

    __slots__ = ("_clocks", "_order", "_parts", "key", "values")

    def __init__(self, key: str, parts: list[Part]) -> None:
        self.key, self._parts = key, parts
        self._clocks: dict[str, array[int]] = {}
        self._order: list[tuple[int, int]] | None = None  # (part, index in it) of each value, if parts overlap
        if len(parts) == 1:
            self.values = parts[0][1]
            return
        spans = [(piece.time(rows[0]), piece.time(rows[-1])) for piece, _values, rows in parts]
        by_start = sorted(range(len(parts)), key=spans.__getitem__)
        if all(spans[a][1] <= spans[b][0] for a, b in pairwise(by_start)):
            self._parts = [parts[i] for i in by_start]
            self.values = array("d")
            for _piece, values, _rows in self._parts:
                self.values += values
            return
        keyed = []
        for number, (piece, _values, rows) in enumerate(parts):
            times = piece.times()
            keyed += [(times[row], number, index) for index, row in enumerate(rows)]
        self._order = [(number, index) for _time, number, index in sorted(keyed)]
        self.values = array("d", [parts[number][1][index] for number, index in self._order])

    def __len__(self) -> int:
        return len(self.values)

    def where(self, index: int) -> Where:
        """The clocks, time (unix seconds) and identity of a value's row, as plain JSON data.

        Args:
          index: in `values`; negative ones count from the end.
        """
        piece, row = self._row(index)
        return piece.where(row)

    def times(self) -> array[float]:
        """When each value was logged, in unix seconds."""
        return array("d", [time / 1e9 for time in self._of_rows([piece.times() for piece, _, _ in self._parts])])

    def clock(self, name: str) -> array[int]:
        """The reading of a clock at each value; `clocks.UNKNOWN` if unknown. Do not change it.

        Args:
          name: the clock's name.
        """
        readings = self._clocks.get(name)
        if readings is None:
            cells = [piece.clocks(name) for piece, _, _ in self._parts]
            is_whole = len(cells) == 1 and self._order is None and len(cells[0]) == len(self.values)
            readings = self._clocks[name] = cells[0] if is_whole else array("q", self._of_rows(cells))
        return readings

    def by_attempt(self) -> list[tuple[int, Column]]:
        """The values in stretches that one attempt logged, in order of time: (its number, its values)."""
        attempts = [piece.attempt for piece, _, _ in self._parts]
        if len(set(attempts)) == 1:
            return [(attempts[0], self)]
        if self._order is not None:
            of_values = [attempts[number] for number, _index in self._order]
        else:
            of_values = [attempts[number] for number, (_, values, _) in enumerate(self._parts) for _ in values]
        ends = [i for i in range(1, len(of_values)) if of_values[i] != of_values[i - 1]]
        return [(of_values[first], self.between(first, end)) for first, end in pairwise([0, *ends, len(of_values)])]

    def between(self, first: int, end: int) -> Column:
        """The values in a range of indices, as a column of their own.

        Args:
          first, end: indices in `values`, the second one not included.
        """
        parts: list[Part] = []
        for number, (piece, values, rows) in enumerate(self._parts):
            if self._order is not None:
                mine = [index for part, index in self._order[first:end] if part == number]
                low, high = (mine[0], mine[-1] + 1) if mine else (0, 0)
            else:
                low, high = max(0, first), max(0, min(end, len(values)))
                first, end = first - len(values), end - len(values)
            if low < high:
                parts.append((piece, values[low:high], rows[low:high]))
        return Column(self.key, parts) if parts else Column(self.key, [(self._parts[0][0], array("d"), ())])

    def _of_rows(self, cells: Sequence[Sequence[int]]) -> list[int]:
        if self._order is not None:
            return [cells[number][self._parts[number][2][index]] for number, index in self._order]
        return [some[row] for some, (_, _, rows) in zip(cells, self._parts, strict=True) for row in rows]

    def _row(self, index: int) -> tuple[Piece, int]:
        index = range(len(self.values))[index]
        if self._order is not None:
            number, index = self._order[index]
            piece, _values, rows = self._parts[number]
            return piece, rows[index]
        for piece, values, rows in self._parts:
            if index < len(values):
                return piece, rows[index]
            index -= len(values)
        raise IndexError(index)


class Columns:
    """The input of a rule: the rows of its tables that are new to it, by key. Its length is the number of rows.

    Rows without numbers (texts, images) are counted and have no column.

    Args:
      pieces: the rows; those without any are left out.
    """

    def __init__(self, pieces: Sequence[Piece] = ()) -> None:
        self._pieces = [piece for piece in pieces if piece.n]
        self._n = sum(piece.n for piece in self._pieces)
        self._keys: dict[str, list[str]] = {}
        self._made: dict[tuple[str, str], Column] = {}
        self._odd: dict[str, frozenset[str]] = {}

    def __len__(self) -> int:
        return self._n

    def of(self, tables: Collection[str]) -> Columns:
        """The columns of some tables.

        Args:
          tables: their names.
        """
        if all(piece.table in tables for piece in self._pieces):
            return self
        return Columns([piece for piece in self._pieces if piece.table in tables])

    def keys(self, table: str = "metrics") -> Sequence[str]:
        """The keys with numbers, each once.

        Args:
          table: its name.
        """
        keys = self._keys.get(table)
        if keys is None:
            own = [piece.keys for piece in self._pieces if piece.table == table]
            keys = self._keys[table] = list(dict.fromkeys(key for some in own for key in some))
        return keys

    def column(self, key: str, table: str = "metrics") -> Column:
        """The numbers of one key.

        Args:
          key: its full name.
          table: its name.
        Raises:
          KeyError: it has no numbers.
        """
        column = self._made.get((table, key))
        if column is None:
            own = [piece.part(key) for piece in self._pieces if piece.table == table and key in piece.keys]
            if not own:
                raise KeyError(f"no new number of {key!r} in {table}; there are {', '.join(self.keys(table))}")
            column = self._made[(table, key)] = Column(key, own)
        return column

    def rows(self, table: str) -> Iterable[tuple[Mapping[str, object], Where]]:
        """The rows of a table one by one, in order of time: (everything they have, also texts; what identifies them).

        Costs far more than a column. Rows of `metrics` are not among them.

        Args:
          table: its name; not "metrics".
        """
        own = [piece for piece in self._pieces if piece.table == table]
        order = [(piece.time(row), number, row) for number, piece in enumerate(own) for row in range(piece.n)]
        if len(own) > 1:
            order.sort()
        for _time, number, row in order:
            yield own[number].values(row), own[number].where(row)

    def of_episodes(self, key: str) -> Column | None:
        """The numbers of a key of `episodes`, of training episodes that ended; None if there are none.

        Left out are evaluations (scope "test"), and episodes that the end of the run or a reset cut short: their return
        says how long they were allowed to last.

        Args:
          key: a column of `episodes`, such as "return".
        """
        parts: list[Part] = []
        for piece in self._pieces:
            if piece.table != "episodes" or key not in piece.keys:
                continue
            cut: set[int] = set()
            if "complete" in piece.keys:
                _, flags, at = piece.part("complete")
                cut = {row for flag, row in zip(flags, at, strict=True) if not flag}
            _, values, rows = piece.part(key)
            kept = [
                (value, row)
                for value, row in zip(values, rows, strict=True)
                if row not in cut and piece.scope(row) != "test"
            ]
            if kept:
                parts.append((piece, array("d", [value for value, _ in kept]), [row for _, row in kept]))
        return Column(key, parts) if parts else None

    def non_finite(self, table: str = "metrics") -> frozenset[str]:
        """The keys with a NaN or an infinity among their new values; much cheaper than checking all values.

        Args:
          table: its name.
        """
        odd = self._odd.get(table)
        if odd is None:
            own = [piece.non_finite() for piece in self._pieces if piece.table == table]
            odd = self._odd[table] = frozenset(key for some in own for key in some)
        return odd

    def longest_pause(self, since: float | None, over: float) -> float:
        """The longest time without a row, in seconds; 0.0 if it was not longer than the limit.

        Args:
          since: the time of the previous row (unix seconds).
          over: the limit, in seconds.
        """
        for step in (16, 1):  # rows in between can only make pauses shorter
            times = [] if since is None else [int(since * 1e9)]
            for piece in self._pieces:
                times += [*piece.times(step), piece.time(piece.n - 1)]
            times.sort()
            longest = max(map(sub, times[1:], times), default=0) / 1e9
            if longest <= over:
                return 0.0
        return longest

    def times(self) -> array[float]:
        """When each row was logged, in unix seconds, in order."""
        times: list[int] = []
        for piece in self._pieces:
            times += piece.times()
        times.sort()
        return array("d", [time / 1e9 for time in times])

    def last(self) -> Where:
        """Identifies the last row.

        Raises:
          ValueError: there is no row.
        """
        piece = max(self._pieces, key=lambda piece: piece.time(piece.n - 1))
        return piece.where(piece.n - 1)


def columns_of(rows: Iterable[Row]) -> Columns:
    """Rows as columns. Marks are left out.

    Args:
      rows: of any tables, in order of time.
    """
    some: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        if not row.mark:
            some.setdefault((row.table, row.attempt), []).append(row)
    return Columns([RowsPiece(table, own) for (table, _attempt), own in some.items()])
