"""Single settings of a configuration, at any depth."""

from __future__ import annotations

import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MOST_LEVELS = 8


def number_in(config: Any, *names: str, level: int = 0) -> float | None:
    """The first positive number with one of these names (in lower case), the outermost first; None for none."""
    if not hasattr(config, "items") or level > _MOST_LEVELS:
        return None
    for name, value in config.items():
        number = plain(value)
        if number is not None and number > 0 and str(name).lower() in names:
            return number
    for value in config.values():
        inner = number_in(value, *names, level=level + 1)
        if inner is not None:
            return inner
    return None


def plain(value: Any) -> float | None:
    """A setting that is a finite number, as a float; None for anything else."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:  # an integer too large for a float
        return None
    return number if math.isfinite(number) else None
