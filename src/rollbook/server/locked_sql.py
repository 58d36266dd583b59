"""DuckDB behind a lock: it sees the tables it is given and nothing else, and ends in time.

Large sealed tables are scanned where they lie, so that memory does not grow with their rows. A query that names a file,
a function that reads one, another database, an extension or a setting is refused; memory, threads and time are bounded.
"""

from __future__ import annotations

import functools
import json
import os
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar

import pyarrow as pa

from rollbook.book.book import Book
from rollbook.book.expressions import nodes_of
from rollbook.book.scan import Scan, literal, quoted, scan_of
from rollbook.errors import BadInput, Damaged, did_you_mean
from rollbook.server.catalogue import RunRow
from rollbook.server.refusals import Refused
from rollbook.server.schemas.common import Sort
from rollbook.server.settings import Limits
from rollbook.server.shared_state import Hall

TYPE_CHECKING = False
if TYPE_CHECKING:
    import duckdb

__all__ = ["Locked", "in_time", "order_by", "place_of", "quoted", "with_tables"]

T = TypeVar("T")
_TRIES = 3

_CONFIG = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "temp_directory": "",
    "threads": "2",
}
_LONGEST = 20_000


_FUNCTIONS = frozenset({"range", "generate_series", "unnest"})
"""The only functions that may stand where a table does; others read files, settings or catalogues."""

_NAME = re.compile(r"\w+")


def _locked(megabytes: int, folder: str = "") -> duckdb.DuckDBPyConnection:
    """A database that reaches no file, or those below one folder alone, and whose settings cannot be changed."""
    import duckdb  # a third of a second that a page of charts does not need

    made = duckdb.connect(config={**_CONFIG, "memory_limit": f"{megabytes}MB"})
    _set_if_known(made, "global python_enable_replacements", "false")
    made.execute("set global TimeZone = 'UTC'")
    if folder:
        made.execute(f"set allowed_directories = [{literal(os.path.abspath(folder) + os.sep)}]")
    made.execute("set enable_external_access = false")
    made.execute("set lock_configuration = true")
    return made


@functools.lru_cache(maxsize=4)
def _without_files(megabytes: int) -> duckdb.DuckDBPyConnection:
    """The one that requests share which scan no file: making one costs more than most answers."""
    return _locked(megabytes)


class FilesMoved(Exception):
    """Parts were merged or removed while they were scanned: ask anew."""


class Locked:
    """A database for one request.

    Args:
      limits: how much it may take.
      tables: what it sees, by name: Arrow tables, or scans of sealed parts.
      folder: where the parts of scans lie.
    Attributes:
      columns: of each table.
    """

    def __init__(self, limits: Limits, tables: Mapping[str, pa.Table | Scan], folder: str = "") -> None:
        self._limits, self._tables, self._folder = limits, tables, folder
        self.columns = {n: list(t.columns if isinstance(t, Scan) else t.column_names) for n, t in tables.items()}
        self._connection: Any = None
        self._until = 0.0

    def __enter__(self) -> Locked:
        megabytes = max(64, self._limits.sql_bytes >> 20)
        if any(isinstance(table, Scan) and table.queries for table in self._tables.values()):
            self._connection = _locked(megabytes, self._folder)
        else:
            self._connection = _without_files(megabytes).cursor()  # names of one cursor no other one sees
        for name, table in self._tables.items():
            self._show(name, table)
        self._until = time.monotonic() + self._limits.sql_seconds
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def _show(self, name: str, table: pa.Table | Scan) -> None:
        """Have a table seen under its name."""
        if not isinstance(table, Scan):
            self._connection.register(name, table)
            return
        import duckdb

        rest = f"rest of {name}"
        self._connection.register(rest, table.rest)
        together = " union all by name ".join([*table.queries, f"select * from {quoted(rest)}"])
        columns = ", ".join(map(quoted, table.columns))
        try:
            self._connection.execute(f"create temp view {quoted(name)} as select {columns} from ({together})")
        except duckdb.IOException as err:
            raise FilesMoved(str(err)) from None

    def view(self, name: str, query: str) -> None:
        """Have the answer to a query of ours seen under a name."""
        self._connection.execute(f"create or replace temp view {quoted(name)} as {query}")

    def _check(self, query: str) -> None:
        """Refuse whatever names more than the tables that are shown.

        Raises:
          BadInput: it does.
        """
        ((said,),) = self._connection.execute("select json_serialize_sql(?::varchar)", [query]).fetchall()
        tree = json.loads(said)
        if tree.get("error"):  # what cannot be read: DuckDB says it better when it is asked to run it
            return
        for node in nodes_of(tree):
            kind = node.get("type")
            if kind == "TABLE_FUNCTION":
                function = str((node.get("function") or {}).get("function_name", "")).lower()
                if function not in _FUNCTIONS:
                    raise BadInput(f"{function}() is not answered here: a query sees the tables of the runs alone")
            elif kind == "BASE_TABLE":
                name = str(node.get("table_name", ""))
                if not _NAME.fullmatch(name) or node.get("schema_name") or node.get("catalog_name"):
                    known = ", ".join(self._tables) or "none was named"
                    raise BadInput(f"{name!r:.80} is not a table of a run: {known}")

    def table(self, query: str, values: Sequence[object] = (), limit: int | None = None) -> pa.Table:
        """The answer to one SELECT.

        Args:
          values: for its question marks.
          limit: rows at most.
        Raises:
          BadInput: it is no SELECT, or DuckDB does not understand it. Refused: it takes too long or too much memory.
        """
        import duckdb

        if len(query) > _LONGEST:
            raise BadInput(f"the query has {len(query):,} characters; at most {_LONGEST:,}")
        ended = threading.Event()
        watch = threading.Thread(target=self._interrupt, args=(ended,), daemon=True)
        try:
            statements = self._connection.extract_statements(query)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise BadInput("one SELECT is answered here, and nothing else. Tables can be read, not changed")
            self._check(query)
            watch.start()
            given = {"params": list(values)} if values else {}
            return _arrow(self._connection.sql(query, **given), limit)
        except duckdb.IOException as err:
            raise FilesMoved(str(err)) from None
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


def _scan(book: Book, name: str, attempts: str) -> Scan:
    return book.files.read([name], lambda found: scan_of(name, found[name], book.context(found[name], attempts)))


def with_tables(hall: Hall, row: RunRow, names: Sequence[str], attempts: str, work: Callable[[Locked], T]) -> T:
    """What `work` finds in tables of a run, from the start again where their files moved under it."""
    for tries in range(_TRIES):
        with hall.book(row) as book:
            scans = {name: _scan(book, name, attempts) for name in names}
        try:
            with Locked(hall.limits, scans, os.path.join(row.folder, "data")) as db:
                return work(db)
        except FilesMoved as err:
            if tries + 1 == _TRIES:
                raise Damaged(f"{row.folder}: its files were gone or damaged while they were read: {err}") from None
    raise AssertionError("unreachable")


def _arrow(answer: Any, limit: int | None) -> pa.Table:
    if limit is None:
        convert = getattr(answer, "to_arrow_table", None) or answer.fetch_arrow_table
        converted = convert()
        return converted if isinstance(converted, pa.Table) else converted.read_all()
    reader = getattr(answer, "to_arrow_reader", None) or answer.fetch_arrow_reader
    batches, rows = [], 0
    source = reader(2_048)
    for batch in source:
        batches.append(batch)
        rows += batch.num_rows
        if rows >= limit:
            break
    return pa.Table.from_batches(batches, schema=source.schema).slice(0, limit)


def _set_if_known(connection: Any, name: str, value: str) -> None:
    import duckdb

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


def place_of(x: str, began: float, columns: Sequence[str]) -> str:
    """Where a row stands on an axis, in SQL; null for rows that do not know it."""
    if x in ("time", "relative"):
        return f"(epoch_us(time) / 1e6 - {began if x == 'relative' else 0.0!r})"
    return f"try_cast({quoted(x)} as double)" if x in columns else "cast(null as double)"


def in_time(columns: Sequence[str], order: str = "asc") -> str:
    """ORDER BY time, rows of one moment in the order in which they were written."""
    names = [quoted(name) for name in ("time", "writer", "lane", "seq", "index") if name in columns]
    return " order by " + ", ".join(f"{name} {order}" for name in names) if names else ""


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
