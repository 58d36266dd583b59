"""Aggregate: hold values back and send their statistics when the run calls for a dump."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rollbook.errors import UnknownOption, did_you_mean
from rollbook.protocols import Row
from rollbook.sinks.filters._base import Filter, is_number, with_values
from rollbook.sinks.filters._rows import row_from_json, row_to_json, value_from_json, value_to_json
from rollbook.sinks.filters.keys import pattern
from rollbook.values.describe import Blocks, Pile, new_buffer
from rollbook.values.scalars import as_float

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rollbook.protocols import Row, Sink, Value

STATISTICS = ("mean", "std", "median", "max", "min")
"""What a matching key turns into: `<key>_mean` and so on, in this order."""


class Aggregate(Filter):
    """Collects rows and writes one row of statistics per dump mark.

    Values are collected by name, so rows may have different keys. Keys that match `keys` give `<key>_mean`, `_std`
    (population), `_median`, `_max` and `_min`; other keys, and values that are no numbers, give their last value. NaN
    spreads, as in numpy. A mark that names keys, or that was made in a scope, dumps only those. A dump without values
    writes nothing. Values that remain at the end of the run are dumped then. A row made from values of several tables
    belongs to `metrics`.

    Args:
      to: the sink behind.
      keys: a regular expression.
      statistics: which of the five to write.
    Raises:
      UnknownOption: there is no such statistic.
      BadInput: `keys` is not a regular expression.
    """

    name = "aggregate"

    def __init__(self, to: Sink, keys: str, *, statistics: Sequence[str] = STATISTICS) -> None:
        for statistic in statistics:
            if statistic not in STATISTICS:
                raise UnknownOption(
                    f"Aggregate has no statistic {statistic!r}.", did_you_mean(str(statistic), list(STATISTICS))
                )
        super().__init__(to, keys=keys, statistics=list(statistics))
        self._pattern = pattern(keys, "Aggregate keys=")
        self._statistics = tuple(statistics)
        self._matches: dict[str, bool] = {}
        self._piles: dict[str, Pile | _Last] = {}
        self._tables: dict[str, str] = {}  # of keys whose rows are not of the table "metrics"
        self._latest: Row | None = None

    def _row(self, row: Row) -> Iterable[Row]:
        self._latest = row
        if row.table != "metrics":
            self._tables.update(dict.fromkeys(row.values, row.table))
        for key, value in row.values.items():
            matches = self._matches.get(key)
            if matches is None:
                matches = self._matches[key] = self._pattern.search(key) is not None
            pile = self._piles.get(key)
            if matches and is_number(value):
                if not isinstance(pile, Pile):
                    pile = self._piles[key] = Pile()
                pile.add(as_float(value))
            else:
                self._piles[key] = _Last(value)
        return ()

    def _mark(self, row: Row) -> Iterable[Row]:
        if row.mark == "final":
            return (*self._rest(), row)
        if row.mark != "dump":
            return (row,)
        return (*self._dump(self._asked(row), row), row)

    def _asked(self, mark: Row) -> list[str]:
        """The collected keys that a mark is about, in the order of their first appearance."""
        if mark.keys:
            named = set(mark.keys)
            return [key for key in self._piles if key in named]
        inside = f"{mark.scope}/" if mark.scope else ""
        return [key for key in self._piles if key.startswith(inside)]

    def _rest(self) -> Iterable[Row]:
        return self._dump(list(self._piles), self._latest)

    def _dump(self, keys: Sequence[str], at: Row | None) -> Iterable[Row]:
        if not keys or at is None:
            return ()
        values: dict[str, Value] = {}
        for key in keys:
            pile = self._piles[key]
            if isinstance(pile, _Last):
                values[key] = pile.value
            else:
                described = _named(pile)
                values.update((f"{key}_{name}", described[name]) for name in self._statistics)
        tables = {self._tables.get(key, "metrics") for key in keys}
        table = tables.pop() if len(tables) == 1 else "metrics"
        dumped = set(keys)
        self._piles = {key: pile for key, pile in self._piles.items() if key not in dumped}
        clocks = at.clocks or (self._latest.clocks if self._latest is not None else {})
        return (replace(at, clocks=clocks, values=values, mark="", keys=(), table=table),)

    def _remember(self) -> object:
        sizes = {key: pile.size() for key, pile in self._piles.items() if isinstance(pile, Pile)}
        return dict(self._piles), sizes, self._latest

    def _recall(self, token: Any) -> None:
        self._piles, sizes, self._latest = token
        for key, size in sizes.items():
            pile = self._piles[key]
            if isinstance(pile, Pile):
                pile.back_to(size)

    def _save(self) -> dict[str, object]:
        return {
            "tables": {key: table for key, table in self._tables.items() if key in self._piles},
            "piles": [[key, _to_json(pile)] for key, pile in self._piles.items()],
            "latest": None if self._latest is None else row_to_json(with_values(self._latest, {})),
        }

    def _load(self, saved: Mapping[str, Any]) -> None:
        self._piles = {key: _from_json(data) for key, data in saved.get("piles", ())}
        self._tables = dict(saved.get("tables", {}))
        latest = saved.get("latest")
        self._latest = None if latest is None else row_from_json(latest)


class _Last:
    """The last value of a key that is not aggregated."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value


def _named(pile: Pile) -> dict[str, float]:
    mean, std, median, low, high = pile.describe()
    return {"mean": mean, "std": std, "median": median, "max": high, "min": low}


def _to_json(pile: Pile | _Last) -> object:
    """All of it as plain JSON data."""
    if isinstance(pile, _Last):
        return {"last": value_to_json(pile.value)}
    folded = pile.folded
    return {
        "kept": [value_to_json(value) for value in (pile.fresh if folded is None else folded.sample.values)],
        "stride": 1 if folded is None else 2**folded.sample.level,
        "count": pile.n if folded is None else folded.n,
        "sums": [] if folded is None else [value_to_json(getattr(folded, name)) for name in _SUMS],
        "fresh": [] if folded is None else [value_to_json(value) for value in pile.fresh],
    }


_SUMS = ("mean", "squares", "low", "high")


def _from_json(data: Mapping[str, Any]) -> Pile | _Last:
    if "last" in data:
        return _Last(value_from_json(data["last"]))
    buffer = new_buffer()
    buffer.extend(value_from_json(value) for value in data["kept"])
    if data["stride"] == 1 and not data.get("fresh"):
        return Pile(buffer)
    folded = Blocks()
    folded.n = folded.sample.n = data["count"]
    folded.sample.values, folded.sample.level = buffer, data["stride"].bit_length() - 1
    for name, value in zip(_SUMS, data["sums"], strict=True):
        setattr(folded, name, value_from_json(value))
    pile = Pile(folded=folded)
    pile.fresh.extend(value_from_json(value) for value in data.get("fresh", ()))
    return pile
