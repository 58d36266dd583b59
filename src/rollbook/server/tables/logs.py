"""Text logs of a run: which there are, parts of them, and new lines."""

from __future__ import annotations

import os
from typing import Any

import msgspec

from rollbook.book.questions import (
    Log,
    LogFile,
    LogLine,
    LogPart,
    asked_log,
    lines_from,
    log_files,
    log_named,
    part_of_log,
)
from rollbook.errors import BadInput
from rollbook.server.asking import of_one_run, shape_of_one
from rollbook.server.shared.catalogue import RunRow
from rollbook.server.shared.endpoint import Endpoint
from rollbook.server.shared.shapes import Answer, Refused, RunAsk, words_of
from rollbook.server.shared.state import ServerContext


class LogsAnswer(Answer, kw_only=True):
    """The logs of a run."""

    logs: list[LogFile]


LogAsk = shape_of_one(
    Log, ("start", int | None, msgspec.field(name="from", default=None)), ("before", int | None, None)
)
"""A part of a log: lines from the byte `start` on, or those that end at the byte `before`; else its end."""


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


def log(context: ServerContext, ask: Any) -> LogAnswer:
    """Lines of a log."""
    question, folder = of_one_run(ask, Log), context.row(ask.run).folder
    if question.lines > _MOST_LINES:
        raise Refused("too_large", f"lines={question.lines}: at most {_MOST_LINES:,}")
    try:
        name = log_named(folder, question.name).name
    except BadInput as err:
        words = words_of(err)
        raise Refused("not_found", words.message, words.hint) from None
    if ask.start is None and ask.before is None:
        part = asked_log(question, folder)
    else:
        path = os.path.join(folder, *name.split("/"))
        part = part_of_log(path, start=ask.start, before=ask.before, lines=question.lines, search=question.search)
    return LogAnswer(name=name, lines=part.lines, start=part.start, end=part.end, size=part.size)


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
