"""Folders of other tools open without an import, beside runs of rollbook, and are never changed."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import rollbook
import waiting
from cases import some_of
from rollbook.cli.app import app
from rollbook.formats.foreign import follow, found
from rollbook.formats.importers import _into_runs
from rollbook.formats.importers._into_runs import _write_origin
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
        ("own", "ppo"),
        ("study", "ppo-7"),
        ("study", "sb3-a2c_1"),
        ("study", "tb-dqn_1"),
    ]
    wandb = runs.one("study/ppo-7")
    assert wandb.metrics(["losses/value"], x="env_step").num_rows == 60
    assert runs.one("study/tb-dqn_1").metrics(["loss"], x="step")["loss"].to_pylist() == [n / 2 for n in range(20)]
    assert runs.one("study/sb3-a2c_1").metrics(["rollout/ep_rew_mean"], x="env_step").num_rows == 30
    assert contents(study) == before


def test_a_source_that_has_grown_shows_its_new_rows_at_the_next_look(study: Path) -> None:
    assert rollbook.open(study, foreign=True).one("study/tb-dqn_1").metrics(["loss"]).num_rows == 20
    add_events(study / "tb" / "dqn_1", 5, start=20)
    again = rollbook.open(study, foreign=True).one("study/tb-dqn_1")
    assert again.metrics(["loss"], x="step")["loss"].to_pylist() == [n / 2 for n in range(25)]
    add_events(study / "tb" / "dqn_2", 3)
    assert len(rollbook.open(study, foreign=True)) == 5


def test_a_run_that_two_formats_describe_is_one_run(study: Path) -> None:
    add_events(study / "sb3" / "a2c_1", 4)
    assert len(rollbook.open(study, foreign=True)) == 4


def test_a_database_or_a_table_in_the_folder_hides_no_run_below_it(study: Path) -> None:
    names = {book.name for book in rollbook.open(study)}
    with contextlib.closing(sqlite3.connect(study / "mlflow.db")) as made:
        made.executescript((SAMPLES / "mlflow.sql").read_text())
    (study / "progress.csv").write_text("time/total_timesteps,train/loss\n1,0.5\n2,0.25\n")
    assert names < {book.name for book in rollbook.open(study)}


def test_the_cache_can_be_lost(study: Path, tmp_path: Path) -> None:
    assert len(rollbook.open(study, foreign=True)) == 4
    shutil.rmtree(tmp_path / "cache")
    assert rollbook.open(study, foreign=True).one("study/ppo-7").metrics(["losses/value"]).num_rows == 60


def test_a_first_look_that_was_killed_leaves_no_run_twice(study: Path, tmp_path: Path) -> None:
    before = {book.id: book.name for book in rollbook.open(study)}
    (index,) = (tmp_path / "cache").rglob("foreign/*/index.json")
    index.unlink()  # it is written last
    assert {book.id: book.name for book in rollbook.open(study)} == before


def test_what_cannot_be_read_is_a_problem_with_words_and_the_others_are_there(study: Path) -> None:
    bad = study / "wandb" / "offline-run-2" / "run-broken12.wandb"
    bad.parent.mkdir()
    bad.write_bytes(b"not one of these")
    runs = rollbook.open(study, foreign=True)
    assert {book.name for book in runs} >= {"ppo-7", "tb-dqn_1", "sb3-a2c_1", "ppo"}


def test_runs_of_other_tools_are_there_beside_runs_of_rollbook(study: Path) -> None:
    every = {"ppo", "ppo-7", "tb-dqn_1", "sb3-a2c_1"}
    assert {book.name for book in rollbook.open(study)} == every
    assert [book.name for book in rollbook.open(study, foreign=False)] == ["ppo"]
    listed = CliRunner().invoke(app, ["ls", str(study), "--json"])
    assert {row["name"] for row in json.loads(listed.stdout)} == every
    shown = CliRunner().invoke(app, ["show", "ppo-7", "--dir", str(study)])
    assert shown.exit_code == 0, shown.output
    assert "W&B offline run" in shown.output
    compared = CliRunner().invoke(app, ["compare", str(study), "--by", "name", "--metric", "loss", "--json"])
    assert "tb-dqn_1" in compared.output, compared.output


def test_every_door_has_runs_of_both_and_follows_them(study: Path) -> None:
    """The catalogue of the page, and an agent's tools, which are given the folder as it is."""
    from rollbook.server.agents import AgentTools
    from rollbook.server.shared.catalogue import Catalogue

    catalogue, tools = Catalogue([str(study)]), AgentTools(str(study))
    every = {"ppo", "ppo-7", "tb-dqn_1", "sb3-a2c_1"}

    def shown() -> set[str]:
        names = {str(row.about["name"]) for row in catalogue.snapshot(0.0).rows.values()}
        told = {row["name"] for row in json.loads(tools.runs())["rows"]}
        return names if names == told else set()

    waiting.until(lambda: shown() == every)
    add_events(study / "tb" / "dqn_2", 3)
    waiting.until(lambda: shown() == {*every, "tb-dqn_2"})


@pytest.mark.parametrize("root", some_of(["missing", "empty", "of rollbook"], 1))
def test_the_page_shows_runs_of_other_tools_that_come_where_there_were_none(
    study: Path, tmp_path: Path, root: str
) -> None:
    from page_server import client_of

    place = tmp_path / "new"
    if root != "missing":
        place.mkdir()
    if root == "of rollbook":
        shutil.copytree(study / "own", place / "own")
    with client_of(place) as client:

        def shown() -> set[str]:
            rows = client.post("/api/runs", json={}).json()["rows"]
            return {row["name"] for row in rows if row["kind"] == "run"}

        before = {"ppo"} if root == "of rollbook" else set()
        assert shown() == before
        for tool in ("wandb", "tb", "sb3"):
            shutil.copytree(study / tool, place / tool)
        waiting.until(lambda: shown() == {*before, "ppo-7", "tb-dqn_1", "sb3-a2c_1"})
        assert client.get("/api/hello").json()["labels"]


def test_ls_reads_as_many_runs_of_other_tools_as_it_lists_and_compare_all(study: Path) -> None:
    """Thousands would keep it waiting: those that changed last are listed, the others counted."""
    for n in range(6):
        os.utime(add_events(study / "many" / f"run_{n}", 3), (1.8e9 + n, 1.8e9 + n))
    listed = CliRunner().invoke(app, ["ls", str(study), "--limit", "3"])
    runs = rollbook.open(study, newest=0)
    assert {book.name for book in runs} == {"ppo", "many-run_3", "many-run_4", "many-run_5"}
    assert runs.unread == 6
    assert "7 older runs" in listed.output, listed.output
    every = CliRunner().invoke(app, ["ls", str(study), "--where", "name != 'ppo'", "--json"])
    assert len(json.loads(every.stdout)) == 9
    assert rollbook.open(study, newest=0).unread == 0


@pytest.mark.long
def test_the_last_of_many_runs_is_shown_before_all_are_read(study: Path) -> None:
    for n in range(104):
        os.utime(add_events(study / "many" / f"run_{n}", 3), (1.8e9 + n, 1.8e9 + n))
    shown = CliRunner().invoke(app, ["show", "last", "--dir", str(study)])
    assert shown.exit_code == 0, shown.output
    assert rollbook.open(study, newest=0).unread == 7


def test_a_run_of_another_tool_is_never_seen_half_read(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(str(follow(study, waits=True)))
    seen = []

    def look(*args: Any, **named: Any) -> Any:
        seen.append({book.name for book in rollbook.open(folder, foreign=False)})
        return _write_origin(*args, **named)  # the last step: until then its times are those of the reading

    monkeypatch.setattr(_into_runs, "_write_origin", look)
    shutil.rmtree(folder.parent)
    rollbook.open(study)
    assert [len(names) for names in seen] == [0, 1, 2]
    assert len(rollbook.open(folder, foreign=False)) == 3


def test_a_training_that_a_program_logs_to_rollbook_too_is_one_run(study: Path) -> None:
    (study / "own").rename(study / "elsewhere")
    messages = Messages("the tests")
    folder = study / "tb" / "both"
    folder.mkdir()
    with (
        rollbook.init("own", "both", dir=study, sinks=[], rules=()) as run,
        open(folder / "events.out.tfevents.1.host", "wb") as file,
    ):
        file.write(messages.framed(messages.version(time.time())))
        for n in range(10):
            run.log({"loss": n / 3}, env_step=n)
            file.write(messages.framed(messages.event(time.time(), n, [messages.scalar("loss", n / 3)])))
    runs = rollbook.open(study)
    assert sorted(book.name for book in runs) == ["both", "ppo", "ppo-7", "sb3-a2c_1", "tb-dqn_1"]
    assert runs.filter(lambda row: row["name"] == "both")[0].path.is_relative_to(study / "own")
    shutil.rmtree(study / "own")
    assert "tb-both" in [book.name for book in rollbook.open(study)]


def test_ls_lists_them_all(study: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    (study / "own").rename(tmp_path_factory.mktemp("moved") / "own")  # its keeper may still be at work there
    done = CliRunner().invoke(app, ["ls", str(study)])
    assert done.exit_code == 0, done.output
    for name, what in (
        ("ppo-7", "W&B offline run"),
        ("tb-dqn_1", "TensorBoard event files"),
        ("sb3-a2c_1", "CSV table"),
    ):
        assert any(name in line and what in line for line in done.output.splitlines()), done.output
    shown = CliRunner().invoke(app, ["show", str(rollbook.open(study).one("study/ppo-7").path)])
    assert f"W&B offline run, read from {study}" in shown.output, shown.output


def test_a_condition_on_settings_reads_only_the_runs_that_match(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for seed in range(6):
        folder = tmp_path / "logs" / f"dqn_{seed}"
        add_events(folder, 5)
        (folder / "config.yaml").write_text(f"lr: {seed / 10}\nseed: {seed}\n")
    for where, matching, read in (
        ("config.lr > 0.35 and seed != 5", {"dqn_4"}, 1),
        ("config.lr > 7", set(), 1),
        ("name = 'dqn_1' or config.lr = 0.4", {"dqn_1", "dqn_4"}, 2),
        ("status = 'finished' and config.lr < 0.1", {"dqn_0"}, 6),  # how a run ended stands behind its rows
    ):
        runs = rollbook.open(tmp_path / "logs", where=where)
        assert {run.name for run in runs} == matching
        assert runs.unread == 6 - read
    listed = CliRunner().invoke(app, ["ls", str(tmp_path / "logs"), "--where", "config.lr > 7"])
    assert "none of 6 runs matches" in listed.output
    with pytest.raises(rollbook.errors.BadInput, match=r"none of 6 runs has a field 'config.momentum'"):
        rollbook.open(tmp_path / "logs", where="config.momentum > 0.1")


def test_a_setting_that_is_a_text_in_one_run_is_compared_as_text_whatever_was_read_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed, lr in enumerate(("9", "10", "schedule")):
        folder = tmp_path / "logs" / f"dqn_{seed}"
        add_events(folder, 5)
        (folder / "config.yaml").write_text(f"lr: {lr}\n")
    found_by = []
    for n, before in enumerate(("", "lr = 'schedule'", "lr = '9'")):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / f"cache_{n}"))
        if before:
            assert len(rollbook.open(tmp_path / "logs", where=f"config.{before}")) == 1
        found_by.append({run.name for run in rollbook.open(tmp_path / "logs", where="config.lr > '5'")})
    assert found_by == [{"dqn_0", "dqn_2"}] * 3
