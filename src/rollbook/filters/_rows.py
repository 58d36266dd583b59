"""Rows as plain JSON data, for the state of filters that hold rows back."""

from __future__ import annotations

import math
from typing import Any

from rollbook.protocols import Row
from rollbook.values import Histogram, Image, Video

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from rollbook.protocols import Value

__all__ = ["row_from_json", "row_to_json", "value_from_json", "value_to_json"]


def value_to_json(value: Value) -> Any:
    """A value as plain JSON data: NaN and infinities, which JSON lacks, become {"number": "nan"}."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": repr(value)}
    if isinstance(value, Histogram):
        return {
            "kind": "histogram",
            **{name: value_to_json(getattr(value, name)) for name in ("low", "high", "total", "total_squares")},
            "edges": [value_to_json(e) for e in value.edges],
            "counts": [value_to_json(c) for c in value.counts],
        }
    if isinstance(value, Image):
        return {"kind": "image", "path": value.path, "width": value.width, "height": value.height}
    if isinstance(value, Video):
        return {
            "kind": "video",
            "path": value.path,
            "width": value.width,
            "height": value.height,
            "frames": value.frames,
            "fps": value.fps,
        }
    return value


def value_from_json(data: Any) -> Any:
    """What `value_to_json` was given."""
    if not isinstance(data, dict):
        return data
    if "number" in data:
        return float(data["number"])
    data = dict(data)
    kind = data.pop("kind")
    if kind == "image":
        return Image(**data)
    if kind == "video":
        return Video(**data)
    plain = {name: value_from_json(data[name]) for name in ("low", "high", "total", "total_squares")}
    edges, counts = ([value_from_json(number) for number in data[name]] for name in ("edges", "counts"))
    return Histogram(edges, counts, **plain)


def row_to_json(row: Row) -> dict[str, Any]:
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
