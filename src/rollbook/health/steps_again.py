"""Steps that a resumed run logs a second time."""

from __future__ import annotations

from typing import Any

from rollbook.health._keyed import ASIDE, KeyedRule
from rollbook.health._memory import Memory
from rollbook.schema import manifest
from rollbook.schema.clocks import UNKNOWN
from rollbook.schema.records import Alert, RunInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rollbook.schema.columns import Column, Columns

_MOST_KEYS = 2
"""All rows of a training have the same steps."""


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
        self._reported = 0  # the newest attempt that was

    def state(self) -> dict[str, Any]:
        """See `protocols.Stateful`."""
        return {**super().state(), "reported": self._reported}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """See `protocols.Stateful`."""
        super().set_state(state)
        self._reported = int(state.get("reported", 0))

    def watched(self, columns: Columns) -> Sequence[str]:
        """See `KeyedRule`: the keys that were logged first, by name where a row has several."""
        keys = columns.keys("metrics")
        if len(self.memory) < _MOST_KEYS:
            new = [key for key in keys if key not in self.memory and not key.startswith(ASIDE)]
            new.sort(key=lambda key: (columns.column(key).where(0)["time"], key))
            for key in new[: _MOST_KEYS - len(self.memory)]:
                self.memory[key] = _Reached()
        return [key for key in self.memory if key in keys]

    def look(self, columns: Columns, now: float) -> Iterable[Alert]:
        """See `protocols.Rule`."""
        found: list[tuple[float, str, int, Alert]] = []
        for key in self.watched(columns):
            for attempt, own in columns.column(key).by_attempt():
                alert = self._take(key, attempt, own)
                if alert is not None:
                    found.append((own.where(0)["time"], key, attempt, alert))
        alerts = []
        for _time, _key, attempt, alert in sorted(found, key=lambda each: each[:2]):
            if attempt > self._reported:
                self._reported = attempt
                alerts.append(alert)
        return alerts

    def _take(self, key: str, attempt: int, column: Column) -> Alert | None:
        """The next values of a key, which this attempt logged. Returns what is wrong."""
        memory, alert = self.memory[key], None
        if not memory.clock:
            memory.clock = next(iter(column.where(0)["clocks"]), "")
        readings = column.clock(memory.clock) if memory.clock else ()
        if attempt < memory.attempt or not readings or (begun := readings[0]) == UNKNOWN:
            return None
        if memory.attempt in (0, attempt):
            memory.first = memory.first if memory.attempt else begun
        elif begun < memory.last and self._counts(memory):
            alert = self._alert(key, attempt, column, memory)
        last = len(readings) - 1
        while readings[last] == UNKNOWN:  # a row without the clock does not say how far the run has come
            last -= 1
        memory.attempt, memory.last, memory.row = attempt, readings[last], column.where(last)["row"]
        return alert

    def _counts(self, memory: _Reached) -> bool:
        """Whether the newest row of the attempt before is in the curve. If the program has gone back, it is not."""
        about, row = manifest.look(self.run.path), memory.row
        return manifest.EffectiveRows(about, dict).has(memory.attempt, row["writer"], row["lane"], row["seq"], 0, "")

    def _alert(self, key: str, attempt: int, column: Column, memory: _Reached) -> Alert:
        where, clock, begun = column.where(0), memory.clock, column.clock(memory.clock)[0]
        what = (
            f"call run.rewind({clock}={begun - 1}) before the first log, or run.restore()"
            if begun > memory.first
            else "a training that starts from the beginning is another run: leave out resume="
        )
        return Alert(
            self.name,
            "warn",
            f"{key} goes on at {clock} {begun:,} in attempt {attempt}, although the run had reached "
            f"{memory.last:,}: the steps between are in its curve twice; usually the program has loaded an earlier "
            f"state itself: {what}",
            {"began": begun, "reached": memory.last, **where},
            self.source,
            key,
            where["clocks"],
        )
