"""Updates that move the policy too far."""

from __future__ import annotations

from rollbook.errors import BadInput
from rollbook.health._keyed import KeyedRule, Last, place
from rollbook.protocols import Alert, Row, RunInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

__all__ = ["Kl"]


class Kl(KeyedRule):
    """An approximate KL divergence between the policies before and after an update that stays too large.

    "fail" when `rows` updates in a row lie above `limit`, or above 1.5 times the `target_kl` of the configuration where
    that is more: frameworks end an update there, so such values are theirs to reach.

    Args:
      limit: in nats.
      rows: how many updates in a row.
      skip: so many first updates are not judged.
      keys: further keys to look at.
    """

    name = "kl"
    source = (
        "usually below 0.02 (37 implementation details of PPO); a run collapsed at 0.09 to 0.12 (RLinf #504); 1.5 x "
        "target_kl ends an update in Stable-Baselines3 and Spinning Up"
    )
    meanings = frozenset({"update/approx_kl"})

    def __init__(self, limit: float = 0.1, rows: int = 3, skip: int = 5, keys: Sequence[str] = ()) -> None:
        super().__init__(keys)
        if not limit > 0 or rows < 1 or skip < 0:
            raise BadInput(f"rule 'kl': limit={limit!r} must be above 0, rows={rows!r} and skip={skip!r} not negative")
        self._limit, self._rows, self._skip = limit, rows, skip

    def open(self, run: RunInfo) -> None:
        """A run, or a stretch of it after it went back, begins."""
        super().open(run)
        self._last: dict[str, Last] = {}
        target = _target_of(run.config)
        self._above = max(1.5 * target, self._limit) if target is not None else self._limit
        self._target = target

    def take(self, key: str, value: float, row: Row) -> Iterable[Alert]:
        """One value of a key that is looked at."""
        last = self._last.setdefault(key, Last(self._rows))
        last.take(value, row)
        if last.seen >= self._skip + self._rows and self.begins(key, last, lambda kl: kl > self._above):
            yield Alert(
                self.name,
                "fail",
                f"{key} has been above {self._above:g} in {self._rows} updates in a row, now {value:.3g}"
                f"{place(row.clocks)}: each update moves the policy far",
                last.evidence(limit=self._above, target_kl=self._target),
                self.source,
                key,
                row.clocks,
            )


def _target_of(config: Any) -> float | None:
    """`target_kl` of a configuration, wherever in it."""
    if not hasattr(config, "items"):
        return None
    for name, value in config.items():
        if str(name).lower() in ("target_kl", "kl_target") and isinstance(value, (int, float)) and value > 0:
            return float(value)
    for value in config.values():
        inner = _target_of(value)
        if inner is not None:
            return inner
    return None
