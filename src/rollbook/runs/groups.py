"""Passes groups of runs to `rollbook.compare`, as names, curves and scores."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rollbook import compare
from rollbook.book import Series
from rollbook.errors import BadInput, InvalidName
from rollbook.runs.colours import COLOURS, colours_of_groups
from rollbook.runs.fields import check_field, value_at
from rollbook.runs.results import fewer_is_better, placed_scores_of, taken_of
from rollbook.runs.reward_parts import on_one_scale
from rollbook.schema.addresses import is_address
from rollbook.schema.run_files import MANIFEST_FILE
from rollbook.system import files
from rollbook.values.array_types import NDArray

Row = Mapping[str, Any]
_ENDED_BADLY = ("crashed", "killed", "stale")


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
    return replace(curves, looks=looks_of(rows, root, by), notes=(*curves.notes, *alike(rows, by)))


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
    for row in rows:  # a run with another axis of its own is read along that of the first run
        path = str(row["path"])
        line = lines[path]
        if line is not None and x is None and line[0] != axis:
            lines[path] = taken_of([row], [key], _points, x=axis)[path].get(key)
    groups: dict[str, dict[str, compare.Line]] = {}
    for row, unit in zip(rows, units_of(rows), strict=True):
        _, x_values, y_values = lines[str(row["path"])] or ("", np.zeros(0), np.zeros(0))
        groups.setdefault(label_of(row, by), {})[_name(row)] = compare.Line(
            x_values,
            y_values,
            str(row["status"]) in _ENDED_BADLY,
            str(row["path"]),
            _task_of(row, task),
            _seed_of(row),
            unit,
            end_of(row, axis),
        )
    return axis, groups


def end_of(row: Row, axis: str) -> float | None:
    """Where a finished run ended on an axis, if its run.json says so. A running one goes on."""
    reached = row.get("reached")
    end = reached.get(axis) if isinstance(reached, dict) and row.get("status") == "finished" else None
    return float(end) if isinstance(end, int) else None


def _seed_of(row: Row) -> int | None:
    return row["seed"] if isinstance(row.get("seed"), int) else None


def _task_of(row: Row, task: str | None) -> str:
    return "" if task is None else str(value_at(row, task))


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
    direction: str | None,
    seed: int,
) -> compare.Comparison:
    """See `RunSet.compare`."""
    _some(rows, f"compare({metric!r})")
    rows = begun_first(rows)
    for field in (by, task):
        if field is not None:
            check_field(field, rows, f"compare({metric!r}, by={by!r})")
    metric, parts_note = on_one_scale(rows, metric)
    results = placed_scores_of(rows, metric, score, x)
    units = units_of(rows)
    entries = [
        compare.Entry(
            group=label_of(row, by),
            name=_name(row),
            seed=_seed_of(row),
            task=_task_of(row, task),
            score=result.score,
            span=result.span,
            unit=unit,
            ends_in_nan=result.ends_in_nan,
            crashed=str(row["status"]) in _ENDED_BADLY,
            running=str(row["status"]) == "running",
        )
        for row, result, unit in zip(rows, results, units, strict=True)
    ]
    how = score if isinstance(score, str) else getattr(score, "__name__", "a function")
    if direction is None and fewer_is_better(score):
        direction = "lower"
    path = None if plan is None else plan_path(root, plan)
    asked = {"metric": metric, "by": by, "score": str(how), "task": task or ""}
    stored = {} if path is None or not os.path.exists(path) else _looks_so_far(path, plan, asked)
    comparison = compare.compare(
        entries, metric=metric, by=by, how=str(how), normalise=normalise, statistic=statistic,
        study=compare.Study.from_data(stored["study"]) if stored else None, planned=plan is not None, delta=delta,
        floor=floor, direction=direction, seed=seed,
        notes=[
            *parts_note, *mixed(rows, by, task), *alike(rows, by), *_who_never_got_there(entries, metric, str(how)),
        ],
    )  # fmt: skip
    if path is not None and comparison.study is not None:
        seeds = {group.label: list(group.names) for group in comparison.groups}
        _refuse_missing_seeds(plan, stored.get("seeds"), seeds)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        files.write_json(path, {"asked": asked, "study": comparison.study.as_data(), "seeds": seeds})
    return replace(comparison, looks=looks_of(rows, root, by))


def _looks_so_far(path: str, plan: str | None, asked: dict[str, str]) -> dict[str, Any]:
    """What is stored of a plan."""
    stored = files.read_json(path)
    if stored.get("asked") != asked:
        raise BadInput(
            f"compare(plan={plan!r}): this plan was made for {_in_words(stored.get('asked'))}, and now "
            f"{_in_words(asked)} is asked. A plan says beforehand what is compared; take another name for another "
            "question"
        )
    return stored


def _who_never_got_there(entries: Sequence[compare.Entry], metric: str, how: str) -> list[str]:
    """A remark about a score that only some runs have."""
    never = sum(entry.score is None and entry.span is not None for entry in entries)
    if not never or not fewer_is_better(how):
        return []
    level = how.strip().rpartition(" ")[2]
    return [
        f"{never} of {len(entries)} runs never reached {level} and have no score, which flatters their groups: "
        f'runs.curves("{metric}", by=…).reached({level}) counts them.'
    ]


def _in_words(asked: object) -> str:
    """The question of a plan: metric='test/return', by='config.algo', …"""
    return ", ".join(f"{name}={value!r}" for name, value in asked.items() if value) if isinstance(asked, dict) else "?"


def _refuse_missing_seeds(plan: str | None, before: object, now: Mapping[str, Sequence[str]]) -> None:
    """Raise if seeds of the last look are missing in this one; older plans recorded no seeds."""
    for arm, names in before.items() if isinstance(before, Mapping) else ():
        gone = [name for name in names if name not in now.get(arm, ())]
        if gone:
            more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
            raise BadInput(
                f"compare(plan={plan!r}): of {arm}, {gone[0]}{more} had a score at the last look and none now. "
                "A plan keeps the runs that were looked at: choose them, too, or make a new plan for seeds "
                "that were not looked at"
            )


_ENVIRONMENTS = (
    "config.env", "config.env_id", "config.env_name", "config.environment", "config.task", "env", "project",
)  # fmt: skip
"""`env` is what one of the others says, or the path of a run that another tool wrote."""

_ALGORITHMS = ("algo", "config.algo", "config.algorithm")


def mixed(rows: Sequence[Row], by: str, task: str | None) -> list[str]:
    """Sentences about environments and projects that differ between groups or within them."""
    remarks: list[str] = []
    asked = {by, task} & set(_ENVIRONMENTS)
    for field in _ENVIRONMENTS:
        if field in (by, task) or (field in ("env", "project") and remarks):
            continue
        if asked - {"project"} and (field == "env" or "env" in asked):
            continue
        of_group: dict[str, dict[str, None]] = {}
        for row in rows:
            value = value_at(row, field)
            if value is not None:
                of_group.setdefault(label_of(row, by), {})[str(value)] = None
        every = list(dict.fromkeys(value for values in of_group.values() for value in values))
        if len(every) < 2 or (field == "project" and task is not None):
            continue
        first, *others = of_group.items()
        what = "project" if field == "project" else "environment"
        unlike = next((other for other in others if other[1].keys() != first[1].keys()), None)
        if unlike is not None:
            ran = " and ".join(f"{label} in {_few(list(values))}" for label, values in (first, unlike))
            remarks.append(
                f"Careful: the groups differ in their {what}, too ({field}): {ran}. Say --task {field} "
                f"(task={field!r}) for scores of several on one scale, or choose the runs of one."
            )
        else:
            remarks.append(
                f"Careful: scores of {len(every)} {what}s ({field}: {_few(every)}) are taken together. Say --task "
                f"{field} (task={field!r}), or choose the runs of one."
            )
    return remarks


def alike(rows: Sequence[Row], by: str | None) -> list[str]:
    """Sentences about groups whose runs are of several algorithms, or cannot be told apart."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(label_of(row, by), []).append(row)
    remarks = []
    for label, members in groups.items():
        found = dict.fromkeys(str(row["algo"]) for row in members if row.get("algo"))
        unknown = [row for row in members if row.get("made_by") and not row.get("algo") and not row.get("config")]
        if len(found) > 1 and by not in _ALGORITHMS:
            remarks.append(
                f"Careful: {label} takes {len(found)} algorithms together ({_few(list(found))}). Say --by algo, or "
                "choose the runs of one."
            )
        elif len(unknown) > 1 and len(members) > 1:
            remarks.append(
                f"Careful: of {len(unknown)} runs of {label}, neither files nor paths say the algorithm or the "
                "configuration; they may differ. rollbook label says it for them."
            )
    return remarks


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


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


def plan_path(root: str, name: str) -> str:
    """The file of the plan of this name: with the runs, outside of their folders."""
    if not name or any(c in name for c in "/\\\0") or name.startswith("."):
        raise InvalidName(f"plan={name!r}: a plan's name becomes a file's name; use letters, digits, - and _")
    return os.path.join(root, "comparisons", f"{name}.json")


def plans_below(root: str) -> list[dict[str, Any]]:
    """The plans stored with the runs of a folder, by name: name, asked (metric, by, score, task), and `plan_data`.

    Links and files that are not plans are left out.
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
    """In the order in which they started."""
    return sorted(rows, key=lambda row: row["created"] if isinstance(row.get("created"), (int, float)) else 0.0)


def looks_of(rows: Sequence[Row], root: str, by: str | None, *, drawn: bool = False) -> dict[str, int]:
    """Label -> which colour and dashes of the style. Of groups with the same colour the later ones get other dashes.

    Args:
      drawn: whether they are drawn now, so that new colours are kept beside the runs.
    """
    groups: dict[str, list[Row]] = {}
    for row in begun_first(rows):
        groups.setdefault(label_of(row, by), []).append(row)
    looks: dict[str, int] = {}
    colours = colours_of_groups(list(groups.values()), not is_address(root), drawn)
    for label, colour in zip(groups, colours, strict=True):
        same = sum(look % COLOURS == colour - 1 for look in looks.values())
        looks[label] = colour - 1 + COLOURS * same
    return looks


def label_of(row: Row, by: str | None) -> str:
    """The name of the group that a row of the listing belongs to: the value of the field `by`, as text."""
    if by is None:
        return "all runs"
    value = value_at(row, by)
    return value if isinstance(value, str) else json.dumps(value, default=str, sort_keys=True)


def _name(row: Row) -> str:
    return f"{row['project']}/{row['name']} {row['id']}"


def _some(rows: Sequence[Row], asked: str) -> None:
    if not rows:
        raise BadInput(f"{asked}: the set is empty. Look what there is with rollbook.open(…).table()")
