"""Any value of a run in a form that JSON can hold."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from rollbook.system.texts import exact_number

Num = float | Literal["NaN", "Infinity", "-Infinity"] | None
"""A number; as text if JSON cannot write it; null: there is none."""

_LARGEST = 2**53
_DEEPEST = 12
_MOST_ITEMS = 1_000


def num(value: object) -> Num:
    """A number, or its text for NaN and infinities; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        return None
    if isinstance(value, (int, np.integer)):
        return float(value)
    return float(value) if math.isfinite(value) else _word(float(value))


def _word(value: float) -> Literal["NaN", "Infinity", "-Infinity"]:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def plain(value: object, longest: int | None = None, depth: int = 0) -> Any:
    """Any value of a run in a form that JSON can hold.

    Args:
      longest: longer texts become {"text": their beginning, "length": their full length}.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if -_LARGEST <= value <= _LARGEST else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else _word(value)
    if isinstance(value, str):
        text = value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")
        if longest is not None and len(text) > longest:
            return {"text": text[:longest], "length": len(text)}
        return text
    if isinstance(value, np.generic):
        return plain(value.item(), longest, depth)
    if isinstance(value, (datetime.datetime, datetime.date)):
        return seconds_of(value)
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, (bytes, bytearray)):
        return {"bytes": len(value)}
    if hasattr(value, "as_integer_ratio"):  # a decimal
        return plain(exact_number(value), longest, depth)
    if depth >= _DEEPEST:
        return "…"
    if isinstance(value, Mapping):
        items = list(value.items())[:_MOST_ITEMS]
        return {str(plain(str(name))): plain(cell, longest, depth + 1) for name, cell in items}
    if isinstance(value, np.ndarray):
        return plain(value[:_MOST_ITEMS].tolist(), longest, depth)
    if isinstance(value, (Sequence, set, frozenset)):
        return [plain(cell, longest, depth + 1) for cell in list(value)[:_MOST_ITEMS]]
    return plain(str(value), longest, depth)


def finite(value: object) -> float | None:
    """A number from a run's run.json; None if it is no finite number."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not abs(value) < 1e15:
        return None
    return float(value)


def seconds_of(value: object) -> float | None:
    """A moment as unix seconds."""
    if isinstance(value, datetime.datetime):
        return (value if value.tzinfo else value.replace(tzinfo=datetime.UTC)).timestamp()
    if isinstance(value, datetime.date):
        return datetime.datetime(value.year, value.month, value.day, tzinfo=datetime.UTC).timestamp()
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
