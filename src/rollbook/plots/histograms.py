"""Histograms over time: each column is one distribution, its shade the share of values, its extremes are lines."""

from __future__ import annotations

import numpy as np

from rollbook.plots._paint import Paint, below
from rollbook.plots._shapes import Cells
from rollbook.plots._style import Style
from rollbook.values.array_types import Floats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BINS = 80


def draw(figure: Figure, data: Cells, style: Style, *, limits: tuple[float, float] | None = None) -> None:
    """Draw distributions.

    Args:
      limits: lowest and highest value shown; None for the extremes.
    """
    from matplotlib.colors import LinearSegmentedColormap

    paint = Paint(figure.subplots(), style)
    axes = paint.axes
    paint.labels(data.title, data.axis)
    rows = [row for row in range(len(data.x)) if np.isfinite(data.x[row]) and len(data.counts[row])]
    ends = [edge for row in rows for edge in (data.edges[row][0], data.edges[row][-1]) if np.isfinite(edge)]
    if not rows or not ends:
        paint.empty("no distribution was logged")
        return
    low, high = limits or (min(ends), max(ends))
    if not low < high:
        low, high = low - 0.5, high + 0.5
    order = sorted(rows, key=lambda row: float(data.x[row]))
    field = np.stack([_onto(data.edges[row], data.counts[row], low, high) for row in order], axis=1)
    x = np.array([data.x[row] for row in order], dtype=np.float64)
    colours = LinearSegmentedColormap.from_list("rollbook", [style.ground, style.series[0], style.ink])
    image = axes.pcolormesh(
        _borders(x), np.linspace(low, high, _BINS + 1), np.sqrt(field), cmap=colours, vmin=0, rasterized=True
    )
    image.set_edgecolor("face")
    for ends_of, word in ((data.low, "lowest value"), (data.high, "highest value")):
        values = np.array([ends_of[row] for row in order], dtype=np.float64)
        if np.isfinite(values).any():
            dashes = "-" if word.startswith("highest") else (0, (3, 2))
            handle = paint.line(x, values, style.series[1], width=1.0, dashes=dashes)
            paint.entries.append((handle, word))
    axes.grid(False)
    paint.finish((low, high) if limits else None)
    below(
        figure,
        paint.entries,
        ("Stronger colour: a larger share of the values of that column (root scale).", *data.remarks),
        style,
    )


def _onto(edges: Floats, counts: Floats, low: float, high: float) -> Floats:
    """One histogram on the common bins, as shares; the counts of a bin are spread evenly over it."""
    known = np.isfinite(counts) & np.isfinite(edges[1:]) & np.isfinite(edges[:-1])
    weights = np.where(known, counts, 0.0)
    total = weights.sum()
    sums = np.concatenate([[0.0], np.cumsum(weights)])
    below = np.interp(np.linspace(low, high, _BINS + 1), edges, sums, left=0.0, right=float(sums[-1]))
    return np.diff(below) / total if total > 0 else np.zeros(_BINS)


def _borders(x: Floats) -> Floats:
    if len(x) == 1:
        return np.array([x[0] - 0.5, x[0] + 0.5])
    middle = (x[1:] + x[:-1]) / 2
    return np.concatenate([[x[0] - (middle[0] - x[0])], middle, [x[-1] + (x[-1] - middle[-1])]])
