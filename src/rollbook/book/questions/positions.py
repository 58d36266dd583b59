"""Rows of a table placed on an axis, and those near a point of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rollbook.book.questions.source import Source
from rollbook.errors import BadInput, UnknownKey, did_you_mean
from rollbook.schema.default_axis import default_axis, own_axis
from rollbook.schema.expressions import quoted
from rollbook.system.texts import amount
from rollbook.values.array_types import NDArray
from rollbook.values.arrow import from_numpy, strings, take_table, to_numpy

_NS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def usual_axis_of(x: str, total: Mapping[str, object] | None, clocks: Iterable[str]) -> str:
    """The default axis of a run.

    Args:
      x, total: as in its manifest; a listing has no x. clocks: those that its rows have readings of.
    """
    return default_axis(own_axis(x, total), list(clocks))


def axis_of_run(source: Source) -> tuple[str, list[str], float]:
    """(the default axis of a run, its clocks, when it began in unix seconds)."""
    with source.book() as book:
        about, clocks = book.info, list(book.clocks)
    read = {clock for known in source.newest().values() for clock in known}
    axis = usual_axis_of(about.x, about.total, [clock for clock in clocks if clock in read])
    return axis, clocks, float(about.created or 0.0)


def axis_of_rows(source: Source, x: str | None, columns: Sequence[str], others: Sequence[str]) -> tuple[str, float]:
    """(the axis of the rows of a table, when the run began in unix seconds).

    Args:
      x: what was asked for. None: the run's own, if the rows know it, else the first of `others` that they know, else
        the time.
      columns: of the table.
    Raises:
      UnknownKey: the rows do not know the axis that was asked for.
    """
    own, clocks, began = axis_of_run(source)
    if x is None:
        return next((axis for axis in (own, *others) if axis in columns), "time"), began
    if x not in ("time", "relative", *columns):
        known = [*(clock for clock in clocks if clock in columns), "time", "relative"]
        raise UnknownKey(f"x={x!r:.80}: these rows have no readings of it.", did_you_mean(x, known))
    return x, began


def check_range(start: float | None, stop: float | None) -> None:
    """Raises: BadInput: start or stop is not finite, or stop is before start."""
    for name, end in (("start", start), ("stop", stop)):
        if end is not None and not math.isfinite(end):
            raise BadInput(f"{name}={end}: a finite number, or none for no end")
    if start is not None and stop is not None and stop < start:
        raise BadInput(f"start={start:g} is after stop={stop:g}; swap them")


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
    """The positions of a table's rows on an axis; NaN for rows without it. `began`: the zero of "relative"."""
    if x in ("time", "relative"):
        return seconds_column(table) - (began if x == "relative" else 0.0)
    if x not in table.column_names:
        return np.full(table.num_rows, np.nan)
    return numbers(table[x])


def position_in_sql(x: str, began: float, columns: Sequence[str]) -> str:
    """The position of a row on an axis, in SQL; null for rows without it."""
    if x in ("time", "relative"):
        return f"(epoch_us(time) / 1e6 - {began if x == 'relative' else 0.0!r})"
    return f"try_cast({quoted(x)} as double)" if x in columns else "cast(null as double)"


def in_time(columns: Sequence[str], order: str = "asc") -> str:
    """ORDER BY time; rows of one moment in the order of writing."""
    names = as_written(columns)
    return " order by " + ", ".join(f"{name} {order}" for name in names) if names else ""


def nearest_first(away: str, columns: Sequence[str]) -> str:
    """ORDER BY a distance; rows equally far in the order of writing."""
    return f" order by {', '.join([away, *as_written(columns)])}"


def as_written(columns: Sequence[str]) -> list[str]:
    """The columns, quoted, that sort rows in the order of writing without ties."""
    return [quoted(name) for name in ("time", "writer", "lane", "seq", "index") if name in columns]


def in_seconds(table: pa.Table) -> pa.Table:
    """A table with its times as float64 unix seconds."""
    for index, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            ticks, valid = to_numpy(table.column(index))
            seconds = ticks.astype("int64").astype("float64") / _NS[field.type.unit]
            table = table.set_column(index, field.name, from_numpy(seconds, valid))
    return table


def cells_of(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a (small) table unchanged, except times as unix seconds: Arrow's own datetimes load pandas."""
    rows: list[dict[str, object]] = in_seconds(table).to_pylist()
    return rows


def row_id(cells: Mapping[str, object]) -> str:
    """The name of a row: its writer, and its number in its lane."""
    return ":".join(
        str(cells.get(name) if cells.get(name) is not None else "") for name in ("writer", "lane", "seq", "index")
    )


def clocks_of(cells: Mapping[str, Any], clocks: Iterable[str]) -> dict[str, int]:
    """The clocks that a row knows."""
    return {
        clock: int(cells[clock])
        for clock in clocks
        if isinstance(cells.get(clock), (int, float)) and math.isfinite(cells[clock]) and abs(cells[clock]) < 2**53
    }


class Nearest(NamedTuple):
    """The nearest row of a table that has none near the point: its id, its position and its distance."""

    id: str
    x: float
    away: float


class Near(NamedTuple):
    """Rows of a table near a point, in order.

    Attributes:
      table: the rows; positions: of each, on the axis.
      total: how many are near; the table has the nearest of them.
      nearest: the nearest row if none is near.
    """

    table: pa.Table
    positions: NDArray
    total: int
    nearest: Nearest | None = None

    def __repr__(self) -> str:
        return f"<{amount(self.table.num_rows, 'row')} of {self.total:,} near the point>"


def near(
    table: pa.Table,
    positions: NDArray,
    at: float,
    window: float,
    rows: int | None,
    id_column: str,
    total: int | None = None,
) -> Near:
    """The rows of a table within a window around a position: the nearest are selected, then put in their order.

    Args:
      rows: how many at most; None: all.
      total: how many there are, if the table holds only the nearest of them.
    """
    distance = np.abs(positions - at)
    inside = np.flatnonzero(distance <= window)
    nearest = None
    if not len(inside) and np.isfinite(distance).any():
        best = int(np.nanargmin(distance))
        cell = table[id_column][best].as_py() if id_column in table.column_names else best
        nearest = Nearest(str(cell), float(positions[best]), float(positions[best] - at))
    chosen = np.sort(inside[np.argsort(distance[inside], kind="stable")[:rows]])
    return Near(take_table(table, chosen), positions[chosen], len(inside) if total is None else total, nearest)


OUTCOMES = ("terminated", "truncated", "cut")


def outcomes(table: pa.Table) -> NDArray:
    """How each episode ended: 0 terminated, 1 truncated, 2 cut short."""
    n = table.num_rows
    ended = [
        table[name].to_pylist() if name in table.column_names else [None] * n for name in ("terminated", "truncated")
    ]
    complete = table["complete"].to_pylist() if "complete" in table.column_names else [None] * n
    return np.array(
        [2 if whole is False or not (a or b) else 0 if a else 1 for a, b, whole in zip(*ended, complete, strict=True)],
        dtype=np.int64,
    )


def with_outcome(table: pa.Table) -> pa.Table:
    """Episodes and how they ended."""
    ends = strings([OUTCOMES[end] for end in outcomes(table)])
    if "outcome" in table.column_names:
        table = table.drop_columns(["outcome"])
    return table.append_column("outcome", ends)
