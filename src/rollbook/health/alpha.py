"""A weight of the entropy that runs away or vanishes."""

from __future__ import annotations

from rollbook.errors import BadInput
from rollbook.health._keyed import KeyedRule, Last, place
from rollbook.protocols import Alert

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rollbook.ground.columns import Column

__all__ = ["Alpha"]


class Alpha(KeyedRule):
    """A learned weight of the entropy (temperature) above `most` or below `least`: "warn" after `rows` rows in a row.

    A weight that is exactly 0 was configured so, and is not checked.

    Args:
      most, least: of the weight.
      rows: how many updates in a row.
      keys: further keys to check.
    """

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

    def take(self, key: str, column: Column) -> Iterator[tuple[float, Alert]]:
        """The new values of a checked key."""
        memory = self.memory.setdefault(key, {"odd": 0})
        last, values = Last(memory, self._rows), column.values
        if self._least <= min(values) and max(values) <= self._most:
            memory["odd"] = 0
        else:
            for i, value in enumerate(values):
                memory["odd"] = memory["odd"] + 1 if value > self._most or 0 < value < self._least else 0
                if memory["odd"] == self._rows:
                    yield self._alert(key, last.up_to(column, range(i + 1), i + 1))
        last.take_all(column, range(len(values)))

    def _alert(self, key: str, last: Last) -> tuple[float, Alert]:
        values, where = last.values(), last.where()
        high = values[-1] > self._most
        words = "the entropy outweighs the rewards" if high else "nothing keeps the policy from becoming deterministic"
        return where["time"], Alert(
            self.name,
            "warn",
            f"{key} is {values[-1]:.3g}{place(where['clocks'])}: {words}; usually the sign or size of the target "
            "entropy, or the scale of the rewards",
            last.evidence(most=self._most, least=self._least, rows=self._rows),
            self.source,
            key,
            where["clocks"],
        )
