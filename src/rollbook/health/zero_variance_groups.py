"""Groups of answers of which each has the same reward."""

from __future__ import annotations

from rollbook.health._above import StaysAbove

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class ZeroVarianceGroups(StaysAbove):
    """Groups of answers (GRPO) most of which have one reward and so no advantage: "warn" while most answers fail.

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
