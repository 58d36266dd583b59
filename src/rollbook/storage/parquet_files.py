"""Parquet files by path, whatever the bytes of the path.

Given a path as text, pyarrow needs it to be UTF-8. A folder's name need not be: Linux allows any bytes, and with an
ASCII locale Python reads every other character as surrogates.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache

import pyarrow as pa
import pyarrow.parquet as pq

from rollbook.system.files import replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def open_to_read(path: str) -> pa.OSFile:
    """The file, for pyarrow. Given a path, pyarrow first looks up the file system: a third of the time.

    Raises:
      OSError: it cannot be opened.
    """
    return pa.OSFile(os.fsencode(path))


class LeafIndexes:
    """Columns that are one leaf each, as pyarrow looks them up: column -> [its index]."""

    def __init__(self, names: Sequence[str]) -> None:
        self._index_of = {name: index for index, name in enumerate(names)}

    def __contains__(self, name: object) -> bool:
        return name in self._index_of

    def __getitem__(self, name: str) -> list[int]:
        return [self._index_of[name]]


@lru_cache(maxsize=64)
def leaf_indexes_of(names: tuple[str, ...]) -> LeafIndexes:
    """The indexes of columns. The runs of a study mostly have the same ones."""
    return LeafIndexes(names)


class ParquetFile(pq.ParquetFile):  # type: ignore[misc]
    """A Parquet file whose columns are known already: of thousands, pyarrow makes a list of paths at each opening,
    which takes longer than to read one of them.

    Args:
      columns: where they are, None: as pyarrow finds them; more: of `pyarrow.parquet.ParquetFile`.
    """

    def __init__(self, source: pa.OSFile, columns: LeafIndexes | None = None, **more: Any) -> None:
        self._known_columns = columns
        super().__init__(source, **more)

    def _build_nested_paths(self) -> Any:
        return super()._build_nested_paths() if self._known_columns is None else self._known_columns


def open_to_write(path: str) -> pa.OSFile:
    """A new file, for pyarrow. Close it after the writer.

    Raises:
      OSError: it cannot be created.
    """
    return pa.OSFile(os.fsencode(path), "wb")


SMALL_BYTES = 4096
"""A table up to this size is stored as it is: as a file it takes one block of the disk either way, and zstd would take
as long for its columns as all else that writes it."""


def compression_of(size: int) -> str:
    """The compression of a file whose rows have this many bytes in memory."""
    return "zstd" if size > SMALL_BYTES else "none"


def write_whole(rows: pa.Table, path: str, **options: Any) -> None:
    """Write a table as one file, which is there whole or not at all.

    Args:
      rows: the table.
      path: the file, in a folder that exists.
      options: of `pyarrow.parquet.write_table`.
    Raises:
      OSError: it cannot be written.
    """
    _write(path, lambda file: _encode(rows, file, **options))


def write_columns(schema: pa.Schema, path: str) -> None:
    """Write a file that has these columns and no rows; see `write_whole`."""
    _write(path, lambda file: file.write(_without_rows(schema)))


def no_rows(schema: pa.Schema) -> pa.Table:
    """The table of these columns without rows. `schema.empty_table()` would load pandas."""
    return pa.Table.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


@lru_cache(maxsize=64)
def _without_rows(schema: pa.Schema) -> bytes:
    """The file: runs that log the same have the same ones."""
    file = pa.BufferOutputStream()
    _encode(no_rows(schema), file)
    encoded: bytes = file.getvalue().to_pybytes()
    return encoded


def _encode(rows: pa.Table, file: pa.NativeFile, **options: Any) -> None:
    pq.write_table(rows, file, compression=compression_of(rows.nbytes), store_schema=False, **options)


def _write(path: str, write: Callable[[pa.NativeFile], object]) -> None:
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open_to_write(temporary) as file:
            write(file)
        replace_file(temporary, path)
    finally:
        if os.path.lexists(temporary):
            os.unlink(temporary)
