"""What a group of runs scores: the statistic over its members, as a cell of the table says it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rollbook.server.cells import num
from rollbook.server.schemas.common import Row

__all__ = ["group_cell"]


def group_cell(values: Sequence[object], members: int) -> Row:
    """{centre, low, high, n, method, sentence} of the values of a group's members."""
    known = np.array(sorted(float(v) for v in values if isinstance(v, (int, float)) and v == v), dtype=np.float64)
    n = len(known)
    cut = n // 4
    centre = float(known[cut : n - cut].mean()) if n else None
    left_out = members - n
    sentence = f"IQM of {n} runs" if n > 1 else "one run" if n else "no run has it"
    return {
        "centre": num(centre) if centre is not None else None,
        "low": None,
        "high": None,
        "n": n,
        "method": "",
        "sentence": sentence + (f"; {left_out} have no number here" if left_out and n else ""),
    }
