"""SQL over the tables of one run with DuckDB, which reads from the sealed files what a query needs.

Queries are read-only: no other files than the run's, no network, no settings, unless `unlocked`.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import pyarrow as pa

from rollbook.book.completions import COMPLETIONS, COMPLETIONS_OF, asks_for_completions, completions
from rollbook.book.late_facts import VIEWS, view
from rollbook.book.scan import Scan, is_utf8
from rollbook.errors import BadInput, Damaged, did_you_mean
from rollbook.schema.expressions import condition, literal, named_tables, parsed_query, quoted, text_of_query
from rollbook.schema.sql_names import SqlNames, outer
from rollbook.system.duckdb_here import cursor, opened
from rollbook.system.guard import tolerating
from rollbook.system.optional import need
from rollbook.values.arrow import from_numpy, to_numpy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType


T = TypeVar("T")

_WHY = "sql()"
_SPACE = 16
"""Free space of the temporary folder, in multiples of the memory."""


def unique_samples(columns: Iterable[str], table: str = "samples") -> str:
    """A subquery of samples: the newest row of each distinct item, how often it was seen, and since when."""
    known = set(columns)
    # Items with ids of the caller have a separate column with the hash of their content.
    item = "coalesce(content, sample_id)" if "content" in known else "sample_id"
    order = ", ".join(f'"{name}" desc' for name in ("batch", "time", "index") if name in known)
    first = 'min("batch") over items as first_seen, max("batch") over items as last_seen, min("time") over items'
    counted = f"count(*) over items as times_seen, {first} as first_time"
    newest_first = f"row_number() over (partition by {item} order by {order}) as nth_newest"
    own = "* exclude (first_seen)" if "first_seen" in known else "*"
    rows = f"select {own}, {counted}, {newest_first} from {table} window items as (partition by {item})"
    return f"(select * exclude (nth_newest) from ({rows}) where nth_newest = 1) as unique_samples"


def apart(text: str, columns: Collection[str]) -> tuple[str | None, str | None]:
    """A condition as two, joined by `and`: of what names none of these columns, and of what may; None: no such part.

    Raises:
      BadInput: it is not exactly one expression.
    """
    parsed = parsed_query(f"select {condition(text, of_rows=True).text}")
    node = parsed["statements"][0]["node"]
    parts: dict[bool, list[str]] = {False: [], True: []}
    for part in _conjuncts(node["select_list"][0]):
        node["select_list"] = [part]
        parts[_may_name(part, set(columns))].append(f"({text_of_query(parsed).removeprefix('SELECT ')})")
    first, rest = (" and ".join(parts[names]) or None for names in (False, True))
    return first, rest


def _conjuncts(node: dict[str, Any]) -> list[dict[str, Any]]:
    if node.get("type") != "CONJUNCTION_AND":
        return [node]
    return [part for child in node["children"] for part in _conjuncts(child)]


def _may_name(node: object, columns: set[str]) -> bool:
    """Whether an expression names one of these columns, or has a subquery or a star, which may."""
    if isinstance(node, list):
        return any(_may_name(each, columns) for each in node)
    if not isinstance(node, dict):
        return False
    if node.get("class") in ("SUBQUERY", "STAR") or (node.get("column_names") or [""])[-1].lower() in columns:
        return True
    return any(_may_name(each, columns) for each in node.values())


class Database:
    """An in-memory DuckDB with a view for each table that a query names.

    Tables without large files are asked in the DuckDB of this process, which reads no file. Results are materialised,
    so they stay valid when files change; a later query sees the current tables.

    Args:
      scan: returns a table by name, given how often the query was repeated.
      folder: the only folder whose files may be read; "" for none.
      leave_out: receives {path: problem} of parts that cannot be read; the next scan omits them.
      shares_with: another one of the same folder, whose DuckDB it shares; its views are its own.
      threads: of DuckDB; None: one for each core. Each keeps its own part of what is grouped and sorted in memory.
      most_bytes: of DuckDB's memory; what is beyond waits in the system's temporary folder, if that has space. None: as
        DuckDB decides.
    """

    unique_samples = staticmethod(unique_samples)

    def __init__(
        self,
        scan: Callable[[str, int], Scan],
        folder: str,
        leave_out: Callable[[dict[str, str]], None] | None = None,
        shares_with: Database | None = None,
        threads: int | None = None,
        most_bytes: int | None = None,
    ) -> None:
        self._scan, self._folder, self._leave_out, self._shares_with = scan, folder, leave_out, shares_with
        self._threads = {} if threads is None else {"threads": threads}
        self._most_bytes = most_bytes
        self._connections: dict[str, Any] = {}

    def sql(
        self,
        query: str,
        tables: Iterable[str],
        *,
        unlocked: bool = False,
        of: str | pa.Table = "",
        among: Mapping[str, str] | None = None,
    ) -> Any:
        """The result as a DuckDB relation: `.fetchall()`, `.df()`, `.pl()`, `.to_arrow_table()`.

        Args:
          of: a condition on the rows of views such as `rollouts_now`, or a table with the column of their ids; other
            rows, and the late facts of other rows, are not read.
          among: table -> a condition; its other rows are not read.

        Raises:
          BadInput: DuckDB rejects the query, or it does more than read; the message has DuckDB's reason.
          Damaged: files keep moving during the query.
        """
        duckdb = need("duckdb", extra="sql", why=_WHY)
        if not unlocked:
            with _plain_errors(duckdb):
                _check_that_it_asks(cursor(_WHY), SqlNames({}).query(query))
        known = list(tables)
        if _SHOW_TABLES.fullmatch(query):  # DuckDB knows the tables that a query names, none before
            query = f"select unnest([{', '.join(map(literal, known))}]) as name"
        views = named_tables(query, VIEWS)
        united = asks_for_completions(query, known)
        plain = [*dict.fromkeys([*named_tables(query, known), *(COMPLETIONS_OF if united else ())])]
        named = [*dict.fromkeys([*plain, *(name for each in views for name in VIEWS[each][:2])])]

        def work(connection: Any, shown: Mapping[str, Scan], names: SqlNames) -> Any:
            for name in named if _is_all(of) else plain:
                _create(connection, name, name, shown[name], names.query((among or {}).get(name, "")))
            for name in views:
                columns = {table: shown[table].columns for table in VIEWS[name][:2]}
                sources = None if _is_all(of) else _own(connection, name, shown, of, names)
                made = names.query(view(name, columns, sources=sources))
                connection.execute(f"create or replace temp view {quoted(name)} as {made}")
            if united:
                made = names.query(completions({table: shown[table].columns for table in COMPLETIONS_OF}))
                connection.execute(f"create or replace temp view {COMPLETIONS} as {made}")
            relation = connection.sql(names.query(query))
            return None if relation is None else _with_outer(_kept(relation))

        return self._current(duckdb, named, work, [*known, *VIEWS, COMPLETIONS], unlocked=unlocked)

    def asked(self, tables: Sequence[str], work: Callable[[Opened], T]) -> T:
        """The result of `work` on some tables, which may ask several questions; again if their files move meanwhile.

        Raises:
          As `sql` does.
        """
        duckdb = need("duckdb", extra="sql", why=_WHY)

        def asked(connection: Any, shown: Mapping[str, Scan], names: SqlNames) -> T:
            for name in tables:
                _create(connection, name, name, shown[name])
            return work(Opened(duckdb, connection, shown, names))

        return self._current(duckdb, tables, asked, tables)

    def _current(
        self,
        duckdb: ModuleType,
        tables: Sequence[str],
        work: Callable[[Any, Mapping[str, Scan], SqlNames], T],
        known: Iterable[str],
        *,
        unlocked: bool = False,
    ) -> T:
        """The result of `work` on tables as they are now. It is called again if files were merged or removed during
        it, and without those that turn out to be damaged."""
        why = "others are in their place"
        for tries in range(Scan.TRIES):  # parts may be merged meanwhile
            scans: list[Scan] = []
            connection: Any = None
            try:
                shown = {name: self._scan(name, tries) for name in tables}
                names = SqlNames({name: scan.columns for name, scan in shown.items()})
                shown = {name: scan.apart(names.confused) for name, scan in shown.items()}
                scans += shown.values()
                connection = self._connection(unlocked, reads_files=any(scan.queries for scan in scans))
                for name, scan in shown.items():
                    _register(connection, name, scan)
                with _plain_errors(duckdb, known):
                    answer = work(connection, shown, names)
            except duckdb.IOException as err:
                why = str(err)
                self._without_damage(scans)
                continue
            except BadInput as err:
                if all(scan.is_current() for scan in scans) and not (
                    _may_be_damage(duckdb, err.__context__) and self._without_damage(scans)
                ):
                    raise
                continue
            finally:  # DuckDB would hold the stream, and it the book, in a ring that Python does not see
                for name in tables if connection is not None else ():
                    with tolerating(duckdb.Error):  # without memory even this fails
                        connection.unregister(f"stream of {name}")
            if all(scan.is_current() for scan in scans):
                return answer
        raise Damaged(f"{self._folder}: the query found its files gone or damaged {Scan.TRIES} times: {why}")

    def arrow(
        self, query: str, tables: Iterable[str], of: str | pa.Table = "", among: Mapping[str, str] | None = None
    ) -> pa.Table:
        """The result as an Arrow table, its times in UTC."""
        relation = self.sql(query, tables, of=of, among=among)
        with _plain_errors(need("duckdb", extra="sql", why=_WHY)):
            return _in_utc(_as_arrow(relation))

    def _without_damage(self, scans: Iterable[Scan]) -> bool:
        """Whether parts of these tables cannot be read; they are left out from now on."""
        damaged = {path: why for scan in scans for path, why in scan.damaged().items()}
        if not damaged or self._leave_out is None:
            return False
        self._leave_out(damaged)
        return True

    def _connection(self, unlocked: bool, reads_files: bool) -> Any:
        is_bounded = self._threads or self._most_bytes is not None
        kind = "unlocked" if unlocked else "files" if reads_files or is_bounded else "memory"
        if kind not in self._connections:
            if kind == "memory":
                self._connections[kind] = cursor(_WHY)
            elif self._shares_with is not None:
                self._connections[kind] = self._shares_with._connection(unlocked, reads_files).cursor()
            else:
                folder = self._folder if is_utf8(self._folder) else ""  # else no file is scanned: see Scan
                bounds: dict[str, str | int] = {**self._threads, **_bounded(self._most_bytes)}
                self._connections[kind] = opened(_WHY, unlocked=unlocked, folder=folder, **bounds)
        return self._connections[kind]


class Opened:
    """Some tables of a run in DuckDB, of which several questions are asked; see `book.questions.Queries`.

    Attributes:
      columns: of each table; in_files: those that are read from files, if they are large; empty: the columns of each
        without any value, where that is known.
      keeps: whether `keep` computes an answer once: it does not.
      streams: whether many rows are of the journal, which take long to decode.
    """

    def __init__(self, duckdb: ModuleType, connection: Any, shown: Mapping[str, Scan], names: SqlNames) -> None:
        self._duckdb, self._connection, self._shown, self._names = duckdb, connection, shown, names
        self.columns = {name: list(scan.columns) for name, scan in shown.items()}
        self.in_files = [name for name, scan in shown.items() if scan.queries]
        self.empty: Mapping[str, Collection[str]] = {name: scan.empty for name, scan in shown.items()}
        self.keeps = False
        self.streams = any(scan.stream is not None for scan in shown.values())

    def view(self, name: str, query: str) -> None:
        """Create a view from one of our own queries."""
        self._connection.execute(f"create or replace temp view {quoted(name)} as {self._names.query(query)}")

    def keep(self, name: str, query: str, of: Sequence[str], *, make: bool = True) -> None:
        """Create a view of the answer to one of our own queries."""
        self.view(name, query)

    def hold(self, name: str, query: str, of: Sequence[str]) -> None:
        """Create a table of the answer to one of our own queries."""
        self._connection.execute(f"create or replace temp table {quoted(name)} as {self._names.query(query)}")

    def only(self, name: str, table: str, condition: str) -> None:
        """Create a view of the rows of a table that meet a condition; blocks without them are not read."""
        _create(self._connection, name, table, self._shown[table], self._names.query(condition))

    def table(self, query: str) -> pa.Table:
        """The answer to one SELECT, its times in UTC.

        Raises:
          BadInput: DuckDB does not understand it.
        """
        with _plain_errors(self._duckdb, self._shown):
            relation = self._connection.sql(self._names.query(query))
            return _in_utc(_as_arrow(_with_outer(_kept(relation))))


def _bounded(most_bytes: int | None) -> dict[str, str]:
    """Settings of DuckDB for this much memory; none if there is no space for what is beyond. It removes its files."""
    if most_bytes is None:
        return {}
    with tolerating(OSError):
        folder = tempfile.gettempdir()
        if shutil.disk_usage(folder).free > _SPACE * most_bytes:
            where = os.path.join(folder, f"rollbook-{uuid.uuid4().hex}")
            return {"memory_limit": f"{most_bytes >> 10}KiB", "temp_directory": where}
    return {}


def _register(connection: Any, name: str, scan: Scan) -> None:
    """Register a table's rows that are no files."""
    connection.register(f"rest of {name}", scan.rest)
    if scan.stream is not None:
        connection.register(f"stream of {name}", scan.stream)


def _is_all(of: str | pa.Table) -> bool:
    return isinstance(of, str) and not of


def _own(connection: Any, name: str, shown: Mapping[str, Scan], of: str | pa.Table, names: SqlNames) -> tuple[str, str]:
    """Create views of some rows of a view's table, and of their late facts; the names of these views."""
    rows, late, key = VIEWS[name]
    ids, own, facts = f"ids of {name}", f"own {rows}", f"own {late}"
    if isinstance(of, str):
        _create(connection, own, rows, shown[rows], names.query(of))
        found = _as_arrow(connection.sql(f"select {quoted(key)} from {quoted(own)}"))
    else:
        found = of.select([key])
    among = f"{quoted(key)} in (select {quoted(key)} from {quoted(ids)})"
    if found.num_rows == 1:  # then statistics of row groups say where it is
        among = f"{quoted(key)} = {literal(str(found[key][0].as_py()))}"
    connection.register(ids, found)
    if not isinstance(of, str):
        _create(connection, own, rows, shown[rows], among)
    _create(connection, facts, late, shown[late], among)
    return own, facts


def _create(connection: Any, name: str, table: str, scan: Scan, condition: str = "") -> None:
    """Create a view of a table whose rows in memory are registered; with a condition, of some of its rows."""
    memory = [quoted(f"rest of {table}"), *([quoted(f"stream of {table}")] if scan.stream is not None else [])]
    where = f" where {condition}" if condition else ""
    sources = [*(scan.only(condition) if condition else scan.queries), *(f"select * from {m}{where}" for m in memory)]
    columns = ", ".join(map(quoted, scan.inner_columns))
    together = " union all by name ".join(sources)
    connection.execute(f"create or replace temp view {quoted(name)} as select {columns} from ({together})")


def _with_outer(relation: Any) -> Any:
    """The relation with its columns called as in the tables."""
    names = [outer(name) for name in relation.columns]
    if names == list(relation.columns):
        return relation
    return relation.project(", ".join(f"#{n} as {quoted(name)}" for n, name in enumerate(names, 1)))


def _in_utc(table: pa.Table) -> pa.Table:
    """The table with its times, which have no time zone, as times in UTC."""
    for index, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) and field.type.tz is None:
            values, valid = to_numpy(table.column(index))
            kind = pa.timestamp(field.type.unit, tz="UTC")
            table = table.set_column(index, field.name, from_numpy(values, valid, kind))
    return table


def _as_arrow(relation: Any) -> pa.Table:
    return (getattr(relation, "to_arrow_table", None) or relation.fetch_arrow_table)()


_SHOW_TABLES = re.compile(r"\s*show\s+(all\s+)?tables\s*;?\s*", re.IGNORECASE)
_ASKING = ("SELECT", "MULTI")  # DuckDB sees a PIVOT as several statements
_EXPLAIN = re.compile(r"\s*explain\s+(analyze\s+)?", re.IGNORECASE)


def _check_that_it_asks(connection: Any, query: str) -> None:
    """Refuse statements that do more than read: COPY could overwrite the files that it may read."""
    for statement in connection.extract_statements(query):
        kind = statement.type.name
        if kind == "EXPLAIN":
            inner = _EXPLAIN.sub("", statement.query, count=1)
            kinds = [each.type.name for each in connection.extract_statements(inner)]
            kind = next((each for each in kinds if each not in _ASKING), "SELECT")
        if kind not in _ASKING:
            raise BadInput(
                f"a query only asks, and this one has {kind}.",
                "If it is meant, say sql(…, unlocked=True) or `rollbook sql --unlocked`: it may then read and write "
                "files like any program",
            )


def _kept(relation: Any) -> Any:
    """The relation with its result materialised."""
    materialize = getattr(relation, "materialize", None)
    if materialize is not None:
        return materialize()
    return relation.execute()


_MISTAKES = ("Parser", "Syntax", "Binder", "Catalog", "Conversion", "OutOfRange", "OutOfMemory", "Permission")


def _may_be_damage(duckdb: ModuleType, error: BaseException | None) -> bool:
    """Whether the error may come from an unreadable file, not from the query."""
    mistakes = tuple(getattr(duckdb, f"{name}Exception", duckdb.ParserException) for name in _MISTAKES)
    return isinstance(error, duckdb.Error) and not isinstance(error, mistakes)


_NO_TABLE = re.compile(r"Table with name (\S+) does not exist")
QUOTES = 'A key with a slash, and a name that is a word of SQL, needs double quotes: "train/return"'
"""What to do about a query that DuckDB does not understand."""


def mistake_in_words(error: str, tables: Iterable[str]) -> tuple[str, str]:
    """What is wrong with a query, and what to do about it.

    Args:
      error: of DuckDB; tables: that the run has.
    """
    missing = _NO_TABLE.search(error)
    if missing is not None:
        return f"there is no table {missing[1]!r} in this run.", did_you_mean(missing[1], list(tables))
    return f"the query cannot be answered: {outer(error).strip()}\n", QUOTES


@contextmanager
def _plain_errors(duckdb: ModuleType, tables: Iterable[str] = ()) -> Iterator[None]:
    """Raise DuckDB's errors about a query as BadInput; `tables`: those that the run has."""
    try:
        yield
    except duckdb.PermissionException as err:
        raise BadInput(
            f"the query reaches outside the run: {str(err).strip()}\n",
            "If that is meant, say sql(…, unlocked=True) or `rollbook sql --unlocked`",
        ) from None
    except duckdb.IOException:
        raise
    except duckdb.Error as err:
        raise BadInput(*mistake_in_words(str(err), tables)) from None
