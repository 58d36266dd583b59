"""A loss that no longer changes, to the last bit."""

from __future__ import annotations

import math
from itertools import groupby
from operator import eq

from rollbook.errors import BadInput
from rollbook.health._keyed import KeyedRule, at_clock
from rollbook.health._memory import Memory
from rollbook.schema.records import Alert

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rollbook.schema.columns import Column, Where


class Stretch(Memory):
    """The last rows of a key that have one value.

    Attributes:
      value, rows: the value, and how many rows in a row have it.
      first: the clocks of the first of them.
      varied: how many other values came before.
    """

    value: float = math.nan
    first: dict[str, int] = {}
    rows: int = 0
    varied: int = -1


class Constant(KeyedRule[Stretch]):
    """A loss, gradient norm, divergence or entropy that repeats one value bit for bit.

    With fresh data no result repeats exactly: this part of the program computes nothing new. Reported only for keys
    that varied before.

    Args:
      rows: how many times in a row one value must repeat.
      keys: further keys to check.
    """

    remembers = Stretch
    name = "constant"
    source = "Andy Jones, Debugging RL; Schulman's notes (no signal); the number of rows is rollbook's own"
    meanings = frozenset(
        (
            *("update/loss/total", "update/loss/policy", "update/loss/value", "update/loss/q", "update/loss/entropy"),
            *("update/entropy", "update/approx_kl", "update/approx_kl_k2", "update/kl", "update/gradient_norm"),
        )
    )

    def __init__(self, rows: int = 12, keys: Sequence[str] = ()) -> None:
        super().__init__(keys)
        if rows < 3:
            raise BadInput(f"rule 'constant': rows={rows!r} must be at least 3")
        self._rows = rows

    def take(self, key: str, column: Column) -> Iterator[tuple[float, Alert]]:
        """The new values of a checked key."""
        stretch = self.memory[key]
        values, at = column.values, 0
        while at < len(values):
            if stretch.varied < 3:  # hardly ever true for long
                end = min(len(values), at + self._rows)
            elif self._moves_on(stretch, column, at):
                return
            else:
                end = len(values)
            yield from self._gone_through(key, stretch, column, at, end)
            at = end

    def _gone_through(
        self, key: str, stretch: Stretch, column: Column, at: int, end: int
    ) -> Iterator[tuple[float, Alert]]:
        first = -1  # of the stretch, if it began here
        for value, own in groupby(column.values[at:end]):
            rows = sum(1 for _ in own)
            if value == stretch.value:
                before, stretch.rows = stretch.rows, stretch.rows + rows
            else:
                before, first = 0, at
                stretch.value, stretch.rows, stretch.varied = value, rows, stretch.varied + 1
            if before < self._rows <= stretch.rows and stretch.varied >= 3:
                since = stretch.first if first < 0 else column.where(first)["clocks"]
                yield self._alert(key, value, since, column.where(at + self._rows - before - 1))
            at += rows
        if first >= 0:
            stretch.first = column.where(first)["clocks"]

    def _moves_on(self, stretch: Stretch, column: Column, at: int) -> bool:
        """Whether no value from `at` on can repeat for long enough: of any two that are half as far apart, the later
        one differs. Then only the end is remembered."""
        values = column.values
        some = values[at :: self._rows // 2]
        if len(some) < 3 or some[0] == stretch.value or any(map(eq, some, some[1:])):
            return False
        last, first = values[-1], len(values) - 1
        while values[first - 1] == last:  # ends before the last of `some` but one
            first -= 1
        stretch.value, stretch.first, stretch.rows = last, column.where(first)["clocks"], len(values) - first
        return True

    def _alert(self, key: str, value: float, since: dict[str, int], where: Where) -> tuple[float, Alert]:
        words = at_clock(since).replace(" at ", " since ")
        return where["time"], Alert(
            self.name,
            "warn",
            f"{key} has been exactly {value:g} in {self._rows} rows in a row{words}; it varied before: "
            "usually what is logged is that of an older update, or nothing changes any more",
            {"value": value, "rows": self._rows, "since": dict(since), **where},
            self.source,
            key,
            where["clocks"],
        )
