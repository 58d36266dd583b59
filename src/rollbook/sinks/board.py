"""The content and look of a run's live view: `Board` takes rows, `lines` and `compact` turn it into text.

Nothing here depends on a terminal: `lines` is a pure function of a board and a size. The terminal sink and `rollbook
watch` draw its result.
"""

from __future__ import annotations

import math
from collections import deque

from rollbook.schema.tables import timing_name
from rollbook.sinks._trend import Trend

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from rollbook.protocols import Row

RATE_SECONDS = 30.0
"""Steps per second are those of this many last seconds."""

SHORTEST_RATE_SECONDS = 0.5

MEAN_SECONDS = 10
MEAN_OF = 100
"""A key that comes as often as the view is drawn is shown as the mean of this many last seconds, over at most this many
values."""

REWOUND_AFTER = 20
"""After this many consecutive rows with lower readings of a clock, training counts as rewound."""

MOST_KEYS = 2_000
"""Further keys are not followed, so that memory stays bounded."""


class Key:
    """One key: its last value, the mean of its latest values, and the shape of its curve so far.

    Attributes:
      is_frequent: whether it comes at least as often as the view is drawn.
    """

    __slots__ = ("_drawings", "_grows", "_recent", "_since_drawn", "is_frequent", "last", "trend")

    def __init__(self) -> None:
        self.last = math.nan
        self.trend = Trend()
        self.is_frequent = False
        self._grows = True
        self._recent: deque[tuple[float, float]] = deque(maxlen=MEAN_OF)
        self._since_drawn = self._drawings = 0

    def take(self, value: float, time: float, is_count: bool = False) -> None:
        """Take the next value; `is_count` means that it was logged as an integer."""
        self._grows = self._grows and is_count and not value < self.last
        self.last = value
        self._recent.append((time, value))
        self._since_drawn += 1
        self.trend.take(value)

    def drawn(self) -> None:
        """The view has been drawn."""
        self._drawings = self._drawings + 1 if self._since_drawn else 0
        self.is_frequent = self.is_frequent or self._since_drawn > 1 or self._drawings >= 3
        self._since_drawn = 0

    @property
    def is_mean(self) -> bool:
        """Whether the shown number is a mean: true for a frequent key, unless its values are integers that never fall
        (a count)."""
        return self.is_frequent and not self._grows

    @property
    def shown(self) -> float:
        """The number to show: the last one, or the mean of the last ten seconds."""
        if not self.is_mean:
            return self.last
        since = self._recent[-1][0] - MEAN_SECONDS
        finite = [value for time, value in self._recent if time > since and math.isfinite(value)]
        return math.fsum(value / len(finite) for value in finite) if finite else self.last


class Board:
    """The data for a live view of one run, in bounded memory.

    Args:
      title: "project/name".
      total: clock -> where training is to end; the first one makes the progress bar.
      x: the clock to measure speed with, if `total` names none.
      telemetry: also follow rollbook's own metrics (`rollbook/…`).

    Attributes:
      clocks: latest reading of each clock.
      keys: full key -> `Key`, in order of first appearance.
      stages: stage -> seconds spent in it so far, outermost stages only.
      started, latest: unix times of the first and the last row, NaN before there is one.
      status: "" while it runs, else its final status.
    """

    def __init__(
        self, title: str = "", *, total: Mapping[str, int] | None = None, x: str = "", telemetry: bool = False
    ) -> None:
        self.title = title
        self.total: dict[str, int] = {}
        self.aim_at(total or {})
        self._telemetry = telemetry
        self.x = x
        self.attempt = 0
        self.status = ""
        self.clocks: dict[str, int] = {}
        self.keys: dict[str, Key] = {}
        self.stages: dict[str, float] = {}
        self.started = self.latest = math.nan
        self._readings: dict[str, deque[tuple[float, int]]] = {}
        self._behind: dict[str, int] = {}  # clock -> consecutive rows below the last reading

    def aim_at(self, total: Mapping[str, int]) -> None:
        """Set where training is to end; numbers below 1 are ignored."""
        self.total = {clock: int(end) for clock, end in total.items() if end and int(end) > 0}

    def take(self, row: Row) -> bool:
        """Take a row or a mark. False if it changed nothing that is shown."""
        if row.values and not self._telemetry and all(key.startswith("rollbook/") for key in row.values):
            return False
        if row.attempt > self.attempt:
            self.attempt = row.attempt
            self.clocks, self._readings, self._behind = {}, {}, {}
            self.status = ""
        if not math.isfinite(self.started):
            self.started = row.time
        self.latest = row.time if not self.latest > row.time else self.latest
        if row.mark:
            self.status = (row.keys[0] if row.keys else "finished") if row.mark == "final" else self.status
            return True
        for clock, reading in row.clocks.items():
            self._read(clock, row.time, reading)
        for key, value in row.values.items():
            if isinstance(value, (float, int)) and (self._telemetry or not key.startswith("rollbook/")):
                self._take(key, value, row.time)
        return True

    def drawn(self) -> None:
        """The view has been drawn: from now on, keys that come more often than this are shown as means."""
        for key in self.keys.values():
            key.drawn()

    @property
    def main_clock(self) -> str:
        """The clock that measures progress and speed; "" if no row has had one."""
        for clock in (*self.total, self.x, "env_step"):
            if clock in self.clocks:
                return clock
        return next(iter(self.clocks), "")

    def steps_per_second(self, clock: str = "") -> float:
        """The speed of a clock over the last half minute; NaN while unknown."""
        readings = self._readings.get(clock or self.main_clock)
        if not readings or readings[-1][0] - readings[0][0] < SHORTEST_RATE_SECONDS:
            return math.nan
        (start, first), (end, last) = readings[0], readings[-1]
        return (last - first) / (end - start)

    def share_done(self) -> float:
        """How much of the total is done, from 0 to 1; NaN without one."""
        clock = self.main_clock
        if clock not in self.total:
            return math.nan
        return min(1.0, max(0.0, self.clocks[clock] / self.total[clock]))

    def seconds_left(self) -> float:
        """The time to the end of the total at the present speed; NaN while unknown."""
        clock = self.main_clock
        speed = self.steps_per_second(clock)
        if clock not in self.total or not speed > 0:
            return math.nan
        return max(0, self.total[clock] - self.clocks[clock]) / speed

    def stage_shares(self) -> dict[str, float]:
        """The share of time spent in each stage, largest first, and the rest as "other"; adds up to 1.

        Shares are of the time between the first and the last row, or of all stages together if they overlap.
        """
        spent = math.fsum(self.stages.values())
        if not spent > 0:
            return {}
        whole = max(spent, self.latest - self.started)
        shares = {stage: seconds / whole for stage, seconds in self.stages.items()}
        shares = dict(sorted(shares.items(), key=lambda item: -item[1]))
        rest = 1 - math.fsum(shares.values())
        return {**shares, "other": rest} if rest > 0.005 else shares

    def _take(self, key: str, value: float, time: float) -> None:
        try:
            number = float(value)
        except OverflowError:
            number = math.inf if value > 0 else -math.inf
        stage = timing_name(key)
        if stage is not None:
            if "/" not in stage and number > 0 and math.isfinite(number):  # inner spans are part of the outer one
                self.stages[stage] = self.stages.get(stage, 0.0) + number
            return
        entry = self.keys.get(key)
        if entry is None:
            if len(self.keys) >= MOST_KEYS:
                return
            entry = self.keys[key] = Key()
        entry.take(number, time, isinstance(value, int))
        if isinstance(value, int) and abs(value) < 2**53:
            entry.last = value  # shown as an integer

    def _read(self, clock: str, time: float, reading: int) -> None:
        readings = self._readings.setdefault(clock, deque())
        if reading < self.clocks.get(clock, reading):
            # One row with a lower reading is an evaluation of an older checkpoint; many are a rewind.
            self._behind[clock] = self._behind.get(clock, 0) + 1
            if self._behind[clock] < REWOUND_AFTER:
                return
            readings.clear()
        self._behind[clock] = 0
        self.clocks[clock] = reading
        if readings and time < readings[-1][0]:
            return
        if len(readings) > 1 and time - readings[-2][0] < 0.1:
            readings[-1] = (time, reading)  # many rows a second: one point per tenth is enough
        else:
            readings.append((time, reading))
        while len(readings) > 2 and time - readings[0][0] > RATE_SECONDS:
            readings.popleft()
