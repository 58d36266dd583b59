"""Probability ratios that are not 1 at the first minibatch, before anything was learned from the rollout."""

from __future__ import annotations

from rollbook.health._above import StaysAbove

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class FirstRatio(StaysAbove):
    """A ratio of new to old probabilities that is not 1 at the first minibatch of the first epoch: "fail".

    There both come from the same policy. `update/first_ratio_error` is the mean of |ratio - 1| over that minibatch; the
    program has to log it. Not for programs that learn from rollouts of older policies.

    Args:
      limit: of |ratio - 1|; half precision alone makes 0.01.
      rows: how many updates in a row.
      skip: this many first updates are not judged.
      keys: further keys to check.
    """

    name, level = "first_ratio", "fail"
    source = "37 implementation details of PPO: the ratio must be 1 there; the tolerance is rollbook's own"
    meanings = frozenset({"update/first_ratio_error"})
    words = (
        "the probabilities of the rollout are computed otherwise than those of the update; usually observations, masks "
        "or states of a recurrent network differ"
    )

    def __init__(self, limit: float = 0.015, rows: int = 3, skip: int = 0, keys: Sequence[str] = ()) -> None:
        super().__init__(limit, rows, skip, keys)
