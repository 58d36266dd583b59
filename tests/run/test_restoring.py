"""Going back: to the last checkpoint, the best one, or where a clock stood; and what is read afterwards."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollbook
from rollbook.errors import BadInput, RollbookWarning, UnknownKey

Start = Callable[..., rollbook.Run]


def curve(run: rollbook.Run, key: str = "x", **options: Any) -> list[tuple[int, float]]:
    table = run.book.metrics([key], x="env_step", **options)
    return list(zip(table["env_step"].to_pylist(), table[key].to_pylist(), strict=True))


def train(run: rollbook.Run, start: int, stop: int, value: float, every: int = 10) -> dict[int, Any]:
    saved = {}
    for i in range(start, stop):
        run.log({"x": value}, env_step=i)
        if i % every == every - 1:
            saved[i] = run.save_checkpoint({"w": np.full(3, i), "step": i}, score=float(i % 40), gradient_step=i)
    return saved


def test_a_resumed_run_reads_back_as_one_curve(start: Start) -> None:
    run = start()
    train(run, 0, 57, 1.0)
    run.finish("killed")
    again = start(resume="must")
    restored = again.restore()
    assert restored.clocks == {"env_step": 49, "gradient_step": 49}
    assert restored.state["step"] == 49
    np.testing.assert_array_equal(restored.state["w"], np.full(3, 49))
    assert again.clocks_now() == restored.clocks
    train(again, 50, 70, 2.0)
    again.finish()
    assert curve(again) == [(i, 1.0) for i in range(50)] + [(i, 2.0) for i in range(50, 70)]
    abandoned = curve(again, attempts="all")
    assert len(abandoned) == 77, "what was abandoned stays readable"


def test_repeated_resumes_and_an_earlier_best_need_no_further_rule(start: Start) -> None:
    run = start()
    train(run, 0, 45, 1.0)
    run.finish()
    second = start(resume="must")
    second.restore()
    train(second, 40, 55, 2.0)
    second.finish()
    third = start(resume="must")
    best = third.restore("best")
    assert best.clocks["env_step"] == 39
    train(third, 40, 50, 3.0)
    third.finish()
    assert curve(third) == [(i, 1.0) for i in range(40)] + [(i, 3.0) for i in range(40, 50)]
    assert [row["checkpoint_id"] for row in third.book.checkpoints().to_pylist() if row["env_step"] == 39] == [best.id]


def test_restoring_while_training_begins_a_new_attempt_in_the_same_process(start: Start) -> None:
    run = start()
    log = run.log
    train(run, 0, 25, 1.0)
    run.restore()
    assert run.attempt == 2
    for i in range(20, 30):
        log({"x": 2.0}, env_step=i)  # the function the loop holds goes on
    assert curve(run) == [(i, 1.0) for i in range(20)] + [(i, 2.0) for i in range(20, 30)]


def test_a_late_evaluation_of_a_kept_checkpoint_is_not_lost(start: Start) -> None:
    run = start()
    saved = train(run, 0, 25, 1.0)
    run.scope("test", at=saved[9]).log({"return": 9.0})
    run.scope("test", at=saved[19]).log({"return": 19.0})  # comes after checkpoint 19, and belongs to it
    run.log({"x": -1.0}, env_step=999)
    run.finish()
    again = start(resume="must")
    again.restore()
    again.scope("test", at=saved[9].id).log({"return": 9.5})
    again.finish()
    assert curve(again, "test/return") == [(9, 9.0), (9, 9.5), (19, 19.0)]
    assert (999, -1.0) not in curve(again)


def test_rewind_goes_back_to_where_a_clock_stood(start: Start) -> None:
    run = start()
    for i in range(30):
        run.log({"x": 1.0}, env_step=i * 10, epoch=i)
    run.finish()
    again = start(resume="must")
    again.rewind(env_step=145)
    assert again.clocks_now() == {"env_step": 140, "epoch": 14}
    again.log({"x": 2.0}, env_step=150)
    assert curve(again)[-2:] == [(140, 1.0), (150, 2.0)]
    with pytest.raises(UnknownKey, match="readings begin at 0"):
        again.rewind(env_step=-5)
    with pytest.raises(UnknownKey, match="no row has a reading"):
        again.rewind(policy_version=3)
    with pytest.raises(BadInput, match="exactly one"):
        again.rewind()
    with pytest.raises(BadInput, match="a clock counts"):
        again.rewind(env_step=1.5)  # type: ignore[arg-type]


def test_random_states_go_on_as_if_nothing_had_happened(start: Start) -> None:
    run = start()
    random.seed(5)
    np.random.seed(5)
    run.save_checkpoint({"a": 1}, env_step=1)
    expected = (random.random(), float(np.random.rand()))
    run.finish()
    again = start(resume="must")
    again.restore()
    assert (random.random(), float(np.random.rand())) == expected


def test_a_new_run_has_nothing_to_restore_which_is_no_trouble(start: Start) -> None:
    """A loop that may be resumed need not ask whether it was."""
    run = start(resume="allow")
    run.log({"loss": 9.0}, env_step=7)
    assert run.restore() is None
    run.finish()
    assert not run.bill()["drops"]
    assert run.book.metrics(["loss"]).num_rows == 1


def test_a_checkpoint_that_is_named_and_missing_is_reported(start: Start) -> None:
    with pytest.warns(RollbookWarning, match="no such checkpoint"):
        assert start().restore("best") is None


def test_a_resumed_run_without_a_checkpoint_begins_again_and_hides_what_was(start: Start) -> None:
    run = start()
    run.log({"loss": 9.0}, env_step=7)
    run.finish("killed")
    again = start(resume="allow")
    with pytest.warns(RollbookWarning, match="Training starts from the beginning"):
        assert again.restore() is None
    again.log({"loss": 1.0}, env_step=0)
    again.finish()
    assert again.book.metrics(["loss"]).column("loss").to_pylist() == [1.0]
    assert again.book.metrics(["loss"], attempts="all").num_rows == 2


def test_offsets_continue_the_counters_of_a_framework_that_begins_again(start: Start) -> None:
    run = start()
    train(run, 0, 20, 1.0)
    run.finish()
    again = start(resume="must")
    again.restore()
    offsets = again.internals.continue_clocks("env_step")
    assert offsets == {"env_step": 19}
    again.finish()
    assert start(resume="must").internals.offsets == {}


@pytest.mark.parametrize("rows_before", [0, 2])
@pytest.mark.parametrize("positions", ["as saved", "damaged"])
def test_the_checkpoint_that_was_restored_counts_whatever_was_logged_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_before: int, positions: str
) -> None:
    if positions == "damaged":
        from rollbook.schema import checkpoint_rows

        monkeypatch.setattr(checkpoint_rows, "_object_in", lambda cell: {})
    with rollbook.init("p", "a", dir=tmp_path, sinks=[], keeper="inline") as run:
        for n in range(rows_before):
            run.log({"loss": float(n)}, env_step=n)
        first = run.save_checkpoint({"w": [1.0]}, env_step=10)
        run.log({"loss": 99.0}, env_step=11)
        run.save_checkpoint({"w": [2.0]}, env_step=20)
        run.restore(first.id)
        run.log({"loss": 5.0}, env_step=12)
    book = rollbook.open(tmp_path).one("p/a")
    assert book.checkpoints()["checkpoint_id"].to_pylist() == [first.id]
    assert book.metrics(["loss"])["loss"].to_pylist() == [*map(float, range(rows_before)), 5.0]
