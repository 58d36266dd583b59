"""Updates that move the policy too far."""

from __future__ import annotations

from rollbook.errors import BadInput
from rollbook.health._keyed import KeyedRule, Last, place
from rollbook.protocols import Alert, RunInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from rollbook.ground.columns import Column

__all__ = ["Kl"]


class Kl(KeyedRule):
    """A KL divergence between the policies before and after an update that stays too large.

    "fail" when `rows` updates in a row lie above `limit`, or above 1.5 times the `target_kl` of the configuration where
    that is more: frameworks end an update there, so such values are theirs to reach. One update above `gross` is
    enough, also among the first. A divergence from a reference model is another quantity and is not looked at.

    Args:
      limit: in nats.
      rows: how many updates in a row.
      skip: so many first updates are not judged by `limit`.
      gross: in nats; one such update is a failure.
      keys: further keys to look at.
    """

    name = "kl"
    source = (
        "usually below 0.02 (37 implementation details of PPO); a run collapsed at 0.09 to 0.12 (RLinf #504); 1.5 x "
        "target_kl ends an update in Stable-Baselines3 and Spinning Up; Schulman: a KL of 10 is absurd"
    )
    meanings = frozenset({"update/approx_kl", "update/approx_kl_k1", "update/kl"})

    def __init__(
        self, limit: float = 0.1, rows: int = 3, skip: int = 5, gross: float = 10.0, keys: Sequence[str] = ()
    ) -> None:
        super().__init__(keys)
        if not limit > 0 or rows < 1 or skip < 0:
            raise BadInput(f"rule 'kl': limit={limit!r} must be above 0, rows={rows!r} and skip={skip!r} not negative")
        if not gross >= limit:
            raise BadInput(f"rule 'kl': gross={gross!r} must be at least limit={limit!r}")
        self._limit, self._rows, self._skip, self._gross = limit, rows, skip, gross

    def open(self, run: RunInfo) -> None:
        """A run, or a stretch of it after it went back, begins."""
        super().open(run)
        target = _target_of(run.config)
        self._above = max(1.5 * target, self._limit) if target is not None else self._limit
        self._target = target

    def take(self, key: str, column: Column) -> Iterator[tuple[float, Alert]]:
        """The new values of a key that is looked at."""
        memory = self.memory.setdefault(key, {})
        last, values = Last(memory, self._rows), column.values
        # How many there are in a row above and not above; a trouble is over when as many are not.
        above, below, troubled = memory.get("above", 0), memory.get("below", 0), memory.get("troubled", False)
        if max(values) <= self._above:  # a NaN in front is no maximum
            above, below = 0, below + len(values)
            troubled = troubled and below < self._rows
        else:
            first = self._skip + self._rows - last.seen - 1
            for i, value in enumerate(values):
                if not value > self._above:
                    above, below = 0, below + 1
                    troubled = troubled and below < self._rows
                    continue
                above, below = above + 1, 0
                is_gross = value > max(self._gross, self._above)
                if not troubled and (is_gross or (above >= self._rows and i >= first)):
                    troubled = True
                    yield self._alert(key, is_gross, last.up_to(column, range(i + 1), i + 1))
        memory.update(above=above, below=below, troubled=troubled)
        last.take_all(column, range(len(values)))

    def _alert(self, key: str, is_gross: bool, last: Last) -> tuple[float, Alert]:
        limit = max(self._gross, self._above) if is_gross else self._above
        evidence = last.evidence(limit=limit, target_kl=self._target)
        values, where = last.values(), last.where()
        often = f"has been above {limit:g} in {self._rows} updates in a row, now {values[-1]:.3g}"
        return where["time"], Alert(
            self.name,
            "fail",
            f"{key} was {values[-1]:.3g}{place(where['clocks'])}: one update moved the policy beyond all measure"
            if is_gross
            else f"{key} {often}{place(where['clocks'])}: each update moves the policy far",
            evidence,
            self.source,
            key,
            where["clocks"],
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
