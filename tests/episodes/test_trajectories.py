"""Which episodes keep their steps, and how these reach the table."""

from __future__ import annotations

import json
from typing import Any

import gymnasium
import numpy as np
import pytest

from rollbook.capture.episodes import steps as _steps
from rollbook.capture.episodes.recorder import EpisodeRecorder
from rollbook.capture.episodes.schedule import Schedule
from rollbook.capture.gym import RecordEpisodes
from rollbook.errors import BadInput


def episodes(recorder: EpisodeRecorder, rewards: list[float], length: int = 3) -> None:
    for reward in rewards:
        recorder.begin(obs=np.zeros(2, np.float32))
        for t in range(length):
            recorder.step(reward, t == length - 1, action=t, next_obs=np.full(2, t + 1, np.float32))


def kept(notebook: Any) -> list[str]:
    return [row["steps_kept"] for row in notebook.table("episodes")]


@pytest.mark.parametrize(
    ("said", "schedule"),
    [
        (None, Schedule()),
        (True, Schedule(every=1)),
        ("all", Schedule(every=1)),
        (7, Schedule(every=7)),
        ("first, every 100, best", Schedule(first=1, every=100, best=True)),
        ("first 3, worst, alert", Schedule(first=3, worst=True, on_alert=True)),
        (["first 2", "on_alert"], Schedule(first=2, on_alert=True)),
        ("never", Schedule()),
    ],
)
def test_a_schedule_can_be_given_in_many_ways(said: Any, schedule: Schedule) -> None:
    assert Schedule.of(said) == schedule


@pytest.mark.parametrize("said", ["now and then", "every two", 3.5, "best 3"])
def test_a_schedule_that_makes_no_sense_is_refused_with_the_forms(said: Any) -> None:
    with pytest.raises(BadInput, match="it can be True or 'all'"):
        Schedule.of(said)


def test_first_and_every_choose_by_number(notebook: Any) -> None:
    episodes(EpisodeRecorder(notebook, steps="first 2, every 5"), [1.0] * 11)
    assert [i for i, why in enumerate(kept(notebook)) if why] == [0, 1, 5, 10]


def test_a_function_chooses(notebook: Any) -> None:
    episodes(EpisodeRecorder(notebook, steps=lambda n: n in (1, 3)), [1.0] * 5)
    assert [i for i, why in enumerate(kept(notebook)) if why] == [1, 3]


def test_best_and_worst_are_kept_when_they_beat_all_before(notebook: Any) -> None:
    episodes(EpisodeRecorder(notebook, steps="best, worst"), [2.0, 1.0, 3.0, 3.0, 1.5, 0.5])
    assert kept(notebook) == ["best", "worst", "best", "", "", "worst"]
    ids = {row["episode_id"] for row in notebook.table("steps")}
    assert len(ids) == 4
    assert len(notebook.table("steps")) == 4 * 4


def test_an_episode_somebody_marked_is_kept_on_alert(notebook: Any) -> None:
    recorder = EpisodeRecorder(notebook, steps="alert")
    recorder.begin(obs=0)
    recorder.step(1.0, action=1, next_obs=1)
    recorder.mark()
    recorder.step(1.0, True, action=1, next_obs=2)
    episodes(recorder, [1.0])
    assert kept(notebook) == ["alert", ""]


def test_an_episode_the_auditor_or_the_ledger_doubts_is_kept_on_alert(notebook: Any, make_env: Any) -> None:
    class Statistics(gymnasium.wrappers.RecordEpisodeStatistics):
        """Off by one in the second episode."""

        def step(self, action: Any) -> Any:
            result = super().step(action)
            if "episode" in result[4] and self.episode_count == 2:
                result[4]["episode"]["l"] -= 1
            return result

    Statistics.__name__ = "RecordEpisodeStatistics"

    def said(t: int, over: bool) -> dict[str, Any]:
        odd = inner.unwrapped.episode == 3 and over
        return {"reward_parts": 1.0 + odd}

    inner = Statistics(make_env([4], info=said))
    env = RecordEpisodes(inner, notebook, steps="alert", video="alert")
    for _ in range(5):
        env.reset()
        while not env.step(0)[2]:
            pass
    assert kept(notebook) == ["", "alert", "", "alert", ""]
    rules = [(row["rule"], json.loads(row["evidence"])["episode_id"]) for row in notebook.table("alerts")]
    ids = [row["episode_id"] for row in notebook.table("episodes")]
    assert rules == [("episode_audit", ids[1]), ("reward_ledger", ids[3])]
    assert {row["episode_id"] for row in notebook.table("steps") if "obs" in row} == {ids[1], ids[3]}
    assert [len(frames) for _, frames, _ in notebook.videos] == [5, 5]


def test_a_check_that_fails_costs_no_episode(notebook: Any) -> None:
    def fail(recorder: EpisodeRecorder, info: Any) -> None:
        raise ZeroDivisionError

    recorder = EpisodeRecorder(notebook)
    recorder.check = fail
    recorder.begin()
    recorder.step(1.0, True)
    assert notebook.columns("episodes", "return") == [(1.0,)]
    assert "ZeroDivisionError" in notebook.messages["episode_recording"]


def test_rows_hold_the_observation_the_action_was_chosen_on_and_the_last_one_follows(notebook: Any) -> None:
    episodes(EpisodeRecorder(notebook, steps=True), [0.5])
    rows = notebook.table("steps")
    assert [(row["t"], row["obs"], row.get("action"), row.get("reward"), row.get("terminated")) for row in rows] == [
        (0, [0.0, 0.0], 0, 0.5, False),
        (1, [1.0, 1.0], 1, 0.5, False),
        (2, [2.0, 2.0], 2, 0.5, True),
        (3, [3.0, 3.0], None, None, None),
    ]


def test_arrays_keep_their_type_in_one_block_per_chunk(notebook: Any) -> None:
    episodes(EpisodeRecorder(notebook, steps=True), [0.5], length=4)
    (_, columns, n) = next(frame for frame in notebook.frames if frame[0] == "steps")
    assert (n, columns["obs"].shape, columns["obs"].dtype) == (4, (4, 2), np.float32)


def test_long_trajectories_go_out_in_chunks_while_the_episode_runs(notebook: Any) -> None:
    recorder = EpisodeRecorder(notebook, steps=True)
    recorder.begin(obs=0)
    for t in range(_steps.CHUNK_ROWS + 10):
        recorder.step(1.0, action=0, next_obs=t + 1)
    assert len(notebook.table("steps")) == _steps.CHUNK_ROWS
    recorder.step(1.0, True, action=0, next_obs=0)
    assert [row["t"] for row in notebook.table("steps")] == list(range(_steps.CHUNK_ROWS + 12))


def test_large_observations_make_small_chunks(notebook: Any) -> None:
    recorder = EpisodeRecorder(notebook, steps=True)
    recorder.begin(obs=np.zeros((256, 256), np.uint8))
    for _ in range(20):
        recorder.step(1.0, action=0, next_obs=np.zeros((256, 256), np.uint8))
    assert len(notebook.table("steps")) == 16


def test_a_slow_episode_is_written_each_second(notebook: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    at = [0]
    monkeypatch.setattr(_steps, "now", lambda: at[0])
    recorder = EpisodeRecorder(notebook, steps=True)
    recorder.begin(obs=0)
    for _ in range(6):
        at[0] += 300_000_000
        recorder.step(1.0, action=0, next_obs=0)
    assert len(notebook.table("steps")) == 5


def test_observations_that_change_their_shape_are_kept_as_lists(notebook: Any) -> None:
    recorder = EpisodeRecorder(notebook, steps=True)
    recorder.begin(obs=np.zeros(1))
    recorder.step(1.0, action=0, next_obs=np.zeros(2))
    recorder.step(1.0, action=0, next_obs={"now": np.zeros(3)})
    recorder.step(1.0, True, action=0, next_obs={"now": "text"})
    assert [(row.get("obs"), row.get("obs/now")) for row in notebook.table("steps")] == [
        ([0.0], None),
        ([0.0, 0.0], None),
        (None, "[0.0, 0.0, 0.0]"),  # a column of lists and texts is one of JSON
        (None, '"text"'),
    ]


def test_infos_are_part_of_the_trajectory(notebook: Any, make_env: Any) -> None:
    env = RecordEpisodes(
        make_env([2], info=lambda t, over: {"x": t, "deep": {"y": np.arange(t)}}), notebook, steps=True
    )
    env.reset()
    env.step(0)
    env.step(0)
    rows = notebook.table("steps")
    assert [row.get("info/x") for row in rows] == [1, 2, None]
    assert [row.get("info/deep/y") for row in rows] == [[0], [0, 1], None]


def test_a_trajectory_has_a_limit_that_is_reported(notebook: Any) -> None:
    recorder = EpisodeRecorder(notebook, steps=True, most_steps=10)
    episodes(recorder, [1.0], length=15)
    assert len(notebook.table("steps")) == 10
    assert notebook.table("episodes")[0]["length"] == 15
    assert notebook.counts["steps_beyond_limit"] == 6
    assert "10" in notebook.messages["steps_beyond_limit"]


def test_an_episode_held_for_the_best_gives_up_beyond_its_memory_but_keeps_running_data(notebook: Any) -> None:
    recorder = EpisodeRecorder(notebook, steps="best", held_bytes=100_000)
    recorder.begin(obs=np.zeros(100))
    for t in range(600):
        info = {"data": {"running": {"x": t}}}
        recorder.step(1.0, t == 599, info=info, action=0, next_obs=np.zeros(100))
    assert notebook.counts["held_episode_too_large"] == 1
    assert kept(notebook) == [""]
    assert [row["running/x"] for row in notebook.table("steps")] == list(range(600))
    assert all("obs" not in row for row in notebook.table("steps"))


def test_running_data_of_episodes_that_were_held_in_vain_is_kept(notebook: Any) -> None:
    recorder = EpisodeRecorder(notebook, steps="best")
    for reward in (2.0, 1.0):
        recorder.begin(obs=0)
        for t in range(3):
            recorder.step(reward, t == 2, info={"data": {"running": {"x": t}}}, action=0, next_obs=0)
    by_episode = [row["episode_id"] for row in notebook.table("episodes")]
    second = [row for row in notebook.table("steps") if row["episode_id"] == by_episode[1]]
    assert [(row["t"], row["running/x"], row.get("obs")) for row in second] == [
        (0, 0, None),
        (1, 1, None),
        (2, 2, None),
    ]


def test_films_are_rendered_on_their_schedule_and_thinned_to_their_memory(notebook: Any, make_env: Any) -> None:
    env = RecordEpisodes(make_env([8]), notebook, video="first", held_bytes=16 * 24 * 3 * 5)
    for _ in range(2):
        env.reset()
        for _ in range(8):
            env.step(0)
    ((key, frames, fps),) = notebook.videos
    assert key == "video"
    assert frames[:, 0, 0, 0].tolist() == [0, 2, 4, 6, 8]
    assert fps == 10


def test_a_film_of_one_frame_is_a_picture(notebook: Any) -> None:
    recorder = EpisodeRecorder(notebook)
    recorder.begin()
    recorder.step(1.0, True, info={"media": {"view": np.zeros((16, 16, 3), np.uint8)}})
    assert [key for key, _ in notebook.images] == ["media/view"]


def test_best_films_are_kept(notebook: Any, make_env: Any) -> None:
    env = RecordEpisodes(make_env([2, 4, 3]), notebook, video="best")
    for _ in range(3):
        env.reset()
        over = False
        while not over:
            over = env.step(0)[2]
    assert [len(frames) for _, frames, _ in notebook.videos] == [3, 5]


def test_an_environment_that_gives_no_frames_is_reported_once(notebook: Any) -> None:
    import gymnasium

    RecordEpisodes(gymnasium.make("CartPole-v1"), notebook, video=True)
    assert "render_mode='rgb_array'" in notebook.messages["no_frames"]


def test_steps_in_memory_are_written_when_asked_and_held_ones_are_not(notebook: Any) -> None:
    now, later = EpisodeRecorder(notebook, steps=True), EpisodeRecorder(notebook, steps="best")
    for recorder in (now, later):
        recorder.begin(obs=0)
        recorder.step(1.0, action=1, next_obs=1)
        recorder.write_out()
    assert {row["episode_id"] for row in notebook.table("steps")} == {now.episode_id}
    for recorder in (now, later):
        recorder.step(1.0, True, action=1, next_obs=2)
        recorder.write_out()
    assert len(notebook.table("steps")) == 2 * 3
