"""A process that answers SQL queries for the server: a locked DuckDB with bounded memory.

The server writes messages to its stdin and reads the answers from its stdout; it kills a process that takes too long. A
query sees only the tables that were sent or may be scanned. One that names a file, a function that reads one, another
database, an extension or a setting is refused. DuckDB counts only part of its memory, so the address space of the whole
process is limited as well, where the system supports it (Linux).
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import re
import struct
import sys
from collections.abc import Sequence
from typing import IO, Any

import msgspec
import pyarrow as pa

from rollbook.errors import BadInput
from rollbook.schema.expressions import literal, nodes_of, quoted
from rollbook.system.guard import tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    import duckdb

_CONFIG = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "temp_directory": "",
    "threads": "2",
}
_FUNCTIONS = frozenset({"range", "generate_series", "unnest"})
"""The only functions allowed in place of a table; others read files, settings or catalogues."""
_NAME = re.compile(r"\w+")
_BESIDE_DUCKDB = 192 << 20
"""Bytes of address space for what DuckDB does not count: stacks, Arrow, answers being sent."""
_IDLE_SECONDS = 300.0
_BATCH_ROWS = 2_048
_GROUP_ROWS = 32_768

Head = dict[str, Any]


def send(file: IO[bytes], head: Head, bodies: Sequence[bytes | pa.Buffer] = ()) -> None:
    """Write a message: a head of plain values, and blocks of bytes."""
    plain = msgspec.msgpack.encode({**head, "sizes": [len(body) for body in bodies]})
    file.write(struct.pack("<Q", len(plain)))
    file.write(plain)
    for body in bodies:
        file.write(body)
    file.flush()


def receive(file: IO[bytes]) -> tuple[Head, list[bytes]]:
    """The next message.

    Raises:
      EOFError: there is none.
    """
    (size,) = struct.unpack("<Q", _exactly(file, 8))
    head: Head = msgspec.msgpack.decode(_exactly(file, size))
    return head, [_exactly(file, each) for each in head.pop("sizes")]


def _exactly(file: IO[bytes], size: int) -> bytes:
    content = file.read(size)
    if len(content) < size:
        raise EOFError
    return content


def packed_table(table: pa.Table) -> pa.Buffer:
    """A table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def table_in(content: bytes) -> pa.Table:
    """What `packed_table` packed."""
    return pa.ipc.open_stream(pa.py_buffer(content)).read_all()


def main() -> None:
    """Answer messages until the server is gone or has sent nothing for five minutes."""
    asked, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    sys.stdout = io.StringIO()  # only answers go there; DuckDB writes the progress of slow queries past this
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    with contextlib.suppress(ImportError, AttributeError, ValueError):
        import signal

        signal.signal(signal.SIGINT, signal.SIG_IGN)
    session = _Session()
    with session:
        session.open(64, [], [])  # loads what the first query would wait for
        session.table("select 1", (), None, 1 << 20)
    send(answers, {})
    while _comes(asked):
        try:
            head, bodies = receive(asked)
        except EOFError:
            return
        head_back, bodies_back = _answered(session, head, bodies)
        send(answers, head_back, bodies_back)


def _comes(file: IO[bytes]) -> bool:
    """Whether data arrives in time."""
    if sys.platform == "win32":
        return True
    import select

    return bool(select.select([file], [], [], _IDLE_SECONDS)[0])


def _answered(session: _Session, head: Head, bodies: list[bytes]) -> tuple[Head, list[pa.Buffer]]:
    import duckdb

    with _bounded_seconds(head.get("seconds")):
        try:
            if head["verb"] == "open":
                session.open(head["megabytes"], head["folders"], head["tables"], [table_in(body) for body in bodies])
                return {}, []
            if head["verb"] == "view":
                session.view(head["name"], head["query"])
                return {}, []
            if head["verb"] == "copy":
                session.copy(head["query"], head["path"])
                return {}, []
            if head["verb"] == "table":
                table, more = session.table(head["query"], head["values"], head["limit"], head["bytes"])
                return {"more": more}, [packed_table(table)]
            session.close()
            return {"peak": _peak()}, []
        except duckdb.IOException as err:
            return _failure("moved", err), []
        except (duckdb.OutOfMemoryException, MemoryError, pa.ArrowMemoryError):
            return {"error": "memory"}, []
        except BadInput as err:
            return _failure("refused", err), []
        except _TooLarge as err:
            return _failure("large", err), []
        except (duckdb.Error, RuntimeError, pa.ArrowException) as err:  # RuntimeError: cannot be parsed
            if "bad_alloc" in str(err) or "std::length_error" in str(err):
                return {"error": "memory"}, []
            return {**_failure("bad", err), "at": _position(err)}, []


def _failure(kind: str, err: Exception) -> Head:
    return {"error": kind, "message": str(err).strip()[:1_500]}


class _TooLarge(Exception):
    """An answer with more bytes than may be sent."""


class _Session:
    """The tables of the present query."""

    def __init__(self) -> None:
        self._connection: Any = None
        self._names: list[str] = []

    def __enter__(self) -> _Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(
        self, megabytes: int, folders: Sequence[str], shown: Sequence[Head], tables: Sequence[pa.Table] = ()
    ) -> None:
        """Make tables available: each a name, the queries that scan its parts, its columns; `tables`: their other
        rows."""
        self.close()
        self._connection = _locked(megabytes, tuple(folders)) if folders else _without_files(megabytes).cursor()
        self._names = [head["name"] for head in shown]
        for head, rest in zip(shown, tables, strict=True):
            if not head["queries"]:
                self._connection.register(head["name"], rest)
                continue
            name = f"rest of {head['name']}"
            self._connection.register(name, rest)
            together = " union all by name ".join([*head["queries"], f"select * from {quoted(name)}"])
            columns = ", ".join(map(quoted, head["columns"]))
            self.view(head["name"], f"select {columns} from ({together})")
        _bound_memory(megabytes)

    def close(self) -> None:
        """Forget the tables."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def view(self, name: str, query: str) -> None:
        """Create a view from one of our own queries."""
        self._connection.execute(f"create or replace temp view {quoted(name)} as {query}")

    def copy(self, query: str, path: str) -> None:
        """Write the answer to one of our own queries to a Parquet file."""
        self._connection.execute(
            f"copy ({query}) to {literal(path)} (format parquet, compression lz4, row_group_size {_GROUP_ROWS})"
        )

    def table(self, query: str, values: Sequence[object], limit: int | None, most_bytes: int) -> tuple[pa.Table, bool]:
        """The answer to one SELECT, and whether it was cut at `limit` rows."""
        import duckdb

        statements = self._connection.extract_statements(query)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise BadInput("one SELECT is answered here, and nothing else. Tables can be read, not changed.")
        self._check(query)
        given = {"params": list(values)} if values else {}
        answer = self._connection.sql(query, **given)
        reader = getattr(answer, "to_arrow_reader", None) or answer.fetch_arrow_reader
        source = reader(_BATCH_ROWS)
        batches: list[pa.RecordBatch] = []
        rows = size = 0
        for batch in source:
            if limit is not None and rows + batch.num_rows > limit:
                batch = batch.slice(0, limit - rows)
            taken = batch.num_rows
            while taken and size + batch.slice(0, taken).nbytes > most_bytes:
                taken //= 2
            if taken < batch.num_rows and (limit is None or rows + taken == 0):
                raise _TooLarge(
                    f"{size + batch.nbytes:,} bytes in {rows + batch.num_rows:,} rows; at most {most_bytes:,}"
                )
            batches.append(batch.slice(0, taken))
            rows, size = rows + taken, size + batch.slice(0, taken).nbytes
            if taken < batch.num_rows or rows == limit:
                return pa.Table.from_batches(batches, schema=source.schema), True
        return pa.Table.from_batches(batches, schema=source.schema), False

    def _check(self, query: str) -> None:
        """Refuse a query that names more than the available tables.

        Raises:
          BadInput: it does.
        """
        ((serialized,),) = self._connection.execute("select json_serialize_sql(?::varchar)", [query]).fetchall()
        try:
            tree = json.loads(serialized)
        except RecursionError:
            raise BadInput("the query is nested too deeply") from None
        if tree.get("error"):  # cannot be parsed: DuckDB's error when running it is better
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
                    known = ", ".join(self._names) or "none was named"
                    raise BadInput(f"{name!r:.80} is not a table of a run: {known}")


def _locked(megabytes: int, folders: tuple[str, ...] = ()) -> duckdb.DuckDBPyConnection:
    """A database that reaches no file, or only those below some folders, and whose settings cannot be changed."""
    import duckdb

    made = duckdb.connect(config={**_CONFIG, "memory_limit": f"{megabytes}MB"})
    for setting in ("global python_enable_replacements", "enable_progress_bar"):
        with contextlib.suppress(duckdb.Error):  # unknown to an older DuckDB, or it has nobody to show it to
            made.execute(f"set {setting} = false")
    made.execute("set global TimeZone = 'UTC'")
    if folders:
        utf8 = [folder for folder in folders if folder == folder.encode(errors="ignore").decode()]  # what is scanned
        allowed = ", ".join(literal(os.path.abspath(folder) + os.sep) for folder in utf8)
        made.execute(f"set allowed_directories = [{allowed}]")
    made.execute("set enable_external_access = false")
    made.execute("set lock_configuration = true")
    return made


@functools.lru_cache(maxsize=2)
def _without_files(megabytes: int) -> duckdb.DuckDBPyConnection:
    """The database for queries that scan no file; kept, because making one costs more than most answers."""
    return _locked(megabytes)


def _bound_memory(megabytes: int) -> None:
    """Limit how much memory the process may take in addition. On other systems only DuckDB's own limit applies."""
    if sys.platform != "linux":
        return
    import resource

    with open("/proc/self/statm", encoding="ascii") as file:
        size = int(file.read().split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = size + (megabytes << 20) + _BESIDE_DUCKDB
    resource.setrlimit(resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


@contextlib.contextmanager
def _bounded_seconds(seconds: float | None) -> Any:
    """End the process after its deadline even if its server, which would kill it, is gone."""
    if sys.platform == "win32" or seconds is None:
        yield
        return
    import signal

    signal.setitimer(signal.ITIMER_REAL, seconds + 5.0)  # SIGALRM ends it
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


def _peak() -> int:
    """The peak memory of this process in bytes; 0 if unknown."""
    with tolerating(OSError), open("/proc/self/status", encoding="ascii", errors="replace") as lines:
        return next((int(line.split()[1]) * 1_024 for line in lines if line.startswith("VmHWM:")), 0)
    # Not on Linux: there execve keeps the peak, so that a large server's own peak would count for its child processes.
    if sys.platform != "darwin":
        return 0
    import resource

    return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def _position(err: Exception) -> int | None:
    """The column that DuckDB marks with a caret."""
    lines = str(err).splitlines()
    for number, line in enumerate(lines):
        if line.strip() == "^" and number and lines[number - 1].startswith("LINE "):
            return max(0, line.index("^") - lines[number - 1].index(":") - 2)
    return None
