"""SQL over runs, each query in a separate process that sees only the tables it is given.

Large sealed tables are scanned in their files, so that memory does not grow with their rows. The process
(`sql_process.py`) has bounded memory and is killed at the deadline. There are few of them; they are kept ready between
queries, because a start takes half a second. The server keeps answering meanwhile.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from types import TracebackType
from typing import TypeVar

import pyarrow as pa

from rollbook.book import Book, Scan
from rollbook.book.questions import VIEWS_OF_SQL, in_seconds, known_tables, mistake_in_words, see_views, tables_for
from rollbook.errors import BadInput, Damaged, RollbookError
from rollbook.schema.expressions import literal, quoted
from rollbook.schema.manifest import Attempts
from rollbook.schema.sql_names import SqlNames, confused, outer
from rollbook.server.settings import LIMITS, Limits
from rollbook.server.shared.catalogue import RunRow
from rollbook.server.shared.endpoint import Endpoint
from rollbook.server.shared.shapes import Answer, Ask, Cell, Refused, TableColumn, columns_of, plain
from rollbook.server.shared.sql_process import Head, packed_table, receive, send, table_in
from rollbook.server.shared.state import ServerContext
from rollbook.system.files import is_link, names_in, replacing, try_lock
from rollbook.system.guard import tolerating

T = TypeVar("T")
_AT_ONCE = 3
"""Processes that answer at the same time; further queries wait."""
_START_SECONDS = 60.0
_LONGEST = 20_000
_MOST_KEPT = 256 << 20
"""Bytes of kept answers."""
_LOCK = "in-use"
_PROGRAM = "import sys; sys.path[:] = {path!r}; from rollbook.server.shared.sql_process import main; main()"


class FilesMoved(Exception):
    """Parts were merged or removed during a scan: query again."""


class _Ended(Exception):
    """A process ended without an answer."""

    def __init__(self, late: bool) -> None:
        self.late = late


class _Process:
    """One process that answers; used by one thread at a time."""

    def __init__(self) -> None:
        # Arrow's and glibc's memory pools reserve gigabytes of address space, which is what is limited.
        environ = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "2"}
        pipe = subprocess.PIPE
        self._child = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM.format(path=sys.path)],
            stdin=pipe,
            stdout=pipe,
            stderr=subprocess.DEVNULL,
            env=environ,
        )
        try:
            self._receive(_START_SECONDS)
        except _Ended:
            self.end()
            raise RollbookError(
                "a process that answers SQL could not be started; is there memory left, and may processes be made?"
            ) from None

    @property
    def is_alive(self) -> bool:
        """Whether it can answer."""
        return self._child.poll() is None

    def ask(self, head: Head, bodies: Sequence[bytes | pa.Buffer], until: float) -> tuple[Head, list[bytes]]:
        """Its answer.

        Args:
          until: when it is killed (monotonic seconds).
        Raises:
          _Ended: it was killed, or ended on its own.
        """
        return self._receive(max(0.05, until - time.monotonic()), head, bodies)

    def _receive(
        self, seconds: float, head: Head | None = None, bodies: Sequence[bytes | pa.Buffer] = ()
    ) -> tuple[Head, list[bytes]]:
        late = threading.Event()

        def end() -> None:
            late.set()
            self._child.kill()

        timer = threading.Timer(seconds, end)
        timer.daemon = True
        timer.start()
        asked, answers = self._child.stdin, self._child.stdout
        assert asked is not None
        assert answers is not None
        try:
            if head is not None:
                send(asked, {**head, "seconds": seconds}, bodies)
            return receive(answers)
        except (OSError, EOFError, ValueError):
            raise _Ended(late.is_set()) from None
        finally:
            timer.cancel()

    def end(self) -> None:
        """End it now."""
        self._child.kill()
        for file in (self._child.stdin, self._child.stdout):
            with contextlib.suppress(OSError, AttributeError):
                file.close()  # type: ignore[union-attr]
        with contextlib.suppress(subprocess.TimeoutExpired):  # it was killed; a hanging disk may delay its end
            self._child.wait(5.0)


class _Processes:
    """The query processes of this server: a limited number. Idle ones are kept ready, and end when no queries come."""

    def __init__(self) -> None:
        self._free = threading.BoundedSemaphore(_AT_ONCE)
        self._lock = threading.Lock()
        self._ready: list[_Process] = []

    def take(self, seconds: float) -> _Process:
        """A process for this thread alone.

        Raises:
          Refused: all of them were busy for this long.
        """
        if not self._free.acquire(timeout=seconds):
            raise Refused("too_many", f"{_AT_ONCE} questions are being answered", "Ask again in a moment.")
        try:
            with self._lock:
                while self._ready:
                    process = self._ready.pop()
                    if process.is_alive:
                        return process
                    process.end()
            return _Process()
        except BaseException:
            self._free.release()
            raise

    def give_back(self, process: _Process, *, usable: bool) -> None:
        """Make it available to others, or end it."""
        try:
            with self._lock:
                if usable:
                    self._ready.append(process)
                    return
            process.end()
        finally:
            self._free.release()

    def end(self) -> None:
        with self._lock:
            waiting, self._ready = self._ready, []
        for process in waiting:
            process.end()


_processes = _Processes()


def end_idle() -> None:
    """End the processes that wait for questions; the next question starts one."""
    _processes.end()


atexit.register(end_idle)  # of a server that nothing stops, such as an app inside of another program


def warm() -> None:
    """Have a process ready before the first question."""
    _processes.give_back(_processes.take(0.0), usable=True)


class TemporaryFolder:
    """A new folder `rollbook-<kind>-…` in the system's folder for temporary files. A file in it is locked while its
    process lives: before the next one is made, those that a SIGKILL left are removed.

    Args:
      kind: what it is for.
    Attributes:
      path: the folder.
    Raises:
      OSError: it cannot be made.
    """

    def __init__(self, kind: str) -> None:
        beginning = f"rollbook-{kind}-"
        _remove_left(beginning)
        self.path = tempfile.mkdtemp(prefix=beginning)
        lock = os.path.join(self.path, _LOCK)
        self._fd = os.open(f"{lock}.new", os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        try_lock(self._fd)
        with tolerating(OSError):  # Windows renames no open file: there such a folder stays
            os.rename(f"{lock}.new", lock)  # only now may others judge by it

    def close(self) -> None:
        """Remove it. Calling it twice is fine."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)
            shutil.rmtree(self.path, ignore_errors=True)

    def __enter__(self) -> str:
        return self.path

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _remove_left(beginning: str) -> None:
    temporary = tempfile.gettempdir()
    for name in names_in(temporary):
        folder = os.path.join(temporary, name)
        if not name.startswith(beginning) or is_link(folder):
            continue
        with tolerating(OSError):  # being made, of another user, or just removed by another process
            if hasattr(os, "geteuid") and os.lstat(folder).st_uid != os.geteuid():
                continue
            fd = os.open(os.path.join(folder, _LOCK), os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
            try:
                is_left = try_lock(fd) is True
            finally:
                os.close(fd)
            if is_left:  # its name is never used again
                shutil.rmtree(folder, ignore_errors=True)


class _Answers:
    """Kept answers of queries, Parquet files in a temporary folder that ends with the server."""

    def __init__(self) -> None:
        self._folder = ""
        self._made: TemporaryFolder | None = None
        self._lock = threading.Lock()

    @property
    def folder(self) -> str:
        """The folder; made at first use, and again if somebody removed it. "" if none can be made."""
        with self._lock:
            if not os.path.isdir(self._folder):
                self._folder = ""
                with contextlib.suppress(OSError):
                    self._made = TemporaryFolder("answers")
                    self._folder = self._made.path
                    atexit.register(self._made.close)
            return self._folder

    def holds(self, path: str) -> bool:
        """Whether there is an answer, which then counts as new."""
        with contextlib.suppress(OSError):
            os.utime(path)
            return True
        return False

    def trim(self) -> None:
        """Remove the oldest beyond the limit."""
        answers = (each for each in os.scandir(self._folder) if each.name.endswith(".parquet"))
        found = sorted(((each.stat().st_mtime_ns, each) for each in answers), key=lambda pair: -pair[0])
        size = 0
        for n, (_time, each) in enumerate(found):
            size += each.stat().st_size
            if n and size > _MOST_KEPT:
                with contextlib.suppress(OSError):
                    os.remove(each.path)


_answers = _Answers()


class Locked:
    """A database for one request.

    Args:
      limits: how much it may take.
      tables: what it sees, by name: Arrow tables, or scans of sealed parts.
      folders: the folders of the scanned parts.
      seconds: how long its queries may take together; None: as in `limits`.
      known: the tables that may be named; (): those that it sees.
    Attributes:
      columns: of each table; in_files: the tables of which parts are scanned in their files; empty: the columns without
        any value, where that is known.
      stored: the views of `keep` whose answers are there; keeps: whether there will be any; streams: as in `Queries`.
    """

    def __init__(
        self,
        limits: Limits,
        tables: Mapping[str, pa.Table | Scan],
        folders: Sequence[str] = (),
        seconds: float | None = None,
        known: Collection[str] = (),
    ) -> None:
        scans = {name: table if isinstance(table, Scan) else Scan.of_table(table) for name, table in tables.items()}
        self._names = SqlNames({name: scan.columns for name, scan in scans.items()})
        self._tables = {name: scan.apart(self._names.confused) for name, scan in scans.items()}
        self._limits, self._folders, self._known = limits, folders, [*known] or [*tables]
        self._seconds = limits.sql_seconds if seconds is None else seconds
        self.columns = {name: list(scan.columns) for name, scan in scans.items()}
        self.in_files = [name for name, scan in scans.items() if scan.queries]
        self.empty: Mapping[str, Collection[str]] = {n: t.empty for n, t in tables.items() if isinstance(t, Scan)}
        self.stored: set[str] = set()
        self.keeps = self.streams = False
        self._process: _Process | None = None
        self._packed: dict[str, pa.Buffer] = {}
        self._cache = ""
        self._usable = self._moved = False
        self._until = 0.0

    def __enter__(self) -> Locked:
        shown: list[Head] = []
        bodies: list[pa.Buffer] = []
        for name, scan in self._tables.items():
            shown.append({"name": name, "queries": scan.queries, "columns": scan.inner_columns})
            bodies.append(packed_table(scan.rest))
        scanned = any(head["queries"] for head in shown)
        self._packed = dict(zip(self._tables, bodies, strict=True))
        self._process = _processes.take(self._limits.sql_seconds)
        self._until = time.monotonic() + self._seconds
        megabytes = max(64, self._limits.sql_bytes >> 20)
        self._cache = _answers.folder if scanned else ""
        self.keeps = bool(self._cache)
        folders = [*self._folders, *filter(None, [self._cache])] if scanned else []
        try:
            self._ask({"verb": "open", "megabytes": megabytes, "folders": folders, "tables": shown}, bodies)
        except BaseException:
            self._give_back()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._give_back()

    def _give_back(self) -> None:
        if self._process is None:
            return
        process, usable = self._process, False
        try:
            if self._usable:
                with contextlib.suppress(_Ended):
                    peak = process.ask({"verb": "close"}, (), time.monotonic() + 5.0)[0].get("peak", 0)
                    usable = peak < self._limits.process_bytes
        finally:
            self._process = None
            _processes.give_back(process, usable=usable)

    def view(self, name: str, query: str) -> None:
        """Create a view from one of our own queries."""
        self._ask({"verb": "view", "name": name, "query": self._names.query(query)})

    def keep(self, name: str, query: str, of: Sequence[str], *, make: bool = True) -> None:
        """Create a view of the answer to one of our own queries, which is computed once while nothing in it changes.

        Args:
          of: what the query reads: tables, and other text that it depends on.
          make: whether the answer is kept from now on; if not, it is only used if it is there.
        """
        if not self._cache:  # few rows, or no folder for files
            self.view(name, query)
            return
        inner_query = self._names.query(query)
        made_of = hashlib.blake2b(inner_query.encode(), digest_size=16)
        for each in of:
            made_of.update(repr((each, self.columns.get(each))).encode())
            scan = self._tables.get(each)
            if scan is not None:
                made_of.update(self._packed[each])
                made_of.update(repr([scan.queries, [_stamp(part.path) for part in scan.parts]]).encode())
        path = os.path.join(self._cache, f"{made_of.hexdigest()}.parquet")
        try:
            if not _answers.holds(path):
                if not make:
                    self.view(name, query)
                    return
                with replacing(path) as part:
                    self._ask({"verb": "copy", "query": inner_query, "path": part})
                _answers.trim()
        except (Refused, FilesMoved, OSError) as err:
            if isinstance(err, Refused) and err.code != "too_large":
                raise
            self.view(name, query)  # no space or memory; if files of the run moved, the next query says so
            return
        self.view(name, f"select * from read_parquet({literal(path)})")
        self.stored.add(name)

    def table(self, query: str, values: Sequence[object] = ()) -> pa.Table:
        """The answer to one SELECT.

        Args:
          values: for its question marks.
        Raises:
          BadInput: it is no SELECT, or DuckDB does not understand it. Refused: it takes too long, or too much memory.
        """
        return self._table(query, values, None, self._limits.answer_bytes)[0]

    def hold(self, name: str, query: str, of: Sequence[str]) -> None:
        """See `book.questions.Queries`."""
        self.keep(name, query, of)

    def only(self, name: str, table: str, condition: str) -> None:
        """Create a view of the rows of a table that meet a condition; blocks without them are not read."""
        scan = self._tables[table]
        condition = self._names.query(condition)
        scans = scan.only(condition)
        rest = f"select * from {quoted(f'rest of {table}' if scans else table)} where {condition}"
        together = " union all by name ".join([*scans, rest])
        self.view(name, f"select {', '.join(map(quoted, scan.inner_columns))} from ({together})")

    def first(self, query: str, limit: int, most_bytes: int) -> tuple[pa.Table, bool]:
        """(the first rows of an answer, within limits of rows and bytes; whether there are more).

        Raises:
          As `table` does; Refused also if the first row has more bytes.
        """
        if len(query) > _LONGEST:
            raise BadInput(f"the query has {len(query):,} characters; at most {_LONGEST:,}")
        table, cut = self._table(query, (), limit + 1, most_bytes)
        return table.slice(0, limit), cut or table.num_rows > limit

    def _table(self, query: str, values: Sequence[object], limit: int | None, most: int) -> tuple[pa.Table, bool]:
        inner = self._names.query(query)
        self._moved = inner != query
        asked = {"verb": "table", "query": inner, "values": list(values), "limit": limit, "bytes": most}
        head, (body,) = self._ask(asked)
        table = table_in(body)
        table = table.rename_columns([outer(name) for name in table.column_names])
        return table, bool(head["more"]) and table.num_rows < (limit or 0)

    def _ask(self, head: Head, bodies: Sequence[pa.Buffer] = ()) -> tuple[Head, list[bytes]]:
        assert self._process is not None
        self._usable = False
        try:
            answer, content = self._process.ask(head, bodies, self._until)
        except _Ended as ended:
            if ended.late:
                raise Refused(
                    "timeout",
                    f"the query took longer than {self._seconds:g} s",
                    "Narrow it, or ask in Python: book.sql(…)",
                ) from None
            raise self._out_of_memory() from None
        error = answer.get("error")
        self._usable = error not in ("memory", "large")
        if error is None:
            return answer, content
        message = outer(str(answer.get("message", "")))
        if error == "moved":
            raise FilesMoved(message)
        if error == "refused":
            raise BadInput(message)
        if error == "memory":
            raise self._out_of_memory()
        if error == "large":
            raise Refused("too_large", f"the answer has {message}", "Ask for fewer rows or columns.")
        mistake, advice = mistake_in_words(str(answer.get("message", "")), self._known)
        raise Refused("bad_input", mistake.strip(), advice.strip() or None, None if self._moved else answer.get("at"))

    def _out_of_memory(self) -> Refused:
        return Refused(
            "too_large",
            f"the query needs more than {self._limits.sql_bytes >> 20} MB of memory",
            "Narrow it, or ask in Python: book.sql(…)",
        )


def _stamp(path: str) -> tuple[int, ...]:
    """Different for each file that was there under a path; () if there is none."""
    with contextlib.suppress(OSError):
        found = os.stat(path)
        return found.st_ino, found.st_size, found.st_mtime_ns
    return ()


def with_tables(
    context: ServerContext, row: RunRow, names: Sequence[str], attempts: Attempts, work: Callable[[Locked], T]
) -> T:
    """The result of `work` on tables of a run; starts again if their files move during it."""

    def scanned(tries: int) -> dict[str, Scan]:
        with context.book(row) as book:
            return {name: book.scan(name, tries, attempts) for name in names}

    return _found(context.limits, [row.folder], scanned, work)


def with_book(book: Book, names: Sequence[str], work: Callable[[Locked], T], attempts: Attempts = "effective") -> T:
    """The same for an open book."""

    def scanned(tries: int) -> dict[str, Scan]:
        return {name: book.scan(name, tries, attempts) for name in names}

    return _found(LIMITS, [os.path.abspath(book.path)], scanned, work)


def judge(limits: Limits = LIMITS) -> Callable[[str, pa.Table], list[bool | None]]:
    """The `evaluate` of `runs.conditions.holds`: a condition may be any SQL, so a process evaluates it."""

    def evaluate(query: str, table: pa.Table) -> list[bool | None]:
        try:
            with Locked(limits, {"fields": table}, seconds=limits.filter_seconds) as db:
                answers: list[bool | None] = db.table(query).column(0).to_pylist()
                return answers
        except Refused as err:
            if err.code != "bad_input":
                raise
            raise BadInput(err.message) from None

    return evaluate


def with_runs(context: ServerContext, rows: Sequence[RunRow], names: Sequence[str], work: Callable[[Locked], T]) -> T:
    """The same for tables of several runs, each row with its run's name in the API, its name and its seed."""

    def scanned(tries: int) -> dict[str, Scan]:
        scans: dict[str, list[Scan]] = {name: [] for name in names}
        for row in rows:
            with context.book(row) as book:
                for name in names:
                    scan = book.scan(name, tries)
                    if scan.queries and _OF_RUN.keys() & set(scan.columns):  # columns with these names are dropped
                        scan = Scan.of_table(book.table(name))
                    scans[name].append(scan)
        for name, of_runs in scans.items():
            alike = confused(column for scan in of_runs for column in scan.columns)
            scans[name] = [_of_run(scan.apart(alike), row) for scan, row in zip(of_runs, rows, strict=True)]
        return {name: _together(of_runs) for name, of_runs in scans.items()}

    return _found(context.limits, [row.folder for row in rows], scanned, work)


def _found(
    limits: Limits, runs: Sequence[str], scanned: Callable[[int], dict[str, Scan]], work: Callable[[Locked], T]
) -> T:
    why = "others are in their place"
    folders = [os.path.join(run, "data") for run in runs]
    known = [*known_tables(runs), *VIEWS_OF_SQL]
    for tries in range(Scan.TRIES):
        scans = scanned(tries)
        try:
            with Locked(limits, scans, folders, known=known) as db:
                answer = work(db)
        except FilesMoved as err:
            why = str(err)
            continue
        if all(scan.is_current() for scan in scans.values()):
            return answer
    raise Damaged(f"{', '.join(folders)[:300]}: files were gone or damaged while they were read: {why}")


_OF_RUN = {"run": pa.string(), "run_name": pa.string(), "run_seed": pa.int64()}


def _of_run(scan: Scan, row: RunRow) -> Scan:
    """The table of one run with columns that identify the run."""
    seed = row.about.get("seed")
    is_number = isinstance(seed, int) and not isinstance(seed, bool) and abs(seed) < 2**63
    cells = {"run": row.key, "run_name": str(row.about.get("name") or ""), "run_seed": seed if is_number else None}
    own = [name for name in scan.columns if name not in cells]
    rest = scan.rest.select([name for name in scan.rest.column_names if name not in cells])
    for name, cell in cells.items():
        rest = rest.append_column(name, pa.array([cell] * rest.num_rows, _OF_RUN[name]))
    constants = f"{literal(row.key)} as run, {literal(str(cells['run_name']))} as run_name, "
    constants += f"{int(seed)}::bigint as run_seed" if is_number and seed is not None else "null::bigint as run_seed"
    queries = [f"select *, {constants} from ({query})" for query in scan.queries]
    return Scan(queries, rest, [*own, *cells], scan.parts, confused=scan.confused)


def _together(scans: Sequence[Scan]) -> Scan:
    rest = pa.concat_tables([scan.rest for scan in scans], promote_options="permissive")
    queries = [query for scan in scans for query in scan.queries]
    columns = list(dict.fromkeys(name for scan in scans for name in scan.columns))
    parts = tuple(part for scan in scans for part in scan.parts)
    return Scan(queries, rest, columns, parts, confused=frozenset().union(*(scan.confused for scan in scans)))


_MOST_RUNS = 100
_CUT = 2_000


class SqlAsk(Ask, kw_only=True):
    """A question in SQL about one run (its tables) or several (the same, with a column run)."""

    runs: list[str]
    query: str
    limit: int = 1_000


class SqlAnswer(Answer, kw_only=True):
    """Rows; more: whether there are more than were asked for."""

    columns: list[TableColumn]
    rows: list[list[Cell]]
    more: bool


def sql(context: ServerContext, ask: SqlAsk) -> SqlAnswer:
    """The answer to a SELECT."""
    if not 1 <= ask.limit <= context.limits.sql_rows:
        raise Refused("too_large", f"limit={ask.limit}: 1 to {context.limits.sql_rows:,} rows")
    if not ask.runs:
        raise BadInput("runs=[]: no run.", "Name at least one")
    if len(ask.runs) > _MOST_RUNS:
        raise Refused("too_large", f"{len(ask.runs)} runs; SQL looks at {_MOST_RUNS} at most")
    rows = context.rows(ask.runs)

    def first(db: Locked) -> tuple[pa.Table, bool]:
        see_views(db, ask.query)
        return db.first(ask.query, ask.limit, context.limits.sql_answer_bytes)

    names = tables_for(ask.query, [row.folder for row in rows])
    if len(rows) == 1:
        answer, more = with_tables(context, rows[0], names, "effective", first)
    else:
        answer, more = with_runs(context, rows, names, first)
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
    ),
]
