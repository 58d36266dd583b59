"""Multi-agent environments, by hand: rewards by agent, agents that leave early, agents that act in turn."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium
import numpy as np
import pytest

from rollbook.capture.episodes.agents import AgentsRecorder
from rollbook.capture.multiagent import RecordAEC, RecordParallel
from rollbook.errors import BadInput


class Race:
    """All at once: "hare" pays 2 a step and leaves after 2 steps, "tortoise" 1 for 4 steps and is then cut off."""

    metadata = {"name": "race_v0"}  # noqa: RUF012
    possible_agents = ["hare", "tortoise"]  # noqa: RUF012

    def __init__(self) -> None:
        self.agents: list[str] = []
        self.secret = 5

    @property
    def unwrapped(self) -> Race:
        return self

    def observation_space(self, agent: str) -> Any:
        return gymnasium.spaces.Box(0, 9, (1 if agent == "hare" else 3,), np.float32)

    def action_space(self, agent: str) -> Any:
        return gymnasium.spaces.Discrete(2)

    def _obs(self) -> dict[str, Any]:
        sizes = {"hare": 1, "tortoise": 3}
        return {agent: np.full(sizes[agent], self.t, np.float32) for agent in self.agents}

    def reset(self, seed: Any = None, options: Any = None) -> Any:
        self.agents, self.t = list(self.possible_agents), 0
        return self._obs(), {agent: {} for agent in self.agents}

    def step(self, actions: dict[str, int]) -> Any:
        assert set(actions) == set(self.agents)
        self.t += 1
        acting = list(self.agents)
        obs = self._obs()
        rewards = {agent: 2.0 if agent == "hare" else 1.0 for agent in acting}
        terminated = {agent: agent == "hare" and self.t == 2 for agent in acting}
        truncated = {agent: agent == "tortoise" and self.t == 4 for agent in acting}
        infos = {agent: {"data": {"running": {"speed": self.t}}, "reward_step": rewards[agent]} for agent in acting}
        self.agents = [agent for agent in acting if not (terminated[agent] or truncated[agent])]
        return obs, rewards, terminated, truncated, infos

    def close(self) -> None:
        self.agents = []


class Turns:
    """In turn: whoever acts gets 1, the other one loses 1; after 5 turns it is over for both."""

    metadata = {"name": "turns_v0"}  # noqa: RUF012
    possible_agents = ["a", "b"]  # noqa: RUF012

    @property
    def unwrapped(self) -> Turns:
        return self

    def observation_space(self, agent: str) -> Any:
        return gymnasium.spaces.Discrete(100)

    def action_space(self, agent: str) -> Any:
        return gymnasium.spaces.Discrete(2)

    def reset(self, seed: Any = None, options: Any = None) -> None:
        self.agents, self.t, self.agent_selection = ["a", "b"], 0, "a"
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations, self.truncations = dict.fromkeys(self.agents, False), dict.fromkeys(self.agents, False)
        self.infos: dict[str, Any] = {agent: {} for agent in self.agents}

    def observe(self, agent: str) -> int:
        return self.t

    def last(self, observe: bool = True) -> Any:
        agent = self.agent_selection
        obs = self.observe(agent) if observe else None
        ends = self.terminations[agent], self.truncations[agent]
        return obs, self._cumulative_rewards[agent], *ends, self.infos[agent]

    def step(self, action: Any) -> None:
        agent = self.agent_selection
        if self.terminations[agent]:
            assert action is None
            self.agents.remove(agent)
            del self._cumulative_rewards[agent]
        else:
            self.t += 1
            self._cumulative_rewards[agent] = 0.0
            for other in self.agents:
                self._cumulative_rewards[other] += 1.0 if other == agent else -1.0
            if self.t == 5:
                self.terminations = dict.fromkeys(self.agents, True)
        if self.agents:
            self.agent_selection = "b" if agent == "a" and "b" in self.agents else self.agents[0]

    def close(self) -> None:
        self.agents = []


def run_parallel(env: Any) -> None:
    env.reset(seed=3)
    while env.agents:
        env.step(dict.fromkeys(env.agents, 1))


def run_turns(env: Any) -> None:
    env.reset(seed=3)
    while env.agents:
        over = env.terminations[env.agent_selection]
        env.step(None if over else 1)


def by_agent(notebook: Any, *names: str) -> dict[str, Any]:
    rows = [row for row in notebook.table("rewards") if row["component"] == ""]
    return {row["agent"]: tuple(row[name] for name in names) for row in rows}


def test_each_agent_has_its_own_return(notebook: Any) -> None:
    run_parallel(RecordParallel(Race(), notebook))
    assert notebook.columns("episodes", "return", "length", "terminated", "truncated", "complete", "seed") == [
        (8.0, 4, True, True, True, 3)
    ]
    assert by_agent(notebook, "sum", "n", "mean") == {"hare": (4.0, 2, 2.0), "tortoise": (4.0, 4, 1.0)}
    assert (notebook.logged[0]["return/hare"], notebook.logged[0]["return/tortoise"]) == (4.0, 4.0)


def test_components_and_running_data_are_kept_by_agent(notebook: Any) -> None:
    run_parallel(RecordParallel(Race(), notebook))
    rows = {(row["agent"], row["component"]): row["sum"] for row in notebook.table("rewards")}
    assert rows["hare", "step"] == 4.0
    row = notebook.table("episodes")[0]
    assert (row["running/hare/speed/sum"], row["running/tortoise/speed/sum"]) == (3, 10)
    assert notebook.table("alerts") == []


def test_trajectories_have_a_row_per_step_and_agent_in_the_agents_own_shape(notebook: Any) -> None:
    run_parallel(RecordParallel(Race(), notebook, steps=True))
    rows = [row for row in notebook.table("steps") if row.get("agent") == "hare"]
    assert [(row["t"], row["obs"], row.get("action"), row.get("terminated")) for row in rows] == [
        (0, [0.0], 1, False),
        (1, [1.0], 1, True),
        (2, [2.0], None, None),
    ]
    rows = [row for row in notebook.table("steps") if row.get("agent") == "tortoise"]
    assert [len(row["obs"]) for row in rows] == [3] * 5
    assert [row.get("reward") for row in rows] == [1.0] * 4 + [None]


def test_trajectories_held_for_the_best_are_dropped_for_all_agents(notebook: Any) -> None:
    env = RecordParallel(Race(), notebook, steps="best")
    run_parallel(env)
    run_parallel(env)
    kept = {row["episode_id"] for row in notebook.table("steps") if row.get("agent")}
    assert kept == {notebook.table("episodes")[0]["episode_id"]}


def test_steps_of_all_agents_are_written_when_asked(notebook: Any) -> None:
    recorder = AgentsRecorder(notebook, steps=True)
    recorder.begin()
    for agent in ("hare", "tortoise"):
        recorder.add_row(agent, 0, np.zeros(2), 1, 1.0, False, False, None)
    assert notebook.table("steps") == []
    recorder.write_out()
    assert {row["agent"] for row in notebook.table("steps")} == {"hare", "tortoise"}


def test_agents_in_turn_are_credited_with_their_own_rewards(notebook: Any) -> None:
    run_turns(RecordAEC(Turns(), notebook))
    # a acts at 1, 3 and 5, b at 2 and 4
    assert by_agent(notebook, "sum") == {"a": (1.0,), "b": (-1.0,)}
    assert notebook.columns("episodes", "return", "length", "complete", "terminated") == [(0.0, 5, True, True)]


def test_an_agents_reward_belongs_to_its_step_before(notebook: Any) -> None:
    run_turns(RecordAEC(Turns(), notebook, steps=True))
    rows = [row for row in notebook.table("steps") if row.get("agent") == "a"]
    assert [(row["t"], row["obs"], row.get("action"), row.get("reward"), row.get("terminated")) for row in rows] == [
        (0, 0, 1, 0.0, False),
        (1, 2, 1, 0.0, False),
        (2, 4, 1, 1.0, True),
        (3, 5, None, None, None),
    ]


def test_an_episode_left_before_the_last_turns_is_paid_out(notebook: Any) -> None:
    env = RecordAEC(Turns(), notebook, steps=True)
    env.reset()
    for _ in range(5):
        env.step(1)
    env.reset()
    assert by_agent(notebook, "sum") == {"a": (1.0,), "b": (-1.0,)}
    assert notebook.columns("episodes", "complete", "length") == [(True, 5)]
    env.step(1)
    env.close()
    assert notebook.columns("episodes", "complete", "length") == [(True, 5), (False, 1)]


@pytest.mark.parametrize(("kind", "env", "run"), [(RecordParallel, Race, run_parallel), (RecordAEC, Turns, run_turns)])
def test_everything_else_is_passed_on_and_copies_are_not_recorded(notebook: Any, kind: Any, env: Any, run: Any) -> None:
    recorded = kind(env(), notebook)
    run(copy.deepcopy(recorded))
    assert notebook.table("episodes") == []
    assert recorded.possible_agents == env.possible_agents
    assert recorded.metadata is env.metadata
    assert type(recorded.unwrapped) is env
    texts = dict(notebook.columns("text", "key", "text"))
    assert texts["env/id"] == env.metadata["name"]
    assert f"env/observation_space/{env.possible_agents[0]}" in texts


def test_what_is_no_multi_agent_environment_is_refused(notebook: Any) -> None:
    with pytest.raises(BadInput, match="no last and no possible_agents"):
        RecordAEC(gymnasium.make("CartPole-v1"), notebook)
