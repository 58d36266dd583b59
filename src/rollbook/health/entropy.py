"""A policy that stops exploring before it has learned."""

from __future__ import annotations

import math
from array import array
from operator import neg

from rollbook.errors import BadInput
from rollbook.health._keyed import KeyedRule, at_clock, in_order, meaning, median
from rollbook.health._memory import Last, Recent
from rollbook.health._returns import RETURNS, above, progress
from rollbook.schema.records import Alert, RunInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from rollbook.schema.columns import Column, Columns

_FIRST = 5
_RETURNS = 20
_CLEAR, _CLEAR_OF_MEANS = 3.0, 2.0
"""Standard errors by rank from which the newest returns are better than the first; rewards that are each a mean over
many answers."""

_EARLY, _EARLY_SHARE = 0.15, 0.2
"""In this first part of a run, an entropy that falls below this share of its largest has collapsed, whatever returns
do."""


class _Entropies(Recent):
    """The first entropies of a key, and whether its policy is continuous: one was below 0."""

    first: list[float] = []
    continuous: bool = False


class Entropy(KeyedRule[_Entropies]):
    """The entropy of a discrete policy that all but vanishes while the return has not improved.

    Measured relative to the run's start, where a new policy chooses about evenly. In absolute nats it says nothing, and
    a fall alone is normal learning. "fail" when `rows` updates in a row are below `share` of the start and the return
    (`train/return` or `train/reward` by any framework's name, or the table of episodes) is no better than at the start.
    What language models call a loss of the entropy (slime, OpenRLHF) is the entropy itself.
    Policies whose entropy is ever negative are continuous and not checked. Runs without a return are not checked
    either. In the first 15 % of a run whose length is known, "fail" whatever the return when `rows` updates in a row
    are below a fifth of the largest of the first entropies. A language model (`train/reward`) may lose most of it that
    early and learn.

    Args:
      share: of the entropy of the start.
      rows: how many updates in a row.
      keys: further keys to check.
    """

    remembers = _Entropies
    name = "entropy"
    source = (
        "Andy Jones, Debugging RL (about 1 at the start, about 0 is collapse); of language models 2505.22617 "
        "(most of the entropy is spent early, and no reward comes after it is gone); the share is rollbook's own"
    )
    tables = frozenset({"metrics", "episodes"})
    needs_start = True
    meanings = frozenset({"update/entropy", "update/loss/entropy"})

    def __init__(self, share: float = 0.1, rows: int = 3, keys: Sequence[str] = ()) -> None:
        super().__init__(keys)
        if not 0 < share < 1 or rows < 1:
            raise BadInput(f"rule 'entropy': share={share!r} must lie between 0 and 1, rows={rows!r} be at least 1")
        self._share, self._rows = share, rows

    def open(self, run: RunInfo) -> None:
        """A run begins, or continues after a rewind."""
        super().open(run)
        self._early: list[float] = []
        self._late: list[float] = []
        self._is_model = False

    def state(self) -> dict[str, Any]:
        """See `protocols.Stateful`."""
        return {**super().state(), "early": self._early, "late": self._late, "model": self._is_model}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """See `protocols.Stateful`."""
        super().set_state(state)
        self._early, self._late = list(state["early"]), list(state["late"])
        self._is_model = bool(state.get("model"))

    def look(self, columns: Columns, now: float) -> Iterable[Alert]:
        """See `protocols.Rule`."""
        returns = [columns.column(key) for key in columns.keys("metrics") if meaning(key) in RETURNS]
        if (ended := columns.of_episodes("return")) is not None:
            returns.append(ended)
        watched = [key for key in columns.keys("metrics") if self.watches(key) and meaning(key) not in RETURNS]
        self._is_model = self._is_model or any(meaning(column.key) == "train/reward" for column in returns)
        entropies = [columns.column(key) for key in watched]
        starts = [self._take_first(column) for column in entropies]
        if not any(map(self._may_be_low, entropies, starts)):
            for column, start in zip(entropies, starts, strict=True):
                self._take_high(column, start)
            self._take_all_returns(returns)
            return ()
        # Whether the return had improved is needed for the time of the low entropy, so both are read in order of time.
        events = [(time, 0, n, i) for n, column in enumerate(returns) for i, time in enumerate(column.times())]
        for n, (column, start) in enumerate(zip(entropies, starts, strict=True)):
            events += [(time, 1, n, i) for i, time in enumerate(column.times()) if i >= start]
        alerts: list[tuple[float, Alert]] = []
        for _time, is_entropy, n, i in sorted(events):
            if is_entropy:
                alerts += self._take_one(entropies[n], i)
            else:
                self._take_returns(returns[n].values[i : i + 1])
        return in_order(alerts)

    def take(self, key: str, column: Column) -> Iterator[tuple[float, Alert]]:
        """The entropies of one key."""
        for i in range(self._take_first(column), len(column)):
            yield from self._take_one(column, i)

    def _take_first(self, column: Column) -> int:
        """Remember the first entropies of a key. Returns how many values of the column that took."""
        memory = self.memory[column.key]
        first, taken = memory.first, 0
        if len(first) < _FIRST:
            for entropy in self._entropies(column, 0):
                if len(first) == _FIRST or memory.continuous:
                    break
                taken += 1
                if entropy < 0 and math.isfinite(entropy):
                    memory.continuous = True
                elif math.isfinite(entropy):
                    first.append(entropy)
                    Last(memory, self._rows).take(entropy, column.where(taken - 1))
        return taken

    def _may_be_low(self, column: Column, start: int) -> bool:
        """Whether the values of a key have to be checked one by one."""
        memory, entropies = self.memory[column.key], self._entropies(column, start)
        if memory.continuous or not entropies:
            return False
        total = sum(entropies)
        low = max(0.0, self._share * median(memory.first))
        if self._is_in_first_part(column, start):
            low = max(low, _EARLY_SHARE * max(memory.first))
        return memory.troubled or not (min(entropies) >= low and total - total == 0)

    def _take_high(self, column: Column, start: int) -> None:
        """Take values none of which is low."""
        memory = self.memory[column.key]
        if not memory.continuous:
            Last(memory, self._rows).take_all(column, range(start, len(column)), self._sign(column))

    def _take_one(self, column: Column, i: int) -> Iterator[tuple[float, Alert]]:
        memory = self.memory[column.key]
        entropy = self._sign(column) * column.values[i]
        if not math.isfinite(entropy) or memory.continuous:
            return
        if entropy < 0:
            memory.continuous = True
            return
        start, where = median(memory.first), column.where(i)
        last = Last(memory, self._rows)
        last.take(entropy, where)
        share, words = self._share, "the return is no better than then"
        if self._is_early(column, i):
            start, share, words = max(memory.first), _EARLY_SHARE, f"less than {_EARLY:.0%} of the run are over"
        elif self._has_improved():
            return
        if not start > 0.01 or not last.begins(lambda nats: nats < share * start):
            return
        yield (
            where["time"],
            Alert(
                self.name,
                "fail",
                f"the policy's entropy ({column.key}) is {entropy / start:.1%} of what it was at the start"
                f"{at_clock(where['clocks'])}, and {words}: it stopped exploring before it learned; usually the sign "
                "or size of the entropy coefficient, or a learning rate that is too high",
                last.evidence(
                    start=start,
                    share=entropy / start,
                    limit=share,
                    return_at_start=median(self._early),
                    return_now=median(self._late),
                ),
                self.source,
                column.key,
                where["clocks"],
            ),
        )

    def _is_early(self, column: Column, i: int) -> bool:
        """Whether a value belongs to the run's first part, and enough returns to that of a policy."""
        return len(self._early) == _RETURNS and self._is_in_first_part(column, i)

    def _is_in_first_part(self, column: Column, i: int) -> bool:
        if not self.run.total or i >= len(column) or self._is_model:
            return False
        come = progress(self.run, column.where(i)["clocks"])
        return come is not None and come < _EARLY

    def _entropies(self, column: Column, start: int) -> array[float]:
        values = column.values[start:]
        return values if self._sign(column) > 0 else array("d", map(neg, values))

    def _take_returns(self, gained: array[float]) -> None:
        missing = _RETURNS - len(self._early)
        newest = list(filter(math.isfinite, gained if missing else gained[-2 * _RETURNS :]))
        if len(newest) < min(_RETURNS, len(gained)):
            newest = list(filter(math.isfinite, gained))
        if missing:
            self._early += newest[:missing]
        self._late = (self._late + newest)[-_RETURNS:]

    def _take_all_returns(self, returns: list[Column]) -> None:
        """Those of several keys in the order of their rows; of each key only the first and last few can be
        remembered."""
        if len(returns) == 1:
            self._take_returns(returns[0].values)
            return
        some: list[tuple[float, int, float]] = []
        for n, column in enumerate(returns):
            times = column.times()
            finite = [i for i, value in enumerate(column.values) if math.isfinite(value)]
            chosen = {*finite[:_RETURNS], *finite[-_RETURNS:]}
            some += [(times[i], n, column.values[i]) for i in sorted(chosen)]
        self._take_returns(array("d", [value for _time, _n, value in sorted(some)]))

    def _sign(self, column: Column) -> int:
        """-1 for a loss of the entropy, which is its negative; language models log it with the sign of the entropy."""
        return -1 if meaning(column.key) == "update/loss/entropy" and not self._is_model else 1

    def _has_improved(self) -> bool:
        """Whether the newest returns are above the first, or at the best of them; also True if too few are known."""
        if len(self._early) < _RETURNS:
            return True
        is_at_best = median(self._late) >= max(self._early) > min(self._early)  # of 0 and 1, nothing is above 1
        return is_at_best or above(self._late, self._early) > (_CLEAR_OF_MEANS if self._is_model else _CLEAR)
