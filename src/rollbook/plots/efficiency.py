"""Sample efficiency: the share of seeds that have reached a score, along training."""

from __future__ import annotations

from rollbook.plots import profiles
from rollbook.plots._shapes import Panel
from rollbook.plots._style import Style

TYPE_CHECKING = False
if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(figure: Figure, data: Panel, style: Style) -> None:
    """Draw shares of seeds from 0 to 1 along training; the band is exact for this number of seeds."""
    profiles.draw(figure, data, style)
