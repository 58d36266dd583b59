"""Groups of runs as rows: what their members share, and the centre of their numbers."""

from __future__ import annotations

import functools
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rollbook import compare
from rollbook.errors import RollbookError
from rollbook.runs.groups import begun_first, labels_of
from rollbook.runs.questions import Fields
from rollbook.runs.results import run_table
from rollbook.runs.source import Row
from rollbook.values.json_values import num, plain


def table_of_groups(
    rows: Sequence[Row], by: Fields, metrics: Mapping[str, object] | Sequence[str] | None, x: str | None = None
) -> list[dict[str, Any]]:
    """See `RunSet.groups`."""
    rows = begun_first(rows)
    labels = labels_of(rows, by, f"groups({by!r})")
    numbers: list[dict[str, Any]] = run_table(rows, [], metrics, x=x).to_pylist() if metrics else [{}] * len(rows)
    groups: dict[str, list[int]] = {}
    for index, label in enumerate(labels):
        groups.setdefault(label, []).append(index)
    return [
        {
            "group": label,
            "runs": [str(rows[index]["id"]) for index in indices],
            "statuses": dict(Counter(str(rows[index]["status"]) for index in indices)),
            **{
                name: group_cell([numbers[index][name] for index in indices], len(indices))
                for name in numbers[indices[0]]
            },
        }
        for label, indices in groups.items()
    ]


def group_cell(values: Sequence[object], members: int) -> dict[str, Any]:
    """{centre, low, high, n, method, sentence} of the numbers of a group's members: their IQM, with its interval."""
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


def sort_key(value: object) -> tuple[int, object]:
    """Numbers before texts before other values before nothing (NaN counts as nothing); always comparable."""
    if value is None or (isinstance(value, float) and value != value):
        return (3, 0)
    if isinstance(value, bool):
        return (0, int(value))
    if isinstance(value, (int, float)):
        return (0, value)
    return (1, value.casefold()) if isinstance(value, str) else (2, json.dumps(value, sort_keys=True, default=repr))


def common(values: Sequence[object]) -> object:
    """The common value of all, or the number of different ones."""
    words: dict[str, object] = {}
    for value in values:
        words.setdefault(json.dumps(value, sort_keys=True, default=repr), value)
    if len(words) == 1:
        return plain(next(iter(words.values())), 200)
    return {"distinct": len(words), "values": [plain(value, 60) for value in sorted(words.values(), key=sort_key)[:5]]}
