"""Stages in sequence over wall time: one row per stage, one bar per call."""

from __future__ import annotations

import numpy as np

from rollbook.plots._paint import Paint, below
from rollbook.plots._shapes import Spans, shorts
from rollbook.plots._style import Style

TYPE_CHECKING = False
if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_ROWS = 40


def draw(figure: Figure, data: Spans, style: Style) -> None:
    """Draw spans; a call shorter than a pixel is a stroke, so that none disappears."""
    rows = list(dict.fromkeys(data.names))
    shown = rows[:_MOST_ROWS]
    if shown:
        figure.set_size_inches(figure.get_figwidth(), 1.0 + 0.3 * max(3, len(shown)))
    axes = figure.subplots()
    paint = Paint(axes, style)
    paint.labels(data.title, "seconds")
    if not shown:
        paint.empty("no stage was timed")
        return
    names = np.array([rows.index(name) for name in data.names])
    start, long = np.asarray(data.start, dtype=np.float64), np.asarray(data.seconds, dtype=np.float64)
    good = np.isfinite(start) & np.isfinite(long) & (long >= 0)
    for row, _name in enumerate(shown):
        mine = (names == row) & good
        colour = style.colour(row)
        axes.broken_barh(
            list(zip(start[mine], long[mine], strict=True)),
            (row - 0.36, 0.72),
            facecolors=colour,
            edgecolors=colour,
            linewidth=0.5,
        )
    axes.set_yticks(range(len(shown)))
    axes.set_yticklabels(
        [
            "  " * name.count("/") + word
            for name, word in zip(shown, shorts([name.rpartition("/")[2] for name in shown], 30), strict=True)
        ]
    )
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.grid(False, axis="y")
    paint.marks(data.marks)
    remarks = list(data.remarks)
    if len(rows) > len(shown):
        remarks.append(f"{len(rows) - len(shown)} more stages are not shown.")
    if not good.all():
        remarks.append(f"{int((~good).sum())} calls have no finite time.")
    below(figure, paint.entries, tuple(remarks), style)
