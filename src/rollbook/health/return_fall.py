"""A return that was good, or as at the start, and is bad."""

from __future__ import annotations

from rollbook.errors import BadInput
from rollbook.health._returns import BLOCK, ReturnRule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rollbook.ground.columns import Column
    from rollbook.protocols import Alert, RunInfo

__all__ = ["ReturnFall"]


_BELOW = 0.5
"""At least this share below the start: learners that stop exploring may be worse than chance for a while."""


class ReturnFall(ReturnRule):
    """Returns that fall to where they began after they had risen, or far below where they began.

    "warn" when the mean of `BLOCK` returns has lost `share` of what was gained over the first `BLOCK` in `blocks`
    blocks in a row, or lies `times` standard errors of the first returns, and half of it, below their mean.

    Args:
      share: of the gain of the best block over the first.
      times: how far below the start, in standard errors of the mean of the first returns.
      blocks: how many in a row.
    """

    name = "return_fall"
    source = "rollbook's own: measured on the healthy trainings of benchmarks/health"

    def __init__(self, share: float = 0.9, times: float = 4.0, blocks: int = 3) -> None:
        if not 0 < share <= 2 or not times > 0 or blocks < 1:
            raise BadInput(
                f"rule 'return_fall': share={share!r}, times={times!r} must be above 0, blocks={blocks!r} >= 1"
            )
        super().__init__()
        self._share, self._times, self._blocks = share, times, blocks

    def open(self, run: RunInfo) -> None:
        """A run, or a stretch of it after it went back, begins."""
        super().open(run)
        self.memory.update(low=0, gain=0.0, below=-1e308)

    def judge(self, mean: float, block: Any, column: Column, i: int) -> tuple[float, Alert] | None:
        """See `ReturnRule`."""
        memory = self.memory
        start, spread, best = memory["start"], memory["spread"], memory["best"]
        if memory["blocks"] == 1:
            memory["gain"] = max(3 * spread, 0.1 * abs(start), 1e-9)
            memory["below"] = start - max(self._times * spread / BLOCK**0.5, _BELOW * abs(start), 1e-9)
        is_lost = best - start > memory["gain"] and mean < best - self._share * (best - start)
        is_below = mean < memory["below"]
        memory["low"] = memory["low"] + 1 if is_lost or is_below else 0
        if memory["low"] == self._blocks:
            before = f"{best:.4g} at best and {start:.4g} at the start"
            return self.alert(
                f"the last {self._blocks * BLOCK} returns are {mean:.4g} on average, after {before}: the policy has "
                "lost what it knew; usually steps are too large, or what it is trained on has changed",
                column.where(i),
                spread_at_start=spread,
            )
        return None
