"""A value function whose errors are in the thousands."""

from __future__ import annotations

from rollbook.health._above import StaysAbove

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class ValueScale(StaysAbove):
    """A loss of values or action values that stays enormous: rewards of a wrong scale, or values that run away.

    "warn" above `limit` in `rows` updates in a row, or once above `gross`. A squared error of a million is an error of
    a thousand in each value.

    Args:
      limit: in squared rewards.
      rows: how many updates in a row.
      skip: this many first updates are not judged.
      gross: in squared rewards; one such update is enough.
      keys: further keys to check.
    """

    name = "value_scale"
    source = "Andy Jones, Debugging RL: value targets should lie within about ±10; the limit (±1000) is rollbook's own"
    meanings = frozenset({"update/loss/value", "update/loss/q", "update/loss/q1", "update/loss/q2"})
    words = "its errors are of thousands; usually rewards are too large, or the values run away"
    gross_words = "the values run away; usually the learning rate is too high, or rewards are too large"

    def __init__(
        self, limit: float = 1e6, rows: int = 10, skip: int = 0, keys: Sequence[str] = (), gross: float = 1e15
    ) -> None:
        super().__init__(limit, rows, skip, keys, gross)
