"""Counters: LightZero's and DI-engine's own counts of iterations and steps, which restart at 0 in every attempt of a
run.

A resumed training loads weights and counts from 0 again. The run's clocks continue: their last values are added.
"""

from __future__ import annotations

from rollbook.system.bill import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from rollbook.run.run import Run

_CLOCKS = ("gradient_step", "env_step")


def as_given(clock: str, reading: int) -> int:
    """A value from a loop that continues its own count."""
    del clock
    return reading


class Counters:
    """Converts values of their counters to values of the run's clocks.

    The first value of a counter decides: 0 means that it restarted, any other value that it continues (DI-engine's
    learner takes the iteration from a checkpoint that its own hook loads).

    Args:
      run: the Run. In its first attempt nothing is added.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._offsets: dict[str, int] = {}
        self._last: dict[str, int] = {}

    @property
    def has_begun(self) -> bool:
        """Whether the training has counted anything."""
        return bool(self._offsets)

    def __call__(self, clock: str, reading: int) -> int:
        """The value of the run's clock."""
        if clock not in self._offsets:
            self._begin(clock, int(reading))
        return int(reading) + self._offsets[clock]

    def _begin(self, clock: str, reading: int) -> None:
        if not self._last:  # not earlier: the training may have loaded a checkpoint, and the run gone back to it
            self._last = dict.fromkeys(_CLOCKS, 0)
            if self._run.resumed:
                with counted(self._run.count, "lightzero_resume", "the clocks before the resume could not be read"):
                    self._last = _last_readings(self._run.internals.latest())
        last = self._last[clock]
        starts_again = reading == 0 or (clock == "env_step" and self._offsets.get("gradient_step", 0) > 0)
        self._offsets[clock] = last if starts_again else 0
        if self._offsets[clock]:
            self._run.clock(**{clock: last})
            self._run.internals.continue_clocks(clock)


def _last_readings(latest: Mapping[str, tuple[object, dict[str, int], float]]) -> dict[str, int]:
    """The final clocks of the effective history: the iteration after the last, and the last environment step."""
    last = dict.fromkeys(_CLOCKS, 0)
    for key, (_value, clocks, _time) in latest.items():
        for clock in _CLOCKS:
            reading = clocks.get(clock)
            if reading is not None:
                # A learner writes its row of iteration n after the iteration; other rows come before it.
                done = clock == "gradient_step" and key.startswith("learner")
                last[clock] = max(last[clock], reading + done)
    return last
