"""Shares from 0 to 1: of scores above each threshold, of seeds that reached a score, of new samples."""

from __future__ import annotations

from rollbook.plots._paint import Paint, below
from rollbook.plots._shapes import Panel
from rollbook.plots._style import Style
from rollbook.plots.curves import paint_panel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(figure: Figure, data: Panel, style: Style) -> None:
    """Draw shares from 0 to 1 over thresholds or along training; a band is exact for this number of seeds."""
    paint = Paint(figure.subplots(), style)
    paint_panel(paint, data)
    if data.lines:
        paint.axes.set_ylim(-0.03, 1.03)
        paint.axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0 %", "25 %", "50 %", "75 %", "100 %"])
    below(figure, paint.entries, data.remarks, style)
