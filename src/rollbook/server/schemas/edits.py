"""What people change about runs."""

from __future__ import annotations

import msgspec

from rollbook.server.schemas.common import Answer, Ask
from rollbook.server.schemas.runs import TableRow

__all__ = [
    "EditAnswer",
    "EditAsk",
    "Fields",
    "LeftOut",
]


class Fields(Ask, kw_only=True):
    """What to set; what is left out stays."""

    name: str | None = None
    notes: str | None = None
    tags: list[str] | None = None
    group: str | None = None
    archived: bool | None = None


class EditAsk(Ask, kw_only=True):
    """Changes to the manifests of some runs."""

    runs: list[str]
    set: Fields | None = None
    add_tags: list[str] = []
    remove_tags: list[str] = []


class LeftOut(msgspec.Struct, kw_only=True):
    """A run that was left out, and why."""

    run: str
    why: str


class EditAnswer(Answer, kw_only=True):
    """The runs as they are now."""

    runs: list[TableRow]
    refused: list[LeftOut]
