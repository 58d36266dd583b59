"""What the recorders of an environment have in common: the choices of the user, the counters, the best so far."""

from __future__ import annotations

import os
from weakref import WeakSet

from rollbook.capture.episodes.auditor import EpisodeAuditor
from rollbook.capture.episodes.infos import component_reader
from rollbook.capture.episodes.schedule import Schedule
from rollbook.capture.episodes.steps import Unstorable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Protocol

    from rollbook.protocols import Recorder, RunInternals

    class Counted(Protocol):
        """The recorder of one sub-environment, as far as its steps are counted.

        Attributes:
          length: steps of the episode under way. counted: how many of them the common count knows.
        """

        counted: int
        length: int
        env_index: int

        def __hash__(self) -> int: ...


__all__ = ["EpisodeSettings", "Finished"]


class Finished:
    """What is known of an episode that has ended.

    Attributes:
      episode_id, total, length: of the reward stream (the total is the return).
      complete: it terminated or was truncated; False if it was left off in the middle.
      noted: `EpisodeSettings.note_finished` has it.
    """

    __slots__ = ("complete", "episode_id", "length", "noted", "total")

    def __init__(self, episode_id: str, total: float, length: int, complete: bool) -> None:
        self.episode_id, self.total, self.length, self.complete = episode_id, total, length, complete
        self.noted = False


class EpisodeSettings:
    """What the recorders of one environment, or of all sub-environments of a vector, have in common.

    Args:
      recorder: a run or a scope.
      steps: which episodes keep their trajectory: see `Schedule.of`. Off by default.
      video: which episodes are rendered and kept as a film, likewise (used by wrappers that can render).
      info_keys: keys of the info to keep: the last value in the episode's row, all of them in trajectories.
      components: where the reward components are in the info: see `_infos.component_reader`.
      curves: also log `return`, `length`, `counted_env_step` and single running and final numbers as scalars.
      clock: the name of a clock that this recorder drives with its own count of steps. None (the default) leaves the
        clocks to the caller; the own count is always kept as `counted_env_step`.
      most_steps: the most rows of one trajectory.
      held_bytes: memory for one trajectory or film that waits for its episode to end (best, worst, on alert).
      stride, offset: how episode numbers are spread over sub-environments that run in processes of their own.
      step_rows: write what came at each step to the table `steps`. Without, it is only summed up: for hosts that record
        transitions, whose rows have it.
      token: begins every episode's id; made up when not given.
      clocks: called for the clocks of each row where the recorder's run does not know them; None asks the run.
      counts: called for (own count of steps, number of the next episode) where several recorders share them; None
        counts here.
    """

    def __init__(
        self,
        recorder: Recorder,
        *,
        steps: object = None,
        video: object = None,
        info_keys: Sequence[str] = (),
        components: object = "auto",
        curves: bool = True,
        clock: str | None = None,
        most_steps: int = 1_000_000,
        held_bytes: int = 64 * 1024 * 1024,
        stride: int = 1,
        offset: int = 0,
        step_rows: bool = True,
        token: str | None = None,
        clocks: Callable[[], Mapping[str, object]] | None = None,
        counts: Callable[[], tuple[int | None, int]] | None = None,
    ) -> None:
        self.recorder = recorder
        self.steps, self.video = Schedule.of(steps), Schedule.of(video)
        self.info_keys, self.components = tuple(info_keys), component_reader(components)
        self.curves, self.clock, self.step_rows = curves, clock, step_rows
        self.most_steps, self.held_bytes = int(most_steps), int(held_bytes)
        self.token = token if token is not None else os.urandom(4).hex()
        self.unstorable = Unstorable(recorder)
        self.auditor = EpisodeAuditor(recorder)
        self._clocks, self._counts = clocks, counts
        self._stride, self._next = max(1, stride), offset
        self.counted_env_step = 0
        self.counts_outside = False
        self._recorders: WeakSet[Counted] = WeakSet()
        self._era = 0
        self.finished = (0, 0, 0.0)
        self.described = False
        self.info_roots = frozenset(key.partition("/")[0] for key in self.info_keys)
        self.reads_all_infos = components not in ("auto", None)
        self.best, self.worst = float("-inf"), float("inf")

    def note_finished(self, finished: Finished) -> None:
        """Take a complete episode into what is known of all of them, once."""
        self.best, self.worst = max(self.best, finished.total), min(self.worst, finished.total)
        if finished.noted:
            return
        episodes, steps, total = self.finished
        self.finished, finished.noted = (episodes + 1, steps + finished.length, total + finished.total), True

    def chosen(self, schedule: Schedule, finished: Finished, is_marked: bool) -> str:
        """Why an episode is kept after the fact ("alert", "best", "worst"), "" if it is not."""
        if schedule.on_alert and is_marked:
            return "alert"
        if not finished.complete:
            return ""
        if schedule.best and finished.total > self.best:
            return "best"
        if schedule.worst and finished.total < self.worst:
            return "worst"
        return ""

    def next_number(self) -> int:
        """The number of an episode that begins, counted over all sub-environments from 0."""
        self.follow_history()
        number, self._next = self._next, self._next + self._stride
        return number if self._counts is None else number + self._counts()[1]

    @property
    def begun(self) -> int:
        """How many episodes have begun, those of earlier lives included."""
        return self._next

    def take_in(self, recorder: Counted) -> None:
        """Have the steps of one more sub-environment counted."""
        self._recorders.add(recorder)

    def follow_history(self) -> None:
        """After a resume, and wherever the run goes back, counting goes on from what its history has of this scope."""
        internals: RunInternals | None = getattr(self.recorder, "internals", None)  # a recorder need not have a run
        era = internals.era if internals is not None else 0
        if era == self._era or self._counts is not None:  # a sub-process is told by the vector
            return
        self._era = era
        if internals is not None:
            self._next, self.counted_env_step = internals.episodes_before()
        for recorder in self._recorders:
            recorder.counted = recorder.length

    def count(self, recorder: Counted) -> None:
        """Bring the count up to date with the steps of one sub-environment."""
        if self.counts_outside:
            return
        if self._counts is not None:
            steps, _ = self._counts()
            if steps is not None:  # the sub-environments step one after the other
                self.counted_env_step = steps + recorder.env_index + 1
                return
        steps = recorder.length
        self.counted_env_step, recorder.counted = self.counted_env_step + steps - recorder.counted, steps

    def count_all(self) -> None:
        """The same with all of them: whose episodes are still under way have made steps, too."""
        for recorder in self._recorders:
            self.count(recorder)

    def clocks(self) -> dict[str, Any]:
        """Clocks to write with: none (the run's own count) unless a clock is driven here or comes from elsewhere."""
        readings = dict(self._clocks()) if self._clocks is not None else {}
        if self.clock is not None:
            readings[self.clock] = self.counted_env_step
        return readings
