"""The score of the health rules on trainings with known faults counts runs, not alerts."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.health.faults import FAULTS
from benchmarks.health.scoring import score, wilson
from benchmarks.health.training import plan

import rollbook


def test_each_run_counts_once_under_its_fault(tmp_path: Path) -> None:
    for fault, rate in (("healthy", 1e-3), ("lr_0", 0.0), ("lr_0", 1e-3)):
        with rollbook.init(
            "set", fault, dir=tmp_path, sinks=[], rules=(), keeper="inline", config={"fault": fault}
        ) as run:
            for i in range(90):
                run.log({"train/learning_rate": rate}, env_step=i)
    lines = score(tmp_path).splitlines()
    assert lines[0].endswith("| `learning_rate` |")
    assert "| the learning rate is 0 | 2 | 1 | 9% to 91% | 1 |" in lines
    assert any(line.startswith("| nothing | 1 | 0 |") for line in lines)
    assert any(line.startswith("False alerts: 0 in 1 healthy runs") for line in lines)


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"), [(0, 20, 0.0, 0.161), (5, 10, 0.237, 0.763), (10, 10, 0.722, 1.0)]
)
def test_intervals_are_those_of_wilson(hits: int, n: int, low: float, high: float) -> None:
    assert wilson(hits, n) == pytest.approx((low, high), abs=1e-3)


@pytest.mark.parametrize("cut", [False, True])
def test_the_set_has_every_fault_and_each_training_once(cut: bool) -> None:
    trainings = plan(cut)
    assert {fault for _algorithm, fault, _seed in trainings} == set(FAULTS)
    assert len(set(trainings)) == len(trainings)
