"""Returns that fall after they had risen, or far below the start."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from operator import gt

from rollbook.errors import BadInput
from rollbook.health._returns import REWARD_BLOCK, ReturnRule, Returns, above, stages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from rollbook.schema.columns import Column, Columns
    from rollbook.schema.records import Alert, RunInfo


_BELOW = 0.5
"""At least this share below the start: learners that stop exploring may be worse than chance for a while."""

_LONG, _LONG_TIMES, _LONG_BELOW = 3, 3.5, 0.3
"""Or over `_LONG` blocks together: `_LONG_TIMES` standard errors and this share below. In healthy trainings 3.0 errors
were the most."""

_OF_FEW = 2.8
"""The spread of five rewards is known but roughly. So they also have to lie above the `_LONG` blocks by so many
standard errors by rank: nearly all above nearly all."""

_MIDDLE, _LOST, _MOST, _SURE, _FEWEST = 0.65, 0.7, 2.0, 12.0, 6
"""A cumulative sum (Page 1954) of how far returns are below best - _MIDDLE x gain, in standard deviations, each at most
_MOST, never below 0. Above _SURE, after at least _FEWEST returns whose mean has lost _LOST of the gain, they have
fallen. Without a gain: below the middle of the start and of what is far below it, the mean far below it. Measured on
healthy trainings."""

_OTHER_SCALE = 10.0
"""If returns are this many times as large as any before, their scale has changed, not the policy."""

_STEADY, _SLOPE, _ERRORS = 4, 0.15, 6.0
"""Rewards of sequence models (means over many answers) have fallen if they fell for `_STEADY` blocks in a row, by
`_SLOPE` of the best gain (or of the start) and by `_ERRORS` standard errors of a block."""


_BEST, _SURELY = 2, 5.5
"""Or the newest `_LONG` blocks are below the best `_BEST` by `_SURELY` standard errors, by mean and by rank, whatever
the first block was: one lucky episode in it may hide what was gained since."""

_LEARNED = 3.0
"""Standard errors by rank from which the best returns are better than the first."""


class _Fall(Returns):
    """Also how far returns have risen and fallen.

    Attributes:
      low: how many blocks in a row were low.
      gain: what the best block must have gained before a loss of it counts.
      below, long: the mean of a block, and the sum of `_LONG` means, that is far below the start.
      deviation: the standard deviation of the best block.
      fallen, at: whether a fall was reported, and the mean then.
      sum, since, total: the cumulative sum, and number and sum of the returns since it was 0.
      gained: whether the cumulative sum is of the best block, no longer of the start.
      last, error: the last means of blocks, and the standard error of one (rewards of sequence models).
      newest: the last `_LONG` means.
      values: the last `_LONG` blocks of returns; `best_values` and `best_mean` of the best `_BEST` blocks.
      least: the lowest mean of a block.
      stage: when the present stage of a curriculum began; 0: the first one.
    """

    low: int = 0
    gain: float = 0.0
    below: float = -1e308
    deviation: float = 0.0
    fallen: bool = False
    sum: float = 0.0
    since: int = 0
    total: float = 0.0
    at: float = 0.0
    gained: bool = False
    last: list[float] = []
    error: float = 0.0
    newest: list[float] = []
    long: float = -1e308
    values: list[float] = []
    best_values: list[float] = []
    best_mean: float = -1e308
    least: float = 1e308
    stage: float = 0.0


class ReturnFall(ReturnRule[_Fall]):
    """Returns that fall to where they began after they had risen, or far below where they began.

    "warn" when in `blocks` blocks in a row the mean (of 20 returns; of 5 rewards of sequence models) has lost `share`
    of the gain over the first block, or is below the mean of the first returns by `times` standard errors of such a
    difference and by half of that mean. A gain must be beyond `times` of the errors, too: the best of many blocks is
    partly luck, above all where a reward is rare. Whatever the first block was: when the newest 60 returns lie below
    the best 40 by 5.5 standard errors, each with its own, and have lost `share` of the gain. Sooner if single returns
    show it: a cumulative sum, when their mean has lost nearly as much.

    It knows returns, not the task. A curriculum that logs its stage (`Curriculum/terrain_levels`, `Environment/Lesson
    Number/…`, `difficulty`) is judged stage by stage; one that does not is reported each time that it makes the task
    harder (5 of 5). So are some trainings with a few returns far below all others (12 of 45 whose returns were -exp(x),
    x normal with mean 4 and standard deviation 1.6, all the time): "the last 60" then have more of these than the first
    20 had. Silence it there: `rules=["-return_fall"]`.

    Args:
      share: of the gain of the best block over the first.
      times: how far below the start, in standard errors of the mean of the first returns.
      blocks: how many in a row.
    """

    remembers = _Fall
    name = "return_fall"
    source = "rollbook's own: measured on the healthy trainings of benchmarks/health"

    def __init__(self, share: float = 0.8, times: float = 4.0, blocks: int = 2) -> None:
        if not 0 < share <= 2 or not times > 0 or blocks < 1:
            raise BadInput(
                f"rule 'return_fall': share={share!r}, times={times!r} must be above 0, blocks={blocks!r} >= 1"
            )
        super().__init__()
        self._share, self._times, self._blocks = share, times, blocks

    def open(self, run: RunInfo) -> None:
        """A run begins, or continues after a rewind."""
        super().open(run)
        self._stages = stages()

    def state(self) -> dict[str, Any]:
        """See `protocols.Stateful`."""
        return {**super().state(), "stages": self._stages.plain()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """See `protocols.Stateful`."""
        super().set_state({name: value for name, value in state.items() if name != "stages"})
        self._stages.set_plain(state.get("stages", ()))

    def look(self, columns: Columns, now: float) -> Iterable[Alert]:
        """See `protocols.Rule`."""
        self._stages.take(columns)
        return super().look(columns, now)

    def take(self, column: Column) -> Iterator[tuple[float, Alert]]:
        """New returns. Each stage of a curriculum is judged by itself: its task is a harder one."""
        first = 0
        rose = [moment for moment in self._stages.rose if moment > self.memory.stage]
        times = column.times() if rose and len(column) else array("d")
        for moment in rose:
            if not times or moment > times[-1]:
                break
            end = bisect_left(times, moment)
            if end > first:
                yield from super().take(column.between(first, end))
            series, first = self.memory.series, end
            self.memory = _Fall(series=series, stage=moment)
        yield from super().take(column.between(first, len(column)) if first else column)

    def between(self, column: Column, first: int, end: int) -> Iterable[tuple[float, Alert]]:
        """See `ReturnRule`."""
        memory = self.memory
        gain = memory.best - memory.start
        if not memory.deviation or memory.fallen or first == end:
            return ()
        middle, least = memory.best - _MIDDLE * gain, memory.best - _LOST * gain
        if gain <= memory.gain:
            middle, least = (memory.start + memory.below) / 2, memory.below
        elif not memory.gained:  # from now on it is judged by its best
            memory.gained, memory.sum, memory.since, memory.total = True, 0.0, 0, 0.0
        deviation = memory.deviation
        if not memory.sum and min(column.values[first:end]) >= middle:
            return ()
        for i in range(first, end):
            value = column.values[i]
            beyond = (middle - value) / deviation
            if beyond != beyond:
                continue
            memory.sum = max(0.0, memory.sum + max(-_MOST, min(_MOST, beyond)))
            if not memory.sum:
                memory.since, memory.total = 0, 0.0
                continue
            memory.since, memory.total = memory.since + 1, memory.total + value
            mean = memory.total / memory.since
            if memory.sum > _SURE and memory.since >= _FEWEST and mean < least:
                return (self._alert(mean, memory.since, column, i),)
        return ()

    def judge(self, mean: float, block: Any, column: Column, i: int) -> tuple[float, Alert] | None:
        """See `ReturnRule`."""
        memory = self.memory
        start, spread, best = memory.start, memory.spread, memory.best
        # How many standard deviations of the first block a gain has to be: of five values it is known but roughly.
        spreads = 3.5 if self.size == REWARD_BLOCK else 2.0
        if memory.blocks == 1:
            memory.gain = max(spreads * spread, 0.1 * abs(start), 1e-9)
            memory.below = start - max(self._times * spread * (2 / self.size) ** 0.5, _BELOW * abs(start), 1e-9)
            error = spread * ((1 + 1 / _LONG) / self.size) ** 0.5
            memory.long = _LONG * (start - max(_LONG_TIMES * error, _LONG_BELOW * abs(start), 1e-9))
        if mean > best:
            # As if one of them had been as at the start: twenty successes do not prove that there are no failures.
            own = math.dist([*block, start], [mean] * (self.size + 1)) / self.size**0.5
            memory.deviation = max(own, spread, 1e-9)
            least = max(spreads * spread, self._times * own / self.size**0.5)
            memory.gain = max(least, 0.1 * abs(start), 1e-9)
        is_lost = best - start > memory.gain and mean < best - self._share * (best - start)
        is_below = mean < memory.below
        memory.low = memory.low + 1 if is_lost or is_below else 0
        if self.size == REWARD_BLOCK and not memory.fallen and self._falls_steadily(mean, block):
            return self._alert(mean, self.size, column, i)
        if not memory.low and mean > memory.at and mean >= best - _MIDDLE * (best - start):
            memory.fallen = False
        if memory.low == self._blocks and not memory.fallen:
            return self._alert(mean, self._blocks * self.size, column, i)
        if not memory.fallen and self._is_far_below_best(mean, block):
            n = len(memory.values)
            has_learned = above(memory.best_values, memory.first_block) > _LEARNED
            return self._alert(sum(memory.values) / n, n, column, i, has_learned)
        newest = memory.newest = [*memory.newest, mean][-_LONG:]
        is_long = sum(newest) < memory.long and len(newest) == _LONG and memory.blocks > _LONG and not memory.fallen
        if is_long and (self.size != REWARD_BLOCK or above(memory.first_block, memory.values) > _OF_FEW):
            return self._alert(sum(newest) / _LONG, _LONG * self.size, column, i)
        return None

    def _is_far_below_best(self, mean: float, block: Any) -> bool:
        """Whether the newest returns are surely worse than the best ones were."""
        memory = self.memory
        values = memory.values = [*memory.values, *block][-_LONG * self.size :]
        pair = values[-_BEST * self.size :]
        is_whole = len(pair) == _BEST * self.size
        least = memory.least = min(memory.least, mean)
        if is_whole and sum(pair) / len(pair) > memory.best_mean:
            memory.best_mean, memory.best_values = sum(pair) / len(pair), pair
            return False
        best, now = memory.best_mean, sum(values) / len(values)
        if self.size == REWARD_BLOCK or len(values) < _LONG * self.size or now > best - self._share * (best - least):
            return False
        best_values = memory.best_values
        # As if one of each had been like the other side: twenty successes do not prove that there are no failures.
        errors = [
            math.dist([*some, other], [own] * (len(some) + 1)) / len(some)
            for some, own, other in ((best_values, best, now), (values, now, best))
        ]
        if best - now <= max(_SURELY * math.hypot(*errors), _LONG_BELOW * abs(best)):
            return False
        return above(best_values, values) > _SURELY

    def _falls_steadily(self, mean: float, block: Any) -> bool:
        memory = self.memory
        own = math.dist(block, [mean] * self.size) / (self.size * (self.size - 1)) ** 0.5
        memory.error = max(own, 0.9 * memory.error)
        last = memory.last = [*memory.last, mean][-_STEADY - 1 :]
        fall = last[0] - mean
        least = max(_SLOPE * max(memory.best - memory.start, abs(memory.start)), _ERRORS * memory.error)
        return len(last) > _STEADY and fall > least and all(map(gt, last, last[1:]))

    def _alert(self, mean: float, rows: int, column: Column, i: int, has_learned: bool = False) -> tuple[float, Alert]:
        memory = self.memory
        has_gained = memory.best - memory.start > memory.gain or has_learned
        words = "the policy has lost what it knew" if has_gained else "the policy does worse than at the start"
        cause = "usually steps are too large, a loss has the wrong sign, or what it is trained on has changed"
        if abs(mean) > _OTHER_SCALE * max(abs(memory.best), abs(memory.start), memory.spread):
            words, cause = "they have another scale", "usually the scale of rewards has changed; look at the rewards"
        memory.fallen, memory.at = True, mean
        memory.sum, memory.since, memory.total = 0.0, 0, 0.0
        return self.alert(
            f"the last {rows} returns are {mean:.4g} on average, after {memory.best:.4g} at best and "
            f"{memory.start:.4g} at the start: {words}; {cause}",
            column.where(i),
            spread_at_start=memory.spread,
        )
