"""Runs in the order of their columns: every table of runs is sorted so, by each door."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

from rollbook.runs.columns import values_of
from rollbook.runs.fields import field_names
from rollbook.runs.group_rows import sort_key
from rollbook.runs.measures import measure_of
from rollbook.runs.results import measures_of
from rollbook.runs.source import Row

Item = TypeVar("Item")


def by_value(items: Sequence[Item], value: Callable[[Item], object], descending: bool) -> list[Item]:
    """Sorted by a value, equal ones as they were. Those without one, and those with NaN, are last in either direction.

    Numbers come before texts, whose case does not count.
    """
    keyed = [(sort_key(value(item)), item) for item in items]
    there = sorted((pair for pair in keyed if pair[0][0] < 3), key=lambda pair: pair[0], reverse=descending)
    return [item for _, item in there] + [item for key, item in keyed if key[0] == 3]


def newest_first(rows: Sequence[Row]) -> list[Row]:
    """Runs by the time they began."""

    def created(row: Row) -> float:
        moment = row.get("created")
        return float(moment) if isinstance(moment, (int, float)) else 0.0

    return sorted(rows, key=created, reverse=True)


def ordered(
    rows: Sequence[Row],
    by: str | Sequence[str],
    scores: Mapping[str, object] = MappingProxyType({}),
    x: str | None = None,
) -> list[Row]:
    """The answer; see `RunSet.sorted`.

    Args:
      scores: {key: score, or several} of a table; a key among `by` then means its first score, and else "last".
    """
    rows = newest_first(rows)
    for each in reversed([by] if isinstance(by, str) else by):
        name = each.removeprefix("-")
        how = scores.get(name, "last")
        values: list[Any]
        if name in scores or is_key(name, rows):
            values = list(measures_of(rows, [(name, how[0] if isinstance(how, (list, tuple)) else how)], x)[0])
        else:
            values = values_of(rows, name, f"sorted({each!r:.100})")
        indices = by_value(range(len(rows)), values.__getitem__, each.startswith("-"))
        rows = [rows[index] for index in indices]
    return rows


def is_key(name: str, rows: Sequence[Row]) -> bool:
    """Whether a column that somebody named is a key of metrics: no field, and not written as a call."""
    return "/" in name and measure_of(name) is None and name not in field_names(rows)
