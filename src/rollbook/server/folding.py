"""Runs folded into groups of equal configuration, and the names of the groups."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from rollbook.errors import BadInput
from rollbook.server.catalogue import RunRow
from rollbook.server.cells import plain
from rollbook.server.columns import config_paths, is_metric, names_one_run, sort_key, value_of
from rollbook.server.facts import Facts
from rollbook.server.group_numbers import centre_of

__all__ = ["RunGroup", "auto_columns", "group_value", "groups_of", "telling_columns"]


@dataclass(slots=True)
class RunGroup:
    """Runs of equal configuration."""

    id: str
    name: str
    section: str
    values: dict[str, object]
    members: list[RunRow]


def auto_columns(rows: Sequence[RunRow]) -> list[str]:
    """The configuration that differs between some runs, without seeds and names."""
    columns = []
    for path, values in config_paths(rows).items():
        if not names_one_run(path) and (len(values) > 1 or sum(count for _, count in values.values()) < len(rows)):
            columns.append(f"config.{path}")
    return columns


def groups_of(rows: Sequence[RunRow], columns: Sequence[str]) -> list[RunGroup]:
    """Runs of one project and name with equal values of some columns; in the order of their first member."""
    if not columns:
        raise BadInput("group_by=[]: name at least one column, or 'auto'; null for no groups")
    automatic = list(columns) == ["auto"]
    by_name: dict[tuple[str, str], list[RunRow]] = {}
    for row in rows:
        both = (str(row.about.get("project") or ""), str(row.about.get("name") or "") if automatic else "")
        by_name.setdefault(both, []).append(row)
    groups: dict[str, RunGroup] = {}
    for (project, name), members in by_name.items():
        chosen = auto_columns(members) if automatic else list(columns)
        mine: dict[str, RunGroup] = {}
        for row in members:
            values = {column: plain(value_of(column, row, None), 200) for column in chosen}
            identity = _identity(project, name, values)
            mine.setdefault(identity, RunGroup(identity, "", project, values, [])).members.append(row)
        distinguishing = telling_columns([group.values for group in mine.values()], chosen) if automatic else chosen
        for group in mine.values():
            words = [name, *(_word(column, group.values[column]) for column in distinguishing)]
            group.name = " ".join(filter(None, words)) or project
        groups |= mine
    return list(groups.values())


def _identity(project: str, name: str, values: dict[str, object]) -> str:
    """A short name of a group for links. It stays when runs with further fields come."""
    encoded = msgspec.json.encode({column: v for column, v in values.items() if v is not None}, order="sorted")
    return f"{project}/{name}:{hashlib.blake2b(encoded, digest_size=5).hexdigest()}"


_KNOWN_BY = ("algo", "algorithm", "agent", "method", "env", "env_id", "task", "model", "lr", "learning_rate")
"""Usual names of a configuration, the best known first. They decide between fields that tell equally much."""


def telling_columns(configurations: Sequence[Mapping[str, object]], columns: Sequence[str]) -> list[str]:
    """The fewest columns that tell some configurations apart: those that tell most; then one that all have; then the
    best known.

    Args:
      configurations: column -> value of each; no two are equal.
      columns: those that may be named, in their order.
    """
    telling: list[str] = []
    split: list[tuple[bytes, ...]] = [()] * len(configurations)
    spelled = {
        column: [msgspec.json.encode(configuration.get(column)) for configuration in configurations]
        for column in columns
    }

    def worth(column: str) -> tuple[int, int, int, int]:
        last = column.rpartition(".")[2]
        apart = len({(*before, own) for before, own in zip(split, spelled[column], strict=True)})
        known = _KNOWN_BY.index(last) if last in _KNOWN_BY else len(_KNOWN_BY)
        return -apart, sum(own == b"null" for own in spelled[column]), known, len(last)

    while len(set(split)) < len(configurations) and len(telling) < len(columns):
        best = min((column for column in columns if column not in telling), key=worth)
        telling.append(best)
        split = [(*before, own) for before, own in zip(split, spelled[best], strict=True)]
    return telling


def _word(column: str, value: object) -> str:
    short = column.rpartition(".")[2]
    short = "lr" if short == "learning_rate" else short
    if isinstance(value, float):
        return f"{short} {value:g}"
    if isinstance(value, dict):
        return f"{short} {msgspec.json.encode(value).decode():.40}"
    return f"{short} {'none' if value is None else str(value).lower() if isinstance(value, bool) else value}"


def group_value(group: RunGroup, column: str, known: Callable[[RunRow], Facts | None]) -> object:
    """The value that a group is sorted by: the centre of a metric, the latest time, else its first value."""
    values = [value_of(column, row, known(row)) for row in group.members]
    if is_metric(column):
        return centre_of(values)
    there = [value for value in values if value is not None]
    if column in ("created", "updated", "ended"):
        return max(there, default=None)
    return min(there, key=sort_key, default=None)
