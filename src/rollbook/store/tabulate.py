"""Journal records as Arrow tables: the one place that decides which columns a row of the journal becomes.

Sealing writes these tables to Parquet and reading a live run uses them as they are, so both give the same answer.
A table comes with its description (`Meta`), which a sealed part carries in its Parquet metadata.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rollbook.clocks import UNKNOWN
from rollbook.journal.files import WriterInfo, longest_increase
from rollbook.journal.format import SegmentHeader
from rollbook.journal.frames import RawArray
from rollbook.journal.rows import column
from rollbook.store.columns import (
    any_column,
    constant,
    dictionary,
    from_numpy,
    join_tables,
    take_table,
    time_array,
    to_numpy,
)
from rollbook.store.fills import Fills
from rollbook.store.layout import value_name

__all__ = [
    "LONG_COLUMNS",
    "FrameTables",
    "Meta",
    "committed_words",
    "group_of",
    "long_table",
    "segment_table",
    "type_codes",
]

Meta = dict[str, Any]
"""What a piece of a table is: table, group, writer, lane, stream, attempt, scope, at (None where it varies by row),
first_seq, last_seq, first_time, last_time (unix ns), rows, keys, types, deferred, clocks (the known ones), fields
(column -> what its type does not say), last (the values of the last row)."""

LONG_COLUMNS = ("key", "type", "value", "integer", "digits")
"""The columns of a value in long form: its key; d, q, b or z; as float64; exactly, for q and b; as digits, for z."""

_LONG_TYPES = {"value": pa.float64(), "integer": pa.int64(), "digits": pa.string()}
_LARGEST_JUMP = 2**40
NDArray = npt.NDArray[Any]


def committed_words(
    header: SegmentHeader, data: bytes, first_seq: int, up_to: int | None = None
) -> tuple[NDArray, int]:
    """The committed rows in `data` (whole rows of a segment) as [rows, words] int64, and how many were implausible.

    Rows beyond sequence number `up_to` are left out: they may be half-written.
    """
    width = header.row_words
    n = len(data) // (8 * width)
    words = np.frombuffer(data, dtype="<i8", count=n * width).reshape(n, width)
    commit = words[:, -1]
    kept = commit >= max(1, first_seq)
    if up_to is not None:
        kept &= commit <= up_to
    good = np.flatnonzero(kept)
    seqs = commit[good]
    if len(seqs) and (np.any(seqs[1:] <= seqs[:-1]) or int(seqs[-1]) - first_seq >= _LARGEST_JUMP):
        plausible = longest_increase(good.tolist(), seqs.tolist(), first_seq)
        return words[plausible], len(good) - len(plausible)
    return (words if len(good) == n else words[good]), 0


def segment_table(
    header: SegmentHeader,
    words: NDArray,
    keys: Iterable[str] | None = None,
    fills: Fills | None = None,
) -> tuple[Meta, pa.Table]:
    """The rows of a segment as a table: time, the clocks that are known, seq, then one column a key.

    Args:
      header: of the segment.
      words: [rows, words] as `committed_words` gives them.
      keys: only these; None means all.
      fills: where the values of deferred keys are.
    """
    n, n_clocks = len(words), len(header.clocks)
    seq = np.ascontiguousarray(words[:, -1])
    times = words[:, n_clocks] + header.time_offset
    arrays: list[Any] = [time_array(times)]
    names = ["time"]
    known = []
    last_clocks: dict[str, int] = {}
    for i, clock in enumerate(header.clocks):
        readings = np.ascontiguousarray(words[:, i])
        valid = readings != UNKNOWN
        if valid.any():
            known.append(clock)
            names.append(clock)
            arrays.append(from_numpy(readings, None if valid.all() else valid))
            if valid[-1]:
                last_clocks[clock] = int(readings[-1])
    names.append("seq")
    arrays.append(from_numpy(seq))
    wanted = None if keys is None else set(keys)
    later = set(header.deferred)
    last: dict[str, Any] = {}
    timings = header.table == "timings"
    for i, (key, kind) in enumerate(zip(header.keys, header.types, strict=True)):
        if key in later:
            continue
        cells = np.ascontiguousarray(words[:, n_clocks + 1 + i])
        if kind == "d":
            cells = cells.view(np.float64)
        elif kind == "b":
            cells = cells != 0
        if n and not timings:
            last[key] = cells[-1].item()
        if wanted is None or key in wanted or timings:
            if timings:
                names += ["name", "seconds"]
                arrays += [constant(key, n), from_numpy(cells.astype(np.float64))]
            else:
                names.append(value_name(key, header.clocks))
                arrays.append(from_numpy(cells))
    for key in header.deferred:
        found = _filled(fills, header, key, seq)
        if n and found[n - 1].is_valid:
            last[key] = found[n - 1].as_py()
        if wanted is None or key in wanted:
            names.append(value_name(key, header.clocks))
            arrays.append(found)
    types = {key: kind for key, kind in zip(header.keys, header.types, strict=True) if key not in later}
    meta: Meta = {
        "table": header.table,
        "group": f"S{header.stream:03d}",
        "writer": header.writer,
        "lane": header.lane,
        "stream": header.stream,
        "attempt": header.attempt,
        "scope": header.scope,
        "at": header.at,
        "keys": [*types, *header.deferred],
        "types": "".join(types.values()) + "p" * len(header.deferred),
        "deferred": list(header.deferred),
        "clocks": known,
        **_range(seq, times),
    }
    if last:
        meta["last"], meta["last_clocks"] = last, last_clocks
    return meta, pa.Table.from_arrays(arrays, names=names)


def _filled(fills: Fills | None, header: SegmentHeader, key: str, seq: NDArray) -> pa.Array:
    if fills is None:
        return pa.nulls(len(seq), pa.float64())
    return fills.column(header.writer, header.lane, key, seq)


def _range(seq: NDArray, times: NDArray) -> Meta:
    n = len(seq)
    if not n:
        return {"rows": 0, "first_seq": 0, "last_seq": 0, "first_time": 0, "last_time": 0}
    return {
        "rows": n,
        "first_seq": int(seq.min()),
        "last_seq": int(seq.max()),
        "first_time": int(times.min()),
        "last_time": int(times.max()),
    }


def group_of(payload: Mapping[str, Any]) -> tuple[str, str]:
    """(table, group) of a frame: frames of one group of a lane lie in the same sealed files, in order."""
    if "mark" in payload:
        return "marks", "F"
    if "fill" in payload:
        return "fills", "F"
    table = str(payload.get("table") or "other")
    if "keys" in payload:
        return (table, "F") if table == "timings" else (table, "R")
    if table == "metrics":
        names = "\n".join(sorted(map(str, payload.get("columns") or ())))
        return table, "F" + hashlib.blake2b(names.encode("utf-8", "replace"), digest_size=6).hexdigest()
    return table, "F"


class FrameTables:
    """Collects frames of one lane and gives them back as tables, one a group.

    Args:
      info: the writer.
      lane: whose frames they are.
      fills: where the values of deferred keys of rare rows are.
    """

    def __init__(self, info: WriterInfo, lane: int, fills: Fills | None = None) -> None:
        self._info, self._lane, self._fills = info, lane, fills
        self._groups: dict[tuple[str, str], _Group] = {}
        self.problems: list[str] = []

    def add(self, seq: int, time_ns: int, payload: Mapping[str, Any]) -> None:
        """One frame, in order of seq. Odd ones are named in `problems` and left out."""
        try:
            name = group_of(payload)
            group = self._groups.get(name)
            if group is None:
                group = self._groups[name] = _Group(self._info)
            _ADD.get(name[0] if name[0] in _ADD else name[1], _add_chunk)(self, group, seq, time_ns, payload)
        except (TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError) as err:
            self.problems.append(f"frame {seq} of lane {self._lane} of {self._info.id} makes no sense ({err!r:.200})")

    def tables(self, only: str | None = None) -> list[tuple[Meta, pa.Table]]:
        """(description, table) of each group, or of those of one table."""
        found = []
        for (table, kind), group in self._groups.items():
            if group.n and (only is None or table == only):
                found.append(group.build(table, kind, self._lane))
        return found


class _Group:
    """The frames of one group: shared columns row by row, value columns chunk by chunk."""

    def __init__(self, info: WriterInfo) -> None:
        self.info = info
        self.n = 0
        self.times: list[NDArray] = []
        self.seqs: list[NDArray] = []
        self.indices: list[NDArray] = []
        self.scopes: list[str] = []
        self.ats: list[str] = []
        self.lengths: list[int] = []
        self.clocks: dict[str, list[NDArray]] = {}
        self.columns: dict[str, list[Any]] = {}
        self.attempts: set[int] = set()

    def start(self, n: int, seq: int, time_ns: int, payload: Mapping[str, Any], indexed: bool = True) -> None:
        """The shared columns of n more rows. Raises before anything is kept if the payload is odd."""
        times = np.full(n, time_ns, dtype=np.int64)
        if "time_column" in payload:
            times = _int64(column(payload, "time_column", n)) + self.info.time_offset
        readings = list(payload.get("clocks") or ())
        clocks = {
            name: np.full(n, reading, dtype=np.int64)
            for name, reading in zip(self.info.clocks, readings, strict=False)
            if type(reading) is int and reading != UNKNOWN
        }
        for name in payload.get("clock_columns") or ():
            own = _int64(column(payload["clock_columns"], name, n))
            clocks[str(name)] = np.where(own == UNKNOWN, clocks.get(name, own), own)
        self.times.append(times)
        self.seqs.append(np.full(n, seq, dtype=np.int64))
        self.indices.append(np.arange(n, dtype=np.int64) if indexed else np.zeros(n, dtype=np.int64))
        self.scopes.append(str(payload.get("scope") or ""))
        self.ats.append(str(payload.get("at") or ""))
        place = len(self.lengths)
        self.lengths.append(n)
        for name in self.clocks.keys() | clocks.keys():
            cells = self.clocks.setdefault(name, [np.full(k, UNKNOWN, dtype=np.int64) for k in self.lengths[:place]])
            cells.append(clocks.get(name, np.full(n, UNKNOWN, dtype=np.int64)))
        self.n += n

    def put(self, columns: Mapping[str, Any]) -> None:
        """The value columns of the rows just started: each a list or a RawArray of n."""
        place = len(self.lengths) - 1
        for name in self.columns.keys() | columns.keys():
            cells = self.columns.setdefault(name, [None] * place)
            cells.append(columns.get(name))

    def build(self, table: str, kind: str, lane: int) -> tuple[Meta, pa.Table]:
        """(description, table)."""
        seq, times = np.concatenate(self.seqs), np.concatenate(self.times)
        names, arrays = ["time"], [time_array(times)]
        known = []
        last_clocks: dict[str, int] = {}
        for name in [*self.info.clocks, *sorted(self.clocks.keys() - set(self.info.clocks))]:
            if name in self.clocks:
                readings = np.concatenate(self.clocks[name])
                valid = readings != UNKNOWN
                if valid.any():
                    known.append(name)
                    names.append(name)
                    arrays.append(from_numpy(readings, None if valid.all() else valid))
                    if valid[-1]:
                        last_clocks[name] = int(readings[-1])
        constants: Meta = {}
        for name, cells in (("scope", self.scopes), ("at", self.ats)):
            if len(set(cells)) == 1:
                constants[name] = cells[0]
            else:
                constants[name] = None
                names.append(name)
                arrays.append(dictionary(np.repeat(np.array(cells, dtype=object), self.lengths).tolist()))
        names += ["seq", "index"]
        arrays += [from_numpy(seq), from_numpy(np.concatenate(self.indices))]
        fields: dict[str, dict[str, str]] = {}
        keys, types = [], ""
        for key, chunks in self.columns.items():
            name = key if kind == "R" else value_name(key, self.info.clocks)
            array, extra = _join(chunks, self.lengths)
            if pa.types.is_null(array.type) and key in _LONG_TYPES:
                array = pa.nulls(self.n, _LONG_TYPES[key])
            names.append(name)
            arrays.append(array)
            if extra:
                fields[name] = {k.decode(): v.decode() for k, v in extra.items()}
            keys.append(key)
            types += type_codes(array.type)
        meta: Meta = {
            "table": table,
            "group": kind,
            "writer": self.info.id,
            "lane": lane,
            "attempt": self.info.attempt,
            **constants,
            "keys": keys,
            "types": types,
            "clocks": known,
            "fields": fields,
            **_range(seq, times),
        }
        if kind == "R":
            long_keys = dict.fromkeys(key for chunk in self.columns["key"] for key in chunk)
            meta["keys"], meta["types"] = list(long_keys), ""
        elif table == "metrics":
            meta["last_clocks"] = last_clocks
            meta["last"] = {
                key: array[self.n - 1].as_py()
                for key, array in zip(keys, arrays[-len(keys) :], strict=True)
                if array[self.n - 1].is_valid
            }
        return meta, pa.Table.from_arrays(arrays, names=names)


def type_codes(kind: pa.DataType) -> str:
    """d, q or b for a number column, x for anything else."""
    if pa.types.is_floating(kind):
        return "d"
    if pa.types.is_integer(kind):
        return "q"
    return "b" if pa.types.is_boolean(kind) else "x"


def _add_chunk(tables: FrameTables, group: _Group, seq: int, time_ns: int, payload: Mapping[str, Any]) -> None:
    n = int(payload.get("n", 1))
    given: Mapping[str, Any] = payload["columns"]
    lengths = {len(cells) for cells in given.values() if isinstance(cells, (list, RawArray))}
    if n < 1 or (n > 1 and lengths != {n}):
        raise ValueError(f"{n} rows with columns of lengths {sorted(lengths)}")
    columns = {str(name): _cells(given, name, n) for name in given}
    group.start(n, seq, time_ns, payload)
    group.put(columns)


def _add_rare(tables: FrameTables, group: _Group, seq: int, time_ns: int, payload: Mapping[str, Any]) -> None:
    pairs = dict(zip(map(str, payload["keys"]), payload["values"], strict=True))
    if tables._fills is not None and isinstance(payload.get("deferred"), list):
        pairs.update(tables._fills.of_row(tables._info.id, tables._lane, seq))
    pairs = {key: value for key, value in pairs.items() if isinstance(value, (bool, int, float))}
    if not pairs:
        return
    if str(payload.get("table")) == "timings":
        cells: dict[str, list[Any]] = {"name": list(pairs), "seconds": [_as_float(value) for value in pairs.values()]}
    else:
        cells = long_cells(list(pairs), list(pairs.values()))
    group.start(len(pairs), seq, time_ns, payload, indexed="name" in cells)
    group.put(cells)


def long_cells(keys: list[str], values: Sequence[Any]) -> dict[str, list[Any]]:
    """Values in long form, as columns; see LONG_COLUMNS."""
    kinds = [
        "b" if type(v) is bool else "d" if isinstance(v, float) else "q" if -(2**63) <= v < 2**63 else "z"
        for v in values
    ]
    return {
        "key": keys,
        "type": kinds,
        "value": [_as_float(v) for v in values],
        "integer": [int(v) if k in "qb" else None for k, v in zip(kinds, values, strict=True)],
        "digits": [str(v) if k == "z" else None for k, v in zip(kinds, values, strict=True)],
    }


def long_table(table: pa.Table, meta: Meta) -> pa.Table:
    """A wide table of metrics in long form: one line a value, with the time, clocks and identity of its row."""
    if meta["group"] == "R":
        return table
    shared = [name for name in table.column_names if name in _SHARED or name in meta["clocks"]]
    pieces = []
    for key in meta["keys"]:
        name = key if key in table.column_names and key not in shared else f"value/{key}"
        if name not in table.column_names:
            continue
        cells, valid = to_numpy(table[name])
        rows = table.select(shared)
        if valid is not None:
            kept = np.flatnonzero(valid)
            rows, cells = take_table(rows, kept), cells[kept]
        kind = type_codes(table.schema.field(name).type)
        n = len(cells)
        as_int = from_numpy(cells.astype(np.int64)) if kind in "qb" else pa.nulls(n, pa.int64())
        columns = [constant(key, n), constant(kind, n), from_numpy(cells.astype(np.float64)), as_int]
        for label, cells_of in zip(LONG_COLUMNS, [*columns, pa.nulls(n, pa.string())], strict=True):
            rows = rows.append_column(label, cells_of)
        pieces.append(rows)
    return join_tables(pieces) if pieces else table.select(shared).slice(0, 0)


_SHARED = frozenset({"time", "scope", "at", "seq", "index"})


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _add_mark(tables: FrameTables, group: _Group, seq: int, time_ns: int, payload: Mapping[str, Any]) -> None:
    rest = {str(k): v for k, v in payload.items() if k not in ("mark", "scope", "at", "clocks", "keys")}
    keys = json.dumps([str(key) for key in payload.get("keys") or ()])
    cells = {"mark": [str(payload["mark"])], "keys": [keys], "payload": [json.dumps(rest, default=repr)]}
    group.start(1, seq, time_ns, payload)
    group.put(cells)


def _add_fill(tables: FrameTables, group: _Group, seq: int, time_ns: int, payload: Mapping[str, Any]) -> None:
    rows = Fills.rows_of(payload, tables._lane)
    if rows:
        lanes, seqs, keys, values = zip(*rows, strict=True)
        cells = {"to_lane": list(lanes), "to_seq": list(seqs), **long_cells(list(keys), values)}
        group.start(len(rows), seq, time_ns, payload)
        group.put(cells)


_ADD = {"marks": _add_mark, "fills": _add_fill, "R": _add_rare, "timings": _add_rare}


def _cells(columns: Mapping[str, Any], name: str, n: int) -> Any:
    value = columns[name]
    if isinstance(value, RawArray) and value.shape and value.shape[0] == n:
        return value
    return column(columns, name, n)


def _int64(cells: Any) -> NDArray:
    if isinstance(cells, RawArray):
        return cells.to_numpy().astype(np.int64)
    return np.array([UNKNOWN if cell is None else int(cell) for cell in cells], dtype=np.int64)


def _join(chunks: list[Any], lengths: list[int]) -> tuple[pa.Array, dict[bytes, bytes] | None]:
    """The pieces of one column (a list, a RawArray, or None where a chunk lacks it) as one array."""
    if all(isinstance(chunk, RawArray) for chunk in chunks):
        kinds = {(chunk.dtype, chunk.shape[1:]) for chunk in chunks}
        if len(kinds) == 1:
            ((dtype, inner),) = kinds
            whole = RawArray(dtype, (sum(lengths), *inner), b"".join(chunk.data for chunk in chunks))
            return any_column(whole)
    cells: list[Any] = []
    for chunk, n in zip(chunks, lengths, strict=True):
        cells += [None] * n if chunk is None else chunk.rows() if isinstance(chunk, RawArray) else chunk
    if all(isinstance(cell, str) for cell in cells) and len(set(cells)) * 4 <= len(cells):
        return dictionary(cells), None
    return any_column(cells)
