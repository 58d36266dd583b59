"""Writes sealed columns: an encoding per column, chosen on a sample, and files that appear whole.

Byte-stream-split is better on noise, plain zstd by up to 3.3 times on rounded values; only a trial shows which. Clocks,
times and sequence numbers are delta-encoded. Only these have statistics, because readers skip blocks by them.
"""

from __future__ import annotations

import json
import os
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rollbook.schema.run_files import CONSTANTS, METADATA_CRC_KEY, METADATA_KEY, RESERVED
from rollbook.storage.column_order import by_columns
from rollbook.storage.parquet_files import compression_of, open_to_write
from rollbook.storage.pyramid import MIN_ROWS, PyramidWriter
from rollbook.storage.tabulate import Meta, type_codes
from rollbook.system.files import replace_file
from rollbook.system.tuning import TUNING
from rollbook.values.arrow import constant, from_numpy, to_numpy, without_dictionaries

ROW_GROUP_BYTES = 64 * 1024 * 1024
"""A row group ends here or after `TUNING.group_rows`: it is the smallest unit that a reader decodes."""

NARROW_COLUMNS, NARROW_TIMES = 20, 4
"""Row groups with fewer columns than this have more rows, up to four times as many: each column chunk costs a reader a
kilobyte and two microseconds when it opens the file."""

PYRAMID_BLOCK_ROWS = 1024 * 1024
"""A block of a pyramid covers several row groups, so that a zoomed-out view needs few small reads."""

WIDE_BYTES = 16 * 1024 * 1024
"""Bytes per row group of all tables but metrics: readers request a few rows of them, with all columns."""

LIST_BYTES = 4 * 1024 * 1024
"""The same of tokens. Readers want those of a few rollouts here and there, and decode whole row groups of lists."""

_PAGE_BYTES = 64 * 1024
"""Bytes per page of tables of texts: a reader of a few rows decodes the pages that have one of them. Lists of numbers
take 4 % more in such pages, and are read by row groups."""

_SAMPLE = 1024
_FEW = 32
_LEVEL = 1


def choose_encodings(table: pa.Table) -> tuple[dict[str, str], list[str]]:
    """(column -> Parquet encoding, columns with a dictionary) for rows like these."""
    encodings: dict[str, str] = {}
    dictionaries: list[str] = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type
        if pa.types.is_list(kind) or pa.types.is_large_list(kind):  # choose an encoding for its elements
            name, kind, column = f"{name}.list.element", kind.value_type, _some_elements(column)
            if pa.types.is_string(kind):
                continue
        if pa.types.is_floating(kind):
            encodings[name] = _float_encoding(column)
        elif pa.types.is_timestamp(kind) or (pa.types.is_integer(kind) and kind.bit_width in (32, 64)):
            is_element = name.endswith(".list.element")
            encodings[name] = _list_encoding(column) if is_element else "DELTA_BINARY_PACKED"
        elif pa.types.is_dictionary(kind) or (pa.types.is_string(kind) and _repeats(column)):
            dictionaries.append(name)
    return encodings, dictionaries


def _repeats(column: pa.ChunkedArray) -> bool:
    """Whether texts repeat; for others a dictionary is a copy that each reader of a row group decodes."""
    sample = column.slice(0, _SAMPLE)
    return len(sample) < _FEW or len(sample.unique()) <= len(sample) // 2


def _some_elements(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Elements of some lists of a column, enough to choose an encoding."""
    n = len(column)
    starts = dict.fromkeys((0, n // 3, 2 * n // 3, max(0, n - _FEW)))
    lists = [chunk for start in starts for chunk in column.slice(start, _FEW).chunks]
    return pa.chunked_array([chunk.flatten()[: 4 * _SAMPLE] for chunk in lists], column.type.value_type)


def _float_encoding(column: pa.ChunkedArray) -> str:
    """The smaller of byte-stream-split and plain, both with zstd, on four samples of the column."""
    n = len(column)
    if n < _FEW:
        return "PLAIN"
    if n <= _SAMPLE:
        cells = to_numpy(column)[0]
    else:
        quarter = _SAMPLE // 4
        starts = [0, n // 3, 2 * n // 3, n - quarter]
        cells = np.concatenate([to_numpy(column.slice(start, quarter))[0] for start in starts])
    if not len(cells):
        return "PLAIN"
    data = np.ascontiguousarray(cells)
    split = np.ascontiguousarray(data.view(np.uint8).reshape(len(data), data.dtype.itemsize).T)
    plain_size = len(pa.compress(pa.py_buffer(data), codec="zstd", asbytes=True))
    split_size = len(pa.compress(pa.py_buffer(split), codec="zstd", asbytes=True))
    return "BYTE_STREAM_SPLIT" if split_size < plain_size else "PLAIN"


def _list_encoding(column: pa.ChunkedArray) -> str:
    """The smaller of byte-stream-split and delta for integers of lists: ids of tokens have no order, positions have."""
    sample = pa.table({"n": column})
    sizes = {}
    for encoding in ("DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"):
        file = pa.BufferOutputStream()
        pq.write_table(sample, file, compression="zstd", use_dictionary=False, column_encoding={"n": encoding})
        sizes[encoding] = file.tell()
    return min(sizes, key=sizes.__getitem__)


_IN_ORDER = ("rollout_id",)
"""Columns of texts that are nearly in order, so that their extremes tell which row groups hold one."""


def group_limits(table: str, columns: int) -> tuple[int, int]:
    """Maximum (rows, bytes) of a row group of this table; `columns` is the number of stored columns."""
    if table == "steps":
        return TUNING.episode_group_rows, TUNING.episode_group_bytes
    most_rows = TUNING.group_rows * min(NARROW_TIMES, max(1, NARROW_COLUMNS // max(1, columns)))
    return most_rows, {"metrics": ROW_GROUP_BYTES, "tokens": LIST_BYTES}.get(table, WIDE_BYTES)


class PartWriter:
    """Writes one part, row group by row group, so that memory stays bounded. The file appears only at `finish`.

    Args:
      path: the path of the part; its folder exists.
      schema: of all tables to come.
      sample: rows by which the encodings are chosen.
      meta: the metadata of the part; its table and clocks are used here.
      pyramid: the path of the part's pyramid, written if it has many rows; "" for none.
    """

    def __init__(self, path: str, schema: pa.Schema, sample: pa.Table, meta: Meta, pyramid: str = "") -> None:
        self._clocks = list(meta["clocks"])
        self._is_series = meta["table"] == "metrics" and meta["group"][0] != "R"  # read by columns
        self._most_rows, self._most_bytes = group_limits(meta["table"], len(schema))
        self._path, self._pyramid_path = path, pyramid
        self._pyramid: PyramidWriter | None = None
        self._temporary = f"{path}.{os.getpid()}.tmp"
        encodings, dictionaries = choose_encodings(sample)
        statistics = [name for name in schema.names if name in encodings and _is_axis(name, schema)]
        statistics += [
            name for name in schema.names if name in _IN_ORDER and pa.types.is_string(schema.field(name).type)
        ]
        self._constants = {name: meta[name] for name in CONSTANTS if meta.get(name) is not None}
        for name, value in self._constants.items():
            field = pa.field(name, pa.int64() if isinstance(value, int) else pa.dictionary(pa.int32(), pa.string()))
            schema = schema.append(field)
            dictionaries.append(name)
        self._waiting: list[pa.Table] = []
        self._blocks: list[pa.Table] = []
        self._waiting_bytes = self._waiting_rows = 0
        self._schema = schema
        self.rows = 0
        has_lists = any(pa.types.is_list(field.type) or pa.types.is_large_list(field.type) for field in schema)
        compression = compression_of(int(sample.nbytes * meta["rows"] / max(1, sample.num_rows)))
        self._file = open_to_write(self._temporary)
        self._writer = pq.ParquetWriter(
            self._file,
            schema,
            compression=compression,
            compression_level=_LEVEL if compression == "zstd" else None,
            use_dictionary=dictionaries,
            column_encoding=encodings or None,
            write_statistics=statistics,
            store_schema=False,
            write_page_checksum=True,
            data_page_size=None if meta["table"] == "metrics" or has_lists else _PAGE_BYTES,
            version="2.6",
        )

    def write(self, table: pa.Table) -> None:
        """Append rows, in order, without the columns that are constant: those are added here."""
        self._waiting.append(table)
        self._waiting_bytes += table.nbytes
        self._waiting_rows += table.num_rows
        # Another table of this size would overshoot by more than half of it.
        if self._waiting_bytes + table.nbytes // 2 >= self._most_bytes or self._waiting_rows >= self._most_rows:
            self._flush(whole=False)

    def finish(self, meta: Meta) -> None:
        """Sync the file to disk and rename it to its name."""
        self._flush(whole=True)
        text = json.dumps(meta, separators=(", ", ": "))
        self._writer.add_key_value_metadata({METADATA_KEY: text, METADATA_CRC_KEY: str(crc32(text.encode()))})
        self._writer.close()
        self._file.close()
        if self._is_series:
            by_columns(self._temporary)
        self._add_block()
        if self._pyramid is not None:
            whose = {"rows": self.rows, "first_seq": meta["first_seq"], "last_seq": meta["last_seq"]}
            self._pyramid.finish(whose)
        replace_file(self._temporary, self._path)

    def abandon(self) -> None:
        """Remove the unfinished file."""
        if self._pyramid is not None:
            self._pyramid.abandon()
        try:
            self._writer.close()
            self._file.close()
        except (pa.ArrowException, OSError):
            pass
        try:
            os.unlink(self._temporary)
        except OSError:
            pass

    def _flush(self, *, whole: bool) -> None:
        """Write buffered rows; unless `whole`, rows beyond full row groups begin the next one."""
        rest: list[pa.Table] = []
        if self._waiting:
            table = pa.concat_tables(self._waiting) if len(self._waiting) > 1 else self._waiting[0]
            full = table.num_rows // self._most_rows * self._most_rows
            if not whole and 0 < full < table.num_rows:
                rest, table = [table.slice(full)], table.slice(0, full)
            if self._pyramid_path and self._pyramid is None and self.rows + table.num_rows >= MIN_ROWS:
                self._start_pyramid()
            for start in range(0, table.num_rows, self._most_rows):
                rows = table.slice(start, self._most_rows)
                self._writer.write_table(self._whole(rows), row_group_size=self._most_rows)
                if self._pyramid is not None:
                    self._blocks.append(rows)
                    if sum(block.num_rows for block in self._blocks) >= PYRAMID_BLOCK_ROWS:
                        self._add_block()
            self.rows += table.num_rows
        self._waiting = rest
        self._waiting_bytes, self._waiting_rows = sum(t.nbytes for t in rest), sum(t.num_rows for t in rest)

    def _whole(self, rows: pa.Table) -> pa.Table:
        """Add the constant columns, in the order of the schema."""
        n = rows.num_rows
        for name, value in self._constants.items():
            column = from_numpy(np.full(n, value)) if isinstance(value, int) else constant(str(value), n)
            rows = rows.append_column(name, column)
        return rows

    def _add_block(self) -> None:
        if self._pyramid is not None and self._blocks:
            self._pyramid.add(pa.concat_tables(self._blocks))
        self._blocks = []

    def _start_pyramid(self) -> None:
        numbers = [f.name for f in self._schema if type_codes(f.type) != "x" or f.name == "time"]
        axes = [name for name in numbers if name in ("time", "seq") or name in self._clocks]
        keys = [name for name in numbers if name not in axes and name not in RESERVED]
        self._pyramid = PyramidWriter(self._pyramid_path, axes, keys)


def write_part(path: str, meta: Meta, table: pa.Table, pyramid: str = "") -> None:
    """Write a whole part into a folder that exists; `pyramid` is the path of its pyramid, written if the part is large.

    Raises:
      OSError: for example no space; no file is left behind.
    """
    most_rows, most_bytes = group_limits(meta["table"], table.num_columns)
    step = max(1, min(most_rows, int(most_bytes / max(1.0, table.nbytes / max(1, table.num_rows)))))
    cut = step < table.num_rows
    writer = PartWriter(
        path, without_dictionaries(table.slice(0, 0)).schema if cut else table.schema, table, meta, pyramid
    )
    try:
        for start in range(0, table.num_rows, step):
            rows = table.slice(start, step)
            writer.write(
                without_dictionaries(rows) if cut else rows
            )  # a slice carries the dictionaries of the whole table into its row group
        writer.finish(meta)
    except BaseException:
        writer.abandon()
        raise


def _is_axis(name: str, schema: pa.Schema) -> bool:
    kind: object = schema.field(name).type
    return name in RESERVED or pa.types.is_integer(kind) or pa.types.is_timestamp(kind)
