"""Runs of other tools as those tools wrote them (samples/make_more.py): every value that was logged is there."""

from __future__ import annotations

import json
import math
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollbook
from rollbook.formats import importers
from rollbook.protocols import ForeignRun, Row

SAMPLES = Path(__file__).parent / "samples"


def database(name: str, path: Path) -> Path:
    """A database from its dump."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(path) as made:
        made.executescript((SAMPLES / f"{name}.sql").read_text())
    made.close()
    return path


def runs_of(format: str, path: Path) -> dict[str, tuple[ForeignRun, list[Row]]]:
    return {run.name: (run, list(run.rows())) for run in importers.make(format).runs(path)}


def series(rows: list[Row], key: str, clock: str) -> list[tuple[Any, Any]]:
    return [(row.clocks.get(clock), row.values[key]) for row in rows if key in row.values and row.table == "metrics"]


HALVES = [(n, 1 / (n + 1)) for n in range(12)]


def test_trackio(tmp_path: Path) -> None:
    runs = runs_of("trackio", database("trackio", tmp_path / "study.db"))
    assert [(name, run.project, run.group, run.seed) for name, (run, _rows) in runs.items()] == [
        ("ppo-1", "study", "ppo", 1),
        ("ppo-2", "study", "ppo", 2),
    ]
    for run, rows in runs.values():
        assert run.config == {"lr": 3e-4, "seed": run.seed}
        losses = series(rows, "loss", "step")
        assert math.isnan(losses.pop(3)[1])
        assert losses.pop(3) == (4, math.inf)
        assert losses == HALVES[:3] + HALVES[5:]
        assert series(rows, "nested/x", "env_step") == [(128 * n, n) for n in range(12)]
        assert run.left_out == {}


def test_swanlab() -> None:
    ((run, rows),) = runs_of("swanlab", SAMPLES / "swanlab").values()
    assert (run.name, run.project, run.notes, run.tags, run.status) == (
        "ppo-1",
        "study",
        "hello",
        ("a", "b"),
        "finished",
    )
    assert (run.config, run.seed) == ({"lr": 3e-4, "seed": 1, "net": {"size": 8}}, 1)
    losses = series(rows, "loss", "step")
    assert math.isnan(losses.pop(3)[1])
    assert losses == HALVES[:3] + HALVES[4:]
    assert series(rows, "global_step", "env_step") == [(128 * n, 128 * n) for n in range(12)]


def test_goodseed(tmp_path: Path) -> None:
    file = database("goodseed", tmp_path / "projects" / "study" / "runs" / "rapid-heron.sqlite")
    ((run, rows),) = runs_of("goodseed", file).values()
    assert (run.name, run.project, run.seed, run.tags, run.status) == ("ppo-1", "study", 1, ("a",), "finished")
    assert run.config == {"lr": 3e-4, "seed": 1}
    assert series(rows, "train/loss", "step") == HALVES


def test_marl_eval() -> None:
    runs = runs_of("marl_eval", SAMPLES / "marl_eval")
    assert [(run.group, run.seed) for run, _rows in runs.values()] == [("ippo", 0), ("ippo", 1)]
    for run, rows in runs.values():
        assert run.config == {"environment": "smax", "task": "3s5z", "algorithm": "ippo"}
        assert series(rows, "mean_episode_return", "env_step") == [(1000 * n, n / 2 + run.seed) for n in range(8)]
        assert series(rows, "win_rate", "env_step") == [(1000 * n, n / 8) for n in range(8)]
        assert series(rows, "absolute/mean_episode_return", "env_step") == [(7000, 9.5)]


def test_marl_eval_keeps_each_evaluation_episode(tmp_path: Path) -> None:
    steps = {"step_0": {"step_count": 500, "elapsed_time": 2.0, "episode_return": [1.0, 3.0], "episode_length": [5, 7]}}
    (tmp_path / "metrics.json").write_text(json.dumps({"env": {"task": {"mappo": {"seed_3": steps}}}}))
    ((_run, rows),) = runs_of("marl_eval", tmp_path).values()
    assert series(rows, "episode_return", "env_step") == [(500, 2.0)]
    assert [(row.scope, row.values["return"], row.values["length"]) for row in rows if row.table == "episodes"] == [
        ("test", 1.0, 5),
        ("test", 3.0, 7),
    ]


def test_d3rlpy() -> None:
    ((run, rows),) = runs_of("scalar_files", SAMPLES / "d3rlpy").values()
    for file in (SAMPLES / "d3rlpy").glob("*.csv"):
        lines = [line.split(",") for line in file.read_text().splitlines()]
        key = file.name.removesuffix(".csv")
        if lines[0][0] == "epoch":
            for place, name in enumerate(lines[0][2:], 2):
                expected = [(int(line[1]), float(line[place])) for line in lines[1:]]
                assert series(rows, f"{key}/{name}", "gradient_step") == expected
        else:
            assert series(rows, key, "gradient_step") == [(int(line[1]), float(line[2])) for line in lines]
            assert series(rows, key, "epoch") == [(int(line[0]), float(line[2])) for line in lines]
    assert run.config == json.loads((SAMPLES / "d3rlpy" / "params.json").read_text())


def test_torchrl() -> None:
    ((run, rows),) = runs_of("scalar_files", SAMPLES / "torchrl").values()
    assert (run.name, run.config, run.seed) == ("torchrl", {"lr": 3e-4, "seed": 5}, 5)
    assert series(rows, "train/loss", "step") == [(100 * n, value) for n, value in HALVES]
    assert series(rows, "eval/reward", "step") == [(100 * n, n / 2) for n in range(0, 12, 3)]


def test_trainer_state_is_the_log_of_the_newest_checkpoint() -> None:
    ((run, rows),) = runs_of("trainer_state", SAMPLES / "trainer").values()
    logged = json.loads((SAMPLES / "trainer" / "checkpoint-12" / "trainer_state.json").read_text())["log_history"]
    assert run.name == "trainer"
    assert [(row.clocks["gradient_step"], row.values) for row in rows] == [
        (entry["step"], {key: value for key, value in entry.items() if key != "step"}) for entry in logged
    ]
    assert {entry["step"] for entry in logged} == set(range(1, 13))


def test_a_folder_of_stable_baselines3_is_one_run_with_its_evaluations_as_episodes(tmp_path: Path) -> None:
    folder = tmp_path / "sb3"
    shutil.copytree(SAMPLES / "sb3", folder)
    ((run, rows),) = runs_of("sb3", folder).values()
    with np.load(folder / "evaluations.npz", allow_pickle=False) as said:
        steps, results, lengths = (said[name] for name in ("timesteps", "results", "ep_lengths"))
    tests = [row for row in rows if row.table == "episodes" and row.scope == "test"]
    assert [(row.clocks["env_step"], row.values["return"], row.values["length"]) for row in tests] == [
        (step, result, length)
        for step, row, row_lengths in zip(steps.tolist(), results.tolist(), lengths.tolist(), strict=True)
        for result, length in zip(row, row_lengths, strict=True)
    ]
    monitors = sum(len(path.read_text().splitlines()) - 2 for path in folder.glob("*.monitor.csv"))
    assert len([row for row in rows if row.scope == "train"]) == monitors
    logged = [json.loads(line) for line in (folder / "progress.json").read_text().splitlines()]
    expected = [
        (line["time/total_timesteps"], line["eval/mean_reward"]) for line in logged if "eval/mean_reward" in line
    ]
    assert series(rows, "eval/mean_reward", "env_step") == expected
    (folder / "progress.json").unlink()
    (folder / "progress.csv").unlink()
    ((_run, rows),) = runs_of("sb3", folder).values()
    assert series(rows, "eval/mean_reward", "env_step") == list(
        zip(steps.tolist(), results.mean(1).tolist(), strict=True)
    )
    assert run.left_out == {}


def test_files_of_one_run_may_grow_side_by_side(tmp_path: Path) -> None:
    """Each file of a run is a part of its own: what is new in the first does not shift the rows of the second."""
    folder = tmp_path / "a2c"
    folder.mkdir()
    progress, monitor = folder / "progress.csv", folder / "0.monitor.csv"
    progress.write_text("time/total_timesteps,train/loss\n10,0.5\n")
    monitor.write_text('#{"t_start": 1.6e9}\nr,l,t\n1.0,10,1.5\n')
    importers.import_runs(folder, dir=tmp_path / "runs")
    for n in range(2, 5):
        progress.write_text(progress.read_text() + f"{10 * n},{1 / n}\n")
        monitor.write_text(monitor.read_text() + f"{n}.0,10,{n}.5\n")
        importers.import_runs(folder, dir=tmp_path / "runs")
    (book,) = rollbook.open(tmp_path / "runs")
    assert book.metrics(["train/loss"], x="env_step")["train/loss"].to_pylist() == [0.5, 1 / 2, 1 / 3, 1 / 4]
    assert book.episodes()["return"].to_pylist() == [1.0, 2.0, 3.0, 4.0]


def test_a_pickle_in_an_npz_is_refused(tmp_path: Path) -> None:
    there = tmp_path / "there"

    class Runs:
        def __reduce__(self) -> Any:
            return Path.touch, (there,)

    np.savez(tmp_path / "evaluations.npz", timesteps=np.array([1]), results=np.array([[Runs()]], dtype=object))
    ((run, rows),) = runs_of("sb3", tmp_path).values()
    assert (rows, run.left_out) == ([], {"evaluations.npz that cannot be read": 1})
    assert not there.exists()


@pytest.mark.parametrize("name", ["trackio", "goodseed"])
def test_a_database_is_not_changed_by_reading_it_and_gets_no_files_beside_it(name: str, tmp_path: Path) -> None:
    file = database(name, tmp_path / "runs" / ("x.db" if name == "trackio" else "x.sqlite"))
    before = file.read_bytes()
    assert runs_of(name, file)
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    assert file.read_bytes() == before


@pytest.mark.parametrize("name", ["trackio", "goodseed"])
@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_database_that_its_tool_holds_locked_is_read_all_the_same(name: str, mode: str, tmp_path: Path) -> None:
    file = database(name, tmp_path / "runs" / ("x.db" if name == "trackio" else "x.sqlite"))
    whole = {run: len(rows) for run, (_run, rows) in runs_of(name, file).items()}
    tool = sqlite3.connect(file, isolation_level=None)
    tool.execute(f"pragma journal_mode={mode}")
    tool.execute("begin exclusive")
    before = file.read_bytes()
    assert {run: len(rows) for run, (_run, rows) in runs_of(name, file).items()} == whole
    assert file.read_bytes() == before
    tool.execute("rollback")
    tool.close()


def test_acmes_labels_are_what_the_keys_of_one_run_begin_with() -> None:
    ((run, rows),) = runs_of("acme", SAMPLES / "acme").values()
    assert [value for _step, value in series(rows, "learner/loss", "step")] == [n / 2 for n in range(12)]
    assert [value for _step, value in series(rows, "evaluator/episode_return", "step")] == [n / 2 for n in range(12)]
    assert run.left_out == {}


def test_lightnings_metrics_csv_with_its_hparams() -> None:
    ((run, rows),) = runs_of("csv", SAMPLES / "lightning").values()
    assert (run.config, run.seed) == ({"lr": 3e-4, "seed": 8}, 8)
    assert series(rows, "train_loss", "step") == HALVES
    assert series(rows, "val_loss", "step") == [(n, 2 / (n + 1)) for n in (3, 7, 11)]


def test_neptune_exports_have_every_point_of_their_parts() -> None:
    from pyarrow import parquet

    runs = runs_of("neptune", SAMPLES / "neptune")
    about = [(name, run.project, run.group, run.seed, run.status) for name, (run, _rows) in runs.items()]
    assert about == [("ppo-1", "study", "ppo", 1, "finished"), ("ppo-2", "study", "ppo", 2, "crashed")]
    for run, rows in runs.values():
        assert (run.tags, run.notes) == (("a", "b"), "hello")
        assert run.config == {"parameters": {"env": "ant", "lr": 3e-4, "seed": run.seed}}
        points = [cells for part in run.files for cells in parquet.read_table(part).to_pylist()]
        numbers = [cells for cells in points if cells["attribute_type"] == "float_series"]
        wanted: dict[str, list[Any]] = {}
        for cells in numbers:
            wanted.setdefault(cells["attribute_path"], []).append((float(cells["step"]), cells["float_value"]))
        assert repr(series(rows, "train/loss", "step")) == repr([(int(n), value) for n, value in wanted["train/loss"]])
        assert series(rows, "system/cpu", "step") == [(int(n), value) for n, value in wanted["monitoring/8f3a/cpu"]]
        halves = [(row.values["clock/step"], row.values["train/half"]) for row in rows if "train/half" in row.values]
        assert halves == wanted["train/half"]
        assert [row.time for row in rows if "train/loss" in row.values] == [
            cells["timestamp"].timestamp() for cells in numbers if cells["attribute_path"] == "train/loss"
        ]
        assert series(rows, "notes", "step") == [(0, "line 0"), (1, "line 1")]
        ((step, weights),) = series(rows, "weights", "step")
        assert (step, weights.edges, weights.counts) == (5, (0.0, 1.0, 2.0), (3.0, 4.0))
        assert run.left_out == {"files": 1}


def test_an_export_without_its_first_part_was_interrupted_and_is_no_run(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "neptune", tmp_path / "exports")
    for part in (tmp_path / "exports").rglob("ppo-1*_part_0.parquet"):
        part.unlink()
    assert list(runs_of("neptune", tmp_path / "exports")) == ["ppo-2"]
