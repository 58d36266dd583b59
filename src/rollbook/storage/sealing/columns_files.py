"""0.columns.parquet: a file without rows that has every column of a form of metrics, for other programs.

Programs that read many Parquet files as one table take the columns of the first file, and fail without files. This file
is the first by name in data/metrics/wide and in data/metrics/long, and always exists. So a key that all rows of a run
have in long form is also a column of the wide form, without rows.
"""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.parquet as pq

from rollbook.errors import Damaged
from rollbook.schema.clocks import STANDARD
from rollbook.schema.manifest import RunJson
from rollbook.schema.run_files import COLUMNS_FILE, LONG, WIDE, table_folder, value_name
from rollbook.storage.parquet_files import open_to_read, write_columns
from rollbook.storage.parts import OpenParts, Part
from rollbook.storage.tabulate import stored_name
from rollbook.system.files import is_regular, make_folders
from rollbook.values.arrow import TIME, common_type

MOST_KEYS = 10_000
"""Up to this many columns, keys in long form only also become columns of the wide form."""

_IDENTITY = {
    "scope": pa.string(),
    "at": pa.string(),
    "attempt": pa.int64(),
    "writer": pa.string(),
    "lane": pa.int64(),
    "seq": pa.int64(),
    "index": pa.int64(),
}
_LONG = {"key": pa.string(), "type": pa.string(), "value": pa.float64(), "integer": pa.int64(), "digits": pa.string()}


def write_columns_files(run: str, about: RunJson, open_parts: OpenParts) -> None:
    """Update both files from the sealed parts.

    Args:
      run: the run's folder.
      about: its run.json.
      open_parts: its parts.
    Raises:
      Damaged: the parts keep moving.
      OSError: the disk is full.
    """
    parts = _parts(open_parts)
    clocks = dict.fromkeys([*STANDARD, *about.clocks, *(clock for part in parts for clock in part.meta["clocks"])])
    shared = {"time": TIME, **dict.fromkeys(map(str, clocks), pa.int64()), **_IDENTITY}
    kinds: dict[str, list[pa.DataType]] = {}
    names_of_clocks = tuple(clocks)
    for part in parts:
        names = set(part.columns)
        for key in part.meta["keys"]:
            if part.meta["group"][0] == "R":
                if len(kinds) < MOST_KEYS:
                    kinds.setdefault(value_name(key, names_of_clocks), [])
                continue
            name = stored_name(key, part.meta, names)
            if name in names:
                kinds.setdefault(name, []).append(part.schema.field(name).type)
    wide = {name: common_type(types) if types else pa.float64() for name, types in kinds.items()}
    wide = {name: pa.float64() if pa.types.is_null(kind) else kind for name, kind in wide.items()}
    folder = table_folder(run, "metrics")
    for form, fields in ((WIDE, {**wide, **shared}), (LONG, {**shared, **_LONG})):
        make_folders(os.path.join(folder, form), inside=run)
        _write(os.path.join(folder, form, COLUMNS_FILE), fields)


def _write(path: str, columns: dict[str, pa.DataType]) -> None:
    order = ["time", *(name for name in columns if name != "time")]
    schema = pa.schema([pa.field(name, columns[name]) for name in order])
    if _has(path, schema):
        return
    write_columns(schema, path)


def _has(path: str, schema: pa.Schema) -> bool:
    try:
        return is_regular(path) and bool(pq.read_schema(open_to_read(path)).equals(schema))
    except (OSError, pa.ArrowException):
        return False


def _parts(open_parts: OpenParts) -> list[Part]:
    for _ in range(10):
        try:
            return open_parts.parts("metrics")
        except FileNotFoundError:
            continue
    raise Damaged("the files of metrics keep moving while they are read; try again later")
