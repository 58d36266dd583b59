"""Episodes: returns, lengths, running and final data, rewards by component and agent, trajectories on a schedule.

    recorder = EpisodeRecorder(run.scope("train"), steps="first, every 100")
    recorder.begin(seed=3, obs=obs)
    recorder.step(1.0, terminated, truncated, info, action=action, next_obs=obs)     # the episode ends by itself

This core is independent of frameworks. The gymnasium and PettingZoo wrappers and the adapters use it. Each finished
episode is written at once as one row of `episodes`. Nothing here raises into the loop.
"""

from __future__ import annotations

import json
import time

from rollbook.capture._ledger import TOTAL, RewardLedger
from rollbook.capture._rewards import read_reward
from rollbook.capture.episodes.infos import EpisodeInfos
from rollbook.capture.episodes.settings import EpisodeSettings, Finished
from rollbook.capture.episodes.trajectory import Trajectory
from rollbook.capture.episodes.videos import EpisodeVideos
from rollbook.capture.storable import UNSTORABLE, plain
from rollbook.errors import LoggingFailed
from rollbook.journal import Receipt
from rollbook.system.guard import is_foreign
from rollbook.values import scalar_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from rollbook.capture._ledger import Tally
    from rollbook.protocols import Recorder

__all__ = ["EpisodeRecorder", "EpisodeSettings"]


TOTAL_FINAL = ("", TOTAL, "final")
"""The ledger's key of the reward that the agent gets."""


class _End:
    """The end of an episode in progress. If an outside exception interrupts it, the next call continues it."""

    __slots__ = ("curves", "finished", "row", "sums", "terminated", "truncated", "why_kept")

    def __init__(self, finished: Finished, terminated: bool, truncated: bool) -> None:
        self.finished, self.terminated, self.truncated = finished, terminated, truncated
        self.why_kept: str | None = None
        self.row, self.sums = Receipt(), Receipt()
        self.curves = finished.complete


class EpisodeRecorder:
    """Records the episodes of one environment, one after the other.

    Call `begin` at a reset and `step` for each step. An episode ends with the step that terminates or truncates it, or
    with `end`. A `begin` during an episode writes the part so far with `complete` = False. Not thread-safe: one
    recorder belongs to one environment.

    Args:
      recorder: a run or a scope; or the `EpisodeSettings` that several recorders share.
      env_index: which sub-environment this is.
      ledger: a `RewardLedger` that gets the other stages of the reward.
      settings: see `EpisodeSettings`.
    Attributes:
      total, length: of the current episode. A wrapper with no other data may add to them directly if `plain_steps` is
        true.
      episode_id: of the current episode, "" between episodes.
      last: the last finished episode, or None.
      plain_steps: whether a step with a float as reward and no info only needs an addition to `total` and `length`.
      videos: of the current episode; wrappers add rendered frames to `videos.rendered`.
      drives: whether each step advances a clock of the run, see `drive_clock`.
      check: called with the recorder and the info of an episode's last step, while the episode can still be kept.
        Wrappers that know the reports in that info set it, and it calls `audit`. It must not reference the environment,
        which would then never be released.
    """

    def __init__(
        self,
        recorder: Recorder | EpisodeSettings,
        *,
        env_index: int = 0,
        ledger: RewardLedger | None = None,
        **settings: Any,
    ) -> None:
        self.settings = recorder if isinstance(recorder, EpisodeSettings) else EpisodeSettings(recorder, **settings)
        self._recorder = self.settings.recorder
        self._clock = getattr(self._recorder, "clock", None)
        self.drives = self.settings.clock is not None
        self.env_index = env_index
        self._given_ledger = ledger is not None
        self._ledger = ledger if ledger is not None else RewardLedger(self._recorder)
        self.videos = EpisodeVideos(self.settings)
        self._infos = EpisodeInfos(self.settings.info_keys, self.settings.unstorable, self.videos.add)
        self._trajectory = self._new_trajectory()
        self._count = 0
        self.last: Finished | None = None
        self.episode_id = ""
        self.total: Any = 0.0
        self.length = 0
        self.plain_steps = False
        self.number, self._began = 0, 0.0
        self._seed: object = None
        self._options: object = None
        self._version: int | None = None
        self.check: Callable[[EpisodeRecorder, Mapping[str, object]], object] | None = None
        self._reset()
        self.settings.take_in(self)

    def _new_trajectory(self) -> Trajectory:
        return Trajectory(self.settings)

    def _reset(self) -> None:
        self.total, self.length, self.counted = 0.0, 0, 0
        self._end_begun: _End | None = None
        self._marked = self._entered = self._ending = self.plain_steps = False
        self._parts: dict[str, Tally] = {}

    # -- one episode

    def begin(
        self,
        *,
        seed: int | None = None,
        options: object = None,
        obs: object = UNSTORABLE,
        env_index: int | None = None,
    ) -> None:
        """Begin an episode.

        Args:
          seed, options: the arguments of the environment's reset.
          obs: the first observation. Without it, trajectories begin with the `obs` of the first step.
          env_index: which sub-environment this is. None: as before.
        """
        try:
            self._begin(seed, options, obs, env_index)
        except Exception as err:
            self.failed(err)

    def _begin(self, seed: int | None, options: object, obs: object, env_index: int | None) -> None:
        if self.episode_id and self.length:
            self.settings.note_cut(self.env_index, self.length)
            self._end(False, False, complete=False)
        settings = self.settings
        if env_index is not None:
            self.env_index = env_index
        self.episode_id = ""
        self._reset()
        self.number = number = settings.next_number()
        episode_id = f"{settings.token}.{self.env_index}.{self._count}"
        self._count += 1
        self._seed, self._options = seed, options
        self._began = time.perf_counter()
        self._version = settings.reading("policy_version")
        if not self._infos.is_empty:
            self._infos.begin()
        self._ledger.begin()
        self._trajectory.begin(episode_id, number, obs)
        self.videos.begin(number)
        self._entered = self._given_ledger
        self.episode_id = episode_id  # after what belongs to it: an interrupted beginning starts again
        self.plain_steps = self._needs_no_more()

    def step(
        self,
        reward: object,
        terminated: object = False,
        truncated: object = False,
        info: Mapping[str, object] | None = None,
        *,
        obs: object = UNSTORABLE,
        action: object = UNSTORABLE,
        next_obs: object = UNSTORABLE,
        components: Mapping[str, object] | None = None,
        extra: Mapping[str, object] | None = None,
    ) -> str:
        """One step of the environment. Returns the episode's id if the step ended it, else "".

        Args:
          reward: a number; or a mapping of agent -> number; or a vector, whose parts become components "0", "1", …
          terminated, truncated: as the environment returned them; either ends the episode.
          info: as the environment returned it. None: empty.
          obs: the observation on which the action was chosen; by default the `next_obs` of the previous step.
          action: the action.
          next_obs: the observation after the action; also the `obs` of the next step.
          components: reward by component; by default taken from the info.
          extra: further columns of the step's row in the trajectory (log-probability, value estimate, …).
        """
        try:
            return self._step(reward, terminated, truncated, info, obs, action, next_obs, components, extra)
        except Exception as err:
            self.failed(err)
            return ""

    def _step(
        self,
        reward: object,
        terminated: object,
        truncated: object,
        info: Mapping[str, object] | None,
        obs: object,
        action: object,
        next_obs: object,
        components: Mapping[str, object] | None,
        extra: Mapping[str, object] | None,
    ) -> str:
        if not self.episode_id or self._end_begun is not None:
            self._begin(None, None, obs, None)
        t = self.length
        number = reward if type(reward) is float else self._number_of(reward)
        before = self.total
        self.total, self.length = before + number, t + 1
        cells = self._from_info(info, components) if info or components else None
        if self._entered:
            if t and not self._given_ledger and TOTAL_FINAL not in self._ledger:
                self._ledger.catch_up("final", float(before), t)  # the components appeared after some steps
            whole = self._parts.get(TOTAL)
            if whole is None:
                whole = self._parts[TOTAL] = self._ledger.tally("", TOTAL, "final")
            whole.add(number)
        if self.drives:
            self.drive_clock()
        trajectory = self._trajectory
        if trajectory.in_full:
            trajectory.add(t, number, terminated, truncated, info, obs, action, next_obs, cells, extra)
        elif cells and self.settings.step_rows:
            trajectory.add_late(t, cells)
        if terminated or truncated:
            if self.check is not None:
                self._check(info)
            return self._end(bool(terminated), bool(truncated), complete=True)
        self.plain_steps = self._needs_no_more()
        return ""

    def end(self, terminated: bool = False, truncated: bool = False) -> str:
        """End the current episode, for frameworks that know its end. Returns its id, "" if there was none.

        Args:
          terminated, truncated: how it ended. Both False: it is incomplete.
        """
        try:
            return self._end(bool(terminated), bool(truncated), complete=bool(terminated or truncated))
        except Exception as err:
            self.failed(err)
            return ""

    def mark(self) -> None:
        """Mark this episode (or a new one, if none is open) as having an alert; the schedule may keep such episodes."""
        if not self.episode_id:
            self.begin()
        self._marked = True

    def audit(
        self,
        reported: tuple[float | None, int | None] | None,
        *,
        source: str,
        autoreset: str = "",
        compare_return: bool = True,
        compare_length: bool = True,
    ) -> str:
        """Compare the last finished episode with the report of `source`; see `EpisodeAuditor.check`.

        Called from `check`, it checks the episode that is ending, and a difference marks that episode.

        Args:
          reported: (return, length) from `source`; None for a missing value; None as a whole if there is no report.
          source: who reported, in words for the alert.
          autoreset: the vector environment's mode, for the evidence.
          compare_return, compare_length: False if a wrapper in between changes rewards, or the number of steps.
        Returns:
          The problem in a word or two, "" if there is none.
        """
        ending = self._ending
        if not ending and self.last is None:
            return ""
        if ending or self.last is None:
            number = scalar_of(self.total)
            own, episode_id = (float("nan") if number is None else float(number), self.length), self.episode_id
        else:
            own, episode_id = (float(self.last.total), self.last.length), self.last.episode_id
        wrong = self.settings.auditor.check(
            episode_id,
            own,
            reported,
            source=source,
            env_index=self.env_index,
            autoreset=autoreset,
            compare_return=compare_return,
            compare_length=compare_length,
        )
        if wrong and ending:
            self._marked = True
        return wrong

    def flush(self) -> None:
        """Write the steps in memory, and the current episode as incomplete. Called at close."""
        if self.episode_id and self.length:
            self.end()
        self.count_steps()

    def failed(self, err: Exception) -> None:
        """Count an internal failure and report it once. Exceptions from outside pass through.

        Args:
          err: the failure.
        Raises:
          LoggingFailed: strict=True only: the failure.
        """
        if isinstance(err, LoggingFailed) or is_foreign(err):
            raise err
        if self._end_begun is not None:  # an internal failure would repeat
            self.episode_id = ""
        self._recorder.count(
            "episode_recording",
            1,
            f"recording an episode failed with {type(err).__name__}: {err}; training is not affected, this step or "
            "episode may be missing from the run",
        )

    def drive_clock(self) -> None:
        """Set the clock of `EpisodeSettings(clock=…)` to the number of steps so far."""
        settings = self.settings
        settings.count(self)
        if self._clock is not None and settings.clock is not None:
            self._clock(**{settings.clock: settings.counted_env_step})

    def count_steps(self) -> None:
        """Update the common count of steps, which includes the other sub-environments."""
        settings = self.settings
        if settings.is_shared:
            settings.count_all()
        settings.count(self)

    def write_out(self) -> None:
        """Write the steps in memory during an episode. Steps that are held for a choice at its end stay in memory.

        For hosts that pass steps in pieces, and may die between two of them.
        """
        try:
            self._trajectory.write_out()
        except Exception as err:
            self.failed(err)

    # -- inside

    def _needs_no_more(self) -> bool:
        """Whether this episode's steps only need to be summed up: no trajectory, no video, no parts of the reward."""
        return not (self._entered or self._trajectory.in_full or self.videos.rendered is not None)

    def _check(self, info: Mapping[str, object] | None) -> None:
        self._ending = True
        try:
            if self.check is not None:
                self.check(self, info or {})
        except Exception as err:
            self.failed(err)
        finally:
            self._ending = False

    def _number_of(self, reward: Any) -> float:
        if hasattr(reward, "items") and hasattr(reward, "keys"):
            self._entered = True
            together = 0.0
            for agent, value in reward.items():
                together += self._enter_reward(value, str(agent))
            return together
        return self._enter_reward(reward)

    def _enter_reward(self, reward: object, agent: str = "") -> float:
        """An agent's reward as a number. Enters its components, and the reward of a named agent, into the ledger."""
        number, parts = read_reward(reward)
        if number is None:
            number = float("nan")
            self._recorder.count(
                "odd_reward",
                1,
                f"the reward {reward!r:.80} is a {type(reward).__name__}, neither a number nor a vector of numbers; it "
                "counts as NaN, and the episode is kept",
            )
        if agent:
            self._ledger.add("final", number, agent=agent)
        for index, part in enumerate(parts):
            self._ledger.add("final", part, agent=agent, component=str(index))
        self._entered = self._entered or bool(parts)
        return number

    def _from_info(
        self, info: Mapping[str, Any] | None, components: Mapping[str, Any] | None
    ) -> dict[str, object] | None:
        cells = self._infos.take(info) if info else None
        if components is None and info and self.settings.components is not None and self.length:
            components = self.settings.components(info)
        if components:
            self._entered = True
            parts = self._parts
            for name, value in components.items():
                number = value if type(value) is float else scalar_of(value)
                if number is not None:
                    tally = parts.get(name)
                    if tally is None:
                        tally = parts[name] = self._ledger.tally("", str(name), "final")
                    tally.add(float(number))
                elif hasattr(value, "keys"):  # component -> agent -> number
                    for agent, part in value.items():
                        self._ledger.add("final", part, agent=str(agent), component=str(name))
        return cells

    def _end(self, terminated: bool, truncated: bool, *, complete: bool) -> str:
        if not self.episode_id:
            return ""
        seconds = time.perf_counter() - self._began
        settings, recorder = self.settings, self._recorder
        # An end that was interrupted begins again here: what it has done already is noted in `end`.
        end = self._end_begun
        if end is None:
            total = self.total if type(self.total) is float else scalar_of(self.total)
            total = float("nan") if total is None else float(total)
            end = _End(Finished(self.episode_id, total, self.length, complete), terminated, truncated)
            self._end_begun, self.plain_steps = end, False
        finished = end.finished
        self.count_steps()
        clocks, has_sums = settings.clocks(), len(self._ledger) > 0
        if end.why_kept is None:
            if has_sums and self._ledger.check(finished.episode_id):
                self._marked = True
            end.why_kept = self._trajectory.finish(finished, self._marked)
        row: dict[str, object] = {
            "episode_id": [finished.episode_id],
            "return": [finished.total],
            "length": [finished.length],
            "seconds": [seconds],
            "terminated": [end.terminated],
            "truncated": [end.truncated],
            "complete": [finished.complete],
            "seed": [None if self._seed is None else scalar_of(self._seed)],
            "env_index": [self.env_index],
            "number": [self.number],
            "options": [None if self._options is None else self._options_text()],
            "counted_env_step": [settings.counted_env_step],
            "policy_version_at_start": [self._version],
            "steps_kept": [end.why_kept],
        }
        if not self._infos.is_empty:
            row.update({name: [value] for name, value in self._infos.columns().items()})
        recorder.record("episodes", row, 1, receipt=end.row, **clocks)
        if has_sums:
            columns, n = self._ledger.columns(finished.episode_id)
            recorder.record("rewards", columns, n, receipt=end.sums, **clocks)
        if settings.curves and end.curves:
            end.curves = False
            recorder.log(self._curves(finished, has_sums), **clocks)
        if self.videos.has_frames:
            self.videos.finish(finished, self._marked, clocks)
        if finished.complete:
            settings.note_finished(finished)
        self.last, self.episode_id = finished, ""
        self.total, self.length, self.counted, self._end_begun = 0.0, 0, 0, None  # the next beginning resets the rest
        if self._trajectory.in_full:
            self._trajectory.reset()
        return finished.episode_id

    def _curves(self, finished: Finished, has_sums: bool) -> dict[str, float]:
        values: dict[str, Any] = {
            "return": finished.total,
            "length": finished.length,
            "counted_env_step": self.settings.counted_env_step,
        }
        if not self._infos.is_empty:
            values.update(self._infos.scalars())
        if has_sums:
            values.update(self._ledger.scalars())
        return values

    def _options_text(self) -> str | None:
        options = plain(self._options)
        if options is UNSTORABLE:
            self.settings.unstorable("options", self._options)
            return None
        return json.dumps(options.tolist() if hasattr(options, "tolist") else options, default=repr)

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("an EpisodeRecorder belongs to one process; pass the run or the scope, and make one there")
