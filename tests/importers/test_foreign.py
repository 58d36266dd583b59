"""Folders of other tools open without an import, beside runs of rollbook, and are never changed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

import rollbook
from rollbook.cli.app import app
from rollbook.formats.foreign import found
from rollbook.sinks.event_files import Messages

SAMPLES = Path(__file__).parent / "samples"


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One run of each of three tools, and one of rollbook with event files of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "study"
    offline = root / "wandb" / "offline-run-20261123_000000-k3v9x2ab"
    offline.mkdir(parents=True)
    shutil.copy(SAMPLES / "run-k3v9x2ab.wandb", offline)
    add_events(root / "tb" / "dqn_1", 20)
    csv = root / "sb3" / "a2c_1"
    csv.mkdir(parents=True)
    rows = "".join(f"{128 * n},{n},{n / 2}\n" for n in range(30))
    (csv / "progress.csv").write_text(f"time/total_timesteps,time/time_elapsed,rollout/ep_rew_mean\n{rows}")
    with rollbook.init("own", "ppo", dir=root, sinks=["tensorboard"], rules=()) as run:
        for n in range(10):
            run.log({"train/return": float(n)}, env_step=n)
    return root


def add_events(folder: Path, n: int, start: int = 0) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    messages = Messages("the tests")
    file = folder / "events.out.tfevents.1.host"
    with open(file, "ab") as out:
        if not start:
            out.write(messages.framed(messages.version(1.7e9)))
        for i in range(start, start + n):
            out.write(messages.framed(messages.event(1.7e9 + i, 10 * i, [messages.scalar("loss", i / 2)])))
    return file


def contents(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and "own" not in path.relative_to(root).parts
    }


def test_a_folder_is_known_by_names_alone_and_runs_of_rollbook_are_not_looked_into(study: Path) -> None:
    names = {name: [os.path.relpath(folder, study) for folder in folders] for name, folders in found(study).items()}
    assert names == {
        "wandb": ["wandb/offline-run-20261123_000000-k3v9x2ab"],
        "csv": ["sb3/a2c_1"],
        "tensorboard": ["tb/dqn_1"],
    }


def test_open_reads_what_other_tools_wrote_beside_what_rollbook_did_and_changes_none_of_it(study: Path) -> None:
    before = contents(study)
    runs = rollbook.open(study, foreign=True)
    assert sorted((book.project, book.name) for book in runs) == [
        ("own", "ppo"), ("study", "a2c_1"), ("study", "ppo-7"), ("study", "tb-dqn_1"),
    ]  # fmt: skip
    wandb = runs.one("study/ppo-7")
    assert wandb.metrics(["losses/value"], x="env_step").num_rows == 60
    assert runs.one("study/tb-dqn_1").metrics(["loss"], x="step")["loss"].to_pylist() == [n / 2 for n in range(20)]
    assert runs.one("study/a2c_1").metrics(["rollout/ep_rew_mean"], x="env_step").num_rows == 30
    assert contents(study) == before


def test_a_source_that_has_grown_shows_its_new_rows_at_the_next_look(study: Path) -> None:
    assert rollbook.open(study, foreign=True).one("study/tb-dqn_1").metrics(["loss"]).num_rows == 20
    add_events(study / "tb" / "dqn_1", 5, start=20)
    again = rollbook.open(study, foreign=True).one("study/tb-dqn_1")
    assert again.metrics(["loss"], x="step")["loss"].to_pylist() == [n / 2 for n in range(25)]
    add_events(study / "tb" / "dqn_2", 3)
    assert len(rollbook.open(study, foreign=True)) == 5


def test_where_two_formats_tell_of_one_run_it_is_one_run(study: Path) -> None:
    add_events(study / "sb3" / "a2c_1", 4)
    assert len(rollbook.open(study, foreign=True)) == 4


def test_the_cache_can_be_lost(study: Path, tmp_path: Path) -> None:
    assert len(rollbook.open(study, foreign=True)) == 4
    shutil.rmtree(tmp_path / "cache")
    assert rollbook.open(study, foreign=True).one("study/ppo-7").metrics(["losses/value"]).num_rows == 60


def test_what_cannot_be_read_is_a_problem_with_words_and_the_others_are_there(study: Path) -> None:
    bad = study / "wandb" / "offline-run-2" / "run-broken12.wandb"
    bad.parent.mkdir()
    bad.write_bytes(b"not one of these")
    runs = rollbook.open(study, foreign=True)
    assert {book.name for book in runs} >= {"ppo-7", "tb-dqn_1", "a2c_1", "ppo"}


def test_beside_runs_of_rollbook_they_are_read_when_that_is_asked_for(study: Path) -> None:
    """A program that logs to TensorBoard and to rollbook is one training, not two."""
    assert [book.name for book in rollbook.open(study)] == ["ppo"]
    assert len(rollbook.open(study, foreign=True)) == 4
    assert len(rollbook.open(study / "tb")) == 1
    assert len(rollbook.open(study / "tb", foreign=False)) == 0


def test_ls_lists_them_all(study: Path) -> None:
    shutil.rmtree(study / "own")
    done = CliRunner().invoke(app, ["ls", str(study)])
    assert done.exit_code == 0, done.output
    for name, what in (("ppo-7", "W&B offline run"), ("tb-dqn_1", "TensorBoard event files"), ("a2c_1", "CSV table")):
        assert any(name in line and what in line for line in done.output.splitlines()), done.output
    shown = CliRunner().invoke(app, ["show", str(rollbook.open(study).one("study/ppo-7").path)])
    assert f"W&B offline run, read from {study}" in shown.output, shown.output
