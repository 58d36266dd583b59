"""A learning rate of 0 while training continues."""

from __future__ import annotations

from rollbook.errors import BadInput
from rollbook.health._keyed import KeyedRule, at_clock
from rollbook.health._memory import Last, Recent
from rollbook.schema.records import Alert

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rollbook.schema.columns import Column


_KNOWN_END = 3
"""This many updates are enough if the length of the run is known, and so it is known not to be the end of a
schedule."""


class _Rate(Recent):
    """In how many updates in a row it was 0, and whether it ever was above."""

    zeros: int = 0
    was_above: bool = False


class LearningRate(KeyedRule[_Rate]):
    """A learning rate that is exactly 0 in `rows` updates in a row: nothing is learned any more.

    "fail" when it never was above 0, "warn" when a schedule has brought it there. Near the end of a run of known length
    (`init(total=…)`) a schedule may end: there is no alert then.

    Args:
      rows: how many updates in a row; a warm-up may begin at 0.
      end: the share of the run's length, at its end, in which a schedule may have reached 0.
      keys: further keys to check.
    """

    remembers = _Rate
    name = "learning_rate"
    source = "a learning rate of 0 changes nothing; the number of updates is rollbook's own"
    meanings = frozenset({"update/learning_rate"})

    def __init__(self, rows: int = 20, end: float = 0.1, keys: Sequence[str] = ()) -> None:
        super().__init__(keys)
        if rows < 1 or not 0 <= end < 1:
            raise BadInput(f"rule 'learning_rate': rows={rows!r} must be at least 1, end={end!r} lie from 0 to below 1")
        self._rows, self._end = rows, end

    def take(self, key: str, column: Column) -> Iterator[tuple[float, Alert]]:
        """The new values of a checked key."""
        memory = self.memory[key]
        last, values = Last(memory, 1), column.values
        if min(values) > 0:
            memory.zeros, memory.was_above = 0, True
        else:
            for i, value in enumerate(values):
                if value != 0:
                    memory.zeros, memory.was_above = 0, memory.was_above or value > 0
                    continue
                memory.zeros += 1
                rows = _KNOWN_END if memory.was_above and self.run.total else self._rows
                if memory.zeros == rows and not self._is_near_the_end(column, i):
                    yield self._alert(key, last.up_to(column, range(i + 1), i + 1), memory.was_above, rows)
        last.take_all(column, range(len(values)))

    def _is_near_the_end(self, column: Column, i: int) -> bool:
        clocks = column.where(i)["clocks"]
        return any(clocks.get(clock, 0) >= (1 - self._end) * end for clock, end in self.run.total.items())

    def _alert(self, key: str, last: Last, was_above: bool, rows: int) -> tuple[float, Alert]:
        where = last.where()
        return where["time"], Alert(
            self.name,
            "warn" if was_above else "fail",
            f"{key} has been 0 in {rows} updates in a row{at_clock(where['clocks'])}: "
            + ("nothing is learned any more" if was_above else "nothing was ever learned")
            + "; usually a schedule that is shorter than the run, or a warm-up that is not stepped",
            last.evidence(rows=rows, was_above=was_above),
            self.source,
            key,
            where["clocks"],
        )
