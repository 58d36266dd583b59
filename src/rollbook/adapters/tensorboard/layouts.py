"""Layouts of `add_custom_scalars` as boards of the page: a category is a board, a chart is the keys that it shows."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
DEFAULT_CATEGORY, DEFAULT_TITLE = "default", "untitled"
"""Those of `add_custom_scalars_multilinechart` and its sibling in torch and tensorboardX."""


def boards_of(layout: Mapping[str, Mapping[str, Sequence[object]]], prefix: str) -> dict[str, list[list[str]]]:
    """The charts of each category, as lists of keys; those without a key are left out.

    Args:
      layout: category -> title of a chart -> ["Multiline", tags] or ["Margin", [value, lower, upper]].
      prefix: of the writer's keys in the book.
    Raises:
      ValueError: a chart is no kind with its tags.
    """
    boards: dict[str, list[list[str]]] = {}
    for category, charts in layout.items():
        for title, chart in charts.items():
            tags = chart[1] if isinstance(chart, (list, tuple)) and len(chart) == 2 else None
            if not isinstance(tags, (list, tuple)):
                raise ValueError(f"chart {title!r} of {category!r} is {chart!r:.100}, not ['Multiline', [tag, …]]")
            if tags:
                boards.setdefault(str(category), []).append([f"{prefix}{tag}" for tag in tags])
    return boards
