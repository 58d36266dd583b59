"""Files, media, tables and configuration of a run."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from rollbook.server.schemas.common import Answer, Media, OfRun, Row
from rollbook.server.schemas.runs import Change

__all__ = [
    "ConfigAnswer",
    "ConfigAttempt",
    "FileAsk",
    "FileEntry",
    "FilesAnswer",
    "MediaAnswer",
    "MediaAsk",
    "RunTableAsk",
]


class FileEntry(msgspec.Struct, kw_only=True):
    """A file of a run."""

    path: str
    bytes: int
    modified: float
    kind: Literal["checkpoint", "config", "log", "media", "data", "other"]


class FilesAnswer(Answer, kw_only=True):
    """The files of a run and its checkpoints.

    Attributes:
      bytes: of all files; truncated: more files than are listed.
    """

    files: list[FileEntry]
    checkpoints: list[Row]
    bytes: int
    truncated: bool


class FileAsk(OfRun, kw_only=True):
    """A file by its path inside the run."""

    path: str


class MediaAsk(OfRun, kw_only=True):
    """Which pictures and films."""

    kind: str | None = None
    key: str | None = None
    x: str | None = None
    offset: int = 0
    limit: int = 100


class MediaAnswer(Answer, kw_only=True):
    """A window of the pictures and films, newest first."""

    total: int
    keys: list[str]
    media: list[Media]


class RunTableAsk(OfRun, kw_only=True):
    """A window of any table."""

    table: str
    offset: int = 0
    limit: int = 100
    attempts: Literal["effective", "all"] = "effective"


class ConfigAttempt(msgspec.Struct, kw_only=True):
    """What one life of a run was started with, and what that changed."""

    n: int
    started: float | None
    config: dict[str, Any]
    changes: list[Change]
    git: dict[str, Any] | None
    packages: dict[str, Any] | None


class ConfigAnswer(Answer, kw_only=True):
    """The configuration of each attempt, oldest first."""

    attempts: list[ConfigAttempt]
