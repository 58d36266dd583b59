"""Episodes as points: return along training, by how each episode ended."""

from __future__ import annotations

import numpy as np

from rollbook.plots._paint import Paint, below
from rollbook.plots._shapes import Dots
from rollbook.plots._style import Style

TYPE_CHECKING = False
if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MARKERS = ("o", "^", "s", "D", "v", "P", "X")


def draw(figure: Figure, data: Dots, style: Style, *, limits: tuple[float | None, float | None] | None = None) -> None:
    """Draw points of several kinds.

    Args:
      limits: lowest and highest value shown; values outside get a mark at the edge.
    """
    paint = Paint(figure.subplots(), style)
    paint.labels(data.title, data.axis, data.up)
    x, y = np.asarray(data.x, dtype=np.float64), np.asarray(data.y, dtype=np.float64)
    if not len(x):
        paint.empty("no episode was recorded")
        return
    n = max(1, int((np.isfinite(x) & np.isfinite(y)).sum()))
    size, alpha = (4.5, 0.75) if n < 500 else (3.0, 0.5) if n < 5_000 else (1.8, 0.35)
    for index, kind in enumerate(data.kinds):
        mine = (np.asarray(data.kind) == index) & np.isfinite(x)
        if not mine.any():
            continue
        colour, marker = style.colour(index), _MARKERS[index % len(_MARKERS)]
        good = mine & np.isfinite(y)
        (handle,) = paint.axes.plot(
            x[good],
            y[good],
            marker,
            color=colour,
            markersize=size,
            alpha=alpha,
            markeredgewidth=0,
            rasterized=n > 20_000,
        )
        paint.dots(x[good], y[good])
        paint.not_finite(x[mine], y[mine])
        paint.entries.append((handle, f"{kind} ({int(mine.sum()):,})"))
    paint.marks(data.marks)
    paint.finish(limits)
    below(figure, paint.entries, data.remarks, style)
