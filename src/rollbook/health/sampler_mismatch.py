"""A sampler whose probabilities are not those of the trainer."""

from __future__ import annotations

from rollbook.health._above import StaysAbove

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class SamplerMismatch(StaysAbove):
    """A mean difference of the log-probabilities of sampler and trainer that stays large: "warn".

    Args:
      limit: in nats a token.
      rows: how many updates in a row.
      skip: this many first updates are not judged.
      keys: further keys to check.
    """

    name = "sampler_mismatch"
    source = "verl's rollout correction: a divergence above 0.1 is too much"
    meanings = frozenset({"update/sampler_gap"})
    words = (
        "sampler and trainer are not the same model; usually weights were not passed on, or temperature, precision or "
        "masks differ"
    )

    def __init__(self, limit: float = 0.1, rows: int = 5, skip: int = 0, keys: Sequence[str] = ()) -> None:
        super().__init__(limit, rows, skip, keys)
