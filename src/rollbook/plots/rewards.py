"""Reward components, stacked: the parts of the return along training, penalties below zero."""

from __future__ import annotations

from rollbook.plots._shapes import Stack
from rollbook.plots._stacked import draw_stack
from rollbook.plots._style import Style

TYPE_CHECKING = False
if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(figure: Figure, data: Stack, style: Style, *, share: bool = False) -> None:
    """Draw the components of the return.

    Args:
      share: show shares of the sum of absolute values.
    """
    draw_stack(figure, data, style, share=share)
