"""A run that is resumed below its end: its curve has those steps twice, unless the program goes back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rollbook
from rollbook import health, testing
from rollbook.protocols import Row
from rollbook.schema.columns import columns_of


def train(root: Path, steps: range, before: Callable[[Any], object] = lambda run: None, key: str = "loss") -> Any:
    """One attempt of a program that keeps its own state."""
    options: dict[str, Any] = {"dir": root, "seed": 1, "sinks": [], "keeper": "inline", "rules": ["steps_again"]}
    with rollbook.init("again", "resumed", resume="allow", **options) as run:
        before(run)
        for step in steps:
            run.log({key: float(step)}, env_step=step)
            if step == 50:
                run.save_checkpoint({"step": step})
    return run.book


def test_steps_that_are_logged_a_second_time_are_said_once(tmp_path: Path) -> None:
    train(tmp_path, range(100))
    book = train(tmp_path, range(60, 150))
    (alert,) = book.alerts().to_pylist()
    assert (alert["rule"], alert["level"], alert["key"], alert["env_step"]) == ("steps_again", "warn", "loss", 60)
    assert "had reached 99" in alert["message"]
    assert train(tmp_path, range(150, 160)).alerts().num_rows == 1


def test_a_last_row_without_its_clock_does_not_hide_how_far_the_run_had_come(tmp_path: Path) -> None:
    def alerts_of(rule: Any, attempt: int, clocks: list[dict[str, int]]) -> int:
        rows = [Row(1.7e9 + n, clock, {"loss": 1.0}, attempt=attempt) for n, clock in enumerate(clocks)]
        return len(rule.look(columns_of(rows), 0.0))

    rule: Any = health.make("steps_again")
    rule.open(testing.some_run(tmp_path))
    assert alerts_of(rule, 1, [{"env_step": 99}, {}]) == 0
    assert alerts_of(rule, 2, [{"env_step": 60}]) == 1


def test_the_advice_of_the_alert_makes_one_curve(tmp_path: Path) -> None:
    train(tmp_path, range(100))
    book = train(tmp_path, range(60, 150), before=lambda run: run.rewind(env_step=59))
    assert book.alerts().num_rows == 0
    assert book.metrics(["loss"], x="env_step")["env_step"].to_pylist() == [*range(150)]


@pytest.mark.parametrize(
    ("steps", "before", "key"),
    [
        (range(100, 150), lambda run: None, "loss"),
        (range(51, 150), lambda run: run.restore(), "loss"),
        (range(10, 90, 10), lambda run: None, "eval/return"),
    ],
    ids=["it goes on", "it restores", "a late evaluation"],
)
def test_a_run_that_goes_on_from_where_its_curve_ends_raises_no_alert(
    tmp_path: Path, steps: range, before: Callable[[Any], object], key: str
) -> None:
    train(tmp_path, range(100), key=key)
    assert train(tmp_path, steps, before, key).alerts().num_rows == 0


def test_a_training_that_begins_anew_is_told_to_be_a_run_of_its_own(tmp_path: Path) -> None:
    train(tmp_path, range(100))
    (alert,) = train(tmp_path, range(100)).alerts().to_pylist()
    assert "leave out resume=" in alert["message"]


def test_the_steps_of_each_attempt_are_compared_with_those_of_the_attempt_before_whoever_asks(tmp_path: Path) -> None:
    first, second, third = range(100), range(60, 120), range(110, 150)
    rows = [
        Row(1.7e9 + n, {"env_step": step}, {"loss": 1.0}, attempt=attempt, writer=f"w{attempt}", seq=step)
        for n, (attempt, step) in enumerate((a, s) for a, steps in enumerate((first, second, third), 1) for s in steps)
    ]
    for size in (1, 7, 200):  # a keeper sees some rows at a time, `rollbook check` all of them
        rule: Any = health.make("steps_again")
        rule.open(testing.some_run(tmp_path, attempt=3))
        alerts = [alert for n in range(0, 200, size) for alert in rule.look(columns_of(rows[n : n + size]), 0.0)]
        found = [(alert.clocks["env_step"], alert.evidence["reached"]) for alert in alerts]
        assert found == [(60, 99), (110, 119)]
        assert "in attempt 2" in alerts[0].message
