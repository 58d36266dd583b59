"""Sample novelty: the share of new items, along training."""

from __future__ import annotations

from rollbook.plots import profiles
from rollbook.plots._shapes import Panel
from rollbook.plots._style import Style

TYPE_CHECKING = False
if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(figure: Figure, data: Panel, style: Style) -> None:
    """Draw shares of items from 0 to 1."""
    profiles.draw(figure, data, style)
