"""Arrow arrays from buffers, and numpy arrays from Arrow arrays.

`pa.array`, `pa.scalar` and `.to_numpy()` import pandas at their first use if it is installed, which takes most of a
second. Everything here uses buffers instead, so neither sealing nor reading ever loads pandas.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from rollbook.system.guard import tolerating
from rollbook.values.array_types import NDArray
from rollbook.values.raw_array import RawArray

TIME = pa.timestamp("ns", tz="UTC")
"""The type of every `time` column."""

JSON_FIELD = {b"rollbook": b"json"}
"""Field metadata of text columns with JSON, for values without a common type."""


def from_numpy(values: NDArray, valid: NDArray | None = None, type: pa.DataType | None = None) -> pa.Array:
    """A one-dimensional numpy array as an Arrow array over the same memory (booleans are packed).

    Args:
      values: numbers or booleans, C-contiguous or not.
      valid: True for each existing value; None means all exist.
      type: the Arrow type, if it is not the default one of the dtype (timestamps); of the same width.
    """
    n = len(values)
    nulls, bitmap = 0, None
    if valid is not None:
        nulls = n - int(np.count_nonzero(valid))
        if nulls:
            bitmap = pa.py_buffer(np.packbits(np.asarray(valid, dtype=bool), bitorder="little"))
    if values.dtype == np.bool_:
        packed = pa.py_buffer(np.packbits(values, bitorder="little"))
        return pa.Array.from_buffers(pa.bool_(), n, [bitmap, packed], nulls)
    values = np.ascontiguousarray(values)
    kind = pa.from_numpy_dtype(values.dtype) if type is None else type
    return pa.Array.from_buffers(kind, n, [bitmap, pa.py_buffer(values)], nulls)


def time_array(values_ns: NDArray) -> pa.Array:
    """Unix nanoseconds as a column of times."""
    return from_numpy(np.asarray(values_ns, dtype=np.int64), type=TIME)


def strings(values: Sequence[str | None], *, binary: bool = False) -> pa.Array:
    """Texts (or bytes) with None for null."""
    n = len(values)
    parts = [
        b"" if value is None else value if isinstance(value, bytes) else str(value).encode("utf-8", "backslashreplace")
        for value in values
    ]
    valid = np.fromiter((value is not None for value in values), dtype=bool, count=n)
    offsets = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, parts), dtype=np.int64, count=n), out=offsets[1:])
    large = bool(offsets[-1] >= 2**31)
    kind = (pa.large_binary() if large else pa.binary()) if binary else (pa.large_string() if large else pa.string())
    nulls = len(values) - int(valid.sum())
    bitmap = pa.py_buffer(np.packbits(valid, bitorder="little")) if nulls else None
    buffers = [bitmap, pa.py_buffer(offsets if large else offsets.astype(np.int32)), pa.py_buffer(b"".join(parts))]
    return pa.Array.from_buffers(kind, len(values), buffers, nulls)


def constant(value: str, n: int) -> pa.Array:
    """The same text n times, dictionary-encoded."""
    return pa.DictionaryArray.from_arrays(from_numpy(np.zeros(n, dtype=np.int32)), strings([value]))


def floats(values: Sequence[Any]) -> pa.Array:
    """Numbers as float64, with None for null."""
    valid = np.fromiter((value is not None for value in values), dtype=bool, count=len(values))
    filled = np.fromiter((np.nan if v is None else float(v) for v in values), dtype=np.float64, count=len(values))
    return from_numpy(filled, None if valid.all() else valid)


def integers(values: Sequence[Any]) -> pa.Array:
    """Numbers as int64, with None for null."""
    valid = np.fromiter((value is not None for value in values), dtype=bool, count=len(values))
    filled = np.fromiter((0 if v is None else int(v) for v in values), dtype=np.int64, count=len(values))
    return from_numpy(filled, None if valid.all() else valid)


def to_numpy(column: pa.Array | pa.ChunkedArray) -> tuple[NDArray, NDArray | None]:
    """(values, valid) of a column of numbers, booleans or times; valid is None if nothing is null.

    Values under nulls are arbitrary. A view where possible. Dictionary and text columns give object arrays.
    """
    if isinstance(column, pa.ChunkedArray):
        if column.num_chunks == 1:
            return to_numpy(column.chunk(0))
        parts = [to_numpy(chunk) for chunk in column.chunks]
        if not parts:
            return np.zeros(0, dtype=_dtype(column.type)), None
        values = np.concatenate([values for values, _ in parts])
        if all(valid is None for _, valid in parts):
            return values, None
        return values, np.concatenate([np.ones(len(v), dtype=bool) if ok is None else ok for v, ok in parts])
    n, offset, kind = len(column), column.offset, column.type
    if pa.types.is_null(kind):
        return np.zeros(n), np.zeros(n, dtype=bool)
    valid = None
    if column.null_count:
        bitmap = column.buffers()[0]
        bits = np.unpackbits(np.frombuffer(bitmap, dtype=np.uint8), bitorder="little", count=offset + n)
        valid = bits[offset:].view(bool)
    if pa.types.is_dictionary(kind) or not _is_fixed(kind):
        return _objects(column), valid
    data = column.buffers()[1]
    if pa.types.is_boolean(kind):
        if data is None:
            return np.zeros(n, dtype=bool), valid
        bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8), bitorder="little", count=offset + n)
        return bits[offset:].view(bool), valid
    dtype = _dtype(kind)
    if data is None or n == 0:
        return np.zeros(n, dtype=dtype), valid
    return np.frombuffer(data, dtype=dtype, count=n, offset=offset * dtype.itemsize), valid


def plain_rows(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a (small) table as dicts, times as datetimes in UTC. Arrow's own function would load pandas."""
    columns = [_moments(c) if pa.types.is_timestamp(c.type) else c.to_pylist() for c in table.columns]
    return [dict(zip(table.column_names, cells, strict=True)) for cells in zip(*columns, strict=True)]


def _moments(column: pa.ChunkedArray) -> list[datetime | None]:
    ticks, valid = to_numpy(column)
    scale = {"s": 10**6, "ms": 10**3, "us": 1, "ns": 1}[column.type.unit]
    divisor = 1000 if column.type.unit == "ns" else 1
    begin = datetime(1970, 1, 1, tzinfo=UTC)
    there = [True] * len(ticks) if valid is None else valid.tolist()
    return [
        begin + timedelta(microseconds=tick * scale // divisor) if known else None
        for tick, known in zip(ticks.astype(np.int64).tolist(), there, strict=True)
    ]


def order_of(texts: NDArray) -> NDArray:
    """A number for each text of an object array: equal texts get equal numbers, in their order."""
    numbers = {text: number for number, text in enumerate(sorted(set(texts.tolist())))}
    return np.fromiter(map(numbers.__getitem__, texts), dtype=np.int64, count=len(texts))


def take(column: pa.Array | pa.ChunkedArray, indices: NDArray) -> pa.Array | pa.ChunkedArray:
    """The items at `indices`. numpy handles numbers, times and dictionary words: Arrow's own function loads
    pyarrow.compute, which is most of the cost of a first read.
    """
    kind = column.type
    if _is_fixed(kind):
        values, valid = to_numpy(column)
        plain = kind if pa.types.is_timestamp(kind) or pa.types.is_duration(kind) else None
        return from_numpy(values[indices], None if valid is None else valid[indices], plain)
    if isinstance(column, pa.ChunkedArray) and column.num_chunks == 1:
        column = column.chunk(0)
    if isinstance(column, pa.DictionaryArray):
        codes = take(column.indices, indices)
        return pa.DictionaryArray.from_arrays(codes, column.dictionary, ordered=kind.ordered)
    return column.take(from_numpy(np.asarray(indices, dtype=np.int64)))


def take_table(table: pa.Table, indices: NDArray) -> pa.Table:
    """The rows at `indices`; consecutive ones become a slice without a copy."""
    n = len(indices)
    if n and int(indices[-1]) - int(indices[0]) == n - 1 and (n < 3 or bool(np.all(np.diff(indices) == 1))):
        return table.slice(int(indices[0]), n)
    indices = np.asarray(indices, dtype=np.int64)
    return pa.Table.from_arrays([take(column, indices) for column in table.columns], schema=table.schema)


def rows_equal(column: pa.ChunkedArray, text: str) -> NDArray:
    """Which rows of a column equal `text`; other values are compared in their written form."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = plain_text(column)
        kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        import pyarrow.compute as pc

        hits, valid = to_numpy(pc.equal(column, strings([text]).cast(kind)[0]))
        return np.flatnonzero(hits if valid is None else hits & valid)
    return np.flatnonzero([str(cell) == text for cell in column.to_pylist()]).astype(np.int64)


def common_type(types: Sequence[pa.DataType]) -> pa.DataType:
    """The narrowest type that fits columns of all these types; text if they have nothing in common."""
    kinds: list[pa.DataType] = []
    for kind in types:
        plain = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not pa.types.is_null(plain) and plain not in kinds:
            kinds.append(plain)
    if len(kinds) <= 1:
        return kinds[0] if kinds else pa.null()
    if all(pa.types.is_boolean(k) or pa.types.is_integer(k) or pa.types.is_floating(k) for k in kinds):
        if any(pa.types.is_floating(k) for k in kinds):
            return pa.float64()
        return pa.uint64() if any(k == pa.uint64() for k in kinds) else pa.int64()
    if all(pa.types.is_binary(k) or pa.types.is_large_binary(k) for k in kinds):
        return pa.large_binary()
    if all(pa.types.is_list(k) or pa.types.is_large_list(k) for k in kinds):
        inner = common_type([k.value_type for k in kinds])
        if not pa.types.is_string(inner) or all(pa.types.is_string(k.value_type) for k in kinds):
            return pa.large_list(inner) if any(pa.types.is_large_list(k) for k in kinds) else pa.list_(inner)
    return pa.large_string() if any(pa.types.is_large_string(k) for k in kinds) else pa.string()


def cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """The column converted to `kind`, a result of `common_type`."""
    if column.type == kind:
        return column
    if pa.types.is_dictionary(column.type):
        column = plain_text(column)
        return column if column.type == kind else cast(column, kind)
    if pa.types.is_null(column.type):
        return pa.chunked_array([pa.nulls(len(column), kind)], kind)
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if is_text and not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        texts = strings([None if v is None else json.dumps(_plain(v), default=str) for v in column.to_pylist()])
        return pa.chunked_array([texts], texts.type).cast(kind)
    # Arrow has no cast from booleans to floats.
    return column.cast(_without_booleans(column.type), safe=False).cast(kind, safe=False)


def _without_booleans(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_list(kind):
        return pa.large_list(_without_booleans(kind.value_type))
    if pa.types.is_list(kind):
        return pa.list_(_without_booleans(kind.value_type))
    return pa.int64() if pa.types.is_boolean(kind) else kind


def plain_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A dictionary column as plain text."""
    return pa.chunked_array([chunk.dictionary_decode() for chunk in column.chunks], column.type.value_type)


def without_dictionaries(table: pa.Table) -> pa.Table:
    """The table with plain text instead of dictionaries, so that its rows can be sorted, joined and sliced."""
    for i, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(i, field.name, plain_text(table.column(i)))
    return table


def in_microseconds(table: pa.Table) -> pa.Table:
    """The table with its `time` in microseconds, for readers: Python has no datetime with nanoseconds, so
    `.to_pylist()` of such a column needs pandas. Files keep the nanoseconds.
    """
    index = table.column_names.index("time")
    values, valid = to_numpy(table.column(index))
    return table.set_column(index, "time", from_numpy(values // 1000, valid, pa.timestamp("us", tz="UTC")))


def arrays(table: pa.Table) -> dict[str, NDArray]:
    """The columns of a table from `in_microseconds`, as numpy arrays by name.

    Numbers and booleans keep their type if nothing is missing, else they are float64 with NaN. Times are datetime64[us]
    in UTC, NaT if missing. All other columns are object arrays with None if missing.
    """
    columns = {}
    for name in table.column_names:
        column = table.column(name)
        values, valid = to_numpy(column)
        if pa.types.is_timestamp(column.type):
            values = np.where(True if valid is None else valid, values, np.iinfo(np.int64).min).view("datetime64[us]")
        elif values.dtype != object and valid is not None:
            values = np.where(valid, values, np.nan)
        columns[name] = values
    return columns


def empty_table(schema: pa.Schema) -> pa.Table:
    """A table without rows. pyarrow's own function imports pandas."""
    return pa.Table.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def table_of(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """Rows as a table, null where a row lacks a column. Arrow's own function would load pandas.

    Args:
      schema: texts, integers, floats, and lists and structs of these.
    Raises:
      TypeError: a column of another type.
    """
    columns = [_column_of([row.get(field.name) for row in rows], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _column_of(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_string(kind):
        return strings(values)
    if pa.types.is_integer(kind):
        return integers(values)
    if pa.types.is_floating(kind):
        return floats(values)
    if pa.types.is_struct(kind):
        fields = [kind.field(number) for number in range(kind.num_fields)]
        inner = [_column_of([(value or {}).get(field.name) for value in values], field.type) for field in fields]
        return pa.StructArray.from_arrays(inner, fields=fields)
    if pa.types.is_list(kind):
        offsets = np.cumsum([0, *(len(value or ()) for value in values)])
        flat = _column_of([item for value in values for item in value or ()], kind.value_type)
        valid = np.fromiter((value is not None for value in values), dtype=bool, count=len(values))
        return _lists(offsets, flat, valid)
    raise TypeError(f"table_of() makes no column of {kind}")


def join_tables(tables: Sequence[pa.Table]) -> pa.Table:
    """Concatenate tables: all their columns in common types, null where a table lacks a column."""
    if len(tables) == 1:
        return tables[0]
    kinds: dict[str, list[pa.DataType]] = {}
    for table in tables:
        for field in table.schema:
            kinds.setdefault(field.name, []).append(field.type)
    schema = pa.schema([pa.field(name, common_type(types)) for name, types in kinds.items()])
    aligned = []
    for table in tables:
        own = set(table.column_names)
        columns = [
            cast(table[field.name], field.type)
            if field.name in own
            else pa.chunked_array([pa.nulls(table.num_rows, field.type)], field.type)
            for field in schema
        ]
        aligned.append(pa.Table.from_arrays(columns, schema=schema))
    return pa.concat_tables(aligned)


def any_column(values: Sequence[Any] | RawArray) -> tuple[pa.Array, dict[bytes, bytes] | None]:
    """A column of any frame data, in the narrowest type without loss, and its field metadata.

    Arrays keep their number type. Items with several axes become flat lists, with their shape in the metadata. Lists
    become booleans, int64, float64, text, bytes or lists of numbers. Mixed or nested data becomes JSON text.
    """
    if isinstance(values, RawArray):
        return _array_column(values)
    kinds = {type(value) for value in values if value is not None}
    if not kinds:
        return pa.nulls(len(values)), None
    if kinds == {bool}:
        valid = np.fromiter((value is not None for value in values), dtype=bool, count=len(values))
        cells = np.fromiter((bool(value) for value in values), dtype=bool, count=len(values))
        return from_numpy(cells, None if valid.all() else valid), None
    if kinds == {int} and all(value is None or -(2**63) <= value < 2**63 for value in values):
        return integers(values), None
    if kinds <= {int, float} and all(type(v) is not int or abs(v) <= 2**53 for v in values):
        return floats(values), None
    if kinds == {str}:
        return strings(values), None
    if kinds == {bytes}:
        return strings(values, binary=True), None
    if kinds <= {list, RawArray}:
        lists = _list_column(values)
        if lists is not None:
            return lists, None
    return strings([None if v is None else json.dumps(_plain(v), allow_nan=True) for v in values]), JSON_FIELD


def _array_column(array: RawArray) -> tuple[pa.Array, dict[bytes, bytes] | None]:
    cells = array.to_numpy()
    if cells.dtype.kind == "c":
        cells = np.stack([cells.real, cells.imag], axis=-1)
    if cells.dtype.kind in "Mm":
        cells = cells.astype(cells.dtype.str[:3] + "[ns]").view(np.int64)
    if cells.dtype == np.float16:
        cells = cells.astype(np.float32)
    if cells.ndim == 1:
        return from_numpy(cells), None
    width = int(np.prod(cells.shape[1:]))
    flat = from_numpy(cells.reshape(-1))
    shape = {b"shape": ",".join(map(str, cells.shape[1:])).encode()}
    offsets = np.arange(len(cells) + 1, dtype=np.int64) * width
    return _lists(offsets, flat), shape


def _lists(offsets: NDArray, flat: pa.Array, valid: NDArray | None = None) -> pa.Array:
    n = len(offsets) - 1
    large = bool(offsets[-1] >= 2**31)
    kind = pa.large_list(flat.type) if large else pa.list_(flat.type)
    nulls = 0 if valid is None else n - int(valid.sum())
    bitmap = pa.py_buffer(np.packbits(valid, bitorder="little")) if valid is not None and nulls else None
    ends = pa.py_buffer(offsets if large else offsets.astype(np.int32))
    return pa.Array.from_buffers(kind, n, [bitmap, ends], nulls, children=[flat])


def _list_column(values: Sequence[Any]) -> pa.Array | None:
    """Lists of numbers (or of texts) of any lengths, or None for anything else."""
    items: list[NDArray | list[Any]] = []
    for value in values:
        if value is None:
            items.append([])
        elif isinstance(value, RawArray):
            if len(value.shape) != 1 or value.dtype[1] not in "fiub":
                return None
            items.append(value.to_numpy())
        else:
            items.append(value)
    offsets = np.cumsum([0, *map(len, items)])
    valid = np.fromiter((value is not None for value in values), dtype=bool, count=len(values))
    kinds = {type(cell) for item in items if isinstance(item, list) for cell in item}
    arrays = [item for item in items if isinstance(item, np.ndarray)]
    if kinds == {str} and not arrays:
        return _lists(offsets, strings([cell for item in items for cell in item]), valid)
    if not kinds <= {int, float, bool} or (bool in kinds and len(kinds) > 1):
        return None
    with tolerating(OverflowError, TypeError, ValueError) as missed:
        dtype = (
            np.result_type(
                *({item.dtype for item in arrays} or set()),
                *({np.dtype({int: np.int64, float: np.float64, bool: np.bool_}[kind]) for kind in kinds} or set()),
            )
            if arrays or kinds
            else np.dtype(np.float64)
        )
        if dtype == np.float16:
            dtype = np.dtype(np.float32)
        flat = np.concatenate([np.asarray(item, dtype=dtype) for item in items]) if items else np.zeros(0, dtype=dtype)
    if missed:
        return None
    return _lists(offsets, from_numpy(flat), valid)


def _plain(value: object) -> object:
    """A value in a form that json can write."""
    if isinstance(value, RawArray):
        cells = value.to_numpy()
        return cells.tolist() if cells.dtype.kind in "fiub" else [str(cell) for cell in cells.reshape(-1)]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return value


def _is_fixed(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_timestamp(kind)
        or pa.types.is_duration(kind)
    )


def _dtype(kind: pa.DataType) -> np.dtype[Any]:
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return np.dtype(np.int64)
    if pa.types.is_boolean(kind):
        return np.dtype(np.bool_)
    if not _is_fixed(kind):
        return np.dtype(object)
    # By hand: in some pyarrow versions, `to_pandas_dtype` needs pandas, which may not be installed.
    letter = "f" if pa.types.is_floating(kind) else "i" if pa.types.is_signed_integer(kind) else "u"
    return np.dtype(f"{letter}{kind.bit_width // 8}")


def _objects(column: pa.Array) -> NDArray:
    if pa.types.is_dictionary(column.type):
        words = np.empty(len(column.dictionary) + 1, dtype=object)
        words[: len(column.dictionary)] = column.dictionary.to_pylist()
        codes, valid = to_numpy(column.indices)
        codes = np.asarray(codes, dtype=np.int64)
        texts: NDArray = words[codes if valid is None else np.where(valid, codes, len(words) - 1)]
        return texts
    result = np.empty(len(column), dtype=object)
    result[:] = column.to_pylist() if len(column) else []
    return result
