"""A training whose returns stay where they began."""

from __future__ import annotations

from rollbook.errors import BadInput
from rollbook.health._returns import BLOCK, ReturnRule, progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rollbook.ground.columns import Column
    from rollbook.ground.records import Alert, RunInfo

__all__ = ["LearnsNothing"]


class LearnsNothing(ReturnRule):
    """Returns that are no better than at the run's own start when much of the training is over.

    "warn" once, at `share` of the run's length (`init(total=…)`), or after `returns` of them if the length is unknown,
    when no block of `BLOCK` returns was better than the first by more than chance.

    Args:
      share: of the run's length.
      returns: how many, if the length is unknown.
    """

    name = "learns_nothing"
    source = "rollbook's own: the run's first returns are those of a policy that knows nothing"

    def __init__(self, share: float = 0.5, returns: int = 2_000) -> None:
        if not 0 < share <= 1 or returns < BLOCK:
            raise BadInput(
                f"rule 'learns_nothing': share={share!r} must lie between 0 and 1, returns be at least {BLOCK}"
            )
        super().__init__()
        self._share, self._returns = share, returns

    def open(self, run: RunInfo) -> None:
        """A run begins, or continues after a rewind."""
        super().open(run)
        self.memory.update(last=[], judged=False)

    def judge(self, mean: float, block: Any, column: Column, i: int) -> tuple[float, Alert] | None:
        """See `ReturnRule`."""
        memory = self.memory
        last = memory["last"] = [*memory["last"], mean][-3:]
        if memory["judged"] or memory["blocks"] < 5:
            return None
        where = column.where(i)
        come = progress(self.run, where["clocks"])
        if come < self._share if come is not None else memory["blocks"] * self.size < self._returns:
            return None
        memory["judged"] = True
        error = max(memory["spread"] / self.size**0.5, 1e-9)
        if max(last) <= memory["start"] + 2 * error:
            return self.alert(
                f"the last {len(last) * self.size} returns are at most {max(last):.4g} on average, the first "
                f"{self.size} were {memory['start']:.4g}: nothing was learned so far; look at what the policy sees, at "
                "the sign of its loss, and whether it is updated",
                where,
                share=come,
            )
        return None
