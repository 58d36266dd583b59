"""Probability of improvement: for each pair of groups, how often a seed of one scores higher than one of the other."""

from __future__ import annotations

from rollbook.plots import intervals
from rollbook.plots._shapes import Bars
from rollbook.plots._style import Style

TYPE_CHECKING = False
if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(figure: Figure, data: Bars, style: Style) -> None:
    """Draw one row per pair on an axis from 0 to 1; the dashed line means that neither is better."""
    intervals.draw(figure, data, style)
