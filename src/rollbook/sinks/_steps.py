"""The step of a row, for destinations that have one axis only."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rollbook.protocols import Row


def step_of(row: Row, x: str, clocks: Sequence[str]) -> tuple[int, bool]:
    """The position of a row on the axis `x`, and whether the row has that clock.

    A row without `x` uses the first clock it knows, in the order of `clocks`, else its row number. With no `x`, a row
    that knows the first of `clocks` counts as having the axis.
    """
    reading = row.clocks.get(x)
    if reading is not None:
        return reading, True
    for clock in (*clocks, *row.clocks):
        if clock in row.clocks:
            return row.clocks[clock], not x and (not clocks or clock == clocks[0])
    return row.seq, False
