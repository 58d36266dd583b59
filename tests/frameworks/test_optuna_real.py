"""Optuna itself: a study whose trials complete, are pruned and fail, in two threads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

GROUPS = ("loggers",)

pytest.importorskip("optuna")

import optuna  # noqa: E402

import rollbook  # noqa: E402
from rollbook.adapters.optuna import RollbookCallback  # noqa: E402


def objective(trial: Any) -> float:
    x = trial.suggest_float("x", -1.0, 1.0)
    trial.suggest_categorical("kind", ["a", "b"])
    if trial.number % 4 == 1:
        trial.report(x, 0)
        raise optuna.TrialPruned
    if trial.number % 4 == 2:
        raise ValueError("no value")
    return float(x**2)


@pytest.mark.core
def test_every_trial_of_a_study_is_read_back(own_place: Path) -> None:
    callback = RollbookCallback(project="sweep", name="random", keeper="inline")
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=3))
    study.optimize(objective, n_trials=16, n_jobs=2, callbacks=[callback], catch=(ValueError,))
    callback.close()
    (book,) = rollbook.open("runs")
    assert (book.project, book.name, book.status) == ("sweep", "random", "finished")
    trials = {trial.number: trial for trial in study.trials}
    table = {row["step"]: row for row in book.metrics(["params/x"], x="step").to_pylist()}
    assert {number: row["params/x"] for number, row in table.items()} == {n: t.params["x"] for n, t in trials.items()}
    values = book.metrics(["value"], x="step").to_pylist()
    completed = {n: t.value for n, t in trials.items() if t.state.name == "COMPLETE"}
    assert {row["step"]: row["value"] for row in values if row["value"] is not None} == completed
    assert len(completed) == 8
    assert book.summary["best_value"] == study.best_value
    assert book.config["sampler"] == "RandomSampler"
    assert book.problems() == []
