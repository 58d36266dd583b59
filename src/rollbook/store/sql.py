"""SQL over the tables of one run, by DuckDB, without copying them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

from rollbook._optional import need

__all__ = ["Database", "named_tables"]


def named_tables(query: str, tables: Iterable[str]) -> list[str]:
    """The tables that a query may mean: those whose name stands in it as a word."""
    words = {word.lower() for word in re.findall(r"[A-Za-z_][A-Za-z0-9_]*", query)}
    return [table for table in tables if table.lower() in words]


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
        """The answer as a DuckDB relation: `.fetchall()`, `.df()`, `.pl()`, `.fetch_arrow_table()`."""
        if self._connection is None:
            self._connection = need("duckdb", extra="sql", why="sql()").connect()
        for name in named_tables(query, tables):
            self._connection.register(name, self._read(name))
        return self._connection.sql(query)

    def arrow(self, query: str, tables: Iterable[str]) -> pa.Table:
        """The answer as an Arrow table."""
        relation = self.sql(query, tables)
        convert = getattr(relation, "to_arrow_table", None) or relation.fetch_arrow_table
        return convert()
