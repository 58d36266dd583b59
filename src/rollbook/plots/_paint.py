"""Draws on one pair of axes so that nothing is hidden: gaps, single points, non-finite values, clipped spikes.

paint = Paint(axes, style)
paint.line(x, y, colour="…")
paint.finish(limits=(0, 500))      # values outside get a mark at the edge
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rollbook.plots._shapes import Mark, short, shorts, thinned
from rollbook.plots._style import Dashes, Style
from rollbook.values.array_types import NDArray

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection
    from matplotlib.lines import Line2D


_MOST_IN_LEGEND = 60
_MOST_MARKS = 400
_MOST_REMARKS = 6


class Paint:
    """One pair of axes and what is drawn on it.

    Attributes:
      axes, style: the matplotlib axes, and the style.
      entries: (handle, text) of the legend, in order.
    """

    def __init__(self, axes: Axes, style: Style) -> None:
        self.axes, self.style = axes, style
        self.entries: list[tuple[Artist, str]] = []
        self._x: list[NDArray] = []
        self._y: list[NDArray] = []
        self._not_finite: list[tuple[NDArray, NDArray]] = []

    def line(
        self, x: NDArray, y: NDArray, colour: str, *, width: float = 1.7, dashes: Dashes = "-", **more: Any
    ) -> Line2D:
        """A line with gaps where there is no value; a single point between two gaps is a dot. Returns the handle."""
        xs, ys = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
        self.not_finite(xs, np.where(np.isnan(ys), 0.0, ys))  # NaN is a gap in the line; infinities are reported
        xs, ys = thinned(xs, ys)
        self._seen(xs, ys)
        (handle,) = self.axes.plot(xs, ys, color=colour, linewidth=width, linestyle=dashes, **more)
        known = np.isfinite(ys)
        before, after = np.append(False, known[:-1]), np.append(known[1:], False)
        lone = known & ~before & ~after
        if lone.any():
            size = 3 if lone.sum() > 50 else 4.5
            self.axes.plot(
                xs[lone],
                ys[lone],
                "o",
                color=colour,
                markersize=size,
                zorder=handle.get_zorder(),
                alpha=more.get("alpha"),
            )
        return handle

    def between(
        self, x: NDArray, low: NDArray, high: NDArray, colour: str, alpha: float, *, steps: bool = False
    ) -> PolyCollection:
        """The area between two lines, where both have a value; a single point is a stroke."""
        lows, highs = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
        known = np.isfinite(lows) & np.isfinite(highs)
        self._seen(x, lows)
        self._seen(x, highs)
        before, after = np.append(False, known[:-1]), np.append(known[1:], False)
        lone = known & ~before & ~after
        if lone.any():
            self.axes.vlines(x[lone], lows[lone], highs[lone], color=colour, alpha=min(1.0, alpha * 2.5), linewidth=2)
        return self.axes.fill_between(
            x, lows, highs, where=known, color=colour, alpha=alpha, linewidth=0, step="post" if steps else None
        )

    def not_finite(self, x: NDArray, y: NDArray) -> None:
        """Remember rows that are NaN or infinite; `finish` marks each at the edge."""
        bad = ~np.isfinite(y) & np.isfinite(x)
        if bad.any():
            self._not_finite.append((np.asarray(x, dtype=np.float64)[bad], np.asarray(y, dtype=np.float64)[bad]))

    def dots(self, x: NDArray, y: NDArray) -> None:
        """Remember separately drawn points, so that `finish` marks those beyond the edges."""
        self._seen(x, y)

    def marks(self, marks: tuple[Mark, ...]) -> None:
        """Checkpoints as ticks at the lower edge, alerts as lines."""
        kinds = {
            "checkpoint": ("|", self.style.ink_3, "checkpoint"),
            "best": ("*", self.style.good, "best checkpoint"),
            "alert": ("v", self.style.bad, "alert"),
        }
        across = self.axes.get_xaxis_transform()
        for kind, (marker, colour, word) in kinds.items():
            xs = np.array([mark.x for mark in marks if mark.kind == kind and math.isfinite(mark.x)])
            if not len(xs):
                continue
            if kind == "alert":
                for x in xs[:_MOST_MARKS]:
                    self.axes.axvline(x, color=colour, linewidth=0.7, alpha=0.5, zorder=1)
            height = 1.0 if kind == "alert" else 0.02
            size = {"|": 7, "*": 9}.get(marker, 6)
            (handle,) = self.axes.plot(
                xs,
                np.full(len(xs), height),
                marker,
                color=colour,
                markersize=size,
                transform=across,
                clip_on=False,
                zorder=5,
            )
            names = {mark.label for mark in marks if mark.kind == kind and mark.label}
            what = f"{word}: {short(next(iter(names)), 40)}" if len(names) == 1 else f"{word}s" if len(xs) > 1 else word
            self.entries.append((handle, f"{what} ({len(xs):,})" if len(xs) > 1 else what))

    def finish(self, limits: tuple[float | None, float | None] | None = None) -> None:
        """Set the limits, and mark values outside of them and non-finite values at the edges."""
        if limits is not None:
            self._limit(limits)
        low, high = self.axes.get_ylim()
        top, bottom = [], []
        for x, y in zip(self._x, self._y, strict=True):
            with np.errstate(invalid="ignore"):
                top.append(x[y > high])
                bottom.append(x[y < low])
        self._at_edge(top, 1.0, "^", self.style.warn, "beyond the upper edge")
        self._at_edge(bottom, 0.0, "v", self.style.warn, "beyond the lower edge")
        nan = [x[np.isnan(y)] for x, y in self._not_finite]
        self._at_edge(nan, 0.0, "x", self.style.bad, "NaN")
        self._at_edge([x[y == np.inf] for x, y in self._not_finite], 1.0, "^", self.style.bad, "+infinite")
        self._at_edge([x[y == -np.inf] for x, y in self._not_finite], 0.0, "v", self.style.bad, "-infinite")

    def _at_edge(self, parts: list[NDArray], height: float, marker: str, colour: str, words: str) -> None:
        everywhere = np.unique(np.concatenate(parts)) if parts else np.zeros(0)
        if not len(everywhere):
            return
        n = len(everywhere)
        shown = everywhere if n <= _MOST_MARKS else everywhere[np.linspace(0, n - 1, _MOST_MARKS).astype(int)]
        (handle,) = self.axes.plot(
            shown,
            np.full(len(shown), height),
            marker,
            color=colour,
            markersize=5,
            zorder=6,
            transform=self.axes.get_xaxis_transform(),
            clip_on=False,
        )
        self.entries.append((handle, f"{words} ({n:,})"))

    def _limit(self, limits: tuple[float | None, float | None]) -> None:
        low, high = limits
        self.axes.set_ylim(low, high)

    def _seen(self, x: NDArray, y: NDArray) -> None:
        known = np.isfinite(y)
        self._x.append(np.asarray(x, dtype=np.float64)[known])
        self._y.append(np.asarray(y, dtype=np.float64)[known])

    def labels(self, title: str, axis: str, up: str = "") -> None:
        """The labels of the axes, and readable numbers along x."""
        figure, cell = self.axes.get_figure(root=True), self.axes.get_subplotspec()
        inches = (figure.get_figwidth() if figure else 7.0) / (cell.get_gridspec().ncols if cell else 1) - 0.6
        self.axes.set_title(_broken(short(title, 90), int(inches * 12)))
        self.axes.set_xlabel(_broken(short(axis, 100), int(inches * 14)))
        if up:
            self.axes.set_ylabel(short(up, 60))
        self.axes.xaxis.set_major_formatter(
            lambda value, _position: measure(value, max(map(abs, self.axes.get_xlim())))
        )
        self.axes.locator_params(axis="x", nbins=7)

    def empty(self, words: str = "nothing to draw") -> None:
        """Write into the chart that there is no data."""
        self.axes.text(0.5, 0.5, words, ha="center", va="center", color=self.style.ink_3, transform=self.axes.transAxes)
        self.axes.set_xticks([])
        self.axes.set_yticks([])


def _broken(words: str, width: int) -> str:
    """Wrap text to a width: a figure for a column of a paper has no room for long lines."""
    import textwrap

    return "\n".join(textwrap.wrap(words, max(width, 12))) if len(words) > width else words


def below(figure: Any, entries: Sequence[tuple[object, str]], remarks: tuple[str, ...], style: Style) -> None:
    """The legend and the remarks below everything, in separate space.

    The legend has one line per entry if there are few, else columns. The first six remarks are shown, none where the
    style wants no notes.
    """
    import textwrap

    remarks = remarks if style.notes else ()
    entries = list({text: (handle, text) for handle, text in reversed(entries)}.values())[::-1]  # panels share entries
    # The words of the legend, and in how many columns they fit.
    shown, more = entries[:_MOST_IN_LEGEND], len(entries) - _MOST_IN_LEGEND
    fitting = int(figure.get_figwidth() * 14.5) - 7
    words = shorts([text for _, text in shown], 300 if len(shown) <= 8 else 44)
    words = ["\n".join(textwrap.wrap(text, fitting)) for text in words] if len(shown) <= 8 else words
    if more > 0:
        words[-1] = f"… and {more + 1} more"
    columns = 1
    if shown:
        longest = max(len(line) for text in words for line in text.split("\n"))
        columns = max(1, min(4, int(figure.get_figwidth() * 14.5 // (longest + 7)), len(shown)))
    # The remarks as lines, and the heights of both in inches.
    lines: list[str] = []
    for remark in remarks[:_MOST_REMARKS]:
        lines += textwrap.wrap(short(remark, 900).replace(" %", "\u00a0%"), int(figure.get_figwidth() * 17))
    if len(remarks) > _MOST_REMARKS:
        lines.append(f"… and {len(remarks) - _MOST_REMARKS} more remarks")
    inches = 0.145 * len(lines) + (0.06 if lines else 0.0)
    rows_of_words = (
        [
            max(text.count("\n") + 1 for text in words[row :: -(-len(shown) // columns)])
            for row in range(-(-len(shown) // columns))
        ]
        if shown
        else []
    )
    listed = 0.172 * sum(rows_of_words) + (0.08 if shown else 0.0)
    if not inches and not listed:
        return
    # Make the figure taller by that, and keep the charts out of the new space.
    tall = figure.get_figheight() + inches + max(0.0, listed - 0.2)
    figure.set_figheight(tall)
    room = (inches + listed + 0.05) / tall
    figure.get_layout_engine().set(rect=(0, room, 1, 1 - room))
    if lines:
        figure.text(
            0.012, 0.05 / tall, "\n".join(lines), fontsize=7.5, color=style.ink_3, va="bottom", linespacing=1.25
        )
    if shown:
        legend = figure.legend(
            [handle for handle, _ in shown],
            ["." for _ in shown],
            loc="lower left",
            ncols=columns,
            bbox_to_anchor=(0.0, inches / tall),
            columnspacing=1.4,
            labelspacing=0.35,
        )
        for text, words_shown in zip(legend.get_texts(), words, strict=True):
            text.set_text(words_shown)  # set afterwards: matplotlib drops labels that begin with an underscore


def measure(value: float, largest: float | None = None) -> str:
    """A number as an axis shows it: 0, 250, 20k, 1.5M; in the unit of `largest`, if given."""
    if not math.isfinite(value):
        return str(value)
    size = abs(value) if largest is None else largest
    for limit, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if limit <= size < 1e15 and value:
            return f"{value / {'T': 1e12, 'G': 1e9, 'M': 1e6, 'k': 1e3}[unit]:.6g}{unit}"
    return f"{value:.6g}"
