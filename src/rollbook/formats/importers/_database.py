"""SQLite databases of other tools, which may be written at the same time and are never changed by reading."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path
from urllib.parse import quote

from rollbook.protocols import ForeignRun

__all__ = ["damaged", "has_tables", "opened", "with_log"]


def opened(file: Path) -> sqlite3.Connection:
    """A read-only connection that also sees the database's log.

    A database without a log file is opened as immutable. Otherwise SQLite would create files next to a database in WAL
    mode.
    """
    name = quote(os.path.abspath(file))
    alone = not os.path.exists(f"{file}-wal")
    return sqlite3.connect(f"file:{name}?mode=ro{'&immutable=1' if alone else ''}", uri=True, timeout=5.0)


def with_log(file: Path) -> list[Path]:
    """A database and its log, if it has one: if neither changes, there is no new data."""
    return [path for path in (file, Path(f"{file}-wal")) if path.exists()]


def has_tables(file: Path, wanted: set[str], unwanted: frozenset[str] | set[str] = frozenset()) -> bool:
    """Whether it is a database with those tables, and none of the others."""
    try:
        with contextlib.closing(opened(file)) as database:
            tables = {name for (name,) in database.execute("select name from sqlite_master where type = 'table'")}
    except sqlite3.Error:
        return False
    return wanted <= tables and not unwanted & tables


def damaged(file: Path) -> ForeignRun:
    """The result for an unreadable database: a run without rows that reports it."""
    run = ForeignRun(file.stem, files=with_log(file))

    def rows() -> tuple[()]:
        run.left_out.clear()
        run.leave_out("databases that cannot be read")
        return ()

    run.rows = rows
    return run
