"""Returns that are all the same."""

from __future__ import annotations

import math

from rollbook.errors import BadInput
from rollbook.health._returns import ReturnRule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from rollbook.ground.columns import Column
    from rollbook.ground.records import Alert, RunInfo

__all__ = ["NoSignal"]


_CHANCE = math.log(1e-9)
"""The log-probability below which zeros are not chance, judged by their share before."""

_FEWEST = 5


class NoSignal(ReturnRule):
    """Returns of which each is the same number from the first on, or that became 0: there is nothing to learn from.

    "warn" after `blocks` such blocks (20 returns each; 5 rewards of sequence models). Also after a series of zeros, at
    least five, that the earlier share of zeros makes nearly impossible. A return that later stays at one number other
    than 0 may be the best possible and is not reported.

    Args:
      blocks: how many blocks in a row.
    """

    name = "no_signal"
    source = "Schulman: look at the least and the largest return; the number of returns is rollbook's own"

    def __init__(self, blocks: int = 2) -> None:
        if blocks < 1:
            raise BadInput(f"rule 'no_signal': blocks={blocks!r} must be at least 1")
        super().__init__()
        self._blocks = blocks

    def open(self, run: RunInfo) -> None:
        """A run begins, or continues after a rewind."""
        super().open(run)
        self.memory.update(first=None, alike=0, others=0, zeros=0, row=0)

    def take(self, column: Column) -> Iterator[tuple[float, Alert]]:
        """New returns, checked one by one only if some are 0, or all were the same so far."""
        memory, values = self.memory, column.values
        if memory["others"] and not memory["row"] and 0.0 not in values:
            memory["others"] += len(values)
            return
        for i, value in enumerate(values):
            if memory["first"] is None:
                memory["first"] = value
            if not memory["others"] and value == memory["first"]:
                memory["alike"] += 1
                if memory["alike"] == self._blocks * self.size:
                    yield self._alert(value, memory["alike"], column, i)
            elif value == 0:
                memory["row"] += 1
                if memory["row"] == self._most():
                    yield self._alert(value, memory["row"], column, i)
            else:
                memory["others"] += 1 + (0 if memory["first"] == 0 else memory["alike"])
                memory["zeros"] += memory["row"] + (memory["alike"] if memory["first"] == 0 else 0)
                memory["row"] = memory["alike"] = 0

    def _most(self) -> int:
        """More zeros in a row than this are no chance."""
        zeros = self.memory["zeros"]
        share = (zeros + 1) / (zeros + self.memory["others"] + 2)
        return max(_FEWEST, math.ceil(_CHANCE / math.log(share)))

    def judge(self, mean: float, block: Any, column: Column, i: int) -> tuple[float, Alert] | None:
        """Not used: returns are checked one by one."""
        return None

    def _alert(self, value: float, rows: int, column: Column, i: int) -> tuple[float, Alert]:
        return self.alert(
            f"each of the last {rows} returns is {value:g}: there is nothing to learn from; usually rewards are lost "
            "on their way, or so rare that none was ever found",
            column.where(i),
            value=value,
            zeros_before=self.memory["zeros"],
            others_before=self.memory["others"],
        )
