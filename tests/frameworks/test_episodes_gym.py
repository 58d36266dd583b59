"""The episode tests of the ordinary suite, under gymnasium 1.2.2 and under the current release."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import rollbook
from rollbook.capture.gym import RecordEpisodes

GROUPS = ("gym122", "data")
EPISODES = Path(__file__).parents[1] / "episodes"
EXPECTED = {"gym122": "1.2.2"}


def test_this_is_the_release_it_should_be() -> None:
    group = os.environ["ROLLBOOK_FRAMEWORK_GROUP"]
    assert gymnasium.__version__ == EXPECTED.get(group, gymnasium.__version__)
    assert gymnasium.__version__ >= "1.4" or group == "gym122"


@pytest.mark.core
@pytest.mark.parametrize("file", ["test_single.py", "test_vector.py", "test_auditor.py", "test_trajectories.py"])
def test_episodes_are_recorded_rightly_in_this_release(file: str) -> None:
    # From the root, so that a spawned sub-process finds the tests' own recorder by its module name.
    options = ["-q", "-p", "no:cacheprovider", "--import-mode=importlib", "-c", os.devnull, "--rootdir", "."]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(EPISODES / file)],
        capture_output=True,
        text=True,
        timeout=200,
        cwd=EPISODES.parents[1],
    )
    assert done.returncode == 0, done.stdout[-4000:]


def test_an_environment_of_pixels_is_filmed_and_kept_while_its_twin_sees_the_same(tmp_path: Path) -> None:
    def make() -> Any:
        env = gymnasium.make("CartPole-v1", render_mode="rgb_array", max_episode_steps=12)
        small = gymnasium.spaces.Box(0, 255, (40, 60, 3), np.uint8)
        pictures = gymnasium.wrappers.AddRenderObservation(env)
        return gymnasium.wrappers.TransformObservation(pictures, lambda obs: obs[::10, ::10].copy(), small)

    run = rollbook.init("pixels", "twin", dir=tmp_path, sinks=[], keeper="inline", strict=True)
    plain, recorded = make(), RecordEpisodes(make(), run.scope("train"), steps="first", video="first, best")
    for seed in range(3):
        np.testing.assert_array_equal(plain.reset(seed=seed)[0], recorded.reset(seed=seed)[0])
        over, seen = False, 1
        while not over:
            mine, theirs = recorded.step(seed % 2), plain.step(seed % 2)
            np.testing.assert_array_equal(mine[0], theirs[0])
            assert mine[1:] == theirs[1:]
            over, seen = mine[2] or mine[3], seen + 1
        if seed == 0:
            first = seen
    recorded.close()
    book = run.book
    episode = book.episodes().to_pylist()[0]
    films = book.media("video").to_pylist()
    assert (films[0]["episode_id"], films[0]["frames"]) == (episode["episode_id"], first)
    steps = [row for row in book.steps(episode["episode_id"]).to_pylist() if row["obs"] is not None]
    assert len(steps) == first
    assert {row["shape/obs"] for row in steps} == {"40,60,3"}
    run.finish()
    assert (run.folder / run.book.media("video").to_pylist()[0]["path"]).stat().st_size > 1000
