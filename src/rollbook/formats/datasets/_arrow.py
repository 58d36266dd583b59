"""numpy arrays as Arrow columns of lists, and any Arrow column as cells."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rollbook.formats.datasets._cells import Cells, column_cells, stacked
from rollbook.values.array_types import NDArray
from rollbook.values.arrow import from_numpy


def fixed_lists(cells: NDArray) -> pa.Array:
    """[rows, *shape] as nested lists of fixed lengths."""
    flat = from_numpy(np.ascontiguousarray(cells).reshape(-1))
    for width in reversed(cells.shape[1:]):
        flat = pa.FixedSizeListArray.from_arrays(flat, int(width))
    return flat


def to_cells(column: pa.ChunkedArray) -> object:
    """The cells of a column: an array if they have one shape; structs become dicts of such arrays."""
    kind = column.type
    if pa.types.is_struct(kind):
        whole = column.combine_chunks()
        parts = whole.chunks if isinstance(whole, pa.ChunkedArray) else [whole]
        return {
            field.name: to_cells(pa.chunked_array([part.field(i) for part in parts], field.type))
            for i, field in enumerate(kind)
        }
    if _is_list(kind) and _is_list(kind.value_type):
        return _nested(column)
    if column.null_count:
        return column.to_pylist()
    return column_cells(column)


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _nested(column: pa.ChunkedArray) -> Cells:
    """Lists of lists of one shape as an array, without Python objects; others as lists."""
    whole = column.combine_chunks()
    array = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
    shape: list[int] = []
    while _is_list(array.type):
        if array.null_count:
            return stacked(column.to_pylist())
        lengths = set(array.value_lengths().to_pylist())
        if len(lengths) != 1:
            return stacked([np.asarray(cell) if _is_even(cell) else cell for cell in column.to_pylist()])
        shape.append(lengths.pop())
        array = array.flatten()
    return np.asarray(column_cells(pa.chunked_array([array]))).reshape(len(column), *shape)


def _is_even(cell: object) -> bool:
    try:
        return np.asarray(cell).dtype.kind in "biuf"
    except ValueError:
        return False
