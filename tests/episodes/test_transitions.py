"""Transitions from anywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rollbook.capture import TransitionRecorder
from rollbook.errors import BadInput


def test_transitions_become_rows_and_episodes_end_by_themselves(notebook: Any) -> None:
    with TransitionRecorder(notebook) as transitions:
        for t in range(5):
            transitions.add(
                obs=np.array([t, t]),
                action=t,
                reward=0.5,
                next_obs=np.array([t + 1, t]),
                terminated=t == 2,
                info={"x": t},
                action_logp=-0.7,
            )
    rows = notebook.table("steps")
    assert [(row["t"], row["obs"], row["next_obs"], row["terminated"]) for row in rows[:3]] == [
        (0, [0, 0], [1, 0], False),
        (1, [1, 1], [2, 1], False),
        (2, [2, 2], [3, 2], True),
    ]
    assert [row["t"] for row in rows[3:]] == [0, 1]
    assert {row["action_logp"] for row in rows} == {-0.7}
    assert [row["info/x"] for row in rows] == [0, 1, 2, 3, 4]
    assert notebook.columns("episodes", "return", "length", "complete") == [(1.5, 3, True), (1.0, 2, False)]


def test_environments_and_agents_are_kept_apart(notebook: Any) -> None:
    with TransitionRecorder(notebook) as transitions:
        for t in range(3):
            for env in (0, 1):
                for agent in ("a", "b"):
                    transitions.add(
                        obs=t, action=env, reward=env + (agent == "b"), agent=agent, env_index=env, terminated=t == 2
                    )
    episodes = {row["env_index"]: row for row in notebook.table("episodes")}
    assert [(episodes[env]["return"], episodes[env]["length"], episodes[env]["complete"]) for env in (0, 1)] == [
        (3.0, 3, True),
        (9.0, 3, True),
    ]
    sums = {(row["episode_id"], row["agent"]): row["sum"] for row in notebook.table("rewards")}
    assert sums[episodes[1]["episode_id"], "b"] == 6.0


@pytest.mark.parametrize("known", [True, False])
def test_an_episode_of_several_agents_ends_with_the_last_of_them(notebook: Any, known: bool) -> None:
    transitions = TransitionRecorder(notebook, agents=["a", "b"] if known else None)
    for agent in ("a", "b"):
        transitions.add(action=0, reward=1.0, terminated=True, agent=agent)
        assert len(notebook.table("episodes")) == (1 if known and agent == "b" else 0)
    transitions.add(action=0, reward=5.0, agent="a")
    assert notebook.columns("episodes", "return", "complete") == [(2.0, True)]
    transitions.close()
    assert notebook.columns("episodes", "return", "complete") == [(2.0, True), (5.0, False)]


def test_whole_arrays_are_taken_at_once(notebook: Any) -> None:
    with TransitionRecorder(notebook) as transitions:
        transitions.add_many(
            obs={"p": np.arange(6).reshape(6, 1), "q": np.arange(6)},
            action=np.arange(6),
            reward=np.ones(6),
            terminated=[False, False, True, False, False, True],
            logits=np.zeros((6, 2)),
        )
    assert [row["obs/q"] for row in notebook.table("steps")] == list(range(6))
    assert notebook.table("steps")[0]["logits"] == [0.0, 0.0]
    assert notebook.columns("episodes", "return", "length") == [(3.0, 3), (3.0, 3)]


def test_the_callers_episode_ids_are_kept(notebook: Any) -> None:
    with TransitionRecorder(notebook) as transitions:
        transitions.add_many(action=[1, 2, 3], reward=[1, 1, 1], episode_ids=["x", "y", "x"])
    assert notebook.columns("steps", "episode_id", "t") == [("x", 0), ("x", 1), ("y", 0)]


def test_arrays_of_unlike_lengths_are_named_and_what_fits_is_kept(notebook: Any) -> None:
    with TransitionRecorder(notebook) as transitions:
        transitions.add_many(action=[1, 2, 3], reward=[1.0, 2.0])
    assert [row["action"] for row in notebook.table("steps")] == [1, 2]
    assert "'action': 3" in notebook.messages["uneven_transitions"]


def test_infos_that_cannot_be_stored_are_named_once(notebook: Any) -> None:
    with TransitionRecorder(notebook) as transitions:
        for _ in range(3):
            transitions.add(action=1, reward=1.0, info={"bad": object(), "good": 1})
    assert notebook.counts == {"unstorable/info/bad": 3}
    assert [row["info/good"] for row in notebook.table("steps")] == [1, 1, 1]


def test_many_open_episodes_do_not_pile_up(notebook: Any) -> None:
    transitions = TransitionRecorder(notebook, most_open=3)
    for env in range(10):
        transitions.add(action=0, reward=1.0, env_index=env)
    assert len(notebook.table("episodes")) == 7
    transitions.flush()
    assert len(notebook.table("steps")) == 10


def test_limits_that_are_none_are_refused(notebook: Any) -> None:
    with pytest.raises(BadInput, match="most_open=0"):
        TransitionRecorder(notebook, most_open=0)
