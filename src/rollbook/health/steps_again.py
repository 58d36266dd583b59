"""Steps that a resumed run logs a second time."""

from __future__ import annotations

from typing import Any

from rollbook.health._keyed import KeyedRule
from rollbook.health._memory import Memory
from rollbook.schema import manifest
from rollbook.schema.clocks import UNKNOWN
from rollbook.schema.records import Alert, RunInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rollbook.schema.columns import Column

_MOST_KEYS = 2
"""All rows of a training have the same steps."""
_ASIDE = ("host/", "rollbook/", "system/", "eval", "test/", "val")
"""Keys with these beginnings are about the machine, or evaluations, which may come late."""


class _Reached(Memory):
    """How far a key has come.

    Attributes:
      clock: the one that its rows have; "" if they have none.
      first, last: the first reading and the newest.
      attempt: the attempt that logged it last.
      row: the row of `last`: writer, lane and seq.
    """

    clock: str = ""
    first: int = UNKNOWN
    last: int = UNKNOWN
    attempt: int = 0
    row: dict[str, Any] = {}


class StepsAgain(KeyedRule[_Reached]):
    """A resumed run begins below the step that it had reached, and did not go back: "warn", once per attempt.

    Each step between is in the curve twice, so it zigzags. A program that loads its own state has to say so
    (`Run.rewind`); `Run.restore` does it. The run's first two keys are checked, those of the machine and of evaluations
    aside. After a resume on another machine, which does not know how far the run had come, it says nothing.
    """

    remembers = _Reached
    name = "steps_again"
    source = "rollbook's own: an attempt that goes on from an earlier state rewinds to it"

    def open(self, run: RunInfo) -> None:
        """A run begins, or continues after a rewind."""
        super().open(run)
        self._is_said = False

    def watches(self, key: str) -> bool:
        """See `KeyedRule`."""
        if key not in self.memory and len(self.memory) < _MOST_KEYS and not key.startswith(_ASIDE):
            self.memory[key] = _Reached()
        return key in self.memory

    def take(self, key: str, column: Column) -> Iterator[tuple[float, Alert]]:
        """The new values of a checked key."""
        memory = self.memory[key]
        if not memory.clock:
            memory.clock = next(iter(column.where(0)["clocks"]), "")
        readings = column.clock(memory.clock) if memory.clock else ()
        if not readings or (begun := readings[0]) == UNKNOWN:
            return
        if memory.attempt in (0, self.run.attempt):
            memory.first = memory.first if memory.attempt else begun
        elif begun < memory.last and not self._is_said and self._counts(memory):
            self._is_said = True
            yield self._alert(key, column, memory)
        last = len(readings) - 1
        while readings[last] == UNKNOWN:  # a row without the clock does not say how far the run has come
            last -= 1
        memory.attempt, memory.last, memory.row = self.run.attempt, readings[last], column.where(last)["row"]

    def _counts(self, memory: _Reached) -> bool:
        """Whether the newest row of the attempt before is in the curve. If the program has gone back, it is not."""
        about, row = manifest.look(self.run.path), memory.row
        return manifest.EffectiveRows(about, dict).has(memory.attempt, row["writer"], row["lane"], row["seq"], 0, "")

    def _alert(self, key: str, column: Column, memory: _Reached) -> tuple[float, Alert]:
        where, clock, begun = column.where(0), memory.clock, column.clock(memory.clock)[0]
        what = (
            f"call run.rewind({clock}={begun - 1}) before the first log, or run.restore()"
            if begun > memory.first
            else "a training that starts from the beginning is another run: leave out resume="
        )
        return where["time"], Alert(
            self.name,
            "warn",
            f"{key} goes on at {clock} {begun:,} in attempt {self.run.attempt}, although the run had reached "
            f"{memory.last:,}: the steps between are in its curve twice; usually the program has loaded an earlier "
            f"state itself: {what}",
            {"began": begun, "reached": memory.last, **where},
            self.source,
            key,
            where["clocks"],
        )
