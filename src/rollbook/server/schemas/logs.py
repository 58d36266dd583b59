"""Texts a run logged, and the lines its processes printed."""

from __future__ import annotations

from typing import Literal

import msgspec

from rollbook.server.schemas.common import Answer, Num, OfRun

__all__ = [
    "LogAnswer",
    "LogAsk",
    "LogFile",
    "LogLine",
    "LogsAnswer",
    "TextAnswer",
    "TextAsk",
    "TextLine",
]


class TextLine(msgspec.Struct, kw_only=True):
    """A logged text or note."""

    time: float | None
    key: str
    text: str
    x: Num
    attempt: int | None = None


class LogLine(msgspec.Struct, kw_only=True):
    """A line of a log file.

    Attributes:
      offset: the byte that it begins at.
      time: as the line says it, or null.
    """

    offset: int
    text: str
    time: float | None


class LogFile(msgspec.Struct, kw_only=True):
    """A log that can be read."""

    name: str
    label: str
    bytes: int
    kind: Literal["file", "text"]


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


class TextAsk(OfRun, kw_only=True):
    """Which texts."""

    key: str | None = None
    search: str | None = None
    x: str | None = None
    offset: int = 0
    limit: int = 200


class TextAnswer(Answer, kw_only=True):
    """A window of the texts, newest first."""

    total: int
    keys: list[str]
    rows: list[TextLine]
