"""`RecordEpisodes`: records one gymnasium environment."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium

from rollbook.capture.episodes.auditor import reported_in
from rollbook.capture.episodes.recorder import EpisodeRecorder, EpisodeSettings
from rollbook.capture.gym.wrappers import comparable, describe_env, has_autoreset, reporter
from rollbook.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rollbook.capture._ledger import RewardLedger
    from rollbook.capture.gym.env_group import EnvGroup
    from rollbook.protocols import Recorder


class RecordEpisodes(gymnasium.Wrapper):
    """Records the episodes of an environment. The environment behaves as before.

    Arguments as in `gymnasium.Wrapper` for all methods of an environment.

    For a `VectorEnv` this creates a `RecordVectorEpisodes`. Costs about 0.25 µs per step without trajectories.

    Args:
      env: the environment, as the agent sees it.
      recorder: a run, a scope such as `run.scope("train")`, or `EpisodeSettings` shared with others.
      env_index: which sub-environment this is.
      ledger: a `RewardLedger` with stages further inside.
      settings: see `rollbook.capture.episodes.EpisodeSettings`: steps=, video=, info_keys=, components=, curves=,
        clock= and the others.
    Raises:
      BadInput: not a gymnasium environment, or settings that cannot be used.
    """

    for_vectors: ClassVar[Callable[..., Any] | None] = None

    env_group: EnvGroup | None = None  # of the vector that `record_envs` made it for

    def __new__(cls, env: object, *args: object, **kwargs: object) -> Any:
        """Create a wrapper for one environment or, given a vector, for a vector."""
        if cls is RecordEpisodes and isinstance(env, gymnasium.vector.VectorEnv):
            if cls.for_vectors is None:
                raise BadInput(
                    f"RecordEpisodes records a vector of gymnasium 1.0 or newer; found {gymnasium.__version__}. Record "
                    "its environments: make the vector of record_envs(env_fns, recorder)"
                )
            return cls.for_vectors(env, *args, **kwargs)
        return super().__new__(cls)

    def __init__(
        self,
        env: object,
        recorder: Recorder | EpisodeSettings,
        *,
        env_index: int = 0,
        ledger: RewardLedger | None = None,
        **settings: object,
    ) -> None:
        if not isinstance(env, gymnasium.Env):
            raise BadInput(
                f"RecordEpisodes takes an environment or a vector of gymnasium; it was given {type(env).__name__}. "
                "For PettingZoo see rollbook.capture.multiagent, for anything else "
                "rollbook.capture.episodes.EpisodeRecorder."
            )
        super().__init__(env)
        self.episodes = EpisodeRecorder(recorder, env_index=env_index, ledger=ledger, **settings)
        common = self.episodes.settings
        self.episodes.videos.fps = float((env.metadata or {}).get("render_fps") or 30)
        self._renders = env.render_mode == "rgb_array" and not common.video.never
        self._autoreset = has_autoreset(env)
        self._over = False
        inner, reports, stats_key = reporter(env)
        if reports:
            common.auditor.expects(reports)
        self._reports, self._stats_key = reports or "info['episode']", stats_key
        self.episodes.check = _Reports(reports, stats_key, comparable(env, inner))
        if env.render_mode != "rgb_array" and not common.video.never:
            common.recorder.count(
                "no_frames",
                1,
                f"RecordEpisodes(video=…): the environment was made with render_mode={env.render_mode!r}, which gives "
                "no frames to keep; make it with render_mode='rgb_array'",
            )
        describe_env(env, common)
        if self._is_recorded_inside(env):
            common.recorder.count(
                "recorded_twice",
                1,
                "RecordEpisodes: another one further inside records the same episodes to the same run, so this "
                "one records nothing; leave one out, or give one of them another scope",
            )
            self.step, self.reset = env.step, env.reset  # type: ignore[method-assign]

    def _is_recorded_inside(self, env: object) -> bool:
        own = self.episodes.settings.recorder
        while isinstance(env, gymnasium.Wrapper):
            if isinstance(env, RecordEpisodes) and env.recorded_by and env.recorded_by == self.recorded_by:
                other = env.episodes.settings.recorder
                if (type(other), getattr(other, "name", "")) == (type(own), getattr(own, "name", "")):
                    return True
            env = env.env
        return False

    @property
    def recorded_by(self) -> str:
        """The nonce of the run that gets these episodes; "" without a run. Callbacks then do not record them again."""
        internals = getattr(self.episodes.settings.recorder, "internals", None)
        return "" if internals is None else str(internals.about.nonce)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment; a new episode begins."""
        result = self.env.reset(seed=seed, options=options)
        self._over = False
        self.episodes.begin(seed=seed, options=options, obs=result[0])
        if self._renders:
            self._frame()
        return result

    def step(self, action: object) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step the environment and record the reward."""
        result = self.env.step(action)
        episodes = self.episodes
        try:
            if episodes.plain_steps:
                _, reward, terminated, truncated, info = result
                if isinstance(reward, float) and not (terminated or truncated or info):
                    episodes.total, episodes.length = episodes.total + reward, episodes.length + 1
                    if episodes.drives:
                        episodes.drive_clock()
                    return result
            self._note(result, action)
        except Exception as err:
            episodes.failed(err)
        return result

    def _note(self, result: tuple[object, object, bool, bool, dict[str, object]], action: object) -> None:
        """Handle a step that needs more than an addition: the last one, one with an info, one that is kept or drawn."""
        episodes = self.episodes
        obs, reward, terminated, truncated, info = result
        if self._autoreset and self._over:
            episodes.begin(obs=obs)
            self._over = False
            if self._renders:
                self._frame()
            return
        if self._over:  # the environment does not reset itself
            self._over = False
            ended = episodes.last
            episodes.mark()
            episodes.settings.auditor.stepped_on(ended.episode_id if ended else "", env_index=episodes.env_index)
        if self._renders:
            self._frame()
        self._over = bool(terminated or truncated)
        if episodes.step(reward, terminated, truncated, info, action=action, next_obs=obs):
            return
        if info and reported_in(info, self._stats_key) is not None:
            episodes.settings.auditor.end_not_passed_on(
                episodes.episode_id, episodes.length, source=self._reports, env_index=episodes.env_index
            )

    def _frame(self) -> None:
        frames = self.episodes.videos.rendered
        if frames is None:
            return
        try:
            frame = self.env.render()
            if hasattr(frame, "dtype"):
                frames.add(frame)
        except Exception as err:
            self._renders = False
            self.episodes.failed(err)

    def close(self) -> None:
        """Write what is still in memory, then close the environment."""
        self.episodes.flush()
        super().close()

    def recorded_totals(self) -> tuple[int, int, float]:
        """(episodes, steps, sum of returns) of the finished episodes recorded here; used by a vector's wrapper."""
        return self.episodes.settings.finished

    def __getattr__(self, name: str) -> Any:
        """Attributes of the environment, so that recording hides none."""
        if name.startswith("_") or name == "env":
            raise AttributeError(name)
        return getattr(self.env, name)

    def set_wrapper_attr(self, name: str, value: object, *, force: bool = True) -> bool:
        """Set an attribute on its owner: on this wrapper only the wrapper's own attributes."""
        if name in self.__dict__ or hasattr(type(self), name):
            setattr(self, name, value)
            return True
        more = {} if force else {"force": False}  # gymnasium 1.0 knows no such argument
        return bool(self.env.set_wrapper_attr(name, value, **more))

    def __reduce__(self) -> tuple[object, ...]:
        return without_recording, (self.env,)


def without_recording(env: object) -> Any:
    """A copy of a recorded environment, without the recorder: trials on copies are not training."""
    return env


class _Reports:
    """Lets the auditor check the report of an inner wrapper at an episode's end. Holds no environment."""

    def __init__(self, source: str, key: str, compare: tuple[bool, bool]) -> None:
        self._source, self._key, self._compare = source, key, compare

    def __call__(self, episodes: EpisodeRecorder, info: Mapping[str, object]) -> None:
        reported = reported_in(info, self._key)
        if reported is None and not self._source:
            episodes.settings.auditor.not_checked("no return or length was reported")
        else:
            returns, lengths = self._compare
            episodes.audit(
                reported, source=self._source or "info['episode']", compare_return=returns, compare_length=lengths
            )
