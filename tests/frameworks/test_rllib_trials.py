"""Tune itself: functions that build an algorithm, and experiments that are restored. One run per trial, each time."""

from __future__ import annotations

import csv
import json
import math
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

GROUPS = ("rllib",)

ray = pytest.importorskip("ray")

from ray import tune  # noqa: E402
from ray.rllib.algorithms.ppo import PPO, PPOConfig  # noqa: E402

import rollbook  # noqa: E402
from rollbook.adapters import rllib  # noqa: E402
from rollbook.adapters.rllib.identity import run_id  # noqa: E402

SOURCES = str(Path(rollbook.__file__).parents[1])


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        configure_logging=False,
        runtime_env={"env_vars": {"PYTHONPATH": SOURCES}},
    )
    yield
    ray.shutdown()


def small(root: Path) -> Any:
    return (
        PPOConfig()
        .environment("CartPole-v1")
        .env_runners(num_env_runners=0, rollout_fragment_length=64)
        .training(train_batch_size=64, minibatch_size=32, num_epochs=1)
        .rl_module(model_config={"fcnet_hiddens": [8]})
        .callbacks(rllib.callbacks(root / "runs", project="pole"))
    )


def train(config: dict[str, Any]) -> None:
    """What a user gives to Tune who wants a loop of their own."""
    algorithm = config["make"]().build_algo()
    for _ in range(3):
        result = algorithm.train()
        tune.report({**result, "score": result["num_env_steps_sampled_lifetime"] / 64})
    algorithm.stop()


@pytest.mark.parametrize("with_driver", [True, False])
def test_an_algorithm_inside_a_function_writes_into_the_run_of_the_trial(tmp_path: Path, with_driver: bool) -> None:
    place = tmp_path
    tuner = tune.Tuner(
        train,
        param_space={"make": lambda: small(place)},
        run_config=tune.RunConfig(
            name="exp",
            storage_path=str(tmp_path / "ray"),
            callbacks=[rllib.RollbookTune(tmp_path / "runs", project="pole")] if with_driver else [],
            verbose=0,
        ),
    )
    (found,) = tuner.fit()
    assert found.error is None
    (book,) = rollbook.open(tmp_path / "runs")
    assert book.id == run_id("exp", Path(found.path).name)
    assert book.status == "finished"
    lines = [json.loads(line) for line in (Path(found.path) / "result.json").read_text().splitlines()]
    rows = book.metrics(["env_runners/episode_return_mean", "num_env_steps_sampled_lifetime"]).to_pylist()
    assert [row["env_runners/episode_return_mean"] for row in rows] == [
        line["env_runners"]["episode_return_mean"] for line in lines
    ]
    assert [row["env_step"] for row in rows] == [64, 128, 192]
    scores = book.metrics(["score"])["score"].to_pylist() if with_driver else [1.0, 2.0, 3.0]
    assert scores == [1.0, 2.0, 3.0]
    done = [row for row in book.episodes().to_pylist() if row["complete"]]
    assert len(done) == sum(line["env_runners"]["num_episodes"] for line in lines)
    assert book.series("update/loss/total").mean.tolist() == [
        line["learners"]["default_policy"]["total_loss"] for line in lines
    ]
    assert book.metrics(["train/return"]).num_rows == len(done)  # each episode; RLlib's mean has a key of its own


def test_a_restored_experiment_goes_on_in_the_run_of_its_trial(tmp_path: Path) -> None:
    flag = tmp_path / "flag"

    class Fails(PPO):  # type: ignore[misc]
        def step(self) -> Any:
            if self.iteration == 3 and not os.path.exists(flag):
                flag.write_text("failed")
                raise RuntimeError("the machine went down")
            return super().step()

    tuner = tune.Tuner(
        Fails,
        param_space=small(tmp_path),
        run_config=tune.RunConfig(
            name="exp",
            storage_path=str(tmp_path / "ray"),
            stop={"training_iteration": 5},
            checkpoint_config=tune.CheckpointConfig(checkpoint_frequency=2),
            callbacks=[rllib.RollbookTune()],
            verbose=0,
        ),
    )
    (broken,) = tuner.fit()
    assert broken.error is not None
    (book,) = rollbook.open(tmp_path / "runs")
    assert book.status == "crashed"
    assert [row["epoch"] for row in book.metrics(["training_iteration"]).to_pylist()] == [1, 2, 3]
    assert "the machine went down" in book.text("error")["text"][0].as_py()

    restored = tune.Tuner.restore(
        str(tmp_path / "ray" / "exp"), trainable=Fails, resume_errored=True, param_space=small(tmp_path)
    )
    (found,) = restored.fit()
    assert found.error is None
    (book,) = rollbook.open(tmp_path / "runs")
    assert book.status == "finished"
    assert [entry["status"] for entry in book.attempts] == ["crashed", "finished"]
    rows = book.metrics(["training_iteration"], x="epoch").to_pylist()
    assert [row["epoch"] for row in rows] == [1, 2, 3, 4, 5]
    assert [row["env_step"] for row in rows] == [64, 128, 192, 256, 320]
    again = book.metrics(["training_iteration"], x="epoch", attempts="all").to_pylist()
    assert [row["epoch"] for row in again] == [1, 2, 3, 3, 4, 5]  # what followed the checkpoint is hidden, and kept


def climb(config: dict[str, Any]) -> None:
    """A training whose score grows with its learning rate, and that saves what it has reached."""
    score, start = 0.0, 0
    if (saved := tune.get_checkpoint()) is not None:
        state = json.loads((Path(saved.path) / "state.json").read_text())
        score, start = state["score"], state["iteration"]
    for iteration in range(start + 1, 5):
        score += config["lr"]
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "state.json").write_text(json.dumps({"score": score, "iteration": iteration}))
            tune.report({"score": score, "lr": config["lr"]}, checkpoint=tune.Checkpoint.from_directory(folder))


def test_a_trial_that_population_based_training_changes_is_a_new_attempt_with_its_settings(tmp_path: Path) -> None:
    scheduler = tune.schedulers.PopulationBasedTraining(
        time_attr="training_iteration",
        perturbation_interval=2,
        quantile_fraction=0.5,
        resample_probability=0.0,
        hyperparam_mutations={"lr": [0.001, 1.0]},
        custom_explore_fn=lambda config: {**config, "lr": 0.5},
        synch=True,
    )
    tuner = tune.Tuner(
        climb,
        param_space={"lr": tune.grid_search([0.001, 1.0])},
        tune_config=tune.TuneConfig(scheduler=scheduler, metric="score", mode="max", reuse_actors=True),
        run_config=tune.RunConfig(
            name="pbt",
            storage_path=str(tmp_path / "ray"),
            callbacks=[rllib.RollbookTune(tmp_path / "runs")],
            verbose=0,
        ),
    )
    found = {Path(result.path).name: result for result in tuner.fit()}
    books = {book.id: book for book in rollbook.open(tmp_path / "runs")}
    changed, kept = (
        books[run_id("pbt", next(name for name in found if f"lr={lr}" in name))] for lr in ("0.0010", "1.0000")
    )
    assert [entry["config"]["lr"] for entry in kept.attempts] == [1.0]
    assert [entry["config"]["lr"] for entry in changed.attempts][:2] == [0.001, 0.5]
    assert changed.attempts[0]["status"] == "rewound"
    assert changed.status == "finished"
    rows = changed.metrics(["score", "lr"], x="epoch").to_pylist()
    assert [row["epoch"] for row in rows] == sorted({row["epoch"] for row in rows}), "no step stands twice"
    assert {row["lr"] for row in rows} == {0.001, 0.5}
    assert rows[-1]["lr"] == changed.config["lr"] == 0.5
    notes = changed.text("note")["text"].to_pylist()
    assert kept.id in notes[0]
    assert "lr 0.001 -> 0.5" in notes[0]
    everything = changed.metrics(["score"], attempts="all").num_rows
    assert everything >= len(rows)


def count(config: dict[str, Any]) -> None:
    """A training that Tune knows nothing of."""
    for i in range(1, 5):
        report = {"nested": {"loss": config["lr"] / i, "odd": math.nan if i == 2 else 1.0}, "timesteps_total": 10 * i}
        tune.report({**report, "late": 1.5} if i > 2 else report)


def test_tune_without_rllib_and_loggers_of_the_older_shape_say_what_the_native_files_say(tmp_path: Path) -> None:
    class Neptune(rllib.Logger):  # type: ignore[misc]
        """As programs wrote it for the Ray of 2020."""

        said: list[Any] = []  # noqa: RUF012

        def _init(self) -> None:
            self.said.append(self.config["logger_config"]["name"])

        def on_result(self, result: dict[str, Any]) -> None:
            self.said.append(result["nested"]["loss"])

        def close(self) -> None:
            self.said.append("closed")

    place = {"dir": str(tmp_path / "old"), "project": "old", "name": "walked", "paths": [[], ["nested"]]}
    found = tune.run(
        count,
        config={"lr": 0.5, "logger_config": place},
        name="exp",
        storage_path=str(tmp_path / "ray"),
        callbacks=[rllib.RollbookTune(tmp_path / "runs"), rllib.OldLoggers(Neptune, rllib.RollbookLogger)],
        verbose=0,
    )
    (trial,) = found.trials
    folder = Path(trial.path)
    lines = [json.loads(line) for line in (folder / "result.json").read_text().splitlines()]
    with (folder / "progress.csv").open(newline="") as file:
        cells = list(csv.DictReader(file))
    assert Neptune.said == ["walked", 0.5, 0.25, 0.5 / 3, 0.125, "closed"]
    for root, project in ((tmp_path / "runs", "exp"), (tmp_path / "old", "old")):
        (book,) = rollbook.open(root)
        assert (book.project, book.status, book.config["lr"]) == (project, "finished", 0.5)
        rows = book.metrics(["nested/loss", "nested/odd", "late"], x="env_step").to_pylist()
        assert [row["env_step"] for row in rows] == [line["timesteps_total"] for line in lines] == [10, 20, 30, 40]
        assert [row["nested/loss"] for row in rows] == [line["nested"]["loss"] for line in lines]
        assert [row["nested/loss"] for row in rows] == [float(cell["nested/loss"]) for cell in cells]
        assert [math.isnan(row["nested/odd"]) for row in rows] == [False, True, False, False]
        assert [row["late"] for row in rows] == [None, None, 1.5, 1.5]
        assert "late" not in cells[-1]  # Tune's CSV drops keys that come late


def seed_of_a_study(config: dict[str, Any]) -> None:
    """A trial with a run of its own, as people open one for W&B; it finishes nothing."""
    run = rollbook.init("study", config["ends"], seed=config["seed"], config=config, dir=config["dir"])
    for step in range(4):
        run.log({"loss": step + config["seed"] / 10}, step=step)
        tune.report({"loss": step})
    if config["ends"] == "raises":
        raise ValueError("diverged")
    while config["ends"] == "is stopped":
        tune.report({"loss": 0})


def test_runs_that_trials_open_themselves_end_as_the_trials_do(tmp_path: Path) -> None:
    space = {"dir": str(tmp_path / "runs"), "ends": tune.grid_search(["returns", "raises", "is stopped"])}
    tuner = tune.Tuner(
        seed_of_a_study,
        param_space={**space, "seed": tune.grid_search([0, 1])},
        run_config=tune.RunConfig(
            name="exp", storage_path=str(tmp_path / "ray"), verbose=0, stop={"training_iteration": 8}
        ),
    )
    tuner.fit()
    ends = {"returns": ("finished", None), "raises": ("crashed", "ValueError"), "is stopped": ("finished", None)}
    for book in rollbook.open(tmp_path / "runs"):
        assert (book.status, (book.failure or {}).get("type")) == ends[book.name], (book.name, book.seed)
        rows = book.metrics(["loss"], x="step").to_pylist()
        assert [row["loss"] for row in rows] == [step + (book.seed or 0) / 10 for step in range(4)]
    assert len(rollbook.open(tmp_path / "runs")) == 6


def test_runs_that_plain_tasks_open_and_do_not_finish_end_as_their_functions(tmp_path: Path) -> None:
    root = str(tmp_path / "runs")

    @ray.remote(max_retries=0)
    def learn(name: str) -> str:
        kept = []
        try:
            {}["a key that is caught"]
        except KeyError as err:
            kept.append(err)
        run = rollbook.init("tasks", name, dir=root, sinks=[])
        run.log({"loss": 0.5}, env_step=1)
        if name == "raises":
            raise ValueError("diverged")
        if name == "exits":
            sys.exit(3)
        return name

    errors = []
    for task in [learn.remote(name) for name in ("returns", "raises", "exits", "returns too")]:
        try:
            ray.get(task)
        except ray.exceptions.RayError as err:
            errors.append(err)
    assert len(errors) == 2
    ends = {book.name: (book.status, book.failure and book.failure["type"]) for book in rollbook.open(root)}
    assert ends == {
        "returns": ("finished", None),
        "returns too": ("finished", None),
        "raises": ("crashed", "ValueError"),
        "exits": ("crashed", "SystemExit"),
    }
    assert all(book.metrics(["loss"]).num_rows == 1 for book in rollbook.open(root))
    assert not any("default_worker" in word for book in rollbook.open(root) for word in book.info.command)
