"""Stable-Baselines3 itself, training for a few seconds: what its own files say and what the book says."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

GROUPS = ("main",)

gymnasium = pytest.importorskip("gymnasium")
sb3 = pytest.importorskip("stable_baselines3")

from stable_baselines3.common import logger as native  # noqa: E402
from stable_baselines3.common.callbacks import CallbackList, EvalCallback, LogEveryNTimesteps  # noqa: E402
from stable_baselines3.common.env_util import make_vec_env  # noqa: E402
from stable_baselines3.common.monitor import Monitor as NativeMonitor  # noqa: E402
from stable_baselines3.common.monitor import load_results as native_load_results  # noqa: E402
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecMonitor, VecNormalize  # noqa: E402

import rollbook  # noqa: E402
from few_files import FEW, empty_folders, without_names  # noqa: E402
from rollbook.adapters.sb3 import (  # noqa: E402
    RollbookCallback,
    RollbookOutputFormat,
    configure,
    write_monitor,
)
from rollbook.book.book import Book  # noqa: E402
from rollbook.capture.gym import RecordEpisodes  # noqa: E402
from rollbook.schema import aliases as keys  # noqa: E402

ALGORITHMS: dict[str, Any] = {
    "PPO": ("CartPole-v1", 1536, {"n_steps": 256, "n_epochs": 2}, {}),
    "A2C": ("CartPole-v1", 300, {"n_steps": 10}, {"log_interval": 5}),
    "DQN": ("CartPole-v1", 1500, {"learning_starts": 200, "train_freq": 8}, {"log_interval": 4}),
    "SAC": ("Pendulum-v1", 1000, {"learning_starts": 300, "train_freq": 20, "gradient_steps": 4}, {"log_interval": 1}),
}


@pytest.fixture
def run(own_place: Path) -> Iterator[Any]:
    run = rollbook.init("sb3", "test", dir=own_place / "runs", sinks=(), keeper="inline")
    yield run
    run.finish()


def make(algorithm: str, env: Any = None, **more: Any) -> Any:
    name, _, arguments, _ = ALGORITHMS[algorithm]
    return getattr(sb3, algorithm)("MlpPolicy", env or name, seed=1, **{**arguments, **more})


def learn(algorithm: str, model: Any, callback: Any) -> None:
    _, steps, _, options = ALGORITHMS[algorithm]
    model.learn(steps, callback=callback, **options)


def same(text: str, value: Any) -> bool:
    """Whether a cell of a native file is that number; numpy's 32-bit numbers print 32-bit digits there."""
    return float(text) == value or np.float32(text) == np.float32(value)


def column(book: Book, key: str, x: str | None = None) -> list[Any]:
    found = book.metrics([key], x=x).to_pylist()
    return [(row[x], row[key]) if x else row[key] for row in found if row[key] is not None]


@pytest.mark.core
@pytest.mark.parametrize("algorithm", list(ALGORITHMS))
def test_every_number_of_the_native_files_is_in_the_book_at_its_native_step(
    algorithm: str, run: Any, own_place: Path, reads_as: Any
) -> None:
    model = make(algorithm)
    model.set_logger(native.configure(str(own_place), ["csv", "json"]))
    learn(algorithm, model, RollbookCallback(run))
    model.logger.close()
    book = run.book
    with (own_place / "progress.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    objects = [json.loads(line) for line in (own_place / "progress.json").read_text().splitlines()]
    assert len(rows) > 3
    numbers = 0
    for key in rows[0]:
        steps = [int(row["time/total_timesteps"]) for row in rows if row[key] != ""]
        cells = [row[key] for row in rows if row[key] != ""]
        exact = [row[key] for row in objects if key in row]
        found = column(book, key, x="step")
        assert [step for step, _ in found] == steps, key
        assert all(same(cell, value) for cell, (_, value) in zip(cells, found, strict=True)), key
        assert exact == [value for _, value in found], key
        numbers += len(cells)
    assert numbers > 40
    reads_as(book, {"train/return": "rollout/ep_rew_mean", "time/env_steps_per_second": "time/fps"})
    if algorithm == "SAC":
        reads_as(book, {"update/loss/policy": "train/actor_loss", "update/loss/q": "train/critic_loss"})
    if algorithm == "PPO":  # its own rows, at the steps of their updates
        assert book.canonical()["update/loss/policy"] == "update/loss/policy"
    assert run.bill()["drops"] == {}


def test_a_small_training_is_the_files_of_a_run_and_one_for_each_further_table(own_place: Path) -> None:
    options = {"dir": own_place / "runs", "name": "small", "keeper": "inline", "rules": ()}
    make("A2C").learn(100, callback=RollbookCallback(project="sb3", run_options=options))
    (folder,) = (own_place / "runs" / "sb3").iterdir()
    assert without_names(folder) == sorted([*FEW, "data/episodes", "data/timings"])
    assert empty_folders(folder) == []


def test_updates_stand_at_their_own_step_the_last_one_too(run: Any) -> None:
    learn("PPO", make("PPO"), RollbookCallback(run))
    late = column(run.book, "train/approx_kl", x="env_step")
    own = column(run.book, "update/approx_kl", x="env_step")
    assert [step for step, _ in late] == [512, 768, 1024, 1280, 1536]
    assert [step for step, _ in own] == [256, 512, 768, 1024, 1280, 1536]
    assert [value for _, value in own][:-1] == [value for _, value in late]
    counted = column(run.book, "update/approx_kl", x="gradient_step")
    assert [step for step, _ in counted] == [8, 16, 24, 32, 40, 48]  # 256 / 64 minibatches, 2 epochs


def test_with_a_longer_interval_no_update_is_missing(run: Any) -> None:
    make("A2C").learn(200, callback=RollbookCallback(run), log_interval=10)
    assert len(column(run.book, "train/value_loss")) == 2
    assert len(column(run.book, "update/loss/value")) == 20


@pytest.mark.parametrize("vector", [DummyVecEnv, SubprocVecEnv])
def test_episodes_agree_with_the_monitor_files(vector: Any, run: Any, own_place: Path) -> None:
    env = make_vec_env("Pendulum-v1", 2, seed=1, vec_env_cls=vector, monitor_dir=str(own_place / "monitor"))
    make("PPO", env, n_steps=250).learn(1000, callback=RollbookCallback(run))
    exact = env.get_attr("episode_returns")
    env.close()
    frame = native_load_results(str(own_place / "monitor"))
    episodes = run.book.episodes().to_pylist()
    assert len(episodes) == len(frame) == 4
    assert sorted(round(row["return"], 6) for row in episodes) == sorted(frame["r"].tolist())
    assert all(row["length"] == 200 and row["truncated"] and not row["terminated"] for row in episodes)
    assert [row["env_step"] for row in episodes] == [400, 400, 800, 800]
    if vector is DummyVecEnv:  # the Monitor is in this process: all digits
        assert [[row["return"] for row in episodes if row["env_index"] == i] for i in range(2)] == exact


@pytest.mark.parametrize("vector", [DummyVecEnv, SubprocVecEnv])
def test_episodes_that_a_wrapper_inside_records_do_not_stand_twice(vector: Any, run: Any) -> None:
    def recorded() -> Any:
        return RecordEpisodes(gymnasium.make("Pendulum-v1"), run.scope("train"))

    def bare() -> Any:
        return gymnasium.make("Pendulum-v1")

    env = vector([recorded, bare])
    model = make("PPO", env, n_steps=200)
    evaluate = EvalCallback(
        NativeMonitor(RecordEpisodes(gymnasium.make("Pendulum-v1"), run.scope("test"))),
        n_eval_episodes=2,
        eval_freq=200,
        verbose=0,
    )
    model.learn(400, callback=CallbackList([RollbookCallback(run), evaluate]))
    env.close()
    episodes = run.book.episodes().to_pylist()
    assert [row["scope"].partition("/")[0] for row in episodes].count("train") == 2
    assert [row["scope"].partition("/")[0] for row in episodes].count("test") == 2


def test_returns_are_those_before_normalisation(run: Any) -> None:
    env = VecNormalize(VecMonitor(DummyVecEnv([lambda: gymnasium.make("Pendulum-v1")])))
    make("PPO", env, n_steps=200).learn(400, callback=RollbookCallback(run))
    returns = [row["return"] for row in run.book.episodes().to_pylist()]
    assert len(returns) == 2
    assert all(value < -200 for value in returns)


def test_evaluations_are_kept_episode_by_episode_and_as_their_means(run: Any, own_place: Path) -> None:
    evaluate = EvalCallback(
        NativeMonitor(gymnasium.make("CartPole-v1")),
        n_eval_episodes=3,
        eval_freq=400,
        log_path=str(own_place / "eval"),
        best_model_save_path=str(own_place / "best"),
        verbose=0,
    )
    make("PPO").learn(1024, callback=CallbackList([RollbookCallback(run), evaluate]))
    with np.load(own_place / "eval" / "evaluations.npz") as stored:
        steps, results, lengths = stored["timesteps"], stored["results"], stored["ep_lengths"]
    episodes = [row for row in run.book.episodes().to_pylist() if row["scope"].startswith("test")]
    assert [row["return"] for row in episodes] == results.reshape(-1).tolist()
    assert [row["length"] for row in episodes] == lengths.reshape(-1).tolist()
    assert [row["env_step"] for row in episodes] == np.repeat(steps, 3).tolist()
    assert column(run.book, "eval/mean_reward", x="step") == list(zip(steps, results.mean(axis=1), strict=True))
    assert keys.resolve("test/return", run.book.keys()) == ["eval/mean_reward"]
    best = [row for row in run.book.checkpoints().to_pylist() if row["score"] is not None]
    assert best[-1]["score"] == results.mean(axis=1).max()


def test_learning_again_continues_the_steps(run: Any) -> None:
    model = make("PPO")
    for _ in range(2):
        model.learn(512, callback=RollbookCallback(run))
    assert [step for step, _ in column(run.book, "time/iterations", x="env_step")] == [256, 512, 768, 1024]
    assert [step for step, _ in column(run.book, "time/iterations", x="step")] == [256, 256, 512, 512]


def test_a_training_that_was_stopped_goes_on_from_its_checkpoint(own_place: Path) -> None:
    options = {"dir": own_place / "runs", "sinks": (), "keeper": "inline"}
    run = rollbook.init("sb3", "resumed", **options)
    make("PPO").learn(1024, callback=RollbookCallback(run, checkpoint_every=512))
    saved = run.book.checkpoints(everything=True).to_pylist()
    assert [row["env_step"] for row in saved] == [512, 1024]
    run.finish("crashed")

    run = rollbook.init("sb3", "resumed", resume="must", **options)
    model = sb3.PPO.load(run.folder / saved[0]["path"], env=gymnasium.make("CartPole-v1"))
    assert model.num_timesteps == 512
    model.learn(1024 - 512, callback=RollbookCallback(run), reset_num_timesteps=False)
    steps = [step for step, _ in column(run.book, "rollout/ep_rew_mean", x="env_step")]
    run.finish()
    assert steps == sorted(set(steps))
    assert steps[-1] == 1024


def test_stages_take_the_time_of_the_training(run: Any) -> None:
    learn("PPO", make("PPO"), RollbookCallback(run))
    rows = run.book.timings().to_pylist()
    total = {name: sum(row["seconds"] for row in rows if row["name"] == name) for name in ("rollout", "train")}
    assert len(rows) == 12
    assert 0 < total["train"] < 60
    assert 0 < total["rollout"] < 60


def test_the_configuration_has_every_hyper_parameter(run: Any) -> None:
    make("PPO", learning_rate=lambda progress: 1e-3 * progress, clip_range=0.1).learn(
        256, callback=RollbookCallback(run)
    )
    config = run.config
    assert (config["algo"], config["env"], config["seed"]) == ("PPO", "CartPole-v1", 1)
    assert (config["gamma"], config["clip_range"], config["n_steps"]) == (0.99, 0.1, 256)
    json.dumps(dict(config))


def test_tensors_pictures_and_films_reach_the_book(run: Any) -> None:
    th = sb3.common.utils.th
    logger = native.Logger(None, [RollbookOutputFormat(run)])
    logger.record("loss", th.tensor(0.5, requires_grad=True))
    logger.record("weights", th.arange(12.0).reshape(3, 4))
    logger.record("image", native.Image(th.zeros(3, 8, 10), "CHW"))
    logger.record("video", native.Video(th.zeros(1, 4, 3, 8, 10, dtype=th.uint8), fps=10))
    logger.dump(1)
    assert column(run.book, "loss") == [0.5]
    assert [row["key"] for row in run.book.histograms().to_pylist()] == ["weights"]
    assert {row["key"]: row["kind"] for row in run.book.media().to_pylist()} == {"image": "image", "video": "video"}


def test_logging_every_n_steps_is_kept_as_it_comes(run: Any) -> None:
    make("PPO").learn(1024, callback=[RollbookCallback(run), LogEveryNTimesteps(300)], log_interval=None)
    steps = [step for step, _ in column(run.book, "time/total_timesteps", x="step")]
    assert steps == column(run.book, "time/total_timesteps")
    assert len(steps) == 3


def test_monitor_files_made_of_a_run_are_read_by_the_library(run: Any, own_place: Path) -> None:
    make("PPO").learn(512, callback=RollbookCallback(run))
    write_monitor(run.book, own_place / "made")
    made = native_load_results(str(own_place / "made"))
    assert made["r"].tolist() == [row["return"] for row in run.book.episodes().to_pylist()]


def test_the_example_runs_as_it_stands(own_place: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    import runpy
    import sys

    example = Path(__file__).parents[2] / "examples" / "sb3_ppo.py"
    monkeypatch.setattr(sys, "argv", [str(example), "--env-steps", "1024"])
    runpy.run_path(str(example), run_name="__main__")
    assert "return at 1024 steps" in capsys.readouterr().out
    (book,) = rollbook.open("runs")
    assert book.status == "finished"


def test_configure_is_the_librarys_own_logger_with_the_run_beside_its_outputs(run: Any, own_place: Path) -> None:
    logger = configure(own_place, ["csv", "rollbook"], run=run)
    assert type(logger) is native.Logger
    assert [type(output) for output in logger.output_formats] == [native.CSVOutputFormat, RollbookOutputFormat]
    logger.record("a", 1.5)
    logger.dump(3)
    assert column(run.book, "a", x="step") == [(3, 1.5)]
    assert (own_place / "progress.csv").read_text() == "a\n1.5\n"


def test_formats_may_be_one_string_or_come_from_the_environment(
    own_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = [native.CSVOutputFormat, native.JSONOutputFormat]
    assert [type(out) for out in configure(own_place, "csv,json", run=False).output_formats] == kinds
    monkeypatch.setenv("SB3_LOG_FORMAT", "json,rollbook")
    monkeypatch.setenv("SB3_LOGDIR", str(own_place / "other"))
    logger = configure(run=False)
    assert [type(out) for out in logger.output_formats] == kinds[1:]
    assert logger.get_dir() == str(own_place / "other")
    with pytest.raises(ValueError, match="Unknown format specified: xml"):
        configure(own_place, ["xml"], run=False)


def test_a_training_without_a_run_gets_one_named_after_its_folder(own_place: Path) -> None:
    options = {"keeper": "inline", "sinks": (), "dir": own_place / "runs"}
    logger = configure(own_place / "ppo_cartpole", ["csv"], run_options=options)
    run = logger.output_formats[-1].run
    assert (run.project, run.name) == ("stable-baselines3", "ppo_cartpole")
    logger.close()
    assert run.status == "finished"


@pytest.mark.core
def test_wandbs_callback_records_settings_the_model_and_gradients(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a program with `from wandb.integration.sb3 import WandbCallback` gets by `--wandb replace`."""
    import rollbook.wandb as wandb

    monkeypatch.setenv("ROLLBOOK_DIR", str(tmp_path / "runs"))
    with wandb.init(project="p", config={"learning_rate": "as given"}, mode="offline"):
        model = sb3.PPO("MlpPolicy", "CartPole-v1", n_steps=64, batch_size=32, n_epochs=1)
        callback = wandb.integration.sb3.WandbCallback(
            model_save_path=str(tmp_path / "models"), model_save_freq=100, gradient_save_freq=1
        )
        model.learn(256, callback=callback)
    book = rollbook.open(tmp_path / "runs").one()
    assert book.config["algo"] == "PPO"
    assert (book.config["learning_rate"], book.config["n_steps"]) == ("as given", 64)
    kept = book.path / "files" / "model.zip"
    assert kept.read_bytes() == (tmp_path / "models" / "model.zip").read_bytes()
    assert any(key.startswith("gradients/") for key in book.histograms().column("key").to_pylist())
