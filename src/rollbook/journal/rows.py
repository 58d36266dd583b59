"""Journal records as rows: what a segment's fixed-width row or a frame says, in the one type that sinks see."""

from __future__ import annotations

from rollbook.clocks import UNKNOWN
from rollbook.journal.frames import RawArray
from rollbook.protocols import Row
from rollbook.values import Histogram, Image, Video

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from rollbook.journal.format import SegmentHeader
    from rollbook.journal.writers import WriterInfo

__all__ = ["DEFAULT_TABLES", "MARKS", "column", "known_clocks", "row_maker", "rows_of_frame"]

DEFAULT_TABLES = frozenset({"metrics", "timings", "text", "histograms", "media"})
"""The tables whose rows go to sinks."""

MARKS = frozenset({"dump", "rewind", "final"})
"""The marks that sinks hear of; the others concern the book alone."""

_BINS = 64


def known_clocks(names: Sequence[str], readings: Sequence[Any]) -> dict[str, int]:
    """The clocks that are known, by name."""
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
    timings = header.table == "timings"

    def make(
        seq: int, time_ns: int, clocks: Sequence[int], cells: Sequence[Any], filled: Mapping[str, Any] | None
    ) -> Row:
        values: dict[str, Any] = dict(zip(keys, cells, strict=True))
        for key in booleans:
            values[key] = bool(values[key])
        for key in later:
            del values[key]
        if filled:
            values.update(filled)
        if timings:
            values = {_timing_key(key): value for key, value in values.items()}
        return Row(time_ns / 1e9, known_clocks(names, clocks), values, scope, writer, lane, seq, attempt, at=at)

    return make


def rows_of_frame(
    payload: Mapping[str, Any],
    seq: int,
    time_ns: int,
    lane: int,
    info: WriterInfo,
    tables: frozenset[str] = DEFAULT_TABLES,
    filled: Mapping[str, Any] | None = None,
) -> list[Row]:
    """The rows that one frame stands for, [] for frames that are none of a sink's business.

    Odd frames give fewer rows, never an error.
    """
    try:
        return _rows_of_frame(payload, seq, time_ns, lane, info, tables, filled)
    except (TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError):
        return []


def column(columns: Mapping[str, Any], name: str, n: int) -> list[Any] | None:
    """The n values of a column, or None if there is no such column.

    A single value stands for a column of one.
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
        if mark not in MARKS:
            return []
        keys = tuple(map(str, payload.get("keys") or ()))
        return [Row(time_ns / 1e9, clocks, {}, scope, info.id, lane, seq, attempt, str(mark), keys)]
    table = payload.get("table")
    if table not in tables:
        return []
    if "keys" in payload:
        pairs = zip(payload["keys"], payload["values"], strict=True)
        values = {str(key): value for key, value in pairs if _is_value(value)}
        if filled:
            values.update(filled)
        if table == "timings":
            values = {_timing_key(key): value for key, value in values.items()}
        return [Row(time_ns / 1e9, clocks, values, scope, info.id, lane, seq, attempt, at=at)]
    if "columns" not in payload:
        return []
    n = int(payload.get("n", 1))
    if n != 1 and all(not hasattr(cells, "__len__") or len(cells) != n for cells in payload["columns"].values()):
        return []
    times, each_clocks = _per_row(payload, n, time_ns, info, clocks)
    cells = _CELLS[table](payload["columns"], n)
    return [
        Row(times[i] / 1e9, each_clocks[i], values, scope, info.id, lane, seq, attempt, at=at)
        for i, values in enumerate(cells)
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


def _metrics(columns: Mapping[str, Any], n: int) -> list[dict[str, Any]]:
    read = {key: column(columns, key, n) or [] for key in columns}
    return [{key: cells[i] for key, cells in read.items() if _is_value(cells[i])} for i in range(n)]


def _text(columns: Mapping[str, Any], n: int) -> list[dict[str, Any]]:
    keys, texts = column(columns, "key", n) or [], column(columns, "text", n) or []
    return [{str(key): str(text)} for key, text in zip(keys, texts, strict=True)]


def _timings(columns: Mapping[str, Any], n: int) -> list[dict[str, Any]]:
    names, seconds = column(columns, "name", n) or [], column(columns, "seconds", n) or []
    return [{_timing_key(str(name)): float(value)} for name, value in zip(names, seconds, strict=True)]


def _histograms(columns: Mapping[str, Any], n: int) -> list[dict[str, Any]]:
    found = []
    cells = {name: column(columns, name, n) for name in columns}
    for i in range(n):
        one = {name: values[i] for name, values in cells.items() if values is not None}
        histogram = histogram_of(one)
        found.append({str(one["key"]): histogram} if histogram is not None else {})
    return found


def histogram_of(cells: Mapping[str, Any]) -> Histogram | None:
    """One row of the histograms table as a Histogram; raw values are binned into 64 equal bins. None if it is empty."""
    edges, counts = _floats(cells.get("edges")), _floats(cells.get("counts"))
    if edges and counts:
        summary = {name: cells.get(name) for name in ("low", "high", "total", "total_squares")}
        return Histogram(edges, counts, **summary)
    values = [value for value in _floats(cells.get("values")) if value - value == 0]  # neither NaN nor infinite
    if not values:
        return None
    low, high = min(values), max(values)
    first, last = (low, high) if low < high else (low - 0.5, high + 0.5)
    width = (last - first) / _BINS
    if not 0 < width < float("inf"):
        first, last, width = low, low + 1.0, 1.0 / _BINS
    tally = [0] * _BINS
    for value in values:
        tally[min(_BINS - 1, max(0, int((value - first) / width)))] += 1
    return Histogram(
        [first + i * width for i in range(_BINS)] + [last],
        tally,
        low=low,
        high=high,
        total=sum(values),
        total_squares=sum(value * value for value in values),
    )


def _media(columns: Mapping[str, Any], n: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cells = {name: column(columns, name, n) or [None] * n for name in columns}
    for i in range(n):
        one = {name: values[i] for name, values in cells.items()}
        path, width, height = str(one["path"]), int(one.get("width") or 0), int(one.get("height") or 0)
        if one.get("kind") == "video":
            thing: Image | Video = Video(path, width, height, int(one.get("frames") or 0), float(one.get("fps") or 0))
        else:
            thing = Image(path, width, height)
        found.append({str(one.get("key") or "media"): thing})
    return found


def _floats(value: Any) -> list[float]:
    if value is None:
        return []
    if isinstance(value, RawArray):
        return [float(item) for item in value.flat()]
    if isinstance(value, (int, float)):
        return [float(value)]
    return [float(item) for item in value if item is not None]


def _is_value(value: Any) -> bool:
    return isinstance(value, (int, float, str))


def _timing_key(name: str) -> str:
    """The key under which a sink gets the duration of a stage."""
    return f"time/{name}_seconds"


_CELLS: dict[Any, Callable[[Mapping[str, Any], int], list[dict[str, Any]]]] = {
    "metrics": _metrics,
    "text": _text,
    "timings": _timings,
    "histograms": _histograms,
    "media": _media,
}
