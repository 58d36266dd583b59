"""data/writers.parquet: which run each writer belongs to, for programs that read many runs without rollbook.

Every sealed row names its writer, and writer names are unique across runs: a left join on `writer` adds the run to each
row. The file has one row per writer and the same columns in every run; the configuration is JSON text. Fields that a
user may change (name, group) are as of the last sealing; run.json has the current values.
"""

from __future__ import annotations

import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rollbook.schema.finished import former_writers
from rollbook.schema.manifest import RunJson, main_writers
from rollbook.schema.run_files import PartName, data_folder, part_folders, table_names
from rollbook.storage.parquet_files import open_to_read, write_whole
from rollbook.system.files import is_regular, names_in
from rollbook.values.arrow import from_numpy, strings

FILE = "writers.parquet"

_SCHEMA = pa.schema(
    [
        ("writer", pa.string()),
        ("project", pa.string()),
        ("run", pa.string()),
        ("run_name", pa.string()),
        ("run_seed", pa.int64()),
        ("run_group", pa.string()),
        ("config", pa.string()),
    ]
)


def write_writers_file(run: str, about: RunJson) -> None:
    """Update the file from run.json, the journal and the sealed parts.

    Args:
      run: the run's folder.
      about: its run.json.
    Raises:
      OSError: the disk is full.
    """
    fields = {
        "project": about.project,
        "run": about.id,
        "run_name": about.name,
        "run_seed": about.seed if about.seed is not None and abs(about.seed) < 2**63 else None,
        "run_group": about.group,
        "config": json.dumps(about.config, default=repr, sort_keys=True),
    }
    writers = _writers(run, about)
    n = len(writers)
    columns = [strings(writers)]
    for field in list(_SCHEMA)[1:]:
        value = fields[field.name]
        if value is None:
            columns.append(pa.nulls(n, field.type))
        elif isinstance(value, int):
            columns.append(from_numpy(np.full(n, value, dtype=np.int64)))
        else:
            columns.append(strings([str(value)] * n))
    rows = pa.Table.from_arrays(columns, schema=_SCHEMA)
    path = os.path.join(data_folder(run), FILE)
    known = _read(path)
    if known is not None and known.equals(rows):
        return
    write_whole(rows, path)


def _writers(run: str, about: RunJson) -> list[str]:
    """All writers that wrote, or that have rows in a sealed part."""
    data = data_folder(run)
    names = {*names_in(os.path.join(data, "journal")), *former_writers(run), *writers_named(run)}
    names.update(main_writers(about))
    for table in table_names(run):
        for folder in part_folders(run, table):
            parts = (PartName.parse(name) for name in names_in(folder))
            names.update(part.writer for part in parts if part is not None and part.kind != "merged")
    return sorted(names)


def writers_named(run: str) -> set[str]:
    """The writers that the file names: a second record of them, in case finished.json is damaged."""
    rows = _read(os.path.join(data_folder(run), FILE))
    if rows is None or rows.schema != _SCHEMA:
        return set()
    return {writer for writer in rows["writer"].to_pylist() if isinstance(writer, str)}


def _read(path: str) -> pa.Table | None:
    try:
        if not is_regular(path):
            return None
        # `read_table` imports pyarrow.dataset, and in some versions pandas.
        with pq.ParquetFile(open_to_read(path)) as file:
            return file.read()
    except (OSError, pa.ArrowException, UnicodeDecodeError):  # the last of a name in a damaged footer
        return None
