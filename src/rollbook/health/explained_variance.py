"""A value function that predicts no better than nothing."""

from __future__ import annotations

from rollbook.errors import BadInput
from rollbook.health._keyed import KeyedRule, Last, place
from rollbook.protocols import Alert, Row, RunInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["ExplainedVariance"]


class ExplainedVariance(KeyedRule):
    """A value function whose explained variance stays at or below 0: worse than predicting one number for all.

    "warn" when `rows` updates in a row are at or below 0, "fail" when they are below -0.5, over `steps` environment
    steps at least: of the few steps of one small update the number says nothing. What is NaN (no variance to explain)
    does not count.

    Args:
      rows: how many updates in a row.
      steps: over how many environment steps, where that clock is known.
      skip: so many first updates are not judged.
      keys: further keys to look at.
    """

    name = "explained_variance"
    source = "Stable-Baselines3's documentation (0: as good as zero); Schulman (negative: over-fit or noisy)"
    meanings = frozenset({"update/explained_variance"})

    def __init__(self, rows: int = 10, steps: int = 10_000, skip: int = 20, keys: Sequence[str] = ()) -> None:
        super().__init__(keys)
        if rows < 1 or skip < 0 or steps < 0:
            raise BadInput(f"rule 'explained_variance': rows={rows!r} must be at least 1, skip and steps not negative")
        self._rows, self._steps, self._skip = rows, steps, skip

    def open(self, run: RunInfo) -> None:
        """A run, or a stretch of it after it went back, begins."""
        super().open(run)
        self._last: dict[str, Last] = {}
        self._begun: dict[tuple[str, float], tuple[Row, int]] = {}  # since when the values are so low, and how many
        self._said: set[tuple[str, float]] = set()

    def take(self, key: str, value: float, row: Row) -> Iterable[Alert]:
        """One value of a key that is looked at."""
        if value != value:
            return
        last = self._last.setdefault(key, Last(self._rows))
        last.take(value, row)
        if last.seen <= self._skip:
            return
        failing = self._stays(key, value, value < -0.5, -0.5, row)
        if not (self._stays(key, value, value <= 0, 0.0, row) or failing):
            return
        yield Alert(
            self.name,
            "fail" if failing else "warn",
            f"{key} has been {'below -0.5' if failing else 'at or below 0'} in {self._rows} updates in a row, now "
            f"{value:.3g}{place(row.clocks)}: the value function predicts worse than a constant",
            last.evidence(limit=-0.5 if failing else 0.0),
            self.source,
            key,
            row.clocks,
        )

    def _stays(self, key: str, value: float, is_low: bool, limit: float, row: Row) -> bool:
        """Whether a value has just now been that low for long enough."""
        which = (key, limit)
        if not is_low:
            self._begun.pop(which, None)
            self._said.discard(which)
            return False
        first, count = self._begun.get(which, (row, 0))
        self._begun[which] = first, count + 1
        steps = row.clocks.get("env_step", 0) - first.clocks.get("env_step", 0)
        long = count + 1 >= self._rows and ("env_step" not in first.clocks or steps >= self._steps)
        if not long or which in self._said:
            return False
        self._said.add(which)
        return True
