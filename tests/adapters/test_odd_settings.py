"""Hyper-parameters that refuse to be read, through every door by which settings reach a run: nothing raises."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rollbook
from rollbook.adapters._run import JoinedRun, keep_config
from rollbook.adapters.optuna import RollbookCallback as OptunaCallback
from rollbook.adapters.tensorboard import SummaryWriter
from rollbook.run.origin.config import entries_of


class Missing:
    """As OmegaConf with `???` and an unresolved interpolation: it has keys, and some of them raise."""

    def keys(self) -> list[str]:
        return ["lr", "missing"]

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __getitem__(self, name: str) -> Any:
        if name == "lr":
            return 0.1
        raise RuntimeError("Missing mandatory value")


@dataclasses.dataclass(slots=True)
class Slots:
    lr: float = 0.1


@dataclasses.dataclass
class Part:
    lr: float = 0.1

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        raise RuntimeError("no")


class Odd:
    lr = 0.1

    def keys(self) -> list[str]:
        raise RuntimeError("no keys")


SETTINGS: list[Any] = [{"lr": 0.1}, Missing(), Slots(), Part(), argparse.Namespace(lr=0.1), [("lr", 0.1)], Odd()]
ODD: list[Any] = [5, None, object(), "text", [1], lambda: None]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Any]:
    with rollbook.init("p", "r", dir=tmp_path, sinks=(), keeper="inline", rules=()) as run:
        yield run


@pytest.mark.parametrize("given", SETTINGS, ids=lambda given: type(given).__name__)
def test_what_can_be_read_of_settings_is_kept(run: Any, given: Any) -> None:
    assert entries_of(given)["lr"] == 0.1
    run.config.update(given)
    assert run.config["lr"] == 0.1
    run.config.clear()
    keep_config(run, given)
    assert run.config["lr"] == 0.1
    run.config.clear()
    JoinedRun("test", run, "p", "n", {}).settings(given)
    assert run.config["lr"] == 0.1
    run.summary.update(given)
    run.config |= {"more": 1}
    writer = SummaryWriter(run=run)
    writer.add_hparams(given, {"m": 1.0})
    assert (run.config["lr"], run.summary["m"]) == (0.1, 1.0)
    run.finish()
    assert run.book.config["lr"] == 0.1


@pytest.mark.parametrize("given", ODD, ids=lambda given: type(given).__name__)
def test_what_has_no_named_values_raises_nothing(run: Any, given: Any) -> None:
    run.config.update(given)
    run.summary.update(given)
    keep_config(run, given)
    JoinedRun("test", run, "p", "n", {}).settings(given)
    run.log({"loss": 1.0})
    run.finish()
    assert run.book.metrics(["loss"]).num_rows == 1


class Trial:
    def __init__(self, number: int, state: str, values: list[float] | None) -> None:
        self.number, self.values, self.params, self.duration = number, values, {"lr": 0.1}, None
        self.state = type("State", (), {"name": state})()


@pytest.mark.parametrize("names", [None, ["accuracy"], ["accuracy", "cost"]])
def test_every_trial_of_a_study_is_kept_whatever_its_metrics_are_called(run: Any, names: Any) -> None:
    study = type("Study", (), {"metric_names": names, "directions": [1, 2], "study_name": "s"})()
    callback = OptunaCallback(run)
    trials: list[Any] = [None, [], [1.0], [1.0, 2.0], [1.0, 2.0, 3.0]]
    for n, values in enumerate(trials):
        for k, state in enumerate(("COMPLETE", "PRUNED", "FAIL")):
            callback(study, Trial(3 * n + k, state, values))
    rows = run.book.metrics(["params/lr"], x="step")
    assert rows.column("step").to_pylist() == list(range(3 * len(trials)))
