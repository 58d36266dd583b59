"""The table of checkpoints as rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from rollbook.values.arrow import to_numpy


def checkpoint_rows(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of the table for a `CheckpointHistory`."""
    if not table.num_rows:
        return []
    times = to_numpy(table["time"].cast(pa.timestamp("ns", "UTC")))[0].astype(np.int64).tolist()
    plain = table.drop_columns(["time"]).to_pylist()  # Python has no type for ns
    return [dict(row, time_ns=time_ns) for row, time_ns in zip(plain, times, strict=True)]
