"""Which runs of the table a request means: conditions on configuration, results and metrics, and words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping

from rollbook.errors import BadInput, did_you_mean
from rollbook.runs.conditions import holds
from rollbook.server.catalogue import RunRow
from rollbook.server.columns import flat, value_of
from rollbook.server.facts import Facts
from rollbook.server.locked_sql import judge
from rollbook.server.refusals import Refused
from rollbook.server.settings import LIMITS, Limits

__all__ = ["field_hint", "filtered", "metrics_in", "searched"]

_METRIC_CALL = re.compile(r"\b(last|max|min)\(\s*(\"[^\"]*\"|'[^']*')\s*\)")
_FIELD = re.compile(r"\b(?:config|summary)(?:\.\w+)+")
_MOST_WORDS = 50


def metrics_in(condition: str) -> list[str]:
    """The columns of metrics in a condition: last("loss") is last:loss."""
    return [f"{which}:{key[1:-1]}" for which, key in _METRIC_CALL.findall(condition)]


def searched(rows: list[RunRow], text: str) -> list[RunRow]:
    """The runs that have every word of a text in their project, name, id, notes, group or tags.

    Raises:
      Refused: more words than one search may have.
    """
    words = text.casefold().split()
    if len(words) > _MOST_WORDS:
        raise Refused("too_large", f"{len(words):,} words to search for; at most {_MOST_WORDS}", "Search for fewer.")
    return [row for row in rows if all(word in _searchable(row) for word in words)]


def filtered(
    rows: list[RunRow], text: str, known: Callable[[RunRow], Facts | None], limits: Limits = LIMITS
) -> list[RunRow]:
    """The runs that meet a condition. DuckDB evaluates it in a separate process: a condition may be any SQL.

    Raises:
      Refused: a condition that cannot be parsed, or takes too much time or memory.
    """
    calls: dict[str, str] = {}

    def named(match: re.Match[str]) -> str:
        name = f"metric_{len(calls)}"
        calls[name] = f"{match[1]}:{match[2][1:-1]}"
        return name

    plain_text = _METRIC_CALL.sub(named, text)

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
        raise Refused("bad_input", str(err), hint, _place(text, str(err))) from None
    return [row for row, wanted in zip(rows, chosen, strict=True) if wanted]


def _place(text: str, said: str) -> int | None:
    """The position of the error in a condition, if the message names a word of it."""
    match = re.search(r'at or near "([^"]+)"', said)
    place = text.find(match[1]) if match else -1
    return place if place >= 0 else None


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
        said = f"No run has {name}."
        runs = f"{have[nearest]} run{'' if have[nearest] == 1 else 's'}" if nearest else ""
        return f"{said} Did you mean {part}.{nearest} ({runs})?" if nearest else said
    return None


def _nearest(path: str, have: Mapping[str, int]) -> str | None:
    """The field that was probably meant: similar spelling, the same last part, or an abbreviation (lr)."""
    alike = re.search(r"Did you mean '([^']*)'", did_you_mean(path, list(have)))
    if alike:
        return alike[1]
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
