"""Parquet files by path, whatever the bytes of the path.

Given a path as text, pyarrow needs it to be UTF-8. A folder's name need not be: Linux allows any bytes, and with an
ASCII locale Python reads every other character as surrogates.
"""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.parquet as pq

from rollbook.system.files import replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def open_to_read(path: str) -> pa.OSFile:
    """The file, for pyarrow. Given a path, pyarrow first looks up the file system: a third of the time.

    Raises:
      OSError: it cannot be opened.
    """
    return pa.OSFile(os.fsencode(path))


def open_to_write(path: str) -> pa.OSFile:
    """A new file, for pyarrow. Close it after the writer.

    Raises:
      OSError: it cannot be created.
    """
    return pa.OSFile(os.fsencode(path), "wb")


def write_whole(rows: pa.Table, path: str, **options: Any) -> None:
    """Write a table as one file, which is there whole or not at all.

    Args:
      rows: the table.
      path: the file, in a folder that exists.
      options: of `pyarrow.parquet.write_table`.
    Raises:
      OSError: it cannot be written.
    """
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open_to_write(temporary) as file:
            pq.write_table(rows, file, compression="zstd", store_schema=False, **options)
        replace_file(temporary, path)
    finally:
        if os.path.lexists(temporary):
            os.unlink(temporary)
