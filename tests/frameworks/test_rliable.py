"""rollbook.stats beside rliable itself, on random tables of all shapes."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

GROUPS = ("rliable",)

pytest.importorskip("rliable")
SPEC = importlib.util.spec_from_file_location(
    "rliable_golden", Path(__file__).resolve().parents[1] / "stats" / "rliable_golden.py"
)
assert SPEC is not None
assert SPEC.loader is not None
golden = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(golden)


def test_aggregates_profiles_and_improvement_equal_rliables() -> None:
    for case in range(1000, 1200):
        x, y = golden.tables(case)
        expected, found = golden.of_rliable(x, y), golden.of_rollbook(x, y)
        for name, value in expected.items():
            assert found[name] == pytest.approx(value, rel=1e-12, abs=1e-12), (name, x.shape, y.shape)


def test_published_scores_give_rliables_row_of_aggregates() -> None:
    """Estimates to 1e-12; the ends of the intervals up to the draws, of which rliable's cannot be seeded."""
    from rliable import library, metrics

    from rollbook.compare import published

    diamond = Path(golden.__file__).with_name("DIAMOND.json")
    (row,) = published([diamond], normalise="atari").aggregates("runs").values()
    scores = published([diamond], normalise="atari").groups[0].scores_RT
    theirs = (metrics.aggregate_median, metrics.aggregate_iqm, metrics.aggregate_mean, metrics.aggregate_optimality_gap)
    points, ends = library.get_interval_estimates({"a": scores}, lambda x: np.array([f(x) for f in theirs]), reps=4_000)
    assert [each.estimate for each in row] == pytest.approx(points["a"].tolist(), rel=1e-12)
    for each, low, high in zip(row, *ends["a"], strict=True):
        assert (each.low, each.high) == pytest.approx((low, high), abs=0.08 * (high - low))


def test_stratified_percentile_intervals_agree_up_to_their_draws() -> None:
    from rliable import library, metrics

    from rollbook.stats import refined_iqm

    scores = np.random.default_rng(3).normal(size=(10, 8))
    iqm = lambda table: np.array([metrics.aggregate_iqm(table)])  # noqa: E731
    theirs = library.get_interval_estimates({"a": scores}, iqm, reps=4_000)[1]["a"][:, 0]
    ours = list(refined_iqm(scores, rng=np.random.default_rng(4), stages=(20_000,)))[-1]
    assert (ours.low_P[0], ours.high_P[0]) == pytest.approx(tuple(theirs), abs=0.06 * float(np.ptp(theirs)))
