"""Which runs a plain value holds: JSON, YAML or a pickle of lists by name, of rows, of runs by name.

    runs_in({"algo": "ppo", "history": {"env_step": [0, 10], "episode_reward": [1.0, 2.0]}}, tells=False)
    [Content(mark="", fields={"algo": "ppo"}, tables=[{"env_step": [0, 10], "episode_reward": [1.0, 2.0]}], …)]

Lists of one length are columns of one table. A value is a run only if something says that it holds a training: the name
of a list, a counter next to it, or for a list alone the name of its file.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from typing import Any, NamedTuple

from rollbook.formats.importers._names import SPLITTING, is_result
from rollbook.formats.importers._paths import NEUTRAL, STAGES, is_algorithm, is_environment
from rollbook.formats.importers._tables import value_of
from rollbook.schema.counters import axis_order, is_reading, x_clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

GYM = ("episode_rewards", "episode_lengths", "timestamps")

_OF_A_SEED = re.compile(r"(?:seed|run|trial|s|rep)?[-_ ]?(?P<n>\d+)", re.IGNORECASE)
_DOPAMINES = {"Iteration", "Value"}
"""The columns of Dopamine's published baselines, besides the agent: five trainings each, whose rows may take turns."""

_DREAMERS = {"xs": "step", "ys": "returns"}
_WRAPPERS = NEUTRAL | {
    "history",
    "results",
    "training_history",
    "train_history",
    "curves",
    "learning_curve",
    "logs",
    "values",
}
_SETTINGS = frozenset({"config", "cfg", "args", "params", "hyperparameters", "hyperparams", "hparams", "settings"})
_FIELDS = {**{name: field for name, field in SPLITTING.items() if field in ("env", "algo")}, "seed": "seed"}

_MOST_RUNS = 2_000
"""A list that says more of its rows than this is no list of runs."""

_OF_A_STEP = re.compile(r"(?:(?P<axis>[a-z]+)[-_ ]?)?(?P<n>\d+)", re.IGNORECASE)
"""The names of a mapping by steps: "100", and Dopamine's "iteration_3"."""

_PLAIN = {int, float, bool, type(None)}
_DEEPEST = 4
_FEWEST = 3
"""A list of fewer numbers in a file whose name says nothing is no training."""


class Content(NamedTuple):
    """What a value holds of one run.

    Attributes:
      mark: the end of the run's name, such as "-ppo"; "" if it is the only one.
      fields: seed, algo, env, where the value says them.
      tables: for each the lists of one length by name, None for what is missing. A list without a name is "".
      config: the settings that are stored with them.
    """

    mark: str
    fields: dict[str, Any]
    tables: list[dict[str, list[Any]]]
    config: dict[str, Any]


def runs_in(value: object, *, tells: bool) -> list[Content] | str:
    """The runs that a plain value holds; a text that says why it holds none, "" where it looks like no results at all.

    Args:
      tells: the name of its file says that it holds results.
    """
    if isinstance(value, list):
        return _of_list(value, tells)
    if isinstance(value, dict):
        return _of_mapping({str(name): inner for name, inner in value.items()}, tells)
    return ""


def _is_training(tables: Iterable[dict[str, list[Any]]], tells: bool) -> bool:
    """Whether some tables are of a training: one of their lists is called like a result, or like a counter."""
    names = [name for table in tables for name, one in table.items() if tells or len(one) >= _FEWEST]
    return any(map(is_result, names)) or (tells and any(not name or x_clock(name) for name in names))


# -- lists


def _of_list(value: list[Any], tells: bool) -> list[Content] | str:
    if are_numbers(value):
        return [Content("", {}, [{"": value}], {})] if tells and len(value) > 1 else ""
    if len(value) < 2 or not all(isinstance(row, dict) for row in value):
        return ""
    runs = _several_of(value) or [Content("", {}, [table], {}) for table in [_table_of(value)] if table]
    return runs if all(_is_training(run.tables, tells) for run in runs) else ""


def _table_of(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """The columns of some rows, but for those that say which run it is; {} if none of them is an x-axis."""
    names = [name for name in rows[0] if name.lower() not in SPLITTING]
    if all(row.keys() == rows[0].keys() for row in rows):  # as most are
        table = {name: [row[name] for row in rows] for name in names}
        if all(set(map(type, column)) <= _PLAIN for column in table.values()):
            return table if axis_of(table) else {}
    flat = [dict(_flat("", {n: one for n, one in row.items() if n.lower() not in SPLITTING})) for row in rows]
    names = [*dict.fromkeys(name for row in flat for name in row)]
    table = {name: [row.get(name) for row in flat] for name in names}
    return table if axis_of(table) else {}


def _flat(prefix: str, value: object, depth: int = 0) -> list[tuple[str, Any]]:
    """The single values of a row by name; nested names are joined with "/"."""
    if isinstance(value, dict):
        inner = [] if depth == _DEEPEST else value.items()
        return [
            pair for name, each in inner for pair in _flat(f"{prefix}/{name}" if prefix else str(name), each, depth + 1)
        ]
    if isinstance(value, str):
        value = number_in(prefix, value)
    return [] if isinstance(value, list) or value is None else [(prefix, value)]


def number_in(name: str, text: str) -> Any:
    """The number that a text in JSON is ("12.5", as programs write tensors and decimals); else the text.

    The text of a column that says which run a row is of stays a text, and so does an id.
    """
    last = name.rpartition("/")[2].lower()
    if not text or last in SPLITTING or last.endswith(("id", "name", "version", "date", "hash")):
        return text
    value = value_of(text) if text[-1] in "0123456789.)]" or text.lower() in ("nan", "inf", "-inf") else text
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else text


def _several_of(rows: list[dict[str, Any]]) -> list[Content] | None:
    """The runs of a list whose entries are runs with lists of numbers, or rows that name their run."""
    lists = [{str(name): one for name, one in row.items() if isinstance(one, list)} for row in rows[:_MOST_RUNS]]
    if len(lists) == len(rows) and all(
        len(each) > 1 and _are_alike(each.values()) for each in lists
    ):  # of DreamerV2, DreamerV3 and heirs
        named = [{_DREAMERS.get(name, name): one for name, one in each.items()} for each in lists]
        marked = [(*_said_by(row), table) for row, table in zip(rows, named, strict=True)]
        return _told_apart([Content(mark, fields, [table], {}) for mark, fields, table in marked])
    dividing = [name for name in rows[0] if name.lower() in SPLITTING]
    divided: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        divided.setdefault(tuple(str(row.get(name)) for name in dividing), []).append(row)
    if not len(divided) < min(len(rows), _MOST_RUNS):
        return None
    made = []
    for own in divided.values():
        mark, fields = _said_by(own[0])
        of_dopamine = own[0].keys() - {*dividing} == _DOPAMINES
        for trained in _taking_turns(own) if of_dopamine else _trainings(own):
            if not (table := _table_of(trained)):
                return None
            if of_dopamine:
                table["Train/AverageReturns"] = table.pop("Value")
            made.append(Content(mark if len(divided) > 1 else "", fields, [table], {}))
    return _told_apart(made) if len(made) > 1 else None


def _trainings(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The rows of each training, where several stand below each other: the axis is at its first value again."""
    axis = axis_of({name: [row.get(name) for row in rows] for name in rows[0] if x_clock(name)})
    readings = [int(reading) for row in rows if is_reading(reading := row.get(axis))] if axis else []
    if not readings or len(readings) < len(rows):
        return [rows]
    begins = [0, *(n for n in range(1, len(rows)) if readings[n] <= readings[0] and readings[n] < readings[n - 1])]
    parts = [rows[a:b] for a, b in itertools.pairwise((*begins, len(rows)))]
    return parts if min(map(len, parts)) > 1 else [rows]


def _taking_turns(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The rows of each training, of which the n-th row of an iteration is the n-th training's."""
    turns: Counter[object] = Counter()
    trainings: list[list[dict[str, Any]]] = []
    for row in rows:
        n = turns[row.get("Iteration")]
        turns[row.get("Iteration")] += 1
        if n == len(trainings):
            trainings.append([])
        trainings[n].append(row)
    return trainings


def _said_by(row: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The fields of a row that identify its run: as a suffix for the run's name, and by field."""
    of_run = {SPLITTING[name.lower()]: value for name, value in row.items() if name.lower() in SPLITTING}
    of_run = {field: value for field, value in of_run.items() if isinstance(value, (str, int))}
    mark = "".join(f"-seed{value}" if field == "seed" else f"-{value}" for field, value in of_run.items())
    return mark, {field: value for field, value in of_run.items() if field == "seed" or isinstance(value, str)}


def _told_apart(runs: list[Content]) -> list[Content]:
    """The runs; those of one mark get a number."""
    counted = Counter(run.mark for run in runs)
    numbers: Counter[str] = Counter()
    made = []
    for run in runs:
        n = numbers[run.mark]
        numbers[run.mark] += 1
        made.append(run._replace(mark=f"{run.mark}-{n}") if counted[run.mark] > 1 else run)
    return made


# -- mappings


def _of_mapping(value: dict[str, Any], tells: bool, depth: int = 0) -> list[Content] | str:
    if all(are_numbers(value.get(name)) for name in GYM):
        return [Content("", {}, [{name: one for name, one in value.items() if are_numbers(one)}], {})]
    lists = {name: one for name, one in value.items() if are_numbers(one) and len(one) > 1}
    tasks = sum(map(is_environment, lists))
    if tasks > 1 and 2 * tasks > len(lists):
        return (
            f"It has the scores of {len(lists)} tasks and no training: rollbook scores compares such files, one "
            "for each algorithm"
        )
    if (table := _by_step(value)) is not None:
        return [Content("", {}, [table], {})] if _is_training([table], tells) else ""
    if depth < _DEEPEST and (runs := _by_name(value, lists, tells, depth)):
        return runs
    tables, config, _others = _tables_of(value)
    if not _is_training(tables, tells):
        return _of_no_training(value, tables) if tells else ""
    fields = {_FIELDS[name.lower()]: one for name, one in config.items() if name.lower() in _FIELDS}
    return [Content("", fields, tables, config)]


def _of_no_training(value: dict[str, Any], tables: list[dict[str, list[Any]]]) -> str:
    """Why a mapping is no training, in a file whose name says that it holds results."""
    names = [name for table in tables for name in table]
    if names:
        return f"None of its lists is called like a result or a counter of steps ({', '.join(names[:6])})"
    numbers = [one for one in value.values() if isinstance(one, (int, float)) and not isinstance(one, bool)]
    return (
        "It has one number for each name, and no training" if len(numbers) > 1 and len(numbers) * 2 > len(value) else ""
    )


def _by_step(value: dict[str, Any]) -> dict[str, list[Any]] | None:
    """The table of a mapping whose names are steps: {"100": {"reward": 1.0}, "200": {…}}."""
    found = [_OF_A_STEP.fullmatch(name) for name in value]
    axes = {(match["axis"] or "").lower() for match in found if match is not None}
    if len(value) < _FEWEST or None in found or len(axes) > 1 or not x_clock(axis := axes.pop() or "step"):
        return None
    rows = [(int(match["n"]), one) for match, one in zip(found, value.values(), strict=True) if match is not None]
    rows.sort(key=lambda row: row[0])
    if all(is_number(one) for _, one in rows):
        return {axis: [n for n, _ in rows], "": [one for _, one in rows]}
    if not all(isinstance(one, dict) and one for _, one in rows):
        return None
    flat = [dict(_flat("", {name: _alone(inner) for name, inner in one.items()})) for _, one in rows]
    names = dict.fromkeys(name for row in flat for name, one in row.items() if is_number(one))
    if not names:
        return None
    return {axis: [n for n, _ in rows], **{name: [row.get(name) for row in flat] for name in names if name != axis}}


def _alone(value: object) -> object:
    """The one number of a list that holds no other."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _by_name(value: dict[str, Any], lists: dict[str, Any], tells: bool, depth: int) -> list[Content]:
    """The runs of a mapping whose names are those of runs: of seeds, algorithms, environments, or anything alike."""
    inner = {name: one for name, one in value.items() if isinstance(one, dict)}
    of_seeds = len(value) > 1 and all(map(_OF_A_SEED.fullmatch, value))
    if lists and len(lists) == len(value) > 1 and (of_seeds or all(map(is_algorithm, value))):
        return [Content(f"-{name}", _named(name, value), [{"": one}], {}) for name, one in value.items()]
    of_runs = {name: one for name, one in inner.items() if name.lower() not in STAGES | _WRAPPERS | _SETTINGS}
    if lists or len(of_runs) < 2 or len(of_runs) < len(inner):
        return []
    each = {name: _of_mapping({str(n): v for n, v in one.items()}, tells, depth + 1) for name, one in of_runs.items()}
    read = {name: runs for name, runs in each.items() if isinstance(runs, list) and runs}
    keys = [{n for run in runs for table in run.tables for n in table} for runs in read.values()]
    named = of_seeds or all(is_algorithm(name) or is_environment(name) for name in of_runs)
    if len(read) < 2 or not (named or all(keys[0] & other for other in keys)):
        return []
    made = [
        run._replace(mark=f"-{name}{run.mark}", fields={**_named(name, value), **run.fields})
        for name, runs in read.items()
        for run in runs
    ]
    return made if len(made) <= _MOST_RUNS else []


def _named(name: str, others: Iterable[str] = ()) -> dict[str, Any]:
    """What the name of a run among others says. Numbers are seeds if they do not simply count."""
    if is_algorithm(name):
        return {"algo": name}
    if is_environment(name):
        return {"env": name}
    seeded = _OF_A_SEED.fullmatch(name)
    numbers = sorted(int(other) for other in others if other.isdecimal())
    is_seed = "s" in name.lower() or (len(numbers) > 1 and numbers[-1] - numbers[0] != len(numbers) - 1)
    return {"seed": int(seeded["n"])} if seeded is not None and is_seed else {}


def _tables_of(value: dict[str, Any]) -> tuple[list[dict[str, list[Any]]], dict[str, Any], int]:
    """(tables, settings, how many lists hold no numbers): of a mapping's lists, and of those and the rows in it."""
    held: list[tuple[str, dict[str, list[Any]]]] = []  # the name of the mapping, its lists
    config: dict[str, Any] = {}
    others = 0

    def look(prefix: str, mapping: dict[str, Any], depth: int) -> None:
        nonlocal others
        own: dict[str, list[Any]] = {}
        for name, one in mapping.items():
            called = f"{prefix}/{name}" if prefix else str(name)
            if isinstance(one, list) and are_numbers(one):
                if len(one) > 1:
                    own[called] = one
            elif isinstance(one, list) and len(one) > 1 and all(isinstance(row, dict) for row in one):
                if table := _table_of(one):
                    held.append((called, {f"{called}/{n}": column for n, column in table.items()}))
            elif isinstance(one, dict) and str(name).lower() in _SETTINGS:
                config.update(one)
            elif isinstance(one, dict) and depth < _DEEPEST:
                look(called, one, depth + 1)
            elif isinstance(one, list):
                others += 1
            elif not depth and isinstance(one, (bool, int, float, str)):
                config[str(name)] = one
        if own:
            held.append((prefix, own))

    look("", value, 0)
    if len(held) == 1 or all(prefix.lower() in _WRAPPERS for prefix, _ in held):
        shared = "" if len(held) > 1 else held[0][0] if held else ""
        cut = f"{shared}/" if shared else ""
        held = [(p, {n.removeprefix(cut or f"{p}/"): one for n, one in own.items()}) for p, own in held]
    tables: list[dict[str, list[Any]]] = []
    for _prefix, own in held:
        lengths: dict[int, dict[str, list[Any]]] = {}
        for name, one in own.items():
            lengths.setdefault(len(one), {})[name] = one
        tables += lengths.values()
    return tables, config, others


def axis_of(table: dict[str, list[Any]]) -> str:
    """The list that is the x-axis of a table: one called like a counter that never falls; "" if there is none."""
    named = [name for name in table if name and x_clock(name)]
    counting = [name for name in named if any(map(is_reading, table[name]))]
    steady = [name for name in counting if _never_falls(table[name])]
    return min(steady or counting, key=axis_order, default="")


def _never_falls(column: list[Any]) -> bool:
    numbers = [one for one in column if is_number(one)]
    return all(earlier <= later for earlier, later in itertools.pairwise(numbers)) and numbers[0] != numbers[-1]


def is_number(value: object) -> bool:
    """Whether a value is a number, and not a boolean."""
    return type(value) in (int, float)


def are_numbers(value: object) -> bool:
    """Whether a value is a list of numbers; None stands for one that is missing."""
    return (
        isinstance(value, list) and any(map(is_number, value)) and all(one is None or is_number(one) for one in value)
    )


def _are_alike(lists: Any) -> bool:
    """Whether these are lists of numbers, of one length."""
    return len({len(one) for one in lists}) == 1 and all(map(are_numbers, lists))
