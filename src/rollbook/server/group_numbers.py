"""The score of a group of runs: the statistic over its members, as shown in a cell of the table."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from rollbook import compare
from rollbook.errors import RollbookError
from rollbook.server.cells import num
from rollbook.server.schemas.common import Row

__all__ = ["centre_of", "group_cell"]


def group_cell(values: Sequence[object], members: int) -> Row:
    """{centre, low, high, n, method, sentence} of the values of a group's members."""
    known = _finite(values)
    if not known:
        return {"centre": None, "low": None, "high": None, "n": 0, "method": "", "sentence": "no run has it"}
    left_out = members - len(known)
    centre, low, high, method, sentence = _interval(known)
    return {
        "centre": num(centre),
        "low": num(low) if low is not None else None,
        "high": num(high) if high is not None else None,
        "n": len(known),
        "method": method,
        "sentence": sentence + (f" {left_out} of {members} runs have no number here." if left_out else ""),
    }


def centre_of(values: Sequence[object]) -> float | None:
    """The statistic alone, for sorting."""
    known = _finite(values)
    return compare.centre(known) if known else None


def _finite(values: Sequence[object]) -> tuple[float, ...]:
    return tuple(float(v) for v in values if isinstance(v, (int, float)) and math.isfinite(v))


@functools.lru_cache(maxsize=4_096)
def _interval(values: tuple[float, ...]) -> tuple[float, float | None, float | None, str, str]:
    entries = [compare.Entry("group", str(n), None, "", value) for n, value in enumerate(values)]
    try:
        comparison = compare.compare(entries, metric="value", by="configuration", how="as it is", statistic="iqm")
    except RollbookError as err:  # a number that no statistic accepts
        return compare.centre(values), None, None, "", str(err)
    interval = comparison.groups[0].interval
    assert interval is not None
    return interval.estimate, interval.low, interval.high, interval.method, interval.sentence("IQM")
