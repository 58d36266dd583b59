"""A loss or gradient far beyond anything the run had before."""

from __future__ import annotations

import math

from rollbook.errors import BadInput
from rollbook.health._keyed import KeyedRule, at_clock, meaning, median
from rollbook.health._memory import Last, Recent
from rollbook.schema.records import Alert

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rollbook.schema.columns import Column

_BLOCK, _LARGE_BLOCK, _FEW = 10, 100, 20
"""The median is taken over this many rows; over _LARGE_BLOCK rows after _FEW blocks."""


class _Past(Recent):
    """What a key has been so far.

    Attributes:
      rest: values that fill no block yet.
      past, blocks: the largest median of a block, and how many blocks there were.
      above: how many rows in a row lie far above it.
      reported: whether that was reported.
    """

    rest: list[float] = []
    past: float = 0.0
    blocks: int = 0
    above: int = 0
    reported: bool = False


class Jump(KeyedRule[_Past]):
    """A gradient norm, or a loss of values, that lies far above the run's own past: "warn" after `rows` rows in a row.

    The past is the largest median of `_BLOCK` rows so far: values may grow as returns do, and single spikes do not
    count.

    Args:
      times: how many times the past.
      rows: how many rows in a row.
      keys: further keys to check.
    """

    remembers = _Past
    name = "jump"
    source = "TRL's documentation of PPO (a spike of the loss is bad news); the factor is rollbook's own"
    meanings = frozenset(
        {
            "update/gradient_norm",
            "update/loss/value",
            "update/loss/q",
            "update/loss/q1",
            "update/loss/q2",
            "update/step_norm",
        }
    )

    steps = 10.0
    """How many times, for the norm of a step: an optimizer's own scale keeps it even."""

    def __init__(self, times: float = 50.0, rows: int = 3, keys: Sequence[str] = ()) -> None:
        super().__init__(keys)
        if not times > 1 or rows < 1:
            raise BadInput(f"rule 'jump': times={times!r} must be above 1, rows={rows!r} at least 1")
        self._times, self._rows = times, rows

    def take(self, key: str, column: Column) -> Iterator[tuple[float, Alert]]:
        """The new values of a checked key."""
        memory = self.memory[key]
        last, values = Last(memory, self._rows), column.values
        times = min(self.steps, self._times) if meaning(key) == "update/step_norm" else self._times
        first = 0
        while first < len(values):
            size = _BLOCK if memory.blocks < _FEW else _LARGE_BLOCK
            end = min(len(values), first + size - len(memory.rest))
            some = values[first:end]
            limit = times * memory.past
            if memory.blocks >= 2 and limit > 0 and (max(some) > limit or memory.above):
                for i in range(first, end):
                    memory.above = memory.above + 1 if values[i] > limit else 0
                    if memory.above == self._rows and not memory.reported:
                        memory.reported = True
                        yield self._alert(key, memory.past, limit, last.up_to(column, range(i + 1), i + 1))
            memory.rest = rest = [*memory.rest, *some]
            if len(rest) == size:
                middle = median(rest)
                if middle <= limit or memory.blocks < 2:
                    memory.reported = False
                if math.isfinite(middle):
                    memory.past = max(memory.past, middle)
                    memory.blocks += 1
                memory.rest = []
            first = end
        last.take_all(column, range(len(values)))

    def _alert(self, key: str, past: float, limit: float, last: Last) -> tuple[float, Alert]:
        values, where = last.values(), last.where()
        return where["time"], Alert(
            self.name,
            "warn",
            f"{key} is {values[-1]:.3g}{at_clock(where['clocks'])}, {values[-1] / past:,.0f} times the most it used to "
            "be: something has changed its scale; usually rewards, observations or the learning rate",
            last.evidence(past=past, limit=limit, rows=self._rows),
            self.source,
            key,
            where["clocks"],
        )
