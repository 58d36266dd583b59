"""Curves: lines along training with their bands, single runs, abandoned attempts, and marks."""

from __future__ import annotations

from rollbook.plots._paint import Paint, below
from rollbook.plots._shapes import Panel
from rollbook.plots._style import Style

TYPE_CHECKING = False
if TYPE_CHECKING:
    from matplotlib.figure import Figure

Limits = tuple[float | None, float | None]


def draw(figure: Figure, data: Panel, style: Style, *, limits: Limits | None = None, log: bool = False) -> None:
    """Draw a panel.

    Args:
      limits: (lowest, highest) shown; None for the extremes. Values outside get a mark at the edge.
      log: a logarithmic y axis; values that are not positive count as outside and are reported.
    """
    paint = Paint(figure.subplots(), style)
    paint_panel(paint, data, limits=limits, log=log)
    below(figure, paint.entries, data.remarks, style)


def paint_panel(
    paint: Paint, data: Panel, *, limits: Limits | None = None, log: bool = False, first_colour: int = 0
) -> None:
    """Draw a panel on existing axes; the legend's entries are in `paint.entries`."""
    style = paint.style
    paint.labels(data.title, data.axis)
    if log:
        paint.axes.set_yscale("log")
    if not any(len(line.x) for line in data.lines):
        paint.empty("no run has a row of it")
        return
    for ghost in data.ghosts:
        handle = paint.line(ghost.x, ghost.y, style.ink_3, width=1.1, dashes=(0, (2.5, 1.2)), zorder=1.5)
        paint.entries.append((handle, ghost.label or "abandoned by a restart"))
    many, several = len(data.lines) > 12, len(data.lines) > 3
    for index, line in enumerate(data.lines, first_colour):
        look = index if line.look is None else line.look
        colour, dashes = style.colour(look), style.dashes(look)
        if line.least is not None and line.most is not None:
            paint.between(line.x, line.least, line.most, colour, 0.05 if many else 0.10, steps=line.steps)
        if line.low is not None and line.high is not None:
            paint.between(
                line.x, line.low, line.high, colour, 0.08 if many else 0.13 if several else 0.22, steps=line.steps
            )
        for seed in line.seeds:
            paint.line(seed.x, seed.y, colour, width=0.8, dashes=dashes, alpha=0.55)
        handle = paint.line(
            line.x,
            line.y,
            colour,
            dashes=dashes,
            width=1.2 if many else 1.8,
            zorder=3,
            drawstyle="steps-post" if line.steps else "default",
        )
        paint.entries.append((handle, line.label))
        if line.raw is not None:
            paint.not_finite(line.raw.x, line.raw.y)
    paint.marks(data.marks)
    paint.finish(limits)
