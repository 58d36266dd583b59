"""DuckDB's SQL over every table of many runs, with run, seed and configuration in every row."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rollbook.book import Book, Database, Scan
from rollbook.errors import UnknownKey
from rollbook.runs.fields import column_of, field_names, value_at
from rollbook.runs.results import run_table
from rollbook.schema.run_files import table_names
from rollbook.schema.tables import TABLES
from rollbook.values.array_types import NDArray
from rollbook.values.arrow import join_tables, take

_BESIDE = {"run": "id", "project": "project", "run_name": "name", "run_seed": "seed", "status": "status"}


def ask(rows: Sequence[Mapping[str, object]], query: str) -> Any:
    """See `RunSet.sql`."""
    names = dict.fromkeys([*TABLES, *(name for row in rows for name in table_names(str(row["path"]))), "runs"])
    return Database(lambda table, _tries: Scan.of_table(_table(rows, table, query)), "").sql(query, names)


def _table(rows: Sequence[Mapping[str, object]], table: str, query: str) -> pa.Table:
    if table == "runs":
        return run_table(rows, None, None, x=None)
    tables, owners = [], []
    for index, row in enumerate(rows):
        book = Book(str(row["path"]))
        try:
            own = _metrics(book, query) if table == "metrics" else book.table(table)
        except UnknownKey:  # only other runs have this table
            continue
        tables.append(own)
        owners.append(np.full(own.num_rows, index, dtype=np.int64))
    if not tables:
        return pa.table({name: pa.nulls(0) for name in (*_BESIDE, "time")})
    return _with_its_run(rows, join_tables(tables), np.concatenate(owners))


def _with_its_run(rows: Sequence[Mapping[str, object]], table: pa.Table, owners: NDArray) -> pa.Table:
    """The table with its runs' fields in front; where names clash, the table's own columns win."""
    fields = {**_BESIDE, **{name: name for name in field_names(rows) if name.startswith("config.")}}
    fields = {name: field for name, field in fields.items() if name not in table.column_names}
    columns = [take(column_of([value_at(row, field) for row in rows])[0], owners) for field in fields.values()]
    return pa.Table.from_arrays([*columns, *table.columns], names=[*fields, *table.column_names])


def _metrics(book: Book, query: str) -> pa.Table:
    """The keys that the query names, or all if it asks for every column."""
    if re.search(r"\*(?!\s*[\d.(])", re.sub(r"count\s*\(\s*\*\s*\)", "", query, flags=re.IGNORECASE)):
        return book.metrics()
    asked = query.replace('""', '"').casefold()
    keys = [key for key in [*book.keys(), *book.canonical()] if key.replace('""', '"').casefold() in asked]
    return book.metrics(list(dict.fromkeys(keys)) or None)
