"""Health rules on existing runs: finished, imported, or written by another tool."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rollbook import health
from rollbook.book import Book
from rollbook.protocols import Alert, RunInfo
from rollbook.schema.clocks import UNKNOWN
from rollbook.schema.columns import Columns, Piece
from rollbook.schema.finished import keeper_file
from rollbook.schema.run_files import RunFile
from rollbook.storage import IDENTITY
from rollbook.values.arrow import without_dictionaries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.schema.columns import Part, Where

__all__ = ["AFTERWARDS", "alerts_of", "asked", "check", "every_alert", "pieces_for"]

_ROWS = 100_000
"""How many rows are passed to the rules at once."""

_MOST_RULES = 100

AFTERWARDS = tuple(name for name in health.DEFAULT if name != "silent")
"""The rules for a run that is over: all but `silent`, which reports missing rows."""


def check(book: Book, rules: Sequence[object] | None = None, earlier: list[Any] | None = None) -> list[Alert]:
    """Check a recorded run with health rules; the run is not changed.

    Args:
      book: the run.
      rules: as in `init`; None: all of `AFTERWARDS`.
      earlier: what is known of runs that were checked before, for rules that compare with earlier runs; they know what
        the keepers of other runs in the folder of the project have left, too. A run that finished without a fault is
        added.
    Returns:
      Each alert once, in the order of the rows.
    Raises:
      UnknownOption, BadInput: an unknown rule, or invalid options of a rule.
    """
    specs = [spec for spec in health.check(AFTERWARDS if rules is None else rules) if spec["name"] != "silent"]
    made = [health.make(str(spec["name"]), **{k: v for k, v in spec.items() if k != "name"}) for spec in specs]
    comparing: list[Any] = [] if earlier is None else [rule for rule in made if hasattr(rule, "given")]
    for rule in comparing:
        rule.given = tuple(earlier or ())
    info = book.run_info()
    alerts = alerts_of(made, info, pieces_for(made, info, book.table))
    if earlier is not None and book.status == "finished" and all(alert.level == "note" for alert in alerts):
        earlier += [left for rule in comparing if hasattr(rule, "left") and (left := rule.left(book.id))]
    return alerts


def asked(folder: str | os.PathLike[str]) -> tuple[dict[str, str], int, str | None]:
    """What the keeper of a run checks while it trains.

    Returns:
      name -> summary of each rule that its plan names; the name itself for foreign rules, of which none is imported.
      How many rows they have read. How seldom they report a healthy run, as measured; None where foreign rules are
      among them, or none at all.
    """
    specs = keeper_file(folder, RunFile.PLAN).get("rules")
    names = [spec.get("name") for spec in specs if isinstance(spec, dict)] if isinstance(specs, list) else []
    named = [name[:100] for name in names[:_MOST_RULES] if isinstance(name, str)]
    cursor = keeper_file(folder, RunFile.RULES).get("cursor")
    lanes = [lanes for lanes in cursor.values() if isinstance(lanes, dict)] if isinstance(cursor, dict) else []
    rows = sum(seq for each in lanes for seq in each.values() if isinstance(seq, int))
    promise = health.FALSE_ALARMS if named and set(named) <= set(health.DEFAULT) else None
    return {name: health.summary(name) if name in health.DEFAULT else name for name in named}, rows, promise


def alerts_of(rules: Sequence[Any], info: RunInfo, pieces: Sequence[Piece]) -> list[Alert]:
    """The alerts of rules for these rows; each alert once (by rule, level and key)."""
    found: dict[tuple[str, str, str], tuple[float, Alert]] = {}
    for now, alert in every_alert(rules, info, pieces):
        where = alert.evidence.get("time", now)
        found.setdefault((alert.rule, alert.level, alert.key), (float(where), alert))
    return [alert for _time, alert in sorted(found.values(), key=lambda pair: pair[0])]


def every_alert(rules: Sequence[Any], info: RunInfo, pieces: Sequence[Piece]) -> Iterator[tuple[float, Alert]]:
    """Open rules and show them these rows: (time of the last row shown, alert), also those that come again."""
    for rule in rules:
        rule.open(info)
    by_time = sorted((piece for piece in pieces if piece.n), key=lambda piece: piece.time(0))
    for columns in _together(by_time):
        now = columns.last()["time"]
        for rule in rules:
            own = columns.of(rule.tables)
            for alert in rule.look(own, now) if len(own) else ():
                yield now, alert


def _together(pieces: Sequence[Piece]) -> Iterator[Columns]:
    """Pieces of several tables that overlap in time are passed together."""
    some: list[Piece] = []
    until = 0
    for piece in pieces:
        if some and piece.time(0) > until:
            yield Columns(some)
            some = []
        some.append(piece)
        until = max(until, piece.time(piece.n - 1))
    if some:
        yield Columns(some)


def pieces_for(rules: Sequence[Any], info: RunInfo, read: Callable[..., pa.Table]) -> list[Piece]:
    """The rows that rules look at.

    Args:
      rules: they name their `tables`; a rule that has `cells` needs only these columns of them.
      read: `Book.table`, or the same with fewer rows.
    """
    pieces: list[Piece] = []
    for table in sorted(frozenset[str]().union(*(rule.tables for rule in rules))):
        cells: list[Any] = [getattr(rule, "cells", None) for rule in rules if table in rule.tables]
        own = None if table == "metrics" or None in cells else sorted(frozenset[str]().union(*cells))
        rows = read(table) if own is None else read(table, columns=own)
        for attempt in pc.unique(rows["attempt"]).to_pylist() if rows.num_rows else ():
            of_attempt = rows.filter(pc.equal(rows["attempt"], attempt))
            for first in range(0, of_attempt.num_rows, _ROWS):
                some = of_attempt.slice(first, _ROWS).combine_chunks()
                pieces.append(_TablePiece(table, attempt, info.clocks, some))
    return pieces


class _TablePiece(Piece):
    """Rows of a table of a book, of one attempt."""

    def __init__(self, table: str, attempt: int, clocks: Sequence[str], rows: pa.Table) -> None:
        self.table, self.attempt, self.n, self._rows = table, attempt, rows.num_rows, rows
        self._clocks = [clock for clock in clocks if clock in rows.column_names]
        own = ("host/", "rollbook/")
        self.keys = [
            field.name
            for field in rows.schema
            if (pa.types.is_floating(field.type) or (table != "metrics" and _is_number(field.type)))
            and not field.name.startswith(own)
            and rows[field.name].null_count < rows.num_rows
        ]
        self._times = pc.cast(pc.cast(rows["time"], pa.timestamp("ns", tz="UTC")), pa.int64()).to_numpy()

    @cached_property
    def _cells(self) -> list[dict[str, object]]:
        """What each row has, without what identifies it."""
        names = [name for name in self._rows.column_names if name not in (*IDENTITY, "time", *self._clocks)]
        rows = without_dictionaries(self._rows.select(names)).to_pylist()
        return [{name: cell for name, cell in row.items() if cell is not None} for row in rows]

    def part(self, key: str) -> Part:
        """See `Piece`."""
        column = self._rows[key]
        indices = pc.indices_nonzero(column.is_valid()).to_numpy().tolist()
        values = array("d")
        values.frombytes(pc.cast(column.drop_null(), pa.float64()).to_numpy().tobytes())
        return self, values, indices

    def time(self, row: int) -> int:
        """See `Piece`."""
        return int(self._times[row])

    def times(self, step: int = 1) -> list[int]:
        """See `Piece`."""
        times: list[int] = self._times[::step].tolist()
        return times

    def clocks(self, name: str) -> array[int]:
        """See `Piece`."""
        readings = array("q")
        if name not in self._rows.column_names:
            return array("q", [UNKNOWN]) * self.n
        readings.frombytes(pc.cast(self._rows[name].fill_null(UNKNOWN), pa.int64()).to_numpy().tobytes())
        return readings

    def where(self, row: int) -> Where:
        """See `Piece`."""
        readings = {clock: self._rows[clock][row].as_py() for clock in self._clocks}
        clocks = {clock: reading for clock, reading in readings.items() if reading is not None}
        identity = {name: self._rows[name][row].as_py() for name in ("writer", "lane", "seq")}
        return {"clocks": clocks, "time": self.time(row) / 1e9, "row": identity}

    def values(self, row: int) -> Mapping[str, object]:
        """See `Piece`."""
        return self._cells[row]

    def scope(self, row: int) -> str:
        """See `Piece`."""
        return str(self._rows["scope"][row].as_py() or "")


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_boolean(kind))
