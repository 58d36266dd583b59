"""SQLite databases of other tools, which may be written at the same time and are never changed by reading."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
from pathlib import Path
from urllib.parse import quote

from rollbook.protocols import ForeignRun

UNREADABLE = (sqlite3.Error, UnicodeDecodeError)
"""What a damaged database raises: sqlite3 decodes the names of columns, and the text of its own errors, strictly."""

_MAGIC = b"SQLite format 3\0"
_BEHIND = ("-wal", "-journal")
_MODE_AT, _IN_WAL_MODE = 18, b"\2"
"""The byte of a database's header that tells whether it keeps its transactions in a `-wal` file."""

_WAIT_S = 0.25
_TRIES = 5


def opened(file: Path) -> sqlite3.Connection:
    """A read-only connection that sees the last commit. Nothing of the tool's files changes, and no file appears.

    A database without a writer is read where it is, as is one whose writer allows it. Otherwise (a writer holds it
    locked, or was killed within a transaction and left its `-journal` or `-wal`) a temporary copy of the files is read,
    in which SQLite undoes the unfinished transaction.

    Raises:
      sqlite3.Error: it is no database, or it changed during each attempt to copy it.
    """
    there = [behind for behind in _BEHIND if _size(f"{file}{behind}")]
    with contextlib.suppress(OSError), open(file, "rb") as stream:
        stream.seek(_MODE_AT)
        if stream.read(1) == _IN_WAL_MODE and not there:
            return _read_only(file, "immutable=1")  # otherwise SQLite would create the files of the log
    if "-wal" not in there or os.path.exists(f"{file}-shm"):
        with contextlib.suppress(sqlite3.OperationalError):
            return _read_only(file, "readonly_shm=1")
    return _copied(file)


def with_log(file: Path) -> list[Path]:
    """A database and its log, if it has one: if neither changes, there is no new data."""
    return [path for path in (file, Path(f"{file}-wal")) if path.exists()]


def has_tables(file: Path, wanted: set[str], unwanted: frozenset[str] | set[str] = frozenset()) -> bool:
    """Whether it is a database with those tables, and none of the others."""
    tables = _tables(file)
    return tables is not None and wanted <= tables and not unwanted & tables


def is_unlisted(file: Path) -> bool:
    """Whether it begins as an SQLite database does, and not even its tables can be listed."""
    with contextlib.suppress(OSError), open(file, "rb") as stream:
        return stream.read(len(_MAGIC)) == _MAGIC and _tables(file) is None
    return False


def _tables(file: Path) -> set[str] | None:
    """The names of its tables; None if they cannot be listed."""
    try:
        with contextlib.closing(opened(file)) as database:
            return {str(name) for (name,) in database.execute("select name from sqlite_master where type = 'table'")}
    except UNREADABLE:
        return None


def damaged(file: Path) -> ForeignRun:
    """The result for an unreadable database: a run without rows that reports it."""
    run = ForeignRun(file.stem, files=with_log(file))

    def rows() -> tuple[()]:
        run.left_out.clear()
        run.lose("databases that cannot be read")
        return ()

    run.rows = rows
    return run


class _Copy(sqlite3.Connection):
    """A connection to a copy, which closing removes."""

    folder = ""

    def close(self) -> None:
        super().close()
        shutil.rmtree(self.folder, ignore_errors=True)


def _read_only(file: Path, how: str) -> sqlite3.Connection:
    address = f"file:{quote(os.path.abspath(file))}?mode=ro&{how}"
    return _usable(sqlite3.connect(address, uri=True, timeout=_WAIT_S))


def _copied(file: Path) -> sqlite3.Connection:
    for _try in range(_TRIES):
        folder = tempfile.mkdtemp(prefix="rollbook-")
        try:
            before = _stamps(file)
            for name in before:
                shutil.copyfile(name, os.path.join(folder, os.path.basename(name)))
            if _stamps(file) == before:
                copy = sqlite3.connect(os.path.join(folder, file.name), timeout=_WAIT_S, factory=_Copy)
                copy.folder, folder = folder, ""
                return _usable(copy)
        except OSError:  # the writer ended its transaction
            continue
        finally:
            if folder:
                shutil.rmtree(folder, ignore_errors=True)
    raise sqlite3.OperationalError(f"{file} is being written at this moment: try again")


def _usable(database: sqlite3.Connection) -> sqlite3.Connection:
    """The connection, if a first question gets an answer.

    Raises:
      sqlite3.Error: it does not; the connection is closed.
    """
    database.text_factory = lambda data: data.decode("utf-8", "backslashreplace")
    try:
        database.execute("select count(*) from sqlite_master").fetchone()
    except BaseException:
        database.close()
        raise
    return database


def _stamps(file: Path) -> dict[str, tuple[int, int]]:
    """The files of the database that exist -> size and time."""
    stamps = {}
    for name in (str(file), *(f"{file}{behind}" for behind in _BEHIND)):
        with contextlib.suppress(OSError):
            stat = os.stat(name)
            stamps[name] = (stat.st_size, stat.st_mtime_ns)
    return stamps


def _size(name: str) -> int:
    try:
        return os.stat(name).st_size
    except OSError:
        return 0
