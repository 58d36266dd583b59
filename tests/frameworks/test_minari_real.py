"""The real Minari loads, samples and replays what came out of a run, and what it holds goes back into one."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import gymnasium
import minari
import numpy as np
import pytest

from rollbook.capture.gym import RecordEpisodes
from rollbook.capture.multiagent import RecordParallel
from rollbook.errors import BadInput
from rollbook.formats.datasets import StepSource, from_minari, to_minari
from rollbook.formats.datasets._whole import Exported

sys.path.append(str(Path(__file__).parents[1] / "datasets"))
from conftest import SPACES, Sampled, play  # type: ignore[import-not-found]

GROUPS = ("data",)


@pytest.fixture(autouse=True)
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))


def assert_rows(tree: Any, samples: list[Any]) -> None:
    first = samples[0]
    if isinstance(first, dict):
        for name in first:
            assert_rows(tree[name], [sample[name] for sample in samples])
    elif isinstance(first, tuple):
        for i in range(len(first)):
            assert_rows(tree[i], [sample[i] for sample in samples])
    else:
        np.testing.assert_array_equal(np.asarray(tree), np.stack([np.asarray(sample) for sample in samples]))


@pytest.mark.core
@pytest.mark.parametrize("data_format", ["hdf5", "arrow", "parquet"])
@pytest.mark.parametrize(
    ("observed", "acted"),
    [
        ("vector", "discrete"),
        ("dict", "tuple"),
        ("tuple", "dict"),
        ("image", "multi_discrete"),
        ("multi_binary", "vector"),
    ],
)
def test_a_round_trip_compares_array_by_array(new_run: Any, observed: str, acted: str, data_format: str) -> None:
    env = Sampled(SPACES[observed], SPACES[acted], [4, 7], truncate=observed == "vector")
    run = new_run()
    recorded = RecordEpisodes(env, run.scope("train"), steps=True)
    play(recorded, 3)
    to_minari(run.book, "test/sampled-v0", data_format=data_format, algorithm_name="random", author="me")
    dataset = minari.load_dataset("test/sampled-v0")
    assert (dataset.total_episodes, dataset.total_steps) == (3, 4 + 7 + 4)
    assert dataset.observation_space == SPACES[observed]
    assert dataset.action_space == SPACES[acted]
    for episode, truth in zip(dataset.iterate_episodes(), env.given, strict=True):
        assert_rows(episode.observations, truth["obs"])
        assert_rows(episode.actions, truth["action"])
        np.testing.assert_array_equal(episode.rewards, truth["reward"])
        ends = episode.truncations if observed == "vector" else episode.terminations
        assert ends.tolist() == [False] * (len(ends) - 1) + [True]
        assert np.asarray(episode.infos["x"])[1:].tolist() == list(range(1, len(ends) + 1))
    back = new_run("back")
    told = from_minari("test/sampled-v0", back.scope("train"))
    assert (told.episodes, told.steps) == (3, 15)
    source = StepSource(back.book)
    spaces = source.space("observation"), source.space("action")
    assert spaces == (SPACES[observed], SPACES[acted])
    for trajectory, truth in zip(source, env.given, strict=True):
        assert_rows(trajectory.observations(spaces[0]), truth["obs"])
        assert_rows(trajectory.actions(spaces[1]), truth["action"])
        assert trajectory.columns["reward"].tolist() == truth["reward"]
        assert trajectory.row["return"] == pytest.approx(sum(truth["reward"]))
        assert trajectory.row["seed"] == truth["seed"]


def test_minari_replays_what_was_recorded_in_the_environment_it_came_from(new_run: Any) -> None:
    run = new_run()
    recorded = RecordEpisodes(gymnasium.make("CartPole-v1"), run.scope("train"), steps=True)
    play(recorded, 4)
    dataset = to_minari(run.book, "cartpole/random-v0")
    env = dataset.recover_environment()
    assert env.spec.id == "CartPole-v1"
    metadata = dataset.storage.get_episode_metadata(range(4))
    for episode, facts in zip(dataset.iterate_episodes(), metadata, strict=True):
        obs, _ = env.reset(seed=facts["seed"])
        np.testing.assert_array_equal(obs, episode.observations[0])
        for t, action in enumerate(episode.actions):
            obs, reward, terminated, truncated, _ = env.step(action)
            np.testing.assert_array_equal(obs, episode.observations[t + 1])
            assert (reward, terminated, truncated) == (
                episode.rewards[t],
                episode.terminations[t],
                episode.truncations[t],
            )
    assert len(dataset.sample_episodes(2)) == 2


def test_episodes_are_written_one_by_one(new_run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run = new_run()
    recorded = RecordEpisodes(Sampled(SPACES["vector"], SPACES["discrete"], [5]), run.scope("train"), steps=True)
    play(recorded, 6)
    alive: list[str] = []
    real = StepSource.cut

    def watched(self: Any, *located: Any) -> Any:
        alive.append(f"read {len(alive)}")
        return real(self, *located)

    monkeypatch.setattr(StepSource, "cut", watched)
    from minari.data_collector import episode_buffer

    made = episode_buffer.EpisodeBuffer.__init__

    def buffered(self: Any, **fields: Any) -> None:
        alive.append("buffer")
        made(self, **fields)

    monkeypatch.setattr(episode_buffer.EpisodeBuffer, "__init__", buffered)
    to_minari(run.book, "test/one-v0")
    assert [word.split()[0] for word in alive] == ["read", "buffer"] * 6


def test_each_agent_gets_a_data_set(new_run: Any) -> None:
    import importlib
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = importlib.import_module("mpe2.simple_tag_v3")
        run = new_run()
        env = RecordParallel(module.parallel_env(max_cycles=5), run.scope("train"), steps=True)
        seen: dict[str, list[Any]] = {}
        for seed in (1, 2):
            obs, _ = env.reset(seed=seed)
            while env.agents:
                for agent, one in obs.items():
                    seen.setdefault(agent, []).append(np.array(one))
                obs = env.step(dict.fromkeys(env.agents, 1))[0]
            for agent, one in obs.items():
                seen[agent].append(np.array(one))
    made = to_minari(run.book, "mpe/tag-v2")
    assert set(made) == set(seen)
    for agent, dataset in made.items():
        assert dataset.spec.dataset_id == f"mpe/tag-{agent}-v2"
        given = np.concatenate([episode.observations for episode in dataset.iterate_episodes()])
        np.testing.assert_array_equal(given, np.stack(seen[agent]))


def test_ids_that_are_taken_and_failures_leave_nothing_half_written(new_run: Any) -> None:
    run = new_run()
    recorded = RecordEpisodes(Sampled(SPACES["vector"], SPACES["discrete"], [3]), run.scope("train"), steps=True)
    play(recorded, 2)
    to_minari(run.book, "test/a-v0")
    with pytest.raises(BadInput, match="there is a data set of that id"):
        to_minari(run.book, "test/a-v0")
    with pytest.raises(BadInput, match="do not fit"):
        to_minari(run.book, "test/b-v0", observation_space=gymnasium.spaces.Box(0, 1, (7,)))
    assert list(minari.list_local_datasets()) == ["test/a-v0"]


@pytest.mark.parametrize("name", ["t/box-v0", "box", "a b/box-v0", "box-v", "", "../box-v0"])
def test_an_id_that_minari_refuses_is_reported_before_anything_is_written(new_run: Any, name: str) -> None:
    run = new_run()
    recorded = RecordEpisodes(Sampled(SPACES["vector"], SPACES["discrete"], [3]), run.scope("train"), steps=True)
    play(recorded, 2)
    before = sorted(Path(os.environ["MINARI_DATASETS_PATH"]).rglob("*"))
    with pytest.raises(BadInput, match="namespace/name-v0"):
        to_minari(run.book, name)
    assert sorted(Path(os.environ["MINARI_DATASETS_PATH"]).rglob("*")) == before
    assert minari.list_local_datasets() == {}


def test_an_episode_under_way_is_cut_and_counted(new_run: Any) -> None:
    run = new_run()
    env = RecordEpisodes(Sampled(SPACES["vector"], SPACES["discrete"], [600]), run.scope("train"), steps=True)
    env.reset(seed=1)
    for _ in range(520):
        env.step(0)
    told = Exported()
    dataset = to_minari(run.book, "test/cut-v0", counts=told)
    assert (told.cut, told.steps) == (1, 511)
    assert dataset[0].truncations[-1]
    assert dataset[0].observations.shape == (512, 3)
