"""Frames of the journal as Arrow tables: rare rows in long form, chunks by column, marks, late device values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from rollbook.journal import WriterInfo, column
from rollbook.schema.clocks import UNKNOWN
from rollbook.schema.run_files import value_name
from rollbook.storage.fills import Fills
from rollbook.storage.tabulate import Meta, clock_columns, long_cells, seq_range, stored_names, type_codes
from rollbook.system.guard import ours
from rollbook.values.array_types import NDArray
from rollbook.values.arrow import any_column, from_numpy, strings, time_array
from rollbook.values.raw_array import RawArray
from rollbook.values.scalars import as_float


def group_of(payload: Mapping[str, Any]) -> tuple[str, str]:
    """(table, group) of a frame: frames of one group of a lane are in the same sealed files, in order."""
    if "mark" in payload:
        return "marks", "F"
    if "fill" in payload:
        return "fills", "F"
    table = str(payload.get("table") or "other")
    if "keys" in payload:
        return table, "F" if table == "timings" else "R"
    if table == "metrics":
        columns = payload.get("columns") or {}
        # A key that changes its type gets another group, as it gets another stream: an integer must not become a float.
        names = "\n".join(sorted(f"{name}\0{_kind_of(cells)}" for name, cells in columns.items()))
        return table, "F" + hashlib.blake2b(names.encode("utf-8", "replace"), digest_size=6).hexdigest()
    return table, "F"


def _kind_of(cells: Any) -> str:
    """The kind of numbers of a column: "f", "i" or "b", "z" for integers beyond int64, "x" for others."""
    dtype = getattr(cells, "dtype", None)
    if dtype is not None:
        return str(dtype)[1:2].replace("u", "i")
    cells = cells if isinstance(cells, list) else [cells]
    kinds = {type(cell) for cell in cells}
    if kinds == {int}:
        return "i" if all(-(2**63) <= cell < 2**63 for cell in cells) else "z"
    return {float: "f", bool: "b"}.get(kinds.pop(), "x") if len(kinds) == 1 else "x"


def table_of(data: bytes) -> str:
    """The table of a frame from its first bytes, without decoding; "" if they do not contain it."""
    if data[1:6] == b"\xa4fill":
        return "fills"
    if data[1:6] == b"\xa4mark":
        return "marks"
    if data[1:7] != b"\xa5table" or len(data) < 8 or not 0xA0 <= data[7] < 0xC0 or data[0] < 0x80 or data[0] > 0x8F:
        return ""
    name = data[8 : 8 + data[7] - 0xA0].decode("ascii", "replace")
    return name if name else "other"


def may_have(column: str, text: str) -> Callable[[bytes], bool]:
    """Whether a frame, which is not decoded, may have a row with this text in a column that holds text.

    A frame without the text has none, unless its first cell is no text: numbers are compared in their written form.
    """
    word, name = text.encode("utf-8", "backslashreplace"), column.encode()
    key = bytes([0xA0 + len(name)]) + name if len(name) < 32 else name

    def look(data: bytes) -> bool:
        if word in data:
            return True
        at = data.find(key)
        if at < 0:
            return False
        at += len(key)
        at += _LISTS.get(data[at], 0)
        return not (0xA0 <= data[at] < 0xC0 or 0xD9 <= data[at] <= 0xDB)

    return look


_LISTS = {**dict.fromkeys(range(0x90, 0xA0), 1), 0xDC: 3, 0xDD: 5}
"""First byte of a list in msgpack -> the bytes before its first cell."""


class FrameTables:
    """Collects frames of one lane and returns them as tables, one per group.

    Args:
      info: the writer.
      lane: the lane of the frames.
      fills: the values of deferred keys of rare rows.
    Attributes:
      problems: messages about invalid frames, which are left out.
    """

    def __init__(self, info: WriterInfo, lane: int, fills: Fills | None = None) -> None:
        self.info, self.lane, self.fills = info, lane, fills
        self._groups: dict[tuple[str, str], _FramesOfTable] = {}
        self.problems: list[str] = []

    def add(self, seq: int, time_ns: int, payload: Mapping[str, object]) -> None:
        """One frame, in order of seq."""
        try:
            name = group_of(payload)
            group = self._groups.get(name)
            if group is None:
                group = self._groups[name] = _FramesOfTable(self.info)
            cells = _cells_of(self, seq, payload)
            if cells is not None:
                group.add(seq, time_ns, payload, *cells)
        except ours(TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError) as err:
            if len(self.problems) < 100:
                where = f"frame {seq} of lane {self.lane} of writer {self.info.id}"
                self.problems.append(f"{where} makes no sense ({err!r:.200}); it was left out")

    def tables(self) -> list[tuple[Meta, pa.Table]]:
        """(metadata, table) of each group."""
        return [group.build(*name, self.lane) for name, group in self._groups.items() if group.rows]


class _FramesOfTable:
    """The frames of one group: values shared by all rows of a frame, and value columns by chunk."""

    def __init__(self, info: WriterInfo) -> None:
        self._info = info
        self.rows = 0
        self._seqs: list[int] = []
        self._times: list[int] = []
        self._lengths: list[int] = []
        self._scopes: list[str] = []
        self._ats: list[str] = []
        self._clocks: list[list[int]] = []
        self._own_times: list[tuple[int, NDArray]] = []
        self._own_clocks: dict[str, list[tuple[int, NDArray]]] = {}
        self._columns: dict[str, list[Any]] = {}

    def add(self, seq: int, time_ns: int, payload: Mapping[str, Any], n: int, columns: Mapping[str, object]) -> None:
        """Add n rows. If the frame is invalid, raises before anything is stored."""
        clocks = _readings(payload.get("clocks"), len(self._info.clocks))
        own_times = None
        if "time_column" in payload:
            own_times = _int64(payload, "time_column", n) + self._info.time_offset
        own_clocks = {str(name): _int64(payload["clock_columns"], name, n) for name in _names(payload)}
        scope, at = str(payload.get("scope") or ""), str(payload.get("at") or "")
        # From here on nothing can fail.
        if own_times is not None:
            self._own_times.append((self.rows, own_times))
        for name, cells in own_clocks.items():
            self._own_clocks.setdefault(name, []).append((self.rows, cells))
        frame = len(self._seqs)
        for name in columns if self._columns.keys() == columns.keys() else {**self._columns, **columns}:  # in order
            chunks = self._columns.get(name)
            if chunks is None:
                chunks = self._columns[name] = [None] * frame
            chunks.append(columns.get(name))
        self._seqs.append(seq)
        self._times.append(time_ns)
        self._lengths.append(n)
        self._scopes.append(scope)
        self._ats.append(at)
        self._clocks.append(clocks)
        self.rows += n

    def build(self, table: str, kind: str, lane: int) -> tuple[Meta, pa.Table]:
        """(metadata, table)."""
        lengths = np.array(self._lengths, dtype=np.int64)
        seq = np.repeat(np.array(self._seqs, dtype=np.int64), lengths)
        times = np.repeat(np.array(self._times, dtype=np.int64), lengths)
        for start, cells in self._own_times:
            times[start : start + len(cells)] = cells
        clocks, last_clocks = clock_columns(self._all_clocks(lengths))
        columns = [("time", time_array(times)), *clocks.items()]
        constants: Meta = {}
        for name, words in (("scope", self._scopes), ("at", self._ats)):
            constants[name] = words[0] if len(set(words)) == 1 else None
            if constants[name] is None:
                cells = np.repeat(np.array(words, dtype=object), lengths)
                columns.append((name, _dictionary(cells.tolist())))
        if kind == "R" or (lengths == 1).all():  # the lines of a rare row are one row
            index = np.zeros(self.rows, dtype=np.int64)
        else:
            index = np.arange(self.rows, dtype=np.int64) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        values = self._values(kind, lengths)
        columns += [("seq", from_numpy(seq)), ("index", from_numpy(index))]
        columns += [(name, array) for name, array, _ in values]
        keys = list(self._columns)
        meta: Meta = {
            "table": table,
            "group": kind,
            "writer": self._info.id,
            "lane": lane,
            "attempt": self._info.attempt,
            **constants,
            "keys": keys,
            "stored": stored_names(keys, self._info.clocks),
            "types": "".join(type_codes(array.type) for _, array, _ in values),
            "clocks": list(clocks),
            "fields": {name: extra for name, _, extra in values if extra},
            **seq_range(seq, times),
        }
        if kind == "R":
            meta["keys"], meta["types"] = list(dict.fromkeys(chain.from_iterable(self._columns["key"]))), ""
            meta["stored"] = {}
        elif table == "metrics":
            meta["last_clocks"] = last_clocks
            meta["last"] = {
                key: array[self.rows - 1].as_py()
                for key, (_, array, _) in zip(keys, values, strict=True)
                if array[self.rows - 1].is_valid
            }
        return meta, pa.Table.from_arrays([array for _, array in columns], names=[name for name, _ in columns])

    def _all_clocks(self, lengths: NDArray) -> list[tuple[str, NDArray]]:
        """(clock, reading of each row)."""
        readings = np.array(self._clocks, dtype=np.int64).reshape(len(self._clocks), len(self._info.clocks))
        columns = {name: np.repeat(readings[:, i], lengths) for i, name in enumerate(self._info.clocks)}
        for name, pieces in self._own_clocks.items():
            cells = columns.setdefault(name, np.full(self.rows, UNKNOWN, dtype=np.int64))
            for start, own in pieces:
                part = cells[start : start + len(own)]
                part[:] = np.where(own == UNKNOWN, part, own)
        return list(columns.items())

    def _values(self, kind: str, lengths: NDArray) -> list[tuple[str, pa.Array, dict[str, str]]]:
        """(column, array, what its type does not express)."""
        if kind == "R":
            return [(name, array, {}) for name, array in _long_arrays(self._columns)]
        columns = []
        for key, chunks in self._columns.items():
            array, extra = _join(chunks, lengths)
            texts = {k.decode(): v.decode() for k, v in extra.items()} if extra else {}
            columns.append((value_name(key, self._info.clocks), array, texts))
        return columns


def _long_arrays(columns: Mapping[str, list[Any]]) -> list[tuple[str, pa.Array]]:
    """The columns of rare rows; their types do not depend on the values."""
    flat = {name: list(chain.from_iterable(chunks)) for name, chunks in columns.items()}
    integers = flat["integer"]
    valid = np.fromiter((cell is not None for cell in integers), dtype=bool, count=len(integers))
    cells = np.fromiter((cell or 0 for cell in integers), dtype=np.int64, count=len(integers))
    no_digits = all(cell is None for cell in flat["digits"])
    return [
        ("key", _dictionary(flat["key"])),
        ("type", _dictionary(flat["type"])),
        ("value", from_numpy(np.array(flat["value"], dtype=np.float64))),
        ("integer", from_numpy(cells, valid)),
        ("digits", pa.nulls(len(integers), pa.string()) if no_digits else strings(flat["digits"])),
    ]


def _cells_of(tables: FrameTables, seq: int, payload: Mapping[str, Any]) -> tuple[int, Mapping[str, object]] | None:
    """(rows, columns) of a frame; None if it has no rows. Columns are lists or RawArrays of that length."""
    if "mark" in payload:
        return _mark(payload)
    if "fill" in payload:
        return _fill(payload, tables.lane)
    if "keys" in payload:
        return _rare(tables, seq, payload)
    n = int(payload.get("n", 1))
    given: Mapping[str, object] = payload["columns"]
    lengths = {len(cells) for cells in given.values() if isinstance(cells, (list, RawArray))}
    if n < 1 or (n > 1 and lengths != {n}):
        raise ValueError(f"{n} rows with columns of lengths {sorted(lengths)}")
    return n, {str(name): _cells(given, name, n) for name in given}


def _rare(tables: FrameTables, seq: int, payload: Mapping[str, Any]) -> tuple[int, Mapping[str, object]] | None:
    pairs = dict(zip(map(str, payload["keys"]), payload["values"], strict=True))
    if tables.fills is not None and isinstance(payload.get("deferred"), list):
        pairs.update(tables.fills.of_row(tables.info.id, tables.lane, seq))
    pairs = {key: value for key, value in pairs.items() if isinstance(value, (bool, int, float))}
    if not pairs:
        return None
    if payload.get("table") == "timings":
        return len(pairs), {"name": list(pairs), "seconds": [as_float(value) for value in pairs.values()]}
    return len(pairs), long_cells(list(pairs), list(pairs.values()))


def _mark(payload: Mapping[str, Any]) -> tuple[int, Mapping[str, object]]:
    rest = {str(k): v for k, v in payload.items() if k not in ("mark", "scope", "at", "clocks", "keys")}
    keys = json.dumps([str(key) for key in payload.get("keys") or ()])
    return 1, {"mark": [str(payload["mark"])], "keys": [keys], "payload": [json.dumps(rest, default=repr)]}


def _fill(payload: Mapping[str, object], lane: int) -> tuple[int, Mapping[str, object]] | None:
    rows = Fills.rows_of(payload, lane)
    if not rows:
        return None
    lanes, seqs, keys, values = zip(*rows, strict=True)
    return len(rows), {"to_lane": list(lanes), "to_seq": list(seqs), **long_cells(list(keys), values)}


def _readings(given: object, n: int) -> list[int]:
    """n clock readings, for any content of a frame."""
    readings = given if isinstance(given, list) else []
    if len(readings) == n and all(type(cell) is int and UNKNOWN <= cell < 2**63 for cell in readings):
        return readings
    clean = [cell if type(cell) is int and UNKNOWN <= cell < 2**63 else UNKNOWN for cell in readings[:n]]
    return clean + [UNKNOWN] * (n - len(clean))


def _names(payload: Mapping[str, object]) -> Mapping[str, object]:
    own = payload.get("clock_columns")
    return own if isinstance(own, Mapping) else {}


def _cells(columns: Mapping[str, object], name: str, n: int) -> object:
    value = columns[name]
    if isinstance(value, RawArray) and value.shape and value.shape[0] == n:
        return value
    return column(columns, name, n)


def _int64(columns: Mapping[str, object], name: str, n: int) -> NDArray:
    cells = columns[name]
    if isinstance(cells, RawArray) and cells.shape == (n,) and cells.dtype[1:2] == "i":
        return cells.to_numpy().astype(np.int64, copy=False)
    cells = column(columns, name, n) or ()
    return np.array([UNKNOWN if cell is None else int(cell) for cell in cells], dtype=np.int64)


def _join(chunks: list[Any], lengths: NDArray) -> tuple[pa.Array, dict[bytes, bytes] | None]:
    """The pieces of one column (a list, a RawArray, or None if a chunk lacks it) as one array."""
    if all(isinstance(chunk, RawArray) for chunk in chunks):
        kinds = {(chunk.dtype, chunk.shape[1:]) for chunk in chunks}
        if len(kinds) == 1:
            ((dtype, inner),) = kinds
            whole = RawArray(dtype, (int(lengths.sum()), *inner), b"".join(chunk.data for chunk in chunks))
            return any_column(whole)
    cells: list[Any] = []
    for chunk, n in zip(chunks, lengths.tolist(), strict=True):
        cells += [None] * n if chunk is None else chunk.rows() if isinstance(chunk, RawArray) else chunk
    if all(type(cell) is str for cell in cells) and len(set(cells)) * 4 <= len(cells):
        return _dictionary(cells), None
    return any_column(cells)


def _dictionary(values: Sequence[str]) -> pa.Array:
    """Texts with few different values, dictionary-encoded."""
    codes: dict[str, int] = {}
    indices = np.fromiter((codes.setdefault(value, len(codes)) for value in values), dtype=np.int32, count=len(values))
    return pa.DictionaryArray.from_arrays(from_numpy(indices), strings(list(codes)))
