"""Runs that tools write here, read by rollbook's importers and by the tools' own readers: equal, point by point.

How many points that are is in the table of docs/importers.md; where a door recorded the same training, its book has the
same points.
"""

from __future__ import annotations

import csv
import importlib.util
import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

import rollbook
from rollbook.formats import importers

GROUPS = ("formats", "trackers", "main", "acme", "loops", "loggers", "jax", "brax", "rliable", "verl", "rllib")

pytestmark = pytest.mark.core

DOCS = Path(__file__).parents[2] / "docs" / "importers.md"

Points = dict[str, list[tuple[int, float]]]


def told(label: str) -> int:
    """How many points the table of the docs names."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in DOCS.read_text().splitlines()]
    (row,) = [row for row in rows if row[0] == label and len(row) == 5 and row[3] == "0"]
    return int(row[2].replace(",", ""))


def read(format: str, source: Path, clock: str) -> dict[str, Points]:
    """What the importer reads: run -> key -> points in order."""
    runs: dict[str, Points] = {}
    for run in importers.make(format).runs(source):
        points = runs.setdefault(run.name, {})
        for row in run.rows():
            for key, value in row.values.items():
                if isinstance(value, (int, float)) and row.table == "metrics" and clock in row.clocks:
                    points.setdefault(key, []).append((row.clocks[clock], float(value)))
        assert not run.lost
    return runs


def same(label: str, format: str, source: Path, theirs: Mapping[str, Points], clock: str = "step") -> None:
    """All points of the tool's reader are the importer's, and no others of these keys; the docs name their number."""
    ours = read(format, source, clock)
    assert ours.keys() == theirs.keys()
    for name, points in theirs.items():
        for key, expected in points.items():
            assert repr(sorted_(ours[name][key])) == repr(sorted_(expected)), f"{name}: {key}"
    assert sum(len(series) for points in theirs.values() for series in points.values()) == told(label)


def sorted_(points: Iterable[tuple[int, float]]) -> list[tuple[int, float]]:
    """By step; NaN is equal to itself only as a text."""
    return sorted(((int(step), float(value)) for step, value in points), key=lambda point: (point[0], repr(point[1])))


def values(n: int) -> float:
    return math.nan if n == 3 else math.inf if n == 4 else 1 / (n + 1)


def series_of(book: rollbook.Book, key: str, clock: str) -> list[tuple[int, float]]:
    series = book.series(key, x=clock)
    return list(zip(series.x.tolist(), series.mean.tolist(), strict=True))


# -- trackers


def test_aim(tmp_path: Path) -> None:
    aim = pytest.importorskip("aim")
    for seed in (1, 2):
        run = aim.Run(repo=str(tmp_path / "repo"), system_tracking_interval=None, capture_terminal_logs=False)
        run.name = f"ppo-{seed}"
        for n in range(12):
            run.track(values(n), name="loss", step=10 * n, epoch=n // 4)
            run.track(float(n * seed), name="return", step=10 * n, context={"subset": "train"})
            run.track(n / 2, name="return", step=10 * n, context={"subset": "eval", "env": "b"})
        run.close()
    shutil.copytree(tmp_path / "repo", tmp_path / "copy")
    command = [Path(sys.executable).with_name("aim"), "storage", "--repo", tmp_path / "copy", "reindex", "-y"]
    subprocess.run(command, check=True, capture_output=True)
    repo = aim.Repo.from_path(str(tmp_path / "copy"))
    keys = {"{}": "{}", "{'subset': 'train'}": "train/{}", "{'env': 'b', 'subset': 'eval'}": "eval/{}/env=b"}
    theirs: dict[str, Points] = {}
    for run in repo.iter_runs():
        for metric in run.metrics():
            key = keys[str(dict(sorted(metric.context.to_dict().items())))].format(metric.name)
            frame = metric.dataframe()
            theirs.setdefault(run.name, {})[key] = list(zip(frame["step"], frame["value"], strict=True))
    same("`aim`", "aim", tmp_path / "repo", theirs)


def test_swanlab(tmp_path: Path) -> None:
    swanlab = pytest.importorskip("swanlab")
    store = pytest.importorskip("swanlab.sdk.internal.core_python.store")
    from swanlab.proto.swanlab.record.v1.record_pb2 import Record

    settings = swanlab.Settings(log_proxy_type="none")
    swanlab.init(
        project="study", experiment_name="ppo", mode="offline", logdir=str(tmp_path / "swanlog"), settings=settings
    )
    for n in range(12):
        swanlab.log({"loss": values(n), "return": n / 2}, step=10 * n)
    swanlab.finish()
    (file,) = (tmp_path / "swanlog").rglob("*.swanlab")
    reader = store.DataStoreReader()
    reader.open(file)
    points: Points = {}
    while (data := reader.scan()) is not None:
        record = Record.FromString(data)
        if record.WhichOneof("record_type") == "scalar":
            points.setdefault(record.scalar.key, []).append((record.scalar.step, record.scalar.value.number))
    same("`swanlab`", "swanlab", tmp_path / "swanlog", {"ppo": points})


def test_goodseed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOODSEED_HOME", str(tmp_path))
    goodseed = pytest.importorskip("goodseed")
    run = goodseed.Run(name="ppo", project="study", storage="local")
    for n in range(12):
        run["loss"].log(1 / (n + 1), step=10 * n)
        run["return"].log(n / 2, step=10 * n)
    run.close()
    (file,) = tmp_path.rglob("*.sqlite")
    reader = goodseed.Run(run_id=file.stem, project="study", storage="local", read_only=True)
    theirs = {
        path: [(point["step"], point["y"]) for point in reader._storage.get_metric_points(path)]
        for path in ("loss", "return")
    }
    same("`goodseed`", "goodseed", file, {"ppo": theirs})


def test_trackio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path))
    trackio = pytest.importorskip("trackio")
    from trackio.sqlite_storage import SQLiteStorage

    monkeypatch.setattr("trackio.sqlite_storage.TRACKIO_DIR", tmp_path)
    trackio.init(project="study", name="ppo")
    for n in range(12):
        trackio.log({"loss": values(n), "return": n / 2}, step=10 * n)
    trackio.finish()
    logs = SQLiteStorage.get_logs("study", "ppo")
    theirs = {key: [(row["step"], row[key]) for row in logs] for key in ("loss", "return")}
    (file,) = tmp_path.rglob("study.db")
    same("`trackio`", "trackio", file, {"ppo": theirs})


@pytest.mark.parametrize("store", ["files", "database"])
def test_mlflow(store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    if store == "database":
        pytest.importorskip("sqlalchemy")
    uri = (tmp_path / "mlruns").as_uri() if store == "files" else f"sqlite:///{tmp_path / 'mlflow.db'}"
    client = mlflow.MlflowClient(uri)
    run = client.create_run(client.create_experiment("study"), run_name="ppo")
    for n in range(12):
        client.log_metric(run.info.run_id, "loss", values(n), step=10 * n)
        client.log_metric(run.info.run_id, "train/return", n / 2, step=10 * n)
    client.set_terminated(run.info.run_id)
    # Its database has the largest number in the place of infinity; so has what its own reader gives.
    theirs = {
        key: [
            (point.step, math.inf if point.value > 1.79e308 else point.value)
            for point in client.get_metric_history(run.info.run_id, key)
        ]
        for key in ("loss", "train/return")
    }
    same(f"`mlflow`, {store}", "mlflow", tmp_path, {"ppo": theirs})


# -- libraries of loops


def test_event_files(tmp_path: Path) -> None:
    tensorboard = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    writers = {"torch": pytest.importorskip("torch.utils.tensorboard"), "x": pytest.importorskip("tensorboardX")}
    theirs: dict[str, Points] = {}
    for name, module in writers.items():
        writer = module.SummaryWriter(str(tmp_path / name))
        for n in range(12):
            writer.add_scalar("loss", values(n), 10 * n)
            writer.add_scalar("return", n / 2, 10 * n)
        writer.close()
        reader = tensorboard.EventAccumulator(str(tmp_path / name), size_guidance={tensorboard.SCALARS: 0}).Reload()
        theirs[name] = {
            tag: [(event.step, event.value) for event in reader.Scalars(tag)] for tag in reader.Tags()["scalars"]
        }
    same("`tensorboard`, of torch and tensorboardX", "tensorboard", tmp_path, theirs)


def test_stable_baselines3(tmp_path: Path) -> None:
    sb3 = pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.callbacks import EvalCallback
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.logger import configure

    folder = tmp_path / "a2c"
    train, test = make_vec_env("CartPole-v1", 2, seed=1, monitor_dir=str(folder)), make_vec_env("CartPole-v1", 1)
    model = sb3.A2C("MlpPolicy", train, seed=1, device="cpu")
    model.set_logger(configure(str(folder), ["csv", "json"]))
    model.learn(2000, callback=EvalCallback(test, n_eval_episodes=3, eval_freq=250, log_path=str(folder), verbose=0))
    pandas = pytest.importorskip("pandas")
    for name, format in (("progress.csv", "csv"), ("progress.json", "jsonl")):
        frame = (
            pandas.read_csv(folder / name, float_precision="round_trip")
            if format == "csv"
            else pandas.DataFrame([json.loads(line) for line in (folder / name).read_text().splitlines()])
        )
        steps = frame["time/total_timesteps"]
        theirs = {
            key: [(int(step), float(value)) for step, value in zip(steps, frame[key], strict=True) if value == value]
            for key in frame
            if key not in ("time/total_timesteps", "time/time_elapsed")
        }
        same(f"`sb3`, {name}", format, folder / name, {"progress": theirs}, "env_step")

    import numpy as np
    from stable_baselines3.common.monitor import load_results

    train.close()  # closes the Monitor files
    (run,) = importers.make("sb3").runs(folder)
    episodes: dict[str, list[tuple[float, ...]]] = {"train": [], "test": []}
    for row in run.rows():
        if row.table == "episodes":
            clock = (float(row.clocks["env_step"]),) if row.scope == "test" else ()
            episodes[row.scope].append((*clock, float(row.values["return"]), float(row.values["length"])))
    assert not run.lost
    monitors = [(float(row.r), float(row.l)) for row in load_results(str(folder)).itertuples()]
    assert sorted(episodes["train"]) == sorted(monitors)
    assert 2 * len(monitors) >= told("`sb3`, Monitor")  # how long episodes last depends on the processor
    with np.load(folder / "evaluations.npz") as file:
        tests = [
            (float(step), float(returned), float(length))
            for step, results, lengths in zip(file["timesteps"], file["results"], file["ep_lengths"], strict=True)
            for returned, length in zip(results, lengths, strict=True)
        ]
    assert sorted(episodes["test"]) == sorted(tests)
    assert 2 * len(tests) == told("`sb3`, evaluations.npz")


def test_tune(tmp_path: Path) -> None:
    """A folder of trials, each as Ray's own table of it; configuration and seed come with the rows."""
    ray = pytest.importorskip("ray")
    tune = pytest.importorskip("ray.tune")
    pytest.importorskip("pandas")

    losses = [values(n) for n in range(12)]

    def train(config: dict[str, Any]) -> None:
        for n, loss in enumerate(losses):
            tune.report({"score": n * config["lr"], "nested": {"loss": loss}, "timesteps_total": 10 * n})

    environment = {"env_vars": {"PYTHONPATH": str(Path(rollbook.__file__).parents[1])}}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False, runtime_env=environment)
    try:
        found = tune.Tuner(
            train,
            param_space={"lr": tune.grid_search([0.5, 0.25]), "seed": 3},
            run_config=tune.RunConfig(name="exp", storage_path=str(tmp_path), verbose=0),
        ).fit()
    finally:
        ray.shutdown()
    books = {book.name: book for book in rollbook.open(tmp_path)}
    assert {(book.config["lr"], book.seed, book.status) for book in books.values()} == {
        (0.5, 3, "finished"),
        (0.25, 3, "finished"),
    }
    assert {book.info.made_by for book in books.values()} == {"Ray Tune results"}
    points = 0
    for trial in found:
        frame = trial.metrics_dataframe
        for key in ("score", "nested/loss"):
            theirs = list(zip(frame["timesteps_total"], frame[key], strict=True))
            assert repr(series_of(books[Path(trial.path).name], key, "env_step")) == repr(sorted_(theirs))
            points += len(theirs)
    assert points == told("`jsonl`, Ray Tune")


def test_verl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tracking = pytest.importorskip("verl.utils.tracking")
    file = tmp_path / "metrics.jsonl"
    monkeypatch.setenv("VERL_FILE_LOGGER_PATH", str(file))
    logger = tracking.Tracking("study", "ppo", "file", config={})
    for n in range(12):
        logger.log({"actor/loss": 1 / (n + 1), "critic/score/mean": n / 2}, step=n)
    del logger
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    points = {key: [(line["step"], line["data"][key]) for line in lines] for key in ("actor/loss", "critic/score/mean")}
    same("`jsonl`, verl's file logger", "jsonl", file, {"metrics": points})


def test_transformers(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    pytest.importorskip("accelerate")

    class Line(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(2, 1)

        def forward(self, x: Any, labels: Any) -> dict[str, Any]:
            out = self.layer(x)[:, 0]
            return {"loss": ((out - labels) ** 2).mean(), "logits": out}

    data = [{"x": torch.tensor([n / 8, 1.0]), "labels": torch.tensor(n / 4)} for n in range(8)]
    told_to = transformers.TrainingArguments(
        output_dir=str(tmp_path / "sft"), max_steps=12, logging_steps=1, save_steps=6, eval_strategy="steps",
        eval_steps=4, per_device_train_batch_size=4, report_to=[], disable_tqdm=True, use_cpu=True, seed=1,
    )  # fmt: skip
    transformers.Trainer(model=Line(), args=told_to, train_dataset=data, eval_dataset=data).train()
    state = transformers.TrainerState.load_from_json(str(tmp_path / "sft" / "checkpoint-12" / "trainer_state.json"))
    points: Points = {}
    for entry in state.log_history:
        for key in entry.keys() - {"step"}:
            points.setdefault(key, []).append((entry["step"], entry[key]))
    same("`trainer_state`, transformers", "trainer_state", tmp_path / "sft", {"sft": points}, "gradient_step")


def test_acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import types

    if os.environ["ROLLBOOK_FRAMEWORK_GROUP"] != "acme":
        pytest.skip("another group's")
    monkeypatch.setitem(sys.modules, "launchpad", types.ModuleType("launchpad"))
    loggers = pytest.importorskip("acme.utils.loggers.csv")
    pandas = pytest.importorskip("pandas")
    logger = loggers.CSVLogger(str(tmp_path), "learner", add_uid=False)
    for n in range(12):
        logger.write({"learner_steps": 10 * n, "loss": 1 / (n + 1), "return": n / 2})
    logger.close()
    frame = pandas.read_csv(next(tmp_path.rglob("logs.csv")))
    (run,) = importers.make("acme").runs(tmp_path)
    rows = list(run.rows())
    ours = [row.values for row in rows]
    assert [row.clocks["gradient_step"] for row in rows] == frame["learner_steps"].tolist()
    for key in frame.columns.drop("learner_steps"):  # the clock of the rows
        assert [row[f"learner/{key}"] for row in ours] == frame[key].tolist()
    assert frame.size == told("`acme`")


def test_d3rlpy(tmp_path: Path) -> None:
    d3rlpy = pytest.importorskip("d3rlpy")
    import numpy as np

    rng = np.random.default_rng(0)
    data = d3rlpy.dataset.MDPDataset(
        rng.normal(size=(40, 3)).astype(np.float32),
        rng.integers(0, 2, 40),
        rng.normal(size=40),
        np.arange(40) % 10 == 9,
    )
    d3rlpy.algos.DQNConfig(batch_size=4).create().fit(
        data,
        n_steps=20,
        n_steps_per_epoch=5,
        experiment_name="DQN",
        with_timestamp=False,
        show_progress=False,
        logger_adapter=d3rlpy.logging.FileAdapterFactory(str(tmp_path)),
        save_interval=100,
    )
    theirs = {}
    for file in (tmp_path / "DQN").glob("*.csv"):
        if not file.stem.endswith("_grad"):
            table = np.loadtxt(file, delimiter=",", ndmin=2)
            theirs[file.stem] = [(int(step), value) for _epoch, step, value in table.tolist()]
    same("`scalar_files`, d3rlpy", "scalar_files", tmp_path / "DQN", {"DQN": theirs}, "gradient_step")


def test_torchrl(tmp_path: Path) -> None:
    csv_logger = pytest.importorskip("torchrl.record.loggers.csv")
    from rollbook.adapters.torchrl import RollbookLogger

    theirs = csv_logger.CSVLogger("dqn", log_dir=str(tmp_path))
    ours = RollbookLogger("dqn", project="points", dir=str(tmp_path / "runs"))
    for n in range(12):
        for logger in (theirs, ours):
            logger.log_scalar("train/loss", values(n), step=100 * n)
            logger.log_scalar("eval/reward", n / 2, step=100 * n)
    ours.close()
    points = {key: list(series) for key, series in theirs.experiment.scalars.items()}
    same("`scalar_files`, TorchRL", "scalar_files", tmp_path / "dqn", {"dqn": points})
    (book,) = rollbook.open(tmp_path / "runs")
    for key, series in points.items():
        assert repr(series_of(book, key, "step")) == repr(series)


def test_elements(tmp_path: Path) -> None:
    elements = pytest.importorskip("elements")
    from rollbook.adapters.elements import RollbookOutput

    step = elements.Counter()
    outputs = [
        elements.logger.JSONLOutput(tmp_path / "dreamer", parallel=False),
        RollbookOutput(project="points", name="dreamer", dir=str(tmp_path / "runs")),
    ]
    logger = elements.Logger(step, outputs)
    for n in range(12):
        step.increment(100)
        logger.add({"loss": values(n), "score": n / 2}, prefix="train")
        logger.write()
    logger.close()
    lines = [json.loads(line) for line in (tmp_path / "dreamer" / "metrics.jsonl").read_text().splitlines()]
    theirs = {key: [(line["step"], line[key]) for line in lines] for key in ("train/loss", "train/score")}
    same("`jsonl`, elements (DreamerV3)", "jsonl", tmp_path / "dreamer", {"dreamer": theirs})
    (book,) = rollbook.open(tmp_path / "runs")
    for key, series in theirs.items():
        assert repr(series_of(book, key, "env_step")) == repr(series)


def test_lightning(tmp_path: Path) -> None:
    pytest.importorskip("lightning")
    from lightning.pytorch.loggers import CSVLogger

    logger = CSVLogger(str(tmp_path), name="fit", version=0)
    for n in range(12):
        logger.log_metrics({"train_loss": 1 / (n + 1)}, step=10 * n)
        if n % 3 == 2:
            logger.log_metrics({"val_loss": n / 2}, step=10 * n)
    logger.save()
    file = tmp_path / "fit" / "version_0" / "metrics.csv"
    with open(file) as stream:
        rows = list(csv.DictReader(stream))
    theirs = {
        key: [(int(row["step"]), float(row[key])) for row in rows if row[key]] for key in ("train_loss", "val_loss")
    }
    same("`csv`, Lightning", "csv", file, {"metrics": theirs})


def test_keras(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    keras = pytest.importorskip("keras")
    import numpy as np

    from rollbook.adapters.keras import RollbookCallback

    model = keras.Sequential([keras.layers.Dense(4), keras.layers.Dense(1)], name="sum")
    model.compile(keras.optimizers.Adam(0.01), "mse", metrics=["mae"])
    x = np.random.default_rng(1).random((64, 3), dtype=np.float32)
    callbacks = [
        RollbookCallback(project="sums", dir=str(tmp_path / "runs")),
        keras.callbacks.CSVLogger(str(tmp_path / "progress.csv")),
    ]
    told_by_keras = model.fit(x, x.sum(1), epochs=5, validation_split=0.25, callbacks=callbacks, verbose=0).history
    rollbook.finish()
    theirs = {key: list(enumerate(map(float, column))) for key, column in told_by_keras.items()}
    same("`csv`, Keras", "csv", tmp_path / "progress.csv", {"progress": theirs}, "epoch")
    (book,) = rollbook.open(tmp_path / "runs")
    for key, column in told_by_keras.items():
        assert [value for _epoch, value in series_of(book, key, "epoch")] == [float(value) for value in column]


def test_keras_callbacks_of_wandbs_module_log_what_fit_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    keras = pytest.importorskip("keras")
    import numpy as np
    import rollbook.wandb as wandb
    from rollbook.wandb.integration.keras import WandbEvalCallback, WandbMetricsLogger, WandbModelCheckpoint

    monkeypatch.setenv("ROLLBOOK_DIR", str(tmp_path / "runs"))
    x = np.random.default_rng(1).random((64, 3), dtype=np.float32)

    class Predictions(WandbEvalCallback):
        def add_ground_truth(self, logs: Any = None) -> None:
            self.data_table.add_data(0, float(x[0].sum()))

        def add_model_predictions(self, epoch: int, logs: Any = None) -> None:
            self.pred_table.add_data(epoch, float(self.model.predict(x[:1], verbose=0)[0, 0]))

    of_batches: list[float] = []

    def keep(batch: int, logs: Any) -> None:
        of_batches.append(float(logs["loss"]))

    model = keras.Sequential([keras.layers.Dense(4), keras.layers.Dense(1)], name="sum")
    model.compile(keras.optimizers.Adam(0.01), "mse", metrics=["mae"])
    run = wandb.init(project="sums", name="fit", mode="offline")
    callbacks = [
        keras.callbacks.LambdaCallback(on_train_batch_end=keep),
        WandbMetricsLogger(log_freq=1),
        WandbModelCheckpoint(tmp_path / "model.keras"),
        Predictions(["row", "sum"], ["epoch", "sum"]),
    ]
    told = model.fit(x, x.sum(1), epochs=3, validation_split=0.25, callbacks=callbacks, verbose=0).history
    model_file = Path(run.use_artifact(f"run_{run.id}_model:latest").download()) / "model.keras"
    assert model_file.read_bytes() == (tmp_path / "model.keras").read_bytes()
    wandb.finish()
    (book,) = rollbook.open(tmp_path / "runs")
    rows = book.metrics([f"epoch/{key}" for key in told] + ["epoch/learning_rate"]).to_pylist()
    rows = [row for row in rows if row["epoch/loss"] is not None]
    assert {key: [row[f"epoch/{key}"] for row in rows] for key in told} == {
        key: [float(value) for value in column] for key, column in told.items()
    }
    assert [row["epoch/learning_rate"] for row in rows] == [float(np.float32(0.01))] * 3
    losses = [row["batch/loss"] for row in book.metrics(["batch/loss"]).to_pylist()]
    assert [loss for loss in losses if loss is not None] == of_batches
    assert len(of_batches) == 6


def test_brax_gives_the_book_what_it_gives_its_progress_function(tmp_path: Path) -> None:
    pytest.importorskip("brax")
    from brax import envs
    from brax.training.agents.ppo import train as ppo

    from rollbook.adapters.brax import progress

    given: Points = {}
    with rollbook.init("fast", "ppo", dir=tmp_path) as run:
        ours = progress(run)

        def both(step: int, metrics: Mapping[str, Any]) -> None:
            for key, value in metrics.items():
                given.setdefault(key, []).append((int(step), float(value)))
            ours(step, metrics)

        ppo.train(
            envs.get_environment("fast"), num_timesteps=2048, episode_length=16, num_envs=16, num_eval_envs=8,
            unroll_length=4, batch_size=16, num_minibatches=1, num_updates_per_batch=1, num_evals=4, seed=1,
            progress_fn=both,
        )  # fmt: skip
    (book,) = rollbook.open(tmp_path)
    assert sum(map(len, given.values())) >= 30
    for key, series in given.items():
        assert repr(series_of(book, key, "env_step")) == repr(series), key


def test_marl_eval(tmp_path: Path) -> None:
    pytest.importorskip("marl_eval")
    spec: Any = importlib.util.find_spec("marl_eval")
    (place,) = spec.submodule_search_locations  # json_tools itself asks for neptune
    source = importlib.util.spec_from_file_location("json_logger", Path(place) / "json_tools" / "json_logger.py")
    json_tools = importlib.util.module_from_spec(source)  # type: ignore[arg-type]
    source.loader.exec_module(json_tools)  # type: ignore[union-attr]
    for seed in (0, 1):
        logger = json_tools.JsonLogger(str(tmp_path), "ippo", "3s5z", "smax", seed)
        for n in range(8):
            logger.write(1000 * n, "mean_episode_return", n / 2 + seed, n)
            logger.write(1000 * n, "win_rate", n / 8, n)
        logger.write(7000, "mean_episode_return", 9.5, 8, is_absolute_metric=True)
    (file,) = tmp_path.rglob("metrics.json")
    runs = json.loads(file.read_text())["smax"]["3s5z"]["ippo"]
    total = 0
    for (run_name, steps), run in zip(runs.items(), importers.make("marl_eval").runs(file), strict=True):
        rows = list(run.rows())
        for key in ("mean_episode_return", "win_rate"):
            expected = [
                (step["step_count"], float(step[key][0]))
                for name, step in steps.items()
                if name.startswith("step_") and key in step
            ]
            points = [(row.clocks["env_step"], float(row.values[key])) for row in rows if key in row.values]
            assert set(expected) <= set(points), run_name
            total += len(expected)
    assert total == told("`marl_eval`")
