"""Tune's hooks: one run per trial, with how it ended; loggers of the older shape."""

from __future__ import annotations

import json
import pickle
import types
from pathlib import Path
from typing import Any

import pytest

import rollbook
from rollbook.adapters.rllib.identity import run_id

FOLDER = "PPO_Plant_t_0_2026-11-20_10-00-00"
OPTIONS: dict[str, Any] = {"sinks": (), "keeper": "inline"}


def result(epoch: int, **more: Any) -> dict[str, Any]:
    return {"training_iteration": epoch, "num_env_steps_sampled_lifetime": 10 * epoch, **more}


def report(logger: Any, trial: Any, epoch: int, **more: Any) -> None:
    trial.last_result = result(epoch, **more)
    logger.log_trial_result(99, trial, trial.last_result)


def books(place: Path) -> dict[str, Any]:
    return {book.summary["trial_id"]: book for book in rollbook.open(place)}


def checkpoint(trial: Any, tmp_path: Path, epoch: int) -> None:
    path = tmp_path / "storage" / f"{trial.trial_id}-{epoch}"
    path.mkdir(parents=True)
    (path / "state").write_text("x")
    trial.checkpoint = types.SimpleNamespace(path=str(path))
    trial.latest_checkpoint_result = types.SimpleNamespace(metrics=result(epoch))


def test_each_trial_is_one_run_with_its_config_and_how_it_ended(rllib: Any, fakes: Any, tmp_path: Path) -> None:
    logger = rllib.RollbookTune(tmp_path / "runs", **OPTIONS)
    good, bad = fakes.Trial(tmp_path, "t_0", lr=0.1), fakes.Trial(tmp_path, "t_1", lr=0.2)
    for trial in (good, bad):
        logger.log_trial_start(trial)
        report(logger, trial, 1, env_runners={"x": 1.0})
    (tmp_path / "error.txt").write_text("Traceback: the trial's own mistake")
    bad.error_file = str(tmp_path / "error.txt")
    logger.log_trial_end(good, failed=False)
    logger.log_trial_end(bad, failed=True)
    logger.on_experiment_end([good, bad])
    found = books(tmp_path / "runs")
    assert {name: book.status for name, book in found.items()} == {"t_0": "finished", "t_1": "crashed"}
    assert found["t_0"].id == run_id("exp", FOLDER)
    assert (found["t_0"].project, found["t_0"].name, found["t_0"].group) == ("exp", "PPO_Plant_t_0", "exp")
    assert found["t_1"].config == {"lr": 0.2}
    assert "own mistake" in found["t_1"].text("error")["text"][0].as_py()
    assert found["t_0"].summary["last/env_step"] == 10


def test_a_trial_that_recovers_goes_back_to_its_checkpoint(rllib: Any, fakes: Any, tmp_path: Path) -> None:
    logger, trial = rllib.RollbookTune(tmp_path / "runs", **OPTIONS), fakes.Trial(tmp_path, "t_0")
    logger.log_trial_start(trial)
    report(logger, trial, 1, x=1)
    checkpoint(trial, tmp_path, 1)
    logger.log_trial_save(trial)
    logger.log_trial_save(trial)
    report(logger, trial, 2, x=1)
    logger.on_trial_recover(3, [trial], trial)
    logger.log_trial_start(trial)
    report(logger, trial, 2, x=2)
    logger.log_trial_end(trial)
    logger.on_experiment_end([trial])
    book = books(tmp_path / "runs")["t_0"]
    assert [(row["epoch"], row["x"]) for row in book.metrics(["x"], x="epoch").to_pylist()] == [(1, 1), (2, 2)]
    assert book.checkpoints().num_rows == 1
    assert len(book.attempts) == 2


def test_a_resumed_experiment_continues_the_runs_of_its_trials(rllib: Any, fakes: Any, tmp_path: Path) -> None:
    trial = fakes.Trial(tmp_path, "t_0")
    first = rllib.RollbookTune(tmp_path / "runs", **OPTIONS)
    kept = pickle.dumps(first)
    first.log_trial_start(trial)
    report(first, trial, 1, x=1)
    checkpoint(trial, tmp_path, 1)
    first.log_trial_save(trial)
    report(first, trial, 2, x=1)
    first.on_experiment_end([trial])  # interrupted
    second = pickle.loads(kept)
    second.log_trial_start(trial)
    report(second, trial, 2, x=2)
    second.log_trial_end(trial)
    second.on_experiment_end([trial])
    book = books(tmp_path / "runs")["t_0"]
    assert [entry["status"] for entry in book.attempts] == ["killed", "finished"]
    assert [(row["epoch"], row["x"]) for row in book.metrics(["x"], x="epoch").to_pylist()] == [(1, 1), (2, 2)]


def test_the_driver_opens_the_run_before_the_trials_process_and_only_once_it_is_asked_for(
    rllib: Any, fakes: Any, tmp_path: Path
) -> None:
    kind = rllib.callbacks(tmp_path / "runs", "plant", **OPTIONS)
    waiting, placed = fakes.Trial(tmp_path, "t_1"), fakes.Trial(tmp_path, "t_0", callbacks_class=kind)
    placed.init_local_path()
    logger = rllib.RollbookTune()
    logger.on_step_begin(0, [waiting, placed])
    assert [book.id for book in rollbook.open(tmp_path / "runs")] == [run_id("exp", FOLDER)]
    callback, algorithm = kind(), fakes.Algorithm(tmp_path, fakes.EnvRunner(), trial=placed)
    callback.on_algorithm_init(algorithm=algorithm)
    assert not callback.run.internals.writer.main
    said = result(1, x=1.0)
    callback.on_train_result(algorithm=algorithm, result=said)
    logger.log_trial_result(1, placed, said)
    algorithm.cleanup()
    logger.log_trial_end(placed)
    logger.on_experiment_end([placed])
    (book,) = rollbook.open(tmp_path / "runs")
    assert book.project == "plant"
    assert book.metrics(["x"])["x"].to_pylist() == [1.0]


def test_the_opener_of_the_run_logs_its_results_and_nothing_is_logged_twice(
    rllib: Any, fakes: Any, tmp_path: Path
) -> None:
    trial = fakes.Trial(tmp_path, "t_0")
    kind, logger = rllib.callbacks(tmp_path / "runs", **OPTIONS), rllib.RollbookTune(tmp_path / "runs", **OPTIONS)
    callback, algorithm = kind(), fakes.Algorithm(tmp_path, fakes.EnvRunner(), trial=trial)
    callback.on_algorithm_init(algorithm=algorithm)
    logger.log_trial_start(trial)
    said = result(1, x=1.0)
    callback.on_train_result(algorithm=algorithm, result=said)
    logger.log_trial_result(1, trial, said)
    assert callback.run.book.metrics(["x"])["x"].to_pylist() == [1.0]


def test_episode_data_is_filed_with_the_trial_and_taken_out_of_the_result(
    rllib: Any, fakes: Any, tmp_path: Path
) -> None:
    logger, trial = rllib.RollbookTune(tmp_path / "runs", episode_data=True, **OPTIONS), fakes.Trial(tmp_path, "t_0")
    logger.log_trial_start(trial)
    report(logger, trial, 4, env_runners={"episode_media": {"episode_data": ['{"a":[1,2]}']}, "x": 1})
    path = Path(trial.local_path) / "episode_data" / "data-00000040.json"
    assert json.loads(path.read_text()) == [{"a": [1, 2]}]
    assert trial.last_result["env_runners"] == {"x": 1}


def test_no_exception_reaches_the_experiment(rllib: Any, fakes: Any, tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file is in the way")
    logger, trial = rllib.RollbookTune(tmp_path / "runs", **OPTIONS), fakes.Trial(tmp_path, "t_0")
    with pytest.warns(UserWarning, match="the experiment goes on"):
        logger.log_trial_start(trial)
    report(logger, trial, 1)
    logger.log_trial_save(trial)
    logger.on_trial_recover(1, [trial], trial)
    logger.log_trial_end(trial, failed=True)
    logger.on_experiment_end([trial])


def test_loggers_of_the_older_shape_run_and_a_broken_one_is_left_out(rllib: Any, fakes: Any, tmp_path: Path) -> None:
    said: list[Any] = []

    class Neptune(rllib.Logger):  # type: ignore[misc,name-defined]
        def _init(self) -> None:
            said.append((self.config["logger_config"], str(self.trial), self.logdir))

        def on_result(self, result: dict[str, Any]) -> None:
            said.append(result["training_iteration"])

        def close(self) -> None:
            said.append("closed")

    class Broken(rllib.Logger):  # type: ignore[misc,name-defined]
        pass

    trial = fakes.Trial(tmp_path, "t_0", logger_config={"project": "x"})
    logger = rllib.OldLoggers(Neptune, Broken)
    logger.log_trial_start(trial)
    with pytest.warns(UserWarning, match="no on_result"):
        report(logger, trial, 1)
    report(logger, trial, 2)
    logger.log_trial_end(trial)
    assert said == [({"project": "x"}, "PPO_Plant_t_0", trial.local_path), 1, 2, "closed"]


def test_the_old_shape_of_our_own_logger_walks_the_paths_it_is_given(rllib: Any, fakes: Any, tmp_path: Path) -> None:
    given = {"dir": str(tmp_path / "runs"), "project": "sandbox", "paths": [[], ["info", "learner"]], **OPTIONS}
    config = {"lr": 0.1, "logger_config": given}
    logger = rllib.RollbookLogger(config, str(tmp_path), fakes.Trial(tmp_path, "t_0"))
    logger.on_result(result(1, info={"learner": {"loss": 2.0}, "other": 3.0}, config=config))
    logger.close()
    (book,) = rollbook.open(tmp_path / "runs")
    (row,) = [row for row in book.metrics().to_pylist() if row["training_iteration"] is not None]
    assert row["info/learner/loss"] == 2.0
    assert row["training_iteration"] == 1
    assert "info/other" not in row
    assert (book.project, book.name, book.config["lr"]) == ("sandbox", "PPO_Plant_t_0", 0.1)


@pytest.fixture
def function_trial(rllib: Any, fakes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A trial that is a function, whose algorithm knows no trial of its own."""
    kind = rllib.callbacks(tmp_path / "runs", "plant", **OPTIONS)
    trial = fakes.Trial(tmp_path, "t_0", callbacks_class=kind)
    trial.trainable = fakes.FunctionTrainable
    monkeypatch.setattr(fakes.Context, "storage", trial.storage)
    callback, algorithm = kind(), fakes.Algorithm(tmp_path, fakes.EnvRunner())
    return types.SimpleNamespace(trial=trial, callback=callback, algorithm=algorithm)


def test_an_algorithm_inside_a_function_writes_into_the_run_of_the_trial(
    rllib: Any, function_trial: Any, tmp_path: Path
) -> None:
    callback, algorithm, trial = function_trial.callback, function_trial.algorithm, function_trial.trial
    logger = rllib.RollbookTune()
    logger.log_trial_start(trial)
    callback.on_algorithm_init(algorithm=algorithm)
    for epoch in (1, 2, 3):
        said = result(epoch, loss=0.5 * epoch, hist=[1.0, 2.0])
        callback.on_train_result(algorithm=algorithm, result=said)
        if epoch != 2:  # a function reports when and what it likes: all of it and more, or a number of its own
            report(logger, trial, epoch, **{**said, "score": 10.0 * epoch})
    algorithm.cleanup()
    logger.log_trial_result(9, trial, {"training_iteration": 3, "verdict": 1.0})
    logger.log_trial_end(trial)
    logger.on_experiment_end([trial])
    (book,) = rollbook.open(tmp_path / "runs")
    assert book.id == run_id("exp", FOLDER)
    assert [(r["epoch"], r["loss"]) for r in book.metrics(["loss"]).to_pylist()] == [(1, 0.5), (2, 1.0), (3, 1.5)]
    assert [(r["epoch"], r["score"]) for r in book.metrics(["score"]).to_pylist()] == [(1, 10.0), (3, 30.0)]
    assert book.metrics(["verdict"])["verdict"].to_pylist() == [1.0]
    assert book.histograms("hist").num_rows == 3


def test_a_function_without_a_callback_in_the_driver_has_one_run_too(
    rllib: Any, function_trial: Any, tmp_path: Path
) -> None:
    function_trial.callback.on_algorithm_init(algorithm=function_trial.algorithm)
    function_trial.callback.on_train_result(algorithm=function_trial.algorithm, result=result(1, loss=2.0))
    function_trial.algorithm.cleanup()
    (book,) = rollbook.open(tmp_path / "runs")
    assert (book.id, book.group) == (run_id("exp", FOLDER), "exp")
    assert book.metrics(["loss"])["loss"].to_pylist() == [2.0]


def test_a_function_that_reports_without_a_callback_in_its_algorithm_is_logged_by_the_driver(
    rllib: Any, fakes: Any, tmp_path: Path
) -> None:
    trial = fakes.Trial(tmp_path, "t_0")
    trial.trainable = fakes.FunctionTrainable
    logger = rllib.RollbookTune(tmp_path / "runs", **OPTIONS)
    logger.log_trial_start(trial)
    for epoch in (1, 2):
        report(logger, trial, epoch, score=1.0 * epoch, hist=[1.0, 2.0])
    logger.log_trial_end(trial)
    logger.on_experiment_end([trial])
    (book,) = rollbook.open(tmp_path / "runs")
    assert book.metrics(["score"])["score"].to_pylist() == [1.0, 2.0]
    assert book.histograms("hist").num_rows == 2
