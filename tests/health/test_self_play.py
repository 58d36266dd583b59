"""In self-play half of the games are won, whatever is learned: that is no fault."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

import rollbook
from rollbook import health
from rollbook.protocols import Row
from rollbook.runs.checking import check
from rollbook.schema.columns import columns_of
from rollbook.testing import some_run

RULES = ("learns_nothing", "no_signal", "return_fall")


def said(rows: list[Row], config: Any = None, size: int = 100) -> dict[str, str]:
    found = {}
    for name in RULES:
        rule = health.make(name)
        rule.open(replace(some_run(Path("run")), config=config or {}))
        for first in range(0, len(rows), size):
            for alert in rule.look(columns_of(rows[first : first + size]), 0.0):
                found[name] = alert.message
    return found


def games(n: int = 2_200, **sides: float) -> list[Row]:
    chance = Random(7)
    won = [chance.choice((-1.0, 1.0)) for _ in range(n)]
    return [
        Row(1.7e9 + i, {"env_step": 50 * i}, {key.replace("__", "/"): sign * won[i] for key, sign in sides.items()})
        for i in range(n)
    ]


@pytest.mark.parametrize(
    "config",
    [{"self_play": True}, {"train": {"selfplay": "on"}}, {"self_play": {"save_steps": 20_000, "window": 10}}],
    ids=["a switch", "deep", "ML-Agents"],
)
def test_a_configuration_that_names_self_play_is_believed(config: Any) -> None:
    assert said(games(charts__episodic_return=1.0), config) == {}


@pytest.mark.parametrize("off", [False, 0, None, "none", "False"])
def test_games_that_are_not_said_to_be_self_play_are_reported_with_what_would_silence_it(off: Any) -> None:
    found = said(games(charts__episodic_return=1.0), {"self_play": off})
    assert set(found) == {"learns_nothing"}
    assert 'config={"self_play": True}' in found["learns_nothing"]


@pytest.mark.parametrize("size", [1, 100, 10_000])
def test_returns_of_both_sides_that_add_up_to_zero_are_self_play(size: int) -> None:
    assert said(games(train__return=1.0, train__return__black=1.0, train__return__white=-1.0), size=size) == {}
    assert set(said(games(train__return=1.0, train__return__black=1.0, train__return__white=1.0), size=size)) == {
        "learns_nothing"
    }


def test_returns_of_a_task_with_many_values_are_reported_without_a_word_of_self_play() -> None:
    chance = Random(7)
    rows = [Row(1.7e9 + i, {"env_step": i}, {"charts/episodic_return": chance.gauss(0, 1)}) for i in range(2_200)]
    assert "self-play" not in said(rows)["learns_nothing"]


def test_a_recorded_zero_sum_game_raises_no_alert(tmp_path: Path) -> None:
    with rollbook.init("game", dir=tmp_path, sinks=[], keeper="inline", total={"env_step": 4_000}) as run:
        scope = run.scope("train")
        recorder = rollbook.capture.multiagent.RecordParallel(Matching(), scope)
        for _ in range(400):
            recorder.reset()
            while recorder.agents:
                recorder.step({"black": 0, "white": 0})
        recorder.close()
    assert [row["rule"] for row in run.book.alerts().to_pylist() if row["rule"] in RULES] == []
    assert [alert for alert in check(run.book, RULES) if alert.level != "note"] == []


class Matching:
    """A game of ten moves, which one of two sides wins by chance."""

    possible_agents = ["black", "white"]  # noqa: RUF012

    def __init__(self) -> None:
        self.chance, self.moves = Random(3), 0
        self.agents: list[str] = []

    def observation_space(self, agent: str) -> None:
        return None

    action_space = observation_space

    @property
    def unwrapped(self) -> Any:
        return self

    def reset(self, seed: Any = None, options: Any = None) -> Any:
        self.agents, self.moves = list(self.possible_agents), 0
        return dict.fromkeys(self.agents, 0), {agent: {} for agent in self.agents}

    def step(self, actions: Any) -> Any:
        self.moves += 1
        over = self.moves == 10
        won = self.chance.choice((-1.0, 1.0)) if over else 0.0
        rewards = {"black": won, "white": -won}
        seen = dict.fromkeys(self.agents, 0)
        ends, cuts = dict.fromkeys(self.agents, over), dict.fromkeys(self.agents, False)
        infos: Any = {agent: {} for agent in self.agents}
        self.agents = [] if over else self.agents
        return seen, rewards, ends, cuts, infos

    def close(self) -> None: ...
