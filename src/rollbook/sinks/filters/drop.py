"""DropNone and DropNonFinite: remove values that a sink cannot use."""

from __future__ import annotations

import math

from rollbook.sinks.filters._base import Filter, with_values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from rollbook.protocols import Row, Sink


class _Drop(Filter):
    """Drops single values, and rows without any values left."""

    def __init__(self, to: Sink) -> None:
        super().__init__(to)

    def _row(self, row: Row) -> Iterable[Row]:
        wanted = {key: value for key, value in row.values.items() if not self._unwanted(value)}
        if len(wanted) == len(row.values):
            return (row,)
        return (with_values(row, wanted),) if wanted else ()

    def _unwanted(self, value: object) -> bool:
        raise TypeError(f"{type(self).__name__} does not say what it drops")


class DropNone(_Drop):
    """Drops values that are None. NaN is a value and stays.

    Args:
      to: the sink behind.
    """

    name = "drop_none"

    def _unwanted(self, value: object) -> bool:
        return value is None


class DropNonFinite(_Drop):
    """Drops NaN and infinities, for sinks that would refuse the whole row.

    Args:
      to: the sink behind.
    """

    name = "drop_non_finite"

    def _unwanted(self, value: object) -> bool:
        return isinstance(value, float) and not math.isfinite(value)
