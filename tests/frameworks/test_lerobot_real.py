"""The real LeRobot loads the folders that came out of a run, and what it wrote itself goes back into one."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

from rollbook.capture.gym import RecordEpisodes
from rollbook.formats.datasets import StepSource, from_lerobot, to_lerobot

sys.path.append(str(Path(__file__).parents[1] / "datasets"))
from conftest import SPACES, Sampled, play  # type: ignore[import-not-found]

GROUPS = ("lerobot",)

_DETECTION = torch.library.Library("torchvision", "DEF")


def _lerobot(name: str) -> Any:
    """A module of LeRobot. A torchvision whose compiled part does not fit torch is told of the operators it lacks;
    LeRobot wants only the Python part."""
    try:
        import torchvision  # noqa: F401
    except RuntimeError as err:
        if "does not exist" not in str(err):
            raise
        for word in ("nms", "qnms"):
            _DETECTION.define(f"{word}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        for module in [module for module in sys.modules if module.partition(".")[0] == "torchvision"]:
            del sys.modules[module]
    return importlib.import_module(f"lerobot.datasets.{name}")


LeRobotDataset = _lerobot("lerobot_dataset").LeRobotDataset

MADE: dict[str, Any] = {
    **SPACES,
    "one number": gymnasium.spaces.Box(-1, 1, (1,), np.float64),
    "matrix": gymnasium.spaces.Box(-1, 1, (2, 3), np.float32),
    "cube": gymnasium.spaces.Box(0, 9, (2, 3, 4), np.int16),
    "grey": gymnasium.spaces.Box(0, 255, (8, 11), np.uint8),
}


@pytest.fixture(autouse=True)
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is asked of the network: whatever is missing from a folder is an error."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")


@pytest.fixture
def recorded(new_run: Any) -> Any:
    """A book of 12 episodes of 3, 1 and 5 steps that end in each of the three ways in turn."""

    def make(space: Any) -> Any:
        run = new_run()
        env = RecordEpisodes(Sampled(space, space, [3, 1, 5], ends_in_turn=True), run.scope("train"), steps=True)
        play(env, 12)
        env.close()
        return run.book

    return make


@pytest.mark.core
@pytest.mark.parametrize("name", list(MADE))
def test_lerobot_loads_every_frame_of_every_space(recorded: Any, tmp_path: Path, name: str) -> None:
    book = recorded(MADE[name])
    root = tmp_path / "robot"
    to_lerobot(book, root, fps=10, task="stand")
    loaded = LeRobotDataset("me/stand", root=root)
    assert (loaded.num_episodes, loaded.num_frames, len(loaded), loaded.fps) == (12, 36, 36, 10)
    place = 0
    for number, trajectory in enumerate(StepSource(book)):
        entry = loaded.meta.episodes[number]
        n = len(trajectory)
        assert (entry["episode_index"], entry["length"], entry["tasks"]) == (number, n, ["stand"])
        assert (entry["dataset_from_index"], entry["dataset_to_index"]) == (place, place + n)
        for step in range(n):
            frame = loaded[place + step]
            assert (int(frame["index"]), int(frame["episode_index"]), int(frame["frame_index"])) == (
                place + step,
                number,
                step,
            )
            assert frame["task"] == "stand"
            assert float(frame["timestamp"]) == pytest.approx(step / 10)
            assert float(frame["next.reward"]) == np.float32(trajectory.columns["reward"][step])
            ends = [bool(trajectory.columns[name][step]) for name in ("terminated", "truncated")]
            assert [bool(frame["next.terminated"]), bool(frame["next.truncated"])] == ends
            assert bool(frame["next.done"]) == any(ends)
            if name not in ("dict", "tuple"):
                obs, action = (np.asarray(trajectory.columns[key][step]) for key in ("obs", "action"))
                assert_frame(frame, obs, name in ("image", "grey"))
                assert_same(frame["action"].numpy(), action)
        place += n
    if name == "dict":
        first = next(iter(StepSource(book)))
        np.testing.assert_array_equal(loaded[0]["observation.a"].numpy(), np.float32(first.columns["obs/a"][0]))
        assert int(loaded[0]["action.b.c"]) == int(first.columns["action/b/c"][0])


def assert_same(found: Any, given: Any) -> None:
    """Equal in the type that LeRobot hands out: its tensors of numbers with a point are float32."""
    np.testing.assert_array_equal(found.reshape(given.shape), given.astype(found.dtype))


def assert_frame(frame: Any, obs: Any, picture: bool) -> None:
    if not picture:
        assert_same(frame["observation.state"].numpy(), obs)
        return
    found = (frame["observation.images.image"].numpy() * 255).round().astype(np.uint8)
    np.testing.assert_array_equal(found, obs[None] if obs.ndim == 2 else obs.transpose(2, 0, 1))


def test_lerobot_loads_some_episodes_and_stretches_of_time(recorded: Any, tmp_path: Path) -> None:
    book = recorded(SPACES["vector"])
    to_lerobot(book, tmp_path / "robot", fps=10)
    some = LeRobotDataset("me/stand", root=tmp_path / "robot", episodes=[2, 5])
    assert (some.num_episodes, len(some)) == (2, 10)
    deltas = {"observation.state": [-0.1, 0.0], "action": [0.0, 0.1, 0.2]}
    stretches = LeRobotDataset("me/stand", root=tmp_path / "robot", delta_timestamps=deltas)
    truth = next(iter(StepSource(book))).columns
    np.testing.assert_array_equal(stretches[1]["observation.state"].numpy(), truth["obs"][:2])
    assert stretches[1]["action_is_pad"].tolist() == [False, False, True]
    loader = torch.utils.data.DataLoader(stretches, batch_size=12, shuffle=True)
    assert sum(len(batch["index"]) for batch in loader) == 36


@pytest.mark.parametrize("name", ["vector", "discrete", "image", "grey", "matrix"])
def test_statistics_are_those_that_lerobot_counts(recorded: Any, tmp_path: Path, name: str) -> None:
    """Its quantiles are read off histograms, so they are near; its pictures are a sample, so they are not compared."""
    aggregate = _lerobot("compute_stats").aggregate_stats
    to_lerobot(recorded(MADE[name]), tmp_path / "robot")
    loaded = LeRobotDataset("me/stand", root=tmp_path / "robot")
    assert set(loaded.meta.stats) == set(loaded.features)
    assert aggregate([loaded.meta.stats, loaded.meta.stats])["index"]["count"].tolist() == [72]
    frames = {key: loaded.hf_dataset.with_format("numpy")[:][key] for key in ("next.reward", "index")}
    compute = _lerobot("compute_stats").compute_episode_stats
    theirs = compute({key: np.asarray(cells) for key, cells in frames.items()}, loaded.features)
    for key, told in theirs.items():
        for word in ("min", "max", "mean", "std", "count"):
            assert loaded.meta.stats[key][word].shape == told[word].shape
            np.testing.assert_allclose(loaded.meta.stats[key][word], told[word], rtol=1e-4, atol=1e-6)
    if name in ("image", "grey"):
        assert loaded.meta.stats["observation.images.image"]["mean"].shape == (3, 1, 1)


def test_what_lerobot_wrote_itself_comes_back(new_run: Any, tmp_path: Path) -> None:
    features = {
        "observation.state": {"dtype": "float32", "shape": (2,), "names": ["x", "y"]},
        "observation.images.top": {"dtype": "image", "shape": (9, 10, 3), "names": ["height", "width", "channels"]},
        "action": {"dtype": "float32", "shape": (1,), "names": ["turn"]},
        "next.reward": {"dtype": "float32", "shape": (1,), "names": None},
        "next.done": {"dtype": "bool", "shape": (1,), "names": None},
    }
    made = LeRobotDataset.create("me/own", 10, features, root=tmp_path / "own", use_videos=False)
    random, truth = np.random.default_rng(0), []
    for length in (3, 5):
        for step in range(length):
            frame = {
                "observation.state": random.normal(size=2).astype(np.float32),
                "observation.images.top": random.integers(0, 256, (9, 10, 3), dtype=np.uint8),
                "action": random.normal(size=1).astype(np.float32),
                "next.reward": np.array([step], dtype=np.float32),
                "next.done": np.array([step == length - 1]),
            }
            made.add_frame({**frame, "task": "stand"})
            truth.append(frame)
        made.save_episode()
    made.finalize()
    run = new_run()
    told = from_lerobot(tmp_path / "own", run)
    assert (told.episodes, told.steps) == (2, 8)
    rows = [(trajectory, step) for trajectory in StepSource(run.book) for step in range(len(trajectory))]
    assert [len(trajectory) for trajectory in StepSource(run.book)] == [3, 5]
    for (trajectory, step), frame in zip(rows, truth, strict=True):
        columns = trajectory.columns
        np.testing.assert_array_equal(columns["obs"][step], frame["observation.state"])
        np.testing.assert_array_equal(columns["obs/top"][step], frame["observation.images.top"])
        assert float(columns["action"][step]) == float(frame["action"][0])
        assert float(columns["reward"][step]) == float(frame["next.reward"][0])
        assert bool(columns["terminated"][step]) == bool(frame["next.done"][0])
    to_lerobot(run.book, tmp_path / "again", episodes=lambda row: row["length"] == 5)


def test_a_folder_of_version_2_1_is_refused_by_this_lerobot(recorded: Any, tmp_path: Path) -> None:
    to_lerobot(recorded(SPACES["vector"]), tmp_path / "robot", version="v2.1")
    with pytest.raises(Exception, match=r"2\.1 format"):
        LeRobotDataset("me/stand", root=tmp_path / "robot")
