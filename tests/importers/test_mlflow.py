"""MLflow's file store and database, as MLflow 3 itself wrote them (samples/make_mlflow.py)."""

from __future__ import annotations

import math
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

import rollbook
from rollbook.formats.importers import import_runs
from rollbook.formats.importers.mlflow import MLflow

SAMPLES = Path(__file__).parent / "samples"


def file_store(folder: Path) -> Path:
    shutil.copytree(SAMPLES / "mlruns", folder / "mlruns")
    return folder / "mlruns"


def database(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    with sqlite3.connect(folder / "mlflow.db") as db:
        db.executescript((SAMPLES / "mlflow.sql").read_text())
    db.close()
    return folder / "mlflow.db"


STORES = {"files": file_store, "database": database}
Store = Callable[[Path], Path]


@pytest.mark.parametrize("store", STORES.values(), ids=STORES)
def test_every_point_is_the_one_that_was_logged(store: Store, tmp_path: Path) -> None:
    runs = {len(list(run.rows())): run for run in MLflow().runs(store(tmp_path))}
    assert sorted(runs) == [1, 40]
    rows = list(runs[40].rows())
    for n, row in enumerate(rows):
        assert (row.time, row.clocks) == (1.7e9 + n, {"step": 10 * n})
        assert row.values["train/return"] == n * 1.5
        if not 5 <= n < 8:
            assert row.values["loss"] == 1 / (n + 1)
    odd = [rows[n].values["loss"] for n in (5, 6, 7)]
    assert isinstance(odd[0], float)
    assert math.isnan(odd[0])
    assert odd[1:] == [math.inf, -math.inf]
    assert runs[40].left_out == {}


@pytest.mark.parametrize("store", STORES.values(), ids=STORES)
def test_parameters_tags_and_status_come_along_and_deleted_runs_do_not(store: Store, tmp_path: Path) -> None:
    runs = list(MLflow().runs(store(tmp_path)))
    assert len(runs) == 2
    (whole,) = [run for run in runs if run.config]
    assert whole.config == {"lr": 0.0003, "seed": 3, "algo": "ppo", "anneal": True}
    assert (whole.project, whole.seed, whole.notes, whole.tags) == ("cartpole", 3, "hello", ("lab=east",))
    assert all(run.name.startswith("ppo-3-") for run in runs)  # two of one name keep their ids
    ended = {len(list(run.rows())): run.status for run in runs}
    assert ended == {40: "finished", 1: "crashed"}


def test_a_file_store_that_has_grown_brings_what_is_new(tmp_path: Path) -> None:
    store = file_store(tmp_path)
    assert sorted(done.rows for done in import_runs(store, dir=tmp_path / "runs")) == [1, 40]
    (loss,) = [path for path in store.rglob("metrics/loss") if len(path.read_text().splitlines()) == 40]
    with open(loss, "a") as file:
        file.write("1700000050000 0.25 500\n1700000051000 0.2")  # and half a line
    assert sorted(done.rows for done in import_runs(store, dir=tmp_path / "runs")) == [0, 1]
    book = max(rollbook.open(tmp_path / "runs"), key=lambda book: book.metrics(["loss"]).num_rows)
    assert book.metrics(["loss"], x="step")["loss"].to_pylist()[-1] == 0.25


def test_a_database_that_cannot_be_read_is_reported_as_one_run(tmp_path: Path) -> None:
    (tmp_path / "mlflow.db").write_bytes(b"SQLite format 3\0" + bytes(200))
    (run,) = MLflow().runs(tmp_path)
    assert list(run.rows()) == []
    assert run.left_out == {"databases that cannot be read": 1}
