"""What readers should know about how runs were put into groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rollbook.compare.facts import Fact
from rollbook.runs.fields import value_at
from rollbook.runs.grouping import config_paths, names_one_run, what_differs
from rollbook.runs.source import Row

_ENVIRONMENTS = (
    "config.env",
    "config.env_id",
    "config.env_name",
    "config.environment",
    "config.task",
    "env",
    "project",
)
"""`env` is the value of one of the others, or comes from the path of another tool's run."""

_ALGORITHMS = ("algo", "config.algo", "config.algorithm")


def by_what_differs(rows: Sequence[Row], labels: Sequence[str], by: object, task: str | None) -> list[Fact]:
    """A fact that says how several runs came into groups, if no field was named: `by` is "auto"."""
    if by != "auto" or len(rows) < 2:
        return []
    return [Fact("grouped by what differs", values={"groups": len(set(labels)), "fields": what_differs(rows, task)})]


class Environments(NamedTuple):
    """Groups of several environments, each of them in one alone.

    Attributes:
      field: that says the environment of a run.
      of_group: label -> the environment of its runs.
    """

    field: str
    of_group: dict[str, str]

    def fact(self) -> Fact:
        """What readers should know of it."""
        groups: dict[str, list[str]] = {}
        for label, environment in self.of_group.items():
            groups.setdefault(environment, []).append(label)
        return Fact("by environment", values={"field": self.field, "of_environment": groups})


def environments(rows: Sequence[Row], labels: Sequence[str], by: str, task: str | None) -> Environments | None:
    """The environment of each group, where a comparison of all with all would set one environment against another.

    None if the environments are the question (`by` names them, or no environment has two groups), are the tasks, are
    not known of all runs, or if a group has runs of several.
    """
    if task is not None or {*by.split(", ")} & {*_ENVIRONMENTS} - {"project"}:
        return None
    for field in _ENVIRONMENTS:
        if field == "project" or any(value_at(row, field) is None for row in rows):
            continue
        found: dict[str, set[str]] = {}
        for row, label in zip(rows, labels, strict=True):
            found.setdefault(label, set()).add(str(value_at(row, field)))
        every = set().union(*found.values())
        if 1 < len(every) < len(found) and all(len(values) == 1 for values in found.values()):
            return Environments(field, {label: next(iter(values)) for label, values in found.items()})
    return None


def environment_field(rows: Sequence[Row]) -> str | None:
    """The field that says the environment of every run; None if no field does."""
    return next(
        (field for field in _ENVIRONMENTS if field != "project" and all(value_at(r, field) is not None for r in rows)),
        None,
    )


class SharedEnvironments(NamedTuple):
    """Environments in which every seed of every group ran.

    Attributes:
      field: that says the environment of a run.
      every: the environments, in the order of their first runs.
    """

    field: str
    every: list[str]

    def fact(self) -> Fact:
        """What readers should know of it."""
        return Fact("environments are tasks", values={"field": self.field, "all": self.every})


def shared_environments(rows: Sequence[Row], labels: Sequence[str], by: str) -> SharedEnvironments | None:
    """The environments in which every seed of every group ran; None if one did not, or `by` makes groups of them.

    Such runs are no independent seeds: a seed is then one row of scores, with the environments as its tasks.
    """
    if {*by.split(", ")} & {*_ENVIRONMENTS} - {"project"}:
        return None
    for field in _ENVIRONMENTS:
        if field == "project":
            continue
        ran: dict[tuple[str, object], set[str]] = {}
        for row, label in zip(rows, labels, strict=True):
            ran.setdefault((label, row.get("seed")), set()).add(str(value_at(row, field)))
        every = dict.fromkeys(str(value_at(row, field)) for row in rows)
        known = all(isinstance(seed, int) for _, seed in ran) and all(value_at(row, field) is not None for row in rows)
        if known and len(every) > 1 and all(found == every.keys() for found in ran.values()):
            return SharedEnvironments(field, [*every])
    return None


def one_run_each(rows: Sequence[Row], labels: Sequence[str], by: object) -> list[Fact]:
    """A fact that names a field by which runs come together, if what differs made a group of each of them."""
    if by != "auto" or len(rows) < 4 or len(set(labels)) < len(rows):
        return []
    paths = [f"config.{path}" for path in config_paths(rows) if not names_one_run(path)]
    for field in (*_ALGORITHMS, *(path for path in paths if path not in _ALGORITHMS)):
        values = [str(value_at(row, field)) for row in rows if value_at(row, field) is not None]
        if len(values) == len(rows) and 1 < len(set(values)) <= len(rows) // 2:
            return [Fact("one run each", values={"field": field, "groups": len(set(values))})]
    return []


def mixed(
    rows: Sequence[Row], labels: Sequence[str], by: str, task: str | None, apart: Environments | None = None
) -> list[Fact]:
    """Environments and projects that differ between groups or within them.

    Args:
      by: the fields that make the groups, as `title_of_fields` has them.
      apart: the environments that are judged by themselves: only what differs within one of them is mixed.
    """
    if apart is not None:
        of_environment: dict[str, list[int]] = {}
        for index, label in enumerate(labels):
            of_environment.setdefault(apart.of_group[label], []).append(index)
        found = [
            fact
            for indices in of_environment.values()
            for fact in mixed([rows[n] for n in indices], [labels[n] for n in indices], by, task)
        ]
        return [apart.fact(), *found]
    facts: list[Fact] = []
    fields = {*by.split(", "), task}
    asked = fields & set(_ENVIRONMENTS)
    for field in _ENVIRONMENTS:
        if field in fields or (field in ("env", "project") and facts):
            continue
        if asked - {"project"} and (field == "env" or "env" in asked):
            continue
        of_group: dict[str, dict[str, None]] = {}
        for row, label in zip(rows, labels, strict=True):
            value = value_at(row, field)
            if value is not None:
                of_group.setdefault(label, {})[str(value)] = None
        every = list(dict.fromkeys(value for values in of_group.values() for value in values))
        if len(every) < 2 or (field == "project" and task is not None):
            continue
        first, *others = of_group.items()
        unlike = next((other for other in others if other[1].keys() != first[1].keys()), None)
        if unlike is not None:
            of_two = {label: list(values) for label, values in (first, unlike)}
            facts.append(Fact("groups differ in", values={"field": field, "of_group": of_two}))
        else:
            facts.append(Fact("taken together", values={"field": field, "all": every}))
    return facts


def alike(rows: Sequence[Row], labels: Sequence[str], by: str, task: str | None) -> list[Fact]:
    """Groups whose runs have several algorithms, come from folders that say something else, or look the same."""
    groups: dict[str, list[Row]] = {}
    for row, label in zip(rows, labels, strict=True):
        groups.setdefault(label, []).append(row)
    facts = []
    for label, members in groups.items():
        found = list(dict.fromkeys(str(row["algo"]) for row in members if row.get("algo")))
        unknown = [row for row in members if row.get("made_by") and not row.get("algo") and not row.get("config")]
        others = list(dict.fromkeys(_of_folders(row, task) for row in members if row.get("made_by")))
        if len(found) > 1 and not {*by.split(", ")} & {*_ALGORITHMS}:
            facts.append(Fact("several algorithms", label, values={"algorithms": found}))
        elif len(others) > 1:
            facts.append(Fact("of several folders", label, values={"others": others}))
        elif len(unknown) > 1 and len(members) > 1:
            facts.append(Fact("cannot be told apart", label, values={"runs": len(unknown)}))
    return facts


def _of_folders(row: Row, task: str | None) -> str:
    """What the path of another tool's run has besides algorithm and environment; "" if that is its task."""
    return "" if task == "env" and not row.get("env") else str(value_at(row, "folder.other") or "")
