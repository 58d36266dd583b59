"""Aggregates: one panel per statistic, side by side, with one row per group and its interval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rollbook.plots._paint import Paint, below, measure
from rollbook.plots._shapes import Bars, short, shorts
from rollbook.plots._style import Style

TYPE_CHECKING = False
if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROOM = 1.6
"""Minimum width of a panel in inches."""


def draw(figure: Figure, data: Sequence[Bars], style: Style) -> None:
    """Draw panels that share their rows; a narrow figure has two columns of panels."""
    panels = [panel for panel in data if panel.labels]
    if not panels:
        Paint(figure.subplots(), style).empty("no group has a score")
        return
    n = len(panels[0].labels)
    wide = len(panels) if figure.get_figwidth() >= _ROOM * len(panels) else min(2, len(panels))
    tall = -(-len(panels) // wide)
    figure.set_figheight(tall * (0.75 + 0.24 * n))
    grid = figure.subplots(tall, wide, squeeze=False, sharey=True)
    longest = max(10, int(figure.get_figwidth() * 4))
    for index, (axes, panel) in enumerate(zip(grid.flat, panels, strict=False)):
        _panel(axes, panel, style)
        if index % wide == 0:
            axes.set_yticklabels(shorts(panel.labels, longest))
        else:
            axes.tick_params(labelleft=False)
    for axes in list(grid.flat)[len(panels) :]:
        axes.set_visible(False)
    below(figure, [], tuple(dict.fromkeys(remark for panel in panels for remark in panel.remarks)), style)


def _panel(axes: Axes, panel: Bars, style: Style) -> None:
    rows = np.arange(len(panel.labels))[::-1]
    axes.grid(False, axis="y")
    axes.use_sticky_edges = False  # else a bar would begin at the frame
    axes.margins(x=0.06)
    for index, row in enumerate(rows):
        colour = style.colour(panel.looks[index] if panel.looks else index)
        low, high, value = panel.low[index], panel.high[index], panel.values[index]
        if np.isfinite(low) and np.isfinite(high):
            axes.barh(row, high - low, left=low, height=0.62, color=colour, alpha=0.55, linewidth=0)
        if np.isfinite(value):
            axes.plot([value] * 2, [row - 0.36, row + 0.36], color=style.ink, linewidth=1.6)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_yticks(rows)
    axes.set_title(short(panel.title, 40), fontsize=9)
    axes.set_xlabel(short(panel.axis, 40), fontsize=8)
    axes.locator_params(axis="x", nbins=4)
    axes.xaxis.set_major_formatter(lambda value, _position: measure(value, max(map(abs, axes.get_xlim()))))
    axes.tick_params(axis="x", labelsize=7.5)
    axes.tick_params(axis="y", length=0)
