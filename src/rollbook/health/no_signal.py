"""Returns that are all alike."""

from __future__ import annotations

from rollbook.errors import BadInput
from rollbook.health._returns import BLOCK, ReturnRule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rollbook.ground.columns import Column
    from rollbook.protocols import Alert, RunInfo

__all__ = ["NoSignal"]


class NoSignal(ReturnRule):
    """Returns of which each is the same number from the first on, or that became 0: there is nothing to learn from.

    "warn" after `blocks` times `BLOCK` of them. A return that is always the same later on, other than 0, may be the
    best there is.

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
        """A run, or a stretch of it after it went back, begins."""
        super().open(run)
        self.memory.update(alike=0, varied=False, value=0.0, zeros=0)

    def judge(self, mean: float, block: Any, column: Column, i: int) -> tuple[float, Alert] | None:
        """See `ReturnRule`."""
        memory = self.memory
        value = block[-1]
        if value != block[0] or min(block) != max(block):
            memory["alike"], memory["varied"], memory["zeros"] = 0, True, block.count(0.0)
            return None
        if memory["alike"] and value != memory["value"]:
            memory["alike"], memory["varied"] = 0, True
        memory["value"] = value
        memory["alike"] += 1
        if memory["varied"]:  # returns became 0; where many were before, twenty in a row are chance
            is_odd = value == 0 and memory["alike"] == (1 if memory["zeros"] < BLOCK / 2 else 5 * self._blocks)
        else:
            is_odd = memory["alike"] == self._blocks
        if is_odd:
            return self.alert(
                f"each of the last {memory['alike'] * BLOCK} returns is {value:g}: there is nothing to learn from; "
                "usually rewards are lost on their way, or so rare that none was ever found",
                column.where(i),
                value=value,
            )
        return None
