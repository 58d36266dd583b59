"""What was going on at one point of a run: small tables of the rows nearest to a clock reading."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rollbook.store.columns import from_numpy, strings, take_table, to_numpy

__all__ = ["nearest_rows"]

NDArray = npt.NDArray[Any]


def nearest_rows(
    tables: Mapping[str, pa.Table], clock: str, value: int, rows: int, clocks: tuple[str, ...]
) -> dict[str, pa.Table]:
    """Of each table the `rows` rows whose reading of `clock` is nearest to `value`, in their order.

    Tables whose rows do not know the clock are left out. Of metrics, the newest value of each key at or before the
    point is given instead: key, value, the clock's reading, time.
    """
    found = {}
    for name, table in tables.items():
        if clock not in table.column_names:
            continue
        readings, valid = to_numpy(table[clock])
        known = np.arange(len(readings)) if valid is None else np.flatnonzero(valid)
        if not len(known):
            continue
        if name == "metrics":
            found[name] = _values_at(table, clock, readings, known, value, clocks)
            continue
        distance = np.abs(readings[known].astype(np.float64) - value)
        nearest = known[np.sort(np.argsort(distance, kind="stable")[:rows])]
        found[name] = take_table(table, nearest)
    return {name: table for name, table in found.items() if table.num_rows}


def _values_at(
    table: pa.Table, clock: str, readings: NDArray, known: NDArray, value: int, clocks: tuple[str, ...]
) -> pa.Table:
    before = known[readings[known] <= value]
    keys, values, rows = [], [], []
    for name in table.column_names:
        if name in ("time", "inferred", *clocks):
            continue
        cells, valid = to_numpy(table[name])
        there = before if valid is None else before[valid[before]]
        if len(there):
            row = int(there[np.lexsort((there, readings[there]))[-1]])
            keys.append(name)
            values.append(float(cells[row]))
            rows.append(row)
    at = np.array(rows, dtype=np.int64)
    times = table["time"].take(from_numpy(at)) if rows else table["time"].slice(0, 0)
    return pa.Table.from_arrays(
        [strings(keys), from_numpy(np.array(values)), from_numpy(readings[at] if rows else readings[:0]), times],
        names=["key", "value", clock, "time"],
    )
