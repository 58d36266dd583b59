"""Automatic groups: runs of equal configuration, named after what distinguishes them."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from rollbook.errors import BadInput
from rollbook.runs.fields import flat, group_key, group_value, grouped
from rollbook.runs.shared_names import shared_names, without_task
from rollbook.schema.seeds import named_seed
from rollbook.system.brief import brief
from rollbook.system.texts import setting_text
from rollbook.values.json_values import plain

Row = Mapping[str, Any]
T = TypeVar("T")

_SEED_LIKE = re.compile(r"(^|[._])(seed|seeds|random_state)$", re.IGNORECASE)
_NAMES_ONE_RUN = re.compile(
    r"(^|[._])(run_?name|exp_?name|run_?id|log_?dir|output_?dir|save_?(dir|path)|logdir|timestamp|start_?time|device|hostname|pid)$",
    re.IGNORECASE,
)


def config_paths(rows: Iterable[Row], part: str = "config") -> dict[str, dict[str, tuple[object, int]]]:
    """path -> {the value as JSON: (the value, how many runs have it)}."""
    paths: dict[str, dict[str, tuple[object, int]]] = {}
    for row in rows:
        for path, value in flat(row.get(part) or {}).items():
            values = paths.setdefault(path, {})
            word = json.dumps(value, sort_keys=True, default=repr)
            known = values.get(word)
            values[word] = (value, 1 if known is None else known[1] + 1)
    return paths


def names_one_run(path: str) -> bool:
    """Whether a field differs between runs of one configuration: a seed, a folder, a name."""
    return bool(_SEED_LIKE.search(path) or _NAMES_ONE_RUN.search(path))


@brief
@dataclass(slots=True)
class RunGroup(Generic[T]):
    """Runs of equal configuration.

    Attributes:
      id: a short name for links, which stays when other runs come; name: what distinguishes it from the others.
      section: its project; values: column -> the value that all have; members: the runs.
    """

    id: str
    name: str
    section: str
    values: dict[str, object]
    members: list[T]


def auto_columns(rows: Sequence[Row], task: str | None = None) -> list[str]:
    """The configuration that differs between some runs, without seeds and names.

    Args:
      task: the field with a run's task. What it decides, itself first of all, makes no groups, nor does it in names.
    """
    columns = []
    for path, values in config_paths(rows).items():
        if not names_one_run(path) and (len(values) > 1 or sum(count for _, count in values.values()) < len(rows)):
            columns.append(f"config.{path}")
    for field in ("algo", "env"):  # of other tools, where only the path says them
        is_from_path = any(field in (row.get("from_path") or ()) for row in rows)
        if is_from_path and len({row.get(field) for row in rows}) > 1:
            columns.append(field)
    return columns if task is None else [column for column in columns if not _decided_by(task, column, rows)]


def _decided_by(task: str, column: str, rows: Sequence[Row]) -> bool:
    """Whether all runs of a task have one value of a column."""
    values: dict[bytes, set[bytes]] = {}
    for row in rows:
        own = msgspec.json.encode(plain(group_value(row, column), 200))
        values.setdefault(msgspec.json.encode(plain(group_value(row, task), 200)), set()).add(own)
    return len(values) > 1 and all(len(found) == 1 for found in values.values())


def groups_of(
    rows: Sequence[T],
    columns: Sequence[str],
    about: Callable[[T], Row] = lambda row: row,  # type: ignore[assignment,return-value]
    value: Callable[[str, T], object] | None = None,
    task: str | None = None,
) -> list[RunGroup[T]]:
    """Runs with equal values of some columns; in the order of their first member.

    Args:
      columns: ["auto"]: the settings that differ among runs of one project and group. The group of a run without one is
        its name without seed and time.
      about: the fields of a run; value: of a column of a run.
      task: see `auto_columns`.
    """
    value = value or (lambda column, row: group_value(about(row), column))
    if not columns:
        raise BadInput("group_by=[]: no column.", "Name at least one, or 'auto'; null for no groups")
    automatic = list(columns) == ["auto"]
    own_names = _own_names([about(row) for row in rows], task) if automatic else [""] * len(rows)
    by_name: dict[tuple[str, str], list[T]] = {}
    for row, its_name in zip(rows, own_names, strict=True):
        section = "" if automatic and task == "project" else str(about(row).get("project") or "")
        by_name.setdefault((section, its_name), []).append(row)
    groups: dict[str, RunGroup[T]] = {}
    for (project, name), members in by_name.items():
        chosen = auto_columns([about(row) for row in members], task) if automatic else list(columns)
        mine: dict[bytes, RunGroup[T]] = {}
        for row in members:
            values = {column: plain(value(column, row), 200) for column in chosen}
            alike = _encoded(grouped(values))
            if alike not in mine:
                identity = _identity(project, name, _configuration(about(row)) if automatic else values)
                mine[alike] = RunGroup(identity, "", project, values, [])
            mine[alike].members.append(row)
        configurations = [group.values for group in mine.values()]
        if automatic:
            own_words = _own_words(configurations, chosen)
        else:
            own_words = [" ".join(_word(column, each[column]) for column in chosen) for each in configurations]
        for group, words in zip(mine.values(), own_words, strict=True):
            group.name = " ".join(filter(None, (name, words))) or project
            groups[group.id] = group
    return list(groups.values())


def told_apart(rows: Sequence[Row], *, with_ids: bool = True) -> list[str]:
    """What distinguishes each run from others of its project and name: settings, as in the names of groups, and the id
    of a run that differs in no setting and no seed from another. "" if the seeds of these runs are enough.

    Args:
      rows: all runs with which it may be shown.
      with_ids: False: repetitions are told apart elsewhere.
    """
    alike: dict[tuple[object, object], list[int]] = {}
    for index, row in enumerate(rows):
        alike.setdefault((row.get("project"), row.get("name")), []).append(index)
    words = [""] * len(rows)
    for indices in alike.values():
        members = [rows[index] for index in indices]
        seeds = [str(row.get("seed")) for row in members]
        if len(set(seeds)) == len(seeds):
            continue
        chosen = auto_columns(members)
        if len({row.get("group") for row in members}) > 1:
            chosen = ["group", *chosen]
        values = [{column: plain(group_value(row, column), 200) for column in chosen} for row in members]
        configurations = [_encoded(grouped(each)) for each in values]
        distinct = dict(zip(configurations, values, strict=True))
        own_words = dict(zip(distinct, _own_words([*distinct.values()], chosen), strict=True))
        often = Counter(zip(configurations, seeds, strict=True))
        for index, own, seed in zip(indices, configurations, seeds, strict=True):
            again = str(rows[index].get("id") or "") if with_ids and often[own, seed] > 1 else ""
            words[index] = " ".join(filter(None, (own_words[own], again)))
    return words


def what_differs(rows: Sequence[Row], task: str | None = None) -> list[str]:
    """The fields that distinguish the automatic groups of some runs: "project", "group" or "name", then settings.

    Args:
      task: see `auto_columns`.
    """
    own_of = dict(zip((str(row["path"]) for row in rows), _own_names(rows, task), strict=True))
    groups: dict[tuple[str, str], list[RunGroup[Row]]] = {}
    for group in groups_of(rows, ["auto"], task=task):
        groups.setdefault((group.section, own_of[str(group.members[0]["path"])]), []).append(group)
    fields = ["project"] if len({section for section, _ in groups}) > 1 else []
    if len({own for _, own in groups}) > 1:
        fields.append("group" if all(row.get("group") for row in rows) else "name")
    settings = [
        column
        for alike in groups.values()
        for column in telling_columns([group.values for group in alike], [*alike[0].values])
    ]
    return [*fields, *dict.fromkeys(settings)]


def _own_names(rows: Sequence[Row], task: str | None = None) -> list[str]:
    """The group of each run or, if it has none, its name without seed and time; both without the task's name."""
    of_project: dict[object, list[int]] = {}
    for index, row in enumerate(rows):
        of_project.setdefault(row.get("project"), []).append(index)
    names = [str(row.get("group") or "") for row in rows]
    for indices in of_project.values():
        own = [index for index in indices if not names[index]]
        shared = shared_names([str(rows[n].get("name") or "") for n in own], [_seed_of(rows[n]) for n in own])
        for index, name in zip(own, shared, strict=True):
            names[index] = name
    if task is None:
        return names
    return [without_task(name, str(group_value(row, task))) for name, row in zip(names, rows, strict=True)]


def _seed_of(row: Row) -> int | None:
    """The seed of a run, or that of its configuration."""
    seed, config = row.get("seed"), row.get("config")
    if isinstance(seed, int) and not isinstance(seed, bool):
        return seed
    return named_seed(config) if isinstance(config, Mapping) else None


def _own_words(configurations: Sequence[Mapping[str, object]], columns: Sequence[str]) -> list[str]:
    """What distinguishes each of some configurations, no two of them equal, in the fewest words."""
    telling = telling_columns(configurations, columns)
    usual = _usual(configurations, telling)
    words = []
    for each in configurations:
        own = [column for column in telling if msgspec.json.encode(each[column]) != usual.get(column)]
        words.append(" ".join(_word(column, each[column]) for column in own or telling[:1]))
    return words


def _usual(configurations: Sequence[Mapping[str, object]], columns: Sequence[str]) -> dict[str, bytes]:
    """Column -> the value, as text, that more than half of the configurations have: names may leave it out.

    Names stay different: if two configurations have different values in a column, at least one name has its value.
    """
    usual: dict[str, bytes] = {}
    for column in columns if len(columns) > 1 else ():
        spelled = Counter(msgspec.json.encode(each[column]) for each in configurations)
        ((value, many),) = spelled.most_common(1)
        if 2 * many > len(configurations):
            usual[column] = value
    return usual


def _configuration(row: Row) -> dict[str, object]:
    """The whole configuration but seeds and names: all runs of an automatic group have it, whatever others have."""
    fields = flat(row.get("config") or {})
    return {path: plain(value, 200) for path, value in fields.items() if not names_one_run(path)}


def _identity(project: str, name: str, values: dict[str, object]) -> str:
    """A short name of a group for links. It stays when other runs come, also with further fields."""
    return f"{project}/{name}:{hashlib.blake2b(_encoded(values), digest_size=5).hexdigest()}"


def _encoded(values: dict[str, object]) -> bytes:
    return msgspec.json.encode({column: v for column, v in values.items() if v is not None}, order="sorted")


_KNOWN_BY = ("algo", "algorithm", "agent", "method", "env", "env_id", "task", "model", "lr", "learning_rate")
"""Usual names of settings, the best known first. They decide between fields that distinguish equally many groups."""


def telling_columns(configurations: Sequence[Mapping[str, object]], columns: Sequence[str]) -> list[str]:
    """The fewest columns that distinguish some configurations. Preferred are columns that distinguish most of them,
    then columns that all have, then the best known.

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


def words_of(columns: Sequence[str], values: Sequence[tuple[object, ...]]) -> list[str]:
    """A name for each tuple of values, such as "algo ppo lr 0.001"; equal for equal values alone.

    Args:
      values: of each run, one for each column.
    """
    keys = [tuple(map(group_key, each)) for each in values]
    names = {
        key: " ".join(_word(column, plain(value, 200)) for column, value in zip(columns, each, strict=True))
        for key, each in zip(keys, values, strict=True)
    }
    often = Counter(names.values())
    full = {key: ", ".join(f"{column}={one}" for column, one in zip(columns, key, strict=True)) for key in names}
    return [names[key] if often[names[key]] == 1 else full[key] for key in keys]


def _word(column: str, value: object) -> str:
    short = column.rpartition(".")[2]
    short = "lr" if short == "learning_rate" else short
    if isinstance(value, dict):
        return f"{short} {msgspec.json.encode(value).decode():.40}"
    return f"{short} {value if isinstance(value, (str, list)) else setting_text(value)}"
