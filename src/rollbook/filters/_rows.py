"""Rows as plain JSON data, for the state of filters that hold rows back."""

from __future__ import annotations

import math
from typing import Any

from rollbook.protocols import Row
from rollbook.values.known import KINDS, kind_as_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from rollbook.protocols import Value

__all__ = ["row_from_json", "row_to_json", "value_from_json", "value_to_json"]


def value_to_json(value: Value) -> object:
    """A value as plain JSON data: NaN and infinities, which JSON lacks, become {"number": "nan"}."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": repr(value)}
    data = kind_as_json(value, value_to_json)
    return value if data is None else data


def value_from_json(data: object) -> Any:
    """What `value_to_json` was given."""
    if not isinstance(data, dict):
        return data
    if "number" in data:
        return float(data["number"])
    fields = {
        name: [value_from_json(cell) for cell in cells] if isinstance(cells, list) else value_from_json(cells)
        for name, cells in data.items()
    }
    return KINDS[str(data["kind"])].value(fields)


def row_to_json(row: Row) -> dict[str, object]:
    """A row of values as plain JSON data."""
    return {
        "time": row.time,
        "clocks": dict(row.clocks),
        "values": {key: value_to_json(value) for key, value in row.values.items()},
        "scope": row.scope,
        "writer": row.writer,
        "lane": row.lane,
        "seq": row.seq,
        "attempt": row.attempt,
        "at": row.at,
    }


def row_from_json(data: Mapping[str, Any]) -> Row:
    """The row that `row_to_json` was given."""
    rest = {name: item for name, item in data.items() if name != "values"}
    return Row(**rest, values={key: value_from_json(value) for key, value in data["values"].items()})
