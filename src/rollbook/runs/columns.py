"""Columns of runs: fields such as `config.lr`, and numbers of keys such as `last("test/return")`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rollbook.runs.conditions import holds
from rollbook.runs.fields import field_of, group_value, values_at
from rollbook.runs.measures import calls_in, measure_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pyarrow as pa

Row = Mapping[str, object]


def values_of(rows: Sequence[Row], column: str, asked: str) -> list[Any]:
    """The value of a column for each run.

    Raises:
      BadInput: no run has such a field; `asked` begins the message. UnknownKey: no run has the key.
    """
    measure = measure_of(column)
    if measure is None:
        return values_at(rows, field_of(column, rows, asked))
    from rollbook.runs.results import measures_of

    return list(measures_of(rows, [measure])[0])


def group_values_of(rows: Sequence[Row], column: str, asked: str) -> list[Any]:
    """The value of a column by which each run is put into a group; raises as `values_of`."""
    if column in ("algo", "env"):  # if they are unknown, the path of another tool's run stands for them
        return [group_value(row, column) for row in rows]
    return values_of(rows, column, asked)


def fitting(
    condition: str, rows: Sequence[Row], evaluate: Callable[[str, pa.Table], list[bool | None]] | None = None
) -> list[bool]:
    """For each run, whether a condition on its columns is true; see `conditions.holds`.

    A run without a path has no keys.

    Raises:
      BadInput: the condition is invalid, or names a field that no run has. UnknownKey: no run has a key of it.
    """
    text, measures = calls_in(condition)
    if not measures:
        return holds(condition, rows, evaluate)
    from rollbook.runs.results import measures_of

    there = [row for row in rows if "path" in row]
    found = zip(*measures_of(there, list(measures.values())), strict=True)
    numbers = {
        str(row["path"]): dict(zip(measures, of_run, strict=True)) for row, of_run in zip(there, found, strict=True)
    }
    seen = [{**row, **(numbers.get(str(row.get("path"))) or dict.fromkeys(measures))} for row in rows]
    return holds(text, seen, evaluate)
