"""The step of a row, for destinations that have one axis only."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rollbook.protocols import Row

__all__ = ["step_of"]


def step_of(row: Row, x: str, clocks: Sequence[str]) -> tuple[int, bool]:
    """Where a row stands on the axis `x`, and whether that is what it says itself.

    A row that does not know `x` stands at the first clock it knows, in the order of `clocks`, else at its row number.
    With no `x`, a row that knows the first of `clocks` stands on the axis.
    """
    reading = row.clocks.get(x)
    if reading is not None:
        return reading, True
    for clock in (*clocks, *row.clocks):
        if clock in row.clocks:
            return row.clocks[clock], not x and (not clocks or clock == clocks[0])
    return row.seq, False
