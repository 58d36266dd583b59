"""Healthy trainings of many shapes are left in peace, and the commonest faults of language models are named."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from benchmarks.health.shapes import LIMIT, SHAPES, false_alarms

from rollbook import health, testing
from rollbook.protocols import Alert, Row
from rollbook.runs.checking import AFTERWARDS, alerts_of
from rollbook.schema.columns import RowsPiece, columns_of

GRPO = {"beta": 0.04, "learning_rate": 1e-6}


def said(values: list[dict[str, float]], every: int = 1, **about: Any) -> list[Alert]:
    """What the rules of a finished run say of these rows, without a known length."""
    clock = "gradient_step" if every == 1 else "env_step"
    rows = [Row(1.7e9 + i, {clock: (i + 1) * every}, row, seq=i + 1) for i, row in enumerate(values)]
    info = replace(testing.some_run(Path("run")), **{"config": {}, "total": {}, **about})
    return alerts_of([health.make(rule) for rule in AFTERWARDS], info, [RowsPiece("metrics", rows)])


def faults(values: list[dict[str, float]], every: int = 1, **about: Any) -> dict[str, str]:
    return {alert.rule: alert.message for alert in said(values, every, **about) if alert.level != "note"}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_healthy_training_of_any_shape_is_reported_by_no_rule(shape: str) -> None:
    assert [false_alarms(shape, seed) for seed in range(2)] == [{}, {}]


@pytest.mark.long
def test_each_default_rule_reports_fewer_than_one_in_fifty_healthy_trainings() -> None:
    counts: Counter[str] = Counter()
    for shape in SHAPES:
        counts.update(rule for seed in range(100) for rule in false_alarms(shape, seed))
    assert all(n < LIMIT * 100 * len(SHAPES) for n in counts.values()), counts


@pytest.mark.parametrize("shape", ["one epoch", "grpo", "grpo solved"])
def test_a_healthy_training_is_left_in_peace_however_its_rows_come_in(shape: str) -> None:
    kind = SHAPES[shape]
    looks = [
        columns_of([Row(1.7e9 + i, {"gradient_step": i + 1}, values, seq=i + 1)])
        for i, values in enumerate(kind.rows(Random(f"{shape} 0")))
    ]
    for name in AFTERWARDS:
        rule = health.make(name)
        rule.open(replace(testing.some_run(Path("run")), config=kind.config, total={}))
        for i, columns in enumerate(looks):
            assert [alert for alert in rule.look(columns, 1.7e9 + i) if alert.level != "note"] == []


def grpo(n: int = 300, **changed: Any) -> list[dict[str, float]]:
    """A GRPO run as Weights & Biases has it, of which some values are another function of the row."""
    chance = Random(1)
    usual = {
        "reward": lambda i: 0.2 + 0.002 * i + chance.gauss(0, 0.02),
        "kl": lambda i: 1e-5 + 1e-4 * i,
        "entropy": lambda i: 1.1 - 0.001 * i,
        "completions/mean_length": lambda i: 200 + chance.gauss(0, 9),
        "completions/clipped_ratio": lambda i: 0.03,
        "frac_reward_zero_std": lambda i: 0.3,
        "grad_norm": lambda i: chance.uniform(0.5, 1),
        "learning_rate": lambda i: 1e-6,
    }
    made = {**usual, **{key.replace("__", "/"): value for key, value in changed.items()}}
    return [{f"train/{key}": make(i) for key, make in made.items()} for i in range(n)]


def test_answers_that_left_the_language_while_their_reward_rises_are_named() -> None:
    hacked = grpo(
        reward=lambda i: 0.2 + 0.003 * i,
        kl=lambda i: 0.02 + 15 * (i > 150),
        completions__mean_length=lambda i: 200.0 * (8 if i > 150 else 1),
        completions__clipped_ratio=lambda i: 0.98 if i > 150 else 0.03,
    )
    found = faults(hacked, config=GRPO)
    assert set(found) == {"reward_hacking"}
    assert "train/completions/clipped_ratio is 0.98 (at first 0.03)" in found["reward_hacking"]
    assert "at gradient_step 161" in found["reward_hacking"]


@pytest.mark.parametrize(
    "changed",
    [
        {"completions__mean_length": lambda i: 200.0 + 5 * i},
        {"kl": lambda i: 0.02 * i},
        {"completions__clipped_ratio": lambda i: 1.0},
    ],
    ids=["longer answers", "a divergence", "answers that are always cut"],
)
def test_one_of_the_signs_alone_is_none_of_a_hacked_reward(changed: Any) -> None:
    assert faults(grpo(**changed), config=GRPO) == {}


def test_a_language_model_whose_entropy_vanishes_before_the_reward_rose_is_named() -> None:
    chance = Random(2)
    collapsed = grpo(entropy=lambda i: 1.1 if i < 50 else 0.02, reward=lambda i: 0.3 + chance.gauss(0, 0.03))
    assert "entropy" in faults(collapsed, config=GRPO)
    assert "entropy" not in faults(grpo(entropy=lambda i: 1.1 if i < 200 else 0.02), config=GRPO)


@pytest.mark.parametrize(("config", "first"), [(GRPO, 20), ({}, 100)], ids=["weighted", "no settings"])
def test_a_divergence_from_the_reference_model_that_stays_0_says_that_nothing_is_updated(
    config: Any, first: int
) -> None:
    chance = Random(3)
    still = grpo(kl=lambda i: 0.0, reward=lambda i: 0.3 + chance.gauss(0, 0.03), entropy=lambda i: chance.gauss(1, 0.1))
    (alert,) = [alert for alert in said(still, config=config) if alert.rule == "frozen"]
    assert (alert.level, alert.key) == ("fail", "train/kl")
    assert "frozen" not in faults(grpo(kl=lambda i: 1e-5 if i > 5 else 0.0), config=GRPO)  # rates that rise from 0
    assert "frozen" not in faults(grpo(kl=lambda i: 0.0), config={"beta": 0.0})  # it is learned, and nothing weighs it


def test_a_run_without_a_known_length_that_learns_nothing_is_named_sooner_where_its_rows_are_means() -> None:
    chance = Random(4)
    assert "learns_nothing" in faults(grpo(210, reward=lambda i: 0.3 + chance.gauss(0, 0.03)), config=GRPO)
    means = [{"rollout/ep_rew_mean": 22 + chance.gauss(0, 1)} for _ in range(210)]
    assert "learns_nothing" in faults(means, 2048)
    assert "learns_nothing" in faults(means[:110], 2048, config={"total_timesteps": 2048 * 200})
    each = [{"charts/episodic_return": 22 + chance.gauss(0, 5)} for _ in range(600)]
    assert [(alert.rule, alert.level) for alert in said(each, 20)] == [("learns_nothing", "note")]


@pytest.mark.parametrize("lucky", [200.0, 1000.0])
def test_a_lucky_early_episode_does_not_hide_a_collapse(lucky: float) -> None:
    chance = Random(5)
    returns = [chance.gauss(20, 4) for _ in range(20)]
    returns[7] = lucky
    returns += [chance.gauss(20 + 33 * i / 200, 8) for i in range(200)]
    assert "return_fall" not in faults([{"return": value} for value in returns], 20)
    returns += [chance.gauss(10, 2) for _ in range(160)]
    found = faults([{"return": value} for value in returns], 20)
    assert "the last 60 returns are 1" in found["return_fall"]
    assert "the policy has lost what it knew" in found["return_fall"]


def test_costs_a_thousand_times_as_large_are_another_scale_not_a_policy_that_forgot() -> None:
    chance = Random(6)
    costs = [{"return": chance.gauss(-20, 2) * (1000 if i > 200 else 1)} for i in range(400)]
    assert "the scale of rewards has changed" in faults(costs, 20)["return_fall"]


def test_an_exploration_rate_that_is_never_lowered_is_named_and_a_schedule_or_a_warm_up_is_not() -> None:
    chance = Random(7)

    def found(epsilon: Any, **about: Any) -> bool:
        rows = [{"rollout/exploration_rate": epsilon(i), "return": chance.gauss(i / 10, 5)} for i in range(200)]
        return "exploration" in faults(rows, 1000, **about)

    assert found(lambda i: 1.0)
    assert found(lambda i: 1.0, total={"env_step": 200_000})
    assert not found(lambda i: max(0.05, 1 - i / 60))
    assert not found(lambda i: 0.5)
    assert not found(lambda i: 1.0 if i < 120 else 0.1, config={"learning_starts": 120_000})


def test_a_value_function_is_not_blamed_where_a_solved_task_leaves_nothing_to_explain() -> None:
    chance = Random(8)

    def notes(last: Any) -> list[Alert]:
        rows = [
            {
                "return": min(500.0, 5.0 * i) if i < 150 else last(),
                "train/explained_variance": 0.8 if i < 150 else chance.gauss(-1, 0.1),
            }
            for i in range(300)
        ]
        return [alert for alert in said(rows, 2000) if alert.rule == "explained_variance"]

    assert notes(lambda: 500.0) == []
    assert notes(lambda: chance.uniform(300, 500)) != []


def test_groups_of_one_reward_are_no_trouble_where_the_prompts_are_solved_and_are_where_they_never_were() -> None:
    solved = grpo(reward=lambda i: min(1.0, 0.1 + i / 100), frac_reward_zero_std=lambda i: min(1.0, i / 100))
    assert faults(solved, config=GRPO) == {}
    too_hard = grpo(reward=lambda i: 0.01 * (i == 20), frac_reward_zero_std=lambda i: 0.97)
    assert "zero_variance_groups" in faults(too_hard, config=GRPO)


def test_rewards_of_few_answers_that_rise_slowly_are_progress_and_flat_ones_are_not() -> None:
    flat = Counter[str]()
    for seed in range(10):
        chance = Random(seed)
        rewards = [{"train/reward": 0.3 + chance.gauss(0, 0.15)} for _ in range(300)]
        flat.update(list(faults(rewards)))
    assert flat["learns_nothing"] >= 8
    assert [false_alarms("grpo noisy", seed) for seed in (*range(20), 118, 187, 225)] == [{}] * 23


@pytest.mark.parametrize("at_once", [True, False])
def test_a_stage_of_a_curriculum_is_judged_by_itself_and_a_fall_within_it_is_named(at_once: bool) -> None:
    """The level rises at row 400; at row 900 the policy breaks."""
    chance = Random(0)
    rows = [
        Row(
            1.7e9 + i,
            {"env_step": (i + 1) * 1000},
            {
                "Train/mean_reward": (20.0 * (i % 400) / 400 if i < 900 else 0.0) + chance.gauss(0, 0.3),
                "Curriculum/terrain_levels": float(1 + min(1, i // 400)),
            },
            seq=i + 1,
        )
        for i in range(800)
    ] + [
        Row(
            1.7e9 + i,
            {"env_step": (i + 1) * 1000},
            {"Train/mean_reward": chance.gauss(0, 0.3), "Curriculum/terrain_levels": 2.0},
            seq=i + 1,
        )
        for i in range(800, 1000)
    ]
    pieces = [rows] if at_once else [[row] for row in rows]
    rule = health.make("return_fall")
    rule.open(replace(testing.some_run(Path("run")), config={}, total={}))
    alerts: list[Alert] = []
    for piece in pieces:
        alerts += rule.look(columns_of(piece), piece[-1].time)
        told = rule.state()
        rule = health.make("return_fall")
        rule.open(replace(testing.some_run(Path("run")), config={}, total={}))
        rule.set_state(told)
    assert [800_000 < alert.clocks["env_step"] < 900_000 for alert in alerts] == [True]


def test_a_supervised_training_whose_loss_comes_apart_or_that_has_no_gradient_is_named() -> None:
    chance = Random(2)
    healthy = [
        {"loss": 1 + math.exp(-i / 40) + chance.gauss(0, 0.05), "grad_norm": 1 + chance.random()} for i in range(300)
    ]
    assert faults(healthy) == {}
    apart = [{**row, "loss": row["loss"] if i < 150 else 10.5} for i, row in enumerate(healthy)]
    assert "come apart" in faults(apart)["jump"]
    dead = [{"loss": 0.6931, "rewards/accuracies": 0.0, "grad_norm": 0.0} for _ in range(100)]
    assert set(faults(dead)) == {"frozen"}
    of_rl = [{**row, "reward": 0.01 * i + chance.gauss(0, 0.1)} for i, row in enumerate(apart)]
    assert "jump" not in faults(of_rl), "the loss of a policy means nothing by its size"
    hard = [{"loss": 0.0, "reward": 0.0, "grad_norm": 0.0, "frac_reward_zero_std": 1.0} for _ in range(100)]
    assert "frozen" not in faults(hard), "equal rewards leave no gradient: that is the cause to name"
    assert "zero_variance_groups" in faults(hard)


def test_a_divergence_of_ten_nats_a_token_is_named_whatever_the_reward_does() -> None:
    alone = grpo(kl=lambda i: 0.02 if i < 150 else 15.0)
    assert set(faults(alone)) == {"reward_hacking"}
    assert faults(grpo(kl=lambda i: 0.02 if i < 150 else 5.0)) == {}


def test_an_entropy_loss_of_a_language_model_is_its_entropy() -> None:
    """slime and OpenRLHF log the entropy under this name; Stable-Baselines3 its negative."""
    gone = [
        {"rollout/raw_reward": 0.2 + Random(i).gauss(0, 0.02), "train/entropy_loss": 1.0 if i < 60 else 0.001}
        for i in range(150)
    ]
    assert "entropy" in faults(gone)
