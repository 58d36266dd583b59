"""A loss or gradient far beyond anything the run had before."""

from __future__ import annotations

import math

from rollbook.errors import BadInput
from rollbook.health._keyed import OF_RL, KeyedRule, at_clock, meaning, median
from rollbook.health._memory import Last, Recent
from rollbook.schema.records import Alert, RunInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from rollbook.schema.columns import Column, Columns

_LOSS, _LOSS_TIMES, _LOSS_ROWS = "update/loss/total", 3.0, 10

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
    count. The loss of a supervised training (fine-tuning, preferences) has to fall: three times its past in ten rows in
    a row are enough. The loss of a run with returns, rewards, values or a policy means nothing by its size.

    Args:
      times: how many times the past.
      rows: how many rows in a row.
      keys: further keys to check.
    """

    remembers = _Past
    tables = frozenset({"metrics", "episodes"})
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
            _LOSS,
        }
    )

    steps = 10.0
    """How many times, for the norm of a step: an optimizer's own scale keeps it even."""

    def __init__(self, times: float = 50.0, rows: int = 3, keys: Sequence[str] = ()) -> None:
        super().__init__(keys)
        if not times > 1 or rows < 1:
            raise BadInput(f"rule 'jump': times={times!r} must be above 1, rows={rows!r} at least 1")
        self._times, self._rows = times, rows

    def open(self, run: RunInfo) -> None:
        """A run begins, or continues after a rewind."""
        super().open(run)
        self._is_rl = False

    def state(self) -> dict[str, Any]:
        """See `protocols.Stateful`."""
        return {**super().state(), "rl": self._is_rl}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """See `protocols.Stateful`."""
        super().set_state(state)
        self._is_rl = bool(state.get("rl"))

    def look(self, columns: Columns, now: float) -> Iterable[Alert]:
        """See `protocols.Rule`."""
        if not self._is_rl:
            of_rl = any(meaning(key) in OF_RL for key in columns.keys("metrics"))
            self._is_rl = of_rl or columns.of_episodes("return") is not None
        return super().look(columns, now)

    def take(self, key: str, column: Column) -> Iterator[tuple[float, Alert]]:
        """The new values of a checked key."""
        kind = meaning(key)
        if kind == _LOSS and self._is_rl:
            return
        memory = self.memory[key]
        rows = max(self._rows, _LOSS_ROWS) if kind == _LOSS else self._rows
        last, values = Last(memory, rows), column.values
        times = min({_LOSS: _LOSS_TIMES, "update/step_norm": self.steps}.get(kind, self._times), self._times)
        first = 0
        while first < len(values):
            size = _BLOCK if memory.blocks < _FEW else _LARGE_BLOCK
            end = min(len(values), first + size - len(memory.rest))
            some = values[first:end]
            limit = times * memory.past
            if memory.blocks >= 2 and limit > 0 and (max(some) > limit or memory.above):
                for i in range(first, end):
                    memory.above = memory.above + 1 if values[i] > limit else 0
                    if memory.above == rows and not memory.reported:
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
        is_loss = meaning(key) == _LOSS
        what = "the training has come apart" if is_loss else "something has changed its scale"
        cause = (
            "the learning rate, its warm-up or bad data" if is_loss else "rewards, observations or the learning rate"
        )
        return where["time"], Alert(
            self.name,
            "warn",
            f"{key} is {values[-1]:.3g}{at_clock(where['clocks'])}, {values[-1] / past:,.0f} times the most it used to "
            f"be: {what}; usually {cause}",
            last.evidence(past=past, limit=limit, rows=len(values)),
            self.source,
            key,
            where["clocks"],
        )
