"""SQL over the tables of one run, by DuckDB, without copying them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from rollbook._optional import need
from rollbook.errors import BadInput

__all__ = ["Database", "named_tables", "unique_samples"]


def named_tables(query: str, tables: Iterable[str]) -> list[str]:
    """The tables that a query may mean: those whose name stands in it as a word."""
    words = {word.lower() for word in re.findall(r"[A-Za-z_][A-Za-z0-9_]*", query)}
    return [table for table in tables if table.lower() in words]


def unique_samples(columns: Iterable[str]) -> str:
    """A subquery of `samples` with the newest row of each different item, and how often and since when it was seen."""
    known = set(columns)
    # Items that were logged with ids of the caller's have the digits of their content in a column of its own.
    item = "coalesce(content, sample_id)" if "content" in known else "sample_id"
    order = ", ".join(f'"{name}" desc' for name in ("batch", "time", "index") if name in known)
    first = 'min("batch") over items as first_seen, max("batch") over items as last_seen, min("time") over items'
    counted = f"count(*) over items as times_seen, {first} as first_time"
    place = f"row_number() over (partition by {item} order by {order}) as place"
    own = "* exclude (first_seen)" if "first_seen" in known else "*"
    rows = f"select {own}, {counted}, {place} from samples window items as (partition by {item})"
    return f"(select * exclude (place) from ({rows}) where place = 1) as unique_samples"


class Database:
    """An in-memory DuckDB with a view for each table that a query names.

    Relations stay good as long as this object does; a later query sees the tables anew.

    Args:
      read: gives a table by name.
    """

    def __init__(self, read: Callable[[str], pa.Table]) -> None:
        self._read = read
        self._connection: Any = None

    def sql(self, query: str, tables: Iterable[str]) -> Any:
        """The answer as a DuckDB relation: `.fetchall()`, `.df()`, `.pl()`, `.fetch_arrow_table()`.

        Raises:
          BadInput: DuckDB does not understand the query; its words follow.
        """
        duckdb = need("duckdb", extra="sql", why="sql()")
        if self._connection is None:
            self._connection = duckdb.connect()
        for name in named_tables(query, tables):
            self._connection.register(name, self._read(name))
        with _said_plainly(duckdb):
            return self._connection.sql(query)

    def arrow(self, query: str, tables: Iterable[str]) -> pa.Table:
        """The answer as an Arrow table."""
        relation = self.sql(query, tables)
        convert = getattr(relation, "to_arrow_table", None) or relation.fetch_arrow_table
        with _said_plainly(need("duckdb", extra="sql", why="sql()")):
            return convert()


@contextmanager
def _said_plainly(duckdb: Any) -> Iterator[None]:
    """DuckDB's complaints about a query as a mistake in the input."""
    try:
        yield
    except duckdb.Error as err:
        raise BadInput(
            f"the query cannot be answered: {str(err).strip()}\nA key with a slash, and a name that is a word of SQL, "
            'needs double quotes: "train/return"'
        ) from None
