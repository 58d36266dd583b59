"""Curves in characters, for a terminal: a glyph a group, dots for its band, a mark where something is not finite."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rollbook.plots._paint import measure
from rollbook.plots._shapes import Floats, Panel, short

__all__ = ["GLYPHS", "panel_in_characters", "panels_in_characters"]

GLYPHS = "*o+x#@%&=~abcdefghijklmnopqrstuvwyz"
_BAND = "."


def panel_in_characters(panel: Panel, width: int, height: int) -> str:
    """A panel as lines of at most `width` characters, `height` of them for the curves."""
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
    low, high, left, right = values.min(), values.max(), xs.min(), xs.max()
    tall = high - low if high > low else max(1.0, abs(float(high)))
    top, bottom = (high, low) if high > low else (high + tall / 2, low - tall / 2)
    ticks = {row: measure(float(f"{top - (top - bottom) * row / (height - 1):.4g}")) for row in _ticks(height)}
    margin = max(map(len, ticks.values())) + 1
    columns = width - margin - 1
    field = [[" "] * columns for _ in range(height)]
    wide = right - left if right > left else 1.0

    def column_of(x: Floats) -> Floats:
        return np.asarray(np.clip(np.round((x - left) / wide * (columns - 1)), 0, columns - 1), dtype=np.float64)

    def row_of(y: Floats) -> Floats:
        return np.asarray(np.clip(np.round((top - y) / (top - bottom) * (height - 1)), 0, height - 1), dtype=np.float64)

    for line in lines:
        for one, other in ((line.least, line.most), (line.low, line.high)):
            if one is not None and other is not None:
                _fill(field, column_of(line.x), row_of(other), row_of(one), _BAND, over=False)
    for place, line in enumerate(lines):
        glyph = GLYPHS[place % len(GLYPHS)]
        for seed in line.seeds:
            _stroke(field, column_of(seed.x), row_of(seed.y), glyph)
        if not line.seeds or np.isfinite(line.y).any():
            _stroke(field, column_of(line.x), row_of(line.y), glyph)
        if line.raw is not None:
            bad = ~np.isfinite(line.raw.y)
            for column, value in zip(column_of(line.raw.x[bad]), line.raw.y[bad], strict=True):
                field[0 if value == np.inf else height - 1][int(column)] = "!"
    body = [f"{ticks.get(row, '').rjust(margin - 1)} |{''.join(field[row])}".rstrip() for row in range(height)]
    ends = measure(float(left)), f"{measure(float(right))} {panel.axis}"
    ruler = " " * margin + "+" + "-" * columns
    below = " " * (margin + 1) + ends[0] + ends[1].rjust(max(1, columns - len(ends[0])))
    words = [f"{GLYPHS[place % len(GLYPHS)]}  {line.label}" for place, line in enumerate(lines)]
    if any(line.raw is not None and (~np.isfinite(line.raw.y)).any() for line in lines):
        words.append("!  NaN or infinite")
    if any(line.low is not None or line.least is not None for line in lines):
        words.append(f"{_BAND}  the band, and the extremes of all rows")
    words += panel.remarks
    wrapped = [part for text in words for part in _wrapped(text, width)]
    return "\n".join([*head, *body, ruler[:width], short(below, width), *wrapped])


def panels_in_characters(panels: Sequence[Panel], width: int, height: int) -> str:
    """Panels one below the other."""
    each = max(8, height // max(1, len(panels)))
    return "\n\n".join(panel_in_characters(panel, width, each) for panel in panels) or "nothing to draw"


def _finite(values: Floats | None) -> Floats:
    array = np.zeros(0) if values is None else np.asarray(values, dtype=np.float64)
    return array[np.isfinite(array)]


def _ticks(height: int) -> list[int]:
    n = max(2, min(5, height // 4 + 1))
    return sorted({round(place * (height - 1) / (n - 1)) for place in range(n)})


def _stroke(field: list[list[str]], columns: Floats, rows: Floats, glyph: str) -> None:
    """Each column from the lowest to the highest point in it; neighbours are joined, gaps are not."""
    previous: tuple[int, int] | None = None
    for column, row in zip(columns.tolist(), rows.tolist(), strict=True):
        if not (np.isfinite(column) and np.isfinite(row)):
            previous = None
            continue
        at, here = int(column), int(row)
        field[here][at] = glyph
        if previous is not None:
            first, before = previous
            for step in range(first + 1, at):
                field[round(before + (here - before) * (step - first) / (at - first))][step] = glyph
            if at - first <= 1 and abs(here - before) > 1:
                for inner in range(min(before, here) + 1, max(before, here)):
                    field[inner][at] = glyph
        previous = (at, here)


def _fill(field: list[list[str]], columns: Floats, tops: Floats, bottoms: Floats, glyph: str, *, over: bool) -> None:
    for column, first, last in zip(columns.tolist(), tops.tolist(), bottoms.tolist(), strict=True):
        if np.isfinite(first) and np.isfinite(last):
            for row in range(int(first), int(last) + 1):
                if over or field[row][int(column)] == " ":
                    field[row][int(column)] = glyph


def _wrapped(text: str, width: int) -> list[str]:
    import textwrap

    return textwrap.wrap(short(text, 1000), width, subsequent_indent="   ") or [""]
