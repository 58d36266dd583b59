"""Curves in characters, for a terminal: colours and braille dots if it supports them, else one glyph per group; shading
for a band, a mark for values that are not finite.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rollbook.plots._paint import measure
from rollbook.plots._shapes import Line, Panel, short
from rollbook.values.array_types import Floats

GLYPHS = "*o+x#@%&=~abcdefghijklmnopqrstuvwyz"
_BAND, _EXTREMES, _BAD = 0, 1, 2
_SIGNS = {False: "..!", True: "░·!"}
_COLOURS = (63, 172, 37, 126, 33, 100, 141, 167, 108, 103, 65, 92)
"""Colours of a terminal (of its 256) that are readable on white and on black, in the order of the page's colours."""
_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
"""The bit of each dot of a braille character, from U+2800."""


def panel_in_characters(panel: Panel, width: int, height: int, colour: bool = False) -> str:
    """A panel as lines of at most `width` characters, `height` of them for the curves.

    Args:
      colour: for a terminal with colours and Unicode: braille dots, eight per character, with escape sequences.
    """
    lines = [line for line in panel.lines if len(line.x)]
    head = [short(panel.title, width)]
    if not lines:
        return "\n".join([*head, "no run has a row of it"])
    everything = [_finite(array) for line in lines for array in (line.y, line.low, line.high, line.least, line.most)]
    everything += [_finite(seed.y) for line in lines for seed in line.seeds]
    values = np.concatenate(everything)
    xs = np.concatenate([_finite(line.x) for line in lines])
    if not len(values) or not len(xs):
        return "\n".join([*head, "no finite value"])
    # A constant curve gets an axis around its value.
    low, high, left, right = values.min(), values.max(), xs.min(), xs.max()
    tall = high - low if high > low else max(1.0, abs(float(high)))
    top, bottom = (high, low) if high > low else (high + tall / 2, low - tall / 2)
    ticks = {row: measure(float(f"{top - (top - bottom) * row / (height - 1):.4g}")) for row in _ticks(height)}
    margin = max(map(len, ticks.values())) + 1
    field = _Field(width - margin - 1, height, (left, right if right > left else left + 1.0), (bottom, top), colour)
    field.looks = [index if line.look is None else line.look for index, line in enumerate(lines)]
    # What is drawn later covers what is below it: extremes, bands, then lines.
    for index, line in enumerate(lines):
        field.fill(line, line.least, line.most, index, _EXTREMES)
    for index, line in enumerate(lines):
        field.fill(line, line.low, line.high, index, _BAND)
    for index, line in enumerate(lines):
        for seed in line.seeds:
            field.stroke(seed.x, seed.y, index)
        if not line.seeds or np.isfinite(line.y).any():
            field.stroke(*_stairs(line.x, line.y, line.steps), index)
        if line.raw is not None:
            field.edge(line.raw.x, line.raw.y)
    bar, corner, floor = ("│", "└", "─") if colour else ("|", "+", "-")
    body = [f"{ticks.get(row, '').rjust(margin - 1)} {bar}{field.row(row)}".rstrip() for row in range(height)]
    ends = measure(float(left)), f"{measure(float(right))} {panel.axis}"
    ruler = " " * margin + corner + floor * field.columns
    below = " " * (margin + 1) + ends[0] + ends[1].rjust(max(1, field.columns - len(ends[0])))
    words = [(field.sign(index), line.label) for index, line in enumerate(lines)]
    words += [(field.signs[kind], what) for kind, what in _what_signs_mean(lines, colour)]
    wrapped = [
        part if n else f"{sign}{part[1:]}"
        for sign, text in words
        for n, part in enumerate(lines_of(f"?  {text}", width))
    ]
    wrapped += [part for text in panel.remarks for part in lines_of(text, width)]
    return "\n".join([*head, *body, ruler[:width], short(below, width), *wrapped])


def panels_in_characters(panels: Sequence[Panel], width: int, height: int, colour: bool = False) -> str:
    """Panels one below the other."""
    each = max(8, height // max(1, len(panels)))
    return "\n\n".join(panel_in_characters(panel, width, each, colour) for panel in panels) or "nothing to draw"


class _Field:
    """Lines and bands over a rectangle of characters.

    Args:
      columns, rows: of characters.
      xs, ys: the range of x from left to right, and of y from bottom to top.
      colour: as for `panel_in_characters`.
    Attributes:
      looks: of each group, which colour.
    """

    def __init__(self, columns: int, rows: int, xs: tuple[float, float], ys: tuple[float, float], colour: bool) -> None:
        self.columns, self._colour, self.signs = columns, colour, _SIGNS[colour]
        self.looks: list[int] = []
        self._xs, self._ys = xs, ys
        self._wide, self._tall = (2, 4) if colour else (1, 1)
        self._line = np.full((rows * self._tall, columns * self._wide), -1)  # for each dot its group
        self._shade = np.full((2, rows, columns), -1)  # for each character: the group of the band, and of the extremes
        self._bad = np.zeros((rows, columns), dtype=np.bool_)

    def sign(self, index: int) -> str:
        """The sign of a group in the legend."""
        return self._painted("━", index) if self._colour else GLYPHS[index % len(GLYPHS)]

    def stroke(self, x: Floats, y: Floats, index: int) -> None:
        """Fill each column of dots from its lowest to its highest point; join neighbours, but not across gaps."""
        tall, wide = self._line.shape
        previous: tuple[int, int] | None = None
        for column, row in zip(self._across(x, wide), self._down(y, tall), strict=True):
            if not (np.isfinite(column) and np.isfinite(row)):
                previous = None
                continue
            at, here = int(column), int(row)
            first, before = previous or (at, here)
            for step in range(first, at):
                begin, end = (round(before + (here - before) * (s - first) / (at - first)) for s in (step, step + 1))
                low, high = sorted((begin, end))
                self._line[low : max(low + 1, high), step] = index
            low, high = sorted((before, here)) if at == first else (here, here)
            self._line[low : high + 1, at] = index
            previous = (at, here)

    def fill(self, line: Line, lows: Floats | None, highs: Floats | None, index: int, kind: int) -> None:
        """Shade the area between two edges, from each point to the next."""
        if lows is None or highs is None:
            return
        rows, columns = self._bad.shape
        x, low = _stairs(line.x, lows, line.steps)
        _, high = _stairs(line.x, highs, line.steps)
        across, tops, bottoms = self._across(x, columns), self._down(high, rows), self._down(low, rows)
        usable = np.isfinite(across) & np.isfinite(tops) & np.isfinite(bottoms)
        for n in np.flatnonzero(usable):
            last = n + 1 if n + 1 < len(x) and usable[n + 1] else n
            begin, end = int(across[n]), int(across[last])
            for column in range(begin, end + 1):
                share = (column - begin) / max(1, end - begin)
                first = round(tops[n] + (tops[last] - tops[n]) * share)
                final = round(bottoms[n] + (bottoms[last] - bottoms[n]) * share)
                self._shade[kind, first : final + 1, column] = index

    def edge(self, x: Floats, y: Floats) -> None:
        """Mark values that are not finite at the edge: plus infinity above, all others below."""
        rows, columns = self._bad.shape
        odd = np.isfinite(x) & ~np.isfinite(y)
        for column, value in zip(self._across(x[odd], columns), y[odd], strict=True):
            self._bad[0 if value == np.inf else rows - 1, int(column)] = True

    def row(self, row: int) -> str:
        """One line of characters."""
        return "".join(self._character(row, column) for column in range(self.columns))

    def _character(self, row: int, column: int) -> str:
        if self._bad[row, column]:
            return self.signs[_BAD]
        dots = self._line[row * self._tall : (row + 1) * self._tall, column * self._wide : (column + 1) * self._wide]
        if dots.max() >= 0:
            index = int(dots.max())
            if not self._colour:
                return self.sign(index)
            return self._painted(chr(0x2800 + int(_DOTS[dots >= 0].sum())), index)
        for kind in (_BAND, _EXTREMES):
            index = int(self._shade[kind, row, column])
            if index >= 0:
                return self._painted(self.signs[kind], index, dim=True)
        return " "

    def _painted(self, sign: str, index: int, dim: bool = False) -> str:
        if not self._colour:
            return sign
        return f"\x1b[{'2;' if dim else ''}38;5;{_COLOURS[self.looks[index] % len(_COLOURS)]}m{sign}\x1b[0m"

    def _across(self, x: Floats, columns: int) -> Floats:
        left, right = self._xs
        return _scaled((np.asarray(x, np.float64) - left) / (right - left), columns)

    def _down(self, y: Floats, rows: int) -> Floats:
        bottom, top = self._ys
        return _scaled((top - np.asarray(y, np.float64)) / (top - bottom), rows)


def _scaled(share: Floats, of: int) -> Floats:
    """Convert shares of a side, 0 to 1, to positions on it."""
    return np.asarray(np.clip(np.round(share * (of - 1)), 0, of - 1), dtype=np.float64)


def _stairs(x: Floats, y: Floats, steps: bool) -> tuple[Floats, Floats]:
    """The corners of a line; with `steps`, each value holds until the next point."""
    if not steps or len(x) < 2:
        return x, y
    return np.repeat(x, 2)[1:], np.repeat(y, 2)[:-1]


def _what_signs_mean(lines: Sequence[Line], colour: bool) -> list[tuple[int, str]]:
    legend = []
    if any(line.raw is not None and (~np.isfinite(line.raw.y)).any() for line in lines):
        legend.append((_BAD, "NaN or infinite"))
    bands, extremes = any(line.low is not None for line in lines), any(line.least is not None for line in lines)
    if colour and bands:
        legend.append((_BAND, "the band"))
    if colour and extremes:
        legend.append((_EXTREMES, "the extremes of all rows"))
    if not colour and (bands or extremes):
        legend.append((_BAND, "the band, and the extremes of all rows"))
    return legend


def _finite(values: Floats | None) -> Floats:
    array = np.zeros(0) if values is None else np.asarray(values, dtype=np.float64)
    return array[np.isfinite(array)]


def _ticks(height: int) -> list[int]:
    n = max(2, min(5, height // 4 + 1))
    return sorted({round(index * (height - 1) / (n - 1)) for index in range(n)})


def lines_of(text: str, width: int) -> list[str]:
    """Lines of at most `width` characters, all but the first indented."""
    import textwrap

    return textwrap.wrap(short(text, 1000), width, subsequent_indent="   ") or [""]
