"""Small multiples: one panel per key, group or run, all along the same axis."""

from __future__ import annotations

from collections.abc import Sequence

from rollbook.plots._paint import Paint, below
from rollbook.plots._shapes import Panel, shorts
from rollbook.plots._style import Style
from rollbook.plots.curves import Limits, paint_panel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST = 64
_PAGE = 7.0


def draw(
    figure: Figure,
    data: Sequence[Panel],
    style: Style,
    *,
    limits: Limits | None = None,
    log: bool = False,
    same_scale: bool = False,
    columns: int | None = None,
) -> None:
    """Draw panels in a grid. A figure of at most 7 inches keeps its width, for papers; a wider one grows.

    Args:
      limits, log: see `curves.draw`.
      same_scale: one y scale for all panels; right for groups of one metric, wrong for several metrics.
      columns: panels side by side; None: automatic.
    """
    panels = list(data)[:_MOST]
    if not panels:
        Paint(figure.subplots(), style).empty()
        return
    width = figure.get_figwidth()
    paper = width <= _PAGE
    wide = columns or (1 if len(panels) == 1 else 2 if len(panels) in (2, 4) else 3 if len(panels) <= 12 else 5)
    wide = min(wide, max(1, int(width / 1.6))) if paper and columns is None else wide
    tall = -(-len(panels) // wide)
    height = (1.55 if width / wide < 2 else 1.9) if paper else 2.6 if wide < 4 else 1.9
    figure.set_size_inches(width if paper else max(_PAGE, 2.6 * wide), height * tall + 0.3)
    grid = figure.subplots(tall, wide, squeeze=False, sharex=True, sharey=same_scale)
    entries: list[tuple[object, str]] = []
    one_line = all(len(panel.lines) <= 1 for panel in panels)
    titles = shorts([panel.title for panel in panels], max(12, 80 // wide))
    for index, (axes, panel) in enumerate(zip(grid.flat, panels, strict=False)):
        paint = Paint(axes, style)
        paint_panel(paint, panel, limits=limits, log=log, first_colour=index if one_line else 0)
        if index + wide < len(panels):  # panels with nothing below them label x
            axes.set_xlabel("")
        axes.tick_params(labelbottom=index + wide >= len(panels), labelleft=not same_scale or index % wide == 0)
        axes.set_title(titles[index], fontsize=9 if wide < 4 else 7.5)
        entries += paint.entries if one_line or not index else []
    for axes in list(grid.flat)[len(panels) :]:
        axes.set_visible(False)
    remarks = tuple(dict.fromkeys(remark for panel in panels for remark in panel.remarks))
    if len(data) > _MOST:
        remarks = (f"{len(data) - _MOST} more panels are not shown.", *remarks)
    below(figure, entries if len(entries) <= 24 else entries[:1], remarks, style)
