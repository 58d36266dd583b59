"""What readers should know about how runs were put into groups."""

from __future__ import annotations

from collections.abc import Sequence

from rollbook.compare.facts import Fact
from rollbook.runs.fields import value_at
from rollbook.runs.grouping import what_differs
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
    """A fact that says how several runs came into groups, if nobody named a field: `by` is "auto"."""
    if by != "auto" or len(rows) < 2:
        return []
    return [Fact("grouped by what differs", values={"groups": len(set(labels)), "fields": what_differs(rows, task)})]


def mixed(rows: Sequence[Row], labels: Sequence[str], by: str, task: str | None) -> list[Fact]:
    """Environments and projects that differ between groups or within them.

    Args:
      by: the fields that make the groups, as `title_of_fields` has them.
    """
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
