"""A training whose returns stay where they began."""

from __future__ import annotations

from bisect import bisect_left

from rollbook.errors import BadInput
from rollbook.health._keyed import median
from rollbook.health._returns import BLOCK, REWARD_BLOCK, ReturnRule, Returns, above, advances, progress, rise
from rollbook.schema.aliases import estimator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from rollbook.schema.columns import Column, Columns
    from rollbook.schema.records import Alert, RunInfo

_LAST, _FEWEST = 3, 5
"""How many of the last blocks are compared with the first, and how many blocks there must be."""

_CLEAR = 2.0
"""Standard errors by rank beyond which returns are better than the first ones, or those rise."""


_MANY = 40
"""So many of the first and the last rewards of a sequence model are compared: five of them are one batch of prompts or
another."""


_OUTCOMES = 3
"""Returns of so few values are lost, drawn and won games."""


class _Progress(Returns):
    """Also the last returns, how many there were, their highest, and whether they were judged or noted; of means over
    many answers, the first and the last `_MANY`."""

    recent: list[float] = []
    seen: int = 0
    judged: bool = False
    noted: bool = False
    highest: float = -1e308
    earliest: list[float] = []
    latest: list[float] = []


class LearnsNothing(ReturnRule[_Progress]):
    """Returns that are no better than at the run's own start when much of the training is over.

    "warn" once, at `share` of the run's length (`init(total=…)`, or a setting such as `total_timesteps`). If the length
    is unknown: a "note" after `early` of the returns, and "warn" after `returns` of them, or after `rewards` rewards of
    a sequence model or means over the last hundred episodes. Then, if none of the last three blocks of `BLOCK` returns
    is better on average than the first block by more than chance, if all of them together are not better by rank, and
    if the returns of the first block did not rise themselves.

    A stage of a curriculum (`Curriculum/terrain_levels`) or a rating (`elo`) that has risen by then is a gain, too. Of
    rewards of a sequence model the first 40 and the last 40 are compared as well.

    It cannot tell a policy that learns nothing from one that was good from the start. So it also reports healthy
    trainings whose first returns are near the best: of ten bandits that won 90 % of the first rounds and 97 % of the
    later ones, seven. Silence it there: `rules=["-learns_nothing"]`.

    Args:
      share: of the run's length.
      returns: how many, if the length is unknown.
      early: how many for a note.
      rewards: how many, of rows that are each a mean of many.
    """

    remembers = _Progress
    name = "learns_nothing"
    source = "rollbook's own: the run's first returns are those of a policy that knows nothing"

    def __init__(self, share: float = 0.5, returns: int = 2_000, early: int = 500, rewards: int = 200) -> None:
        if not 0 < share <= 1 or min(returns, early, rewards) < BLOCK:
            raise BadInput(
                f"rule 'learns_nothing': share={share!r} must lie between 0 and 1, returns, early and rewards be at "
                f"least {BLOCK}"
            )
        super().__init__()
        self._share, self._returns, self._early, self._rewards = share, returns, early, rewards

    def open(self, run: RunInfo) -> None:
        """A run begins, or continues after a rewind."""
        super().open(run)
        self._advances = advances()

    def state(self) -> dict[str, Any]:
        """See `protocols.Stateful`."""
        return {**super().state(), "advances": self._advances.plain()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """See `protocols.Stateful`."""
        super().set_state({name: value for name, value in state.items() if name != "advances"})
        self._advances.set_plain(state.get("advances", ()))

    def look(self, columns: Columns, now: float) -> Iterable[Alert]:
        """See `protocols.Rule`."""
        self._advances.take(columns)
        return super().look(columns, now)

    def take(self, column: Column) -> Iterator[tuple[float, Alert]]:
        """New returns. The last ones are judged when the share is reached, not when a block is full."""
        yield from super().take(column)
        memory, n = self.memory, _LAST * self.size
        if memory.judged:
            return
        before, values = memory.seen, column.values
        if self.size == REWARD_BLOCK and len(memory.earliest) < _MANY:
            memory.earliest = [*memory.earliest, *values[: _MANY - len(memory.earliest)]]
        highest, memory.highest = memory.highest, max(memory.highest, *values)
        memory.seen = before + len(values)
        early = self._early - before - 1
        if not memory.noted and early < len(values):
            memory.noted = True
            if early >= 0 and progress(self.run, column.where(early)["clocks"]) is None and not self._are_means():
                yield from self._judge([*memory.recent, *values[: early + 1]][-n:], column, early, highest, "note")
        if self._is_time(column, len(values) - 1, memory.seen):
            i = bisect_left(range(len(values)), True, key=lambda i: self._is_time(column, i, before + i + 1))
            memory.judged = True
            yield from self._judge([*memory.recent, *values[: i + 1]][-n:], column, i, highest)
        memory.recent = [*memory.recent, *values[-n:]][-n:]
        memory.latest = [*memory.latest, *values[-_MANY:]][-_MANY:] if self.size == REWARD_BLOCK else []

    def _is_time(self, column: Column, i: int, seen: int) -> bool:
        if seen < _FEWEST * self.size:
            return False
        come = progress(self.run, column.where(i)["clocks"])
        if come is not None:
            return come >= self._share
        return seen >= (self._rewards if self._are_means() else self._returns)

    def _are_means(self) -> bool:
        """Whether each of the returns is a mean of many."""
        return self.size == REWARD_BLOCK or "100" in (estimator(self.memory.series) or "")

    def _judge(
        self, last: Sequence[float], column: Column, i: int, highest: float, level: str = ""
    ) -> Iterator[tuple[float, Alert]]:
        memory = self.memory
        where = column.where(i)
        if any(moment <= where["time"] for moment in self._advances.rose):
            return  # the task became harder, or a rating rose, while returns stayed
        many = min(_MANY, (memory.seen - len(column.values) + i + 1) // 2)
        latest = [*memory.latest, *column.values[: i + 1]][-many:]
        if self.size == REWARD_BLOCK and above(latest, memory.earliest[:many]) > _CLEAR:
            return
        if not memory.spread and min(last) == max(last) == memory.start:
            return  # one number from the first on is the trouble of `no_signal`
        best = max(sum(last[at : at + self.size]) / self.size for at in range(0, len(last), self.size))
        first = memory.first_block
        if first and median(first) >= max(highest, *column.values[: i + 1]):
            return  # most of the first returns were already the best: the policy was good from the start
        is_no_better = best <= memory.start + 2 * max(memory.spread / self.size**0.5, 1e-9)
        if is_no_better and max(above(last, first), rise(first)) <= _CLEAR:  # else it learned, perhaps among the first
            many_values = {*first, *last}
            silence = (
                '; in self-play half of the games are won: log a rating as "elo", set config={"self_play": True}, or '
                'rules=["-learns_nothing"]'
                if len(many_values) <= _OUTCOMES
                else ""
            )
            yield self.alert(
                f"of the last {len(last)} returns the best {self.size} are {best:.4g} on average, the first "
                f"{self.size} were {memory.start:.4g}: nothing was learned so far; look at what the policy sees, at "
                f"the sign of its loss, and whether it is updated{silence}",
                where,
                level,
                now=sum(last[-self.size :]) / self.size,
                best=best,
                share=progress(self.run, where["clocks"]),
            )
