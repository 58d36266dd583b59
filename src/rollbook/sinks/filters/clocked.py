"""Clocked: give clocks to a sink as values."""

from __future__ import annotations

from rollbook.sinks.filters._base import Filter, with_values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rollbook.protocols import Row, Sink


class Clocked(Filter):
    """Adds the clocks that a row knows to its values, after them. A value with the same key stays unchanged.

    Args:
      to: the sink behind.
      clocks: which; None for all that the row knows.
      prefix: put before the clocks' names: "clock/" gives clock/env_step.
    """

    name = "clocked"

    def __init__(self, to: Sink, clocks: Sequence[str] | None = None, *, prefix: str = "") -> None:
        super().__init__(to, clocks=None if clocks is None else list(clocks), prefix=prefix)
        self._clocks = None if clocks is None else tuple(clocks)
        self._prefix = prefix

    def _row(self, row: Row) -> Iterable[Row]:
        values = dict(row.values)
        for clock in row.clocks if self._clocks is None else self._clocks:
            if clock in row.clocks:
                values.setdefault(self._prefix + clock, row.clocks[clock])
        return (with_values(row, values),)
