"""Counters that go back, run ahead or differ between the parts of a program."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollbook

Begin = Callable[..., Any]


def _pairs(book: Any, key: str, x: str) -> list[tuple[int, float]]:
    rows = book.metrics([key], x=x).to_pylist()
    return [(row[x], row[key]) for row in rows if row[key] is not None]


def test_inference_that_has_counted_far_ahead_costs_training_no_row(begin: Begin) -> None:
    run = begin()
    for step in range(0, 8000, 1000):
        run.log({"inference/latency": step / 1000}, env_step=step)
    for step in range(3):
        run.log({"train/loss": 1.0 - step / 10}, gradient_step=step)
    assert _pairs(run.book, "train/loss", "gradient_step") == [(0, 1.0), (1, 0.9), (2, 0.8)]
    assert len(_pairs(run.book, "inference/latency", "env_step")) == 8


def test_one_row_too_far_in_the_future_drops_none_of_those_before_it(begin: Begin) -> None:
    run = begin()
    for step in (0, 1, 4, 2, 3):
        run.log({"loss": float(step)}, step=step)
    assert sorted(_pairs(run.book, "loss", "step")) == [(n, float(n)) for n in range(5)]


def test_epochs_and_iterations_are_two_axes_of_one_run(begin: Begin) -> None:
    run = begin()
    for epoch in range(3):
        for _ in range(4):
            run.log({"iteration/loss": float(epoch)}, gradient_step=4 * epoch + _, epoch=epoch)
        run.log({"epoch/accuracy": epoch / 2}, epoch=epoch)
    assert [x for x, _ in _pairs(run.book, "iteration/loss", "gradient_step")] == [*range(12)]
    assert _pairs(run.book, "epoch/accuracy", "epoch") == [(0, 0.0), (1, 0.5), (2, 1.0)]


def test_calls_with_and_without_a_step_are_mixed_without_a_loss(root: Path) -> None:
    """A program written for wandb: some calls leave the count to the logger, others name the step."""
    import rollbook.wandb as wandb

    wandb.init(project="world")
    for step in range(4):
        wandb.log({"queue": float(step)})
        wandb.log({"queue": float(step)})
        wandb.log({"eval": float(step)}, step=step)
    wandb.finish()
    book = rollbook.open(root).one()
    assert [value for _, value in _pairs(book, "eval", "step")] == [0.0, 1.0, 2.0, 3.0]
    assert len(_pairs(book, "queue", "step")) == 8


@pytest.mark.parametrize("first", [0, 10, -5])
def test_a_step_is_the_one_that_was_given(begin: Begin, first: int) -> None:
    run = begin()
    for step in range(first, first + 50, 10):
        run.log({"loss": 0.5}, step=step)
    assert [x for x, _ in _pairs(run.book, "loss", "step")] == [*range(first, first + 50, 10)]


def test_two_users_of_one_logger_count_for_themselves(begin: Begin) -> None:
    run = begin(clocks=["policy_updates", "value_updates"])
    policy, value = run.scope("policy"), run.scope("value")
    for n in range(3):
        policy.log({"loss": n / 2}, policy_updates=n)
        for k in range(5):
            value.log({"loss": 1.0}, value_updates=5 * n + k)
    assert [x for x, _ in _pairs(run.book, "policy/loss", "policy_updates")] == [0, 1, 2]
    assert [x for x, _ in _pairs(run.book, "value/loss", "value_updates")] == [*range(15)]


def test_a_second_training_of_a_program_begins_at_its_own_zero(root: Path) -> None:
    import rollbook.wandb as wandb

    for _ in range(2):
        wandb.init(project="world", reinit=True)
        for step in range(3):
            wandb.log({"loss": 1.0}, step=step)
        wandb.finish()
    assert [[x for x, _ in _pairs(book, "loss", "step")] for book in rollbook.open(root)] == [[0, 1, 2]] * 2


@pytest.mark.parametrize("kind", [float, np.float32, np.float64], ids=["float", "float32", "float64"])
def test_a_summary_writer_takes_seconds_for_steps_as_the_libraries_do(root: Path, kind: Any) -> None:
    """rl_games and rsl_rl write each reward at its frame, at its iteration and at the seconds since the start."""
    from rollbook.adapters.tensorboard import SummaryWriter

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with SummaryWriter(str(root / "events")) as writer:
            for iteration in range(1, 5):
                writer.add_scalar("rewards/step", 10.0 * iteration, 4096 * iteration)
                writer.add_scalar("rewards/iter", 10.0 * iteration, iteration)
                writer.add_scalar("rewards/time", 10.0 * iteration, kind(2.75 * iteration))
    (book,) = rollbook.open(root)
    assert {*book.keys()} == {"rewards/step", "rewards/iter", "rewards/time"}
    for name, axis in {"step": (4096, 8192, 12288, 16384), "iter": (1, 2, 3, 4), "time": (2, 5, 8, 11)}.items():
        assert tuple(book.metrics([f"rewards/{name}"], x="step", exact=True)["step"].to_pylist()) == axis
