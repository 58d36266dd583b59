"""What is logged after a checkpoint was saved, at its own step: kept by a restore where `through` names the clock."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import pytest

import rollbook
from cases import some_of

Start = Callable[..., rollbook.Run]


def write(run: rollbook.Run, step: int, note: str) -> None:
    """A row of every kind at a step, one of them by another thread."""
    run.log({"x": float(step)}, env_step=step)
    run.log({f"rare/{note}": float(step)}, env_step=step)
    run.log_episode(return_=float(step), length=3, env_step=step)
    run.log_samples([f"item {note}"], env_step=step)
    run.log_text("text", note, env_step=step)
    run.log({"time/work_seconds": 0.5}, env_step=step)
    run.log_histogram("weights", [1.0, float(step)], env_step=step)
    thread = threading.Thread(target=lambda: run.log({"beside": float(step)}, env_step=step))
    thread.start()
    thread.join()


def steps(run: rollbook.Run) -> dict[str, list[int]]:
    book = run.book
    found = {
        name: sorted(reading for reading in book.table(name)["env_step"].to_pylist() if reading is not None)
        for name in ("episodes", "samples", "text", "histograms")
    }
    for key in ("x", "beside", "time/work_seconds"):
        found[key] = book.metrics([key], x="env_step")["env_step"].to_pylist()
    rare = [key for key in book.keys() if key.startswith("rare/")]  # noqa: SIM118 - a method, no dict
    found["rare"] = sorted(step for key in rare for step in book.metrics([key], x="env_step")["env_step"].to_pylist())
    return found


@pytest.mark.parametrize(
    ("through", "sealed"),
    some_of(
        itertools.product(["env_step", ("env_step", "gradient_step"), ()], [False, True]),
        [(("env_step", "gradient_step"), True)].count,
    ),
)
def test_a_restore_goes_back_to_where_the_named_clock_moved_on(start: Start, through: Any, sealed: bool) -> None:
    run = start()
    for step in (1, 2, 3):
        write(run, step, f"first {step}")
        if step == 2:
            run.save_checkpoint({"w": 2}, env_step=2, through=through)
            write(run, 2, "after the save")
    run.finish("killed")
    after = [2] if through else []
    for attempt in (2, 3):  # the same checkpoint again: nothing more and nothing less is kept
        run = start(resume="must")
        restored = run.restore("last")
        assert restored is not None
        assert restored.clocks["env_step"] == 2
        assert set(map(tuple, steps(run).values())) == {(1, 2, *after)}
        write(run, 3, f"attempt {attempt}")
        if sealed:
            run.finish()
        assert set(map(tuple, steps(run).values())) == {(1, 2, *after, 3)}
        if not sealed:
            run.finish()


def test_the_first_clock_that_moves_ends_it(start: Start) -> None:
    run = start()
    run.log({"x": 1.0}, env_step=1, gradient_step=1)
    run.save_checkpoint({"w": 1}, through=("env_step", "gradient_step"))
    run.log({"tested": 1.0}, env_step=1)
    run.log({"x": 2.0}, env_step=1, gradient_step=2)  # an update that the saved model has not seen
    run.log({"tested": 2.0}, env_step=1)
    run.finish("killed")
    run = start(resume="must")
    run.restore("last")
    assert run.book.metrics(["x"])["x"].to_pylist() == [1.0]
    assert run.book.metrics(["tested"])["tested"].to_pylist() == [1.0]


def test_a_checkpoint_before_the_last_row_of_its_attempt_reaches_to_the_end(start: Start) -> None:
    run = start()
    run.log({"x": 1.0}, env_step=1)
    run.save_checkpoint({"w": 1}, through="env_step")
    run.log({"tested": 1.0}, env_step=1)
    run.finish("killed")
    run = start(resume="must")
    run.restore("last")
    assert run.book.metrics(["tested"])["tested"].to_pylist() == [1.0]


def test_a_clock_that_there_is_not_is_counted_and_the_checkpoint_saved(start: Start) -> None:
    run = start()
    run.log({"x": 1.0}, env_step=1)
    with pytest.warns(match="no such clock"):
        assert run.save_checkpoint({"w": 1}, through=("env_stp", "env_step"))
    assert run.bill()["drops"]["checkpoint_through"] == 1
