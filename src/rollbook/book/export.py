"""Other formats: a table as CSV, JSON lines, Parquet or Arrow IPC; timings as a Chrome trace."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rollbook.book.table_charts import column, moments
from rollbook.book.table_protocols import ChartTables
from rollbook.errors import BadInput, UnknownOption, did_you_mean
from rollbook.system.files import replacing
from rollbook.system.texts import csv_cell, json_text
from rollbook.values.arrow import strings

_FORMATS = ("csv", "jsonl", "parquet", "arrow")


def export_table(table: pa.Table, target: str | os.PathLike[str] | IO[bytes], kind: str) -> None:
    """Write `table` to a file (replaced as a whole) or an open binary stream.

    CSV: lists and dicts are written as JSON, missing cells are empty, and texts that a spreadsheet would read as a
    formula begin with an apostrophe. JSON lines: missing cells are left out; NaN and infinities are the texts "NaN",
    "Infinity" and "-Infinity", because JSON has no such numbers.

    Raises:
      UnknownOption: a format other than csv, jsonl, parquet, arrow.
      BadInput: the folder of the file does not exist.
    """
    if kind not in _FORMATS:
        raise UnknownOption(f"export to {kind!r}: no such format.", did_you_mean(kind, list(_FORMATS)))
    if not isinstance(target, (str, os.PathLike)):
        _write(table, target, kind)
        return
    folder = os.path.dirname(os.path.abspath(target))
    if not os.path.isdir(folder):
        raise BadInput(f"export to {os.fspath(target)}: there is no folder {folder}.", "Make it first.")
    with replacing(target) as temporary, open(temporary, "wb") as file:
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
    for index, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns":  # Python times have no ns
            cells = table.column(index).cast(pa.timestamp("us", field.type.tz), safe=False)
            table = table.set_column(index, field.name, cells)
    for batch in table.to_batches(max_chunksize=10_000):
        yield from batch.to_pylist()


def _flat(table: pa.Table) -> pa.Table:
    """The table with nested and binary columns as text."""
    for index, field in enumerate(table.schema):
        if pa.types.is_nested(field.type) or pa.types.is_binary(field.type) or pa.types.is_dictionary(field.type):
            cells = [
                None if cell is None else cell if isinstance(cell, str) else json_text(cell)
                for cell in table.column(index).to_pylist()
            ]
            table = table.set_column(index, field.name, pa.array(cells, pa.string()))
    return table


def _harmless(table: pa.Table) -> pa.Table:
    """Texts of a run made safe for spreadsheets and terminals: no formulas, no control characters."""
    for index, field in enumerate(table.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            cells = [None if cell is None else csv_cell(cell) for cell in table.column(index).to_pylist()]
            table = table.set_column(index, field.name, strings(cells))
    return table


def write_trace(book: ChartTables, path: str | os.PathLike[str]) -> str:
    """See `Book.trace`."""
    with open(path, "w", encoding="utf-8") as file:
        file.write('{"displayTimeUnit": "ms", "traceEvents": [\n')
        for n, event in enumerate(_events(book)):
            file.write((",\n" if n else "") + json.dumps(event, default=str, allow_nan=False))
        file.write("\n]}\n")
    return os.fspath(path)


def _events(book: ChartTables) -> Iterator[dict[str, object]]:
    table = book.timings()
    ends, seconds = moments(table), column(table, "seconds")
    starts = ends - seconds
    first = float(np.nanmin(starts)) if len(starts) and np.isfinite(starts).any() else 0.0
    names = [str(name) for name in table["name"].to_pylist()]
    writers = [str(w) for w in table["writer"].to_pylist()] if "writer" in table.column_names else [""] * len(names)
    clocks = {clock: table[clock].to_pylist() for clock in book.clocks if clock in table.column_names}
    processes = {writer: n for n, writer in enumerate(dict.fromkeys(writers), 1)}
    for writer, number in processes.items():
        yield {"ph": "M", "name": "process_name", "pid": number, "args": {"name": f"{book.name} {writer}".strip()}}
    lanes: dict[str, list[list[float]]] = {}
    good = np.isfinite(starts) & np.isfinite(seconds)
    # If two spans begin together, the outer one comes first: then the spans of a lane nest, as the format requires.
    for n in np.lexsort((-seconds, starts)).tolist():
        if not good[n]:
            continue
        begin, end = float(starts[n]), float(ends[n])
        lane = _lane(lanes.setdefault(writers[n], []), begin, end)
        known = {clock: cells[n] for clock, cells in clocks.items() if cells[n] is not None}
        yield {
            "ph": "X",
            "name": names[n].rpartition("/")[2],
            "cat": names[n],
            "pid": processes[writers[n]],
            "tid": lane,
            "ts": round((begin - first) * 1e6, 3),
            "dur": round(max(0.0, end - begin) * 1e6, 3),
            "args": known,
        }
    for kind, marks, word in (
        ("alert", book.alerts(), "rule"),
        ("checkpoint", book.checkpoints(everything=True), "checkpoint_id"),
    ):
        words = marks[word].to_pylist() if word in marks.column_names else []
        for moment, label in zip(moments(marks).tolist(), words, strict=False):
            if np.isfinite(moment):
                yield {
                    "ph": "i",
                    "s": "g",
                    "name": f"{kind}: {label}",
                    "pid": 1,
                    "tid": 0,
                    "ts": (moment - first) * 1e6,
                }


def _lane(lanes: list[list[float]], begin: float, end: float) -> int:
    """The first lane where a span fits after or inside the open ones: the rows do not record threads."""
    slack = 2e-6  # times have microsecond precision
    for n, open_until in enumerate(lanes):
        while open_until and open_until[-1] <= begin + slack:
            open_until.pop()
        if not open_until or end <= open_until[-1] + slack:
            open_until.append(end)
            return n
    lanes.append([end])
    return len(lanes) - 1
