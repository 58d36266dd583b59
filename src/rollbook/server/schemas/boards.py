"""Boards: saved choices of charts."""

from __future__ import annotations

from typing import Any

import msgspec

from rollbook.server.schemas.common import Answer, Ask

__all__ = [
    "Board",
    "BoardAsk",
    "BoardName",
    "BoardsAnswer",
    "BoardsAsk",
    "Deleted",
]


class BoardsAsk(Ask, kw_only=True):
    """Nothing to say."""


class Board(msgspec.Struct, kw_only=True):
    """A saved view.

    Attributes:
      state: whatever the page wants to find again.
    """

    name: str
    state: dict[str, Any]
    modified: float = 0.0


class BoardsAnswer(Answer, kw_only=True):
    """All saved views, by name."""

    boards: list[Board]


class BoardAsk(Ask, kw_only=True):
    """A view to save under a name."""

    board: str
    state: dict[str, Any]


class BoardName(Ask, kw_only=True):
    """A saved view."""

    board: str


class Deleted(Answer, kw_only=True):
    """It is gone."""

    name: str
