"""What the rules of fine-tuning, of preferences and of speed say, by hand-computed cases."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rollbook import health
from rollbook.protocols import Alert, Row
from rollbook.schema.columns import columns_of
from rollbook.testing import some_run


def said(name: str, rows: Sequence[Row], size: int = 1_000_000, **options: Any) -> list[Alert]:
    rule = health.make(name, **options)
    rule.open(some_run(Path("run")))
    found: list[Alert] = []
    for first in range(0, len(rows), size):
        found += rule.look(columns_of(rows[first : first + size]), 0.0)
    return found


def epochs(evaluated: Sequence[float], trained: Sequence[float], names: tuple[str, str] = ("loss", "eval_loss")) -> Any:
    """Two training losses and an evaluation in each epoch, in rows of their own as a Trainer has them."""
    rows: list[Row] = []
    for n, (loss, training) in enumerate(zip(evaluated, trained, strict=True)):
        for key, value in ((names[0], training), (names[0], training), (names[1], loss)):
            rows.append(Row(1.7e9 + len(rows), {"gradient_step": 10 * n + 10}, {key: value}, seq=len(rows) + 1))
    return rows


FALLING = [2.0, 1.5, 1.0, 0.9, 0.8, 0.7, 0.6, 0.5]
NAMES = [
    ("loss", "eval_loss"),
    ("train/loss", "eval/loss"),
    ("train_loss", "val_loss"),
    ("train_loss_epoch", "val/loss_epoch"),
    ("loss", "eval_dev_loss"),
]
"""transformers, TRL; TensorBoard and W&B of both; Lightning, Keras; several sets."""


@pytest.mark.parametrize("names", NAMES, ids=" ".join)
@pytest.mark.parametrize("size", [1, 5, 1_000])
def test_a_loss_of_evaluations_above_its_lowest_in_three_in_a_row_while_training_falls_is_overfitting(
    names: tuple[str, str], size: int
) -> None:
    # The lowest is 1.0 at step 30: 1.04 is 4 % above it, 1.06, 1.07 and 1.08 are more than 5 %.
    rows = epochs([2.0, 1.5, 1.0, 1.04, 1.06, 1.07, 1.08, 1.2], FALLING, names)
    (alert,) = said("overfitting", rows, size)
    assert (alert.level, alert.key, alert.clocks) == ("warn", names[1], {"gradient_step": 70})
    assert (alert.evidence["best"], alert.evidence["best_at"]) == (1.0, {"gradient_step": 30})
    assert (alert.evidence["value"], alert.evidence["trained"]) == (1.08, 0.6)
    assert f"{names[0]} has fallen from 1 to 0.6" in alert.message


@pytest.mark.parametrize(
    ("evaluated", "trained"),
    [
        ([2.0, 1.5, 1.0, 1.04, 1.04, 1.04, 1.04, 1.04], FALLING),
        ([2.0, 1.5, 1.0, 1.06, 1.07, 1.04, 1.06, 1.07], FALLING),
        ([2.0, 1.5, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5], [2.0, 1.5, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5]),
        ([1.0, 1.3, 0.9, 1.1, 1.15, 1.19, 1.1, 0.8], FALLING),
        (FALLING, FALLING),
    ],
    ids=["4 %", "two in a row", "training rises, too", "as it did before a better one came", "both fall"],
)
def test_a_loss_of_evaluations_that_rises_less_or_with_that_of_training_is_no_overfitting(
    evaluated: list[float], trained: list[float]
) -> None:
    assert said("overfitting", epochs(evaluated, trained)) == []


def test_the_losses_of_a_reinforcement_learning_are_no_matter_of_overfitting() -> None:
    rows = epochs([2.0, 1.5, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5], FALLING)
    first = Row(1.7e9 - 1, {"gradient_step": 0}, {"charts/episodic_return": 1.0})
    assert said("overfitting", [first, *rows]) == []


def pairs(chosen: float, rejected: float, names: tuple[str, str] = ("rewards/chosen", "rewards/rejected")) -> Any:
    """20 rows at the reference model, then 20 with these implicit rewards; both swing by +-0.5, so that a block's
    standard deviation is 0.513 and the standard error of a difference of two blocks 0.162: four are 0.65. The margin
    does not swing."""
    rows = []
    for n in range(40):
        swing = 0.5 if n % 2 else -0.5
        moved = (chosen, rejected) if n >= 20 else (0.0, 0.0)
        values = {key: move + swing for key, move in zip(names, moved, strict=True)}
        rows.append(Row(1.7e9 + n, {"gradient_step": n + 1}, values, seq=n + 1))
    return rows


@pytest.mark.parametrize(
    "names",
    [
        ("rewards/chosen", "rewards/rejected"),
        ("train/rewards/chosen", "train/rewards/rejected"),
        ("logps/chosen", "logps/rejected"),
        ("chosen_reward", "reject_reward"),
        ("train/chosen_reward", "train/reject_reward"),
    ],
    ids=" ".join,
)
def test_chosen_and_rejected_that_both_fall_while_the_margin_grows_are_a_note(names: tuple[str, str]) -> None:
    (alert,) = said("displacement", pairs(-0.7, -2.0, names), 7)
    assert (alert.level, alert.key, alert.clocks) == ("note", names[0], {"gradient_step": 40})
    found = [alert.evidence[name] for name in ("chosen", "rejected", "margin")]
    assert found == pytest.approx([-0.7, -2.0, 1.3])


@pytest.mark.parametrize(
    ("chosen", "rejected"),
    [(0.7, -2.0), (-0.6, -2.0), (-2.0, -0.7), (-2.0, -2.0)],
    ids=["chosen rises", "within four standard errors", "the margin falls", "the margin stays"],
)
def test_preferences_that_move_otherwise_are_not_reported(chosen: float, rejected: float) -> None:
    assert said("displacement", pairs(chosen, rejected)) == []
    assert said("displacement", pairs(-0.7, -2.0, ("eval_rewards/chosen", "eval_rewards/rejected"))) == []


def paced(*parts: tuple[int, float, int], key: str = "losses/value_loss", clock: str = "env_step") -> list[Row]:
    """Rows in parts of (how many, seconds between two, steps between two)."""
    rows: list[Row] = []
    time, step = 1.7e9, 0
    for n, seconds, steps in parts:
        for _ in range(n):
            rows.append(Row(time, {clock: step}, {key: 1.0}, seq=len(rows) + 1))
            time, step = time + seconds, step + steps
    return rows


@pytest.mark.parametrize("size", [1, 50, 1_000])
def test_less_than_half_of_the_steps_a_second_for_ten_minutes_is_reported_once(size: int) -> None:
    # 100 steps a second for 20 minutes, then 40. A window of ten blocks has a median of 40 after six slow ones, at
    # 180 s; ten minutes later it is reported.
    (alert,) = said("throughput", paced((120, 10.0, 1_000), (200, 10.0, 400)), size)
    assert (alert.level, alert.evidence["rate"], alert.evidence["best"]) == ("warn", 40.0, 100.0)
    assert alert.evidence["seconds"] == 600.0
    assert 180 + 600 <= alert.evidence["time"] - 1.7e9 - 1_200 <= 240 + 600
    assert "40 env_step a second at env_step" in alert.message


@pytest.mark.parametrize(
    "parts",
    [
        [(120, 10.0, 1_000), (200, 10.0, 550)],
        [(120, 10.0, 1_000), (50, 10.0, 300), (200, 10.0, 1_000)],
        [part for _ in range(20) for part in [(29, 10.0, 1_000), (1, 250.0, 1_000)]],
        [(1, 900.0, 1_000), (200, 10.0, 1_000)],
        [(5, 10.0, 9_000), (300, 10.0, 1_000)],
    ],
    ids=["more than half", "for eight minutes", "pauses for evaluations", "a slow start", "a fast start"],
)
def test_pauses_short_slow_times_and_the_start_are_no_fall_of_the_throughput(parts: list[Any]) -> None:
    assert said("throughput", paced(*parts)) == []


def test_what_begins_with_the_first_update_is_no_fall_of_the_throughput() -> None:
    warm = paced((100, 10.0, 5_000), key="charts/episodic_return")
    rows = paced((100, 10.0, 5_000), (200, 10.0, 400), key="charts/episodic_return")
    updates = [Row(row.time, row.clocks, {**row.values, "losses/qf1_loss": 1.0}, seq=row.seq) for row in rows[100:]]
    assert said("throughput", [*warm, *updates]) == []
    assert len(said("throughput", rows)) == 1


def test_another_attempt_may_run_on_a_slower_machine() -> None:
    rows = paced((120, 10.0, 1_000), (200, 10.0, 400))
    again = [*rows[:120], *(Row(r.time, r.clocks, r.values, seq=r.seq, attempt=2) for r in rows[120:])]
    assert said("throughput", again) == []


def test_answers_that_become_longer_are_no_fall_of_the_throughput() -> None:
    rows = paced((120, 10.0, 10), (200, 10.0, 4), clock="gradient_step", key="loss")
    assert len(said("throughput", rows)) == 1
    longer = [Row(r.time, r.clocks, {**r.values, "completions/mean_length": 9.0}, seq=r.seq) for r in rows]
    assert said("throughput", longer) == []
