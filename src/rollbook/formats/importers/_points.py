"""Tools that store one value at a time: the values of one moment are one row."""

from __future__ import annotations

from rollbook.protocols import Row
from rollbook.schema.counters import clocks_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any


def rows_of(points: Iterable[tuple[float, Mapping[str, int], str, Any]]) -> Iterator[Row]:
    """Points (unix seconds, clocks, key, value) as rows, in their order. A second point of one key begins another row.

    Counters among the values are clocks of the row, unless the points themselves have these.
    """
    values: dict[str, Any] = {}
    at: tuple[float, Mapping[str, int]] | None = None
    for moment, clocks, key, value in points:
        if at != (moment, clocks) or key in values:
            if at is not None:
                yield Row(at[0], {**clocks_of(values), **at[1]}, values)
            at, values = (moment, clocks), {}
        values[key] = value
    if at is not None:
        yield Row(at[0], {**clocks_of(values), **at[1]}, values)
