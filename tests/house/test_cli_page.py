"""The page of the command line has every command, and its examples run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from click import Context
from click.testing import CliRunner

import rollbook
from rollbook.capture import TransitionRecorder
from rollbook.cli.app import app

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text("utf-8")
EXAMPLES = [
    line
    for block in re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
    if line
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one run that has a bit of everything."""
    place = tmp_path_factory.mktemp("cli")
    (place / "progress.csv").write_text("time/total_timesteps,train/loss\n2048,0.5\n4096,0.25\n")
    (place / "scores").mkdir()
    for algorithm in ("ppo", "dqn"):
        (place / "scores" / f"{algorithm}.json").write_text('{"reach": [1, 3, 4, 5, 9], "push": [2, 2, 1, 7, 3]}')
    with rollbook.init(
        "cartpole", "ppo", seed=1, config={"algo": "ppo"}, dir=place / "runs", sinks=[], keeper="inline"
    ) as run:
        for step in range(50):
            with run.timer("collect"):
                run.log({"train/return": float(step), "test/return": float(step)}, env_step=step)
        run._parts.console.take("", "epoch 1\n")  # type: ignore[union-attr]  # as `print` does in a script
        run.log_episode(return_=3.0, length=3, truncated=True, env_step=10)
        run.log_samples(["a", "b"], reward=[0.2, 0.9])
        run.log_text("note", "epoch 1 is done")
        run.log_video("video", np.zeros((2, 8, 8, 3), np.uint8))
        with TransitionRecorder(run.scope("train")) as steps:
            steps.add(obs=[0.0, 1.0], action=0, reward=1.0, next_obs=[1.0, 0.0], terminated=True)
    return place


def test_every_command_has_a_section() -> None:
    sections = re.findall(r"^## rollbook ([\w-]+)$", PAGE, re.MULTILINE)
    assert sorted(sections) == sorted(app.list_commands(Context(app)))


@pytest.mark.parametrize("line", EXAMPLES)
def test_an_example_of_the_page_runs(line: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.delenv("ROLLBOOK_DIR", raising=False)
    done = CliRunner().invoke(app, shlex.split(line)[1:], catch_exceptions=False)
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("command", app.list_commands(Context(app)))
def test_every_help_has_an_example(command: str) -> None:
    done = CliRunner().invoke(app, [command, "--help"])
    assert done.exit_code == 0
    assert f"rollbook {command}" in done.output.partition("Example")[2]
