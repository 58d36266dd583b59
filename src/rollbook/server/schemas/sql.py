"""A question in SQL."""

from __future__ import annotations

from rollbook.server.schemas.common import Answer, Ask, Cell, Column

__all__ = ["SqlAnswer", "SqlAsk"]


class SqlAsk(Ask, kw_only=True):
    """A question in SQL about one run (its tables) or several (the same, with a column run)."""

    runs: list[str]
    query: str
    limit: int = 1_000


class SqlAnswer(Answer, kw_only=True):
    """Rows; more: whether there are more than were asked for."""

    columns: list[Column]
    rows: list[list[Cell]]
    more: bool
