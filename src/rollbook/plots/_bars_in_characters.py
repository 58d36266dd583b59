"""Estimates with their intervals in characters: a row each, the interval as a line and the estimate as a mark in it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rollbook.plots._characters import lines_of
from rollbook.plots._paint import measure
from rollbook.plots._shapes import Bars, short, shorts

_SIGNS = {False: ("-", "|", ".", ":"), True: ("─", "┃", "·", "┊")}
"""With colours or without: an interval, an estimate, a score, no difference."""


def bars_in_characters(bars: Bars, width: int, height: int, colour: bool = False) -> str:
    """One panel; its height is that of its rows, whatever `height` says."""
    return panels_of_bars_in_characters((bars,), width, height, colour)


def panels_of_bars_in_characters(panels: Sequence[Bars], width: int, height: int, colour: bool = False) -> str:
    """Panels one below the other, with labels of one width; remarks that they share are printed once."""
    drawn = [panel for panel in panels if panel.labels]
    if not drawn:
        return "no group has a score"
    margin = min(max(len(label) for panel in drawn for label in panel.labels), width // 3)
    texts = ["\n".join(_panel(panel, margin, width, colour)) for panel in drawn]
    line, mark, dot, _ = _SIGNS[colour]
    seeds = f"   {dot}  a score" if any(panel.points for panel in drawn) else ""
    remarks = dict.fromkeys(remark for panel in drawn for remark in panel.remarks)
    shared_remarks = [
        f"{mark}  estimate   {line}  its interval{seeds}",
        *(text for it in remarks for text in lines_of(it, width)),
    ]
    return "\n\n".join([*texts, "\n".join(shared_remarks)])


def _panel(panel: Bars, margin: int, width: int, colour: bool) -> list[str]:
    line, mark, dot, zero = _SIGNS[colour]
    room = width - margin - 2
    every = np.concatenate([panel.values, panel.low, panel.high, *map(np.asarray, panel.points)])
    finite = every[np.isfinite(every)]
    low, high = panel.span or ((float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0))
    if panel.zero is not None and panel.span is None:
        low, high = min(low, panel.zero), max(high, panel.zero)

    def at(value: float) -> int:
        share = (value - low) / (high - low) if high > low else 0.5
        return int(np.clip(round(share * (room - 1)), 0, room - 1))

    title = short(panel.title if panel.title == panel.axis or not panel.axis else f"{panel.title}: {panel.axis}", width)
    rows = [title]
    for index, label in enumerate(shorts(panel.labels, margin)):
        cells = [" "] * room
        if panel.zero is not None:
            cells[at(panel.zero)] = zero
        ends = panel.low[index], panel.high[index]
        if np.isfinite(ends).all():
            cells[at(ends[0]) : at(ends[1]) + 1] = line * (at(ends[1]) - at(ends[0]) + 1)
        for score in np.asarray(panel.points[index], dtype=np.float64) if panel.points else ():
            if np.isfinite(score):
                cells[at(score)] = dot
        if np.isfinite(panel.values[index]):
            cells[at(panel.values[index])] = mark
        rows.append(f"{label.rjust(margin)}  {''.join(cells)}".rstrip())
    largest = max(abs(low), abs(high))
    left, right = measure(low, largest), measure(high, largest)
    return [*rows, " " * (margin + 2) + left + right.rjust(max(1, room - len(left)))]
