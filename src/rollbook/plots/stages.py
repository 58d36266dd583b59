"""Time per stage, stacked along training: where the seconds are spent, and when that changes."""

from __future__ import annotations

from rollbook.plots._shapes import Stack
from rollbook.plots._stacked import draw_stack
from rollbook.plots._style import Style

TYPE_CHECKING = False
if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(figure: Figure, data: Stack, style: Style, *, share: bool = False) -> None:
    """Draw the seconds of each stage without its nested stages.

    Args:
      share: show shares of the measured time instead of seconds.
    """
    draw_stack(figure, data, style, share=share)
