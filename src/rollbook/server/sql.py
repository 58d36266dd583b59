"""SQL over one run or several: read-only, bounded in time, memory and rows, without access to files."""

from __future__ import annotations

import pyarrow as pa

from rollbook.errors import BadInput
from rollbook.ground.expressions import named_tables
from rollbook.ground.tables import TABLES
from rollbook.server.cells import columns_of, in_seconds, plain
from rollbook.server.endpoint import Endpoint
from rollbook.server.locked_sql import Locked, with_runs, with_tables
from rollbook.server.refusals import Refused
from rollbook.server.schemas.common import Answer, Ask, Cell, Column
from rollbook.server.shared_state import Hall

__all__ = ["ENDPOINTS"]

_MOST_RUNS = 100
_CUT = 2_000


class SqlAsk(Ask, kw_only=True):
    """A question in SQL about one run (its tables) or several (the same, with a column run)."""

    runs: list[str]
    query: str
    limit: int = 1_000


class SqlAnswer(Answer, kw_only=True):
    """Rows; more: whether there are more than were asked for."""

    columns: list[Column]
    rows: list[list[Cell]]
    more: bool


def sql(hall: Hall, ask: SqlAsk) -> SqlAnswer:
    """The answer to a SELECT."""
    if not 1 <= ask.limit <= hall.limits.sql_rows:
        raise Refused("too_large", f"limit={ask.limit}: 1 to {hall.limits.sql_rows:,} rows")
    if not ask.runs:
        raise BadInput("runs=[]: name at least one run")
    if len(ask.runs) > _MOST_RUNS:
        raise Refused("too_large", f"{len(ask.runs)} runs; SQL looks at {_MOST_RUNS} at most")
    rows = hall.rows(ask.runs)

    def first(db: Locked) -> tuple[pa.Table, bool]:
        return db.first(ask.query, ask.limit, hall.limits.sql_answer_bytes)

    names = named_tables(ask.query, TABLES)
    if len(rows) == 1:
        answer, more = with_tables(hall, rows[0], names, "effective", first)
    else:
        answer, more = with_runs(hall, rows, names, first)
    shown = in_seconds(answer)
    columns = [shown.column(n).to_pylist() for n in range(shown.num_columns)]
    return SqlAnswer(
        columns=columns_of(answer),
        rows=[[plain(cell, _CUT) for cell in cells] for cells in zip(*columns, strict=True)] if columns else [],
        more=more,
    )


ENDPOINTS = [
    Endpoint(
        "POST", "/api/sql", SqlAsk, SqlAnswer, sql, "The answer to a SELECT over one run or several", lane="question"
    )
]
