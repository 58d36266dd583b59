"""The sinks of tracking services with their real clients, offline: what was handed over is there, number for number."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

import wandb_files
from rollbook import sinks, testing
from rollbook.protocols import Row
from rollbook.values import Histogram, Image
from waiting import until

GROUPS = ("trackers",)

PNG = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x02\x00\x00\x00\x90wS\xde"
    b"\x00\x00\x00\x0cIDATx\x9cc\xf8\xcf\xc0\x00\x00\x03\x01\x01\x00\xc9\xfe\x92\xef\x00\x00\x00\x00IEND\xaeB`\x82"
)
ROWS = [
    Row(1_700_000_000.25, {"env_step": 10, "epoch": 0}, {"train/return": 1.5, "train/n": 3, "train/on": True}, "train"),
    Row(1_700_000_001.5, {"env_step": 5}, {"train/return": math.nan, "x": math.inf}, seq=2),
    Row(1_700_000_002.0, {"env_step": 20}, {"note": "hello", "h": Histogram(range(1001), [1.0] * 1000)}, seq=3),
    Row(1_700_000_003.0, {"env_step": 30}, {"train/big": 10**400, "train/64": 2**64}, seq=4),
    Row(1_700_000_004.0, {"env_step": 40}, {"pic": Image("media/a.png", 1, 1), "gone": Image("../b.png", 1, 1)}, seq=5),
    Row(1_700_000_005.0, {}, {}, mark="final"),
]


def write(sink, folder: Path, rows=ROWS, attempt: int = 1) -> None:
    (folder / "run" / "media").mkdir(parents=True, exist_ok=True)
    (folder / "run" / "media" / "a.png").write_bytes(PNG)
    sink.open(testing.some_run(folder / "run", attempt=attempt))
    sink.write(rows)
    sink.close()
    sink.close()


def wandb_history(folder: Path, number: int = 0) -> list[dict]:
    """The rows in an offline run's file."""
    return wandb_files.history(sorted((folder / "run" / "wandb").glob("offline-run-*/*.wandb"))[number])


@pytest.mark.core
def test_wandb_has_every_value_with_its_clocks_and_time(tmp_path):
    write(sinks.make("wandb", mode="offline", all=True), tmp_path)
    until(lambda: len(wandb_history(tmp_path)) == 5)  # the client's service writes on for a moment after finish()
    first, second, third, fourth, fifth = wandb_history(tmp_path)
    assert (first["train/return"], first["train/n"], first["train/on"]) == (1.5, 3, True)
    assert (first["env_step"], first["epoch"]) == (10, 0)
    assert first["_timestamp"] == 1_700_000_000.25
    assert math.isnan(second["train/return"])
    assert second["x"] == math.inf
    assert second["env_step"] == 5
    assert third["note"] == "hello"
    assert len(third["h/values"]) <= 512
    assert sum(third["h/values"]) == 1000
    assert len(third["h/bins"]) == len(third["h/values"]) + 1
    assert fourth["env_step"] == 30
    assert fifth["pic/_type"] == "image-file"
    assert "gone/_type" not in fifth


def test_a_resumed_run_has_the_same_id_in_wandb(tmp_path):
    for attempt in (1, 2):
        write(sinks.make("wandb", mode="offline", all=True), tmp_path, ROWS[:1], attempt)
    names = [path.name for path in (tmp_path / "run" / "wandb").glob("offline-run-*/*.wandb")]
    assert set(names) == {"run-k3v9x2ab.wandb"}


@pytest.fixture
def mlflow_uri(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    return (tmp_path / "mlruns").as_uri()


def test_mlflow_has_every_number_with_its_step_and_time(tmp_path, mlflow_uri):
    from mlflow.tracking import MlflowClient

    write(sinks.make("mlflow", tracking_uri=mlflow_uri, all=True), tmp_path)
    client = MlflowClient(tracking_uri=mlflow_uri)
    (run,) = client.search_runs([client.get_experiment_by_name("cartpole").experiment_id])
    assert run.info.status == "FINISHED"
    assert run.data.params["lr"] == "0.0003"
    assert run.data.params["net/hidden"] == "[64, 64]"
    assert run.data.params["seed"] == "3"
    history = client.get_metric_history(run.info.run_id, "train/return")
    assert [(m.step, m.timestamp) for m in history] == [(10, 1_700_000_000_250), (5, 1_700_000_001_500)]
    assert history[0].value == 1.5
    assert math.isnan(history[1].value)
    assert client.get_metric_history(run.info.run_id, "train/64")[0].value == 2.0**64
    paths = [found.path for folder in ("text", "media") for found in client.list_artifacts(run.info.run_id, folder)]
    assert any(path.startswith("text/note") for path in paths)
    assert any(path.startswith("media/pic") for path in paths)


def test_mlflow_goes_on_with_the_run_of_the_same_id_and_takes_any_key(tmp_path, mlflow_uri):
    from mlflow.tracking import MlflowClient

    for attempt in (1, 2):
        write(sinks.make("mlflow", tracking_uri=mlflow_uri, all=True), tmp_path, ROWS[:1], attempt)
    hostile = [Row(float(i), {}, {text: 1.0}, seq=i) for i, text in enumerate(testing.HOSTILE)]
    write(sinks.make("mlflow", tracking_uri=mlflow_uri, all=True), tmp_path, hostile, 3)
    client = MlflowClient(tracking_uri=mlflow_uri)
    (run,) = client.search_runs([client.get_experiment_by_name("cartpole").experiment_id])
    assert len(run.data.metrics) > 10


def test_a_key_and_keys_below_it_stand_side_by_side_in_a_file_store(tmp_path, mlflow_uri):
    from mlflow.tracking import MlflowClient

    rows = [Row(1.0, {}, {"loss": 1.0, "loss/policy": 2.0, "a/b": 3.0, "a": 4.0})]
    for attempt, some in enumerate((rows, [Row(2.0, {}, {"loss/policy": 5.0, "loss": 6.0})]), 1):
        write(sinks.make("mlflow", tracking_uri=mlflow_uri, all=True), tmp_path, some, attempt)
    client = MlflowClient(tracking_uri=mlflow_uri)
    (run,) = client.search_runs([client.get_experiment_by_name("cartpole").experiment_id])
    assert run.data.metrics == {"loss": 6.0, "loss_/policy": 5.0, "a/b": 3.0, "a_": 4.0}


def test_trackio_has_every_value(tmp_path, monkeypatch):
    for module in [name for name in sys.modules if name.partition(".")[0] == "trackio"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    write(sinks.make("trackio", all=True), tmp_path, [row for row in ROWS if "pic" not in row.values])
    from trackio.sqlite_storage import SQLiteStorage

    logs = SQLiteStorage.get_logs("cartpole", "ppo-k3v9x2ab")
    assert [log["step"] for log in logs] == [10, 5, 20, 30]
    assert (logs[0]["train/return"], logs[0]["train/n"], logs[0]["epoch"]) == (1.5, 3, 0)
    assert logs[2]["note"] == "hello"
    assert logs[3]["train/64"] == 2.0**64


def test_trackers_handed_to_spinning_ups_logger_get_every_row(tmp_path, mlflow_uri):
    import mlflow
    import wandb

    from rollbook.adapters.spinningup import EpochLogger, setup_logger_kwargs

    (tmp_path / "run").mkdir()
    mlflow.set_tracking_uri(mlflow_uri)
    run = wandb.init(mode="offline", dir=str(tmp_path / "run"), project="p")
    with mlflow.start_run() as active:
        arguments = setup_logger_kwargs("vpg", 0, tmp_path / "data", trackers=[run, mlflow], run=False)
        logger = EpochLogger(**arguments)
        logger.save_config({"gamma": 0.99, "ac_kwargs": {"hidden": 64}})
        for epoch in range(3):
            logger.store(EpRet=float(epoch))
            logger.store(EpRet=epoch + 1.0)
            logger.log_tabular("EpRet", with_min_and_max=True)
            logger.log_tabular("TotalEnvInteracts", 400 * epoch)
            logger.dump_tabular()
        logger.close()
    assert dict(run.config)["gamma"] == 0.99
    run.finish()
    assert logger._count.counts == {}
    expected = [(0, 0.5), (400, 1.5), (800, 2.5)]
    client = mlflow.MlflowClient()
    history = client.get_metric_history(active.info.run_id, "AverageEpRet")
    assert sorted((metric.step, metric.value) for metric in history) == expected
    assert client.get_run(active.info.run_id).data.params["ac_kwargs.hidden"] == "64"
    until(lambda: len(wandb_history(tmp_path)) == 3)
    assert [(row["_step"], row["AverageEpRet"]) for row in wandb_history(tmp_path)] == expected


@pytest.mark.core
def test_each_public_name_of_wandb_is_there_or_its_error_says_what_to_do(tmp_path, monkeypatch):
    import rollbook.wandb as ours
    import wandb as theirs

    monkeypatch.setenv("ROLLBOOK_DIR", str(tmp_path))
    with ours.init(project="p") as run:
        absent = {name for name in [*theirs.__all__, "Classes", "JoinedTable"] if not hasattr(ours, name)}
        for name in absent:
            with pytest.raises(AttributeError, match=f"wandb.{name}: rollbook has no place for it. \\w+"):
                getattr(ours, name)
        kind = theirs.sdk.wandb_run.Run
        assert [name for name in dir(kind) if not name.startswith("_") and not hasattr(run, name)] == []
    assert len(absent) < 8
