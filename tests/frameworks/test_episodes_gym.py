"""The episode tests of the ordinary suite, under gymnasium 1.2.2 and under the current release."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import gymnasium
import pytest

GROUPS = ("gym122", "data")
EPISODES = Path(__file__).parents[1] / "episodes"
EXPECTED = {"gym122": "1.2.2"}


def test_this_is_the_release_it_should_be() -> None:
    group = os.environ["ROLLBOOK_FRAMEWORK_GROUP"]
    assert gymnasium.__version__ == EXPECTED.get(group, gymnasium.__version__)
    assert gymnasium.__version__ >= "1.4" or group == "gym122"


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
