"""A distribution as one row of the table `histograms`: raw while it is small, in bins when it is large."""

from __future__ import annotations

from rollbook.ground.describe import histogram_of
from rollbook.ground.values import MAX_RAW_ARRAY, Histogram
from rollbook.ground.values.arrays import host_array

__all__ = ["histogram_columns"]


def histogram_columns(value: object) -> dict[str, object]:
    """The columns of one row of the `histograms` table: raw values up to `MAX_RAW_ARRAY` elements, else 64 bins."""
    if isinstance(value, Histogram):
        return _columns(value)
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
    binned = histogram_of(array)
    if binned is None:
        return {"values": [array[:MAX_RAW_ARRAY].astype(np.float64).tolist()]}
    counts = [int(count) for count in binned.counts]
    return {**_columns(binned), "counts": [counts], "non_finite": [int(array.size - binned.count)]}


def _columns(binned: Histogram) -> dict[str, object]:
    return {
        "edges": [list(binned.edges)],
        "counts": [list(binned.counts)],
        "low": [binned.low],
        "high": [binned.high],
        "total": [binned.total],
        "total_squares": [binned.total_squares],
    }
