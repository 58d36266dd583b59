"""Parallel coordinates of a sweep: one line per run through its settings, coloured by its result."""

from __future__ import annotations

import itertools
import math
import textwrap
from typing import Any

import numpy as np

from rollbook.plots._paint import Paint, below
from rollbook.plots._shapes import Threads, short, shorts
from rollbook.plots._style import Style
from rollbook.system.texts import number_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

_MOST_COLUMNS, _MOST_WORDS = 12, 12


def draw(figure: Figure, data: Threads, style: Style) -> None:
    """Draw runs across their settings; the last column is the result. A run without a result is dotted and grey."""
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    axes = figure.subplots()
    paint = Paint(axes, style)
    result = np.asarray(data.result, dtype=np.float64)
    n = len(result)
    axes.set_title(short(data.title, 90))
    if not n or not data.columns:
        paint.empty("no setting differs between these runs" if n else "no runs")
        return
    names, columns = list(data.columns[:_MOST_COLUMNS]), list(data.values[:_MOST_COLUMNS])
    figure.set_size_inches(max(7.0, 1.15 * (len(names) + 1)), 4.2)
    # Each column on its own scale from 0 to 1; the colour of a run is its result.
    heights, ticks = zip(*(_heights(column) for column in [*columns, tuple(result)]), strict=True)
    finite = result[np.isfinite(result)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    scale = Normalize(low, high if high > low else low + 1)
    colours = LinearSegmentedColormap.from_list("rollbook", [style.series[1], style.ghost, style.series[0]])
    field = np.stack(heights, axis=1)
    alpha = 0.85 if n <= 60 else max(0.12, 30 / n)
    # The best runs are drawn last, on top.
    for row in np.argsort(np.where(np.isfinite(result), result, -math.inf), kind="stable"):
        known = np.isfinite(result[row])
        colour = colours(scale(result[row])) if known else style.ghost
        lacking = field[row] < 0
        there = np.where(lacking, np.nan, field[row])
        axes.plot(
            range(len(names) + 1),
            there,
            color=colour,
            alpha=alpha,
            linewidth=1.2,
            marker="o",
            markersize=2.5,
            linestyle="-" if known else (0, (1.5, 1.5)),
        )
        axes.plot(np.flatnonzero(lacking), field[row][lacking], "x", color=style.ink_3, markersize=4)
    axes.set_xlim(-0.25, len(names) + 0.45)
    axes.set_ylim(-0.07, 1.05)
    axes.set_yticks([])
    axes.grid(False)
    axes.spines["left"].set_visible(False)
    # An axis for each column, labelled with its values.
    for number, column in enumerate(ticks):
        axes.axvline(number, color=style.line, linewidth=0.8, zorder=0)
        for at, word in column:
            axes.text(
                number + 0.05,
                at,
                word,
                fontsize=7,
                color=style.ink_3,
                va="center",
                bbox={"facecolor": style.ground, "alpha": 0.9, "pad": 0.6, "linewidth": 0},
            )
    # The names of the settings below, and what the picture leaves out.
    axes.set_xticks(range(len(names) + 1))
    words = shorts([name.removeprefix("config.") for name in [*names, data.result_name]], 40)
    axes.set_xticklabels(["\n".join(textwrap.wrap(word.replace("_", "_ "), 18)).replace("_ ", "_") for word in words])
    axes.tick_params(axis="x", length=0, labelcolor=style.ink)
    remarks = list(data.remarks)
    if (field[:, :-1] < 0).any():
        remarks.append("A cross below a column: the run has no such setting; its line is broken there.")
    lacking = int((~np.isfinite(result)).sum())
    if lacking:
        remarks.append(f"Dotted: {lacking} of {n} runs have no finite {short(data.result_name, 40)}.")
    if len(data.columns) > len(names):
        remarks.append(f"{len(data.columns) - len(names)} more settings differ and are not shown.")
    below(figure, [], tuple(remarks), style)


def _by_factors(steps: Sequence[float]) -> bool:
    """Whether values in order are spread by factors: an order of magnitude apart, and more evenly on a log axis."""
    if not steps or steps[0] <= 0 or steps[-1] < 8 * steps[0]:
        return False

    def unevenness(points: Sequence[float]) -> float:
        return sum((b - a) ** 2 for a, b in itertools.pairwise(points)) / (points[-1] - points[0]) ** 2

    return len(steps) < 3 or unevenness([math.log(v) for v in steps]) < unevenness(steps)


def _heights(column: Sequence[object]) -> tuple[object, list[tuple[float, str]]]:
    """The position of each run on a column, from 0 to 1 (below: no value), and the tick labels."""
    numbers = [v for v in column if isinstance(v, (int, float)) and not isinstance(v, bool) and math.isfinite(v)]
    textual = any(not isinstance(v, (int, float)) or isinstance(v, bool) for v in column if v is not None)
    if textual or not numbers:
        words = sorted({str(v) for v in column if v is not None})
        at = {word: n / max(1, len(words) - 1) for n, word in enumerate(words)}
        every = max(1, -(-len(words) // _MOST_WORDS))
        shown = list(zip([at[word] for word in words[::every]], shorts(words[::every], 18), strict=True))
        return np.array([at[str(v)] if v is not None else -0.05 for v in column]), shown
    low, high = min(numbers), max(numbers)
    logarithmic = _by_factors(sorted(set(numbers)))
    ends = (math.log(low), math.log(high)) if logarithmic else (low, high)
    wide = ends[1] - ends[0] or 1.0

    def height_of(value: Any) -> float:
        if value is None or not math.isfinite(value):
            return -0.05
        return ((math.log(value) if logarithmic else value) - ends[0]) / wide if high > low else 0.5

    steps = sorted(set(numbers))
    if len(steps) > 5:
        middle = math.exp((ends[0] + ends[1]) / 2) if logarithmic else (low + high) / 2
        steps = [low, middle, high]
    return np.array([height_of(v) for v in column]), [(height_of(v), number_text(v, 3)) for v in steps]
