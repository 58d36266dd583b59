"""One gymnasium environment, recorded."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from typing import Any

import gymnasium
import numpy as np
import pytest

from rollbook.capture.gym import RecordEpisodes
from rollbook.errors import BadInput

TAXI = max(spec.version or 0 for spec in gymnasium.registry.values() if spec.name == "Taxi")


def play(env: Any, episodes: int, seed: int = 0) -> None:
    for n in range(episodes):
        env.reset(seed=seed + n)
        over = False
        while not over:
            _, _, terminated, truncated, _ = env.step(0)
            over = terminated or truncated


def test_each_episode_is_one_row_with_its_return_length_and_end(notebook: Any, make_env: Any) -> None:
    env = RecordEpisodes(make_env([3, 5], reward=0.5), notebook)
    play(env, 3, seed=7)
    assert notebook.columns(
        "episodes", "return", "length", "terminated", "truncated", "complete", "seed", "number"
    ) == [
        (1.5, 3, True, False, True, 7, 0),
        (2.5, 5, True, False, True, 8, 1),
        (1.5, 3, True, False, True, 9, 2),
    ]
    assert len({row["episode_id"] for row in notebook.table("episodes")}) == 3
    assert all(row["seconds"] >= 0 for row in notebook.table("episodes"))


def test_resets_at_regular_intervals_are_not_taken_for_a_time_limit(notebook: Any, make_env: Any) -> None:
    """A program that evaluates at intervals and then resets; a limit outside would have allowed no longer episode."""
    env = RecordEpisodes(make_env([5]), notebook)
    for _ in range(4):
        play(env, 1)
        env.reset()
        for _ in range(2):
            env.step(0)
    env.reset()
    assert notebook.counts == {}
    limited = RecordEpisodes(make_env([5]), notebook)
    for _ in range(4):
        limited.reset()
        for _ in range(3):
            limited.step(0)
    limited.reset()
    assert notebook.counts == {"episodes_cut_short": 1}


def test_callbacks_can_ask_which_run_gets_the_episodes(notebook: Any, make_env: Any) -> None:
    """They do not record them again."""
    nonce = notebook.run.internals.about.nonce
    for recorder in (notebook.run, notebook.run.scope("train")):
        assert RecordEpisodes(make_env([2]), recorder).recorded_by == nonce != ""


def test_truncation_is_kept_apart_from_termination(notebook: Any, make_env: Any) -> None:
    play(RecordEpisodes(make_env([2], truncate=True), notebook), 1)
    assert notebook.columns("episodes", "terminated", "truncated") == [(False, True)]


def test_returns_and_lengths_are_curves_too(notebook: Any, make_env: Any) -> None:
    play(RecordEpisodes(make_env([3, 5]), notebook), 2)
    assert [(row["return"], row["length"], row["counted_env_step"]) for row in notebook.logged] == [
        (3, 3, 3),
        (5, 5, 8),
    ]


def test_the_callers_clock_wins_and_the_own_count_is_kept_beside_it(notebook: Any, make_env: Any) -> None:
    notebook.clock(env_step=4000)
    play(RecordEpisodes(make_env([3]), notebook), 1)
    assert notebook.columns("episodes", "clock:env_step", "counted_env_step") == [(4000, 3)]


def test_a_clock_is_driven_when_asked_for(notebook: Any, make_env: Any) -> None:
    env = RecordEpisodes(make_env([3, 2]), notebook, clock="env_step")
    env.reset()
    env.step(0)
    assert notebook.clocks_now() == {"env_step": 1}
    play(env, 1)
    assert notebook.clocks_now() == {"env_step": 3}


@pytest.mark.parametrize("settings", [{}, {"steps": "first, best", "video": "first"}], ids=["plain", "all kept"])
def test_the_agent_sees_exactly_what_it_saw_before(notebook: Any, settings: Any) -> None:
    for name in (
        "CartPole-v1",
        "Pendulum-v1",
        "Acrobot-v1",
        "MountainCarContinuous-v0",
        "Blackjack-v1",
        f"Taxi-v{TAXI}",
    ):
        plain = gymnasium.make(name)
        recorded = RecordEpisodes(
            gymnasium.make(name, render_mode="rgb_array" if name == "CartPole-v1" else None), notebook, **settings
        )
        plain.action_space.seed(1)
        recorded.action_space.seed(1)
        for env_seed in (3, None, None):
            options = None
            assert_same(plain.reset(seed=env_seed, options=options), recorded.reset(seed=env_seed, options=options))
            for _ in range(60):
                a, b = plain.action_space.sample(), recorded.action_space.sample()
                assert_same(a, b)
                mine, theirs = recorded.step(b), plain.step(a)
                assert_same(mine, theirs)
                if theirs[2] or theirs[3]:
                    break
        assert plain.unwrapped.np_random.bit_generator.state == recorded.unwrapped.np_random.bit_generator.state
        assert recorded.spec.id == plain.spec.id
        assert recorded.observation_space == plain.observation_space
        plain.close()
        recorded.close()


def assert_same(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    if isinstance(one, (tuple, list)):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_same(a, b)
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for key in one:
            assert_same(one[key], other[key])
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    else:
        assert one == other


def test_a_reset_in_the_middle_leaves_an_incomplete_episode_and_no_point_on_the_curve(
    notebook: Any, make_env: Any
) -> None:
    env = RecordEpisodes(make_env([5]), notebook)
    env.reset()
    env.step(0)
    env.step(0)
    env.reset()
    assert notebook.columns("episodes", "return", "length", "complete") == [(2.0, 2, False)]
    assert notebook.logged == []


def test_closing_keeps_the_part_of_the_episode_under_way(notebook: Any, make_env: Any) -> None:
    env = RecordEpisodes(make_env([5]), notebook, steps=True)
    env.reset()
    env.step(1)
    env.close()
    assert notebook.columns("episodes", "length", "complete") == [(1, False)]
    assert [row["t"] for row in notebook.table("steps")] == [0, 1]


def test_options_and_policy_versions_are_kept(notebook: Any, make_env: Any) -> None:
    notebook.clock(policy_version=4)
    env = RecordEpisodes(make_env([2]), notebook)
    env.reset(seed=3, options={"level": np.int64(2), "names": ("a", "b")})
    notebook.clock(policy_version=5)
    env.step(0)
    env.step(0)
    row = notebook.table("episodes")[0]
    assert row["options"] == '{"level": 2, "names": ["a", "b"]}'
    assert (row["policy_version_at_start"], row["clock:policy_version"]) == (4, 5)


def test_running_data_is_kept_per_step_and_summed_up_and_final_data_once(notebook: Any, make_env: Any) -> None:
    def info(t: int, over: bool) -> dict[str, Any]:
        return {"data": {"running": {"speed": 2.5 * t}, "final": {"parts": t * 10}}}

    play(RecordEpisodes(make_env([3], info=info), notebook), 1)
    row = notebook.table("episodes")[0]
    assert [row[f"running/speed/{what}"] for what in ("mean", "sum", "min", "max")] == [5.0, 15.0, 2.5, 7.5]
    assert row["final/parts"] == 30
    assert notebook.columns("steps", "t", "running/speed") == [(0, 2.5), (1, 5.0), (2, 7.5)]
    assert notebook.logged[0]["running/speed/mean"] == 5.0
    assert notebook.logged[0]["final/parts"] == 30.0


def test_selected_info_keys_are_kept_nested_ones_too(notebook: Any, make_env: Any) -> None:
    env = RecordEpisodes(
        make_env([2], info=lambda t, over: {"lives": 3 - t, "deep": {"x": np.float32(0.5)}}),
        notebook,
        info_keys=["lives", "deep/x", "no"],
    )
    play(env, 1)
    row = notebook.table("episodes")[0]
    assert (row["info/lives"], row["info/deep/x"]) == (1, 0.5)
    assert "info/no" not in row


def test_media_of_the_info_is_kept_pictures_as_a_film(notebook: Any, make_env: Any) -> None:
    def info(t: int, over: bool) -> dict[str, Any]:
        return {"media": {"trace": np.array([t, t + 1]), "view": np.full((16, 16, 3), t, np.uint8)}}

    play(RecordEpisodes(make_env([3], info=info), notebook), 1)
    assert [row["media/trace"] for row in notebook.table("steps")] == [[1, 2], [2, 3], [3, 4]]
    ((key, frames, _fps),) = notebook.videos
    assert key == "media/view"
    assert frames.shape == (3, 16, 16, 3)


def test_objects_that_cannot_be_stored_are_named_once_and_the_rest_is_kept(notebook: Any, make_env: Any) -> None:
    class Thing:
        pass

    def info(t: int, over: bool) -> dict[str, Any]:
        return {"data": {"running": {"thing": Thing(), "x": t}}, "other": lambda: 0}

    play(RecordEpisodes(make_env([4], info=info), notebook, steps=True), 1)
    assert notebook.counts == {"unstorable/running/thing": 4, "unstorable/info/other": 4}
    assert "Thing" in notebook.messages["unstorable/running/thing"]
    assert notebook.table("episodes")[0]["running/x/sum"] == 10
    assert len(notebook.table("steps")) == 5


def test_reward_components_are_found_and_make_rows(notebook: Any, make_env: Any) -> None:
    env = RecordEpisodes(
        make_env([2], reward=0.75, info=lambda t, over: {"reward_forward": 1.0, "reward_ctrl": -0.25}), notebook
    )
    play(env, 1)
    rows = {row["component"]: (row["sum"], row["n"], row["stage"]) for row in notebook.table("rewards")}
    assert rows == {"forward": (2.0, 2, "final"), "ctrl": (-0.5, 2, "final"), "": (1.5, 2, "final")}
    assert notebook.logged[0]["reward/forward"] == 2.0
    assert notebook.table("alerts") == []


def test_components_that_do_not_add_up_are_an_alert(notebook: Any, make_env: Any) -> None:
    env = RecordEpisodes(
        make_env([2], reward=1.0, info=lambda t, over: {"reward_components": {"a": 0.25, "b": 0.25}}), notebook
    )
    play(env, 1)
    (alert,) = notebook.table("alerts")
    assert alert["rule"] == "reward_ledger"
    assert '"difference": 1.0' in alert["evidence"]


def test_a_reward_vector_is_kept_by_part(notebook: Any, make_env: Any) -> None:
    env = RecordEpisodes(make_env([2], reward=np.array([1.0, -0.5])), notebook)  # type: ignore[arg-type]
    play(env, 1)
    assert notebook.columns("episodes", "return") == [(1.0,)]
    assert {(row["component"], row["sum"]) for row in notebook.table("rewards")} == {("0", 2.0), ("1", -1.0), ("", 1.0)}


def test_a_copy_of_a_recorded_environment_is_not_recorded(notebook: Any) -> None:
    env = RecordEpisodes(gymnasium.make("CartPole-v1"), notebook)
    env.reset(seed=1)
    twin = copy.deepcopy(env)
    again = pickle.loads(pickle.dumps(env))
    for _ in range(8):
        assert_same(twin.step(0), again.step(0))
    assert notebook.table("episodes") == []
    env.close()


def test_attributes_of_the_environment_stay_in_reach(notebook: Any, make_env: Any) -> None:
    env = RecordEpisodes(make_env([2]), notebook)
    assert env.custom == "mine"
    with pytest.raises(AttributeError):
        _ = env.nothing_of_that_name
    env.set_wrapper_attr("custom", "yours")
    assert (env.unwrapped.custom, env.custom) == ("yours", "yours")
    envs = RecordEpisodes(gymnasium.vector.SyncVectorEnv([lambda: make_env([2])] * 2), notebook)
    envs.env.set_attr("custom", [1, 2])
    assert envs.env.get_attr("custom") == (1, 2)
    assert [sub.unwrapped.custom for sub in envs.env.envs] == [1, 2]


def test_an_environment_that_resets_itself_is_counted_rightly(notebook: Any, make_env: Any) -> None:
    env = RecordEpisodes(gymnasium.wrappers.Autoreset(make_env([3, 4])), notebook)
    env.reset()
    for _ in range(3 + 1 + 4 + 1 + 1):
        env.step(0)
    assert notebook.columns("episodes", "return", "length") == [(3.0, 3), (4.0, 4)]


def test_what_is_no_environment_is_refused_by_name(notebook: Any) -> None:
    with pytest.raises(BadInput, match="it was given dict"):
        RecordEpisodes({}, notebook)
    with pytest.raises(BadInput, match="'sometimes'"):
        RecordEpisodes(gymnasium.make("CartPole-v1"), notebook, steps="sometimes")


def test_odd_rewards_never_reach_the_loop(notebook: Any, make_env: Any) -> None:
    env = RecordEpisodes(make_env([2], reward=None), notebook)  # type: ignore[arg-type]
    play(env, 1)
    assert notebook.counts == {"odd_reward": 2}
    assert "neither a number nor a vector of numbers" in notebook.messages["odd_reward"]


def test_the_spaces_are_written_down(notebook: Any) -> None:
    RecordEpisodes(gymnasium.make("CartPole-v1"), notebook)
    said = dict(notebook.columns("text", "key", "text"))
    assert said["env/id"] == "CartPole-v1"
    assert '"n": 2' in said["env/action_space"]


def test_a_recorded_environment_goes_with_its_last_reference(notebook: Any, make_env: Any) -> None:
    inner = gymnasium.wrappers.RecordEpisodeStatistics(make_env([2]))
    gone = weakref.ref(inner)
    env = RecordEpisodes(inner, notebook, steps="best, alert", video=True)
    env.reset()
    while not env.step(0)[2]:
        pass
    gc.collect()
    gc.disable()
    try:
        del env, inner
        assert gone() is None
    finally:
        gc.enable()
