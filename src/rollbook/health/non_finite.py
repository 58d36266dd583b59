"""A value that was a number and is one no longer."""

from __future__ import annotations

import json
import math

from rollbook.errors import BadInput
from rollbook.health._keyed import Spellings, at_clock, meaning
from rollbook.schema import aliases
from rollbook.schema.records import Alert, RunInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from typing import Any

    from rollbook.schema.columns import Column, Columns, Where

    _Found = tuple[str, float, Where, int, bool]
    """Key, value, row, how many in a row, whether it had been a number before."""

_LOSS_PATIENCE, _NAMED = 10, 4
_MAY_BE_NAN = frozenset({"update/explained_variance"})


class NonFinite:
    """A metric or return that becomes NaN or infinite, or never was a number.

    A quantity that rollbook knows, or a loss: "fail" at the first row that is no number after one that was. Any other
    key: "warn" after `rows` in a row. A key that never held a number: "warn" after `patience` rows, because many
    programs log NaN until there is a value; after ten rows for a loss, which is logged only at updates. Keys that
    become NaN together are one alert, and none follows of others until the first is a number again. Explained
    variances are not checked: they are NaN wherever there is no variance. Neither are means over episodes in a row
    whose mean length is NaN, too: no episode had ended.

    Args:
      rows: how many rows in a row, for keys that rollbook does not know.
      patience: how many first rows of a key may be no numbers.
    """

    name = "non_finite"
    source = "first one, by TRL's documentation of PPO and GRPO; a key that never was a number by rollbook's own count"
    tables = frozenset({"metrics", "episodes"})

    def __init__(self, rows: int = 3, patience: int = 50) -> None:
        if rows < 1 or patience < 1:
            raise BadInput(f"rule 'non_finite': rows={rows!r} and patience={patience!r} must be at least 1")
        self._rows, self._patience = rows, patience
        self.open(None)

    def open(self, run: RunInfo | None) -> None:
        """A run begins, or continues after a rewind."""
        self._numbers: set[str] = set()  # keys that held a number
        self._in_a_row: dict[str, int] = {}  # how many rows in a row have held none
        self._trouble: dict[str, Any] = {}  # the key of the last alert, its level and time; {} when it is over
        self._chosen: dict[str, bool] = {}
        self._spellings = Spellings()

    def state(self) -> dict[str, Any]:
        """See `protocols.Stateful`."""
        return {
            "numbers": sorted(self._numbers),
            "in_a_row": self._in_a_row,
            "spellings": self._spellings.taken,
            "trouble": self._trouble,
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """See `protocols.Stateful`."""
        self._numbers, self._in_a_row = set(state["numbers"]), dict(state["in_a_row"])
        self._chosen, self._spellings = {}, Spellings(state.get("spellings"))
        self._trouble = dict(state.get("trouble", {}))

    def look(self, columns: Columns, now: float) -> Iterable[Alert]:
        """See `protocols.Rule`."""
        found: dict[tuple[float, str, bool], list[_Found]] = {}
        without_episode = _without_episode(columns)
        for table in sorted(self.tables):
            odd = columns.non_finite(table)
            for name in columns.keys(table):
                key = name if table == "metrics" else f"{table}/{name}"
                if key not in self._chosen:
                    self._chosen[key] = self._spellings.takes(key)
                if not self._chosen[key]:
                    continue
                if name not in odd:
                    self._numbers.add(key)
                    self._in_a_row.pop(key, None)
                elif meaning(name) not in _MAY_BE_NAN:
                    passed_over = without_episode if table == "metrics" and _is_of_episodes(name) else frozenset()
                    for one in self._gone_through(key, columns.column(name, table), passed_over):
                        _key, _value, where, _count, was_number = one
                        row = (where["time"], _row(where), was_number)
                        found.setdefault(row, []).append(one)
        alerts = [alert for row in sorted(found) for alert in self._reported(found[row], columns)]
        if self._trouble and self._is_over(columns, math.inf):
            self._trouble = {}
        return alerts

    def _gone_through(self, key: str, column: Column, passed_over: Collection[str]) -> Iterator[_Found]:
        for i, value in enumerate(column.values):
            if passed_over and not math.isfinite(value) and _row(column.where(i)) in passed_over:
                continue
            if math.isfinite(value):
                self._numbers.add(key)
                self._in_a_row.pop(key, None)
                continue
            count = self._in_a_row[key] = self._in_a_row.get(key, 0) + 1
            was_number = key in self._numbers
            if count == ((1 if _is_known(key) else self._rows) if was_number else self._patience_with(key)):
                yield key, value, column.where(i), count, was_number

    def _reported(self, found: list[_Found], columns: Columns) -> Iterator[Alert]:
        """One alert for all keys of a row; none while one at least as severe is unresolved: a NaN spreads."""
        found.sort(key=lambda one: not _is_known(one[0]))
        key, value, where, count, was_number = found[0]
        level = "fail" if was_number and _is_known(key) else "warn"
        before = self._trouble
        if before and not self._is_over(columns, where["time"]) and (before["level"] == "fail" or level == "warn"):
            return
        self._trouble = {"key": key, "level": level, "time": where["time"]}
        others = [one[0] for one in found[1:]]
        keys = f"{key} and {len(others)} more ({', '.join(others[:_NAMED])}{', …' * (len(others) > _NAMED)})"
        keys, at = keys if others else key, at_clock(where["clocks"])
        often = f" in {count} rows one after the other" if count > 1 else ""
        words = f"{keys} became {value}{often}{at}; {'they' if others else 'it'} had been a number before"
        if others:
            words = words.replace("had been a number", "had been numbers")
        if not was_number:
            verb = "were never numbers in their" if others else "was never a number in its"
            words = f"{keys} {verb} first {count} rows, the last of them {value}{at}"
        words += "; usually a division by 0, the logarithm of 0, or steps that are too large: look at the rows before"
        rows = "in_a_row" if was_number else "rows"
        evidence = {"value": value, rows: count, "keys": [key, *others], **where}
        yield Alert(self.name, level, words, evidence, self.source, key, where["clocks"])

    def _is_over(self, columns: Columns, until: float) -> bool:
        """Whether the key of the trouble was a number again before a time."""
        key = self._trouble["key"]
        table, name = ("episodes", key.removeprefix("episodes/")) if key.startswith("episodes/") else ("metrics", key)
        if name not in columns.keys(table):
            return False
        column = columns.column(name, table)
        values = zip(column.times(), column.values, strict=True)
        return any(self._trouble["time"] < time < until and math.isfinite(value) for time, value in values)

    def _patience_with(self, key: str) -> int:
        return min(self._patience, _LOSS_PATIENCE) if _is_loss(key) else self._patience


def _without_episode(columns: Columns) -> frozenset[str]:
    """The rows in which the mean length of episodes is NaN, as RLlib logs it where no episode has ended.

    A length cannot diverge as a return can.
    """
    odd = [key for key in columns.non_finite("metrics") if meaning(key) in ("train/length", "test/length")]
    return frozenset(
        _row(column.where(i))
        for column in map(columns.column, odd)
        for i, value in enumerate(column.values)
        if math.isnan(value)
    )


def _row(where: Where) -> str:
    return json.dumps(where["row"], sort_keys=True)


def _is_of_episodes(key: str) -> bool:
    return meaning(key).endswith(("/return", "/length")) or "episode" in key or "ep_" in key


def _is_loss(key: str) -> bool:
    return meaning(key).startswith("update/loss/") or key.lower().endswith("loss")


def _is_known(key: str) -> bool:
    """Whether a key has a meaning that rollbook knows, or is called a loss."""
    return key.startswith("episodes/") or _is_loss(key) or aliases.describe(meaning(key)) is not None
