"""What runs hold: their keys, axes and tables; and rows of a table, placed on an axis or near a point."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from rollbook.book import Book
from rollbook.errors import BadInput, RollbookError
from rollbook.schema.expressions import quoted
from rollbook.schema.tables import TABLES
from rollbook.server.shared.catalogue import RunRow
from rollbook.server.shared.endpoint import Endpoint
from rollbook.server.shared.shapes import (
    Answer,
    Ask,
    Column,
    Num,
    Refused,
    Row,
    cells_of,
    columns_of,
    num,
    plain,
    rows_of,
)
from rollbook.server.shared.sql import Locked, in_time, place_of, with_tables
from rollbook.server.shared.state import Facts, ServerContext
from rollbook.values.array_types import NDArray
from rollbook.values.arrow import take_table, to_numpy


class KeysAsk(Ask, kw_only=True):
    """Of which runs."""

    runs: list[str]


class Key(msgspec.Struct, kw_only=True):
    """A key of metrics.

    Attributes:
      scope, name: its parts; runs: how many have it; canonical: the name that means the same in every framework.
    """

    key: str
    scope: str
    name: str
    runs: int
    canonical: str | None


class Axis(msgspec.Struct, kw_only=True):
    """What may be the x-axis."""

    x: str
    label: str
    kind: Literal["clock", "time", "relative"]
    runs: int


class KeysAnswer(Answer, kw_only=True):
    """What the chosen runs hold.

    Attributes:
      tables: table -> how many of the runs have rows in it.
    """

    keys: list[Key]
    axes: list[Axis]
    default_x: str
    tables: dict[str, int]


class Nearest(msgspec.Struct, kw_only=True):
    """The nearest row of a table where none is near."""

    id: str
    x: Num
    away: Num


class NearTable(msgspec.Struct, kw_only=True):
    """Rows of a table near a point, in order.

    Attributes:
      total_in_window: how many there are; rows holds the nearest of them.
      nearest: where none is.
    """

    columns: list[Column]
    rows: list[Row]
    total_in_window: int
    nearest: Nearest | None


def axis_of(row: RunRow, facts: Facts | None) -> str:
    """The clock that a run is usually seen along."""
    total = row.about.get("total")
    if isinstance(total, Mapping) and total:
        return str(next(iter(total)))
    known = facts.clocks if facts is not None else {}
    return next(
        (clock for clock in ("env_step", "gradient_step", "train_iter", "epoch", "step", *known) if clock in known),
        "time",
    )


def check_points(points: int, most: int) -> None:
    """Raises: Refused or BadInput: no such number of points."""
    if points < 1:
        raise BadInput(f"points={points}: ask for at least 1")
    if points > most:
        raise Refused("too_large", f"points={points:,}; at most {most:,}")


def check_range(start: float | None, stop: float | None) -> None:
    """Raises: BadInput: a range that is none."""
    for name, end in (("start", start), ("stop", stop)):
        if end is not None and not np.isfinite(end):
            raise BadInput(f"{name}={end}: a finite number, or null for no end")
    if start is not None and stop is not None and stop < start:
        raise BadInput(f"start={start:g} lies behind stop={stop:g}")


def started(row: RunRow) -> float:
    """When a run began: the zero of its relative time."""
    created = row.about.get("created")
    return float(created) if isinstance(created, (int, float)) else 0.0


class Contents(NamedTuple):
    """What one run holds."""

    keys: list[str]
    canonical: dict[str, str]
    clocks: list[str]
    tables: dict[str, int]


def contents(context: ServerContext, row: RunRow) -> Contents:
    """What a run holds, kept until it changes."""
    known: Contents = context.remembered("contents", row, _contents, lambda known: 100 * len(known.keys) + 1_000)
    return known


def _contents(book: Book) -> Contents:
    def work(pieces: Mapping[str, Any]) -> Contents:
        clocks = {clock for _, known, _ in book.latest().values() for clock in known}
        canonical = {key: name for name, key in book.canonical().items()}
        tables = {name: sum(piece.rows for piece in pieces[name]) for name in _TABLES}
        return Contents(book.keys(), canonical, [clock for clock in book.clocks if clock in clocks], tables)

    return book.files.read(_TABLES, work)  # one look at the files for all of it


_TABLES = tuple(TABLES)


def keys(context: ServerContext, ask: KeysAsk) -> KeysAnswer:
    """The keys, axes and tables of some runs together."""
    rows = context.rows(ask.runs)
    have: Counter[str] = Counter()
    clocks: Counter[str] = Counter()
    tables: Counter[str] = Counter()
    usual: Counter[str] = Counter()
    names: dict[str, str] = {}
    shared: Counter[str] = Counter()
    for row in rows:
        try:
            of_run = contents(context, row)
        except (RollbookError, OSError):  # its page shows what is wrong with it
            continue
        have.update(of_run.keys)
        clocks.update(of_run.clocks)
        tables.update(table for table, n in of_run.tables.items() if n)
        names.update(of_run.canonical)
        shared.update({*of_run.canonical.values()} - {*of_run.keys})
        axis = axis_of(row, None)
        usual[axis if axis in of_run.clocks else next(iter(of_run.clocks), "time")] += 1
    for name, n in shared.items():  # keys with different names are also listed under their common name
        if n + have[name] > max(have[key] for key, own in names.items() if own == name):
            have[name] += n
    axes = [Axis(x=plain(c), label=plain(c), kind="clock", runs=n) for c, n in clocks.most_common()]
    axes += [
        Axis(x="relative", label="time since start", kind="relative", runs=len(rows)),
        Axis(x="time", label="wall time", kind="time", runs=len(rows)),
    ]
    return KeysAnswer(
        keys=[
            Key(
                key=plain(key),
                scope=plain(key.partition("/")[0] if "/" in key else ""),
                name=plain(key.partition("/")[2] or key),
                runs=n,
                canonical=names.get(key),
            )
            for key, n in sorted(have.items())
        ],
        axes=axes,
        default_x=usual.most_common(1)[0][0] if usual else "time",
        tables=dict(tables),
    )


IDENTITY = ("scope", "at", "attempt", "writer", "lane", "seq", "index")
"""Columns that identify a row; shown as one id."""

_NS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def table_of(context: ServerContext, row: RunRow, name: str, attempts: str = "effective") -> pa.Table:
    """A whole table of a run, kept while it is fresh. For tables of thousands of rows, not of millions."""
    read_table: pa.Table = context.remembered(
        ("table", name, attempts), row, lambda book: book.table(name, attempts), lambda table: table.nbytes + 1_000
    )
    return read_table


_NEAREST = 2_000


def rows_near(
    context: ServerContext, row: RunRow, name: str, x: str, at: float, window: float, began: float
) -> tuple[pa.Table, int | None]:
    """(rows of a table by time: all, or of a large table the nearest to a position; how many of them are in the
    window)."""
    if contents(context, row).tables.get(name, 0) < context.limits.whole_rows:
        return table_of(context, row, name), None

    def work(db: Locked) -> tuple[pa.Table, int]:
        away = f"abs({place_of(x, began, db.columns[name])} - {at!r})"
        inside = int(db.table(f"select count(*) as n from {quoted(name)} where {away} <= ?", [window])["n"][0].as_py())
        nearest = f"select * from {quoted(name)} where {away} is not null order by {away} limit {_NEAREST}"
        return db.table(f"select * from ({nearest}){in_time(db.columns[name])}"), inside

    return with_tables(context, row, [name], "effective", work)


def default_axis(context: ServerContext, row: RunRow) -> str:
    """The usual axis of a run."""

    facts = context.facts.known(row) or context.facts.now(row)
    return axis_of(row, facts)


def seconds_column(table: pa.Table) -> NDArray:
    """The times of a table as unix seconds."""
    column = table["time"]
    ticks = to_numpy(column)[0].astype(np.int64)
    seconds: NDArray = ticks.astype(np.float64) / _NS[column.type.unit]
    return seconds


def numbers(column: pa.ChunkedArray, gaps: float = math.nan) -> NDArray:
    """The cells of a column as float64; `gaps` for those that are null or no number."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        values, valid = to_numpy(column)
        converted: NDArray = values.astype(np.float64)
        if valid is not None:
            converted[~valid] = gaps
        return converted
    cells = column.to_pylist()
    return np.array([float(cell) if isinstance(cell, (int, float)) else gaps for cell in cells], dtype=np.float64)


def axis_values(table: pa.Table, x: str, began: float) -> NDArray:
    """The positions of a table's rows on an axis; NaN for rows without it."""
    n = table.num_rows
    if x in ("time", "relative"):
        return seconds_column(table) - (began if x == "relative" else 0.0)
    if x not in table.column_names:
        return np.full(n, np.nan)
    return numbers(table[x])


class Moment(NamedTuple):
    """A point of a run: its time and all known clocks."""

    time: float | None
    clocks: dict[str, int]
    attempt: int | None


def moment_of(context: ServerContext, row: RunRow, key: str | None, x: str, at: float, began: float) -> Moment:
    """The clocks at a point of an axis: those of the nearest row of a key, or of any key."""
    clocks_known = _clocks(context, row)
    with context.book(row) as book:
        keys = [key] if key is not None else None
        if x in ("time", "relative"):
            middle = at + (began if x == "relative" else 0.0)
            table = _around_time(book, keys, middle)
            places = seconds_column(table) if table is not None else np.zeros(0)
            target = middle
        else:
            table = _around(book, keys, x, at)
            places = axis_values(table, x, began) if table is not None else np.zeros(0)
            target = at
    if table is None or not len(places) or np.isnan(places).all():
        return Moment(target if x in ("time", "relative") else None, {x: int(at)} if x in clocks_known else {}, None)
    nearest = int(np.nanargmin(np.abs(places - target)))
    cells = cells_of(table.slice(nearest, 1))[0]
    clocks = {clock: int(cells[clock]) for clock in clocks_known if isinstance(cells.get(clock), int)}
    attempt = cells.get("attempt")
    return Moment(
        float(seconds_column(table.slice(nearest, 1))[0]), clocks, attempt if isinstance(attempt, int) else None
    )


def _clocks(context: ServerContext, row: RunRow) -> tuple[str, ...]:
    with context.book(row) as book:
        return book.clocks


def _around(book: Book, keys: list[str] | None, x: str, at: float) -> pa.Table | None:
    """Rows near a reading, from a range that grows until it has some."""
    reach = 1.0
    for _ in range(24):
        table = book.metrics(keys, x=x, start=at - reach, stop=at + reach + 1)
        if table.num_rows:
            return table
        reach *= 8
        if reach > 1e15:
            return None
    return None


def _around_time(book: Book, keys: list[str] | None, middle: float) -> pa.Table | None:
    reach = 1.0
    for _ in range(12):
        table = book.metrics(keys, since=max(0.0, middle - reach), until=middle + reach)
        if table.num_rows:
            return table
        reach *= 8
    return None


def near(
    table: pa.Table,
    places: NDArray,
    at: float,
    window: float,
    rows: int,
    id_column: str,
    longest: int = 300,
    total: int | None = None,
) -> NearTable:
    """The rows of a table within a window around a position: the nearest are selected, then put in their order.

    Args:
      total: how many there are, if the table holds only the nearest of them.
    """
    distance = np.abs(places - at)
    inside = np.flatnonzero(distance <= window)
    nearest = None
    if not len(inside) and np.isfinite(distance).any():
        best = int(np.nanargmin(distance))
        cell = table[id_column][best].as_py() if id_column in table.column_names else best
        nearest = Nearest(id=plain(str(cell)), x=num(float(places[best])), away=num(float(places[best] - at)))
    chosen = np.sort(inside[np.argsort(distance[inside], kind="stable")[:rows]])
    picked = take_table(table, chosen)
    return NearTable(
        columns=columns_of(_without_identity(picked)),
        rows=shown_rows(picked, places[chosen], longest),
        total_in_window=len(inside) if total is None else total,
        nearest=nearest,
    )


def shown_rows(
    table: pa.Table, places: Sequence[float] | NDArray | None = None, longest: int | None = 300
) -> list[Row]:
    """Rows with their id in the API, and their position on the axis as `x` if given."""
    ids = [row_id(cells) for cells in table.select([c for c in IDENTITY if c in table.column_names]).to_pylist()]
    shown = rows_of(table.select([c for c in table.column_names if c not in IDENTITY or c == "attempt"]), longest)
    for place, cells in enumerate(shown):
        cells["id"] = ids[place] if ids else str(place)
        if places is not None:
            cells["x"] = num(float(places[place]))
    return shown


def _without_identity(table: pa.Table) -> pa.Table:
    return table.select([c for c in table.column_names if c not in IDENTITY or c == "attempt"])


def row_id(cells: Mapping[str, object]) -> str:
    """The name of a row in the API: its writer, and its number in its lane."""
    return ":".join(
        str(cells.get(name) if cells.get(name) is not None else "") for name in ("writer", "lane", "seq", "index")
    )


def clocks_of(cells: Mapping[str, Any], clocks: Sequence[str]) -> dict[str, int]:
    """The clocks that a row knows."""
    return {
        clock: int(cells[clock])
        for clock in clocks
        if isinstance(cells.get(clock), (int, float)) and math.isfinite(cells[clock]) and abs(cells[clock]) < 2**53
    }


ENDPOINTS = [
    Endpoint("POST", "/api/keys", KeysAsk, KeysAnswer, keys, "The keys, axes and tables of some runs"),
]
