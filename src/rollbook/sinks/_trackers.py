"""What the sinks of tracking services have in common: configurations as flat, plain values, and numbers as floats."""

from __future__ import annotations

import math
from typing import Any

from rollbook.values import flatten, scalar_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["as_float", "flat_config"]


def as_float(value: float) -> float:
    """The number as a float; integers beyond the floats become infinities."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def flat_config(config: Mapping[str, object]) -> dict[str, Any]:
    """The leaves of a configuration by path: numbers, truth values and text as they are, everything else as text."""
    flat: dict[str, Any] = {}
    for key, value in flatten(config):
        plain = value if isinstance(value, (str, bool)) else scalar_of(value)
        flat[key] = str(value) if plain is None else plain
    return flat
