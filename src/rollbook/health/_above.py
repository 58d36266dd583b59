"""What rules have in common that speak of a value which stays above a limit."""

from __future__ import annotations

from rollbook.errors import BadInput
from rollbook.health._keyed import KeyedRule, Last, place
from rollbook.protocols import Alert

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rollbook.ground.columns import Column

__all__ = ["StaysAbove"]


class StaysAbove(KeyedRule):
    """A value above `limit` in `rows` rows in a row: "warn", once until as many in a row were not above it.

    Args:
      limit: in the unit of the key.
      rows: how many rows in a row.
      skip: so many first rows are not judged.
      keys: further keys to look at.
    """

    words = ""
    """What it means, for people."""

    def __init__(self, limit: float, rows: int, skip: int = 0, keys: Sequence[str] = ()) -> None:
        super().__init__(keys)
        if not limit > 0 or rows < 1 or skip < 0:
            raise BadInput(
                f"rule {self.name!r}: limit={limit!r} must be above 0, rows={rows!r} at least 1, skip={skip!r} not "
                "negative"
            )
        self._limit, self._rows, self._skip = limit, rows, skip

    def take(self, key: str, column: Column) -> Iterator[tuple[float, Alert]]:
        """The new values of a key that is looked at."""
        memory = self.memory.setdefault(key, {})
        last, values = Last(memory, self._rows), column.values
        above, below, troubled = memory.get("above", 0), memory.get("below", 0), memory.get("troubled", False)
        if max(values) <= self._limit:  # a NaN in front is no maximum
            above, below = 0, below + len(values)
            troubled = troubled and below < self._rows
        else:
            first = self._skip + self._rows - last.seen - 1
            for i, value in enumerate(values):
                if not value > self._limit:
                    above, below = 0, below + 1
                    troubled = troubled and below < self._rows
                    continue
                above, below = above + 1, 0
                if above >= self._rows and not troubled and i >= first:
                    troubled = True
                    yield self._alert(key, last.up_to(column, range(i + 1), i + 1))
        memory.update(above=above, below=min(below, self._rows), troubled=troubled)
        last.take_all(column, range(len(values)))

    def _alert(self, key: str, last: Last) -> tuple[float, Alert]:
        values, where = last.values(), last.where()
        return where["time"], Alert(
            self.name,
            "warn",
            f"{key} has been above {self._limit:g} in {self._rows} rows in a row, now {values[-1]:.3g}"
            f"{place(where['clocks'])}: {self.words}",
            last.evidence(limit=self._limit),
            self.source,
            key,
            where["clocks"],
        )
