"""Optuna, DVCLive, Comet and ClearML, as these tools wrote it (samples/make_offline.py): every value is there."""

from __future__ import annotations

import json
import math
import shutil
import sqlite3
import zipfile
from pathlib import Path
from typing import Any

import pytest

import rollbook
from rollbook.formats import importers
from rollbook.protocols import ForeignRun, Row

SAMPLES = Path(__file__).parent / "samples"
ENDED = {"COMPLETE": "finished", "PRUNED": "killed", "FAIL": "crashed", "RUNNING": "crashed"}
HALVES = [(n, 1 / (n + 1)) for n in range(12)]
CONFIG = {"lr": 3e-4, "seed": 1, "net": {"size": 8}}


def database(path: Path) -> Path:
    """Optuna's database from its dump."""
    with sqlite3.connect(path) as made:
        made.executescript((SAMPLES / "optuna.sql").read_text())
    made.close()
    return path


def runs_of(format: str, path: Path) -> dict[str, tuple[ForeignRun, list[Row]]]:
    return {run.name: (run, list(run.rows())) for run in importers.make(format).runs(path)}


def series(rows: list[Row], key: str, clock: str) -> list[tuple[Any, Any]]:
    return [(row.clocks.get(clock), row.values[key]) for row in rows if key in row.values]


def same(pairs: list[Any], others: list[Any]) -> bool:
    """Whether lists are equal, with NaN equal to itself."""
    return repr(pairs) == repr(others)


@pytest.mark.parametrize("kind", ["database", "journal"])
def test_a_trial_of_optuna_has_what_optuna_says_of_it(kind: str, tmp_path: Path) -> None:
    said = json.loads((SAMPLES / "optuna" / f"{kind}.said.json").read_text())
    place = database(tmp_path / "study.db") if kind == "database" else SAMPLES / "optuna" / "journal.log"
    runs = runs_of("optuna", place)
    assert {one["state"] for one in said.values()} == {*ENDED, "WAITING"}
    assert list(runs) == [name for name, one in said.items() if one["state"] != "WAITING"]
    for name, (run, rows) in runs.items():
        one = said[name]
        assert run.config == one["params"], name
        assert run.seed == one["attributes"].get("seed")
        assert run.status == ENDED[one["state"]]
        assert (run.failure == "") == (one["state"] == "COMPLETE")
        reported = sorted((step, value) for step, value in one["reported"])
        assert same(series(rows, "intermediate_value", "step"), reported), name
        names = {"ppo": ["value"], "two": ["return", "cost"]}[run.project or ""]
        values = [value for key in names for _step, value in series(rows, key, "step")]
        assert values == (one["values"] or []), name
        assert run.left_out == {}
    assert runs["ppo-0"][0].tags == ("maximize",)
    assert runs["two-0"][0].tags == ("maximize", "minimize")


def test_trials_are_a_sweep_with_its_best_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "study").mkdir()
    database(tmp_path / "study" / "any-name.db")
    runs = rollbook.open(tmp_path / "study")
    assert {row["made_by"] for row in runs.rows()} == {"Optuna trial"}
    swept = runs.where("project = 'ppo' and status = 'finished'").sweep("value", score="last")
    assert "lr" in str(swept)


def test_optunas_older_tables_are_read_too(tmp_path: Path) -> None:
    """Optuna 2 had no column that says which numbers are infinite, and none for the names of objectives."""
    file = database(tmp_path / "study.db")
    with sqlite3.connect(file) as made:
        made.execute("alter table trial_values drop column value_type")
        made.execute("alter table trial_intermediate_values drop column intermediate_value_type")
        made.execute("drop table study_system_attributes")
    made.close()
    runs = runs_of("optuna", file)
    assert series(runs["ppo-0"][1], "value", "step")[0][0] == 300
    assert [key for row in runs["two-0"][1] for key in row.values] == ["values_0", "values_1"]


def test_a_half_written_journal_has_the_trials_so_far(tmp_path: Path) -> None:
    whole = (SAMPLES / "optuna" / "journal.log").read_bytes()
    for share in (0.2, 0.5, 0.9):
        (tmp_path / "journal.log").write_bytes(whole[: int(len(whole) * share)])
        runs = runs_of("optuna", tmp_path / "journal.log")
        assert runs
        assert all(run.left_out == {} for run, _rows in runs.values())


def test_dvclive(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "dvclive", tmp_path / "dvclive")
    ((run, rows),) = runs_of("dvclive", tmp_path / "dvclive").values()
    run.read_details()
    assert (run.name, run.config, run.seed) == ("dvclive", CONFIG, 1)
    losses = series(rows, "train/loss", "step")
    assert math.isnan(losses.pop(3)[1])
    assert losses == HALVES[:3] + HALVES[4:]
    assert series(rows, "return", "step") == [(n, float(n)) for n in range(12)]
    assert series(rows, "end", "step") == [(11, 5.0)]
    assert rows[0].time == pytest.approx(1_796_020_000, abs=1e6)
    assert run.left_out == {}


@pytest.mark.parametrize("missing", ["metrics.json", "params.yaml"])
def test_dvclive_folders_of_which_git_has_a_part_open(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shutil.copytree(SAMPLES / "dvclive", tmp_path / "project" / "dvclive")
    (tmp_path / "project" / "dvclive" / missing).unlink()
    (tmp_path / "project" / "dvc.yaml").write_text("stages: {}\n")
    (tmp_path / "project" / "params.yaml").write_text("lr: 0.5\n")
    (run,) = rollbook.open(tmp_path / "project")
    assert run.config["lr"] == (0.5 if missing == "params.yaml" else 3e-4)
    assert len(run.series("return").mean) == 12


@pytest.mark.parametrize("form", ["archive", "folder"])
def test_comet(form: str, tmp_path: Path) -> None:
    place = at(SAMPLES / "comet.zip", form, tmp_path)
    ((run, rows),) = runs_of("comet", place).values()
    config = {key: value for key, value in run.config.items() if not key.startswith("run_arg")}
    assert (run.name, run.project, run.tags, run.seed, config) == ("ppo-1", "study", ("a", "b"), 1, CONFIG)
    assert run.notes == "note: hello"
    losses = series(rows, "loss", "step")
    assert math.isnan(losses.pop(3)[1])
    assert losses == HALVES[:3] + HALVES[4:]
    assert [row.clocks["epoch"] for row in rows if "loss" in row.values] == [n // 4 for n in range(12)]
    assert series(rows, "return", "step") == [(128 * n, float(n)) for n in range(12)]
    assert set(run.left_out) <= {"files"}


@pytest.mark.parametrize("form", ["archive", "folder"])
def test_clearml(form: str, tmp_path: Path) -> None:
    place = at(SAMPLES / "clearml.zip", form, tmp_path)
    ((run, rows),) = runs_of("clearml", place).values()
    assert (run.name, run.project, run.tags, run.seed, run.config) == ("ppo-1", "study", ("a",), 1, CONFIG)
    assert series(rows, "train/loss", "step") == HALVES
    assert series(rows, "return/mean", "step") == [(128 * n, float(n)) for n in range(12)]
    assert series(rows, "best", "step") == [(None, 3.0)]
    assert run.left_out == {"plots": 1}


def at(archive: Path, form: str, folder: Path) -> Path:
    """An archive as the tool wrote it, or unpacked."""
    if form == "archive":
        return Path(shutil.copy(archive, folder))
    with zipfile.ZipFile(archive) as held:
        held.extractall(folder / "offline-1")
    return folder / "offline-1"


def test_a_session_of_clearml_and_its_archive_are_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "offline"
    at(SAMPLES / "clearml.zip", "folder", root)
    shutil.copy(SAMPLES / "clearml.zip", root / "offline-1.zip")
    (run,) = rollbook.open(root)
    assert (run.name, run.project) == ("ppo-1", "study")


def test_any_other_archive_is_none_of_theirs(tmp_path: Path) -> None:
    (tmp_path / "broken.zip").write_bytes(b"PK\x03\x04 and no more")
    with zipfile.ZipFile(tmp_path / "code.zip", "w") as made:
        made.writestr("main.py", "print()")
    for name in ("comet", "clearml"):
        assert not importers.make(name).finds(tmp_path)
        assert list(importers.make(name).runs(tmp_path)) == []


def test_a_setting_of_clearml_that_is_a_value_and_a_section_costs_no_session(tmp_path: Path) -> None:
    folder = tmp_path / "offline-1"
    folder.mkdir()
    settings = {"net": {"value": "mlp"}, "net/size": {"value": "64", "type": "int"}, "lr": {"value": "0.1"}}
    about = {"id": "1", "name": "ppo", "hyperparams": {"General": settings}}
    event = {
        "type": "training_stats_scalar",
        "timestamp": 1.8e12,
        "iter": 3,
        "metric": "loss",
        "variant": "pi",
        "value": 2,
    }
    (folder / "task.json").write_text(json.dumps(about))
    (folder / "metrics.jsonl").write_text(json.dumps([event]) + "\n")
    book = rollbook.open(folder).one()
    assert book.config == {"net": "mlp", "net/size": 64, "lr": 0.1}
    assert book.latest()["loss/pi"][0] == 2.0
