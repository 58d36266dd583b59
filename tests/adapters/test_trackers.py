"""Trackers of every dialect get the same rows."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from rollbook.adapters._trackers import Trackers
from rollbook.errors import BadInput, RollbookWarning
from rollbook.system.bill import Bill


class OldNeptune:
    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.properties: dict[str, Any] = {}

    def log_metric(self, *args: Any) -> None:
        self.calls.append(args)

    def set_property(self, key: str, value: Any) -> None:
        self.properties[key] = value


class NewNeptune:
    def __init__(self) -> None:
        self.series: dict[str, list[Any]] = defaultdict(list)
        self.fields: dict[str, Any] = {}

    def __getitem__(self, key: str) -> Any:
        parent = self

        class Field:
            def append(self, value: float, step: int | None = None) -> None:
                parent.series[key].append((step, value))

        return Field()

    def __setitem__(self, key: str, value: Any) -> None:
        self.fields[key] = value

    def __getattr__(self, name: str) -> Any:
        if name in ("log_metric", "set_property"):  # the client says so in an exception of its own
            raise RuntimeError("It seems you are trying to use the legacy API")
        raise AttributeError(name)


class Wandb:
    def __init__(self) -> None:
        self.rows: list[Any] = []
        self.config: dict[str, Any] = {}

    def log(self, row: dict[str, float], step: int | None = None) -> None:
        self.rows.append((step, row))


class Writer:
    def __init__(self) -> None:
        self.scalars: list[Any] = []

    def add_scalar(self, key: str, value: float, step: int | None = None) -> None:
        self.scalars.append((key, value, step))


class Mlflow:
    def __init__(self) -> None:
        self.metrics: list[Any] = []
        self.params: dict[str, Any] = {}

    def log_metrics(self, row: dict[str, float], step: int | None = None) -> None:
        self.metrics.append((step, row))

    def log_params(self, params: dict[str, Any]) -> None:
        self.params.update(params)


def test_every_dialect_gets_the_numbers_of_a_row_and_index_0_counts() -> None:
    old, new, wandb, writer, mlflow, calls = OldNeptune(), NewNeptune(), Wandb(), Writer(), Mlflow(), []
    trackers = Trackers([None, old, new, wandb, writer, mlflow, lambda row, step: calls.append((step, row))], Bill())
    assert len(trackers) == 6
    trackers.row({"loss": 0.5, "note": "text", "empty": None}, 0)
    assert old.calls == [("loss", 0, 0.5)]
    assert new.series == {"loss": [(0, 0.5)]}
    assert wandb.rows == [(0, {"loss": 0.5})]
    assert writer.scalars == [("loss", 0.5, 0)]
    assert mlflow.metrics == [(0, {"loss": 0.5})]
    assert calls == [(0, {"loss": 0.5})]


def test_a_row_without_a_step_is_sent_without_one() -> None:
    old, wandb = OldNeptune(), Wandb()
    Trackers([old, wandb], Bill()).row({"loss": 0.5}, None)
    assert old.calls == [("loss", 0.5)]
    assert wandb.rows == [(None, {"loss": 0.5})]


def test_configurations_reach_those_that_take_one() -> None:
    old, new, wandb, mlflow = OldNeptune(), NewNeptune(), Wandb(), Mlflow()
    Trackers([old, new, wandb, mlflow, Writer()], Bill()).config({"ac": {"hidden": [64, 64]}, "gamma": 0.9})
    assert old.properties == {"ac.hidden": [64, 64], "gamma": 0.9}
    assert new.fields["config"] == {"ac.hidden": "[64, 64]", "gamma": 0.9}
    assert wandb.config == {"ac": {"hidden": [64, 64]}, "gamma": 0.9}
    assert mlflow.params == {"ac.hidden": [64, 64], "gamma": 0.9}


def test_a_tracker_that_fails_is_reported_once_and_does_not_stop_the_others() -> None:
    def broken(row: Any, step: Any) -> None:
        raise ConnectionError("no network")

    wandb = Wandb()
    count = Bill()
    trackers = Trackers([broken, wandb], count)
    with pytest.warns(RollbookWarning, match="no network") as caught:
        trackers.row({"a": 1}, 1)
    trackers.row({"a": 2}, 2)
    assert len(caught) == 1
    assert count.counts == {"tracker": 2}
    assert [step for step, _ in wandb.rows] == [1, 2]


def test_an_object_that_is_no_tracker_is_refused_by_name() -> None:
    with pytest.raises(BadInput, match=r"int.*log_metric"):
        Trackers([3], Bill())
