"""Updates most of which are clipped away."""

from __future__ import annotations

from rollbook.health._above import StaysAbove

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class ClipFraction(StaysAbove):
    """A clip fraction that stays high: "warn" above `limit` in `rows` updates in a row.

    Args:
      limit: share of the probability ratios outside the clipping range (0 to 1).
      rows: how many updates in a row.
      skip: this many first updates are not judged.
      keys: further keys to check.
    """

    name = "clip_fraction"
    source = "rollbook's own: below 0.26 in the healthy trainings of benchmarks/health"
    meanings = frozenset({"update/clip_fraction"})
    words = (
        "much of what an update learns from is clipped away: the steps are too large; usually the learning rate, the "
        "number of epochs, or a clipping range that is too small"
    )

    def __init__(self, limit: float = 0.3, rows: int = 5, skip: int = 0, keys: Sequence[str] = ()) -> None:
        super().__init__(limit, rows, skip, keys)
