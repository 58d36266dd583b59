"""Charts: each is a method of the object that it shows, a function here, and a command.

    book.plot("train/return"); runs.plot("test/return", by="config.algo"); comparison.plot("intervals")
    rollbook.plots.draw("curves", panel).save("x.png", theme="dark")

Uses only arrays and knows neither runs nor books: a chart gets its numbers (`_shapes.py`) and computes none about
groups. There is one style sheet, light and dark; `_registry.py` lists the charts.
"""

from __future__ import annotations

from rollbook.plots._picture import FORMATS, Picture
from rollbook.plots._registry import CHARTS, draw
from rollbook.plots._shapes import Bars, Cells, Dots, Line, Mark, Panel, Spans, Stack, Threads, Trace

__all__ = [
    "CHARTS",
    "FORMATS",
    "Bars",
    "Cells",
    "Dots",
    "Line",
    "Mark",
    "Panel",
    "Picture",
    "Spans",
    "Stack",
    "Threads",
    "Trace",
    "draw",
]
