"""A distribution as one row of the table `histograms`: raw while it is small, in bins when it is large."""

from __future__ import annotations

from rollbook.values import MAX_RAW_ARRAY, Histogram
from rollbook.values.arrays import host_array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["histogram_columns"]


def histogram_columns(value: Any) -> dict[str, Any]:
    """The columns of one row of the `histograms` table: raw values up to `MAX_RAW_ARRAY` elements, else 64 bins."""
    if isinstance(value, Histogram):
        return {
            "edges": [list(value.edges)],
            "counts": [list(value.counts)],
            "low": [value.low],
            "high": [value.high],
            "total": [value.total],
            "total_squares": [value.total_squares],
        }
    if isinstance(value, (list, tuple)) and len(value) <= MAX_RAW_ARRAY:
        return {"values": [[float(item) for item in value]]}
    import numpy as np

    array = host_array(value).reshape(-1)
    if array.dtype.kind == "O":
        array = np.array([float(item) for item in array.tolist()])
    elif array.dtype.kind not in "fiub":
        raise TypeError(f"its elements are {array.dtype}")
    if array.size <= MAX_RAW_ARRAY:
        return {"values": [array.tolist()]}
    array = array.astype(np.float64, copy=False)
    finite = array[np.isfinite(array)]
    if not finite.size:
        return {"values": [array[:MAX_RAW_ARRAY].tolist()]}
    counts, edges = np.histogram(finite, bins=64)
    return {
        "edges": [edges.tolist()],
        "counts": [counts.tolist()],
        "low": [float(finite.min())],
        "high": [float(finite.max())],
        "total": [float(finite.sum())],
        "total_squares": [float(np.square(finite).sum())],
        "non_finite": [int(array.size - finite.size)],
    }
