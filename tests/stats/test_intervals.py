"""Intervals and bands: the method that the table names, the coverage it claims, and silence where nothing is honest."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import scipy  # its parts are imported when they are asked for
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rollbook.errors import BadInput, UnknownOption
from rollbook.stats import (
    DECISIONS,
    IqmReplicates,
    band,
    bca,
    bootstrap_t,
    clopper_pearson,
    complete_seeds,
    decide,
    expanded_percentile,
    interval,
    iqm,
    iqm_of_counts,
    jackknife,
    order_statistics,
    order_statistics_coverage,
    percentile,
    refined_iqm,
    replicates,
    run_counts,
    seed_counts,
    student_t,
    whole_curve_band,
    winsorised_t,
)
from rollbook.stats.intervals import sentence_of_several


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# --- what may be said -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statistic", "n", "tasks", "method"),
    [("mean", 4, 1, "none"), ("mean", 5, 1, "Student's t"), ("mean", 7, 1, "bootstrap-t"), ("iqm", 4, 1, "none"),
     ("iqm", 5, 1, "expanded percentile bootstrap"), ("iqm", 5, 3, "expanded percentile bootstrap"),
     ("iqm", 4, 4, "none"), ("iqm", 3, 5, "winsorised t by seed"), ("iqm", 2, 57, "none"), ("median", 5, 1, "range"),
     ("median", 6, 1, "order statistics"), ("solved", 3, 1, "Clopper-Pearson"), ("success_rate", 4, 1, "none"),
     ("success_rate", 5, 1, "Student's t"), ("optimality_gap", 7, 1, "bootstrap-t")],
)  # fmt: skip
def test_the_method_depends_on_statistic_seeds_and_tasks(statistic: str, n: int, tasks: int, method: str) -> None:
    assert decide(statistic, n, tasks).method == method


def test_every_row_of_the_table_has_a_claim_or_a_reason() -> None:
    for row in DECISIONS:
        assert (row.method == "none") == bool(row.reason) == (row.mild is None)
        assert row.claim is None or row.statistic not in ("mean", "success_rate"), "of a mean no coverage is claimed"
        assert row.claim is None or 0.5 < row.claim <= 0.95


def test_of_one_and_two_seeds_nothing_is_claimed() -> None:
    one = interval([3.0], "iqm", rng=rng())
    assert (one.low, one.high, one.claim, one.is_honest) == (None, None, None, False)
    assert one.sentence("test/return") == "test/return 3: one seed. An interval needs at least 5."
    assert "two seeds" in interval([3.0, 4.0], "mean", rng=rng()).sentence()


def test_of_three_and_four_seeds_of_one_task_the_range_is_shown_with_what_it_covers() -> None:
    told = interval([1.0, 5.0, 3.0], "iqm", rng=rng()).sentence("return")
    assert told.startswith(
        "return between 1 and 5 (3 seeds). The true median is inside such a range in 75 % of studies"
    )
    assert "87.5 %" in interval([1.0, 5.0, 3.0, 2.0], "mean", rng=rng()).sentence()


def test_from_five_seeds_on_an_interval_carries_its_claim() -> None:
    found = interval(rng().normal(size=8), "iqm", rng=rng())
    assert found.is_honest
    assert found.claim == decide("iqm", 8).claim
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.estimate < found.high
    assert "% of such studies (expanded percentile bootstrap, 8 seeds)." in found.sentence()
    json.dumps(found.as_data())


def test_seeds_that_are_all_equal_give_no_interval_and_no_certainty() -> None:
    found = interval([7.0] * 9, "mean", rng=rng())
    assert found.low is None
    assert "All 9 seeds score 7. No spread was seen" in found.sentence()


def test_another_level_claims_nothing() -> None:
    found = interval(rng().normal(size=12), "mean", rng=rng(), level=0.8)
    assert found.low is not None
    assert found.claim is None


def test_an_interval_between_seeds_claims_what_holds_of_any_scores() -> None:
    """Of n seeds the median lies outside the range in 2 of 2 ** n studies; two of six or more can say 95 %."""
    claims = {n: interval(np.arange(float(n)), "median", rng=rng()).claim for n in (4, 5, 6, 12)}
    assert claims == {4: 1 - 2 / 2**4, 5: 1 - 2 / 2**5, 6: 0.95, 12: 0.95}


@pytest.mark.parametrize(("statistic", "name"), [("iqm", "IQM"), ("mean", "Mean"), ("median", "Median")])
def test_several_groups_are_one_sentence_that_names_what_is_estimated(statistic: str, name: str) -> None:
    found = [(label, interval(rng().normal(at, 1, 9), statistic, rng=rng())) for at, label in enumerate("ab")]
    words = sentence_of_several(found)
    assert words is not None
    assert words.startswith(f"{name}: a ")
    assert words.endswith("9 seeds of each).")


def test_seeds_that_lack_a_task_are_left_out_and_counted() -> None:
    table = np.array([[1.0, 2.0], [np.nan, 3.0], [5.0, 6.0]])
    whole, left_out = complete_seeds(table)
    assert (whole.tolist(), left_out) == ([[1.0, 2.0], [5.0, 6.0]], 1)
    with pytest.raises(BadInput, match=r"\[seeds, tasks\]"):
        complete_seeds(table[0])
    found = interval(rng().normal(size=(6, 5)), "iqm", rng=rng(), left_out=2)
    assert "Left out for lack of a task: 2 seeds." in found.sentence()


def test_solved_takes_booleans_and_rates_stay_between_0_and_1() -> None:
    found = interval([True, True, True, False, True], "solved", rng=rng())
    low, high = clopper_pearson(4, 5)
    assert (found.low, found.high, found.claim) == (float(low), float(high), 0.95)
    with pytest.raises(BadInput, match="booleans"):
        interval([0.5, 1.0, 0.0], "solved", rng=rng())
    rates = interval([1.0, 1.0, 1.0, 1.0, 0.2], "success_rate", rng=rng())
    assert rates.high == 1.0


def test_the_optimality_gap_is_the_mean_turned_round() -> None:
    scores = rng().uniform(0, 2, size=9)
    gap = interval(scores, "optimality_gap", rng=rng(4))
    clipped = interval(np.minimum(scores, 1.0), "mean", rng=rng(4))
    assert clipped.low is not None
    assert gap.high == pytest.approx(1 - clipped.low)
    assert gap.estimate == pytest.approx(1 - clipped.estimate)


def test_a_mean_over_tasks_is_that_of_the_seeds_means() -> None:
    table = rng().normal(size=(8, 6))
    whole, averaged = interval(table, "mean", rng=rng(1)), interval(table.mean(axis=1), "mean", rng=rng(1))
    assert (whole.low, whole.high) == pytest.approx((averaged.low, averaged.high))


@pytest.mark.parametrize("bad", [[1.0, np.nan, 2.0, 3.0, 4.0], [], [[[1.0]]]])
def test_scores_of_unknown_direction_are_refused(bad: object) -> None:
    with pytest.raises(BadInput):
        interval(bad, "mean", rng=rng())  # type: ignore[arg-type]
    with pytest.raises(UnknownOption, match="iqm"):
        interval([1.0], "igm", rng=rng())


# --- properties -------------------------------------------------------------------------------------------------------

SEEDS = arrays(np.float64, st.integers(5, 12), elements=st.floats(-100, 100, width=32))


@given(SEEDS, st.sampled_from(["mean", "iqm", "median"]), st.floats(0.1, 10), st.floats(-50, 50))
def test_units_and_origin_carry_over_to_the_ends(x: np.ndarray, statistic: str, scale: float, shift: float) -> None:
    one, other = (interval(v, statistic, rng=rng(3), draws=999) for v in (x, scale * x + shift))
    if one.low is None or other.low is None or np.ptp(x) < 1e-3:
        return
    assert (other.low, other.high) == pytest.approx(
        (scale * one.low + shift, scale * (one.high or 0.0) + shift), rel=1e-6, abs=1e-6 * (1 + scale * np.ptp(x))
    )


def test_the_order_of_seeds_moves_an_interval_by_no_more_than_its_draws_do() -> None:
    x = rng(5).normal(size=10)
    for statistic in ("mean", "iqm"):
        ends = [interval(rng(k).permutation(x), statistic, rng=rng(3)) for k in range(4)]
        assert np.ptp([e.low for e in ends]) < 0.1
    assert interval(x[::-1], "median", rng=rng()).low == interval(x, "median", rng=rng()).low
    table = rng(5).normal(size=(6, 7))
    assert interval(table[::-1], "iqm", rng=rng()).low == pytest.approx(interval(table, "iqm", rng=rng()).low)


def test_the_same_generator_gives_the_same_interval() -> None:
    x = rng(5).normal(size=10)
    assert interval(x, "iqm", rng=rng(1)) == interval(x, "iqm", rng=rng(1)) != interval(x, "iqm", rng=rng(2))


# --- methods beside scipy and by hand ---------------------------------------------------------------------------------


def test_students_interval_is_scipys() -> None:
    x = rng().normal(size=9)
    low, high = student_t(x)
    expected = scipy.stats.ttest_1samp(x, 0).confidence_interval(0.95)
    assert (low[0], high[0]) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize("statistic", ["mean", "iqm"])
@pytest.mark.parametrize("n", [5, 12, 30])
def test_bca_is_scipys_with_the_same_resamples(statistic: str, n: int) -> None:
    x = rng(n).lognormal(size=n)
    drawn = replicates(statistic, x[:, None, None], seed_counts(n, 1_500, rng(1)))
    function = (
        (lambda v, axis: v.mean(axis=axis))
        if statistic == "mean"
        else (lambda v, axis: scipy.stats.trim_mean(v, 0.25, axis=axis))
    )
    own = (lambda s: s.mean(axis=(0, 1))) if statistic == "mean" else iqm
    low, high = bca(drawn, function(x, 0), jackknife(own, x[:, None, None]))
    shared = scipy.stats.bootstrap((x,), function, n_resamples=9, method="percentile", rng=rng(2))
    shared.bootstrap_distribution = drawn[:, 0]
    theirs = scipy.stats.bootstrap(
        (x,), function, n_resamples=0, bootstrap_result=shared, method="BCa", confidence_level=0.95
    ).confidence_interval
    assert (low[0], high[0]) == pytest.approx((theirs.low, theirs.high), rel=1e-12)


def test_percentiles_are_order_statistics_of_the_replicates() -> None:
    drawn = rng().permutation(np.arange(1.0, 1000.0))
    low, high = percentile(drawn)
    assert (low[0], high[0]) == (25.0, 975.0)
    wide_low, wide_high = expanded_percentile(drawn, seeds=5)
    assert wide_low[0] < 25.0
    assert wide_low[0] + wide_high[0] == 1000.0


def test_what_is_resampled_is_runs_or_seeds() -> None:
    with pytest.raises(BadInput, match="resampling"):
        IqmReplicates(np.zeros((4, 2)), rng=rng(2), resample="tasks")


def test_bootstrap_t_falls_back_where_resamples_have_no_spread() -> None:
    x = np.array([500.0] * 6 + [400.0])
    low, high, fallen = bootstrap_t(x, seed_counts(7, 2_000, rng()))
    assert fallen[0]
    assert (low[0], high[0]) == pytest.approx([end[0] for end in student_t(x)])
    assert interval(x, "mean", rng=rng()).method == "Student's t"


@given(st.lists(st.floats(0, 1), min_size=7, max_size=12), st.floats(-14, 0), st.sampled_from([0.0, 500.0, -3e6]))
def test_an_interval_of_a_mean_of_nearly_equal_seeds_stays_near_them(x: list[float], power: float, at: float) -> None:
    """One seed stands apart, the others differ by less and less: no end lies where no score could."""
    scores = at + np.array([10.0**power * value for value in x[:-1]] + [1.0])
    found = interval(scores, "mean", rng=rng(), draws=999)
    assert found.low is not None
    assert found.high is not None
    assert max(found.estimate - found.low, found.high - found.estimate) <= 5.001 * np.ptp(scores)


def test_scores_that_differ_by_rounding_alone_are_equal() -> None:
    found = interval(500 + np.array([0, 1, 0, 0, 2, 0, 1]) * 1e-13, "mean", rng=rng())
    assert (found.low, found.method) == (None, "none")
    assert "all seeds score the same" in found.reason


def test_the_median_lies_between_order_statistics_with_known_coverage() -> None:
    x = np.arange(1.0, 11.0)
    low, high = order_statistics(x)
    assert (low[0], high[0]) == (2.0, 9.0)
    assert order_statistics_coverage(10) == pytest.approx(1 - 2 * scipy.stats.binom.cdf(1, 10, 0.5))
    assert order_statistics_coverage(5) == 0.9375
    for n in range(6, 60):
        assert order_statistics_coverage(n) >= 0.95


def test_clopper_pearson_is_scipys() -> None:
    for solved in range(6):
        low, high = clopper_pearson(solved, 5)
        theirs = scipy.stats.binomtest(solved, 5).proportion_ci(0.95, "exact")
        assert (float(low), float(high)) == pytest.approx((theirs.low, theirs.high))


def test_the_winsorised_interval_of_one_task_is_tukey_mclaughlin() -> None:
    x = rng(2).normal(size=12)
    low, high = winsorised_t(x[:, None])
    clipped = np.asarray(scipy.stats.mstats.winsorize(x, (0.25, 0.25)))
    error = clipped.std(ddof=1) / np.sqrt(12) / 0.5
    reach = scipy.stats.t.ppf(0.975, 11) * error
    assert (low[0], high[0]) == pytest.approx((iqm(x) - reach, iqm(x) + reach))


# --- replicates -------------------------------------------------------------------------------------------------------


def by_hand(scores: np.ndarray, counts: np.ndarray, statistic: str) -> np.ndarray:
    n, tasks, points = scores.shape
    whole = np.repeat(counts, tasks, axis=1) if counts.shape[1] == n else counts
    flat = scores.reshape(-1, points)
    function = {"mean": np.mean, "median": np.median}.get(
        statistic, lambda v, axis: scipy.stats.trim_mean(v, 0.25, axis)
    )
    return np.array([function(np.repeat(flat, row, axis=0), axis=0) for row in whole])


@given(
    st.integers(1, 40),
    st.integers(1, 12),
    st.integers(1, 3),
    st.integers(0, 10**6),
    st.sampled_from(["plain", "ties", "ceiling", "outlier", "tiny"]),
)
def test_replicates_are_the_statistic_of_each_resample(n: int, tasks: int, points: int, seed: int, kind: str) -> None:
    scores = rng(seed).normal(size=(n, tasks, points))
    if kind == "ties":
        scores = np.round(scores)
    elif kind == "ceiling":
        scores = np.minimum(scores, 0.0)
    elif kind == "outlier":
        scores[0, 0] = 1e12
    elif kind == "tiny":
        scores *= 1e-200
    for counts in (seed_counts(n, 20, rng(seed)), run_counts(n, tasks, 20, rng(seed))):
        for statistic in ("iqm", "median", "mean"):
            expected = by_hand(scores, counts, statistic)
            found = replicates(statistic, scores, counts)
            # An outlier costs the mean its digits, and the median none; the IQM has a second layer for the rest.
            lost = 1.0 if kind == "outlier" and (statistic != "iqm" or n * tasks <= 20) else 3e-12
            unit = 1.0 if kind == "outlier" else np.abs(scores).max()
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=lost * unit)


def test_windows_give_what_all_values_give() -> None:
    scores = np.round(rng(1).normal(size=(40, 30, 3)), 2)
    counts = run_counts(40, 30, 300, rng(2))
    source = IqmReplicates(scores, rng=rng(2))
    assert source._sorted.windows
    np.testing.assert_allclose(source.draw(300), by_hand(scores, counts, "iqm"), rtol=0, atol=1e-12)


def test_threads_and_stages_do_not_change_a_byte() -> None:
    for shape in ((50, 20, 2), (7, 1, 3), (10, 3, 3)):
        curves = rng(3).normal(size=shape)
        for resample in ("runs", "seeds"):
            found = set()
            for threads in (1, 2, 4):
                for stages in ((1_270,), (130, 1_270), (70, 1_050, 1_270)):
                    last = list(refined_iqm(curves, rng=rng(4), stages=stages, threads=threads, resample=resample))[-1]
                    found.add((last.low_P.tobytes(), last.high_P.tobytes()))
            assert len(found) == 1


def test_threads_of_the_matrix_library_do_not_change_a_byte() -> None:
    code = (
        "import numpy as np, hashlib; from rollbook.stats import band\n"
        "g = np.random.default_rng; x = g(0).normal(size=(30, 40)); y = g(0).normal(size=(12, 5, 40))\n"
        "out = [band(x, 'mean', rng=g(1), draws=400), band(x, 'iqm', rng=g(1), draws=400), band(y, 'iqm', rng=g(1))]\n"
        "print(hashlib.sha256(b''.join(b.low_P.tobytes() + b.high_P.tobytes() for b in out)).hexdigest())"
    )
    told = set()
    for threads in ("1", "4"):
        env = {**os.environ, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
        told.add(
            subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout
        )
    assert len(told) == 1


def test_first_answers_are_preliminary_and_the_last_is_not() -> None:
    found = list(refined_iqm(rng().normal(size=(10, 10, 4)), rng=rng(), stages=(50, 200, 400)))
    assert [(f.draws, f.preliminary) for f in found] == [(50, True), (200, True), (400, False)]
    assert (found[0].centre_P == found[-1].centre_P).all()


def test_counts_draw_as_many_as_there_are_and_longer_draws_begin_alike() -> None:
    counts = run_counts(6, 3, 120, rng(1))
    assert (counts.reshape(120, 6, 3).sum(axis=1) == 6).all()
    np.testing.assert_array_equal(counts[:70], run_counts(6, 3, 70, rng(1)))
    with pytest.raises(BadInput):
        seed_counts(5, 0, rng())
    with pytest.raises(BadInput, match="columns"):
        iqm_of_counts(np.zeros((4, 2, 1)), seed_counts(5, 3, rng()))


# --- bands ------------------------------------------------------------------------------------------------------------


def test_a_band_says_what_it_is_and_of_how_many() -> None:
    curves = rng().normal(size=(9, 30))
    assert band(curves, "iqm", rng=rng()).legend() == "IQM of 9 seeds, 95 % at each point (at worst 90 %)"
    assert whole_curve_band(curves).legend() == "mean of 9 seeds, nominally 95 % for the whole curve"
    assert band(curves[:4], "iqm", rng=rng()).legend().startswith("IQM of 4 seeds, no band: ")


def test_a_band_is_at_each_point_the_interval_of_that_point() -> None:
    curves = rng().normal(size=(9, 5))
    found = band(curves, "median", rng=rng())
    for p in range(5):
        alone = interval(curves[:, p], "median", rng=rng())
        assert (found.low_P[p], found.high_P[p], found.claim_P[p]) == (alone.low, alone.high, alone.claim)


def test_where_seeds_end_the_method_follows_n() -> None:
    curves = rng().normal(size=(9, 6))
    curves[4:, 3:] = np.nan
    curves[:, 5] = np.nan
    found = band(curves, "iqm", rng=rng())
    assert found.n_P.tolist() == [9, 9, 9, 4, 4, 0]
    assert np.isfinite(found.low_P).tolist() == [True] * 3 + [False] * 3
    assert np.isfinite(found.centre_P).tolist() == [True] * 5 + [False]
    assert found.legend() == "IQM of 4 to 9 seeds, 95 % at each point (at worst 90 %)"


def test_a_band_over_tasks_takes_whole_seeds() -> None:
    curves = rng().normal(size=(6, 8, 5))
    curves[0, 3, 2] = np.nan
    found = band(curves, "iqm", rng=rng())
    assert found.methods == ("winsorised t by seed",)
    assert found.n_P.tolist() == [6, 6, 5, 6, 6]


def test_the_whole_curve_band_is_wider_and_needs_five_whole_seeds() -> None:
    curves = rng().normal(size=(10, 100)).cumsum(axis=1)
    pointwise, whole = band(curves, "mean", rng=rng()), whole_curve_band(curves)
    assert ((whole.high_P - whole.low_P) > 1.2 * (pointwise.high_P - pointwise.low_P)).mean() > 0.95
    assert np.isnan(whole_curve_band(curves[:4]).low_P).all()
    curves[0, 0] = np.nan
    with pytest.raises(BadInput, match="every seed at every point"):
        whole_curve_band(curves)
    with pytest.raises(BadInput, match="infinite for seed 1"):
        band(np.array([[0.0], [np.inf]]), rng=rng())


def test_the_whole_curve_band_holds_smooth_gaussian_curves() -> None:
    generator, held = rng(8), 0
    x = np.linspace(0, 1, 50)
    for _ in range(300):
        waves = sum(generator.normal(size=(8, 1)) * f(k * x) / k for k in (1, 2, 4) for f in (np.sin, np.cos))
        found = whole_curve_band(waves)
        held += bool(((found.low_P <= 0) & (found.high_P >= 0)).all())
    assert 0.92 <= held / 300 <= 1.0


def test_intervals_cover_what_they_claim_on_skewed_and_failing_seeds() -> None:
    """Small and seeded; the large tables are made by benchmarks/statistics."""
    from rollbook.stats import pointwise

    for n, statistic in ((5, "iqm"), (8, "iqm"), (12, "iqm")):
        generator = rng(n)
        draws = {
            "skewed": generator.lognormal(size=(n, 1, 1_000)),
            "failing": np.where(generator.random((n, 1, 1_000)) < 0.3, 0.0, 1.0)
            + 0.1 * generator.normal(size=(n, 1, 1_000)),
        }
        true = {"skewed": {"mean": np.exp(0.5), "iqm": 1.0723}, "failing": {"mean": 0.7, "iqm": 0.8626}}
        claim = decide(statistic, n).claim
        for family, scores in draws.items():
            low, high = pointwise(scores, statistic, rng=rng(1), draws=1_999)[1:3]
            held = np.mean((low <= true[family][statistic]) & (true[family][statistic] <= high))
            assert claim is not None
            assert held >= claim - 0.03, (n, statistic, family, held)
