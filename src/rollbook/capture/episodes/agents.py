"""Episodes of several agents: separate chunks for each agent's steps, separate rows for each agent's rewards."""

from __future__ import annotations

from rollbook.capture.episodes.infos import info_cells
from rollbook.capture.episodes.recorder import EpisodeRecorder
from rollbook.capture.episodes.settings import Finished
from rollbook.capture.episodes.trajectory import Trajectory
from rollbook.capture.storable import UNSTORABLE
from rollbook.values import scalar_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rollbook.capture.episodes.steps import StepChunks


class AgentsRecorder(EpisodeRecorder):
    """An `EpisodeRecorder` for steps of named agents.

    `add_step` counts a step of the environment; `add_reward`, `add_info` and `add_row` add what it gave one agent, and
    `note_end` an agent's end. Each agent has its own chunks, because agents may have observations of different shapes.
    """

    _trajectory: _AgentsTrajectory

    def _new_trajectory(self) -> _AgentsTrajectory:
        return _AgentsTrajectory(self.settings)

    def _reset(self) -> None:
        super()._reset()
        self._ends: dict[str, tuple[bool, bool]] = {}

    @property
    def keeps_steps(self) -> bool:
        """Whether the trajectory of the current episode is wanted, or may be wanted at its end."""
        return self._trajectory.in_full

    def add_step(self) -> None:
        """One step of the environment."""
        if not self.episode_id:
            self._begin(None, None, UNSTORABLE, None)
        self.length += 1
        if self.settings.clock is not None:
            self.drive_clock()

    def add_reward(self, agent: str, reward: object) -> float:
        """Add an agent's reward to the episode. Returns it as a float.

        Args:
          agent: its name.
          reward: a number, or a vector of numbers, which are its components.
        """
        number = self._enter_reward(reward, agent)
        self.total += number
        return number

    def add_info(self, agent: str, info: Mapping[str, object]) -> None:
        """Take an agent's info: running and final data and media under the agent's name, and its reward components.

        Args:
          agent: its name.
          info: what the environment returned for it.
        """
        data, media = info.get("data"), info.get("media")
        if data or media:
            of_agent: dict[str, object] = {}
            if data is not None and hasattr(data, "items"):
                of_agent["data"] = {part: {agent: inner} for part, inner in data.items()}
            if media is not None and hasattr(media, "items"):
                of_agent["media"] = {agent: media}
            cells = self._infos.take(of_agent)
            if cells and self.settings.step_rows:
                self._trajectory.add_late(self.length - 1, cells)
        components = self.settings.components
        if components is not None:
            for name, value in components(info).items():
                number = scalar_of(value)
                if number is not None:
                    self._ledger.add("final", number, agent=agent, component=str(name))

    def add_row(
        self,
        agent: str,
        t: int,
        obs: object,
        action: object,
        reward: float,
        terminated: bool,
        truncated: bool,
        info: Mapping[str, object] | None,
    ) -> None:
        """Add one step to an agent's trajectory.

        Args:
          agent: its name.
          t: the number of the environment's step, from 0.
          obs: the observation on which it acted.
          action: its action; `UNSTORABLE` leaves the cell out.
          reward: the reward of the step.
          terminated, truncated: whether the agent ended with this step.
          info: the step's info, or None.
        """
        chunks = self._trajectory.of_agent(agent)
        cells: dict[str, object] = {"t": t, "agent": agent}
        chunks.add_flat("obs", obs, cells)
        if action is not UNSTORABLE:
            chunks.add_flat("action", action, cells)
        cells.update(reward=reward, terminated=terminated, truncated=truncated)
        if info:
            info_cells(info, self.settings.unstorable, cells)
        chunks.add(cells)

    def add_last_obs(self, agent: str, t: int, obs: object) -> None:
        """Add an agent's last observation: a row without an action, in a separate chunk.

        Args:
          agent: its name.
          t: the number of the step that would follow.
          obs: the observation.
        """
        chunks = self._trajectory.of_agent(agent)
        cells: dict[str, object] = {"t": t, "agent": agent}
        chunks.add_flat("obs", obs, cells)
        chunks.flush()
        chunks.add(cells)
        chunks.flush()

    def note_end(self, agent: str, terminated: bool, truncated: bool) -> None:
        """Note that an agent has ended.

        Args:
          agent: its name.
          terminated, truncated: how.
        """
        self._ends[agent] = (terminated, truncated)

    def all_ended(self, agents: Iterable[object]) -> bool:
        """Whether each of these agents has ended; environments may keep them in their list.

        Args:
          agents: those that the environment still lists.
        """
        return all(str(agent) in self._ends for agent in agents)

    def finish(self, complete: bool) -> str:
        """End the episode: terminated if any agent did, truncated if any agent was. Returns its id.

        Args:
          complete: False for an episode that was cut short by a reset or the end of the run.
        """
        terminated = any(ended for ended, _ in self._ends.values())
        truncated = any(cut for _, cut in self._ends.values())
        return self._end(terminated, truncated, complete=complete)


class _AgentsTrajectory(Trajectory):
    """A trajectory for each agent, all of them written or dropped together."""

    __slots__ = ("_of_agent",)

    def reset(self) -> None:
        super().reset()
        self._of_agent: dict[str, StepChunks] = {}

    def of_agent(self, agent: str) -> StepChunks:
        """The chunks for an agent's steps."""
        chunks = self._of_agent.get(agent)
        if chunks is None:
            chunks = self._of_agent[agent] = self._new_chunks(hold=self._is_held())
        return chunks

    def write_out(self) -> None:
        super().write_out()
        for chunks in self._of_agent.values():
            if not chunks.hold:
                chunks.flush()

    def finish(self, finished: Finished, is_marked: bool) -> str:
        was_held = self._is_held()
        why = super().finish(finished, is_marked)
        for chunks in self._of_agent.values():
            if was_held and (not why or chunks.lost):
                chunks.drop()
            elif was_held:
                chunks.keep()
            chunks.flush()
        return why

    def _is_held(self) -> bool:
        return self._chunks is not None and self._chunks.hold
