"""DuckDB in this process. To open one takes 15 ms of processor time, a cursor of it one: tables in memory share one.

A fork has none of the threads of a DuckDB, and waits for their end for ever if it removes one. So it asks in one of its
own, and keeps all that it inherits.
"""

from __future__ import annotations

import functools
import os
import weakref

from rollbook.system.guard import tolerating
from rollbook.system.optional import need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def cursor(why: str) -> Any:
    """A connection with views and registered tables of its own, for one thread at a time.

    It reaches no file, no network and no variable of Python; its settings are fixed, and times are in UTC.

    Args:
      why: what needs it, for the error.
    Raises:
      MissingExtra: DuckDB is not installed.
    """
    need("duckdb", extra="sql", why=why)
    return _shared(os.getpid()).cursor()


def opened(why: str, *, unlocked: bool = False, folder: str = "", **config: str | int) -> Any:
    """A DuckDB of its own, with times in UTC.

    Args:
      why: what needs it, for the error.
      unlocked: it may do all that DuckDB can.
      folder: otherwise the only folder whose files may be read; "" for none.
      config: further settings.
    Raises:
      MissingExtra: DuckDB is not installed.
    """
    duckdb = need("duckdb", extra="sql", why=why)
    connection = duckdb.connect(config={"python_enable_replacements": unlocked, **config})
    connection.execute("set global TimeZone = 'UTC'")
    with tolerating(duckdb.Error):  # a notebook without ipywidgets: no bar, no setting
        connection.execute("set enable_progress_bar = false")  # DuckDB writes it to stdout
    if not unlocked:
        if folder:
            quoted = folder.replace("'", "''")
            connection.execute(f"set allowed_directories = ['{quoted}/']")
        connection.execute("set enable_external_access = false")
        connection.execute("set lock_configuration = true")
    _open.add(connection)
    return connection


@functools.cache
def _shared(process: int) -> Any:
    return opened("sql()")


_open: weakref.WeakSet[Any] = weakref.WeakSet()
_inherited: list[Any] = []


def _keep_them() -> None:
    _inherited[:] = _open


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_keep_them, after_in_parent=_inherited.clear)
