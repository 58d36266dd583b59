"""The table that `dump_tabular` prints."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

__all__ = ["render"]


def render(row: Mapping[str, object], old_style: bool = False) -> str:
    """The row as a table of two columns, names and values, both right-aligned.

    Args:
      row: name -> value; None is shown as an empty cell.
      old_style: integers with three significant digits, and no wider column for long values.
    """
    cells = {key: _text(value, old_style) for key, value in row.items()}
    name_width = max(15, *map(len, cells)) if cells else 15
    value_width = 15 if old_style else max(15, *(len(text) for text in cells.values())) if cells else 15
    rule = "-" * (7 + name_width + value_width)
    lines = [f"| {key:>{name_width}} | {text:>{value_width}} |" for key, text in cells.items()]
    return "\n".join([rule, *lines, rule])


def _text(value: Any, old_style: bool) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value if old_style else value.replace("\n", "\\n").replace("\t", "\\t")
    if not old_style and isinstance(value, (bool, int)):
        return str(value)
    if hasattr(value, "__float__"):
        try:
            number = value.item() if getattr(value, "shape", None) == () else value
            if not old_style and isinstance(number, int):
                return str(number)
            return f"{float(number):8.3g}"
        except (TypeError, ValueError):
            return str(value)
    return str(value)
