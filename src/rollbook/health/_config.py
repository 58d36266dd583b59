"""Single settings of a configuration, wherever in it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["number_in"]

_MOST_LEVELS = 8


def number_in(config: Any, *names: str, level: int = 0) -> float | None:
    """The first positive number of one of these names (in lower case), the outermost first; None for none."""
    if not hasattr(config, "items") or level > _MOST_LEVELS:
        return None
    for name, value in config.items():
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if is_number and str(name).lower() in names and value > 0:
            return float(value)
    for value in config.values():
        inner = number_in(value, *names, level=level + 1)
        if inner is not None:
            return inner
    return None
