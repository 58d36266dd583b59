"""Tables as SQL sees them: large sealed parts are scanned where they lie, everything else is an Arrow table.

A scan reads the columns and row groups that a query needs. Which rows count is told by the description of a part, or by
one comparison of sequence numbers; a part of which that is not enough is read by rollbook, like what is not sealed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import pyarrow as pa

from rollbook.book.metrics import IDENTITY
from rollbook.book.pieces import Piece, Pieces
from rollbook.book.read_context import Context, counts
from rollbook.book.tables import read_metrics_rows, read_table
from rollbook.storage.columns import common_type, from_numpy, to_numpy
from rollbook.storage.layout import CONSTANTS, RESERVED, value_name

__all__ = ["Scan", "literal", "quoted", "scan_of", "scan_of_table"]

MANY_ROWS = 50_000
"""Parts of tables of fewer rows are read as they are: they have an order in time, and cost little."""


@dataclass(frozen=True, slots=True)
class Scan:
    """A table for SQL.

    Attributes:
      queries: one a part that DuckDB reads itself; they go together by name.
      rest: all other rows.
      columns: of the table, in order.
    """

    queries: list[str]
    rest: pa.Table
    columns: list[str]


def quoted(name: str) -> str:
    """A name as SQL spells it."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as SQL spells it."""
    return "'" + text.replace("'", "''") + "'"


def scan_of(table: str, pieces: Pieces, run: Context) -> Scan:
    """The chosen rows of a table."""
    parts = {id(piece): piece for piece in pieces if _can_be_scanned(table, piece)}
    if sum(piece.rows for piece in parts.values()) < MANY_ROWS:
        parts = {}
    chosen = {number: _condition(piece, run) for number, piece in parts.items()}
    parts = {number: piece for number, piece in parts.items() if chosen[number] is not None}
    others = [piece for piece in pieces if id(piece) not in parts]
    rest = _rest(table, others, run)
    columns = {number: _columns(piece, run) for number, piece in parts.items()}
    kinds = _kinds(parts, columns, rest)
    if kinds is None:  # columns without a common type become JSON texts, which rollbook makes
        rest = _rest(table, pieces, run)
        return Scan([], rest, rest.column_names)
    queries = [
        _query(piece, columns[number], kinds, chosen[number] or "")
        for number, piece in sorted(parts.items(), key=lambda item: int(item[1].meta["first_time"]))
        if chosen[number] != _NONE
    ]
    shared = ["time", *(c for c in run.clocks if c in kinds), *IDENTITY]
    names = [*shared, *(name for name in kinds if name not in shared)] if queries else rest.column_names
    return Scan(queries, rest, names)


_ALL, _NONE = "", "false"


def _can_be_scanned(table: str, piece: Piece) -> bool:
    part = piece.part
    if part is None or not piece.is_whole or piece.is_long or piece.is_waiting or table == "checkpoints":
        return False
    # DuckDB has patterns where others have paths.
    return not any(letter in os.path.abspath(part.path) for letter in "*?[")


def _condition(piece: Piece, run: Context) -> str | None:
    """Which rows of a part count, in SQL; None if that takes more than a comparison."""
    whole = counts(piece, run)
    if whole is not None:
        return _ALL if whole else _NONE
    meta = piece.meta
    if any(meta.get(name) is None for name in CONSTANTS) or meta["at"]:
        return None
    cut = run.history.chain.get(meta["attempt"])
    if run.attempts != "effective" or cut is None or meta["writer"] not in cut.writers:
        return None
    return f"seq <= {int(cut.writers[meta['writer']].get(meta['lane'], 0))}"


def _rest(table: str, pieces: Pieces, run: Context) -> pa.Table:
    if table == "metrics":
        rows = read_metrics_rows(pieces, run.clocks, run.history, run.attempts)
    else:
        rows = read_table(table, pieces, run.clocks, run.history, run.attempts)
    return _without_zone(rows)


def scan_of_table(rows: pa.Table) -> Scan:
    """A table that is in memory, for SQL."""
    return Scan([], _without_zone(rows), rows.column_names)


def _without_zone(rows: pa.Table) -> pa.Table:
    """With times in UTC that have no zone: Python gets them from DuckDB without pytz."""
    for place, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type) and field.type.tz is not None:
            cells, valid = to_numpy(rows.column(place))
            unit = 1000 if field.type.unit == "ns" else 1
            rows = rows.set_column(place, field.name, from_numpy(cells // unit, valid, pa.timestamp("us")))
    return rows


def _columns(piece: Piece, run: Context) -> dict[str, str]:
    """{name of a value: its column in the part}."""
    assert piece.part is not None
    meta = piece.meta
    keys = {piece.column_of(key): key for key in meta["keys"]}
    plain = {"time", *IDENTITY, *meta["clocks"]}
    columns = {}
    for column in piece.part.columns:
        if column not in plain:
            name = value_name(keys.get(column, column), run.clocks)
            bare = name.removeprefix("value/")
            if bare != name and bare in (*RESERVED, *run.clocks) and bare not in plain:
                name = bare  # as `Book.table` spells it: nobody knows the clock of that name
            columns[name] = column
    return columns


def _kinds(
    parts: dict[int, Piece], columns: dict[int, dict[str, str]], rest: pa.Table
) -> dict[str, pa.DataType] | None:
    """{name: type} of all clocks and values; None if a column of a part has no common type with the others."""
    kinds: dict[str, list[pa.DataType]] = {}
    for number, piece in parts.items():
        assert piece.part is not None
        schema = piece.part.schema
        for clock in piece.meta["clocks"]:
            kinds.setdefault(clock, []).append(pa.int64())
        for name, column in columns[number].items():
            kinds.setdefault(name, []).append(schema.field(column).type)
    for field in rest.schema:
        if field.name != "time" and field.name not in IDENTITY:
            kinds.setdefault(field.name, []).append(field.type)
    resolved = {name: common_type(types) for name, types in kinds.items()}
    for name, kind in resolved.items():
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            for column_kind in kinds[name]:
                plain = column_kind.value_type if pa.types.is_dictionary(column_kind) else column_kind
                if not (pa.types.is_string(plain) or pa.types.is_large_string(plain) or pa.types.is_null(plain)):
                    return None
    return resolved


def _query(piece: Piece, columns: dict[str, str], kinds: dict[str, pa.DataType], condition: str) -> str:
    """The rows of one part, under the names and in the types of the table."""
    assert piece.part is not None
    meta, schema = piece.meta, piece.part.schema
    cells = ['make_timestamp(epoch_ns("time") // 1000) as "time"', *map(quoted, meta["clocks"])]
    for name in IDENTITY:
        constant = meta.get(name) if name in CONSTANTS else None
        if constant is not None:
            value = literal(constant) if isinstance(constant, str) else f"{int(constant)}::bigint"
            cells.append(f"{value} as {quoted(name)}")
        elif name in schema.names:
            cells.append(quoted(name))
        else:
            cells.append(f"{'0::bigint' if name in ('attempt', 'lane', 'index') else literal('')} as {quoted(name)}")
    for name, column in columns.items():
        own, kind = schema.field(column).type, kinds[name]
        spelled = _NUMBERS.get(kind) if own != kind else None
        cells.append(f"{quoted(column)}{f'::{spelled}' if spelled else ''} as {quoted(name)}")
    piece.part.have()
    path = literal(os.path.abspath(piece.part.path))
    query = f"select {', '.join(cells)} from read_parquet({path})"
    return f"{query} where {condition}" if condition else query


_NUMBERS = {pa.float64(): "double", pa.int64(): "bigint", pa.uint64(): "ubigint"}
