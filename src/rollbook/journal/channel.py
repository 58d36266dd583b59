"""The target of a log function."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Shape: TypeAlias = tuple[int, tuple[str, ...], str, tuple[str, ...]]
    """Identifies the rows of one stream: channel id, full keys, type codes, deferred keys."""


class Channel:
    """The run itself or one of its scopes, as seen by the journal.

    Attributes:
      id: unique within a writer's attempt; number of the key cache.
      current: the current clocks, in the writer's order. Scopes of a run share one list; a scope opened at a checkpoint
        has its own.
    """

    __slots__ = ("at", "current", "id", "prefix", "scope", "table")

    def __init__(self, id: int, table: str, prefix: str, scope: str, at: str, current: list[int]) -> None:
        self.id, self.table, self.prefix, self.scope, self.at, self.current = id, table, prefix, scope, at, current
