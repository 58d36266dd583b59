"""A program as users write it. `make types` checks it: a type checker or an editor knows what `rollbook` offers."""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import rollbook
from rollbook import Book, Run, RunSet, Scope
from rollbook.book.series import Series


def train() -> None:
    with rollbook.init("cartpole", "ppo", seed=3, config={"lr": 3e-4}, sinks=["terminal"]) as run:
        assert_type(run, Run)
        run.log({"train/return": 21.0}, env_step=128)
        update = assert_type(run.scope("update"), Scope)
        with update.timer("backward"):
            update.log({"loss": 0.5}, gradient_step=1)
        rollbook.log({"loss": 0.5}, env_step=128)
        rollbook.log("loss", 0.5)  # type: ignore[arg-type, call-arg]
        rollbook.log_text("note", "begun")
        rollbook.save_checkpoint({"weights": np.zeros(3)}, score=21.0)
        assert_type(rollbook.scope("eval"), Scope)
    rollbook.nonsense()  # type: ignore[attr-defined]


def train_several() -> None:
    with rollbook.siblings(8, seeds=range(8), project="cartpole", name="ppo") as seeds:
        seeds.log({"loss": np.zeros(8)}, env_step=3)


def read() -> None:
    runs = assert_type(rollbook.open("runs", where="config.lr < 1e-3"), RunSet)
    book = assert_type(runs.one("cartpole/ppo", seed=3, newest=True), Book)
    series = assert_type(book.series("train/return", x="env_step"), Series)
    assert_type(series.mean, NDArray[Any])
    table: pa.Table = book.metrics(["train/return"], x="env_step")
    print(table, runs.compare("train/return", "config.algo").sentences())


def record(environment: object) -> None:
    with rollbook.attach("runs/cartpole/ppo-1a2b3c4d") as run:
        rollbook.RecordEpisodes(environment, run, video="first")
        rollbook.record_envs([lambda: environment], run)
