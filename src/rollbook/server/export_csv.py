"""Rows as CSV, unreduced and complete, made while they are sent."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

from rollbook.errors import BadInput, RollbookError
from rollbook.ground.tables import TABLES
from rollbook.server.catalogue import RunRow
from rollbook.server.cells import in_seconds
from rollbook.server.endpoint import Endpoint, Streamed
from rollbook.server.schemas.curves import CsvAsk
from rollbook.server.series import check_range, started
from rollbook.server.shared_state import Hall

__all__ = ["ENDPOINTS"]

_ROWS_A_PIECE = 2_000
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def export_csv(hall: Hall, ask: CsvAsk) -> Streamed:
    """Rows of a table of some runs as CSV; times in unix seconds."""
    check_range(ask.start, ask.stop)
    if ask.table not in TABLES:
        raise BadInput(f"table={ask.table!r:.60}: choose one of {', '.join(TABLES)}")
    rows = hall.rows(ask.run)
    name = f"{ask.table}-{rows[0].key if len(rows) == 1 else f'{len(rows)}-runs'}.csv"
    return Streamed("text/csv; charset=utf-8", _pieces(hall, rows, ask), name)


def _pieces(hall: Hall, rows: Sequence[RunRow], ask: CsvAsk) -> Iterator[bytes]:
    header: list[str] | None = None
    for row in rows:
        try:
            with hall.book(row) as book:
                if ask.table == "metrics":
                    shift = started(row) if ask.x == "relative" else 0.0
                    x = "time" if ask.x in ("time", "relative") else ask.x
                    start = None if ask.start is None else ask.start + shift
                    stop = None if ask.stop is None else ask.stop + shift
                    known = set(book.keys()) | set(book.canonical())
                    keys = [key for key in ask.key if key in known]
                    if ask.key and not keys:
                        continue
                    table = book.metrics(keys or None, x=x, start=start, stop=stop)
                else:
                    table = book.table(ask.table)
        except RollbookError as err:
            yield _line([f"# {row.key}: {err}"])
            continue
        table = in_seconds(table)
        own = ["run", "name", "seed", *table.column_names]
        if own != header:
            header = own
            yield _line(own)
        said = [row.key, str(row.about.get("name") or ""), row.about.get("seed")]
        for place in range(0, table.num_rows, _ROWS_A_PIECE):
            part = table.slice(place, _ROWS_A_PIECE)
            columns = [part.column(n).to_pylist() for n in range(part.num_columns)]
            yield b"".join(_line([*said, *cells]) for cells in zip(*columns, strict=True))


def _line(cells: Sequence[object]) -> bytes:
    """One line. A text that a spreadsheet would take for a formula is marked as text."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow([_cell(cell) for cell in cells])
    return out.getvalue().encode("utf-8", "replace")


def _cell(cell: object) -> object:
    if isinstance(cell, float):
        return repr(cell)
    if isinstance(cell, str) and cell.startswith(_FORMULA):
        return "'" + cell
    return "" if cell is None else cell


ENDPOINTS = [Endpoint("GET", "/api/export.csv", CsvAsk, "text/csv", export_csv, "Rows of a table of some runs as CSV")]
