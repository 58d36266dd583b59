"""Records transitions from any source: observation, action, reward, next observation, ends, infos, agent.

    transitions = TransitionRecorder(run.scope("train"))
    transitions.add(obs=o, action=a, reward=r, next_obs=o2, terminated=te, truncated=tr, action_logp=lp)
    transitions.add_many(obs=obs_TB, actions=..., episode_ids=ids_T)

For loops without an environment to wrap: replay buffers, frameworks' sample batches, logs of a real machine.
Transitions are rows of `steps`, like trajectories of recorded environments, and are exported the same way.
"""

from __future__ import annotations

import os

from rollbook.capture._rewards import read_reward
from rollbook.capture.episodes.infos import EpisodeInfos, info_cells
from rollbook.capture.episodes.steps import StepChunks, Unstorable
from rollbook.errors import BadInput, LoggingFailed
from rollbook.system.guard import is_foreign
from rollbook.values.arrays import array_or_none

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from rollbook.protocols import Recorder

_NOTHING: object = object()


class TransitionRecorder:
    """Writes transitions to `steps`, in chunks, and a row of `episodes` after the last step of an episode.

    Not thread-safe. Nothing raises into the loop; values that cannot be stored are reported once and counted.

    Args:
      recorder: a run or a scope.
      most_steps: the largest number of rows of one episode.
      most_open: the largest number of open episodes; beyond it, the one that has waited longest is written.
      episodes: also write a row of `episodes` (return, length, ends) for each episode that ends.
      agents: the names of all agents, if there are several: an episode ends when each of them has ended. Without it,
        the end is only known when one of them begins again, or at `close`.
    Raises:
      BadInput: `most_steps` or `most_open` is below 1.
    """

    def __init__(
        self,
        recorder: Recorder,
        *,
        most_steps: int = 1_000_000,
        most_open: int = 1024,
        episodes: bool = True,
        agents: Sequence[str] | None = None,
    ) -> None:
        if most_open < 1 or most_steps < 1:
            raise BadInput(f"TransitionRecorder(most_steps={most_steps}, most_open={most_open}): both are at least 1.")
        self._recorder, self._most_steps, self._most_open, self._episodes = recorder, most_steps, most_open, episodes
        self._agents = None if agents is None else frozenset(map(str, agents))
        self._token = os.urandom(4).hex()
        self._unstorable = Unstorable(recorder)
        self._infos = EpisodeInfos((), self._unstorable)
        self._open: dict[Any, _Episode] = {}
        self._count = 0

    def add(
        self,
        *,
        obs: object = _NOTHING,
        action: object = _NOTHING,
        reward: object = None,
        next_obs: object = _NOTHING,
        terminated: object = False,
        truncated: object = False,
        info: Mapping[str, object] | None = None,
        agent: str = "",
        env_index: int = 0,
        episode_id: str | None = None,
        t: int | None = None,
        **further: object,
    ) -> None:
        """Add one transition.

        Args:
          obs, action: the observation, and the action that was chosen on it. Left out: no such column.
          reward: a number, or a vector of numbers: their sum, and its parts as `reward/0`, `reward/1`, … None, or what
            is neither, counts as 0 in the return.
          next_obs: the observation after the action, if it is stored, too.
          terminated, truncated: whether the episode ended with this transition.
          info: the step's info. None: empty.
          agent: which agent, in a multi-agent environment.
          env_index: transitions of one environment and agent, up to an end, form an episode.
          episode_id: an id of your own; by default one is created at the start of each episode.
          t: the step within the episode; counted here if not given.
          further: more columns: action_logp, value, weights_seq_no, …
        """
        try:
            agent = str(agent)
            episode = self._episode(env_index if episode_id is None else episode_id, episode_id, env_index, agent)
            cells: dict[str, object] = {"t": episode.next_t(agent) if t is None else int(t)}
            if agent:
                cells["agent"] = agent
            for name, value in (("obs", obs), ("action", action), ("next_obs", next_obs)):
                if value is not _NOTHING:
                    episode.chunks.add_flat(name, value, cells)
            number, parts = read_reward(reward)
            cells.update(reward=number, terminated=bool(terminated), truncated=bool(truncated))
            cells.update({f"reward/{index}": part for index, part in enumerate(parts)})
            if info:
                info_cells(info, self._unstorable, cells)
                cells.update(self._infos.take(info) or {})  # running/ and media/, named as in episode recorders
            for name, value in further.items():
                episode.chunks.add_flat(name, value, cells)
            episode.chunks.add(cells)
            episode.note(agent, number or 0.0, bool(terminated), bool(truncated))
            if episode.is_over(self._agents):
                self._close(episode)
        except Exception as err:
            self._failed(err)

    def add_many(
        self,
        *,
        obs: object = None,
        action: object = None,
        reward: object = None,
        next_obs: object = None,
        terminated: object = None,
        truncated: object = None,
        episode_ids: object = None,
        agents: object = None,
        **further: object,
    ) -> None:
        """Add T transitions at once, in order. Each argument is an array or list whose first axis is T, or a dict of
        those.

        Without `episode_ids`, an episode ends at a set `terminated` or `truncated`.

        Args:
          obs, action, next_obs: T each; None: no such column.
          reward: T numbers, or [T, k] for k objectives. None: none.
          terminated, truncated: T booleans. None: all False.
          episode_ids: T ids of your own.
          agents: T names. None: one agent.
          further: more columns.
        """
        try:
            parts = {"obs": obs, "action": action, "next_obs": next_obs, **further}
            columns = {name: _column(value) for name, value in parts.items() if value is not None}
            rewards, ends, cuts = (None if v is None else _column(v) for v in (reward, terminated, truncated))
            ids = None if episode_ids is None else [str(cell) for cell in _column(episode_ids)]
            names = None if agents is None else [str(cell) for cell in _column(agents)]
            lengths = {name: _length(column) for name, column in columns.items()}
            others = {"reward": rewards, "terminated": ends, "truncated": cuts, "episode_ids": ids, "agents": names}
            lengths.update({name: len(column) for name, column in others.items() if column is not None})
            n = min(lengths.values(), default=0)
            if len(set(lengths.values())) > 1:
                self._recorder.count(
                    "uneven_transitions",
                    1,
                    f"add_many() takes columns of one length; it was given {lengths}. The first {n} were kept",
                )
        except Exception as err:
            self._failed(err)
            return
        for i in range(n):
            self.add(
                reward=None if rewards is None else rewards[i],
                terminated=False if ends is None else ends[i],
                truncated=False if cuts is None else cuts[i],
                episode_id=None if ids is None else ids[i],
                agent="" if names is None else names[i],
                **{name: _at(column, i) for name, column in columns.items()},
            )

    def flush(self) -> None:
        """Write the rows in memory; open episodes continue."""
        for episode in self._open.values():
            episode.chunks.flush()

    def close(self) -> None:
        """Write everything; open episodes are written as incomplete."""
        for episode in list(self._open.values()):
            self._close(episode)

    def __enter__(self) -> TransitionRecorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _episode(self, key: object, given: str | None, env_index: int, agent: str) -> _Episode:
        episode = self._open.get(key)
        if episode is not None and given is None and agent in episode.ended:  # it begins again
            self._close(episode)
            episode = None
        if episode is None:
            if len(self._open) >= self._most_open:
                self._close(next(iter(self._open.values())))
            name = given if given is not None else f"{self._token}.{env_index}.{self._count}"
            self._count += 1
            chunks = StepChunks(self._recorder, name, most_rows=self._most_steps, unstorable=self._unstorable)
            episode = self._open[key] = _Episode(key, chunks, env_index)
        return episode

    def _close(self, episode: _Episode) -> None:
        self._open.pop(episode.key, None)
        episode.chunks.flush()
        if not self._episodes:
            return
        terminated, truncated = episode.terminated, episode.truncated
        row = {
            "episode_id": episode.chunks.episode_id,
            "return": sum(episode.returns.values()),
            "length": episode.length,
            "terminated": terminated,
            "truncated": truncated,
            "complete": terminated or truncated,
            "env_index": episode.env_index,
            "steps_kept": "transitions",
        }
        self._recorder.record("episodes", {name: [value] for name, value in row.items()}, 1)
        agents = [agent for agent in episode.returns if agent]
        if agents:
            columns = {
                "episode_id": [episode.chunks.episode_id] * len(agents),
                "agent": agents,
                "component": [""] * len(agents),
                "stage": ["final"] * len(agents),
                "sum": [episode.returns[agent] for agent in agents],
                "n": [episode.steps[agent] for agent in agents],
            }
            self._recorder.record("rewards", columns, len(agents))

    def _failed(self, err: Exception) -> None:
        if isinstance(err, LoggingFailed) or is_foreign(err):
            raise err
        self._recorder.count(
            "transitions",
            1,
            f"recording a transition failed with {type(err).__name__}: {err}; training is not affected, it may be "
            "missing",
        )


class _Episode:
    """One open episode: its chunk of steps, and the sums of its agents."""

    __slots__ = ("chunks", "ended", "env_index", "key", "returns", "steps", "terminated", "truncated")

    def __init__(self, key: object, chunks: StepChunks, env_index: int) -> None:
        self.key, self.chunks, self.env_index = key, chunks, env_index
        self.returns: dict[str, float] = {}
        self.steps: dict[str, int] = {}
        self.ended: set[str] = set()
        self.terminated = self.truncated = False

    @property
    def length(self) -> int:
        return max(self.steps.values(), default=0)

    def is_over(self, agents: frozenset[str] | None) -> bool:
        """Whether all known agents have ended."""
        if agents is not None:
            return agents <= self.ended
        return "" in self.ended

    def next_t(self, agent: str) -> int:
        return self.steps.get(agent, 0)

    def note(self, agent: str, reward: float, terminated: bool, truncated: bool) -> None:
        self.returns[agent] = self.returns.get(agent, 0.0) + reward
        self.steps[agent] = self.steps.get(agent, 0) + 1
        self.terminated, self.truncated = self.terminated or terminated, self.truncated or truncated
        if terminated or truncated:
            self.ended.add(agent)


def _column(value: Any) -> Any:
    if hasattr(value, "items") and hasattr(value, "keys"):
        return {name: _column(part) for name, part in value.items()}
    array = None if isinstance(value, (list, tuple)) else array_or_none(value)
    return array if array is not None else list(value)


def _length(column: Any) -> int:
    return min((_length(part) for part in column.values()), default=0) if isinstance(column, dict) else len(column)


def _at(column: Any, i: int) -> Any:
    return {name: _at(part, i) for name, part in column.items()} if isinstance(column, dict) else column[i]
