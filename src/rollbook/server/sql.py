"""SQL over one run or several: read-only, bounded in time, memory and rows, blind to files."""

from __future__ import annotations

import pyarrow as pa

from rollbook.book.sql import named_tables
from rollbook.errors import BadInput
from rollbook.server.catalogue import RunRow
from rollbook.server.cells import columns_of, in_seconds, plain
from rollbook.server.endpoint import Endpoint
from rollbook.server.locked_sql import Locked, with_tables
from rollbook.server.refusals import Refused
from rollbook.server.rows import table_of
from rollbook.server.schemas.sql import SqlAnswer, SqlAsk
from rollbook.server.shared_state import Hall
from rollbook.tables import TABLES

__all__ = ["ENDPOINTS"]

_MOST_RUNS = 100
_CUT = 2_000


def sql(hall: Hall, ask: SqlAsk) -> SqlAnswer:
    """The answer to a SELECT."""
    if not 1 <= ask.limit <= hall.limits.sql_rows:
        raise Refused("too_large", f"limit={ask.limit}: 1 to {hall.limits.sql_rows:,} rows")
    if not ask.runs:
        raise BadInput("runs=[]: name at least one run")
    if len(ask.runs) > _MOST_RUNS:
        raise Refused("too_large", f"{len(ask.runs)} runs; SQL looks at {_MOST_RUNS} at most")
    rows = hall.rows(ask.runs)
    names = named_tables(ask.query, TABLES)
    if len(rows) == 1:
        answer = with_tables(hall, rows[0], names, "effective", lambda db: db.table(ask.query, limit=ask.limit + 1))
    else:
        with Locked(hall.limits, {name: _together(hall, rows, name) for name in names}) as db:
            answer = db.table(ask.query, limit=ask.limit + 1)
    more = answer.num_rows > ask.limit
    shown = in_seconds(answer.slice(0, ask.limit))
    columns = [shown.column(n).to_pylist() for n in range(shown.num_columns)]
    return SqlAnswer(
        columns=columns_of(answer),
        rows=[[plain(cell, _CUT) for cell in cells] for cells in zip(*columns, strict=True)] if columns else [],
        more=more,
    )


def _together(hall: Hall, rows: list[RunRow], name: str) -> pa.Table:
    """A table of all runs, with the columns run, run_name and run_seed."""
    parts = []
    for row in rows:
        table = _table(hall, row, name)
        n = table.num_rows
        seed = row.about.get("seed")
        for label, cell, kind in (
            ("run", row.key, pa.string()),
            ("run_name", str(row.about.get("name") or ""), pa.string()),
            ("run_seed", seed if isinstance(seed, int) else None, pa.int64()),
        ):
            if label in table.column_names:
                table = table.drop_columns([label])
            table = table.append_column(label, pa.array([cell] * n, kind))
        parts.append(table)
    return pa.concat_tables(parts, promote_options="permissive")


def _table(hall: Hall, row: RunRow, name: str) -> pa.Table:
    if name != "metrics":
        return table_of(hall, row, name)
    with hall.book(row) as book:
        return book.metrics()


ENDPOINTS = [Endpoint("POST", "/api/sql", SqlAsk, SqlAnswer, sql, "The answer to a SELECT over one run or several")]
