"""Action values beyond what the rewards can add up to."""

from __future__ import annotations

from rollbook.errors import BadInput
from rollbook.health._config import number_in
from rollbook.health._keyed import KeyedRule, Last, in_order, meaning, place
from rollbook.protocols import Alert, RunInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from rollbook.ground.columns import Column, Columns

__all__ = ["QBound"]


_ROOM = 0.03
"""How far beyond a bound of 0, as a share of the other bound, values may be: networks begin near 0."""


def _is_alpha(key: str) -> bool:
    return meaning(key) == "update/entropy_coefficient"


class QBound(KeyedRule):
    """Mean action values beyond `times` what the returns so far allow, or of the wrong sign: "warn" after `rows` rows.

    No discounted sum is larger than the largest return of an episode, or, if episodes are cut off, than the largest
    reward a step / (1 - gamma). Both are taken from the episodes so far (with an episode's mean reward instead of the
    largest one), so `times` leaves a margin.

    Args:
      times: how far beyond.
      rows: how many rows in a row.
      episodes: this many must have ended.
      keys: further keys to check.
    """

    name = "q_bound"
    source = "van Hasselt and others 2018 (soft divergence: beyond r_max / (1 - gamma)); the factor is rollbook's own"
    tables = frozenset({"metrics", "episodes"})
    meanings = frozenset({"update/q_value", "update/q_value_2"})

    def __init__(self, times: float = 5.0, rows: int = 3, episodes: int = 20, keys: Sequence[str] = ()) -> None:
        super().__init__(keys)
        if not times >= 1 or rows < 1 or episodes < 1:
            raise BadInput(
                f"rule 'q_bound': times={times!r}, rows={rows!r} and episodes={episodes!r} must be at least 1"
            )
        self._times, self._rows, self._episodes = times, rows, episodes

    def open(self, run: RunInfo) -> None:
        """A run begins, or continues after a rewind."""
        super().open(run)
        gamma = number_in(run.config, "gamma", "discount", "discount_factor")
        self._horizon = 1 / (1 - min(gamma if gamma is not None else 0.99, 0.999))
        self._looked_at: tuple[str, ...] = ()
        self._said: dict[str, Any] = {"n": 0, "low": 0.0, "high": 0.0, "length": 0.0, "soft": False}

    def state(self) -> dict[str, Any]:
        """See `protocols.Stateful`."""
        return {**super().state(), "returns": self._said}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """See `protocols.Stateful`."""
        super().set_state(state)
        self._said = dict(state["returns"])

    def look(self, columns: Columns, now: float) -> Iterable[Alert]:
        """See `protocols.Rule`."""
        keys = tuple(columns.keys("metrics"))
        if keys != self._looked_at:
            self._looked_at = keys
            self._said["soft"] = self._said["soft"] or any(map(_is_alpha, keys))
        returns, lengths = self._of(columns, "train/return", "return"), self._of(columns, "train/length", "length")
        watched = [columns.column(key) for key in self.watched(columns)]
        begins = self._said["n"] < self._episodes <= self._said["n"] + (len(returns) if returns is not None else 0)
        if watched and any(
            begins
            or self.memory.get(column.key, {}).get("above")
            or self._is_beyond(max(column.values))
            or self._is_beyond(min(column.values))
            for column in watched
        ):
            return in_order(list(self._in_time(watched, returns, lengths)))
        for column in watched:
            Last(self.memory.setdefault(column.key, {"above": 0}), self._rows).take_all(column, range(len(column)))
        if returns is not None:
            self._take(returns, 0, len(returns))
        if lengths is not None:
            self._said["length"] = max(self._said["length"], max(lengths.values))
        return ()

    def take(self, key: str, column: Column) -> Iterator[tuple[float, Alert]]:
        """Not used: values are judged together with the returns."""
        return iter(())

    def _of(self, columns: Columns, name: str, cell: str) -> Column | None:
        if cell in columns.keys("episodes"):
            return columns.column(cell, "episodes")
        key = next((key for key in columns.keys("metrics") if meaning(key) == name), None)
        return columns.column(key) if key is not None else None

    def _is_beyond(self, value: float) -> bool:
        said = self._said
        if said["n"] < self._episodes or not said["high"] > said["low"]:
            return False
        low, high = self._bounds()
        most = max(high, -low)
        if said["soft"]:  # an entropy is part of the values: their sign means nothing
            low, high = -most, most
        return not low * self._times - _ROOM * most <= value <= high * self._times + _ROOM * most

    def _bounds(self) -> tuple[float, float]:
        """The smallest and the largest discounted sum that the returns so far allow."""
        factor = max(1.0, self._horizon / max(self._said["length"], 1.0))
        return float(self._said["low"] * factor), float(self._said["high"] * factor)

    def _take(self, returns: Column, first: int, end: int) -> None:
        some = returns.values[first:end]
        if some:
            low, high = min(some), max(some)
            if low - low == high - high == 0:
                self._said["low"], self._said["high"] = min(self._said["low"], low), max(self._said["high"], high)
            self._said["n"] += len(some)

    def _in_time(
        self, watched: list[Column], returns: Column | None, lengths: Column | None
    ) -> Iterator[tuple[float, Alert]]:
        events = [(time, 1, n, i) for n, column in enumerate(watched) for i, time in enumerate(column.times())]
        if returns is not None:
            events += [(time, 0, 0, i) for i, time in enumerate(returns.times())]
        if lengths is not None:
            events += [(time, 0, 1, i) for i, time in enumerate(lengths.times())]
        for _time, is_value, n, i in sorted(events):
            if not is_value:
                if n == 0 and returns is not None:
                    self._take(returns, i, i + 1)
                elif lengths is not None:
                    self._said["length"] = max(self._said["length"], lengths.values[i])
                continue
            column = watched[n]
            memory = self.memory.setdefault(column.key, {"above": 0})
            last = Last(memory, self._rows)
            last.take(column.values[i], column.where(i))
            memory["above"] = memory["above"] + 1 if self._is_beyond(column.values[i]) else 0
            if memory["above"] == self._rows:
                yield self._alert(column.key, last)

    def _alert(self, key: str, last: Last) -> tuple[float, Alert]:
        values, where = last.values(), last.where()
        low, high = self._bounds()
        return where["time"], Alert(
            self.name,
            "warn",
            f"{key} is {values[-1]:.3g}{place(where['clocks'])}, where returns so far allow about {low:.3g} to "
            f"{high:.3g}: values run away or have the wrong sign; usually gamma, a target network that follows too "
            "closely, a learning rate that is too high, or a sign in the target",
            last.evidence(low=low, high=high, times=self._times),
            self.source,
            key,
            where["clocks"],
        )
