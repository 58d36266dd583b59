"""Trajectories read back from a book, episode by episode."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from rollbook.capture import TransitionRecorder
from rollbook.capture.episodes.recorder import EpisodeRecorder
from rollbook.errors import BadInput
from rollbook.formats.datasets import StepSource, to_lerobot
from rollbook.formats.datasets._whole import Exported, whole_trajectories


def assert_rows(tree: Any, samples: list[Any]) -> None:
    """`tree` holds arrays [rows, ...]; `samples` one sample of the space per row."""
    first = samples[0]
    if isinstance(first, dict):
        assert set(tree) == set(first)
        for name in first:
            assert_rows(tree[name], [sample[name] for sample in samples])
    elif isinstance(first, tuple):
        assert isinstance(tree, tuple)
        for i in range(len(first)):
            assert_rows(tree[i], [sample[i] for sample in samples])
    else:
        expected = np.stack([np.asarray(sample) for sample in samples])
        assert tree.dtype == expected.dtype
        np.testing.assert_array_equal(tree, expected)


@pytest.mark.parametrize("observed", ["vector", "discrete", "dict", "tuple", "multi_discrete", "multi_binary", "image"])
def test_every_kind_of_observation_comes_back_as_its_space_has_it(recorded: Any, observed: str) -> None:
    book, given = recorded(observed, "discrete")
    source = StepSource(book)
    space = source.space("observation")
    found = list(source)
    assert len(found) == len(given) == 3
    for trajectory, truth in zip(found, given, strict=True):
        assert trajectory.is_whole
        assert_rows(trajectory.observations(space), truth["obs"])
        assert_rows(trajectory.next_observations(space), truth["obs"][1:])
        assert_rows(trajectory.actions(source.space("action")), truth["action"])
        assert trajectory.columns["reward"].tolist() == truth["reward"]
        assert trajectory.row["seed"] == truth["seed"]


@pytest.mark.parametrize("acted", ["vector", "dict", "tuple", "multi_discrete", "multi_binary"])
def test_every_kind_of_action_comes_back_as_its_space_has_it(recorded: Any, acted: str) -> None:
    book, given = recorded("vector", acted)
    source = StepSource(book)
    for trajectory, truth in zip(source, given, strict=True):
        assert_rows(trajectory.actions(source.space("action")), truth["action"])


def assert_same(found: Any, given: Any) -> None:
    """One value of any space, with its types."""
    assert type(found) is type(given) or not isinstance(given, (tuple, dict)), (found, given)
    if isinstance(given, dict):
        assert set(found) == set(given)
        for name in given:
            assert_same(found[name], given[name])
    elif isinstance(given, tuple):
        assert len(found) == len(given)
        for part, truth in zip(found, given, strict=True):
            assert_same(part, truth)
    elif given is None or isinstance(given, str):
        assert found == given
    else:
        assert np.asarray(found).dtype == np.asarray(given).dtype
        np.testing.assert_array_equal(found, given)


_Box, _Discrete = gymnasium.spaces.Box, gymnasium.spaces.Discrete
RAGGED = {
    "graph": gymnasium.spaces.Graph(_Box(-1, 1, (3,), np.float32), _Discrete(4)),
    "graph without edge values": gymnasium.spaces.Graph(_Box(-1, 1, (2,), np.float64), None),
    "sequence": gymnasium.spaces.Sequence(_Box(-1, 1, (2,), np.float32)),
    "stacked sequence": gymnasium.spaces.Sequence(_Box(-1, 1, (2,), np.float32), stack=True),
    "sequence of numbers": gymnasium.spaces.Sequence(_Discrete(5)),
    "one of": gymnasium.spaces.OneOf([_Discrete(3), _Box(0, 1, (2,), np.float32)]),
    "inside a dict": gymnasium.spaces.Dict({"a": gymnasium.spaces.Sequence(_Discrete(5)), "b": _Discrete(2)}),
    "inside a tuple": gymnasium.spaces.Tuple([gymnasium.spaces.OneOf([_Discrete(3), _Discrete(9)]), _Discrete(2)]),
}


@pytest.mark.parametrize("kind", RAGGED)
def test_graphs_sequences_and_one_of_several_come_back_as_the_space_has_them(
    recorded: Any, tmp_path: Path, kind: str
) -> None:
    book, all_given = recorded(RAGGED[kind], "discrete", (5, 3))
    source = StepSource(book)
    space = source.space("observation")
    for trajectory, truth in zip(source, all_given, strict=True):
        for found, given in (
            (trajectory.observations(space), truth["obs"]),
            (
                trajectory.next_observations(space),
                truth["obs"][1:],
            ),
        ):
            rows = _rows_of(found, len(given))
            for one, sample in zip(rows, given, strict=True):
                assert_same(one, sample)
    with pytest.raises(BadInput, match="no numbers of one shape"):
        to_lerobot(book, tmp_path / "lerobot")
    assert not (tmp_path / "lerobot").exists()


def _rows_of(tree: Any, n: int) -> list[Any]:
    """The rows of what `observations` gives for a space."""
    if isinstance(tree, dict):
        parts = {name: _rows_of(part, n) for name, part in tree.items()}
        return [{name: rows[i] for name, rows in parts.items()} for i in range(n)]
    if isinstance(tree, tuple):
        several = [_rows_of(part, n) for part in tree]
        return [tuple(rows[i] for rows in several) for i in range(n)]
    assert len(tree) == n
    return list(tree)


def test_a_run_that_is_still_written_is_read_as_well(new_run: Any) -> None:
    run = new_run()
    recorder = EpisodeRecorder(run.scope("train"), steps=True)
    recorder.begin(obs=np.zeros(2, np.float32))
    for t in range(3):
        recorder.step(1.0, t == 2, action=t, next_obs=np.full(2, t + 1, np.float32))
    (trajectory,) = StepSource(run.book)
    assert trajectory.observations().tolist() == [[0, 0], [1, 1], [2, 2], [3, 3]]
    assert trajectory.observations().dtype == np.float32


def test_episodes_are_chosen_by_id_by_their_row_and_by_agent(new_run: Any) -> None:
    run = new_run()
    with TransitionRecorder(run.scope("train")) as transitions:
        for episode, reward in (("x", 1.0), ("y", 2.0), ("z", 3.0)):
            for agent in ("a", "b"):
                transitions.add(
                    obs=0, action=0, reward=reward, next_obs=1, terminated=True, agent=agent, episode_id=episode
                )
    book = run.book
    by_id = StepSource(book, episodes=["z", "x"], agents=["b"])
    assert [(t.episode_id, t.agent) for t in by_id] == [("z", "b"), ("x", "b")]
    by_row = StepSource(book, episodes=lambda row: row["return"] > 3.0)
    assert [(t.episode_id, t.agent) for t in by_row] == [("y", "a"), ("y", "b"), ("z", "a"), ("z", "b")]
    assert StepSource(book).agents == ["a", "b"]


def test_episodes_under_way_are_recognised_by_their_scope_and_break_no_filter(new_run: Any) -> None:
    run = new_run()
    for env in range(3):
        recorder = EpisodeRecorder(run.scope("buffer"), steps=True)
        recorder.begin(obs=0)
        for t in range(600):  # more than a chunk
            recorder.step(1.0, env == 0 and t == 599, action=0, next_obs=1)
    book = run.book
    all_of_it = {t.episode_id for t in StepSource(book)}
    finished = set(book.episodes()["episode_id"].to_pylist())
    assert (len(all_of_it), len(finished)) == (3, 1)
    by_scope = StepSource(book, episodes=lambda row: row["scope"] == "buffer")
    assert {t.episode_id for t in by_scope} == all_of_it
    by_id = StepSource(book, episodes=lambda row: row["episode_id"] not in finished)
    assert {t.episode_id for t in by_id} == all_of_it - finished
    assert len(StepSource(book, episodes=lambda row: row["return"] >= 1.0)) == len(finished)
    assert len(StepSource(book, episodes=lambda row: row.get("return") > 0)) == len(finished)
    with pytest.raises(ZeroDivisionError):  # what is wrong with the filter itself is not hidden
        StepSource(book, episodes=lambda row: 1 / 0 > 0)


def test_interleaved_environments_are_taken_apart(new_run: Any, seal: Any) -> None:
    run = new_run()
    with TransitionRecorder(run.scope("train")) as transitions:
        for t in range(20):
            for env in range(5):
                transitions.add(obs=[t, env], action=env, reward=t, env_index=env, terminated=t == 19)
    for trajectory in StepSource(seal(run)):
        env = trajectory.row["env_index"]
        assert trajectory.columns["action"].tolist() == [env] * 20
        assert trajectory.t.tolist() == list(range(20))
        assert trajectory.columns["obs"].tolist() == [[t, env] for t in range(20)]


def test_an_episode_over_many_row_groups_is_whole(recorded: Any, tuned: Callable[..., None]) -> None:

    tuned(episode_group_bytes=2000)
    book, given = recorded("dict", "tuple", (90,), episodes=2)
    source = StepSource(book)
    assert max(map(len, source._spans.values())) > 2
    for trajectory, truth in zip(source, given, strict=True):
        assert trajectory.is_whole
        assert_rows(trajectory.observations(source.space("observation")), truth["obs"])
        assert_rows(trajectory.actions(source.space("action")), truth["action"])


def test_what_is_done_to_a_trajectory_does_not_come_back(recorded: Any) -> None:
    book, given = recorded("vector", "discrete")
    source = StepSource(book)
    for trajectory in source:
        trajectory.columns["obs"] *= 0
        trajectory.last["obs"] *= 0
        trajectory.t += 7
    for trajectory, truth in zip(source, given, strict=True):
        assert_rows(trajectory.observations(), truth["obs"])
        assert trajectory.is_whole


def test_memory_is_that_of_some_row_groups_not_of_the_run(recorded: Any, tuned: Callable[..., None]) -> None:

    tuned(episode_group_bytes=3000)
    book, given = recorded("vector", "discrete", (30,), episodes=12)
    source = StepSource(book, cache_bytes=6000)
    most = 0
    for trajectory, truth in zip(source, given, strict=True):
        assert_rows(trajectory.observations(), truth["obs"])
        most = max(most, sum(table.nbytes for table in source._cache.values()))
    groups = sum(len(piece.part.row_groups) for piece in source._row_groups._pieces if piece.part is not None)
    assert groups > 5
    assert most < 40_000


def test_what_a_rewind_abandoned_is_left_out(new_run: Any) -> None:
    run = new_run()

    def episode(reward: float) -> None:
        recorder = EpisodeRecorder(run.scope("train"), steps=True)
        recorder.begin(obs=0)
        recorder.step(reward, True, action=0, next_obs=1)

    run.clock(env_step=1)
    episode(1.0)
    run.log({"x": 1.0}, env_step=1)
    run.log({"x": 1.0}, env_step=2)
    run.clock(env_step=3)
    episode(2.0)
    run.rewind(env_step=2)
    episode(3.0)
    rewards = sorted(t.columns["reward"].tolist()[0] for t in StepSource(run.book))
    assert rewards == [1.0, 3.0]
    assert len(list(StepSource(run.book, attempts="all"))) == 3


def test_a_run_without_trajectories_says_how_to_record_some(new_run: Any) -> None:
    run = new_run()
    run.log({"x": 1.0})
    with pytest.raises(BadInput, match="RecordEpisodes"):
        StepSource(run.book)


def test_running_data_alone_is_no_trajectory(new_run: Any) -> None:
    run = new_run()
    recorder = EpisodeRecorder(run.scope("train"))
    recorder.begin()
    recorder.step(1.0, True, info={"data": {"running": {"x": 1}}})
    with pytest.raises(BadInput, match="holds no trajectory"):
        StepSource(run.book)


def test_an_unfinished_episode_ends_truncated_at_its_last_known_observation(new_run: Any) -> None:
    run = new_run()
    recorder = EpisodeRecorder(run.scope("train"), steps=True)
    recorder.begin(obs=0)
    for t in range(600):  # more than a chunk; the rest is lost with the process
        recorder.step(1.0, action=t, next_obs=t + 1)
    told = Exported()
    (trajectory,) = whole_trajectories(StepSource(run.book), told)
    assert (len(trajectory), told.cut) == (511, 1)
    assert trajectory.observations()[-1] == 511
    assert trajectory.columns["truncated"].tolist() == [False] * 510 + [True]


def test_trajectories_with_gaps_are_counted_and_left_out(new_run: Any) -> None:
    run = new_run()
    with TransitionRecorder(run.scope("train")) as transitions:
        for t in (0, 1, 3):
            transitions.add(obs=t, action=0, reward=1.0, next_obs=t + 1, terminated=t == 3, episode_id="gap", t=t)
        transitions.add(obs=0, action=0, reward=1.0, next_obs=1, terminated=True, episode_id="whole")
    told = Exported()
    assert [t.episode_id for t in whole_trajectories(StepSource(run.book), told)] == ["whole"]
    assert (told.episodes, told.with_gaps) == (1, 1)
