"""An evaluation that is far worse than training."""

from __future__ import annotations

from rollbook.errors import BadInput
from rollbook.health._keyed import meaning
from rollbook.health._returns import BLOCK, ReturnRule, Returns
from rollbook.schema.clocks import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from rollbook.schema.columns import Column, Columns
    from rollbook.schema.records import Alert


_KEPT = 512


class _Gap(Returns):
    """Also how many evaluations in a row were bad, and the mean of each block of returns with its environment step.

    Of a long training, some blocks in between are forgotten.
    """

    bad: int = 0
    reached: list[tuple[int, float]] = []


class EvaluationGap(ReturnRule[_Gap]):
    """Returns of evaluation as training had at its start, while those of training have risen far above: "warn".

    After `rows` evaluations in a row with less than `share` of what training has gained.

    Args:
      share: of the gain of the last `BLOCK` returns of training over the first.
      rows: how many evaluations in a row.
    """

    remembers = _Gap
    name = "evaluation_gap"
    knows_self_play = True
    source = "rollbook's own: an evaluation without exploration is seldom worse than training"

    def __init__(self, share: float = 0.8, rows: int = 4) -> None:
        if not 0 < share < 1 or rows < 1:
            raise BadInput(
                f"rule 'evaluation_gap': share={share!r} must lie between 0 and 1, rows={rows!r} be at least 1"
            )
        super().__init__()
        self._share, self._rows = share, rows

    def look(self, columns: Columns, now: float) -> Iterable[Alert]:
        """See `protocols.Rule`."""
        tested = [key for key in columns.keys("metrics") if meaning(key) == "test/return"][:1]
        gained = self.returns(columns)
        if not tested:
            if gained is not None:
                self._take_part(gained, 0, len(gained))
            return ()
        test = columns.column(tested[0])
        alerts: list[Alert] = []
        done, times = 0, gained.times() if gained is not None else ()
        for i, time in enumerate(test.times()):  # what training had reached at that time
            if gained is not None:
                end = done
                while end < len(times) and times[end] < time:
                    end += 1
                self._take_part(gained, done, end)
                done = end
            alerts += self._judge(test, i)
        if gained is not None:
            self._take_part(gained, done, len(times))
        return alerts

    def _take_part(self, column: Column, first: int, end: int) -> None:
        memory, values, steps = self.memory, column.values, column.clock("env_step")
        at = first + BLOCK - len(memory.rest)
        while at <= end:
            block = [*memory.rest, *values[first:at]]
            mean = sum(block) / BLOCK
            memory.blocks += 1
            if steps[at - 1] != UNKNOWN:
                memory.reached.append((steps[at - 1], mean))
            if memory.blocks == 1:
                memory.start = mean
                memory.spread = (sum((one - mean) ** 2 for one in block) / (BLOCK - 1)) ** 0.5
            memory.now, memory.rest = mean, []
            first, at = at, at + BLOCK
        memory.rest += values[first:end]
        while len(memory.reached) > _KEPT:
            del memory.reached[2 : len(memory.reached) // 2 : 2]

    def _judge(self, test: Column, i: int) -> list[Alert]:
        memory, value = self.memory, test.values[i]
        blocks, reached = memory.blocks, memory.now
        step = test.clock("env_step")[i]
        if step != UNKNOWN and memory.reached:  # evaluations that another tool kept may have no times of their own
            before = [mean for at, mean in memory.reached if at <= step]
            blocks, reached = len(before), before[-1] if before else memory.start
        gain = reached - memory.start
        is_bad = blocks >= 3 and gain > memory.spread and value < memory.start + self._share * gain
        memory.bad = memory.bad + 1 if is_bad else 0
        if memory.bad != self._rows:
            return []
        words = (
            f"{test.key} is {value:.4g}, training has come from {memory.start:.4g} to {reached:.4g}: "
            "usually the evaluation lacks the training's normaliser, or sees another environment"
        )
        return [self.alert(words, test.where(i), evaluation=value)[1]]

    def judge(self, mean: float, block: Any, column: Column, i: int) -> tuple[float, Alert] | None:
        """See `ReturnRule`."""
        return None
