"""Tables for SQL: DuckDB scans large sealed parts directly; everything else is an Arrow table.

The files of a scan may be merged into others while a query reads them: a result is valid only if `is_current` holds
afterwards. A scan reads the columns and row groups that a query needs. The metadata of a part, or one comparison of
sequence numbers, show which rows count. If that is not enough, rollbook reads the part itself, like unsealed rows.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import pyarrow as pa

from rollbook.book.read_context import Context, are_chosen
from rollbook.book.tables import read_metrics_rows, read_table
from rollbook.errors import Damaged
from rollbook.schema.expressions import literal, quoted
from rollbook.schema.run_files import CONSTANTS, RESERVED, value_name
from rollbook.schema.sql_names import confused, inner
from rollbook.storage import IDENTITY, Moved, Part, Piece, Pieces
from rollbook.system.guard import tolerating
from rollbook.system.tuning import TUNING
from rollbook.values.arrow import common_type, empty_table, from_numpy, join_tables, to_numpy


class RowStream:
    """Rows of journal frames, and of small parts, read file by file each time that DuckDB requests them.

    If a file was sealed or merged before it was read, its rows are read from the parts that have them now.

    Attributes:
      schema: of all rows.
      is_gone: whether rows were found neither in their file nor in the present parts.
      parts: those among its pieces.
    """

    def __init__(
        self, table: str, pieces: Pieces, run: Context, schema: pa.Schema, parts: Callable[[], Pieces]
    ) -> None:
        self._table, self._pieces, self._run, self._parts = table, pieces, run, parts
        self.schema, self.is_gone = schema, False
        self.parts = [piece.part for piece in pieces if piece.part is not None]

    def __arrow_c_schema__(self) -> object:
        """The schema of the stream."""
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """All rows, from the start."""
        return pa.RecordBatchReader.from_batches(self.schema, self._batches()).__arrow_c_stream__(requested_schema)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        none = empty_table(self.schema)
        for piece in sorted(self._pieces, key=lambda piece: int(piece.meta["first_time"])):
            try:
                rows = join_tables([none, self._read(piece)]).cast(self.schema)
            except (Moved, FileNotFoundError, pa.ArrowException):
                self.is_gone = True
                raise
            yield from filter(len, rows.to_batches(max_chunksize=1_000))

    def _read(self, piece: Piece) -> pa.Table:
        try:
            return _rest(self._table, [piece], self._run)
        except (Moved, FileNotFoundError):
            found: list[int] = []

            def pick(part: Piece) -> pa.Table | None:
                rows = part.rows_of(piece)
                found.append(0 if rows is None else rows.num_rows)
                return rows

            rows = read_table(self._table, self._parts(), self._run, pick)
            if sum(found) != piece.rows:
                raise
            return _without_zone(rows)


def _stream(table: str, pieces: Pieces, run: Context, parts: Callable[[], Pieces]) -> RowStream | None:
    """A stream of pieces; None if they are few, or if their columns have no common types."""
    if not _is_large(pieces) or table in ("metrics", "checkpoints"):
        return None
    names = [name for piece in pieces for name in piece.columns]
    if any(name.startswith("value/") for name in names):
        return None
    kinds: dict[str, list[pa.DataType]] = {"time": [pa.timestamp("us")]}
    kinds |= {clock: [pa.int64()] for clock in run.clocks if clock in names}
    for piece in pieces:
        for field in _rest(table, [piece.without_rows()], run).schema:
            kinds.setdefault(field.name, []).append(field.type)
    if any(_must_be_json(types) for types in kinds.values()) or confused(kinds):
        return None
    schema = pa.schema([pa.field(name, common_type(types)) for name, types in kinds.items()])
    return RowStream(table, pieces, run, schema, parts)


@dataclass(frozen=True, slots=True)
class Scan:
    """A table for SQL.

    Attributes:
      TRIES: how often a query is repeated when files move during it. From the fourth try, small parts are read before
        the query starts, because they are merged most often.
      queries: one per part that DuckDB reads itself; combined by column name.
      rest: all other rows.
      columns: of the table, in order.
      parts: those of `queries`.
      stream: many rows of the journal, combined with the others by column name and read during the query.
      numbered: as `queries`, with `file_row_number`; empty if a column has that name.
      empty: columns that are known to have no value.
      confused: columns that have their inner names in `queries`, `rest` and `stream`; see `SqlNames`.
    """

    TRIES: ClassVar = 12

    queries: list[str]
    rest: pa.Table
    columns: list[str]
    parts: tuple[Part, ...] = ()
    stream: RowStream | None = None
    numbered: list[str] = dataclasses.field(default_factory=list)
    empty: frozenset[str] = frozenset()
    confused: frozenset[str] = frozenset()
    _again: Callable[[Collection[str]], Scan] | None = None

    @property
    def inner_columns(self) -> list[str]:
        """`columns` as they are called in `queries`, `rest` and `stream`."""
        return [inner(name) if name in self.confused else name for name in self.columns]

    def apart(self, names: Collection[str]) -> Scan:
        """The scan with inner names for these of its columns, too."""
        more = (set(names) & set(self.columns)) - self.confused
        if not more:
            return self
        if self._again is not None:
            return self._again(names)
        return dataclasses.replace(
            self, rest=_with_inner(self.rest, more), confused=self.confused | more, queries=[], numbered=[]
        )

    def only(self, condition: str) -> list[str]:
        """`queries` with the rows that meet a condition alone; DuckDB passes over the pages that have none of them.

        The rows are found first, by the columns of the condition, and then read by their numbers: DuckDB does not use
        a list of values, or a semi-join, to leave pages of other columns (long texts) unread.
        """
        if not self.numbered:
            return [f"select * from ({query}) where {condition}" for query in self.queries]
        return [
            f"select * exclude (file_row_number) from ({query}) where file_row_number in "
            f"(select file_row_number from ({query}) where {condition})"
            for query in self.numbered
        ]

    @classmethod
    def of_table(cls, rows: pa.Table) -> Scan:
        """The scan of a table in memory."""
        alike = confused(rows.column_names)
        return cls([], _with_inner(_without_zone(rows), alike), rows.column_names, confused=alike)

    def damaged(self) -> dict[str, str]:
        """{path: problem} of its existing files that cannot be read; checks all of them."""
        damaged = {}
        for part in [*self.parts, *(self.stream.parts if self.stream is not None else ())]:
            with tolerating(FileNotFoundError):
                try:
                    part.check()
                except Damaged as err:
                    damaged[part.path] = str(err)
        return damaged

    def is_current(self) -> bool:
        """Whether its files are still the same; if not, the query may have seen rows twice."""
        try:
            if self.stream is not None and self.stream.is_gone:
                return False
            return all(part.is_same() for part in self.parts)
        except (FileNotFoundError, Damaged):
            return False


def scan_of(
    table: str,
    pieces: Pieces,
    run: Context,
    tries: int = 0,
    *,
    parts_now: Callable[[], Pieces] | None = None,
    apart: Collection[str] = (),
) -> Scan:
    """The chosen rows of a table.

    Args:
      tries: how often files moved during the query.
      parts_now: returns the sealed parts at the moment. With it, many rows that DuckDB does not read itself are a
        stream.
      apart: columns that get inner names in any case.
    """
    scannable = {id(piece): piece for piece in pieces if _can_be_scanned(table, piece)}
    parts, chosen = _large_parts(scannable, run, tries, is_streaming=parts_now is not None)
    others = [piece for piece in pieces if id(piece) not in parts]
    moving = [piece for piece in others if piece.is_frames or (id(piece) in scannable and "seq" in piece.columns)]
    stream, rest = _stream_and_rest(table, others, moving, run, None if apart else parts_now)
    columns = {number: _columns(piece, run) for number, piece in parts.items()}
    kinds = _kinds(parts, columns, rest)
    if kinds is None:  # columns without a common type become JSON text, made by rollbook
        return Scan.of_table(_rest(table, pieces, run)).apart(apart)
    # Names that SQL takes for one, such as Loss and loss, get inner names; a stream has no room for them.
    names = [*dict.fromkeys([*kinds, *rest.column_names])]
    alike = confused(names) | (set(apart) & set(names))
    if alike and stream is not None:
        return scan_of(table, pieces, run, tries, apart=alike)
    scanned = [
        (number, piece)
        for number, piece in sorted(parts.items(), key=lambda item: int(item[1].meta["first_time"]))
        if chosen[number] != _NONE
    ]
    # The queries over the large parts, oldest first, each also with row numbers.
    queries, numbered = (
        [_query(piece, columns[number], kinds, chosen[number], with_number, alike) for number, piece in scanned]
        for with_number in (False, True)
    )
    shared = ["time", *(c for c in run.clocks if c in kinds), *IDENTITY]
    names = [*shared, *(name for name in kinds if name not in shared)] if queries else rest.column_names
    numbered = [] if _ROW_NUMBER in names else numbered
    parts_of = tuple(piece.part for _, piece in scanned if piece.part is not None)
    # Columns without any value.
    filled = {name for number, piece in parts.items() for name in (*piece.meta["clocks"], *columns[number])}
    filled |= {"time", *IDENTITY, *(stream.schema.names if stream is not None else ())}
    filled |= {name for name in rest.column_names if rest.column(name).null_count < rest.num_rows}
    empty = frozenset(names) - filled if queries else frozenset()
    rest = _with_inner(rest, alike)
    again = partial(_again, table, pieces, run, tries) if queries or stream is not None else None
    return Scan(queries, rest, names, parts_of, stream, numbered, empty, alike, again)


def _large_parts(
    scannable: dict[int, Piece], run: Context, tries: int, *, is_streaming: bool
) -> tuple[dict[int, Piece], dict[int, str]]:
    """The parts that DuckDB reads itself, and the condition under which their rows count."""
    parts = scannable
    if tries > 2 or (tries and is_streaming):  # files keep moving: small ones, which are merged most, are read here
        parts = {number: piece for number, piece in parts.items() if _is_large([piece])}
    if not _is_large(parts.values()):
        return {}, {}
    conditions = ((number, _condition(piece, run)) for number, piece in parts.items())
    chosen = {number: condition for number, condition in conditions if condition is not None}
    return {number: parts[number] for number in chosen}, chosen


def _stream_and_rest(
    table: str, pieces: Pieces, moving: Pieces, run: Context, parts_now: Callable[[], Pieces] | None
) -> tuple[RowStream | None, pa.Table]:
    """What DuckDB does not read itself: `moving` as a stream if its rows may be many, the others in memory.

    The table in memory then has the columns of the stream, too.
    """
    stream = None if parts_now is None else _stream(table, moving, run, parts_now)
    if stream is None:
        return None, _rest(table, pieces, run)
    streamed = {id(piece) for piece in moving}
    rest = _rest(table, [piece for piece in pieces if id(piece) not in streamed], run)
    none = empty_table(stream.schema)
    # A column whose types have nothing in common becomes JSON, and only a table can be converted.
    if any(
        _must_be_json([field.type, none.schema.field(field.name).type])
        for field in rest.schema
        if field.name in none.column_names
    ):
        return None, _rest(table, pieces, run)
    return stream, join_tables([none, rest])


def _again(table: str, pieces: Pieces, run: Context, tries: int, names: Collection[str]) -> Scan:
    return scan_of(table, pieces, run, tries, apart=names)


def _with_inner(rows: pa.Table, names: Collection[str]) -> pa.Table:
    """The table with inner names for some of its columns."""
    if not names:
        return rows
    return rows.rename_columns([inner(name) if name in names else name for name in rows.column_names])


def _is_large(pieces: Collection[Piece]) -> bool:
    return (
        sum(piece.rows for piece in pieces) >= TUNING.scan_rows
        or sum(piece.bytes for piece in pieces) >= TUNING.scan_bytes
    )


_ALL, _NONE = "", "false"


def is_utf8(text: str) -> bool:
    """Whether DuckDB takes this text. A path may be any bytes, which Python spells with lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _can_be_scanned(table: str, piece: Piece) -> bool:
    part = piece.part
    if part is None or not piece.is_whole or piece.is_long or piece.is_waiting or table == "checkpoints":
        return False
    if confused(part.columns):
        return False
    path = os.path.abspath(part.path)
    # DuckDB reads paths as patterns.
    return is_utf8(path) and not any(letter in path for letter in "*?[")


def _condition(piece: Piece, run: Context) -> str | None:
    """Which rows of a part count, as an SQL condition; None if a comparison is not enough."""
    whole = are_chosen(piece, run)
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
    rows = read_metrics_rows(pieces, run) if table == "metrics" else read_table(table, pieces, run)
    return _without_zone(rows)


def _without_zone(rows: pa.Table) -> pa.Table:
    """Times in UTC without a time zone, so that Python gets them from DuckDB without pytz."""
    for index, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type) and field.type.tz is not None:
            cells, valid = to_numpy(rows.column(index))
            unit = 1000 if field.type.unit == "ns" else 1
            rows = rows.set_column(index, field.name, from_numpy(cells // unit, valid, pa.timestamp("us")))
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
                name = bare  # as in `Book.table`: no row knows the clock of this name
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
    for name in resolved:
        if _must_be_json(kinds[name]):
            return None
    return resolved


def _must_be_json(types: list[pa.DataType]) -> bool:
    """Whether these types have only text in common."""
    kind = common_type(types)
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return False
    plain = [own.value_type if pa.types.is_dictionary(own) else own for own in types]
    return not all(pa.types.is_string(own) or pa.types.is_large_string(own) or pa.types.is_null(own) for own in plain)


_ROW_NUMBER = "file_row_number"


def _query(
    piece: Piece,
    columns: dict[str, str],
    kinds: dict[str, pa.DataType],
    condition: str,
    with_number: bool,
    alike: Collection[str],
) -> str:
    """The rows of one part, with the names and types of the table, and on request their numbers in the file."""
    assert piece.part is not None
    meta, schema = piece.meta, piece.part.schema

    def named(cell: str, name: str) -> str:
        return f"{cell} as {quoted(inner(name) if name in alike else name)}"

    cells = [named('make_timestamp(epoch_ns("time") // 1000)', "time")]
    cells += [named(quoted(clock), clock) for clock in meta["clocks"]]
    for name in IDENTITY:
        constant = meta.get(name) if name in CONSTANTS else None
        if constant is not None:
            value = literal(constant) if isinstance(constant, str) else f"{int(constant)}::bigint"
            cells.append(named(value, name))
        elif name in schema.names:
            cells.append(named(quoted(name), name))
        else:
            cells.append(named("0::bigint" if name in ("attempt", "lane", "index") else literal(""), name))
    for name, column in columns.items():
        own, kind = schema.field(column).type, kinds[name]
        spelled = _NUMBERS.get(kind) if own != kind else None
        cells.append(named(f"{quoted(column)}{f'::{spelled}' if spelled else ''}", name))
    piece.part.have()
    path = literal(os.path.abspath(piece.part.path))
    if with_number:
        cells, path = [*cells, _ROW_NUMBER], f"{path}, {_ROW_NUMBER} = true"
    query = f"select {', '.join(cells)} from read_parquet({path})"
    return f"{query} where {condition}" if condition else query


_NUMBERS = {pa.float64(): "double", pa.int64(): "bigint", pa.uint64(): "ubigint"}
