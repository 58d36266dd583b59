"""Records a vector of gymnasium environments: publishes the run's clocks and checks the sums.

In a `SyncVectorEnv` the sub-environments are wrapped in place; those of `record_envs` record themselves. For any other
vector, or with wrappers in between that change rewards, recording uses the merged infos.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy
from gymnasium.vector import VectorEnv, VectorWrapper
from gymnasium.vector.utils import iterate

from rollbook.capture._rewards import read_rewards
from rollbook.capture.episodes.recorder import EpisodeRecorder, EpisodeSettings
from rollbook.capture.gym.env_group import EnvGroup
from rollbook.capture.gym.envs import RecordedEnv
from rollbook.capture.gym.merged_infos import info_of, is_reported, reported_of
from rollbook.capture.gym.single import RecordEpisodes, without_recording
from rollbook.capture.gym.wrappers import comparable, describe_env, reporter
from rollbook.capture.storable import UNSTORABLE
from rollbook.errors import BadInput, LoggingFailed
from rollbook.system.guard import is_foreign
from rollbook.values.arrays import host_array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.protocols import Recorder
    from rollbook.values.array_types import NDArray


class RecordVectorEpisodes(VectorWrapper):
    """Records the episodes of a vector of environments. The vector behaves as before.

    Arguments as in `gymnasium.vector.VectorWrapper` for all methods of a vector.

    Args:
      env: a `VectorEnv` with any autoreset mode.
      recorder: a run or a scope.
      inside: record inside the sub-environments of a `SyncVectorEnv`. None: only if no wrapper in between may change
        rewards or lengths.
      settings: see `rollbook.capture.episodes.EpisodeSettings`. With `record_envs`, the settings given there apply.
    Raises:
      BadInput: not a `VectorEnv`, or settings that cannot be used.
    """

    def __init__(self, env: Any, recorder: Recorder, *, inside: bool | None = None, **settings: Any) -> None:
        if not isinstance(env, VectorEnv):
            raise BadInput(f"RecordVectorEpisodes takes a VectorEnv of gymnasium; it was given {type(env).__name__}.")
        super().__init__(env)
        n = self._n = env.num_envs
        self._recorder = recorder
        self._mode = _mode_of(env)
        self._settings = EpisodeSettings(recorder, **settings)
        self._group = _group_of(env)
        self._inner = True
        if self._group is None:
            may = inside if inside is not None else comparable(env, env.unwrapped) == (True, True)
            self._inner = may and _wrap_inside(env, self._settings)
        if self._group is not None and self._group.at_home and _subs(env):
            self._settings = self._group.settings_for(0)
        self._subs = [_recorder_of(sub) for sub in _subs(env)] if self._inner else []
        self._recorders = [] if self._inner else [EpisodeRecorder(self._settings, env_index=i) for i in range(n)]
        self._reporter, self._reports, self._stats_key = reporter(env)
        self._compare = comparable(env, self._reporter)
        self._compare_inside = comparable(env, env.unwrapped)
        if self._reports:
            self._settings.auditor.expects(self._reports)
        # Counts here, for all sub-environments, the steps that their recorders are not called for.
        self._settings.counts_outside = self._counts_here = not self._subs
        self._totals = numpy.zeros(n)
        self._now, self._starts = 0, [0] * n
        self._counts = numpy.full(n, -1)
        self._over = numpy.zeros(n, dtype=bool)
        self._some_over = False
        self._slow: set[int] = set()
        self._sums = (0, 0, 0.0)
        describe_env(env, self._settings)

    # -- the environment's face

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset all sub-environments, or those that `options["reset_mask"]` names."""
        mask = options.get("reset_mask") if options else None  # gymnasium removes it from the options
        mask = None if mask is None else numpy.array(mask, dtype=bool)
        asked = {name: value for name, value in options.items() if name != "reset_mask"} if options else None
        self._publish()
        result = self.env.reset(seed=seed, options=options)
        try:
            self._note_reset(result[0], seed, asked, mask)
        except Exception as err:
            self._failed(err)
        return result

    def step(self, actions: object) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step all sub-environments and record the rewards."""
        self._publish()
        result = self.env.step(actions)
        try:
            self._note_step(result, actions)
        except Exception as err:
            self._failed(err)
        return result

    def close(self, **kwargs: object) -> None:
        """Write the rows in memory, compare the sums with those of the sub-environments, and close."""
        try:
            self._note_close()
        except Exception as err:
            self._failed(err)
        super().close(**kwargs)

    # -- noting

    def _publish(self) -> None:
        if self._group is not None and not self._subs:
            self._settings.follow_history()
            self._group.shared.write(self._recorder.clocks_now())
            self._group.shared.write_counts(self._settings.counted_env_step, self._settings.begun)

    def _note_reset(
        self, obs: object, seed: int | Sequence[int | None] | None, options: object, mask: NDArray | None
    ) -> None:
        which = range(self._n) if mask is None else numpy.flatnonzero(mask).tolist()
        for i in which:
            if not self._inner:
                self._catch_up(i)
            self._totals[i], self._starts[i], self._over[i] = 0.0, self._now, False
            self._counts[i] += 1
        if self._inner:
            return
        seeds = [seed + i for i in range(self._n)] if isinstance(seed, int) else seed
        each = self._each_obs(obs)
        for i in which:
            self._begin(i, each, None if seeds is None else seeds[i], options)

    def _note_step(self, result: tuple[Any, ...], actions: object) -> None:
        obs, rewards, terminations, truncations, infos = result
        rewards, parts = read_rewards(rewards, self._n)
        if type(terminations) is not numpy.ndarray or type(truncations) is not numpy.ndarray:
            terminations, truncations = host_array(terminations), host_array(truncations)
        over = numpy.logical_or(terminations, truncations)
        some_over = 1 in over.tobytes()  # a quarter of the cost of any() for a few environments
        resets = self._over if self._some_over and self._mode == "NEXT_STEP" else None
        if not self._inner:
            of_each = rewards.tolist() if parts is None else parts
            self._note_around(
                obs, of_each, terminations, truncations, infos, actions, over, resets, some_over or parts is not None
            )
        elif self._counts_here:
            self._settings.counted_env_step += self._n - (0 if resets is None else int(resets.sum()))
        self._now += 1
        if resets is None:
            self._totals += rewards
        else:  # the step after an episode's last one is a reset, with any reward
            live = ~resets
            numpy.add(self._totals, rewards, out=self._totals, where=live)
            for i in numpy.flatnonzero(resets).tolist():
                self._starts[i] += 1
            self._counts += resets
            over = over & live
        if some_over:
            for i in numpy.flatnonzero(over).tolist():
                self._ended(i, infos)
        self._over, self._some_over = over, some_over

    def _note_around(
        self,
        obs: object,
        rewards: Sequence[object] | NDArray,
        terminated: NDArray,
        truncated: NDArray,
        infos: object,
        actions: object,
        over: NDArray,
        resets: NDArray | None,
        some_over: bool,
    ) -> None:
        """Record here if nothing records inside: pass each recorder its part of the step if it needs one."""
        everyone = not isinstance(rewards, list) or self._settings.clock is not None
        everyone = everyone or (bool(infos) and is_reported(infos, self._settings))
        if not (everyone or some_over or self._slow) and resets is None:
            self._settings.counted_env_step += self._n
            return
        each = self._each_obs(obs)
        acts = None if each is None else list(iterate(self.env.action_space, actions))
        for i in range(self._n):
            if resets is not None and resets[i]:
                self._begin(i, each)
                continue
            self._settings.counted_env_step += 1
            ends = bool(over[i])
            if not (everyone or ends or i in self._slow):
                continue
            recorder = self._recorders[i]
            self._catch_up(i)
            resetting = ends and self._mode == "SAME_STEP"
            last = infos.get("final_obs") if resetting and hasattr(infos, "get") else None
            next_obs = UNSTORABLE if each is None else (each[i] if last is None else last[i])
            recorder.step(
                rewards[i],
                bool(terminated[i]),
                bool(truncated[i]),
                info_of(infos, i, final=resetting) if infos else None,
                action=UNSTORABLE if acts is None else acts[i],
                next_obs=next_obs,
            )
            if resetting:
                self._begin(i, each)
            elif recorder.plain_steps or ends:
                self._slow.discard(i)
            else:
                self._slow.add(i)

    def _each_obs(self, obs: object) -> list[object] | None:
        return None if self._settings.steps.never else list(iterate(self.env.observation_space, obs))

    def _begin(self, i: int, each: list[object] | None, seed: int | None = None, options: object = None) -> None:
        recorder = self._recorders[i]
        recorder.begin(seed=seed, options=options, obs=UNSTORABLE if each is None else each[i])
        if recorder.plain_steps:
            self._slow.discard(i)
        else:
            self._slow.add(i)

    def _catch_up(self, i: int) -> None:
        """Pass the steps that were only summed here to the recorder."""
        recorder = self._recorders[i]
        length = self._now - self._starts[i]
        if recorder.episode_id or length:
            if not recorder.episode_id:
                recorder.begin()
            recorder.total, recorder.length = float(self._totals[i]), length

    def _ended(self, i: int, infos: object) -> None:
        own = (float(self._totals[i]), self._now - self._starts[i])
        self._totals[i], self._starts[i] = 0.0, self._now
        if self._mode == "SAME_STEP":
            self._counts[i] += 1
        episodes, steps, total = self._sums
        self._sums = (episodes + 1, steps + own[1], total + own[0])
        auditor = self._settings.auditor
        inside = self._subs[i].last if self._subs else None
        if inside is not None and any(self._compare_inside):
            auditor.check(
                inside.episode_id,
                (inside.total, inside.length),
                own,
                source="the rewards of the vector",
                env_index=i,
                autoreset=self._mode,
                compare_return=self._compare_inside[0],
                compare_length=self._compare_inside[1],
            )
        reported = reported_of(infos, i, self._stats_key) if infos else None
        if self._reports or (reported is not None and not self._inner):
            auditor.check(
                self._episode_id(i),
                own,
                reported,
                source=self._reports or "info['episode']",
                env_index=i,
                autoreset=self._mode,
                compare_return=self._compare[0],
                compare_length=self._compare[1],
            )

    def _episode_id(self, i: int) -> str:
        """The id of the last finished episode of sub-environment `i`, as its recorder wrote it."""
        recorder = self._subs[i] if self._subs else (self._recorders[i] if self._recorders else None)
        if recorder is not None:
            return recorder.last.episode_id if recorder.last is not None else ""
        count = self._counts[i] - (1 if self._mode == "SAME_STEP" else 0)
        return f"{self._group.token}.{i}.{count}" if self._group is not None else ""

    def _note_close(self) -> None:
        for i, recorder in enumerate(self._recorders):
            self._catch_up(i)
            recorder.flush()
        if self._subs or not self._inner or self._compare_inside != (True, True) or not self._sums[0]:
            return
        base: Any = self.env.unwrapped
        if getattr(getattr(base, "_state", None), "name", "") != "DEFAULT":
            return
        base.call_async("recorded_totals")
        counts = [sum(column) for column in zip(*base.call_wait(timeout=2.0), strict=True)]
        episodes, steps, total = self._sums
        if counts[:2] != [episodes, steps] or abs(counts[2] - total) > 1e-5 * max(abs(total), abs(counts[2]), 1.0):
            self._settings.auditor.sums_differ((total, steps, episodes), (counts[2], counts[1], counts[0]), self._mode)

    def _failed(self, err: Exception) -> None:
        if isinstance(err, LoggingFailed) or is_foreign(err):
            raise err
        self._recorder.count(
            "episode_recording",
            1,
            f"recording the episodes of a vector failed with {type(err).__name__}: {err}; training is not affected, a "
            "step or an episode may be missing from the run",
        )

    def __reduce__(self) -> tuple[object, ...]:
        return without_recording, (self.env,)


def _mode_of(env: VectorEnv) -> str:
    """The name of the autoreset mode; NEXT_STEP, as in gymnasium, if the vector does not define it."""
    mode = (env.metadata or {}).get("autoreset_mode")
    return str(getattr(mode, "name", None) or mode or "NEXT_STEP").upper().replace(" ", "_")


def _subs(env: VectorEnv) -> list[object]:
    envs = getattr(env.unwrapped, "envs", None)
    return list(envs) if isinstance(envs, (list, tuple)) else []


def _group_of(env: VectorEnv) -> EnvGroup | None:
    """The group that all sub-environments were made in; None if `record_envs` did not make them."""
    makers = getattr(env.unwrapped, "env_fns", None)
    if isinstance(makers, Sequence):
        groups = [make.group if isinstance(make, RecordedEnv) else None for make in makers]
    else:  # `make_vec` of gymnasium before 1.3 keeps a generator here, which has made its environments
        groups = [sub.env_group if isinstance(sub, RecordEpisodes) else None for sub in _subs(env)]
    return groups[0] if groups and None not in groups else None


def _recorder_of(env: Any) -> EpisodeRecorder:
    while not isinstance(env, RecordEpisodes):
        env = env.env
    return env.episodes


def _wrap_inside(env: Any, settings: EpisodeSettings) -> bool:
    """Put a recorder around each sub-environment of a `SyncVectorEnv`. False if `env` is something else."""
    base = env.unwrapped
    if not isinstance(base, gymnasium.vector.SyncVectorEnv) or not isinstance(base.envs, list):
        return False
    base.envs[:] = [
        sub if isinstance(sub, RecordEpisodes) else RecordEpisodes(sub, settings, env_index=i)
        for i, sub in enumerate(base.envs)
    ]
    return True
