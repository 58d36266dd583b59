"""A divergence that is negative although it cannot be."""

from __future__ import annotations

from rollbook.errors import BadInput
from rollbook.health._keyed import KeyedRule, at_clock
from rollbook.health._memory import Last, Recent
from rollbook.schema.records import Alert

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rollbook.schema.columns import Column


class _Negatives(Recent):
    """How many values were below 0."""

    below: int = 0


class KlBelowZero(KeyedRule[_Negatives]):
    """An estimate of a divergence that is below 0 although its formula cannot be: "warn" after `rows` such rows.

    Each term of the mean of (r - 1) - log r, r a ratio of probabilities, is at least 0: frameworks log it under the
    checked names. The mean of -log r (Spinning Up's `KL`, CleanRL's `old_approx_kl`) may be negative and is not
    checked.

    Args:
      limit: values down to this far below 0 are rounding (in nats).
      rows: how many in all, not in a row: one is too many once rounding is excluded.
      keys: further keys to check.
    """

    remembers = _Negatives
    name = "kl_below_zero"
    source = "Schulman, Approximating KL Divergence: (r - 1) - log r is never negative; the limit is rollbook's own"
    meanings = frozenset({"update/approx_kl"})

    def __init__(self, limit: float = 1e-6, rows: int = 3, keys: Sequence[str] = ()) -> None:
        super().__init__(keys)
        if not limit >= 0 or rows < 1:
            raise BadInput(f"rule 'kl_below_zero': limit={limit!r} must not be negative, rows={rows!r} at least 1")
        self._limit, self._rows = limit, rows

    def take(self, key: str, column: Column) -> Iterator[tuple[float, Alert]]:
        """The new values of a checked key."""
        memory = self.memory[key]
        last, values = Last(memory, 1), column.values
        if min(values) < -self._limit and memory.below < self._rows:
            for i, value in enumerate(values):
                memory.below += value < -self._limit
                if memory.below == self._rows:
                    yield self._alert(key, last.up_to(column, range(i + 1), i + 1))
                    break
        last.take_all(column, range(len(values)))

    def _alert(self, key: str, last: Last) -> tuple[float, Alert]:
        where = last.where()
        return where["time"], Alert(
            self.name,
            "warn",
            f"{key} is {last.values()[-1]:.3g}{at_clock(where['clocks'])}, and was below 0 in {self._rows} rows: no "
            "divergence is, nor its usual estimate (r - 1) - log r; look at the formula and at which probabilities are "
            "the old ones. Early stopping by it does not work",
            last.evidence(limit=-self._limit, rows=self._rows),
            self.source,
            key,
            where["clocks"],
        )
