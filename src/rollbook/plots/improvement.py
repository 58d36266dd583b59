"""Probability of improvement: for each pair of groups, how often a seed of one scores more than one of the other."""

from __future__ import annotations

from rollbook.plots import intervals
from rollbook.plots._shapes import Bars
from rollbook.plots._style import Style

TYPE_CHECKING = False
if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw"]


def draw(figure: Figure, data: Bars, style: Style) -> None:
    """Draw a row a pair on an axis from 0 to 1; the broken line says that neither is better."""
    intervals.draw(figure, data, style)
