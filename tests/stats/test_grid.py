"""What is claimed of intervals and verdicts holds at worst, over a grid of shapes: docs/statistics.md."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.statistics import grid, verdicts

from rollbook.stats import DECISIONS, Plan, Study, judge


@pytest.mark.parametrize(
    "pair", [("normal", "normal", 1.0), ("capped", "normal", 0.1), ("30 % fail, 0.1", "dead", 1.0)]
)
@pytest.mark.parametrize("n", [4, 5, 6, 8])
def test_the_simulation_decides_as_a_verdict_does(pair: tuple[str, str, float], n: int) -> None:
    a, b = verdicts.drawn(pair, "iii", 12, n)
    side, ranks, means = verdicts.p_values(a, b)
    for study in range(12):
        found = judge(a[study], b[study])
        assert (ranks[study], means[study]) == (pytest.approx(found.p_ranks), pytest.approx(found.p_means))
        assert side[study] == found.side


@pytest.mark.parametrize(("looks", "plan"), [((5, 6, 8, 12), None), ((4, 5, 6, 7, 8), 8)])
def test_the_simulation_looks_as_a_study_does(looks: tuple[int, ...], plan: int | None) -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(1.5, 1, (12, looks[-1])), rng.normal(0, 1, (12, looks[-1]))
    winner, seeds = verdicts.looked_at(a, b, looks, plan)
    assert (winner != 0).any()
    for number in range(12):
        study = Study(Plan(seeds=plan))
        for n in looks:
            study = study.look({"a": a[number, :n], "b": b[number, :n]})
            if study.verdicts[0].better is not None:
                break
        else:
            n = looks[-1]
        assert {"a": 1, "b": -1, None: 0}[study.verdicts[0].better] == winner[number]
        assert n == seeds[number]


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
@pytest.mark.parametrize("shape", verdicts.ALIKE[::3])
@pytest.mark.parametrize("looks", verdicts.SCHEDULES.values(), ids=str)
def test_false_winners_among_groups_of_one_distribution_stay_at_five_per_cent(
    shape: str, looks: tuple[int, ...]
) -> None:
    studies = 1_000
    found = verdicts.false_winners((shape, shape, 1.0), "i", studies, looks)
    assert found <= 5.0 + 300 * (0.05 * 0.95 / studies) ** 0.5
