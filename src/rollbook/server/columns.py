"""The columns of the table of runs: the content of a cell, for a run and for a group."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from rollbook.ground.aliases import canonical, resolve
from rollbook.server.catalogue import RunRow
from rollbook.server.cells import num, plain
from rollbook.server.facts import Facts

__all__ = ["METRIC", "cell_of", "config_paths", "flat", "is_metric", "metric_of", "sort_key"]

METRIC = re.compile(r"(last|max|min):(.+)", re.DOTALL)
_SEED_LIKE = re.compile(r"(^|[._])(seed|seeds|random_state)$", re.IGNORECASE)
_NAMES_ONE_RUN = re.compile(
    r"(^|[._])(run_?name|exp_?name|run_?id|log_?dir|output_?dir|save_?(dir|path)|logdir|timestamp|start_?time|device|hostname|pid)$",
    re.IGNORECASE,
)
_DEEPEST = 8


def flat(config: Mapping[str, object], prefix: str = "", depth: int = 0) -> dict[str, object]:
    """A nested configuration as dotted path -> value; lists are values."""
    cells: dict[str, object] = {}
    for name, value in config.items():
        path = f"{prefix}{name}"
        if isinstance(value, Mapping) and value and depth < _DEEPEST:
            cells.update(flat(value, path + ".", depth + 1))
        else:
            cells[path] = value
    return cells


def config_paths(rows: Iterable[RunRow], part: str = "config") -> dict[str, dict[str, tuple[object, int]]]:
    """path -> {the value as JSON: (the value, how many runs have it)}."""
    paths: dict[str, dict[str, tuple[object, int]]] = {}
    for row in rows:
        for path, value in flat(row.about.get(part) or {}).items():
            values = paths.setdefault(path, {})
            word = json.dumps(value, sort_keys=True, default=repr)
            known = values.get(word)
            values[word] = (value, 1 if known is None else known[1] + 1)
    return paths


def names_one_run(path: str) -> bool:
    """Whether a field differs between runs of one configuration: a seed, a folder, a name."""
    return bool(_SEED_LIKE.search(path) or _NAMES_ONE_RUN.search(path))


def is_metric(column: str) -> bool:
    """Whether a column is about a key of metrics."""
    return METRIC.fullmatch(column) is not None


def metric_of(column: str) -> tuple[str, str]:
    """(last, max or min; the key)."""
    match = METRIC.fullmatch(column)
    assert match is not None
    return match[1], match[2]


def native_key(key: str, keys: Collection[str]) -> str:
    """A run's own name for a key: the key, or its only key with the same meaning; otherwise the key."""
    if key in keys:
        return key
    same = resolve(canonical(key) or key, keys)
    return same[0] if len(same) == 1 else key


def value_of(column: str, row: RunRow, facts: Facts | None) -> Any:
    """The unformatted value of a cell; None for nothing."""
    if is_metric(column):
        which, key = metric_of(column)
        if facts is None:
            return None
        if which == "last":
            return facts.latest.get(native_key(key, facts.latest))
        low_high = facts.extremes.get(key)
        return None if low_high is None else low_high[which == "max"]
    part, dot, path = column.partition(".")
    if dot and part in ("config", "summary"):
        return _at(row.about.get(part) or {}, path)
    if column == "duration":
        created, ended = row.about.get("created"), row.about.get("ended") or (facts.heard if facts else None)
        return ended - created if isinstance(created, (int, float)) and isinstance(ended, (int, float)) else None
    if column == "updated":
        return facts.heard if facts is not None else row.about.get("ended")
    if column == "progress":
        at, total = progress_of(row, facts)
        return at / total if at is not None and total else None
    return row.about.get(column)


def progress_of(row: RunRow, facts: Facts | None) -> tuple[int | None, int | None]:
    """(the last reading of the run's usual axis, its planned end)."""
    axis = axis_of(row, facts)
    total = (row.about.get("total") or {}).get(axis)
    at = facts.clocks.get(axis) if facts is not None else None
    return at, int(total) if isinstance(total, (int, float)) and not isinstance(total, bool) and total == total and abs(
        total
    ) < 2**62 else None


def axis_of(row: RunRow, facts: Facts | None) -> str:
    """The clock that a run is usually seen along."""
    total = row.about.get("total")
    if isinstance(total, Mapping) and total:
        return str(next(iter(total)))
    known = facts.clocks if facts is not None else {}
    return next(
        (clock for clock in ("env_step", "gradient_step", "train_iter", "epoch", "step", *known) if clock in known),
        "time",
    )


def cell_of(column: str, row: RunRow, facts: Facts | None) -> object:
    """The value of a cell, for JSON."""
    value = value_of(column, row, facts)
    return num(value) if is_metric(column) and isinstance(value, float) else plain(value, 200)


def sort_key(value: object) -> tuple[int, object]:
    """Numbers before texts before other values before nothing (NaN counts as nothing); always comparable."""
    if value is None or (isinstance(value, float) and value != value):
        return (3, 0)
    if isinstance(value, bool):
        return (0, int(value))
    if isinstance(value, (int, float)):
        return (0, value)
    return (1, value.casefold()) if isinstance(value, str) else (2, json.dumps(value, sort_keys=True, default=repr))


def common(values: Sequence[object]) -> object:
    """The common value of all, or the number of different ones."""
    words: dict[str, object] = {}
    for value in values:
        words.setdefault(json.dumps(value, sort_keys=True, default=repr), value)
    if len(words) == 1:
        return plain(next(iter(words.values())), 200)
    return {"distinct": len(words), "values": [plain(value, 60) for value in sorted(words.values(), key=sort_key)[:5]]}


def _at(config: Mapping[str, object], path: str) -> object:
    if path in config:
        return config[path]
    value: object = config
    for part in path.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return flat(config).get(path)
        value = value[part]
    return value
