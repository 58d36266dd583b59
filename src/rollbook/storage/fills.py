"""Values that were still on a device when their row was written, by (writer, lane, seq) and key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from rollbook.system.guard import tolerating
from rollbook.values.array_types import NDArray
from rollbook.values.arrow import from_numpy
from rollbook.values.raw_array import RawArray


class Fills:
    """All late values of one run.

    A value that is not here is still pending, or lost; both read as null, which differs from NaN.
    """

    def __init__(self) -> None:
        self._values: dict[tuple[str, int, str], dict[int, Any]] = {}
        self._sorted: dict[tuple[str, int, str], tuple[int, NDArray, NDArray]] = {}

    def __bool__(self) -> bool:
        return bool(self._values)

    @staticmethod
    def rows_of(payload: Mapping[str, Any], lane: int) -> list[tuple[int, int, str, Any]]:
        """(lane, seq, key, value) of a fill frame. Raises for invalid payloads, see `FrameTables.add`."""
        seqs = _plain(payload["fill"])
        target = payload.get("lane", lane)
        has = payload.get("has") or {}
        rows: list[tuple[int, int, str, Any]] = []
        for key, cells in payload["columns"].items():
            there = _plain(has[key]) if key in has else [True] * len(seqs)
            for seq, value, is_there in zip(seqs, _plain(cells), there, strict=True):
                if is_there and isinstance(value, (bool, int, float)):
                    rows.append((int(target), int(seq), str(key), value))
        return rows

    def add(self, writer: str, lane: int, seq: int, key: str, value: object) -> None:
        """Add one value. If there are several for a position, the first one stays."""
        self._values.setdefault((writer, lane, key), {}).setdefault(seq, value)

    def add_frame(self, writer: str, lane: int, payload: Mapping[str, object]) -> None:
        """Add the values of a fill frame of `lane`; none if it is invalid."""
        with tolerating(TypeError, ValueError, KeyError, IndexError, AttributeError) as missed:
            rows = self.rows_of(payload, lane)
        if missed:
            return
        for target, seq, key, value in rows:
            self.add(writer, target, seq, key, value)

    def add_table(self, writer: str, table: pa.Table) -> None:
        """Add the rows of a sealed part of fills."""
        cells = {name: table[name].to_pylist() for name in ("to_lane", "to_seq", "key", "type", "value", "integer")}
        for lane, seq, key, kind, value, integer in zip(*cells.values(), strict=True):
            self.add(writer, lane, seq, key, bool(integer) if kind == "b" else integer if kind == "q" else value)

    def of_row(self, writer: str, lane: int, seq: int) -> dict[str, object]:
        """All late values of one row."""
        return {
            key: cells[seq]
            for (whose, number, key), cells in self._values.items()
            if whose == writer and number == lane and seq in cells
        }

    def has_all(self, writer: str, lane: int, keys: tuple[str, ...], seqs: NDArray) -> bool:
        """Whether these rows have no pending values."""
        return all(self._values.get((writer, lane, key), {}).keys() >= set(seqs.tolist()) for key in keys)

    def column(self, writer: str, lane: int, key: str, seqs: NDArray) -> pa.Array:
        """The values of a key for rows in order of seq; null if there is none.

        float64, or int64 or boolean if all values are.
        """
        name = (writer, lane, key)
        cells = self._values.get(name)
        if not cells:
            return pa.nulls(len(seqs), pa.float64())
        known = self._sorted.get(name)
        if known is None or known[0] != len(cells):
            indices = np.fromiter(sorted(cells), dtype=np.int64, count=len(cells))
            kinds = {type(value) for value in cells.values()}
            dtype = np.bool_ if kinds == {bool} else np.int64 if kinds == {int} else np.float64
            with tolerating(OverflowError) as missed:
                values = np.fromiter((cells[seq] for seq in indices.tolist()), dtype=dtype, count=len(cells))
            if missed:
                values = np.array([float(cells[seq]) for seq in indices.tolist()])
            known = self._sorted[name] = (len(cells), indices, values)
        _, indices, values = known
        at = np.minimum(np.searchsorted(indices, seqs), len(indices) - 1)
        valid = indices[at] == seqs
        return from_numpy(values[at], None if valid.all() else valid)


def _plain(cells: Any) -> list[Any]:
    return cells.rows() if isinstance(cells, RawArray) else list(cells)
