"""A window of a table: rows that match a condition and a search, ordered, with offset and limit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rollbook.book.questions.asked import Window
from rollbook.book.questions.positions import as_written
from rollbook.book.questions.source import Queries
from rollbook.errors import BadInput, did_you_mean
from rollbook.schema.expressions import condition, literal, order, quoted
from rollbook.values.arrow import take_table

_MOST_WORDS = 12
_FEW_ROWS = 1_000
"""For a window of at most this many rows, the rows are found first by few columns; then only they are read whole."""


class Page(NamedTuple):
    """Rows of a table.

    Attributes:
      table: the rows of the window.
      total: number of rows of the table; matched: of matching rows. Without `counted` both are 0.
    """

    table: pa.Table
    total: int = 0
    matched: int = 0


class Shown(NamedTuple):
    """The rows that a window selects from.

    Attributes:
      table: the table whose rows count as `total`.
      source: a view or subquery of the table; columns: its columns.
      also: further conditions, besides those of the question.
      is_same: whether the source has every row of the table.
      key: a column of short texts that identifies a row, to find few rows by before they are read; "" if unknown.
    """

    table: str
    source: str
    columns: Sequence[str]
    also: Sequence[str] = ()
    is_same: bool = True
    key: str = ""


def page_of(db: Queries, window: Window, shown: Shown, *, counted: bool = False) -> Page:
    """A window of a table.

    Args:
      counted: whether to count the rows, too.
    Raises:
      BadInput: a condition or order that cannot be understood, an unknown column, or too many words.
    """
    words = words_of(window.search)
    texts = texts_of(db.table(f"select * from {shown.source} limit 0")) if words else []
    conditions = [*shown.also, *containing(words, texts)]
    if window.where is not None:
        given = condition(window.where, of_rows=True)
        check_columns(given.columns, shown.columns)
        conditions.append(given.text)
    where = f" where {' and '.join(conditions)}" if conditions else ""
    total = _count(db, quoted(shown.table)) if counted else 0
    matched = _count(db, f"{shown.source}{where}") if counted and (where or not shown.is_same) else total
    return Page(_rows(db, window, shown, where, ordered(window.order_by, shown.columns)), total, matched)


def _rows(db: Queries, window: Window, shown: Shown, where: str, in_order: str) -> pa.Table:
    """The rows of a window. Rows are wide, so a few are first found by the columns that decide, then read."""
    source, limit = shown.source, window.limit
    part = (
        f"{'' if limit is None else f' limit {int(limit)}'}{f' offset {int(window.offset)}' if window.offset else ''}"
    )
    which = [name for name in _IDENTITY if name in shown.columns]
    is_few = limit is not None and 0 < limit <= _FEW_ROWS and not window.search  # a search reads the texts anyhow
    if is_few and shown.key:
        names = db.table(f"select {shown.key} from {source}{where}{in_order}{part}")[shown.key].to_pylist()
        these = f"{shown.key} in ({', '.join(literal(str(name)) for name in names) or 'null'})"
        table = db.table(f"select * from {source}{where}{' and ' if where else ' where '}{these}{in_order}")
        if table.num_rows == len(names):
            return table
    if is_few and shown.is_same and shown.table in db.in_files and "seq" in which:
        ids = _ids(db.table(f"select {', '.join(map(quoted, which))} from {source}{where}{in_order}{part}"), which)
        among = [_within(name, [row[which.index(name)] for row in ids]) for name in ("seq", "index") if name in which]
        table = db.table(f"select * from {source} where {' and '.join(filter(None, among))}")
        at = {row: index for index, row in enumerate(_ids(table, which))}
        if all(row in at for row in ids):
            return take_table(table, np.array([at[row] for row in ids], np.int64))
    return db.table(f"select * from {source}{where}{in_order}{part}")


_IDENTITY = ("writer", "lane", "seq", "index")


def _within(name: str, cells: Sequence[Any]) -> str:
    """The condition that a whole number is among these; "" if one of them is missing."""
    return "" if None in cells else f"{quoted(name)} in ({', '.join(map(str, sorted(set(cells)))) or 'null'})"


def _ids(table: pa.Table, names: Sequence[str]) -> list[tuple[Any, ...]]:
    return list(zip(*(table[name].to_pylist() for name in names), strict=True))


def ordered(order_by: str | None, columns: Sequence[str]) -> str:
    """ORDER BY the requested columns, then the order of writing. The order has no ties: otherwise a row could be in
    two windows of one table, or in none.

    Raises:
      BadInput: it is no order, or has an unknown column.
    """
    ties = as_written(columns)
    if order_by is None:
        return f" order by {', '.join(ties)}" if ties else ""
    given = order(order_by)
    check_columns(given.columns, columns)
    return f" order by {', '.join([given.text, *ties])}"


def check_columns(named: Iterable[Sequence[str]], columns: Sequence[str]) -> None:
    """Raises: BadInput: one of them does not exist."""
    known = {name.casefold() for name in columns}
    for name, *inside in named:
        if name.casefold() not in known and not (inside and inside[0].casefold() in known):
            raise BadInput(f"there is no column {name!r:.80}.", did_you_mean(name, list(columns)))


def words_of(search: str | None) -> list[str]:
    """The words of a search, in small letters.

    Raises:
      BadInput: there are too many.
    """
    words = (search or "").lower().split()
    if len(words) > _MOST_WORDS:
        raise BadInput(f"search={search!r:.80}: {len(words)} words to search for; at most {_MOST_WORDS}")
    return words


def containing(words: Sequence[str], texts: Sequence[str]) -> list[str]:
    """Conditions that each word occurs in some of these columns."""
    if not words:
        return []
    if not texts:
        return ["false"]
    whole = "lower(concat_ws(' ', " + ", ".join(map(quoted, texts)) + "))"
    return [f"contains({whole}, {literal(word)})" for word in words]


def texts_of(empty: pa.Table) -> list[str]:
    """The columns that a search looks into: the texts of the table, except those that only identify rows."""
    return [each.name for each in empty.schema if _is_text(each.type) and each.name not in _APART]


def _is_text(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


_APART = ("scope", "at", "attempt", "writer", "lane", "seq", "index")


def _count(db: Queries, source: str) -> int:
    return int(db.table(f"select count(*) as n from {source}")["n"][0].as_py())
