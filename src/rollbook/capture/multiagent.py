"""Recording multi-agent environments of PettingZoo, both kinds. Any class with the same methods works.

    env = RecordParallel(simple_spread_v3.parallel_env(), run.scope("train"))      # all agents act at once
    env = RecordAEC(connect_four_v3.env(), run.scope("train"))                     # one after the other

An episode's row has the sum of all agents' returns. `rewards` has one row per agent (and per component, if the infos
contain components). Each agent's return is also a curve, `return/<agent>`, because the sum of a zero-sum game is
useless.
"""

from __future__ import annotations

from rollbook.capture.episodes.agents import AgentsRecorder
from rollbook.capture.storable import UNSTORABLE, copied
from rollbook.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from rollbook.capture.episodes.recorder import EpisodeSettings
    from rollbook.protocols import Recorder

__all__ = ["RecordAEC", "RecordParallel"]


class _Recorded:
    """Wraps an environment and forwards everything that it does not record.

    Raises:
      BadInput: the environment lacks a name of `needs`.
    """

    needs: tuple[str, ...] = ()

    def __init__(self, env: Any, recorder: Recorder | EpisodeSettings, *, env_index: int = 0, **settings: Any) -> None:
        missing = [name for name in self.needs if not hasattr(env, name)]
        if missing:
            raise BadInput(
                f"{type(self).__name__} takes an environment like PettingZoo's; {type(env).__name__} has no "
                f"{' and no '.join(missing)}. For an environment of gymnasium see rollbook.capture.gym.RecordEpisodes."
            )
        self.env = env
        self.episodes = AgentsRecorder(recorder, env_index=env_index, **settings)
        self._seen: dict[str, object] = {}
        self._describe()

    def close(self) -> Any:
        """Write what is still in memory, then close the environment."""
        self.episodes.flush()
        return self.env.close()

    @property
    def unwrapped(self) -> Any:
        """The environment without any wrapper."""
        return self.env.unwrapped

    def __getattr__(self, name: str) -> Any:
        if name in ("env", "episodes") or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.env, name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.env!r}>"

    def __reduce__(self) -> tuple[object, ...]:
        return _without_recording, (self.env,)

    def _describe(self) -> None:
        from rollbook.values.spaces import describe

        def texts() -> dict[str, str | None]:
            named = (getattr(self.env, "metadata", None) or {}).get("name") or type(self.unwrapped).__name__
            described: dict[str, str | None] = {"env/id": str(named)}
            for agent in self.env.possible_agents:
                described[f"env/observation_space/{agent}"] = describe(self.env.observation_space(agent))
                described[f"env/action_space/{agent}"] = describe(self.env.action_space(agent))
            return described

        self.episodes.settings.describe_once(texts)


def _without_recording(env: object) -> object:
    """A copy of a recorded environment is the environment without its recorder."""
    return env


class RecordParallel(_Recorded):
    """Records an environment in which all agents act at once (PettingZoo's `ParallelEnv`). Its behaviour does not
    change.

    Arguments as in `pettingzoo.ParallelEnv` for `reset` and `step`.

    The episode ends when no agent is left, or when all that are left have ended. It counts as terminated if any agent
    terminated, and as truncated if any agent was truncated. A trajectory has one row per step and agent, with the
    agent's name in the column `agent`.

    Args:
      env: anything with the reset, step and agents of a `ParallelEnv`.
      settings: see `rollbook.capture.episodes.EpisodeSettings`.
      recorder: a run, a scope, or `EpisodeSettings` shared with others.
      env_index: which sub-environment this is.
    Raises:
      BadInput: `env` lacks one of these.
    """

    needs = ("reset", "step", "possible_agents")

    def reset(self, seed: int | None = None, options: dict[str, object] | None = None) -> Any:
        """Reset the environment; a new episode begins."""
        result = self.env.reset(seed=seed, options=options)
        self.episodes.begin(seed=seed, options=options)
        self._seen = self._copied(result[0])
        return result

    def step(self, actions: Any) -> Any:
        """Step the environment and note each agent's reward."""
        result = self.env.step(actions)
        try:
            self._note(actions, *result)
        except Exception as err:
            self.episodes.failed(err)
        return result

    def _note(
        self,
        actions: Mapping[object, object],
        obs: Mapping[object, object],
        rewards: Mapping[object, float],
        terminations: Mapping[object, bool],
        truncations: Mapping[object, bool],
        infos: Mapping[object, Mapping[str, object]],
    ) -> None:
        episodes = self.episodes
        episodes.add_step()
        t = episodes.length - 1
        for agent, reward in rewards.items():
            name = str(agent)
            number = episodes.add_reward(name, reward)
            terminated, truncated = bool(terminations.get(agent)), bool(truncations.get(agent))
            info = infos.get(agent)
            if info:
                episodes.add_info(name, info)
            if episodes.keeps_steps and name in self._seen:
                action = actions.get(agent, UNSTORABLE)
                episodes.add_row(name, t, self._seen[name], action, number, terminated, truncated, info)
            if terminated or truncated:
                episodes.note_end(name, terminated, truncated)
                if episodes.keeps_steps and agent in obs:
                    episodes.add_last_obs(name, t + 1, obs[agent])
        self._seen = self._copied(obs)
        if episodes.all_ended(self.env.agents):
            episodes.finish(complete=True)

    def _copied(self, obs: Mapping[object, object]) -> dict[str, object]:
        """A copy of the observations: environments may overwrite the same arrays."""
        if not self.episodes.keeps_steps:
            return {}
        return {str(agent): copied(seen) for agent, seen in obs.items()}


class RecordAEC(_Recorded):
    """Records an environment in which agents act in turn (PettingZoo's `AECEnv`). Its behaviour does not change.

    Arguments as in `pettingzoo.AECEnv` for `reset` and `step`.

    An agent's reward is the value that `last()` gives at its turn; it belongs to the agent's previous step. The length
    of an episode is the number of steps of living agents. It ends when no agent is left.

    Args:
      env: anything with the reset, step, last, agents and agent_selection of an `AECEnv`.
      recorder: a run, a scope, or `EpisodeSettings` shared with others.
      env_index: which sub-environment this is.
      settings: see `rollbook.capture.episodes.EpisodeSettings`.
    Raises:
      BadInput: `env` lacks one of these.
    """

    needs = ("reset", "step", "last", "possible_agents")

    def __init__(
        self, env: Any, recorder: Recorder | EpisodeSettings, *, env_index: int = 0, **settings: object
    ) -> None:
        super().__init__(env, recorder, env_index=env_index, **settings)
        self._waiting: dict[str, tuple[object, object]] = {}
        self._steps: dict[str, int] = {}

    def reset(self, seed: int | None = None, options: dict[str, object] | None = None) -> Any:
        """Reset the environment; a new episode begins."""
        self._leave()
        result = self.env.reset(seed=seed, options=options)
        self.episodes.begin(seed=seed, options=options)
        self._waiting, self._steps = {}, {}
        return result

    def step(self, action: Any) -> Any:
        """Record the reward of the agent whose turn it is, then let it act."""
        try:
            self._turn(action)
        except Exception as err:
            self.episodes.failed(err)
        result = self.env.step(action)
        try:
            if self.episodes.episode_id and self.episodes.all_ended(self.env.agents):
                self.episodes.finish(complete=True)
        except Exception as err:
            self.episodes.failed(err)
        return result

    def close(self) -> Any:
        """Write what is still in memory, then close the environment."""
        self._leave()
        return super().close()

    def _turn(self, action: object) -> None:
        episodes, agent = self.episodes, self.env.agent_selection
        name = str(agent)
        obs, reward, terminated, truncated, info = self.env.last(observe=episodes.keeps_steps)
        over = bool(terminated or truncated)
        if not over:
            episodes.add_step()
        number = episodes.add_reward(name, reward)
        if info:
            episodes.add_info(name, info)
        self._settle(name, number, bool(terminated), bool(truncated), info)
        if over:
            episodes.note_end(name, bool(terminated), bool(truncated))
            if episodes.keeps_steps:
                episodes.add_last_obs(name, self._steps.get(name, 0), copied(obs))
        elif episodes.keeps_steps:
            self._waiting[name] = (copied(obs), copied(action))

    def _settle(
        self, name: str, reward: float, terminated: bool, truncated: bool, info: Mapping[str, object] | None
    ) -> None:
        """Write the agent's previous step, now that its reward is known."""
        waiting = self._waiting.pop(name, None)
        if waiting is not None:
            t = self._steps.get(name, 0)
            self._steps[name] = t + 1
            self.episodes.add_row(name, t, *waiting, reward, terminated, truncated, info)

    def _leave(self) -> None:
        """End an episode that is abandoned (reset or close) before every agent had its last turn, with the rewards
        since their last turn."""
        episodes, env = self.episodes, self.env
        if not episodes.episode_id or not episodes.length:
            return
        try:
            ends = [bool(env.terminations.get(a) or env.truncations.get(a)) for a in env.agents]
            unread = getattr(env.unwrapped, "_cumulative_rewards", None) or {}
            for agent in env.agents:
                name, terminated, truncated = str(agent), bool(env.terminations[agent]), bool(env.truncations[agent])
                number = episodes.add_reward(name, unread.get(agent, 0.0))
                self._settle(name, number, terminated, truncated, None)
                if terminated or truncated:
                    episodes.note_end(name, terminated, truncated)
                    if episodes.keeps_steps:
                        episodes.add_last_obs(name, self._steps.get(name, 0), copied(env.observe(agent)))
            episodes.finish(complete=bool(ends) and all(ends))
        except Exception as err:
            episodes.failed(err)
