"""Passes groups of runs to `rollbook.compare`, as names, curves and scores."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rollbook import compare
from rollbook.book import Series
from rollbook.errors import BadInput
from rollbook.runs.colours import COLOURS, colours_of_groups
from rollbook.runs.fields import check_field, group_label, value_at
from rollbook.runs.grouping import groups_of
from rollbook.runs.grouping_facts import alike
from rollbook.runs.results import taken_of
from rollbook.schema.addresses import is_address
from rollbook.schema.run_files import MANIFEST_FILE
from rollbook.schema.status import ENDED_BADLY
from rollbook.system import files
from rollbook.values.array_types import NDArray

Row = Mapping[str, Any]


def curves_of(
    rows: Sequence[Row], root: str, key: str, *, x: str | None, by: str | None, task: str | None = None, **options: Any
) -> compare.Curves:
    """See `RunSet.curves`."""
    axis, groups = lines_of(rows, key, x=x, by=by, task=task)
    return _told(compare.curves(groups, key=key, axis=axis, by=by or "", **options), rows, root, by)


def refined_curves_of(
    rows: Sequence[Row], root: str, key: str, *, x: str | None, by: str | None, task: str | None = None, **options: Any
) -> Iterator[compare.Curves]:
    """See `RunSet.refined_curves`."""
    axis, groups = lines_of(rows, key, x=x, by=by, task=task)
    refined = compare.refined_curves(groups, key=key, axis=axis, by=by or "", **options)
    return (_told(each, rows, root, by) for each in refined)


def _told(curves: compare.Curves, rows: Sequence[Row], root: str, by: str | None) -> compare.Curves:
    """The curves, with their colours, and with what a reader should know about their groups."""
    remarks = [fact.sentence for fact in alike(rows, labels_of(rows, by), by)]
    return replace(curves, looks=looks_of(rows, root, by), notes=(*curves.notes, *remarks))


def lines_of(
    rows: Sequence[Row],
    key: str,
    *,
    x: str | None,
    by: str | None,
    task: str | None,
) -> tuple[str, dict[str, dict[str, compare.Line]]]:
    """The axis, and label -> name of the run -> its metric."""
    _some(rows, f"curves({key!r})")
    rows = begun_first(rows)
    for word, field in (("by", by), ("task", task)):
        if field is not None:
            check_groups(rows, field, f"curves({word}={field!r})")
    lines = {path: taken.get(key) for path, taken in taken_of(rows, [key], _points, x=x).items()}
    axis = x or next(line[0] for line in lines.values() if line is not None)
    for row in rows:  # a run with another axis of its own is read along that of the first run
        path = str(row["path"])
        line = lines[path]
        if line is not None and x is None and line[0] != axis:
            lines[path] = taken_of([row], [key], _points, x=axis)[path].get(key)
    groups: dict[str, dict[str, compare.Line]] = {}
    for row, label, unit in zip(rows, labels_of(rows, by), units_of(rows), strict=True):
        _, x_values, y_values = lines[str(row["path"])] or ("", np.zeros(0), np.zeros(0))
        groups.setdefault(label, {})[name_of(row)] = compare.Line(
            x_values,
            y_values,
            str(row["status"]) in ENDED_BADLY,
            str(row["path"]),
            task_of(row, task),
            seed_of(row),
            unit,
            end_of(row, axis),
        )
    return axis, groups


def end_of(row: Row, axis: str) -> float | None:
    """Where a finished run ended on an axis, if its run.json says so. A running one goes on."""
    reached = row.get("reached")
    end = reached.get(axis) if isinstance(reached, dict) and row.get("status") == "finished" else None
    return float(end) if isinstance(end, int) else None


def seed_of(row: Row) -> int | None:
    """The seed of a run; None if it has none."""
    return row["seed"] if isinstance(row.get("seed"), int) else None


def task_of(row: Row, task: str | None) -> str:
    """The task of a run, by the field `task`; "" without one."""
    return "" if task is None else str(value_at(row, task))


def _points(series: Series) -> tuple[str, NDArray, NDArray]:
    return series.axis, series.x, series.mean


def units_of(rows: Sequence[Row]) -> list[str]:
    """For each run a key that is equal for the same configuration, seed and code; "" if the run is its own unit.

    A run whose configuration or seed is unknown equals no other.
    """
    of_seed: dict[tuple[object, int], list[int]] = {}
    for place, row in enumerate(rows):
        seed = row.get("seed")
        if isinstance(seed, int) and _knows_its_configuration(row):
            of_seed.setdefault((row.get("project"), seed), []).append(place)
    alike: dict[str, list[int]] = {}
    for places in of_seed.values():
        for place in places if len(places) > 1 else ():
            row = rows[place]
            known = [row.get("project"), row["seed"], row["config"], row.get("algo"), row.get("env")]
            alike.setdefault(json.dumps(known, default=str, sort_keys=True), []).append(place)
    units = [""] * len(rows)
    for same, places in alike.items():
        for place in places if len(places) > 1 else ():
            units[place] = f"{same} {_commit(rows[place])}"
    return units


def _knows_its_configuration(row: Row) -> bool:
    """Whether a run has a configuration, and not only from its path: unknown is equal to nothing."""
    config, said = row.get("config"), row.get("from_path") or ()
    return isinstance(config, Mapping) and any(f"config.{name}" not in said for name in config)


def _commit(row: Row) -> str:
    """The commit that a run started from; "" if unknown."""
    git = files.read_json(os.path.join(str(row["path"]), MANIFEST_FILE)).get("git")
    return str(git.get("commit") or "") if isinstance(git, dict) else ""


def begun_first(rows: Sequence[Row]) -> list[Row]:
    """In the order in which they started."""
    return sorted(rows, key=lambda row: row["created"] if isinstance(row.get("created"), (int, float)) else 0.0)


def looks_of(rows: Sequence[Row], root: str, by: str | None, *, drawn: bool = False) -> dict[str, int]:
    """Label -> which colour and dashes of the style. Of groups with the same colour the later ones get other dashes.

    Args:
      drawn: whether they are drawn now, so that new colours are kept beside the runs.
    """
    groups: dict[str, list[Row]] = {}
    rows = begun_first(rows)
    for row, label in zip(rows, labels_of(rows, by), strict=True):
        groups.setdefault(label, []).append(row)
    looks: dict[str, int] = {}
    colours = colours_of_groups(list(groups.values()), not is_address(root), drawn)
    for label, colour in zip(groups, colours, strict=True):
        same = sum(look % COLOURS == colour - 1 for look in looks.values())
        looks[label] = colour - 1 + COLOURS * same
    return looks


def labels_of(rows: Sequence[Row], by: str | None) -> list[str]:
    """The name of the group of each run: the value of the field `by`, as text; "auto": what differs from the others."""
    if by != "auto":
        return [label_of(row, by) for row in rows]
    groups = groups_of(list(rows), ["auto"])
    often = Counter(group.name for group in groups)
    label_by_path = {
        str(row["path"]): group.name if often[group.name] == 1 else f"{group.section}/{group.name}"
        for group in groups
        for row in group.members
    }
    return [label_by_path[str(row["path"])] for row in rows]


def check_groups(rows: Sequence[Row], field: str, asked: str) -> None:
    """Raise if no run has the field that is to make groups. Raises: BadInput."""
    if field != "auto":
        check_field(field, rows, asked)


def label_of(row: Row, by: str | None) -> str:
    """The name of the group that a row of the listing belongs to: the value of the field `by`; see `group_label`."""
    return "all runs" if by is None else group_label(value_at(row, by))


def name_of(row: Row) -> str:
    """The name of a run that no other has: project/name id."""
    return f"{row['project']}/{row['name']} {row['id']}"


def _some(rows: Sequence[Row], asked: str) -> None:
    if not rows:
        raise BadInput(f"{asked}: the set is empty. Look what there is with rollbook.open(…).table()")
