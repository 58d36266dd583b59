"""DuckDB behind a lock: it sees the tables it is given and nothing else, and ends in time.

No file, no other database, no extension and no setting can be reached; memory, threads and time are bounded.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

import duckdb
import pyarrow as pa

from rollbook.errors import BadInput, did_you_mean
from rollbook.server.refusals import Refused
from rollbook.server.schemas.common import Sort
from rollbook.server.settings import Limits

__all__ = ["Locked", "order_by", "quoted"]

_CONFIG = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "temp_directory": "",
    "threads": "2",
}
_LONGEST = 20_000


class Locked:
    """A database for one request.

    Args:
      limits: how much it may take.
      tables: what it sees, by name.
    """

    def __init__(self, limits: Limits, tables: Mapping[str, Any]) -> None:
        self._limits, self._tables = limits, tables
        self._connection: Any = None
        self._until = 0.0

    def __enter__(self) -> Locked:
        megabytes = max(64, self._limits.sql_bytes >> 20)
        self._connection = duckdb.connect(config={**_CONFIG, "memory_limit": f"{megabytes}MB"})
        _set_if_known(self._connection, "python_enable_replacements", "false")
        for name, table in self._tables.items():
            self._connection.register(name, table)
        self._connection.execute("set lock_configuration = true")
        self._until = time.monotonic() + self._limits.sql_seconds
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def table(self, query: str, values: Sequence[Any] = (), limit: int | None = None) -> pa.Table:
        """The answer to one SELECT.

        Args:
          values: for its question marks.
          limit: rows at most.
        Raises:
          BadInput: it is no SELECT, or DuckDB does not understand it. Refused: it takes too long or too much memory.
        """
        if len(query) > _LONGEST:
            raise BadInput(f"the query has {len(query):,} characters; at most {_LONGEST:,}")
        ended = threading.Event()
        watch = threading.Thread(target=self._interrupt, args=(ended,), daemon=True)
        try:
            statements = self._connection.extract_statements(query)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise BadInput("one SELECT is answered here, and nothing else. Tables can be read, not changed")
            watch.start()
            answer = (
                self._connection.execute(statements[0], list(values))
                if values
                else self._connection.execute(statements[0])
            )
            return _arrow(answer, limit)
        except duckdb.InterruptException:
            raise Refused(
                "timeout",
                f"the query took longer than {self._limits.sql_seconds:g} s",
                "Narrow it, or ask in Python: book.sql(…)",
            ) from None
        except duckdb.OutOfMemoryException:
            raise Refused(
                "too_large",
                f"the query needs more than {self._limits.sql_bytes >> 20} MB of memory",
                "Narrow it, or ask in Python: book.sql(…)",
            ) from None
        except duckdb.Error as err:
            raise Refused(
                "bad_input",
                f"the query cannot be answered: {str(err).strip()[:1_500]}",
                'Names with a slash, and words of SQL, need double quotes: "train/return".',
                _place(err),
            ) from None
        except RuntimeError as err:  # what DuckDB's Python makes of a query that it cannot parse at all
            raise BadInput(f"the query cannot be answered: {str(err)[:500]}") from None
        finally:
            ended.set()

    def _interrupt(self, ended: threading.Event) -> None:
        if not ended.wait(max(0.05, self._until - time.monotonic())):
            self._connection.interrupt()


def _arrow(answer: Any, limit: int | None) -> pa.Table:
    if limit is None:
        convert = getattr(answer, "to_arrow_table", None) or answer.fetch_arrow_table
        found = convert()
        return found if isinstance(found, pa.Table) else found.read_all()
    reader = getattr(answer, "to_arrow_reader", None) or answer.fetch_record_batch
    batches, rows = [], 0
    source = reader(2_048)
    for batch in source:
        batches.append(batch)
        rows += batch.num_rows
        if rows >= limit:
            break
    return pa.Table.from_batches(batches, schema=source.schema).slice(0, limit)


def _set_if_known(connection: Any, name: str, value: str) -> None:
    try:
        connection.execute(f"set {name} = {value}")
    except duckdb.Error:  # an older DuckDB
        return


def _place(err: Exception) -> int | None:
    """The column that DuckDB points at with a caret."""
    lines = str(err).splitlines()
    for number, line in enumerate(lines):
        if line.strip() == "^" and number and lines[number - 1].startswith("LINE "):
            return max(0, line.index("^") - lines[number - 1].index(":") - 2)
    return None


def quoted(name: str) -> str:
    """A name as SQL takes it."""
    return '"' + name.replace('"', '""') + '"'


def order_by(sort: Sequence[Sort], columns: Sequence[str]) -> str:
    """ORDER BY of some columns that there are; nothing without.

    Raises:
      BadInput: a column that there is not.
    """
    for entry in sort:
        if entry.column not in columns:
            raise BadInput(
                f"there is no column {entry.column!r:.80} to sort by.{did_you_mean(entry.column, list(columns))}"
            )
    parts = [f"{quoted(entry.column)} {'desc' if entry.descending else 'asc'} nulls last" for entry in sort[:5]]
    return f" order by {', '.join(parts)}" if parts else ""
