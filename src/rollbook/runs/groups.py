"""Groups of runs handed to `rollbook.compare`: what a set knows of its runs as names, curves and scores."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rollbook import compare, files
from rollbook.array_types import NDArray
from rollbook.book.series import Series
from rollbook.errors import BadInput, InvalidName
from rollbook.runs.fields import check_field, value_at
from rollbook.runs.results import placed_scores_of, taken_of

__all__ = ["comparison_of", "curves_of", "lines_of", "plan_path", "plans_below", "refined_curves_of"]

Row = Mapping[str, Any]
_ENDED_BADLY = ("crashed", "killed", "stale")


def curves_of(
    rows: Sequence[Row], key: str, *, x: str | None, by: str | None, task: str | None = None, **options: Any
) -> compare.Curves:
    """See `RunSet.curves`."""
    axis, groups = lines_of(rows, key, x=x, by=by, task=task)
    return compare.curves(groups, key=key, axis=axis, by=by or "", **options)


def refined_curves_of(
    rows: Sequence[Row], key: str, *, x: str | None, by: str | None, task: str | None = None, **options: Any
) -> Iterator[compare.Curves]:
    """See `RunSet.refined_curves`."""
    axis, groups = lines_of(rows, key, x=x, by=by, task=task)
    return compare.refined_curves(groups, key=key, axis=axis, by=by or "", **options)


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
            check_field(field, rows, f"curves({word}={field!r})")
    lines = {path: taken.get(key) for path, taken in taken_of(rows, [key], _points, x=x).items()}
    axis = x or next(line[0] for line in lines.values() if line is not None)
    for row in rows:  # a run whose own axis is another one is read along that of the first
        path = str(row["path"])
        line = lines[path]
        if line is not None and x is None and line[0] != axis:
            lines[path] = taken_of([row], [key], _points, x=axis)[path].get(key)
    groups: dict[str, dict[str, compare.Line]] = {}
    for row in rows:
        _, x_values, y_values = lines[str(row["path"])] or ("", np.zeros(0), np.zeros(0))
        groups.setdefault(_label(row, by), {})[_name(row)] = compare.Line(
            x_values,
            y_values,
            str(row["status"]) in _ENDED_BADLY,
            str(row["path"]),
            "" if task is None else str(value_at(row, task)),
            row.get("seed") if isinstance(row.get("seed"), int) else None,
        )
    return axis, groups


def _points(series: Series) -> tuple[str, NDArray, NDArray]:
    return series.axis, series.x, series.mean


def comparison_of(
    rows: Sequence[Row],
    root: str,
    metric: str,
    by: str,
    *,
    score: object,
    x: str | None,
    task: str | None,
    normalise: object,
    statistic: str | None,
    plan: str | None,
    delta: float | None,
    floor: float | None,
    seed: int,
) -> compare.Comparison:
    """See `RunSet.compare`."""
    _some(rows, f"compare({metric!r})")
    rows = begun_first(rows)
    for field in (by, task):
        if field is not None:
            check_field(field, rows, f"compare({metric!r}, by={by!r})")
    results = placed_scores_of(rows, metric, score, x)
    entries = [
        compare.Entry(
            group=_label(row, by),
            name=_name(row),
            seed=row.get("seed") if isinstance(row.get("seed"), int) else None,
            task="" if task is None else str(value_at(row, task)),
            score=result,
            span=span,
            crashed=str(row["status"]) in _ENDED_BADLY,
            running=str(row["status"]) == "running",
        )
        for row, (result, span) in zip(rows, results, strict=True)
    ]
    how = score if isinstance(score, str) else getattr(score, "__name__", "a function")
    study = None
    path = None if plan is None else plan_path(root, plan)
    asked = {"metric": metric, "by": by, "score": str(how), "task": task or ""}
    if path is not None and os.path.exists(path):
        stored = files.read_json(path)
        if stored.get("asked") != asked:
            raise BadInput(
                f"compare(plan={plan!r}): this plan was made for {stored.get('asked')}, and now {asked} is asked. A "
                "plan says beforehand what is compared; take another name for another question"
            )
        study = compare.Study.from_data(stored["study"])
    comparison = compare.compare(
        entries, metric=metric, by=by, how=str(how), normalise=normalise, statistic=statistic, study=study,
        planned=plan is not None, delta=delta, floor=floor, seed=seed,
    )  # fmt: skip
    if path is not None and comparison.study is not None:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        files.write_json(path, {"asked": asked, "study": comparison.study.as_data()})
    return comparison


def plan_path(root: str, name: str) -> str:
    """Where the plan of that name is kept: beside the runs, in no run's folder."""
    if not name or any(c in name for c in "/\\\0") or name.startswith("."):
        raise InvalidName(f"plan={name!r}: a plan's name becomes a file's name; use letters, digits, - and _")
    return os.path.join(root, "comparisons", f"{name}.json")


def plans_below(root: str) -> list[dict[str, Any]]:
    """The plans kept beside the runs of a folder, by name: name, asked (metric, by, score, task), and `plan_data`.

    A file that is no plan, or a link, is left out.
    """
    folder = os.path.join(root, "comparisons")
    plans = []
    for file in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        name, dot, kind = file.rpartition(".")
        path = os.path.join(folder, file)
        stored = files.read_json(path) if dot and kind == "json" and name and not os.path.islink(path) else {}
        if isinstance(stored.get("asked"), dict) and isinstance(stored.get("study"), dict):
            try:
                plans.append(
                    {
                        "name": name,
                        "asked": stored["asked"],
                        **compare.plan_data(compare.Study.from_data(stored["study"])),
                    }
                )
            except (BadInput, KeyError, TypeError, ValueError):
                continue
    return plans


def begun_first(rows: Sequence[Row]) -> list[Row]:
    """In the order in which they were begun."""
    return sorted(rows, key=lambda row: row["created"] if isinstance(row.get("created"), (int, float)) else 0.0)


def _label(row: Row, by: str | None) -> str:
    if by is None:
        return "all runs"
    value = value_at(row, by)
    return value if isinstance(value, str) else json.dumps(value, default=str, sort_keys=True)


def _name(row: Row) -> str:
    return f"{row['project']}/{row['name']} {row['id']}"


def _some(rows: Sequence[Row], asked: str) -> None:
    if not rows:
        raise BadInput(f"{asked}: the set is empty. Look what there is with rollbook.open(…).table()")
