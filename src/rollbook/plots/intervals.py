"""Intervals: one estimate per row, its interval if it is valid, and the scores."""

from __future__ import annotations

import numpy as np

from rollbook.plots._paint import Paint, below, measure
from rollbook.plots._shapes import Bars, short, shorts
from rollbook.plots._style import Style

TYPE_CHECKING = False
if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rollbook.values.array_types import NDArray


def draw(figure: Figure, data: Bars, style: Style, *, limits: tuple[float | None, float | None] | None = None) -> None:
    """Draw rows of estimates.

    Args:
      limits: lowest and highest score shown; values outside get a mark at the edge.
    """
    n = len(data.labels)
    if n:
        figure.set_size_inches(figure.get_figwidth(), 1.1 + 0.42 * max(n, 2))
    axes = figure.subplots()
    paint = Paint(axes, style)
    paint.labels(data.title, data.axis)
    if not n:
        paint.empty("no group has a score")
        return
    axes.grid(False, axis="y")
    axes.margins(x=0.04)
    rows = np.arange(n)[::-1]
    longest = min(36, max(map(len, data.labels)))
    for index, row in enumerate(rows):
        colour = style.accent if data.neutral else style.colour(data.looks[index] if data.looks else index)
        _estimate(axes, data, index, row, colour)
        words = short(data.words[index], int((figure.get_figwidth() - 0.3 - 0.08 * longest) * 20))
        axes.text(
            0.008, row + 0.32, words, fontsize=7, color=style.ink_3, transform=axes.get_yaxis_transform(), va="bottom"
        )
    if data.zero is not None:
        axes.axvline(data.zero, color=style.ink_3, linewidth=0.8, linestyle=(0, (3, 3)))
    axes.set_yticks(rows, ["." for _ in rows])
    labels = shorts(data.labels, 36)
    for tick, label in zip(axes.get_yticklabels(), labels, strict=True):
        tick.set_color(style.ink)
        tick.set_text(label)
    axes.set_yticklabels(labels)
    axes.set_ylim(-0.6, n - 0.25)
    if limits or data.span:
        axes.set_xlim(*(limits or data.span or (None, None)))
    _mark_outside(axes, data, rows, style)
    axes.xaxis.set_major_formatter(lambda value, _position: measure(value, max(map(abs, axes.get_xlim()))))
    below(figure, [], data.remarks, style)


def _estimate(axes: Axes, data: Bars, index: int, row: int, colour: str) -> None:
    """One row: the scores as dots, the interval as a bar (an arrow if one end is infinite), the estimate as a line."""
    scores = np.asarray(data.points[index], dtype=np.float64)
    finite = scores[np.isfinite(scores)]
    if len(finite):
        axes.plot(finite, np.full(len(finite), row), "o", color=colour, alpha=0.5, markersize=5, markeredgewidth=0)
    low, high, value = data.low[index], data.high[index], data.values[index]
    if np.isfinite(low) and np.isfinite(high):
        axes.plot([low, high], [row, row], color=colour, linewidth=7, alpha=0.3, solid_capstyle="butt")
    elif np.isfinite(low) or np.isfinite(high):
        end = low if np.isfinite(low) else high
        axes.annotate("", (end, row), (value, row), arrowprops={"arrowstyle": "->", "color": colour})
    if np.isfinite(value):
        axes.plot([value] * 2, [row - 0.28, row + 0.28], color=colour, linewidth=2.2)


def _mark_outside(axes: Axes, data: Bars, rows: NDArray, style: Style) -> None:
    left, right = axes.get_xlim()
    for index, row in enumerate(rows):
        scores = np.asarray(data.points[index], dtype=np.float64)
        for marker, x, n in (("<", 0.0, int((scores < left).sum())), (">", 1.0, int((scores > right).sum()))):
            if n:
                axes.plot([x], [row], marker, color=style.warn, transform=axes.get_yaxis_transform(), clip_on=False)
                axes.text(
                    x,
                    row - 0.35,
                    f"{n}",
                    fontsize=7,
                    color=style.warn,
                    ha="center",
                    va="top",
                    transform=axes.get_yaxis_transform(),
                )
        bad = int((~np.isfinite(scores)).sum())
        if bad:
            axes.text(
                1.0,
                row,
                f"{bad} not finite ",
                fontsize=7,
                color=style.bad,
                ha="right",
                va="center",
                transform=axes.get_yaxis_transform(),
            )
