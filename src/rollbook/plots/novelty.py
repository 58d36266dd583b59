"""Sample novelty: which share of the items was never seen before, along training."""

from __future__ import annotations

from rollbook.plots import profiles
from rollbook.plots._shapes import Panel
from rollbook.plots._style import Style

__all__ = ["draw"]


def draw(figure: object, data: Panel, style: Style) -> None:
    """Draw shares of items from 0 to 1."""
    profiles.draw(figure, data, style)
