"""A table as a file of another format: CSV, JSON lines, Parquet or Arrow IPC."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from rollbook.errors import BadInput, UnknownOption, did_you_mean
from rollbook.ground.arrow import strings
from rollbook.ground.files import replacing
from rollbook.ground.texts import csv_cell, json_text

__all__ = ["export_table"]

_FORMATS = ("csv", "jsonl", "parquet", "arrow")


def export_table(table: pa.Table, target: str | os.PathLike[str] | IO[bytes], kind: str) -> None:
    """Write `table` to a file (replaced as a whole) or an open binary stream.

    CSV: cells that hold lists or dicts are written as JSON; missing cells are empty; texts that a spreadsheet
    would take for a formula begin with an apostrophe. JSON lines: missing cells are left
    out; NaN and infinities are the texts "NaN", "Infinity" and "-Infinity", for JSON has no such numbers.

    Raises:
      UnknownOption: a format other than csv, jsonl, parquet, arrow. BadInput: the folder of the file does not exist.
    """
    if kind not in _FORMATS:
        raise UnknownOption(f"export to {kind!r}: no such format.{did_you_mean(kind, list(_FORMATS))}")
    if not isinstance(target, (str, os.PathLike)):
        _write(table, target, kind)
        return
    folder = os.path.dirname(os.path.abspath(target))
    if not os.path.isdir(folder):
        raise BadInput(f"export to {os.fspath(target)}: there is no folder {folder}; make it first")
    with replacing(target) as beside, open(beside, "wb") as file:
        _write(table, file, kind)


def _write(table: pa.Table, file: IO[bytes], kind: str) -> None:
    if kind == "parquet":
        pq.write_table(table, file, compression="zstd")
    elif kind == "arrow":
        with pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    elif kind == "csv":
        import pyarrow.csv

        pyarrow.csv.write_csv(_harmless(_flat(table)), file)
    else:
        for row in _rows(table):
            file.write(json_text({name: value for name, value in row.items() if value is not None}).encode() + b"\n")


def _rows(table: pa.Table) -> Iterator[dict[str, object]]:
    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns":  # Python's own times have no nanoseconds
            cells = table.column(place).cast(pa.timestamp("us", field.type.tz), safe=False)
            table = table.set_column(place, field.name, cells)
    for batch in table.to_batches(max_chunksize=10_000):
        yield from batch.to_pylist()


def _flat(table: pa.Table) -> pa.Table:
    """The table with nested and binary columns as text."""
    for place, field in enumerate(table.schema):
        if pa.types.is_nested(field.type) or pa.types.is_binary(field.type) or pa.types.is_dictionary(field.type):
            cells = [
                None if cell is None else cell if isinstance(cell, str) else json_text(cell)
                for cell in table.column(place).to_pylist()
            ]
            table = table.set_column(place, field.name, pa.array(cells, pa.string()))
    return table


def _harmless(table: pa.Table) -> pa.Table:
    """Texts of a run as a spreadsheet may open them: none is a formula, none moves a terminal's cursor."""
    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            cells = [None if cell is None else csv_cell(cell) for cell in table.column(place).to_pylist()]
            table = table.set_column(place, field.name, strings(cells))
    return table
