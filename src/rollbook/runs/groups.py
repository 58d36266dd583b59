"""Puts runs into groups: their names, their colours, and which runs are one unit."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rollbook.errors import BadInput
from rollbook.runs.colours import COLOURS, colours_of_groups
from rollbook.runs.columns import group_values_of
from rollbook.runs.fields import field_of, group_label, group_value, grouping_fields
from rollbook.runs.grouping import groups_of, words_of
from rollbook.runs.questions import Fields, Groups
from rollbook.schema.addresses import is_address
from rollbook.schema.run_files import MANIFEST_FILE
from rollbook.system import files

Row = Mapping[str, Any]


def grouped(
    rows: Sequence[Row], by: Fields | Groups | None, asked: str, task: str | None = None
) -> tuple[list[Row], list[str]]:
    """Some runs in the order in which they started, group by group if the groups were named; and the label of each.

    Args:
      by: fields, "auto", None for one group, or {label: ids, names or paths of runs}.
      asked: begins the message of an error.
      task: the field with a run's task; it makes no groups of its own.
    Raises:
      BadInput: a field, or a run, that is not there; no group.
    """
    if not isinstance(by, Mapping):
        rows = begun_first(rows)
        return rows, labels_of(rows, by, f"{asked[:-1]}, by={by!r})", task)
    if not by:
        raise BadInput(f"{asked}: by={{}} names no group.", "Name at least one, {label: runs}, or a field")
    of_name: dict[str, list[Row]] = {}
    for row in rows:
        of_name.setdefault(str(row["path"]), []).append(row)
    if not all(str(name) in of_name for names in by.values() for name in names):
        for row in rows:
            for name in names_of(row) - {str(row["path"])}:
                of_name.setdefault(name, []).append(row)
    chosen: list[Row] = []
    labels: list[str] = []
    for label, names in by.items():
        members: dict[str, Row] = {}
        for name in names:
            if str(name) not in of_name:
                raise BadInput(f"{asked}: group {label!r}: there is no run {str(name)!r:.80} in this set")
            members |= {str(row["path"]): row for row in of_name[str(name)]}
        chosen += begun_first([*members.values()])
        labels += [label] * len(members)
    if not chosen:
        raise BadInput(f"{asked}: none of the groups has a run")
    return chosen, labels


def names_of(row: Row) -> set[str]:
    """What a run may be called where groups are named: its path, id, name, project/name …"""
    own = f"{row['name']}-{row['id']}"
    return {str(row[name]) for name in ("path", "id", "name") if row.get(name)} | {
        own,
        f"{row['project']}/{row['name']}",
        f"{row['project']}/{own}",
    }


def end_of(row: Row, axis: str) -> float | None:
    """The position on an axis where a finished run ended, if its run.json has it. None for a running one."""
    reached = row.get("reached")
    end = reached.get(axis) if isinstance(reached, dict) and row.get("status") == "finished" else None
    return float(end) if isinstance(end, int) else None


def seed_of(row: Row) -> int | None:
    """The seed of a run; None if it has none."""
    return row["seed"] if isinstance(row.get("seed"), int) else None


def task_of(row: Row, task: str | None) -> str:
    """The task of a run, by the field `task`; "" without one."""
    return "" if task is None else str(group_value(row, task))


def units_of(rows: Sequence[Row]) -> list[str]:
    """For each run a key that is equal for the same configuration, seed and code; "" if the run is its own unit.

    A run whose configuration or seed is unknown equals no other. Runs of other tools in folders of different names are
    no repetitions of each other, unless the names differ by seed, date, or the number of a trial.
    """
    of_seed: dict[tuple[object, int], list[int]] = {}
    for index, row in enumerate(rows):
        seed = row.get("seed")
        if isinstance(seed, int) and _knows_its_configuration(row):
            of_seed.setdefault((row.get("project"), seed), []).append(index)
    alike: dict[str, list[int]] = {}
    for indices in of_seed.values():
        for index in indices if len(indices) > 1 else ():
            row = rows[index]
            known = [row.get("project"), row["seed"], row["config"], row.get("algo"), row.get("env")]
            known.append((row.get("folder") or {}).get("repeated"))
            alike.setdefault(json.dumps(known, default=str, sort_keys=True), []).append(index)
    units = [""] * len(rows)
    for same, indices in alike.items():
        for index in indices if len(indices) > 1 else ():
            units[index] = f"{same} {_commit(rows[index])}"
    return units


def _knows_its_configuration(row: Row) -> bool:
    """Whether a run has a configuration, and not only from its path: unknown is equal to nothing."""
    config, of_path = row.get("config"), row.get("from_path") or ()
    return isinstance(config, Mapping) and any(f"config.{name}" not in of_path for name in config)


def _commit(row: Row) -> str:
    """The commit that a run started from; "" if unknown."""
    git = files.read_json(os.path.join(str(row["path"]), MANIFEST_FILE)).get("git")
    return str(git.get("commit") or "") if isinstance(git, dict) else ""


def begun_first(rows: Sequence[Row]) -> list[Row]:
    """In the order in which they started."""
    return sorted(rows, key=lambda row: row["created"] if isinstance(row.get("created"), (int, float)) else 0.0)


def looks_of(
    rows: Sequence[Row], root: str, by: Fields | None, task: str | None = None, *, drawn: bool = False
) -> dict[str, int]:
    """Label -> which colour and dashes of the style. Groups that share a colour get different dashes.

    Args:
      drawn: whether they are drawn now, so that new colours are stored with the runs.
    """
    groups: dict[str, list[Row]] = {}
    rows = begun_first(rows)
    for row, label in zip(rows, labels_of(rows, by, f"by={by!r}", task), strict=True):
        groups.setdefault(label, []).append(row)
    looks: dict[str, int] = {}
    colours = colours_of_groups(list(groups.values()), not is_address(root), drawn)
    for label, colour in zip(groups, colours, strict=True):
        same = sum(look % COLOURS == colour - 1 for look in looks.values())
        looks[label] = colour - 1 + COLOURS * same
    return looks


def labels_of(rows: Sequence[Row], by: Fields | None, asked: str, task: str | None = None) -> list[str]:
    """The name of the group of each run.

    Args:
      by: of one field its value, as text; of several "algo ppo lr 0.001"; of "auto" what differs from the others, other
        than the task; None: one group.
      asked: begins the message of an error.
      task: the field with a run's task.
    Raises:
      BadInput: no run has a field, or `by` is nothing that makes groups.
    """
    if by is None:
        return ["all runs"] * len(rows)
    fields = grouping_fields(by, rows, asked)
    if fields == ["auto"]:
        return _automatic(rows, task)
    values = [group_values_of(rows, field, asked) for field in fields]
    if len(fields) == 1:
        return [group_label(value) for value in values[0]]
    return words_of(fields, list(zip(*values, strict=True)))


def _automatic(rows: Sequence[Row], task: str | None) -> list[str]:
    task = None if task is None else field_of(task, rows, f"task={task!r}")
    groups = groups_of(list(rows), ["auto"], task=task)
    often = Counter(group.name for group in groups)
    label_by_path = {
        str(row["path"]): group.name if often[group.name] == 1 else f"{group.section}/{group.name}"
        for group in groups
        for row in group.members
    }
    return [label_by_path[str(row["path"])] for row in rows]


def title_of_fields(by: Fields | Groups | None) -> str:
    """What makes groups, for a title: the fields, "auto", "group" where the groups were named, "" without groups."""
    if by is None or isinstance(by, str):
        return by or ""
    return "group" if isinstance(by, Mapping) else ", ".join(map(str, by))


def name_of(row: Row) -> str:
    """The name of a run that no other has: project/name id."""
    return f"{row['project']}/{row['name']} {row['id']}"
