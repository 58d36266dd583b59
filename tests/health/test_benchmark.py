"""The score of the health rules on trainings with known faults counts runs, not alerts, and causes, not noise."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.health.ceiling import oracle
from benchmarks.health.faults import FAULTS, TRAININGS
from benchmarks.health.runs import make_runs
from benchmarks.health.scoring import PARTS, Scored, earned, keep, kept, late, matrix, poisson, report, score, wilson
from benchmarks.health.showing import Healthy
from benchmarks.health.training import make, outcome, plan

from rollbook import health
from rollbook.protocols import Row


def scored(fault: str, said: dict[str, int], **config: Any) -> Scored:
    known = {"fault": fault, "strength": "strong", "injected": 100, "steps": 1000, "outcome": "harmed"}
    return Scored("a run", {**known, **config}, said, said, [], known["injected"])


def test_a_cause_is_named_by_its_own_rules_and_not_before_it_was_there() -> None:
    assert scored("frozen", {"frozen": 140}).named()
    assert scored("frozen", {"frozen": 140}).named(0.05)
    assert not scored("frozen", {"frozen": 160}).named(0.05)
    assert not scored("frozen", {"frozen": 90}).named()
    assert not scored("frozen", {"learns_nothing": 140}).named()


def test_each_run_counts_once_under_its_fault() -> None:
    runs = [scored("healthy", {}), scored("rate_0", {"learning_rate": 120, "frozen": 130}), scored("rate_0", {})]
    lines = matrix(runs).splitlines()
    assert "| the learning rate is 0: always | 2 | 2 | 1 | 9% to 91% | 1 | 1 | **1** |" in lines
    assert any(line.startswith("False pages: 0 in 1 healthy runs") for line in lines)
    assert any(line.startswith("Faulty runs: 2; the cause named in 1 (50%") for line in lines)


def test_what_only_one_rule_found_is_counted_and_what_was_late() -> None:
    runs = [
        scored("rate_0", {"learning_rate": 120, "settings": 400}),
        scored("rate_0", {"settings": 500}),
        scored("rate_0", {}),
        scored("frozen", {"frozen": 101}, outcome="learned"),
    ]
    lines = earned(runs).splitlines()
    assert "| `settings` | 2 (2) | 1 (1) | 0 (0) |" in lines
    assert "| `learning_rate` | 1 (1) | 0 (0) | 1 (1) |" in lines
    assert "| `frozen` | 1 (0) | 1 (0) | 1 (0) |" in lines
    assert late(runs).splitlines()[6:] == ["| the learning rate is 0: always | 3 | 1 | 1 | 40% | `settings` 1 | 1 |"]


def test_kept_scores_give_the_same_tables_and_parts_without_them_stay_as_they_stand(tmp_path: Path) -> None:
    held_out, _, _, first, _, _ = PARTS
    keep({first: [scored("rate_0", {"learning_rate": 120}), scored("healthy", {})]}, tmp_path / "scores.gz")
    again = kept(tmp_path / "scores.gz")
    counts, page = report(again, f"{held_out}:\n\n- by hand\n", f"# Title\n\n## {held_out}\n\n| by hand |\n")
    assert counts.startswith(f"{held_out}:\n\n- by hand\n\n{first}:\n\n- False pages: 0 in 1")
    assert f"## {held_out}\n\n| by hand |\n\n## {first}\n\n{matrix(again[first])}\n\n### What only" in page
    assert report(again, counts, page) == (counts, page)


def test_an_oracle_of_healthy_returns_names_what_they_show_when_they_show_it_and_nothing_else() -> None:
    steps = np.arange(10.0, 1010.0, 10.0)
    healthy = [(steps, np.sin(steps / 10 + n), 1000) for n in range(8)]
    later_lost = np.where(steps > 500, -9.0, np.sin(steps / 10 + 0.5))
    faulty = {"lost": (steps, later_lost, 1000), "as healthy": (steps, np.sin(steps / 10 + 0.5), 1000)}
    runs = [replace(scored("policy_sign", {}), name=name, shows=510) for name in faulty]
    best = oracle(healthy, faulty, runs)[0]
    assert (best.soon, best.at) == (1, {"lost": 510.0})


@pytest.mark.long
def test_a_part_of_the_set_is_made_and_scored(tmp_path: Path) -> None:
    make(tmp_path, cut=True, only=["grpo"])
    runs, after = score(tmp_path)
    assert [run.said for run in after] == [run.said for run in runs]  # two healthy trainings are too few
    assert {run.fault for run in runs} == {"healthy", *(name for name, it in FAULTS.items() if "grpo" in it.algorithms)}
    assert not any(run.said for run in runs if run.fault == "healthy")
    faulty = [run for run in runs if run.fault != "healthy"]
    assert (len(faulty), [run.name for run in faulty if not run.named()]) == (10, [])
    assert make_runs(tmp_path, tmp_path / "runs") == len(runs)
    assert [len(score(tmp_path, held_out)[0]) for held_out in (True, False)] == [0, len(runs)]


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"), [(0, 20, 0.0, 0.161), (5, 10, 0.237, 0.763), (10, 10, 0.722, 1.0)]
)
def test_intervals_of_shares_are_those_of_wilson(hits: int, n: int, low: float, high: float) -> None:
    assert wilson(hits, n) == pytest.approx((low, high), abs=1e-3)


@pytest.mark.parametrize(("hits", "mean"), [(0, 2.996), (1, 4.744), (5, 10.513)])
def test_bounds_of_counts_are_those_of_poisson(hits: int, mean: float) -> None:
    assert poisson(hits) == pytest.approx(mean, abs=1e-3)


def test_the_set_is_as_large_as_it_says_and_its_parts_share_no_chance() -> None:
    groups, held_out = list(plan()), list(plan(held_out=True))
    healthy = dict.fromkeys(("ppo", "a2c", "dqn", "sac"), 0)
    for group in groups:
        if group.fault == "healthy" and group.training.algorithm in healthy:
            healthy[group.training.algorithm] += group.seeds
    assert min(healthy.values()) >= 30
    assert sum(group.seeds for group in held_out if group.fault == "healthy") >= 90
    for fault in FAULTS:
        assert {(it.strength, it.seeds) for it in groups if it.fault == fault} == {("weak", 5), ("strong", 5)}
    assert len({group.name for group in groups + held_out}) == len(groups) + len(held_out)


def row(step: int, **values: float) -> Row:
    return Row(float(step), {"env_step": step}, {name.replace("__", "/"): value for name, value in values.items()})


def test_a_fault_shows_when_its_rows_leave_what_healthy_trainings_had() -> None:
    about = {"algorithm": "sac", "task": "Reach", "steps": 1000}
    calm = [row(step, losses__alpha=1.0 + step / 1000) for step in range(10, 1001, 10)]
    healthy = Healthy([({**about, "fault": "healthy"}, calm)])
    faulty = {**about, "fault": "alpha_sign", "strength": "weak", "injected": 400}
    grown = [row(step, losses__alpha=1.0 + step / 1000 + max(0, step - 500)) for step in range(10, 1001, 10)]
    assert healthy.shows(faulty, grown) == 530  # the third value that no healthy training had
    assert healthy.shows(faulty, calm) is None


def test_each_fault_is_named_by_a_rule_that_there_is() -> None:
    named = set().union(*(fault.named_by for fault in FAULTS.values()))
    assert {rule.partition("/")[0] for rule in named} <= set(health.DEFAULT)


def test_a_training_is_judged_by_the_return_it_reached() -> None:
    catch = next(training for training in TRAININGS if training.task == "Catch")
    assert [outcome([value] * 50, catch) for value in (0.9, 0.0, -0.6, float("nan"))] == [
        "learned",
        "harmed",
        "learned nothing",
        "harmed",
    ]
