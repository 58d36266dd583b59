"""The columns of the table of runs: cells, which columns there are, conditions on them, and groups of equal cells."""

from __future__ import annotations

import functools
import math
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from rollbook.errors import BadInput, nearest_name
from rollbook.runs.conditions import holds
from rollbook.runs.fields import COMPUTED, flat
from rollbook.runs.fields import group_value as value_of_group
from rollbook.runs.group_rows import centre_of, sort_key
from rollbook.runs.grouping import RunGroup, config_paths, names_one_run
from rollbook.runs.grouping import groups_of as groups_of_rows
from rollbook.runs.measures import Measure, calls_in, measure_of
from rollbook.schema.aliases import canonical, resolve
from rollbook.schema.source import is_view
from rollbook.server.settings import LIMITS, Limits
from rollbook.server.shared.catalogue import RunRow
from rollbook.server.shared.endpoint import Endpoint
from rollbook.server.shared.rows import axis_of
from rollbook.server.shared.shapes import Answer, Ask, Cell, Refused, finite, num, plain
from rollbook.server.shared.sql import judge
from rollbook.server.shared.state import Facts, ServerContext
from rollbook.system.texts import amount, json_text, number_text


class ColumnsAsk(Ask, kw_only=True):
    """Of which runs; all without."""

    runs: list[str] | None = None


class ConfigColumn(msgspec.Struct, kw_only=True):
    """A field of the configurations.

    Attributes:
      runs: how many have it; distinct: how many values there are; varies: whether it differs between runs, and is no
        seed and does not just name a run.
    """

    column: str
    runs: int
    distinct: int
    varies: bool
    examples: list[Cell]


class MetricColumn(msgspec.Struct, kw_only=True):
    """A key of metrics, how many of the runs that were looked at have it, and its canonical name, if it has one."""

    key: str
    runs: int
    canonical: str | None


class ColumnsAnswer(Answer, kw_only=True):
    """The columns that the table can show; pending: runs whose keys are still being read; own: see `own_columns`."""

    pending: int
    own: list[str]
    config: list[ConfigColumn]
    summary: list[ConfigColumn]
    metrics: list[MetricColumn]


_OWN = (
    "status",
    "progress",
    "created",
    "updated",
    "duration",
    "worked",
    "cause",
    "seed",
    "host",
    "tags",
    "notes",
    "attempts",
    "alerts",
    "group",
    "job_type",
    "made_by",
)


def own_columns() -> list[str]:
    """The columns besides settings, results and keys, in the order in which the page offers them."""
    return list(dict.fromkeys((*_OWN, *COMPUTED)))


def is_metric(column: str) -> bool:
    """Whether a column is a number of a key, such as last("loss")."""
    return _measure_of(column) is not None


@functools.lru_cache(1_024)
def _measure_of(column: str) -> Measure | None:
    return measure_of(column)


def facts_for(columns: Iterable[str]) -> set[str]:
    """The columns for which runs must be read, because the newest values do not suffice; see `Facts.numbers`."""
    return {str(one) for column in columns if (one := _measure_of(column)) is not None and one.how != "last"}


def native_key(key: str, keys: Collection[str]) -> str:
    """A run's own name for a key: the key, or its only key with the same meaning; otherwise the key."""
    if key in keys:
        return key
    same = resolve(canonical(key) or key, keys)
    return same[0] if len(same) == 1 else key


def value_of(column: str, row: RunRow, facts: Facts | None) -> Any:
    """The unformatted value of a cell; None for nothing."""
    measure = _measure_of(column)
    if measure is not None:
        if facts is None:
            return None
        if measure.how == "last":
            return facts.latest.get(native_key(measure.key, facts.latest))
        return facts.numbers.get(str(measure))
    part, dot, path = column.partition(".")
    if dot and part in ("config", "summary", "folder"):
        return _at(row.about.get(part) or {}, path)
    if column in COMPUTED:
        return COMPUTED[column]({"path": row.folder, **row.about})
    if column == "updated":
        return facts.heard if facts is not None else row.about.get("ended")
    if column == "progress":
        at, total = progress_of(row, facts)
        return at / total if at is not None and total else None
    return row.about.get(column)


def last_of(column: str) -> str:
    """The column of the last row of the same key."""
    measure = _measure_of(column)
    return column if measure is None or measure.how == "last" else str(measure._replace(how="last"))


def ends_in_nan(column: str, row: RunRow, facts: Facts | None) -> bool:
    """Whether a column is another number than the last of a key whose newest row is NaN or infinite."""
    measure = _measure_of(column)
    if measure is None or measure.how == "last" or facts is None:
        return False
    last = facts.latest.get(native_key(measure.key, facts.latest))
    return isinstance(last, float) and not math.isfinite(last)


def progress_of(row: RunRow, facts: Facts | None) -> tuple[int | None, int | None]:
    """(the last reading of the run's usual axis, its planned end)."""
    axis = axis_of(row, facts)
    total = (row.about.get("total") or {}).get(axis)
    at = facts.clocks.get(axis) if facts is not None else None
    return at, int(total) if isinstance(total, (int, float)) and not isinstance(total, bool) and total == total and abs(
        total
    ) < 2**62 else None


def cell_of(column: str, row: RunRow, facts: Facts | None) -> object:
    """The value of a cell, for JSON."""
    value = value_of(column, row, facts)
    return num(value) if is_metric(column) and isinstance(value, float) else plain(value, 200)


def _at(config: Mapping[str, object], path: str) -> object:
    if path in config:
        return config[path]
    value: object = config
    for part in path.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return flat(config).get(path)
        value = value[part]
    return value


_PATIENCE, _AT_ONCE = 0.15, 32
"""Seconds that the answer waits for runs whose keys were not read yet, and how many are read then."""
_MOST_OF_A_STORE = 200
"""The newest runs of a store whose keys are read in advance: each one costs requests."""


def columns(context: ServerContext, ask: ColumnsAsk) -> ColumnsAnswer:
    """The possible columns: the fields of the configurations and summaries, and the keys of metrics."""
    shot = context.catalogue.snapshot()
    rows = context.rows(ask.runs) if ask.runs is not None else list(shot.rows.values())
    until, left = time.perf_counter() + _PATIENCE, _AT_ONCE
    alike: Counter[tuple[str, ...]] = Counter()  # most runs log the same keys: each set of keys is handled once
    for row in rows:
        facts = context.facts.known(row)
        if facts is None and left and time.perf_counter() < until:
            left -= 1
            try:
                facts = context.facts.now(row)
            except Exception:  # a damaged run has no columns to offer
                continue
        if facts is not None:
            alike[tuple(facts.latest)] += 1
    have: Counter[str] = Counter()
    shared: Counter[str | None] = Counter()
    for logged, n in alike.items():
        have.update(dict.fromkeys(logged, n))
        shared.update(dict.fromkeys({canonical(key) for key in logged} - {None, *logged}, n))
    for name, n in shared.items():  # keys with different names in different frameworks are listed under the common name
        if name is not None and have[name]:
            have[name] += n
    unknown = [row for row in rows if context.facts.known(row) is None]
    unknown.sort(key=lambda row: finite(row.about.get("created")) or 0.0, reverse=True)
    unknown = [row for n, row in enumerate(unknown) if n < _MOST_OF_A_STORE or not is_view(row.folder)]
    return ColumnsAnswer(
        pending=context.facts.fetch(unknown, hurry=False) if unknown else 0,
        own=own_columns(),
        config=_config_columns_of(context, rows, "config", None if ask.runs else shot.version),
        summary=_config_columns_of(context, rows, "summary", None if ask.runs else shot.version),
        metrics=[MetricColumn(key=plain(key), runs=n, canonical=canonical(key)) for key, n in sorted(have.items())],
    )


def _config_columns_of(
    context: ServerContext, rows: Sequence[RunRow], part: str, version: int | None
) -> list[ConfigColumn]:
    """The fields of all runs, kept until a run changes (`version`): the page requests them again while numbers are
    read."""
    kept: list[ConfigColumn] | None = None if version is None else context.answers.get(("columns", part), version)
    if kept is None:
        kept = _config_columns(rows, part)
        if version is not None:
            context.answers.put(("columns", part), version, kept, 1_000 * len(kept) + 100)
    return kept


def _config_columns(rows: Sequence[RunRow], part: str) -> list[ConfigColumn]:
    columns_of_config = []
    for path, values in sorted(config_paths((row.about for row in rows), part).items()):
        runs = sum(count for _, count in values.values())
        examples = [plain(value, 60) for value, _ in sorted(values.values(), key=lambda pair: -pair[1])[:5]]
        columns_of_config.append(
            ConfigColumn(
                column=plain(f"{part}.{path}"),
                runs=runs,
                distinct=len(values),
                varies=(len(values) > 1 or runs < len(rows)) and not names_one_run(path),
                examples=examples,
            )
        )
    return columns_of_config


_FIELD = re.compile(r"\b(?:config|summary)(?:\.\w+)+")
_MOST_WORDS = 50


def metrics_in(condition: str) -> list[str]:
    """The columns in a condition that are numbers of keys."""
    return [str(measure) for measure in calls_in(condition)[1].values()]


def searched(rows: list[RunRow], text: str) -> list[RunRow]:
    """The runs that have every word of a text in their project, name, id, notes, group or tags.

    In a word `*` stands for any letters and `?` for one; 3e-3 finds 0.003, and 0.003 finds 3e-3. A copy of the page
    does the same (`wordsIn` of `dashboard/src/data/words.ts`).

    Raises:
      Refused: more words than one search may have.
    """
    words = text.casefold().split()
    if len(words) > _MOST_WORDS:
        raise Refused("too_large", f"{len(words):,} words to search for; at most {_MOST_WORDS}", "Search for fewer.")
    spelled = [[_pattern(spelling) for spelling in _spellings(word)] for word in words]
    return [
        row
        for row in rows
        if all(any(_occurs(pattern, _searchable(row)) for pattern in patterns) for patterns in spelled)
    ]


_DECIMAL = re.compile(r"(?=.*[.e])(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d{1,2})?", re.ASCII)
_MOST_PLACES = 12


def _spellings(word: str) -> list[str]:
    """A word as it was typed; of a number such as 3e-3 or 0.003 also what else people write for it."""
    if not _DECIMAL.fullmatch(word):
        return [word]
    number = float(word)
    digits, _, power = f"{number:.{_MOST_PLACES}e}".partition("e")
    short = digits.rstrip("0").rstrip(".")
    plain = f"{number:.{_MOST_PLACES}f}".rstrip("0").rstrip(".")
    if number == 0 or float(plain) != number:
        return [word]
    return list(dict.fromkeys([word, plain, f"{short}e{int(power)}", f"{short}e{int(power):+03d}"]))


def _pattern(word: str) -> list[re.Pattern[str]]:
    return [re.compile(".".join(map(re.escape, part.split("?")))) for part in word.split("*")]


def _occurs(parts: Sequence[re.Pattern[str]], text: str) -> bool:
    """Whether some parts stand in a text one behind the other."""
    start = 0
    for part in parts:
        match = part.search(text, start)
        if match is None:
            return False
        start = match.end()
    return True


def filtered(
    rows: list[RunRow], text: str, known: Callable[[RunRow], Facts | None], limits: Limits = LIMITS
) -> list[RunRow]:
    """The runs that meet a condition. DuckDB evaluates it in a separate process: a condition may be any SQL.

    Raises:
      Refused: a condition that cannot be parsed, or takes too much time or memory.
    """
    plain_text, measures = calls_in(text)
    calls = {name: str(measure) for name, measure in measures.items()}

    def seen(row: RunRow) -> Mapping[str, object]:
        """The fields of a run, and its metrics if the condition uses some."""
        if not calls:
            return row.about
        facts = known(row)
        return {**row.about, **{name: value_of(column, row, facts) for name, column in calls.items()}}

    try:
        chosen = holds(plain_text, [seen(row) for row in rows], judge(limits))
    except BadInput as err:
        hint = "Between two conditions stands and or or; texts stand in single quotes."
        raise Refused("bad_input", str(err), hint, _position(text, str(err))) from None
    return [row for row, wanted in zip(rows, chosen, strict=True) if wanted]


def _position(text: str, message: str) -> int | None:
    """The position of the error in a condition, if the message names a word of it."""
    match = re.search(r'at or near "([^"]+)"', message)
    position = text.find(match[1]) if match else -1
    return position if position >= 0 else None


def field_hint(rows: list[RunRow], text: str) -> str | None:
    """If a filter names a field that no run has: the closest existing one."""
    have_in: dict[str, Counter[str]] = {}
    for name in dict.fromkeys(_FIELD.findall(text)):
        part, _, path = name.partition(".")
        if part not in have_in:
            have_in[part] = Counter(path for row in rows for path in flat(row.about.get(part) or {}))
        have = have_in[part]
        if path in have or any(known.startswith(path + ".") for known in have):
            continue
        nearest = _nearest(path, have)
        missing = f"No run has {name}."
        runs = amount(have[nearest], "run") if nearest else ""
        return f"{missing} Did you mean {part}.{nearest} ({runs})?" if nearest else missing
    return None


def settings_called(rows: list[RunRow], text: str) -> list[str]:
    """The settings that have some words as their value, as conditions; those of the most runs first, three at most."""
    wanted = text.strip().casefold()
    number = _number(wanted)
    found = Counter(
        f"config.{path} = " + (_quoted(value) if isinstance(value, str) else _as_written(value))
        for row in rows
        for path, value in flat(row.about.get("config") or {}).items()
        if isinstance(value, (str, int, float))
        and (str(value).casefold() == wanted or (type(value) is not bool and value == number))
    )
    return [condition for condition, _ in found.most_common(3)]


def _as_written(value: float) -> str:
    """A number in a condition, exact."""
    return number_text(value, None) if isinstance(value, float) and math.isfinite(value) else json_text(value)


def _quoted(text: str) -> str:
    """A text in a condition."""
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _nearest(path: str, have: Mapping[str, int]) -> str | None:
    """The field that was probably meant: similar spelling, the same last part, or an abbreviation (lr)."""
    alike = nearest_name(path, sorted(have))
    if alike is not None:
        return alike
    last = path.rpartition(".")[2]
    short = "".join(word[:1] for word in last.split("_"))
    for known in have:
        own = known.rpartition(".")[2]
        if own in (last, short) or "".join(word[:1] for word in own.split("_")) == last:
            return known
    return None


def _searchable(row: RunRow) -> str:
    about = row.about
    words = [
        about.get("project"),
        about.get("name"),
        about.get("id"),
        about.get("notes"),
        about.get("group"),
        *about.get("tags", ()),
    ]
    return " ".join(str(word) for word in words if word).casefold()


def some_of(groups: Sequence[list[RunRow]], most: int) -> list[list[RunRow]]:
    """Runs spread evenly over each group: about `most` in all, and at least one of each group that has any."""
    step = max(1, -(-sum(map(len, groups)) // most))
    return [rows[::step] for rows in groups]


def groups_of(rows: Sequence[RunRow], columns: Sequence[str]) -> list[RunGroup[RunRow]]:
    """See `runs.grouping.groups_of`; a column may also be one that the table makes, such as duration."""

    def value(column: str, row: RunRow) -> object:
        return value_of_group(row.about, column) if column in ("algo", "env") else value_of(column, row, None)

    return groups_of_rows(rows, columns, lambda row: row.about, value)


def group_value(group: RunGroup[RunRow], column: str, known: Callable[[RunRow], Facts | None]) -> object:
    """The value that a group is sorted by: the centre of a metric, the latest time, else its first value."""
    values = [value_of(column, row, known(row)) for row in group.members]
    if is_metric(column):
        return centre_of(values)
    there = [value for value in values if value is not None]
    if column in ("created", "updated", "ended"):
        return max(there, default=None)
    return min(there, key=sort_key, default=None)


ENDPOINTS = [
    Endpoint("POST", "/api/columns", ColumnsAsk, ColumnsAnswer, columns, "What can stand in the table of runs"),
]
