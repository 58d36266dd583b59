"""A weight of the entropy that runs away or vanishes, or follows its target the wrong way round."""

from __future__ import annotations

import msgspec

from rollbook.errors import BadInput
from rollbook.health._config import plain
from rollbook.health._keyed import KeyedRule, at_clock, in_order, meaning
from rollbook.health._memory import Last, Memory, Recent
from rollbook.schema.records import Alert

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from rollbook.schema.columns import Column, Columns

_RISING, _GROWN, _FAR = 6, 1.1, 1.3
"""A weight has risen while the entropy is above its target: for this many rows in a row, by this factor. While the
entropy was never below 0 (perhaps of discrete actions, with a target above 0), also above its first value by the last
factor."""

_TARGET = -1.0
"""The usual target of one continuous action; of more it is lower."""


class _Trend(Memory):
    """A weight and the entropy of the same rows.

    Attributes:
      first, before: the first and the last weight; None before the first row.
      start, least: the first entropy, and the least one, at most 0.
      rows: in how many rows in a row the weight has risen with the entropy above its target.
      since: the weight before the first of these rows.
      reported: whether it was reported.
    """

    first: float | None = None
    before: float = 0.0
    start: float = 0.0
    least: float = 0.0
    rows: int = 0
    since: float = 0.0
    reported: bool = False


class _Weight(Recent):
    """How many rows in a row were too large or too small, and the trend beside the entropy."""

    odd: int = 0
    trend: _Trend = msgspec.field(default_factory=_Trend)


class Alpha(KeyedRule[_Weight]):
    """A learned weight of the entropy (temperature) above `most` or below `least`: "warn" after `rows` rows in a row.

    A weight that is exactly 0 was configured so, and is not checked. "warn" also when the weight rises by a tenth while
    the entropy (`update/entropy`) lies above its target, where it has to fall. The target is that of the configuration
    (`target_entropy`), else -1, the highest that is usual for continuous actions.

    Args:
      most, least: of the weight.
      rows: how many updates in a row.
      keys: further keys to check.
    """

    remembers = _Weight
    name = "alpha"
    source = "rollbook's own: the weights of the healthy trainings of benchmarks/health stay between 0.001 and 2"
    meanings = frozenset({"update/entropy_coefficient"})

    def __init__(self, most: float = 100.0, least: float = 1e-6, rows: int = 3, keys: Sequence[str] = ()) -> None:
        super().__init__(keys)
        if not most > least > 0 or rows < 1:
            raise BadInput(
                f"rule 'alpha': most={most!r} must be above least={least!r}, which is above 0; rows={rows!r} >= 1"
            )
        self._most, self._least, self._rows = most, least, rows

    def look(self, columns: Columns, now: float) -> Iterable[Alert]:
        """See `protocols.Rule`."""
        watched = self.watched(columns)
        alerts: list[tuple[float, Alert]] = []
        if not watched:
            return ()
        key = next((key for key in columns.keys("metrics") if meaning(key) == "update/entropy"), "")
        entropy = columns.column(key) if key else None
        for column in map(columns.column, watched):
            alerts += self.take(column.key, column)
            if entropy is not None and len(column) == len(entropy):  # of the same updates
                alerts += self._follows(column, entropy)
        return in_order(alerts)

    def _follows(self, column: Column, entropy: Column) -> Iterator[tuple[float, Alert]]:
        """Whether a weight rises where it has to fall."""
        trend = self.memory[column.key].trend
        if trend.first is None:
            trend.first = trend.before = column.values[0]
            trend.start = entropy.values[0]
        target = plain(self.run.config.get("target_entropy"))
        target = _TARGET if target is None else target
        limit = target + 0.25 * abs(target)
        first, before, rows, since = trend.first, trend.before, trend.rows, trend.since
        least = trend.least
        for i, (value, nats) in enumerate(zip(column.values, entropy.values, strict=True)):
            if value > before and nats > limit:
                rows, since = (rows + 1, since) if rows else (1, before)
                is_known = least < 0 or (value > _FAR * first and nats >= 0.9 * trend.start)
                if rows >= _RISING and value > _GROWN * since and is_known and not trend.reported:
                    trend.reported = True
                    yield self._wrong_way(column, i, since, nats, target, rows)
            else:
                rows = 0
            before = value
            if nats < least:
                least = nats
        trend.before, trend.rows, trend.since, trend.least = before, rows, since, least

    def _wrong_way(
        self, column: Column, i: int, since: float, nats: float, target: float, rows: int
    ) -> tuple[float, Alert]:
        where: dict[str, Any] = column.where(i)
        value = column.values[i]
        return where["time"], Alert(
            self.name,
            "warn",
            f"{column.key} has risen from {since:.3g} to {value:.3g} in {rows} rows{at_clock(where['clocks'])}, while "
            f"the policy's entropy ({nats:.2g} nats) is above its target ({target:g}): it has to fall there; usually "
            "the sign of its loss or of the target entropy is wrong",
            {"from_value": since, "value": value, "entropy": nats, "target_entropy": target, "rows": rows, **where},
            self.source,
            column.key,
            where["clocks"],
        )

    def take(self, key: str, column: Column) -> Iterator[tuple[float, Alert]]:
        """The new values of a checked key."""
        memory = self.memory[key]
        last, values = Last(memory, self._rows), column.values
        if self._least <= min(values) and max(values) <= self._most:
            memory.odd = 0
        else:
            for i, value in enumerate(values):
                memory.odd = memory.odd + 1 if value > self._most or 0 < value < self._least else 0
                if memory.odd == self._rows:
                    yield self._alert(key, last.up_to(column, range(i + 1), i + 1))
        last.take_all(column, range(len(values)))

    def _alert(self, key: str, last: Last) -> tuple[float, Alert]:
        values, where = last.values(), last.where()
        high = values[-1] > self._most
        words = "the entropy outweighs the rewards" if high else "nothing keeps the policy from becoming deterministic"
        return where["time"], Alert(
            self.name,
            "warn",
            f"{key} is {values[-1]:.3g}{at_clock(where['clocks'])}: {words}; usually the sign or size of the target "
            "entropy, or the scale of the rewards",
            last.evidence(most=self._most, least=self._least, rows=self._rows),
            self.source,
            key,
            where["clocks"],
        )
