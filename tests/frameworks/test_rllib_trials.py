"""Tune itself: functions that build an algorithm, and experiments that are restored. One run per trial, each time."""

from __future__ import annotations

import json
import os
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


@pytest.mark.core
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
