"""How objects appear in a notebook: small tables and curves as HTML, without matplotlib and without scripts.

Texts come from runs, and are escaped only here.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence

import numpy as np

from rollbook.plots._shapes import short, thinned
from rollbook.values.array_types import NDArray

_COLOURS = (
    "#5b71f7",
    "#b87a1e",
    "#0ea29d",
    "#c9408a",
    "#3f8fe0",
    "#8a8420",
    "#a078cd",
    "#e0566b",
    "#94a140",
    "#8a92ad",
)
"""Readable on light and dark notebooks: the theme is unknown."""
_MOST_ROWS = 12


def card(title: str, about: str, *parts: str) -> str:
    """A box with a title, a line below it, and parts that are already HTML."""
    return (
        '<div style="font:13px/1.45 sans-serif;max-width:60em">'
        f"<div><b>{_safe(title)}</b> <span style='opacity:.7'>{_safe(about, 300)}</span></div>{''.join(parts)}</div>"
    )


def grid(
    rows: Sequence[Mapping[str, object]], *, sparks: Mapping[str, Sequence[str]] | None = None, most: int = _MOST_ROWS
) -> str:
    """Rows as a table.

    Args:
      rows: with equal keys; texts are escaped.
      sparks: column -> HTML per row, from `spark`.
      most: maximum number of rows shown; the others are counted.
    """
    if not rows:
        return ""
    names = list(dict.fromkeys(name for row in rows for name in row))
    extra = sparks or {}
    style = "text-align:left;padding:1px 10px 1px 0"
    head = "".join(f'<th style="{style};opacity:.7;font-weight:600">{_safe(name)}</th>' for name in [*names, *extra])
    body = "".join(
        "<tr>"
        + "".join(f'<td style="{style}">{_cell(row.get(name))}</td>' for name in names)
        + "".join(f'<td style="{style}">{drawn[index] if index < len(drawn) else ""}</td>' for drawn in extra.values())
        + "</tr>"
        for index, row in enumerate(rows[:most])
    )
    more = f'<div style="opacity:.7">and {len(rows) - most:,} more</div>' if len(rows) > most else ""
    return f'<table style="border-collapse:collapse"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}'


def sentences(paragraphs: Sequence[str]) -> str:
    """Sentences as paragraphs."""
    return "".join(f'<div style="margin:2px 0">{_safe(words, 400)}</div>' for words in paragraphs)


def spark(
    lines: Sequence[tuple[NDArray, NDArray]],
    bands: Sequence[tuple[NDArray, NDArray, NDArray] | None] = (),
    *,
    width: int = 120,
    height: int = 24,
) -> str:
    """Lines as a sparkline: gaps stay gaps, every spike is kept, non-finite values are marks below.

    Args:
      lines: (x, y) of each line.
      bands: (x, low, high) behind each line, or None.
    """
    arrays = [(np.asarray(x, np.float64), np.asarray(y, np.float64)) for x, y in lines]
    ys = [y[np.isfinite(y)] for _, y in arrays]
    ys += [np.asarray(part, np.float64)[np.isfinite(part)] for band in bands if band is not None for part in band[1:]]
    xs = [x[np.isfinite(x)] for x, _ in arrays]
    everything, along = np.concatenate([*ys, np.zeros(0)]), np.concatenate([*xs, np.zeros(0)])
    if not len(everything) or not len(along):
        return '<span style="opacity:.6">no finite value</span>'
    low, high, left, right = (float(v) for v in (everything.min(), everything.max(), along.min(), along.max()))

    def in_pixels(x: NDArray, y: NDArray) -> list[tuple[float, float]]:
        across = (x - left) / (right - left) if right > left else np.full(len(x), 0.5)
        up = (y - low) / (high - low) if high > low else np.full(len(y), 0.5)
        return list(zip((2 + across * (width - 4)).tolist(), (height - 3 - up * (height - 6)).tolist(), strict=True))

    parts = []
    for n, (x, y) in enumerate(arrays):
        colour = _COLOURS[n % len(_COLOURS)]
        band = bands[n] if n < len(bands) else None
        if band is not None:
            bx, lows, highs = (np.asarray(part, np.float64) for part in band)
            known = np.isfinite(lows) & np.isfinite(highs)
            outline = [*in_pixels(bx[known], highs[known]), *reversed(in_pixels(bx[known], lows[known]))]
            if outline:
                parts.append(f'<path d="{_path(outline)}Z" fill="{colour}" opacity=".22"/>')
        bad = x[~np.isfinite(y) & np.isfinite(x)][:50]
        tx, ty = thinned(x, y, width)
        parts += _strokes(in_pixels(tx, ty), colour)
        parts += [
            f'<circle cx="{px:.1f}" cy="{height - 1.5:g}" r="1.5" fill="#d33"/>'
            for px, _ in in_pixels(bad, np.zeros(len(bad)))
        ]
    return f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">{"".join(parts)}</svg>'


def _strokes(points: list[tuple[float, float]], colour: str) -> list[str]:
    """One path for each interval without a gap; a single point is a dot."""
    parts, stretch = [], []
    for x, y in [*points, (math.nan, math.nan)]:
        if math.isfinite(x) and math.isfinite(y):
            stretch.append((x, y))
            continue
        if len(stretch) == 1:
            parts.append(f'<circle cx="{stretch[0][0]:.1f}" cy="{stretch[0][1]:.1f}" r="1.6" fill="{colour}"/>')
        elif stretch:
            parts.append(f'<path d="{_path(stretch)}" fill="none" stroke="{colour}" stroke-width="1.3"/>')
        stretch = []
    return parts


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.6g}"
    return _safe(value)


def _safe(text: object, longest: int = 80) -> str:
    return html.escape(short(text, longest), quote=True)
