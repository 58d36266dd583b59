"""The callback, with what Optuna hands to one but without Optuna."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

import rollbook
from rollbook.adapters.optuna import RollbookCallback
from rollbook.errors import BadInput
from rollbook.run.run import Run


def trial(number: int, state: str, values: list[float] | None, **params: Any) -> Any:
    return SimpleNamespace(
        number=number,
        state=SimpleNamespace(name=state),
        values=values,
        value=values[0] if values else None,
        params=params,
        duration=timedelta(seconds=2),
    )


def study(*directions: str, best: Any = None, names: list[str] | None = None) -> Any:
    return SimpleNamespace(
        study_name="sweep",
        directions=[SimpleNamespace(name=direction) for direction in directions or ("MINIMIZE",)],
        sampler=SimpleNamespace(),
        pruner=SimpleNamespace(),
        metric_names=names,
        best_trial=best,
    )


def test_each_trial_is_a_row_at_its_number(run: Run, rows: Any) -> None:
    callback, first, second = (
        RollbookCallback(run),
        trial(0, "COMPLETE", [0.5], lr=0.1, opt="adam"),
        trial(2, "COMPLETE", [0.25], lr=0.2, opt="sgd"),
    )
    callback(study(best=first), first)
    callback(study(best=second), second)
    callback(study(best=second), trial(1, "COMPLETE", [0.75], lr=0.3, opt="sgd"))  # threads end in any order
    assert sorted(rows(run, "value", x="step")) == [(0, 0.5), (1, 0.75), (2, 0.25)]
    assert sorted(rows(run, "params/lr", x="step")) == [(0, 0.1), (1, 0.3), (2, 0.2)]
    assert run.summary["best_value"] == 0.25
    assert run.summary["best_trial"] == 2
    assert run.summary["best_params"] == {"lr": 0.2, "opt": "sgd"}
    assert run.config["directions"] == ["minimize"]
    assert run.bill()["drops"] == {}
    callback.close()
    assert run.status == "running"


@pytest.mark.parametrize(("state", "values"), [("PRUNED", [9.0]), ("FAIL", None)])
def test_the_last_report_of_a_trial_that_did_not_complete_is_no_value_of_it(
    run: Run, state: str, values: list[float] | None
) -> None:
    callback = RollbookCallback(run)
    callback(study(), trial(0, state, values, lr=0.1))
    keys = set(run.book.keys())
    assert "value" not in keys
    assert "params/lr" in keys
    assert ("pruned/value" in keys) == (state == "PRUNED")
    assert "best_value" not in run.summary


@pytest.mark.parametrize(("names", "keys"), [(None, ("value_0", "value_1")), (["loss", "cost"], ("loss", "cost"))])
def test_several_objectives_have_a_key_each(run: Run, rows: Any, names: Any, keys: tuple[str, str]) -> None:
    RollbookCallback(run)(study("MINIMIZE", "MAXIMIZE", names=names), trial(0, "COMPLETE", [1.0, 2.0]))
    assert rows(run, *keys) == [(1.0, 2.0)]
    assert run.bill()["drops"] == {}


def test_what_cannot_be_read_is_counted_and_the_study_goes_on(run: Run) -> None:
    callback = RollbookCallback(run)
    with pytest.warns(UserWarning, match="keeping a trial failed"):
        callback(study(), SimpleNamespace())
    assert run.bill()["drops"] == {"trial": 1}


def test_a_run_that_the_callback_opens_ends_with_it(own_place: Any) -> None:
    callback = RollbookCallback(name="sweep", sinks=(), keeper="inline")
    done = trial(0, "COMPLETE", [0.5])
    callback(study(best=done), done)
    callback.close()
    (book,) = rollbook.open("runs")
    assert (book.project, book.name, book.status) == ("optuna", "sweep", "finished")


def test_what_is_no_run_is_refused_before_the_study_begins() -> None:
    with pytest.raises(BadInput, match="not a rollbook run"):
        RollbookCallback(3)
