"""Shared state of an environment's recorders: the user's settings, the counters, the best return so far."""

from __future__ import annotations

import os
from weakref import WeakSet

from rollbook.capture.episodes.auditor import EpisodeAuditor
from rollbook.capture.episodes.infos import component_reader
from rollbook.capture.episodes.schedule import Schedule
from rollbook.capture.episodes.steps import Unstorable
from rollbook.system.bill import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Protocol

    from rollbook.protocols import Recorder, RunInternals

    class Counted(Protocol):
        """The part of a sub-environment's recorder that counts its steps.

        Attributes:
          length: steps of the current episode. counted: how many of them the common count includes.
        """

        counted: int
        length: int
        env_index: int

        def __hash__(self) -> int: ...


_CUT_ALIKE, _MOST_LENGTHS = 3, 1000
"""How many episodes of one environment and length must be cut short before a report; how many lengths are counted."""


class Finished:
    """Data of an episode that has ended.

    Attributes:
      episode_id, total, length: of the reward stream (the total is the return).
      complete: it terminated or was truncated; False if it was left before its end.
      noted: whether `EpisodeSettings.note_finished` has counted it.
    """

    __slots__ = ("complete", "episode_id", "length", "noted", "total")

    def __init__(self, episode_id: str, total: float, length: int, complete: bool) -> None:
        self.episode_id, self.total, self.length, self.complete = episode_id, total, length, complete
        self.noted = False


class EpisodeSettings:
    """Shared settings of the recorders of one environment, or of all sub-environments of a vector.

    Args:
      recorder: a run or a scope.
      steps: which episodes keep their trajectory: see `Schedule.of`. Off by default.
      video: which episodes are rendered and stored as a video, in the same form (used by wrappers that can render).
      info_keys: keys of the info to store: the last value in the episode's row, all values in trajectories.
      components: where the reward components are in the info: see `infos.component_reader`.
      curves: also log `return`, `length`, `counted_env_step` and single running and final numbers as scalars.
      clock: the name of a clock that this recorder sets to its own count of steps. None (the default) leaves the clocks
        to the caller. The own count is always stored as `counted_env_step`.
      most_steps: the largest number of rows of one trajectory.
      held_bytes: memory limit for one trajectory or video that waits for the end of its episode (best, worst, on
        alert).
      stride, offset: how episode numbers are spread over sub-environments in separate processes.
      step_rows: write the data of each step to the table `steps`. If False, it is only summed up: for hosts that record
        transitions, whose rows contain it.
      token: begins every episode's id; created if not given.
      clocks: called for the clocks of each row if the recorder's run does not know them; None asks the run.
      counts: called for (own count of steps, number of the next episode) if several recorders share them; None counts
        here.
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
        self.may_record_video = not self.video.never
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
        self.is_shared = False
        self._era = 0
        self.finished = (0, 0, 0.0)
        self._cut: dict[tuple[int, int], int] = {}
        self._longest = 0
        self.described = False
        self.info_roots = frozenset(key.partition("/")[0] for key in self.info_keys)
        self.reads_all_infos = components not in ("auto", None)
        self.best, self.worst = float("-inf"), float("inf")
        self._internals: RunInternals | None = getattr(recorder, "internals", None)  # a recorder may have no run
        if self._internals is not None and counts is None:
            self._internals.take_counter(self)

    def describe_once(self, texts: Callable[[], Mapping[str, str | None]]) -> None:
        """Store texts about the environment (its spaces, its id) in the run, unless it was described before.

        Args:
          texts: returns key -> text; empty ones are left out. Its failures are counted.
        """
        if self.described:
            return
        self.described = True
        with counted(self.recorder.count, "env_description", "the spaces of an environment could not be stored"):
            described = {key: text for key, text in texts().items() if text}
            self.recorder.record("text", {"key": list(described), "text": list(described.values())}, len(described))

    def note_finished(self, finished: Finished) -> None:
        """Add a complete episode to the shared state, once.

        Args:
          finished: the episode.
        """
        if finished.noted:
            return
        total, length = finished.total, finished.length
        if total > self.best:
            self.best = total
        if total < self.worst:
            self.worst = total
        if length > self._longest:
            self._longest = length
        episodes, steps, totals = self.finished
        self.finished, finished.noted = (episodes + 1, steps + length, totals + total), True

    def note_cut(self, env_index: int, length: int) -> None:
        """A reset has cut an episode short. The third one of a length points to a time limit, which is reported once.

        An episode that ran longer shows that there is no such limit: the program itself resets at regular intervals.

        Args:
          env_index: of the sub-environment: a reset of a vector is one cut of each.
          length: its steps so far.
        """
        if length < self._longest:
            return
        kind = (env_index, length)
        if len(self._cut) < _MOST_LENGTHS or kind in self._cut:
            self._cut[kind] = self._cut.get(kind, 0) + 1
            if self._cut[kind] == _CUT_ALIKE:
                self.recorder.count(
                    "episodes_cut_short",
                    message=f"{_CUT_ALIKE} episodes were reset after {length:,} steps, before RecordEpisodes saw their "
                    "end: they are incomplete, and on no curve. A wrapper that ends episodes, such as TimeLimit, "
                    "belongs inside: RecordEpisodes(TimeLimit(env, …))",
                )

    def chosen(self, schedule: Schedule, finished: Finished, is_marked: bool) -> str:
        """Why an episode is kept at its end ("alert", "best", "worst"), "" if it is not.

        Args:
          schedule: which ones are wanted.
          finished: the episode, not yet added by `note_finished`.
          is_marked: whether it has an alert.
        """
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
        """The number of the next episode, counted over all sub-environments from 0."""
        internals = self._internals
        if internals is not None and internals.era != self._era:
            self.follow_history()
        number, self._next = self._next, self._next + self._stride
        return number if self._counts is None else number + self._counts()[1]

    @property
    def begun(self) -> int:
        """How many episodes have begun, including those of earlier attempts."""
        return self._next

    def take_in(self, recorder: Counted) -> None:
        """Also count the steps of this sub-environment."""
        self._recorders.add(recorder)
        self.is_shared = len(self._recorders) > 1

    def follow_history(self) -> None:
        """Continue counting from the effective history of this scope, after a resume and after each rewind."""
        internals = self._internals
        era = internals.era if internals is not None else 0
        if era == self._era or self._counts is not None:  # the vector informs a sub-process
            return
        self._era = era
        if internals is not None:
            self._next, self.counted_env_step = internals.episodes_before()
        for recorder in self._recorders:
            recorder.counted = recorder.length

    def count(self, recorder: Counted) -> None:
        """Update the count with the steps of one sub-environment."""
        if self.counts_outside:
            return
        if self._counts is not None:
            steps, _ = self._counts()
            if steps is not None:  # the sub-environments step in turn
                self.counted_env_step = steps + recorder.env_index + 1
                return
        steps = recorder.length
        self.counted_env_step, recorder.counted = self.counted_env_step + steps - recorder.counted, steps

    def count_all(self) -> int:
        """The same for all sub-environments, including those with an unfinished episode. Returns the count."""
        for recorder in self._recorders:
            self.count(recorder)
        return self.counted_env_step

    def reading(self, clock: str) -> int | None:
        """The current reading of a clock for the recorder's rows; None if it is not known."""
        own, internals = self.clocks(), self._internals
        if internals is not None and clock not in own:
            return internals.reading(clock)
        known: Mapping[str, int] = {**self.recorder.clocks_now(), **own}
        return known.get(clock)

    def clocks(self) -> dict[str, Any]:
        """Clocks for writing: none (the run's own) unless a clock is set here or comes from elsewhere."""
        readings = dict(self._clocks()) if self._clocks is not None else {}
        if self.clock is not None:
            readings[self.clock] = self.counted_env_step
        return readings
