"""The settings of a server, and the limits of a request."""

from __future__ import annotations

import ipaddress
import secrets
from dataclasses import dataclass, field
from pathlib import Path

AGENTS = "/mcp"
"""The path of the tools for agents."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a request and of what the server holds.

    Attributes:
      body_bytes, board_bytes: of a request.
      runs, series, points, rows: how many of each one request may ask for.
      total_points: of all series of a request together.
      seconds: how long an answer may take; filter_seconds: a condition on runs; sql_seconds, sql_bytes,
        sql_rows: how long an SQL query may take, how much memory, and how many rows it returns.
      answer_bytes: of rows that an SQL query returns; sql_answer_bytes: for the SQL page, which shows the first ones.
      at_work, waiting: requests at work, and waiting; questions: SQL queries, in addition to those.
      sockets: live connections.
      open_books: readers that are kept open.
      cache_bytes: of finished answers that are kept; group_bytes: of rows behind curves of groups.
      process_bytes: an SQL process that once took more is not used again.
      kept_runs: the rows of more runs than this are kept on disk for the next server.
      helpers: processes that help the server to read the runs of a large group; None: as idle cores allow.
      draft_points: of all runs of a group; below this, full bands are ready as soon as preliminary ones.
      zipped_curves, zipped_points: from this many on (short arrays with large headers; a third of a megabyte), series
        are compressed. The first charts are not: compression would delay them.
      whole_rows: larger tables are queried, not kept: each row may be a long text.
      first_runs: the table comes with the keys of at most this many runs, spread over the groups.
      many_runs: if more runs than this are unread, the first curve is that of `first_runs` of them: reading these takes
        a fifth of a second, reading a thousand takes seconds.
    """

    body_bytes: int = 256 * 1024
    board_bytes: int = 1024 * 1024
    runs: int = 2_000
    series: int = 5_000
    points: int = 20_000
    total_points: int = 4_000_000
    rows: int = 1_000
    seconds: float = 60.0
    sql_seconds: float = 20.0
    sql_bytes: int = 1 << 30
    sql_rows: int = 10_000
    filter_seconds: float = 5.0
    answer_bytes: int = 256 << 20
    sql_answer_bytes: int = 16 << 20
    at_work: int = 6
    waiting: int = 200
    questions: int = 2
    sockets: int = 64
    open_books: int = 1_024
    cache_bytes: int = 64 << 20
    group_bytes: int = 192 << 20
    process_bytes: int = 384 << 20
    kept_runs: int = 64
    helpers: int | None = None
    draft_points: int = 10_000
    zipped_curves: int = 400
    zipped_points: int = 25_000
    whole_rows: int = 2_000
    many_runs: int = 400
    first_runs: int = 64


LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """How a server was started.

    Attributes:
      roots: folders of runs, single runs, or addresses of stores.
      host, port: where it listens; port 0 takes a free one.
      token: what a browser must send; None: nothing, which is only right on loopback.
      edit_token: what a change must send; the page gets it from the server, other sites cannot.
      notebook: whether pages of this machine may embed the page.
      writable: whether tags, notes and boards may be changed.
      hosts: further accepted names of the server, such as that of a proxy.
      page: the folder of the built page; None: the one inside the package.
      title: the displayed location of the runs; "": their roots.
      waits: whether to read all runs of other tools first; else they appear as they are read.
      limits: see `Limits`.
    """

    roots: tuple[str, ...]
    host: str = "127.0.0.1"
    port: int = 0
    token: str | None = None
    edit_token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    notebook: bool = False
    writable: bool = True
    hosts: frozenset[str] = frozenset()
    page: Path | None = None
    title: str = ""
    waits: bool = False
    limits: Limits = LIMITS


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens on `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
