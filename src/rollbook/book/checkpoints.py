"""The table of checkpoints, as rows and with the best one marked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from rollbook.schema.checkpoint_rows import best_of, kept_checkpoints
from rollbook.values.arrow import from_numpy, to_numpy


def checkpoint_rows(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of the table for a `CheckpointHistory`."""
    if not table.num_rows:
        return []
    times = to_numpy(table["time"].cast(pa.timestamp("ns", "UTC")))[0].astype(np.int64).tolist()
    plain = table.drop_columns(["time"]).to_pylist()  # Python has no type for ns
    return [dict(row, time_ns=time_ns) for row, time_ns in zip(plain, times, strict=True)]


def with_best(table: pa.Table) -> pa.Table:
    """The table with `is_best` true for at most one row: the best checkpoint that is still kept."""
    names = ("checkpoint_id", "score", "kept", "higher_is_better")
    if not table.num_rows or any(name not in table.column_names for name in (*names[:2], "is_best")):
        return table
    cells = {name: table[name].to_pylist() for name in names if name in table.column_names}
    rows = [dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True)]
    best = best_of(kept_checkpoints(rows))
    flags = [best is not None and str(row["checkpoint_id"]) == best and row.get("kept") is not False for row in rows]
    return table.set_column(table.column_names.index("is_best"), "is_best", from_numpy(np.array(flags, dtype=bool)))
