"""Shared by rules that wait for something: where in training it last came, and how far the run is now."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from operator import sub
from typing import Any, Generic, TypeVar

from rollbook.health._keyed import are_known, meaning
from rollbook.health._memory import Memory, wholly_remembered
from rollbook.schema.clocks import UNKNOWN
from rollbook.schema.records import Alert, RunInfo

COPIES = ("num_envs", "n_envs", "num_envs_per_worker")
"""How a configuration calls the number of environments, in lower case."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rollbook.schema.columns import Column, Columns, Where

CLOCK = "env_step"
_EXACT, _STRIDE = 200, 8
"""The first gaps are measured one by one; later ones over a few together, which is cheaper and more patient."""
_FEWEST = 10
"""It must have come at least this often before its absence counts."""


class Pace(Memory):
    """How often something came, and when.

    Attributes:
      n: how often it came.
      last: environment steps at the last one; -1 before the first.
      gap: the most environment steps between two.
      reported: whether its absence was reported.
      others: rows that show progress, before the first one.
      mark: environment steps at the end of the last group of gaps, see `_widest`.
      missed: whether rows were left out since then.
    """

    n: int = 0
    last: int = -1
    gap: int = 0
    reported: bool = False
    others: int = 0
    mark: int = 0
    missed: bool = False


PaceMemory = TypeVar("PaceMemory", bound=Pace)


class PaceRule(ABC, Generic[PaceMemory]):
    """Something that comes now and then, and then stays away. Subclasses define what it is, and which keys show the
    progress."""

    memory: PaceMemory
    remembers: type[PaceMemory]
    """The class of its memory."""

    name, level, source = "", "warn", ""
    preferred = ""
    """The key to wait for if the run logs it, because the rule needs its values; else any key of the kind."""
    tables: frozenset[str] = frozenset({"metrics", "episodes"})
    times, least, fewest, never, needed = 5.0, 0.05, 500, 0.1, 3
    """An alert needs this many times the largest gap, this share of the run's length and this many environment steps.
    The last two are for what never came: the share, and the number of rows that show progress."""

    def open(self, run: RunInfo) -> None:
        """A run begins, or continues after a rewind."""
        self.run, self._total = run, run.total.get(CLOCK, 0)
        self.memory = self.remembers()
        self._keys: tuple[tuple[str, ...], str, str] = ((), "", "")

    def state(self) -> dict[str, Any]:
        """See `protocols.Stateful`."""
        return self.memory.plain()

    def set_state(self, state: Mapping[str, Any]) -> None:
        """See `protocols.Stateful`."""
        self.memory = wholly_remembered(self.remembers, state)

    def rows_missed(self) -> None:
        """See `protocols.Rule`: nobody knows whether it came among them."""
        self.memory.missed = True

    @abstractmethod
    def is_it(self, name: str) -> bool:
        """Whether a key is what the rule waits for."""

    @abstractmethod
    def is_other(self, name: str) -> bool:
        """Whether a key shows progress."""

    @abstractmethod
    def speak(self, since: int, now: int) -> str:
        """The message; `since` is -1 if it never came. "" for nothing."""

    def columns_of(self, columns: Columns) -> tuple[Column | None, Column | None]:
        """What the rule waits for, and what shows progress."""
        keys = tuple(columns.keys("metrics"))
        if keys != self._keys[0]:
            means = [(key, meaning(key)) for key in keys]
            its = next((key for key, name in means if name == self.preferred), "")
            its = its or next((key for key, name in means if self.is_it(name)), "")
            others = next((key for key, name in means if self.is_other(name)), "")
            self._keys = (keys, its, others)
        _keys, its, others = self._keys
        return columns.column(its) if its else None, columns.column(others) if others else None

    def look(self, columns: Columns, now: float) -> Iterable[Alert]:
        """See `protocols.Rule`."""
        it, other = self.columns_of(columns)
        memory = self.memory
        if it is None and (other is None or memory.reported):
            return ()
        came: Sequence[int] = it.clock(CLOCK) if it is not None else ()
        values: Sequence[float] = it.values if it is not None else ()
        if not are_known(came):
            known = [i for i, step in enumerate(came) if step != UNKNOWN]
            came, values = [came[i] for i in known], [values[i] for i in known]
        at = other.clock(CLOCK) if other is not None else ()
        begun = [each[0] for each in (came, at) if each and each[0] != UNKNOWN]
        if memory.missed and begun:  # as if it had come last just before these rows
            memory.last, memory.mark = max(memory.last, min(begun)), max(memory.mark, min(begun))
            memory.missed = False
        if not at or (memory.reported and not came) or not self._may_be_late(came, at):
            memory.others += len(at)
            self._take(came, values)
            return ()
        alerts: list[Alert] = []
        first = 0
        for number, step in enumerate([*came, None]):  # up to each that came, and after the last
            limit = self._limit()
            end = len(at) if step is None else bisect_right(at, step)
            if limit is not None and not memory.reported:
                i = max(first, bisect_right(at, limit))
                if not memory.n:
                    i = max(i, first + self.needed - memory.others - 1)
                if i < end:
                    assert other is not None
                    memory.reported = True
                    alerts += self._alert(other.where(i), memory.last, at[i])
            memory.others += end - first
            first = max(first, end)
            if step is not None:
                self._take([step], values[number : number + 1])
        return alerts

    def _may_be_late(self, came: Sequence[int], at: Sequence[int]) -> bool:
        """Whether some gap may have been too long; computed at the speed of C."""
        memory = self.memory
        if not memory.n and not (came and at[0] >= came[0] and len(came) >= _FEWEST):
            return True
        end = at[-1]
        if not came:
            return bool(end - memory.last > self._most())
        early, late, mark = self._widest(came)
        return bool(max(early, late, came[-1] - mark, end - came[-1]) > self._most())

    def _widest(self, came: Sequence[int]) -> tuple[int, int, int]:
        """(the widest gap among the first `_EXACT` events; the widest group of `_STRIDE` later events, grouped by their
        number, so that it does not matter where a look ends; the position where the last group ended)."""
        memory = self.memory
        n, mark = memory.n, memory.mark
        some = came[: max(0, _EXACT - n)]
        early = late = 0
        if some:
            early = max(map(sub, some[1:], some), default=0)
            if n:
                early = max(early, some[0] - memory.last)
            mark = some[-1]
        marks = came[len(some) + -(n + len(some)) % _STRIDE :: _STRIDE] if len(came) > len(some) else ()
        if marks:
            late = max(map(sub, marks[1:], marks), default=0)
            late, mark = max(late, marks[0] - mark), marks[-1]
        return early, late, mark

    def _take(self, came: Sequence[int], values: Sequence[float]) -> None:
        """It came at these environment steps, with these values."""
        if not came:
            return
        memory = self.memory
        early, late, mark = self._widest(came)
        memory.gap = max(memory.gap, early, late)
        memory.mark, memory.last, memory.n, memory.reported = mark, came[-1], memory.n + len(came), False

    def _most(self) -> float:
        """The most environment steps that may pass, at least."""
        return float(max(self.times * self.memory.gap, self.least * self._total, self.fewest))

    def patience(self) -> float:
        """The most environment steps that may pass once it has come `_FEWEST` times. Never below `_most`."""
        return self._most()

    def _limit(self) -> float | None:
        """The number of environment steps by which it should have come."""
        memory = self.memory
        if not memory.gap:  # nothing yet, or all at once: the environments run side by side
            return max(0, memory.last) + self.never * self._total if self._total else None
        return float(memory.last + self.patience()) if memory.n >= _FEWEST else None

    def _alert(self, where: Where, since: int, now: int) -> list[Alert]:
        words = self.speak(since, now)
        if not words:
            return []
        came = {"last": since} if since >= 0 else {"came": 0}
        limit = {"largest_gap": self.memory.gap, "times": self.times} if self.memory.gap else {}
        evidence = {**came, **limit, **where}
        return [Alert(self.name, self.level, words, evidence, self.source, "", where["clocks"])]
