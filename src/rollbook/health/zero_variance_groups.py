"""Groups of answers that all have the same reward."""

from __future__ import annotations

from bisect import bisect_right

from rollbook.health._above import StaysAbove
from rollbook.health._keyed import meaning, median

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from rollbook.schema.columns import Columns
    from rollbook.schema.records import Alert, RunInfo


_LAST, _NEAR = 5, 0.1
"""Prompts are solved if the mean of this many last rewards is within this share of the range from the best mean so far,
and better than the first."""


class Rewards:
    """The rewards of a sequence model: whether they are at their best.

    Attributes:
      low, high, start: the least and the largest mean of `_LAST` so far, and the first one; None before it.
      last: the last rewards.
    """

    __slots__ = ("high", "last", "low", "start")

    def __init__(
        self,
        low: float | None = None,
        high: float | None = None,
        start: float | None = None,
        last: Sequence[float] = (),
    ) -> None:
        self.low, self.high, self.start, self.last = low, high, start, list(last)

    def plain(self) -> list[Any]:
        """As JSON data, from which `Rewards(*plain)` makes it again."""
        return [self.low, self.high, self.start, self.last]

    def take(self, reward: float) -> None:
        """The next one."""
        self.last = [*self.last, reward][-_LAST:]
        if len(self.last) == _LAST:
            mean = sum(self.last) / _LAST
            self.start = mean if self.start is None else self.start
            self.low = mean if self.low is None else min(self.low, mean)
            self.high = mean if self.high is None else max(self.high, mean)

    def are_best(self) -> bool:
        """Whether the last ones are about as good as any, and better than the first."""
        if self.low is None or self.high is None or self.start is None:
            return False
        mean = sum(self.last) / _LAST
        return mean >= self.high - _NEAR * (self.high - self.low) and mean > self.start + 0.5 * (self.high - self.low)


class ZeroVarianceGroups(StaysAbove):
    """Groups of answers (GRPO) most of which have one reward and so no advantage: "warn" while most answers fail.

    Where the rewards are about as good as they ever were, better than at first, and groups had several rewards then,
    the prompts are solved: all groups have the best one, and nothing is reported.

    Args:
      limit: share of the groups (0 to 1).
      rows: how many updates in a row.
      skip: this many first updates are not judged.
      keys: further keys to check.
    """

    name = "zero_variance_groups"
    source = "rewardspy 50 %, rldoctor 75 %; DAPO leaves such groups out"
    meanings = frozenset({"update/zero_variance_groups"})
    words = "these groups teach nothing; usually the prompts are too hard (or, with high rewards, too easy)"

    def __init__(self, limit: float = 0.75, rows: int = 10, skip: int = 0, keys: Sequence[str] = ()) -> None:
        super().__init__(limit, rows, skip, keys)

    def open(self, run: RunInfo) -> None:
        """A run begins, or continues after a rewind."""
        super().open(run)
        self._rewards = Rewards()
        self._first: list[float] = []

    def state(self) -> dict[str, Any]:
        """See `protocols.Stateful`."""
        return {**super().state(), "rewards": self._rewards.plain(), "first": self._first}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """See `protocols.Stateful`."""
        super().set_state(state)
        self._rewards, self._first = Rewards(*state.get("rewards", ())), list(state.get("first", ()))

    def look(self, columns: Columns, now: float) -> Iterable[Alert]:
        """See `protocols.Rule`."""
        found = list(super().look(columns, now))
        for watched in self.watched(columns) if len(self._first) < _LAST else ():
            self._first = [*self._first, *columns.column(watched).values][:_LAST]
        key = next((key for key in columns.keys("metrics") if meaning(key) == "train/reward"), "")
        if not key:
            return [alert for alert in found if not self._is_solved()]
        column, kept, n = columns.column(key), [], 0
        values, times = column.values, column.times()
        for alert in [*found, None]:
            until = len(values) if alert is None else bisect_right(times, float(str(alert.evidence["time"])))
            for reward in values[n:until]:
                self._rewards.take(reward)
            n = max(n, until)
            if alert is not None and not self._is_solved():
                kept.append(alert)
        return kept

    def _is_solved(self) -> bool:
        """Whether groups had several rewards at first, and now have the best one."""
        return self._rewards.are_best() and median(self._first) <= self._asked
