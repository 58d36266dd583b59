"""What is claimed of intervals and verdicts holds at worst, over a grid of shapes: docs/statistics.md."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.statistics import grid

from rollbook.stats import DECISIONS, Plan, Study


@pytest.mark.parametrize("centre", ["mean", "iqm"])
def test_the_simulation_decides_as_a_study_that_is_looked_at_after_each_seed(centre: str) -> None:
    studies, shift = 6, 1.5
    plan = Plan(("a", "b"), centre=centre, draws=999, floor=-3.0)
    a, b, _ = grid.arms(("normal", "30 % fail, 0.1", 1.0), centre, studies, plan.n_max, shift)
    found = grid.decisions(a, b, plan, -3.0)
    assert (found.winner != 0).any()
    for number in range(studies):
        study = Study(plan)
        for n in range(plan.n_min, plan.n_max + 1):
            study = study.look({"a": a[number, :n], "b": b[number, :n]})
        verdict = study.verdicts()[0]
        assert {"a": 1, "b": -1, None: 0}[verdict.better] == found.winner[number]
        if verdict.better is not None:
            assert verdict.n == found.seeds[number]
            assert verdict.holds == found.holds[number]
            assert ("would still be so if one more seed" in verdict.sentence()) == verdict.holds
            assert ("could have gone unseen" in verdict.sentence()) != verdict.holds


def test_a_verdict_without_a_floor_says_what_share_of_failing_seeds_could_have_gone_unseen() -> None:
    a, b = np.arange(12) / 10 + 9, np.arange(12) / 10
    study = Study(Plan(("a", "b"))).look({"a": a, "b": b})
    assert study.verdicts()[0].holds is None
    assert "With 12 seeds a share of failing seeds up to 22 % could have gone unseen." in study.verdicts()[0].sentence()


@pytest.mark.long
@pytest.mark.parametrize(
    "row", [row for row in DECISIONS if row.claim is not None and row.statistic in ("iqm", "median")]
)
def test_an_interval_covers_what_it_claims_over_the_whole_grid(row: object) -> None:
    statistic, tasks, n, claim = row.statistic, row.tasks, row.seeds, row.claim  # type: ignore[attr-defined]
    studies = 1_000
    error = 3 * (claim * (1 - claim) / studies) ** 0.5
    held = {shape: grid.covered(statistic, shape, n, tasks, studies) for shape in grid.SHAPES}
    lowest = min(held, key=lambda shape: held[shape])
    assert held[lowest] >= claim - error, lowest


@pytest.mark.long
@pytest.mark.parametrize("pair", grid.PAIRS[::4], ids=str)
def test_false_winners_stay_below_what_the_plan_claims(pair: tuple[str, str, float]) -> None:
    studies = 400
    decided, holds = grid.false_winners(pair, "mean", studies)
    kind = next(kind for kind, fits in grid.KINDS.items() if fits(*pair))
    error = 3 * (0.06 * 0.94 / studies) ** 0.5
    if kind in ("alike", "spreads 3 and 10 to 1"):
        assert decided <= 0.06 + error
    if kind in ("alike", "spreads 3 and 10 to 1", "failing seeds, unlike"):
        assert holds <= 0.06 + error
