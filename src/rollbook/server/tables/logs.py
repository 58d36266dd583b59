"""Text logs of a run: which there are, parts of them, and new lines."""

from __future__ import annotations

import os

import msgspec

from rollbook.book.questions import LogFile, LogLine, LogPart, lines_from, log_files, part_of_log
from rollbook.server.shared.catalogue import RunRow
from rollbook.server.shared.endpoint import Endpoint
from rollbook.server.shared.shapes import Answer, OfRun, Refused, RunAsk
from rollbook.server.shared.state import ServerContext


class LogsAnswer(Answer, kw_only=True):
    """The logs of a run."""

    logs: list[LogFile]


class LogAsk(OfRun, kw_only=True):
    """A part of a log; its end without a place.

    Attributes:
      start: lines from this byte on; before: the lines that end there; near: those around a moment (unix seconds).
      search: only lines with these words.
    """

    name: str
    start: int | None = msgspec.field(name="from", default=None)
    before: int | None = None
    near: float | None = None
    lines: int = 200
    search: str | None = None


class LogAnswer(Answer, kw_only=True):
    """Lines of a log.

    Attributes:
      start, end: the bytes that were looked at; size: of the file.
    """

    name: str
    lines: list[LogLine]
    start: int
    end: int
    size: int


_MOST_LINES = 2_000


def logs(context: ServerContext, ask: RunAsk) -> LogsAnswer:
    """The logs of a run."""
    return LogsAnswer(logs=log_files(context.row(ask.run).folder))


def log_path(row: RunRow, name: str) -> str:
    """The file of a log. Only listed files can be read by name.

    Raises:
      Refused: there is no such log.
    """
    if name not in {entry.name for entry in log_files(row.folder)}:
        raise Refused("not_found", f"the run has no log {name!r:.100}", "GET api/runs/{run}/logs lists them.")
    return os.path.join(row.folder, *name.split("/"))


def log(context: ServerContext, ask: LogAsk) -> LogAnswer:
    """Lines of a log."""
    if not 1 <= ask.lines <= _MOST_LINES:
        raise Refused("too_large", f"lines={ask.lines}: 1 to {_MOST_LINES:,}")
    path = log_path(context.row(ask.run), ask.name)
    part = part_of_log(
        path, start=ask.start, before=ask.before, near=ask.near, lines=ask.lines, search=ask.search or ""
    )
    return LogAnswer(name=ask.name, lines=part.lines, start=part.start, end=part.end, size=part.size)


def new_lines(path: str, start: int) -> tuple[LogPart, LogLine | None]:
    """The lines that ended after a byte, and the one that is still being written."""
    return lines_from(path, start, _MOST_LINES)


def end_of(path: str) -> LogPart:
    """The last lines."""
    return part_of_log(path)


ENDPOINTS = [
    Endpoint("GET", "/api/runs/{run}/logs", RunAsk, LogsAnswer, logs, "The logs of a run"),
    Endpoint("GET", "/api/runs/{run}/log", LogAsk, LogAnswer, log, "Lines of a log"),
]
