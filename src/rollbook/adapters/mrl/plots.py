"""Figures of the log: one small plot per name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rollbook.system.optional import need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rollbook.values.array_types import NDArray

LARGEST_PLOT = 2000
"""Points drawn per line; longer series are drawn as means of equal intervals."""


def plot_dict(data: Mapping[str, Sequence[object]], cols: int = 4, smooth: bool = True) -> Figure:
    """A matplotlib figure with one plot of 4 x 4 inches per name.

    Args:
      data: name -> one number per batch; missing ones are gaps. An empty series gives an empty plot.
      cols: plots in a row.
      smooth: draw a running average, with the values behind it in grey.
    """
    figure_of = need("matplotlib.figure", extra="plots", why="a figure of the log").Figure
    names = list(data)
    cols = max(1, min(cols, len(names) or 1))
    rows = max(1, -(-len(names) // cols))
    figure: Figure = figure_of(figsize=(4 * cols, 4 * rows))
    grid = figure.subplots(rows, cols, squeeze=False).flat
    for ax, name in zip(grid, [*names, *[None] * (rows * cols - len(names))], strict=True):
        if name is None:
            ax.axis("off")
            continue
        x, y = _thinned(_numbers(data[name]))
        if smooth and len(y) > 2:
            ax.plot(x, y, color="0.8")
            ax.plot(x, smoothed(y))
        else:
            ax.plot(x, y, marker="o" if len(y) < 2 else None)
        ax.set_title(name)
    return figure


def plot_stack(series: Mapping[str, Sequence[float]]) -> Figure:
    """A matplotlib figure of the stacked series; shorter ones are aligned at the end."""
    np = need("numpy", extra="plots", why="a figure of the log")
    figure: Figure = need("matplotlib.figure", extra="plots", why="a figure of the log").Figure(figsize=(8, 6))
    ax = figure.subplots()
    n = max((len(values) for values in series.values()), default=0)
    if n:
        stacked = [np.concatenate([np.zeros(n - len(values)), np.asarray(values, float)]) for values in series.values()]
        ax.stackplot(np.arange(n), *stacked, labels=list(series))
        ax.legend(loc="upper left")
    return figure


def smoothed(values: NDArray, weight: float = 0.9) -> NDArray:
    """The bias-corrected exponential average of `values`, of the same length; it continues over gaps (NaN)."""
    import numpy as np

    out = np.empty(len(values))
    total = norm = 0.0
    for i, value in enumerate(values):
        if value == value:
            total = weight * total + (1 - weight) * value
            norm = weight * norm + (1 - weight)
        out[i] = total / norm if norm else np.nan
    return out


def _numbers(values: Sequence[object]) -> NDArray:
    import numpy as np

    numbers = np.full(len(values), np.nan)
    for i, value in enumerate(values):
        try:
            numbers[i] = value
        except (TypeError, ValueError):  # a text, or an array: no point in this plot
            continue
    return numbers


def _thinned(values: NDArray) -> tuple[NDArray, NDArray]:
    import numpy as np

    stretch = -(-len(values) // LARGEST_PLOT) if len(values) else 1
    if stretch == 1:
        return np.arange(len(values)), values
    whole = len(values) // stretch * stretch
    parts = values[:whole].reshape(-1, stretch)
    known = np.isfinite(parts)
    counts = known.sum(axis=1)
    means = np.where(known, parts, 0).sum(axis=1) / np.maximum(counts, 1)
    return np.arange(0, whole, stretch) + (stretch - 1) / 2, np.where(counts, means, np.nan)
