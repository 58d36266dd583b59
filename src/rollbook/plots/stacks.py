"""Parts of a whole along training as stacked areas, positive ones upwards: time per stage, components of the reward."""

from __future__ import annotations

from typing import Any

import numpy as np

from rollbook.plots._paint import Paint, below
from rollbook.plots._shapes import Stack
from rollbook.plots._style import Style

TYPE_CHECKING = False
if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rollbook.values.array_types import NDArray

_MOST_PARTS = 12


def draw(figure: Figure, data: Stack, style: Style, *, share: bool = False) -> None:
    """Draw the seconds of each stage without its nested stages, or the components of the return.

    Args:
      share: show shares of the sum of absolute values instead.
    """
    paint = Paint(figure.subplots(), style)
    paint.labels(data.title, data.axis, "share" if share else data.unit)
    axes = paint.axes
    if not len(data.x) or not len(data.names):
        paint.empty("nothing was recorded")
        return
    names, parts = _largest(data)
    bad = ~np.isfinite(parts)
    values = np.where(bad, 0.0, parts)
    if share:
        whole = np.abs(values).sum(axis=0)
        values = np.divide(values, whole, out=np.zeros_like(values), where=whole > 0)
    x = np.asarray(data.x, dtype=np.float64)
    up, down = np.zeros(len(x)), np.zeros(len(x))
    for index, name in enumerate(names):
        colour = style.ghost if name.startswith("… ") else style.colour(index)
        part = values[index]
        above, under = np.where(part > 0, part, 0.0), np.where(part < 0, part, 0.0)
        steps: dict[str, Any] = {"color": colour, "alpha": 0.85, "linewidth": 0.4, "edgecolor": style.ground}
        handle = axes.fill_between(x, up, up + above, **steps)
        if (under < 0).any():
            axes.fill_between(x, down + under, down, **steps)
        if len(x) == 1:
            axes.plot([x[0]] * 2, [up[0], up[0] + above[0]], color=colour, linewidth=14, solid_capstyle="butt")
            axes.plot([x[0]] * 2, [down[0] + under[0], down[0]], color=colour, linewidth=14, solid_capstyle="butt")
        up, down = up + above, down + under
        paint.entries.append((handle, name))
    if data.total is not None and not share:
        total = paint.line(x, data.total, style.ink, width=1.2, dashes=(0, (4, 2)))
        paint.entries.append((total, "total"))
    if (down < 0).any():
        axes.axhline(0, color=style.line, linewidth=0.8)
    for row in range(len(parts)):
        paint.not_finite(x, np.where(bad[row], parts[row], 0.0))
    axes.margins(y=0.02)
    paint.finish()
    below(figure, paint.entries, data.remarks, style)


def _largest(data: Stack) -> tuple[list[str], NDArray]:
    """All parts, or the largest and the sum of all others."""
    names, parts = list(data.names), np.asarray(data.parts, dtype=np.float64).reshape(len(data.names), len(data.x))
    if len(names) <= _MOST_PARTS:
        return names, parts
    size = np.nansum(np.abs(np.where(np.isfinite(parts), parts, 0.0)), axis=1)
    largest = np.sort(np.argsort(-size, kind="stable")[: _MOST_PARTS - 1])
    rest = np.setdiff1d(np.arange(len(names)), largest)
    return (
        [*(names[i] for i in largest), f"… {len(rest)} others together"],
        np.vstack([parts[largest], parts[rest].sum(axis=0)]),
    )
