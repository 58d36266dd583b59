"""Converts journal records, a segment's fixed-width rows and frames, to `Row`, the one type that sinks see."""

from __future__ import annotations

from rollbook.schema.clocks import UNKNOWN
from rollbook.schema.records import Row
from rollbook.schema.tables import FORWARDED, FORWARDED_MARKS, table_of, timing_key
from rollbook.system.guard import tolerating
from rollbook.values.raw_array import RawArray

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from rollbook.journal.format import SegmentHeader
    from rollbook.journal.writers import WriterInfo


def known_clocks(names: Sequence[str], readings: Sequence[object]) -> dict[str, int]:
    """The known clocks: name -> reading."""
    return {
        name: reading
        for name, reading in zip(names, readings, strict=False)
        if reading != UNKNOWN and type(reading) is int
    }


def row_maker(
    header: SegmentHeader,
) -> Callable[[int, int, Sequence[int], Sequence[Any], Mapping[str, Any] | None], Row]:
    """A function (seq, unix ns, clocks, values, filled values) -> Row for one segment."""
    keys, scope, writer, lane, attempt = header.keys, header.scope, header.writer, header.lane, header.attempt
    names, at = header.clocks, header.at
    booleans = [key for key, kind in zip(keys, header.types, strict=True) if kind == "b"]
    later = [key for key in header.deferred if key in keys]
    table, timings = header.table, header.table == "timings"

    def make(
        seq: int, time_ns: int, clocks: Sequence[int], cells: Sequence[object], filled: Mapping[str, object] | None
    ) -> Row:
        values: dict[str, Any] = dict(zip(keys, cells, strict=True))
        for key in booleans:
            values[key] = bool(values[key])
        for key in later:
            del values[key]
        if filled:
            values.update(filled)
        if timings:
            values = {timing_key(key): value for key, value in values.items()}
        return Row(
            time_ns / 1e9, known_clocks(names, clocks), values, scope, writer, lane, seq, attempt, at=at, table=table
        )

    return make


def rows_of_frame(
    payload: Mapping[str, object],
    seq: int,
    time_ns: int,
    lane: int,
    info: WriterInfo,
    tables: frozenset[str] = FORWARDED,
    filled: Mapping[str, object] | None = None,
) -> list[Row]:
    """The rows of one frame, [] for frames that sinks do not get.

    Invalid frames give fewer rows, never an error.
    """
    with tolerating(TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError):
        return _rows_of_frame(payload, seq, time_ns, lane, info, tables, filled)
    return []


def thinned(payload: dict[str, Any], most: int) -> dict[str, object]:
    """The same frame with at most `most` of its rows, evenly spaced, including the last.

    A frame of timings, or with cells that are not numbers, stays whole: each of its rows may be a separate stream.
    """
    n, columns = payload.get("n", 1), payload.get("columns")
    if type(n) is not int or n <= most or not isinstance(columns, dict) or payload.get("table") == "timings":
        return payload
    if not all(isinstance(cells, RawArray) and cells.shape[:1] == (n,) for cells in columns.values()):
        return payload
    step = -(-n // most)
    chosen = range((n - 1) % step, n, step)

    def cut(cells: object) -> Any:
        if isinstance(cells, RawArray) and cells.shape[:1] == (n,):
            width = len(cells.data) // n
            rows = b"".join(cells.data[i * width : (i + 1) * width] for i in chosen)
            return RawArray(cells.dtype, (len(chosen), *cells.shape[1:]), rows)
        return [cells[i] for i in chosen] if isinstance(cells, list) and len(cells) == n else cells

    few = {**payload, "n": len(chosen), "columns": {name: cut(cells) for name, cells in columns.items()}}
    if "time_column" in payload:
        few["time_column"] = cut(payload["time_column"])
    if isinstance(payload.get("clock_columns"), dict):
        few["clock_columns"] = {name: cut(cells) for name, cells in payload["clock_columns"].items()}
    return few


def column(columns: Mapping[str, object], name: str, n: int) -> list[Any] | None:
    """The n values of a column, or None if there is no such column.

    A single value counts as a column of one.
    """
    if name not in columns:
        return None
    value = columns[name]
    if isinstance(value, RawArray) and value.shape and value.shape[0] == n:
        return value.rows()
    if isinstance(value, list) and len(value) == n:
        return value
    if n == 1:
        return [value]
    raise ValueError(f"column {name!r} does not have {n} values")


def _rows_of_frame(
    payload: Mapping[str, Any],
    seq: int,
    time_ns: int,
    lane: int,
    info: WriterInfo,
    tables: frozenset[str],
    filled: Mapping[str, Any] | None,
) -> list[Row]:
    scope, at = str(payload.get("scope") or ""), str(payload.get("at") or "")
    attempt = payload.get("attempt", info.attempt)
    clocks = known_clocks(info.clocks, payload.get("clocks") or ())
    mark = payload.get("mark")
    if mark is not None:
        if mark not in FORWARDED_MARKS:
            return []
        keys = tuple(map(str, payload.get("keys") or ()))
        if mark == "final":  # the final status of the run
            keys = (str(payload.get("status") or "finished"),)
        return [Row(time_ns / 1e9, clocks, {}, scope, info.id, lane, seq, attempt, str(mark), keys)]
    table = payload.get("table")
    if table not in tables:
        return []
    if "keys" in payload:
        pairs = zip(payload["keys"], payload["values"], strict=True)
        values = {str(key): value for key, value in pairs if isinstance(value, (int, float, str))}
        if filled:
            values.update(filled)
        if table == "timings":
            values = {timing_key(key): value for key, value in values.items()}
        return [Row(time_ns / 1e9, clocks, values, scope, info.id, lane, seq, attempt, at=at, table=str(table))]
    if "columns" not in payload:
        return []
    n = int(payload.get("n", 1))
    if n != 1 and all(not hasattr(cells, "__len__") or len(cells) != n for cells in payload["columns"].values()):
        return []
    times, each_clocks = _per_row(payload, n, time_ns, info, clocks)
    values_of = table_of(str(table)).values
    columns = {name: cells for name in payload["columns"] if (cells := column(payload["columns"], name, n)) is not None}
    rows = [values_of({name: cells[i] for name, cells in columns.items()}) for i in range(n)]
    return [
        Row(times[i] / 1e9, each_clocks[i], values, scope, info.id, lane, seq, attempt, at=at, table=str(table))
        for i, values in enumerate(rows)
        if values
    ]


def _per_row(
    payload: Mapping[str, Any], n: int, time_ns: int, info: WriterInfo, clocks: dict[str, int]
) -> tuple[list[int], list[dict[str, int]]]:
    """Times (unix ns) and clocks of the n rows of a chunk."""
    times = [time_ns] * n
    if "time_column" in payload:
        times = [int(mono) + info.time_offset for mono in column(payload, "time_column", n) or ()]
    each: list[dict[str, int]] = [clocks] * n
    own = payload.get("clock_columns") or {}
    if own:
        readings = {name: column(own, name, n) or [] for name in own}
        each = [
            {**clocks, **{name: int(r[i]) for name, r in readings.items() if r[i] is not None and r[i] != UNKNOWN}}
            for i in range(n)
        ]
    return times, each
