"""Values of a run in a form that JSON can hold: NaN and infinities as text, long texts cut, times as seconds."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from rollbook.ground.arrow import from_numpy, to_numpy
from rollbook.server.schemas.common import Column, Num

__all__ = ["column_kind", "columns_of", "finite", "num", "plain", "rows_of", "seconds_of"]

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


def column_kind(kind: pa.DataType) -> str:
    """text, number, integer, boolean, time or other."""
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "text"
    if pa.types.is_dictionary(kind):
        return column_kind(kind.value_type)
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_integer(kind):
        return "integer"
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    return "time" if pa.types.is_temporal(kind) else "other"


def columns_of(table: pa.Table) -> list[Column]:
    """The columns of a table and what they hold."""
    return [Column(name=plain(field.name), type=column_kind(field.type)) for field in table.schema]


def rows_of(table: pa.Table, longest: int | None = 300) -> list[dict[str, object]]:
    """The rows of a (small) table as cells; times as unix seconds."""
    return [{plain(name): plain(cell, longest) for name, cell in row.items()} for row in cells_of(table)]


def cells_of(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a (small) table unchanged, except times as unix seconds: Arrow's own datetimes load pandas."""
    rows: list[dict[str, object]] = in_seconds(table).to_pylist()
    return rows


def in_seconds(table: pa.Table) -> pa.Table:
    """A table with its times as float64 unix seconds."""
    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[field.type.unit]
            ticks, valid = to_numpy(table.column(place))
            seconds = ticks.astype("int64").astype("float64") / per_second
            table = table.set_column(place, field.name, from_numpy(seconds, valid))
    return table
