"""matplotlib figures as pixels."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from rollbook.values.array_types import NDArray


def pixels_of(figure: Any) -> NDArray:
    """[height, width, 4] uint8, drawn by matplotlib's own rasteriser."""
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    return np.array(canvas.buffer_rgba())


def close_figures(figures: Iterable[object]) -> None:
    """Close the figures in pyplot, if it knows them."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        for figure in figures:
            pyplot.close(figure)
