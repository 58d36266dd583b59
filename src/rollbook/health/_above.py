"""Shared by rules about a value that stays above a limit."""

from __future__ import annotations

import math

from rollbook.errors import BadInput
from rollbook.health._keyed import KeyedRule, at_clock
from rollbook.health._memory import Last, Recent
from rollbook.schema.records import Alert, RunInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rollbook.schema.columns import Column


class _Level(Recent):
    """How many rows in a row were above the limit, and not above it."""

    above: int = 0
    below: int = 0


class StaysAbove(KeyedRule[_Level]):
    """A value above `limit` in `rows` rows in a row. Reported once, until as many rows in a row are not above it.

    Args:
      limit: in the unit of the key.
      rows: how many rows in a row.
      skip: this many first rows are not judged by `limit`.
      keys: further keys to check.
      gross: one value above this is enough, even among the first.
    """

    remembers = _Level
    level = "warn"
    words = ""
    """The message about values above `limit`."""
    gross_words = ""
    """The message about a value above `gross`."""

    def __init__(
        self, limit: float, rows: int, skip: int = 0, keys: Sequence[str] = (), gross: float = math.inf
    ) -> None:
        super().__init__(keys)
        if not limit > 0 or rows < 1 or skip < 0:
            raise BadInput(
                f"rule {self.name!r}: limit={limit!r} must be above 0, rows={rows!r} at least 1, skip={skip!r} not "
                "negative"
            )
        if not gross >= limit:
            raise BadInput(f"rule {self.name!r}: gross={gross!r} must be at least limit={limit!r}")
        self._asked, self._rows, self._skip, self._asked_gross = limit, rows, skip, gross
        self._limit, self._gross = limit, gross

    def open(self, run: RunInfo) -> None:
        """A run begins, or continues after a rewind."""
        super().open(run)
        self._limit = self.limit_in(run)
        self._gross = max(self._asked_gross, self._limit)

    def limit_in(self, run: RunInfo) -> float:
        """The limit for a run."""
        return self._asked

    def take(self, key: str, column: Column) -> Iterator[tuple[float, Alert]]:
        """The new values of a checked key."""
        memory = self.memory[key]
        last, values = Last(memory, self._rows), column.values
        # Count rows in a row above and not above; a trouble is over when as many rows are not above.
        above, below, troubled = memory.above, memory.below, memory.troubled
        if max(values) <= self._limit:  # False if the first value is NaN
            above, below = 0, below + len(values)
            troubled = troubled and below < self._rows
        elif troubled and min(values) > self._limit and values[-1] > self._limit and sum(values) < math.inf:
            above, below = above + len(values), 0  # nothing new; a NaN in between would make the sum one
        else:
            first = self._skip + self._rows - last.seen - 1
            for i, value in enumerate(values):
                if not value > self._limit:
                    above, below = 0, below + 1
                    troubled = troubled and below < self._rows
                    continue
                above, below = above + 1, 0
                is_gross = value > self._gross
                if not troubled and (is_gross or (above >= self._rows and i >= first)):
                    troubled = True
                    yield self._alert(key, is_gross, last.up_to(column, range(i + 1), i + 1))
        memory.above, memory.below, memory.troubled = above, min(below, self._rows), troubled
        last.take_all(column, range(len(values)))

    def _alert(self, key: str, is_gross: bool, last: Last) -> tuple[float, Alert]:
        values, where = last.values(), last.where()
        limit = self._gross if is_gross else self._limit
        often = f"has been above {limit:g} in {self._rows} rows in a row, now {values[-1]:.3g}"
        return where["time"], Alert(
            self.name,
            self.level,
            f"{key} was {values[-1]:.3g}{at_clock(where['clocks'])}: {self.gross_words}"
            if is_gross
            else f"{key} {often}{at_clock(where['clocks'])}: {self.words}",
            last.evidence(limit=limit, **self.evidence_in()),
            self.source,
            key,
            where["clocks"],
        )

    def evidence_in(self) -> dict[str, object]:
        """Further numbers for the evidence."""
        return {}
