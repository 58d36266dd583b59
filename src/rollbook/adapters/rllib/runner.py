"""Recording in every process that steps environments: RLlib's episodes become rows of the run.

RLlib cuts episodes into chunks wherever a sample ends. The recorders here belong to a sub-environment and continue from
chunk to chunk, so the episodes carry no extra data. After each sample, everything passed to training is written: a
runner that dies only loses steps that training never saw.
"""

from __future__ import annotations

from rollbook.adapters.rllib.data import EpisodeData
from rollbook.capture import AgentsRecorder, EpisodeRecorder, EpisodeSettings, TransitionRecorder
from rollbook.run.scope import Scope
from rollbook.system.bill import Bill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

    from ray.rllib.env.multi_agent_episode import MultiAgentEpisode
    from ray.rllib.env.single_agent_episode import SingleAgentEpisode

    from rollbook.run.run import Run

    Episode: TypeAlias = SingleAgentEpisode | MultiAgentEpisode
    Address: TypeAlias = tuple[str, str, dict[str, object], int]
    """The address of a run, sent to another process: folder, nonce, run.json, attempt."""


def join(address: Address) -> Run:
    """Join the run at (folder, nonce, manifest, attempt) as a writer; once per process and attempt.

    Raises:
      RollbookError: the run's folder was on this host and no longer exists.
    """
    from rollbook.run.attaching import unpickle_run

    folder, nonce, page, attempt = address
    run = unpickle_run(folder, nonce, page)
    if run.attempt != attempt and not run.internals.writer.main:  # the run was rewound in between
        run.finish()
        run = unpickle_run(folder, nonce, page)
    return run


class Runner:
    """Records the episodes of one env runner.

    Threads: only the env runner's own thread.

    Args:
      episode_data: also put info["media"] of each episode into RLlib's metrics, for files of episode data.
      transitions: also record every transition (observation, action, reward, info, …), per agent.
    """

    def __init__(self, *, episode_data: bool = False, transitions: bool = False) -> None:
        self._episode_data, self._wants_transitions = episode_data, transitions
        self.count = Bill()
        self.run: Run | None = None
        self._address: tuple[str, str, dict[str, object], int] | None = None
        self._settings: EpisodeSettings | None = None
        self._transitions: TransitionRecorder | None = None
        self._open: dict[int, _One | _Many] = {}
        self._env_of: dict[str, int] = {}
        self._runner: object = None

    def attach(self, address: Address | None, evaluation: bool) -> None:
        """Write to the run at `address` from now on, under `test` for evaluation, else under `train`."""
        if address is None or address == self._address:
            return
        self._address = address
        run = self.count.guard("rllib/join", "joining the run from an env runner", lambda: join(address))
        if run is None:
            return
        self.run, self._open = run, {}
        self.count = Bill(to=run)
        name = "test" if evaluation else "train"
        # Separate clocks: in the algorithm's process the run's clocks are those of the last result, and an episode of
        # the next iteration is later. Readers place it by time, as they do with those of other processes.
        scope = Scope(run, name, run.internals.writer.channel(prefix=f"{name}/", scope=name))
        self._settings = EpisodeSettings(scope, clocks=self._clocks, step_rows=not self._wants_transitions)
        self._transitions = TransitionRecorder(scope, episodes=False) if self._wants_transitions else None

    def _clocks(self) -> dict[str, int]:
        version = getattr(self._runner, "_weights_seq_no", None)
        return {"policy_version": int(version)} if version is not None else {}

    def start(self, episode: object, env_runner: object, env_index: int) -> None:
        """Begin an episode."""
        self._runner = env_runner
        self.count.guard("rllib/episodes", "recording an episode's start", lambda: self._start(episode, env_index))

    def _start(self, episode: Episode, env_index: int) -> None:
        entry = self._open.get(env_index)
        many = hasattr(episode, "agent_episodes")
        if entry is None or isinstance(entry, _Many) != many:
            kind = _Many if many else _One
            entry = self._open[env_index] = kind(self._settings, env_index, self._episode_data)
        self._env_of[str(episode.id_)] = env_index
        entry.begin(episode, self.count)

    def step(self, episode: object, env_runner: object, env_index: int) -> None:
        """Record one step of the episode, including its last one."""
        self._runner = env_runner
        entry = self._open.get(env_index)
        if entry is None:  # the run was passed here in the middle of an episode
            self.start(episode, env_runner, env_index)
            entry = self._open.get(env_index)
        if entry is not None:
            going_on = entry
            self.count.guard("rllib/episodes", "recording a step", lambda: going_on.step(episode))

    def end(self, episode: object, env_index: int, metrics_logger: object) -> None:
        """End the episode: add the environment's data to RLlib's own metrics."""
        entry = self._open.get(env_index)
        if entry is not None and metrics_logger is not None:
            over = entry
            self.count.guard("rllib/metrics", "reporting to RLlib", lambda: over.data.push(metrics_logger))

    def sampled(self, samples: Iterable[Episode], env_runner: object) -> None:
        """Write buffered rows at the end of a sample, and its transitions if requested."""
        self._runner = env_runner
        self.count.guard("rllib/sample", "recording a sample", lambda: self._sampled(samples))

    def _sampled(self, samples: Iterable[Episode]) -> None:
        for entry in self._open.values():
            entry.write_out()
        if self._transitions is not None:
            for chunk in samples:
                add_episode(self._transitions, chunk, self._env_of.get(str(chunk.id_), 0))
            self._transitions.flush()
        under_way = {entry.id for entry in self._open.values()}
        self._env_of = {key: env for key, env in self._env_of.items() if key in under_way}

    def leave(self) -> None:
        """At the end of training, write a row for unfinished episodes, marked as incomplete."""
        self.count.guard("rllib/episodes", "ending the episodes under way", self._leave)

    def _leave(self) -> None:
        for entry in self._open.values():
            entry.leave()
        if self._transitions is not None:
            self._transitions.flush()
        self._open = {}


class _One:
    """One sub-environment with a single agent. Without a run it only fills RLlib's own metrics."""

    def __init__(self, settings: EpisodeSettings | None, env_index: int, episode_data: bool) -> None:
        self._recorder = EpisodeRecorder(settings, env_index=env_index) if settings is not None else None
        self._episode_data = episode_data
        self.data, self.id = EpisodeData(), ""

    def begin(self, episode: Episode, count: Bill) -> None:
        self.data, self.id = EpisodeData(self._episode_data, count), str(episode.id_)
        if self._recorder is not None:
            self._recorder.begin()
            self._recorder.episode_id = self.id

    def step(self, episode: Episode) -> None:
        info = episode.get_infos(-1)
        if info:
            self.data.take(info)
        if self._recorder is not None:
            self._recorder.step(episode.get_rewards(-1), episode.is_terminated, episode.is_truncated, info)

    def write_out(self) -> None:
        if self._recorder is not None:
            self._recorder.write_out()

    def leave(self) -> None:
        if self._recorder is not None and self._recorder.length:
            self._recorder.end()


class _Many:
    """One sub-environment with several agents; not all of them act at every step."""

    def __init__(self, settings: EpisodeSettings | None, env_index: int, episode_data: bool) -> None:
        self._recorder = AgentsRecorder(settings, env_index=env_index) if settings is not None else None
        self._episode_data = episode_data
        self.data, self.id = EpisodeData(), ""
        self._seen: dict[object, int] = {}

    def begin(self, episode: Episode, count: Bill) -> None:
        self.data, self.id = EpisodeData(self._episode_data, count), str(episode.id_)
        self._seen = {agent: agent_episode.t for agent, agent_episode in episode.agent_episodes.items()}
        if self._recorder is not None:
            self._recorder.begin()
            self._recorder.episode_id = self.id

    def step(self, episode: Episode) -> None:
        recorder = self._recorder
        if recorder is not None:
            recorder.add_step()
        for agent, agent_episode in episode.agent_episodes.items():
            if agent_episode.t <= self._seen.get(agent, 0):
                continue
            self._seen[agent] = agent_episode.t
            name, info = str(agent), agent_episode.get_infos(-1)
            if info:
                self.data.take(info, f"{name}/")
            if recorder is not None:
                recorder.add_reward(name, agent_episode.get_rewards(-1))
                if info:
                    recorder.add_info(name, info)
                if agent_episode.is_done:
                    recorder.note_end(name, agent_episode.is_terminated, agent_episode.is_truncated)
        if recorder is not None and episode.is_done:
            recorder.note_end("", bool(episode.is_terminated), bool(episode.is_truncated))
            recorder.finish(complete=True)

    def write_out(self) -> None:
        if self._recorder is not None:
            self._recorder.write_out()

    def leave(self) -> None:
        if self._recorder is not None and self._recorder.length:
            self._recorder.finish(complete=False)


def add_episode(transitions: TransitionRecorder, chunk: SingleAgentEpisode, env_index: int) -> None:
    """Record every step of a sampled chunk.

    Args:
      chunk: a SingleAgentEpisode or a MultiAgentEpisode; only its own steps are used, not its lookback.
    """
    agents = getattr(chunk, "agent_episodes", None)
    if agents is None:
        _add(transitions, chunk, str(chunk.id_), "", env_index)
        return
    # The steps of all agents in order of time; the end of one agent must not end the episode for the others.
    for agent, agent_episode in agents.items():
        _add(transitions, agent_episode, str(chunk.id_), str(agent), env_index)


def _add(
    transitions: TransitionRecorder, chunk: SingleAgentEpisode, episode_id: str, agent: str, env_index: int
) -> None:
    n, last = len(chunk), len(chunk) - 1
    outputs = [key for key in chunk.extra_model_outputs if key != "infos"]
    for i in range(n):
        transitions.add(
            obs=chunk.get_observations(i),
            action=chunk.get_actions(i),
            reward=chunk.get_rewards(i),
            next_obs=chunk.get_observations(i + 1),
            terminated=bool(chunk.is_terminated) and i == last,
            truncated=bool(chunk.is_truncated) and i == last,
            info=chunk.get_infos(i + 1),
            agent=agent,
            env_index=env_index,
            episode_id=episode_id,
            t=int(chunk.t_started) + i,
            **{str(key): chunk.get_extra_model_outputs(key, i) for key in outputs},
        )
