"""Names of metrics, runs and folders as people write them."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import rollbook
from rollbook.cli.app import app

Begin = Callable[..., Any]


def _column(book: Any, key: str) -> list[Any]:
    return [row[key] for row in book.metrics([key]).to_pylist() if row[key] is not None]


@pytest.mark.parametrize(
    "key",
    ["valid:eng_Latn-tur_Latn", "rew/mean@1", "loss (train)", "λ", "a.b", "select", "50%", "x y", "'q'", '"d"'],
)
def test_a_metric_is_found_under_the_name_that_it_was_given(begin: Begin, key: str) -> None:
    run = begin()
    run.log({key: 1.5, "loss": 0.5}, step=1)
    assert _column(run.book, key) == [1.5]
    assert key in {*run.book.keys()}
    quoted = key.replace('"', '""')
    assert run.book.sql(f'select "{quoted}" from metrics').fetchall() == [(1.5,)]


def test_runs_of_one_name_are_several_runs(begin: Begin, root: Path) -> None:
    for number in range(3):
        with begin("ppo") as run:
            run.log({"loss": float(number)})
    assert len(rollbook.open(root)) == 3
    assert _column(rollbook.open(root).one("world/ppo", newest=True), "loss") == [2.0]


@pytest.mark.parametrize(
    ("folder", "name", "seed"),
    [
        ("logs", "program", None),
        ("./", "program", None),
        ("runs/exp/tb", "exp", None),
        ("out/ppo/seed_3/tb", "ppo", 3),
        ("out/ppo/s3", "ppo", 3),
        ("out/ppo-seed=3", "ppo", 3),
        ("out/seed_3/logs", "program", 3),
        ("outputs/2026-11-29/12-00-00/tb", "program", None),
        ("outputs/2026-11-29_12-00-00", "program", None),
        ("train_dir/exp/.summary/0", "exp-0", None),
        ("runs/CartPole-v1__ppo__3__1700000000", "CartPole-v1__ppo", 3),
        ("out/a2c/train", "a2c", None),
        (f"runs/Nov29_12-00-00_{socket.gethostname()}", "program", None),
        (f"runs/Nov29_12-00-00_{socket.gethostname()}-lr0.1", "lr0.1", None),
        ("logs/walk/version_3", "walk-version_3", None),
        ("tests/layers-2", "layers-2", None),
    ],
)
def test_a_run_of_a_summary_writer_is_called_as_its_training_and_not_as_a_part_of_it(
    folder: str, name: str, seed: int | None, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list of runs that are all called "tb", or after the minute in which they began, says nothing."""
    from rollbook.adapters.tensorboard import SummaryWriter

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["program.py"])
    SummaryWriter(folder, events=False, run_options={"sinks": [], "keeper": "import", "rules": ()}).close()
    book = rollbook.open(root).one()
    assert (book.name, book.seed) == (name, seed)


@pytest.mark.parametrize("folder", ["with space", "ünïcode", "quo'te", "a%b", "semi;colon"])
def test_runs_may_lie_in_any_folder(begin: Begin, tmp_path: Path, folder: str) -> None:
    with begin(dir=tmp_path / folder) as run:
        run.log({"loss": 1.0}, step=1)
    assert _column(rollbook.open(tmp_path / folder).one(), "loss") == [1.0]
    listed = CliRunner().invoke(app, ["ls", "--dir", str(tmp_path / folder)])
    assert (listed.exit_code, "run" in listed.stdout) == (0, True)


def test_a_key_that_is_part_of_another_key_is_a_key_of_its_own(begin: Begin) -> None:
    run = begin()
    run.log({"loss": 1.0, "loss/policy": 2.0, "loss/policy/mean": 3.0})
    assert [_column(run.book, key) for key in ("loss", "loss/policy", "loss/policy/mean")] == [[1.0], [2.0], [3.0]]


def test_nested_dictionaries_become_keys_with_slashes_wherever_they_are_given(begin: Begin) -> None:
    run = begin(config={"optimizer": {"name": "adam", "betas": [0.9, 0.999]}})
    run.log({"eval": {"return": 1.0, "length": {"mean": 3}}})
    assert (_column(run.book, "eval/return"), _column(run.book, "eval/length/mean")) == ([1.0], [3])
    assert run.book.config["optimizer"]["betas"] == [0.9, 0.999]


@pytest.mark.parametrize(
    ("native", "name"),
    [
        ("evaluation/env_runners/episode_return_mean", "test/return"),
        ("env_runners/episode_return_mean", "train/return"),
    ],
)
def test_a_result_is_found_after_its_framework_has_renamed_it(begin: Begin, native: str, name: str) -> None:
    run = begin()
    run.log({native: 21.0}, env_step=100)
    assert list(run.book.series(name, x="env_step").mean) == [21.0]


@pytest.mark.parametrize(
    ("program", "environment", "name"),
    [
        ("train.py", {}, "train"),
        ("/lib/python3/site-packages/agents/__main__.py", {}, "agents"),
        (
            "/lib/python3/site-packages/ipykernel_launcher.py",
            {"JPY_SESSION_NAME": "study/PPO study.ipynb"},
            "PPO-study",
        ),
        ("/lib/python3/site-packages/ipykernel_launcher.py", {}, "notebook"),
        ("/lib/python3/site-packages/submitit/core/_submit.py", {"SLURM_JOB_NAME": "sweep"}, "sweep"),
        ("-c", {}, "run"),
    ],
)
def test_a_run_without_a_name_is_called_as_its_program_and_not_as_what_started_it(
    program: str, environment: dict[str, str], name: str, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [program])
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    assert begin(None).name == name
