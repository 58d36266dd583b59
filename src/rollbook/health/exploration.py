"""A learner that keeps choosing at random."""

from __future__ import annotations

from rollbook.errors import BadInput
from rollbook.health._config import number_in
from rollbook.health._keyed import KeyedRule, at_clock
from rollbook.health._memory import Memory
from rollbook.health._returns import progress
from rollbook.schema.records import Alert

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rollbook.schema.columns import Column

_STARTS = ("learning_starts", "learning_start", "start_steps", "update_after", "random_steps")


class Stretch(Memory):
    """How long an exploration rate has been one number.

    Attributes:
      value, rows: the number, and in how many rows in a row.
      first: the clocks of the first of them.
      reported: whether it was reported.
    """

    value: float | None = None
    rows: int = 0
    first: dict[str, int] = {}
    reported: bool = False


class Exploration(KeyedRule[Stretch]):
    """An exploration rate (epsilon) that stays above `limit`: "warn".

    In `rows` rows in a row the same number, for `share` of the run, or, where its length is not known, `steps`
    environment steps. The configured warm-up (`learning_starts`) does not count.

    Args:
      limit: the share of random actions that is too much.
      share: of the run's length.
      steps: environment steps, if the length is not known.
      rows: how many rows in a row.
      keys: further keys to check.
    """

    remembers = Stretch
    name = "exploration"
    source = (
        "Mnih et al. 2015 and Stable-Baselines3 lower it from 1 to 0.1 or less in the first tenth of a run or sooner; "
        "the limits are rollbook's own"
    )
    meanings = frozenset({"train/exploration_rate"})

    def __init__(
        self, limit: float = 0.9, share: float = 0.25, steps: int = 100_000, rows: int = 20, keys: Sequence[str] = ()
    ) -> None:
        super().__init__(keys)
        if not 0 < limit < 1 or not 0 < share < 1 or steps < 1 or rows < 2:
            raise BadInput(
                f"rule 'exploration': limit={limit!r} and share={share!r} must lie between 0 and 1, steps={steps!r} be "
                f"at least 1, rows={rows!r} at least 2"
            )
        self._limit, self._share, self._steps, self._rows = limit, share, steps, rows

    def take(self, key: str, column: Column) -> Iterator[tuple[float, Alert]]:
        """The new values of a checked key."""
        stretch = self.memory[key]
        if max(column.values) > self._limit:
            for i, value in enumerate(column.values):
                if value != stretch.value:
                    stretch = Stretch(value, 0, column.where(i)["clocks"])
                stretch.rows += 1
                is_stuck = value > self._limit and stretch.rows >= self._rows and not stretch.reported
                if is_stuck and self._is_long(stretch.first, column.where(i)["clocks"]):
                    stretch.reported = True
                    yield self._alert(column, i, stretch)
        else:
            stretch = Stretch(column.values[-1], 1, column.where(-1 + len(column))["clocks"])
        self.memory[key] = stretch

    def _is_long(self, first: Mapping[str, int], now: Mapping[str, int]) -> bool:
        come, before = progress(self.run, now), progress(self.run, first)
        warm_up = number_in(self.run.config, *_STARTS) or 0.0
        if now.get("env_step", warm_up) < warm_up:
            return False
        if come is not None and before is not None:
            return come - before >= self._share
        return now.get("env_step", 0) - max(warm_up, first.get("env_step", 0)) >= self._steps

    def _alert(self, column: Column, i: int, stretch: Stretch) -> tuple[float, Alert]:
        where = column.where(i)
        return where["time"], Alert(
            self.name,
            "warn",
            f"{column.key} has been {stretch.value:.3g}{at_clock(stretch.first).replace(' at ', ' since ')}"
            f"{at_clock(where['clocks'])}: nearly all actions are chosen at random; usually the schedule is never "
            "stepped, counts other steps than the loop, or is longer than the run",
            {"value": stretch.value, "limit": self._limit, "rows": stretch.rows, "since": stretch.first, **where},
            self.source,
            column.key,
            where["clocks"],
        )
