"""What runs hold: their keys, axes and tables; and rows of a table, placed on an axis or near a point."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
import pyarrow as pa

from rollbook.book import Book
from rollbook.book.questions import Near, Window, row_id, usual_axis_of
from rollbook.errors import BadInput, RollbookError, did_you_mean
from rollbook.runs.grouping import told_apart
from rollbook.schema.expressions import bounded, quoted
from rollbook.schema.manifest import Attempts
from rollbook.schema.tables import TABLES
from rollbook.server.settings import Limits
from rollbook.server.shared.catalogue import RunRow
from rollbook.server.shared.endpoint import Endpoint
from rollbook.server.shared.shapes import (
    Answer,
    Ask,
    Num,
    Refused,
    Row,
    Sort,
    TableColumn,
    columns_of,
    num,
    plain,
    rows_of,
)
from rollbook.server.shared.state import Facts, ServerContext, stamp_of
from rollbook.values.array_types import NDArray


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


class ReadingAsk(Ask, kw_only=True):
    """Nothing is asked for."""


class ReadingAnswer(Answer, kw_only=True):
    """How far the answers have come that are being made: runs read, of how many; 0 of 0 where none reads many."""

    done: int
    of: int


class Nearest(msgspec.Struct, kw_only=True):
    """The nearest row of a table that has none near the point."""

    id: str
    x: Num
    away: Num


class NearTable(msgspec.Struct, kw_only=True):
    """Rows of a table near a point, in order.

    Attributes:
      total_in_window: how many there are; rows has the nearest of them.
      nearest: the nearest row if none is near.
    """

    columns: list[TableColumn]
    rows: list[Row]
    total_in_window: int
    nearest: Nearest | None


def axis_of(row: RunRow, facts: Facts | None) -> str:
    """The clock that a run is usually seen along."""
    return usual_axis_of("", row.about.get("total"), facts.clocks if facts is not None else ())


def check_points(points: int, most: int) -> None:
    """Raises: Refused or BadInput: no such number of points."""
    if points < 1:
        raise BadInput(f"points={points}: none.", "Ask for at least 1")
    if points > most:
        raise Refused("too_large", f"points={points:,}; at most {most:,}")


def check_window(limits: Limits, window: Window) -> None:
    """Raises: Refused or BadInput: a window of more rows, or a longer condition, than a server answers."""
    if window.limit is None or window.limit > limits.rows or window.offset > _MOST_PASSED_OVER:
        raise Refused(
            "too_large", f"offset={window.offset}, limit={window.limit}: a window has at most {limits.rows:,} rows"
        )
    bounded(window.where, window.order_by, window.search)


def order_by(sort: Sequence[Sort], columns: Sequence[str]) -> str:
    """ORDER BY some existing columns; "" without any.

    Raises:
      BadInput: an unknown column.
    """
    for entry in sort:
        if entry.column not in columns:
            raise BadInput(
                f"there is no column {entry.column!r:.80} to sort by.", did_you_mean(entry.column, list(columns))
            )
    parts = [f"{quoted(entry.column)} {'desc' if entry.descending else 'asc'} nulls last" for entry in sort]
    return f" order by {', '.join(parts[:_MOST_SORTED])}" if parts else ""


_MOST_SORTED = 5


def axis_name(asked: str | None, used: str) -> str:
    """The axis's name in the API."""
    return "relative" if asked == "relative" else used


def own_words(context: ServerContext, row: RunRow) -> str:
    """What distinguishes a run from others of its name; see `told_apart`. Kept until a run changes."""
    shot = context.catalogue.snapshot(5.0)
    known: Mapping[str, str] | None = context.answers.get("own words", shot.version)
    if known is None:
        words = told_apart([other.about for other in shot.rows.values()])
        known = {key: plain(own) for key, own in zip(shot.rows, words, strict=True) if own}
        context.answers.put("own words", shot.version, known, 200 * len(known) + 1_000)
    return known.get(row.key, "")


def started(row: RunRow) -> float:
    """When a run began: the zero of its relative time."""
    created = row.about.get("created")
    return float(created) if isinstance(created, (int, float)) else 0.0


class Contents(NamedTuple):
    """What one run holds."""

    keys: Sequence[str]
    canonical: Mapping[str, str]
    clocks: list[str]
    tables: dict[str, int]


def contents(context: ServerContext, row: RunRow, stamp: object = None) -> Contents:
    """What a run holds, kept until it changes. What the table of runs has read of it is not read again.

    Args:
      stamp: of the run, where the caller has it already.
    """
    stamp = stamp_of(row.folder) if stamp is None else stamp
    facts = context.facts.at(row, stamp)
    known: Contents = context.remembered(
        "contents", row, functools.partial(_contents, facts), lambda known: 100 * len(known.clocks) + 2_000, stamp
    )
    return known


def _contents(facts: Facts, book: Book) -> Contents:
    def work(pieces: Mapping[str, Any]) -> dict[str, int]:
        return {name: sum(piece.rows for piece in pieces[name]) for name in _OTHERS}

    tables = {"metrics": facts.rows, **book.files.read(_OTHERS, work)}
    return Contents(
        facts.keys,
        facts.canonical,
        [clock for clock in book.clocks if clock in facts.clocks],
        {name: tables[name] for name in TABLES},
    )


_OTHERS = tuple(name for name in TABLES if name != "metrics")


def keys(context: ServerContext, ask: KeysAsk) -> KeysAnswer:
    """The keys, axes and tables of some runs together."""
    rows = context.rows(ask.runs)
    have: Counter[str] = Counter()
    clocks: Counter[str] = Counter()
    tables: Counter[str] = Counter()
    usual: Counter[str] = Counter()
    names: dict[str, str] = {}
    shared: Counter[str] = Counter()
    for row in context.progress.over(rows):
        try:
            of_run = contents(context, row)
        except (RollbookError, OSError):  # its page shows what is wrong with it
            continue
        have.update(of_run.keys)
        clocks.update(of_run.clocks)
        tables.update(table for table, n in of_run.tables.items() if n)
        names.update(of_run.canonical)
        shared.update({*of_run.canonical.values()} - {*of_run.keys})
        usual[usual_axis_of("", row.about.get("total"), of_run.clocks) if of_run.clocks else "time"] += 1
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


def reading(context: ServerContext, ask: ReadingAsk) -> ReadingAnswer:
    """How far answers have come."""
    done, of = context.progress.now()
    return ReadingAnswer(done=done, of=of)


_MOST_PASSED_OVER = 2**62

IDENTITY = ("scope", "at", "attempt", "writer", "lane", "seq", "index")
"""Columns that identify a row; shown as one id."""


def table_of(context: ServerContext, row: RunRow, name: str, attempts: Attempts = "effective") -> pa.Table:
    """A whole table of a run, kept while it is fresh. For tables of thousands of rows, not of millions."""
    read_table: pa.Table = context.remembered(
        ("table", name, attempts if isinstance(attempts, str) else (*attempts,)),
        row,
        lambda book: book.table(name, attempts),
        lambda table: table.nbytes + 1_000,
    )
    return read_table


def default_axis(context: ServerContext, row: RunRow) -> str:
    """The usual axis of a run."""

    facts = context.facts.known(row) or context.facts.now(row)
    return axis_of(row, facts)


def near_table(found: Near, longest: int = 300) -> NearTable:
    """Rows near a point in the form of the API."""
    nearest = found.nearest
    return NearTable(
        columns=columns_of(_without_identity(found.table)),
        rows=shown_rows(found.table, found.positions, longest),
        total_in_window=found.total,
        nearest=None if nearest is None else Nearest(id=plain(nearest.id), x=num(nearest.x), away=num(nearest.away)),
    )


def shown_rows(
    table: pa.Table, positions: Sequence[float] | NDArray | None = None, longest: int | None = 300
) -> list[Row]:
    """Rows with their id in the API, and their position on the axis as `x` if given."""
    ids = [row_id(cells) for cells in table.select([c for c in IDENTITY if c in table.column_names]).to_pylist()]
    shown = rows_of(table.select([c for c in table.column_names if c not in IDENTITY or c == "attempt"]), longest)
    for index, cells in enumerate(shown):
        cells["id"] = ids[index] if ids else str(index)
        if positions is not None:
            cells["x"] = num(float(positions[index]))
    return shown


def _without_identity(table: pa.Table) -> pa.Table:
    return table.select([c for c in table.column_names if c not in IDENTITY or c == "attempt"])


ENDPOINTS = [
    Endpoint("POST", "/api/keys", KeysAsk, KeysAnswer, keys, "The keys, axes and tables of some runs"),
    Endpoint(
        "GET", "/api/reading", ReadingAsk, ReadingAnswer, reading, "How far answers that read many runs have come"
    ),
]
