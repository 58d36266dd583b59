"""A window of a table: the rows that fit a condition and a search, in an order, from one place on so many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import pyarrow as pa

from rollbook.book.questions.places import as_written
from rollbook.book.questions.source import Queries
from rollbook.errors import BadInput, did_you_mean
from rollbook.schema.expressions import condition, literal, quoted

_MOST_WORDS, _MOST_SORTED = 12, 5


class SortedBy(Protocol):
    """One column to sort by."""

    @property
    def column(self) -> str: ...  # noqa: D102
    @property
    def descending(self) -> bool: ...  # noqa: D102


class Window(NamedTuple):
    """Which rows of a table.

    Attributes:
      where: a condition in SQL; search: words that must all occur in the texts of the row.
      sort: columns; without any, the order of the table.
      offset: place of the first row among those that fit; limit: how many.
    """

    where: str | None = None
    search: str | None = None
    sort: Sequence[SortedBy] = ()
    offset: int = 0
    limit: int = 100


class Page(NamedTuple):
    """Rows of a table.

    Attributes:
      total: all rows of the table; matched: those that fit; table: the window of these.
    """

    total: int
    matched: int
    table: pa.Table


def page_of(
    db: Queries, window: Window, columns: Sequence[str], *, table: str, source: str = "", texts: Sequence[str] = (),
    also: Sequence[str] = (), order: str = "", is_smaller: bool = False,
) -> Page:  # fmt: skip
    """A window of a table.

    Args:
      columns: of the source. table: whose rows are all; source: what is asked, a view or a subquery; "": the table.
      texts: the columns that are searched. also: further conditions of our own. order: ORDER BY where no column is
        asked for. is_smaller: whether the source has fewer rows than the table.
    Raises:
      BadInput: a condition or column that cannot be understood, or too many words.
    """
    source = source or quoted(table)
    conditions = [*also, *containing(words_of(window.search), texts)]
    if window.where and window.where.strip():
        conditions.append(condition(window.where).text)
    where = f" where {' and '.join(conditions)}" if conditions else ""
    total = _count(db, quoted(table))
    matched = _count(db, f"{source}{where}") if where or is_smaller else total
    ordered = _without_ties(order_by(window.sort, columns) or order, columns)
    rows = db.table(f"select * from {source}{where}{ordered} limit {window.limit} offset {window.offset}")
    return Page(total, matched, rows)


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
    """The columns of a table that a search looks into: its texts, but for those that only tell rows apart."""
    return [each.name for each in empty.schema if _is_text(each.type) and each.name not in _APART]


def _is_text(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


_APART = ("scope", "at", "attempt", "writer", "lane", "seq", "index")


def order_by(sort: Sequence[SortedBy], columns: Sequence[str]) -> str:
    """ORDER BY some existing columns; "" without any.

    Raises:
      BadInput: an unknown column.
    """
    for entry in sort:
        if entry.column not in columns:
            raise BadInput(
                f"there is no column {entry.column!r:.80} to sort by.", did_you_mean(entry.column, list(columns))
            )
    parts = [f"{quoted(entry.column)} {'desc' if entry.descending else 'asc'} nulls last" for entry in sort]
    return f" order by {', '.join(parts[:_MOST_SORTED])}" if parts else ""


def _without_ties(order: str, columns: Sequence[str]) -> str:
    """An order that leaves no choice: two windows of one table would else share a row, or lose one between them."""
    ties = ", ".join(as_written(columns))
    return f"{order}, {ties}" if order and ties else order or (f" order by {ties}" if ties else "")


def _count(db: Queries, source: str) -> int:
    return int(db.table(f"select count(*) as n from {source}")["n"][0].as_py())
