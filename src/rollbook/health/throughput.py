"""A training that has become slow."""

from __future__ import annotations

import re
from bisect import bisect_left
from itertools import pairwise
from typing import Any

from rollbook.errors import BadInput
from rollbook.health._keyed import ASIDE, are_known, at_clock, meaning, median
from rollbook.health._memory import Memory, wholly_remembered
from rollbook.schema.clocks import UNKNOWN
from rollbook.schema.records import Alert, RunInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rollbook.schema.columns import Column, Columns

_BLOCK_SECONDS, _WINDOW, _WARM_UP = 30.0, 10, 2
"""A block of rows lasts at least so long; so many blocks make a window; so many after a start do not count."""
_LEAST_SECONDS, _MOST_SECONDS, _OF_RUN = 600.0, 3600.0, 0.05
_MOST_KEYS = 2_000
_GROWING = re.compile(r"(completion|response|generation|seq|output).*(len|tokens)", re.IGNORECASE)
"""The length of answers of a language model; a training whose answers become longer makes fewer steps."""


class _Speed(Memory):
    """What is remembered of the speed.

    Attributes:
      key, clock: the key whose rows are counted, and the clock that they have.
      seen: the keys so far; a new one begins another phase, such as the first update after a warm-up.
      grows: whether the length of answers is logged.
      attempt, began: the attempt, and its first row (unix seconds).
      since, reading: the row at which the open block began; -1.0 where none has.
      skipped: blocks that did not count since the phase began.
      rates: of the last blocks, in readings per second.
      best: the largest median of a window.
      slow: since when the windows are slow (unix seconds); -1.0 while they are not.
      reported: whether that was reported.
    """

    key: str = ""
    clock: str = ""
    seen: list[str] = []
    grows: bool = False
    attempt: int = 0
    began: float = -1.0
    since: float = -1.0
    reading: int = 0
    skipped: int = 0
    rates: list[float] = []
    best: float = 0.0
    slow: float = -1.0
    reported: bool = False


class Throughput:
    """The steps per second have fallen below `share` of what they were, for long: "warn" once.

    The rate is the median over ten blocks of rows, each of half a minute or more, so that pauses for evaluations and
    checkpoints do not count. It is compared with the largest one since the phase began: an attempt, or a key that was
    new (the first update after a warm-up), the first two blocks aside. It has to stay low for a twentieth of the
    attempt so far, at least `minutes` and at most an hour.

    Gradient steps are not judged where the length of a language model's answers is logged: longer answers take longer.

    Args:
      share: of the largest rate.
      minutes: how long at least.
    """

    name = "throughput"
    source = "Jones, Debugging RL: throughput that decays is a leak; the numbers are rollbook's own"
    tables = frozenset({"metrics"})

    def __init__(self, share: float = 0.5, minutes: float = _LEAST_SECONDS / 60) -> None:
        if not 0 < share < 1 or not minutes > 0:
            raise BadInput(f"rule 'throughput': share={share!r} must lie between 0 and 1, minutes={minutes!r} above 0")
        self._share, self._seconds = share, 60 * minutes
        self._memory = _Speed()

    def open(self, run: RunInfo) -> None:
        """A run begins, or continues after a rewind."""
        self._memory = _Speed()
        self._keys: tuple[str, ...] = ()

    def state(self) -> dict[str, Any]:
        """See `protocols.Stateful`."""
        return self._memory.plain()

    def set_state(self, state: Mapping[str, Any]) -> None:
        """See `protocols.Stateful`."""
        self._memory = wholly_remembered(_Speed, state)

    def look(self, columns: Columns, now: float) -> Iterable[Alert]:
        """See `protocols.Rule`."""
        phases = self._new_phases(columns)
        memory = self._memory
        if memory.key not in columns.keys("metrics") or (memory.grows and memory.clock != "env_step"):
            return ()
        alerts: list[Alert] = []
        for attempt, own in columns.column(memory.key).by_attempt():
            times = own.times()
            if attempt < memory.attempt:
                continue
            if attempt > memory.attempt:
                memory.attempt, memory.began = attempt, times[0]
                self._begin_phase()
            starts = sorted({bisect_left(times, moment) for moment in phases})
            for first, end in pairwise([0, *starts, len(times)]):
                if first in starts and first < len(times):
                    self._begin_phase()
                alerts += self._take(own, times, first, end)
        return alerts

    def _new_phases(self, columns: Columns) -> list[float]:
        """When keys came that are new."""
        keys = tuple(columns.keys("metrics"))
        memory = self._memory
        if keys == self._keys or len(memory.seen) >= _MOST_KEYS:
            return []
        self._keys = keys
        new = [key for key in keys if key not in memory.seen and not key.startswith(ASIDE)]
        memory.seen = [*memory.seen, *new]
        memory.grows = memory.grows or any(map(_GROWING.search, new))
        firsts = sorted((columns.column(key).where(0)["time"], key) for key in new)
        if not memory.key and firsts:
            known = [key for _time, key in firsts if meaning(key) != key or "loss" in key.lower()]
            memory.key = (known or [key for _time, key in firsts])[0]
            clocks = columns.column(memory.key).where(0)["clocks"]
            memory.clock = "env_step" if "env_step" in clocks else next(iter(clocks), "")
        return [time for time, _key in firsts]

    def _begin_phase(self) -> None:
        memory = self._memory
        memory.since = memory.slow = -1.0
        memory.skipped, memory.rates, memory.best, memory.reported = 0, [], 0.0, False

    def _take(self, column: Column, times: Sequence[float], first: int, end: int) -> Iterator[Alert]:
        """Rows of one phase."""
        memory = self._memory
        readings: Sequence[int] = column.clock(memory.clock)[first:end]
        places: Sequence[int] = range(first, end)
        own = times[first:end]
        if not are_known(readings):
            places = [first + i for i, reading in enumerate(readings) if reading != UNKNOWN]
            own = [times[i] for i in places]
            readings = [reading for reading in readings if reading != UNKNOWN]
        at = 0
        if memory.since < 0 and own:
            memory.since, memory.reading, at = own[0], readings[0], 1
        while (at := bisect_left(own, memory.since + _BLOCK_SECONDS, at)) < len(own):
            rate = (readings[at] - memory.reading) / (own[at] - memory.since)
            memory.since, memory.reading = own[at], readings[at]
            if memory.skipped < _WARM_UP:
                memory.skipped += 1
            elif rate >= 0:  # below: rows of a writer that is behind
                yield from self._judge(rate, column, places[at])
            at += 1

    def _judge(self, rate: float, column: Column, i: int) -> Iterator[Alert]:
        """One more block has ended at row i."""
        memory = self._memory
        memory.rates = [*memory.rates, rate][-_WINDOW:]
        if len(memory.rates) < _WINDOW:
            return
        middle = median(memory.rates)
        memory.best = max(memory.best, middle)
        if middle >= self._share * memory.best:
            memory.slow, memory.reported = -1.0, False
            return
        time = memory.since
        if memory.slow < 0:
            memory.slow = time
        patience = max(self._seconds, min(_MOST_SECONDS, _OF_RUN * (time - memory.began)))
        if time - memory.slow < patience or memory.reported:
            return
        memory.reported = True
        where = column.where(i)
        yield Alert(
            self.name,
            "warn",
            f"{middle:.3g} {memory.clock} a second{at_clock(where['clocks'])}, after {memory.best:.3g} before: slower "
            f"than {self._share:g} times for {(time - memory.slow) / 60:.0f} minutes; usually something grows (memory, "
            "a list, a log), another program uses the machine, or it is throttled: look at the timings and the host",
            {"rate": middle, "best": memory.best, "seconds": time - memory.slow, **where},
            self.source,
            "",
            where["clocks"],
        )
