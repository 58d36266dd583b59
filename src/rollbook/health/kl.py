"""Updates that move the policy too far."""

from __future__ import annotations

from rollbook.health._above import StaysAbove
from rollbook.health._config import number_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rollbook.schema.records import RunInfo


class Kl(StaysAbove):
    """A KL divergence between the policies before and after an update that stays too large.

    "fail" when `rows` updates in a row are above `limit`, or above 1.5 times the `target_kl` of the configuration if
    that is more: frameworks stop an update there, so such values are expected. One update above `gross` is enough, even
    among the first. A divergence from a reference model is another quantity and is not checked.

    Args:
      limit: in nats.
      rows: how many updates in a row.
      skip: this many first updates are not judged by `limit`.
      gross: in nats; one such update is a failure.
      keys: further keys to check.
    """

    name, level = "kl", "fail"
    source = (
        "usually below 0.02 (37 implementation details of PPO); a run collapsed at 0.09 to 0.12 (RLinf #504); 1.5 x "
        "target_kl ends an update in Stable-Baselines3 and Spinning Up; Schulman: a KL of 10 is absurd"
    )
    meanings = frozenset({"update/approx_kl", "update/approx_kl_k2", "update/approx_kl_k1", "update/kl"})
    words = "each update moves the policy far; usually the learning rate is too high or an update has too many epochs"
    gross_words = "one update moved the policy beyond all measure; usually the learning rate is far too high"

    def __init__(
        self, limit: float = 0.1, rows: int = 3, skip: int = 5, gross: float = 10.0, keys: Sequence[str] = ()
    ) -> None:
        super().__init__(limit, rows, skip, keys, gross)

    def limit_in(self, run: RunInfo) -> float:
        """See `StaysAbove`."""
        self._target = number_in(run.config, "target_kl", "kl_target")
        return max(1.5 * (self._target or 0.0), self._asked)

    def evidence_in(self) -> dict[str, object]:
        """See `StaysAbove`."""
        return {"target_kl": self._target}
