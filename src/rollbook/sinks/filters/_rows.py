"""Rows as plain JSON data, for the state of filters that hold rows back."""

from __future__ import annotations

import math

from rollbook.schema.records import Row
from rollbook.values.known import KINDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from rollbook.protocols import Value


def value_to_json(value: Value) -> object:
    """A value as plain JSON data: NaN and infinities, which JSON lacks, become {"number": "nan"}."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": repr(value)}
    data = KINDS.as_json(value, value_to_json)
    return value if data is None else data


def value_from_json(data: object) -> Any:
    """What `value_to_json` was given."""
    if not isinstance(data, dict):
        return data
    if "number" in data:
        return float(data["number"])
    parts = {
        name: [value_from_json(cell) for cell in part] if isinstance(part, list) else value_from_json(part)
        for name, part in data.items()
    }
    return KINDS[str(data["kind"])].value(parts)


def row_to_json(row: Row) -> dict[str, object]:
    """A row as plain JSON data."""
    data = {name: getattr(row, name) for name in row.names}
    data["clocks"] = dict(row.clocks)
    data["values"] = {key: value_to_json(value) for key, value in row.values.items()}
    data["keys"] = list(row.keys)
    return data


def row_from_json(data: Mapping[str, Any]) -> Row:
    """The row that `row_to_json` was given."""
    values = {key: value_from_json(value) for key, value in data["values"].items()}
    return Row(**{**data, "values": values, "keys": tuple(data.get("keys", ()))})
