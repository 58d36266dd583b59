"""Tests of two groups, boundaries and sample sizes: beside scipy and the published tables."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys

import numpy as np
import pytest
import scipy  # its parts are imported when they are asked for
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rollbook.errors import BadInput
from rollbook.stats import boundaries, exact_ranks, judge, nominal_levels, permutation, power, spent, two_samples, welch
from rollbook.stats._special import ndtr, ndtri

ARMS = arrays(np.float64, st.integers(4, 9), elements=st.floats(-100, 100, width=32))


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_the_normal_distribution_is_that_of_scipy_far_into_both_tails() -> None:
    x = np.linspace(-37.0, 37.0, 2_001)
    np.testing.assert_allclose(ndtr(x), scipy.special.ndtr(x), rtol=1e-13)
    assert [ndtr(each) for each in (-np.inf, 0.0, np.inf)] == [0.0, 0.5, 1.0]
    shares = [0.0, 1e-300, 1e-12, 0.025, 0.3, 0.5, 0.7, 0.999999, 1.0]
    np.testing.assert_allclose([ndtri(y) for y in shares], scipy.special.ndtri(shares), rtol=1e-13)


def test_a_first_verdict_about_hundreds_of_runs_loads_no_scipy() -> None:
    """That takes as long as reading the runs. Fewer seeds may be told how many more decide, which needs Student's t."""
    code = (
        "import sys, numpy\n"
        "from rollbook.stats import Study\n"
        "scores = numpy.random.default_rng(0).normal(size=(3, 300))\n"
        "study = Study().look(dict(zip('abc', scores)))\n"
        "print(len(study.verdicts), 'scipy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["3", "False"]


@pytest.mark.parametrize(("na", "nb", "seed"), [(5, 5, 0), (5, 12, 1), (22, 22, 2), (6, 4, 3)])
def test_welchs_test_is_scipys(na: int, nb: int, seed: int) -> None:
    a, b = rng(seed).lognormal(size=na) - 0.5, rng(seed + 9).normal(size=nb)
    theirs = scipy.stats.ttest_ind(a, b, equal_var=False)
    assert (welch(a, b).statistic, welch(a, b).p, welch(a, b).freedom) == pytest.approx(
        (theirs.statistic, theirs.pvalue, theirs.df)
    )


@pytest.mark.parametrize(("na", "nb"), [(2, 2), (9, 9), (12, 7), (22, 22), (3, 40), (50, 50)])
def test_the_rank_test_is_exact_also_where_the_splits_are_too_many_to_try(na: int, nb: int) -> None:
    random = rng()
    for shift in (0.0, 0.5, 2.0):
        a, b = random.normal(shift, 1, na), random.normal(0, 1, nb)
        expected = scipy.stats.mannwhitneyu(a, b, method="exact").pvalue
        assert judge(a, b).p_ranks == pytest.approx(expected, rel=1e-12)


def test_ties_are_counted_and_beyond_sixty_seeds_the_normal_limit_holds() -> None:
    a, b = np.array([1.0, 1.0, 2.0, 3.0, 3.0]), np.array([0.0, 1.0, 1.0, 2.0])
    pooled = np.concatenate([a, b])
    midranks = scipy.stats.rankdata(pooled)
    sums = np.array([midranks[list(chosen)].sum() for chosen in itertools.combinations(range(9), 5)])
    away = abs(midranks[:5].sum() - sums.mean())
    assert judge(a, b).p_ranks == pytest.approx((np.abs(sums - sums.mean()) >= away - 1e-9).mean())
    assert judge([1.0, 1.0], [1.0, 1.0]).p_ranks == 1.0
    large_a, large_b = rng(1).integers(0, 9, 150), rng(2).integers(1, 9, 150)
    expected = scipy.stats.mannwhitneyu(large_a, large_b, method="asymptotic").pvalue
    assert judge(large_a, large_b).p_ranks == pytest.approx(expected, rel=0.01)


def test_all_splits_are_tried_where_they_are_few() -> None:
    a, b = rng().normal(0.8, 1, 3), rng().normal(0, 3, 6)
    pooled = np.concatenate([a, b])

    def ratio(chosen: tuple[int, ...]) -> float:
        inside = np.isin(np.arange(9), chosen)
        return abs(welch(pooled[inside], pooled[~inside]).statistic)

    ratios = [ratio(chosen) for chosen in itertools.combinations(range(9), 3)]
    expected = np.mean(np.array(ratios) >= ratio((0, 1, 2)) * (1 - 1e-9))
    found = permutation(a, b, rng=rng())
    assert (found.p, found.splits, found.exact) == (pytest.approx(expected), 84, True)


@given(st.integers(2, 8), st.integers(2, 8), st.floats(-100, 100), st.floats(-100, 100))
@example(3, 8, 1.0, 0.3)
def test_the_observed_split_is_one_of_those_that_are_as_extreme(na: int, nb: int, a: float, b: float) -> None:
    """Arms without any spread: the error of their difference is rounding alone."""
    p = permutation(np.full(na, a), np.full(nb, b), rng=rng()).p
    both_ways = 2 if na == nb else 1
    assert p == pytest.approx(1.0 if abs(a - b) == 0 else both_ways / math.comb(na + nb, na))


def test_random_splits_come_near_to_all_of_them() -> None:
    a, b = rng(1).normal(1.0, 1, 8), rng(2).normal(0, 1, 8)
    exact = permutation(a, b, rng=rng()).p
    drawn = permutation(a, b, rng=rng(), splits=two_samples.random_splits(16, 8, 20_000, rng()))
    assert not drawn.exact
    assert drawn.p == pytest.approx(exact, abs=4 * math.sqrt(exact / 20_000) + 1e-4)


@given(ARMS, ARMS, st.floats(0.1, 10), st.floats(-50, 50))
def test_p_values_depend_on_no_unit_order_or_side(a: np.ndarray, b: np.ndarray, scale: float, shift: float) -> None:
    if np.ptp(np.concatenate([a, b])) < 1e-2 or min(np.ptp(a), np.ptp(b)) < 1e-3:
        return
    for test in (welch, judge, lambda x, y: permutation(x, y, rng=rng(), draws=99)):
        p = test(a, b).p
        assert 0 < p <= 1
        assert test(b, a).p == pytest.approx(p, rel=1e-6, abs=1e-9) or test not in (welch, judge)
        assert test(a[::-1], b).p == pytest.approx(p, rel=1e-6, abs=1e-9)
    assert welch(scale * a + shift, scale * b + shift).p == pytest.approx(welch(a, b).p, rel=1e-3, abs=1e-6)


def test_constants_are_no_certainty() -> None:
    assert welch([1.0, 1.0], [1.0, 1.0, 1.0]).p == 1.0
    assert welch([0.1] * 5, [0.1] * 7).p == 1.0
    assert welch([1.0] * 5, [0.0] * 5).p == 0.0
    assert permutation([1.0] * 5, [0.0] * 5, rng=rng()).p == pytest.approx(2 / 252)
    assert permutation([1.0] * 5, [1.0] * 5, rng=rng()).p == 1.0


@pytest.mark.parametrize(
    "call",
    [
        lambda: welch([1.0], [1.0, 2.0]),
        lambda: permutation([1.0, np.nan], [1.0, 2.0], rng=rng()),
    ],
)
def test_too_few_or_undecided_scores_are_refused(call: object) -> None:
    with pytest.raises(BadInput):
        call()  # type: ignore[operator]


# --- boundaries -------------------------------------------------------------------------------------------------------


def test_where_ranks_are_too_many_to_count_the_normal_limit_gives_nearly_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ranks = exact_ranks.doubled_midranks(np.concatenate([rng(0).normal(0.4, 1, 30), rng(9).normal(0, 1, 40)]))
    counted = exact_ranks.splits_as_far(ranks, 30)
    monkeypatch.setattr(exact_ranks, "_MOST_STEPS", 0)
    limit = exact_ranks.splits_as_far(ranks, 30)
    assert limit != counted
    assert limit == pytest.approx(counted, rel=0.01)


def test_boundaries_equal_the_published_ones() -> None:
    fifths = (0.2, 0.4, 0.6, 0.8, 1.0)
    assert boundaries(fifths) == pytest.approx([4.8769, 3.3569, 2.6803, 2.2898, 2.0310], abs=2e-4)
    assert boundaries(fifths, spending="pocock") == pytest.approx([2.4380, 2.4268, 2.4101, 2.3966, 2.3859], abs=2e-4)
    assert boundaries([1.0], 0.05) == pytest.approx([1.95996], abs=1e-5)


def test_all_of_alpha_is_spent_at_the_end_and_none_at_the_start() -> None:
    for spending in ("obrien-fleming", "pocock"):
        assert spent(1.0, 0.045, spending) == pytest.approx(0.045)
        assert spent(1e-9, 0.045, spending) < 1e-6
    assert nominal_levels([0.5, 1.0]).max() < 0.05


def test_a_look_does_not_depend_on_later_looks() -> None:
    assert boundaries([0.3, 0.5]).tolist() == boundaries([0.3, 0.5, 0.9])[:2].tolist()


def test_a_random_walk_crosses_the_boundaries_as_often_as_planned() -> None:
    looks = np.array([0.25, 0.4, 0.7, 1.0])
    steps = rng(2).normal(size=(200_000, 4)) * np.sqrt(np.diff(looks, prepend=0))
    z = steps.cumsum(axis=1) / np.sqrt(looks)
    for spending in ("obrien-fleming", "pocock"):
        crossed = (np.abs(z) > boundaries(looks, 0.05, spending)).any(axis=1).mean()
        assert crossed == pytest.approx(0.05, abs=0.002)


@pytest.mark.parametrize("bad", [[], [0.0, 1.0], [0.5, 0.5], [0.5, 1.2]])
def test_looks_that_do_not_increase_are_refused(bad: list[float]) -> None:
    with pytest.raises(BadInput):
        boundaries(bad)


# --- sample size ------------------------------------------------------------------------------------------------------


def test_power_equals_cohens_tables() -> None:
    # Cohen (1988), table 2.3.5 (two-sided 0.05): n, d, power in per cent
    for n, d, percent in ((10, 1.0, 56), (20, 0.5, 33), (20, 0.8, 69), (30, 0.5, 47), (50, 0.5, 70), (16, 1.0, 78)):
        assert 100 * power(n, d) == pytest.approx(percent, abs=1.0)
    # table 2.4.1: seeds an arm for 80 % and 90 %
    for wanted, d, n in ((0.8, 0.2, 394), (0.8, 0.5, 64), (0.8, 0.8, 26), (0.8, 1.0, 17), (0.9, 0.5, 86)):
        assert power(n - 1, d) < wanted <= power(n, d)


@pytest.mark.parametrize("n", [2, 3, 5, 16, 100])
@pytest.mark.parametrize("d", [0.0, 0.3, 1.0, 2.0])
def test_power_is_the_noncentral_t(n: int, d: float) -> None:
    edge, shift, freedom = scipy.stats.t.ppf(0.975, 2 * n - 2), d * math.sqrt(n / 2), 2 * n - 2
    expected = scipy.stats.nct.sf(edge, freedom, shift) + scipy.stats.nct.cdf(-edge, freedom, shift)
    assert power(n, d) == pytest.approx(expected, abs=1e-9)


def test_one_seed_has_no_power() -> None:
    with pytest.raises(BadInput):
        power(1, 1.0)


def test_splits_are_the_same_however_many_are_looked_at_together(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = rng().normal(size=40), rng().normal(0.3, size=45)
    found = []
    for together in (1, 1 << 10, 1 << 30):
        monkeypatch.setattr(two_samples, "_AT_ONCE", together)
        found.append((permutation(a, b, rng=rng(), draws=500), two_samples.random_splits(9, 4, 30, rng()).tolist()))
    assert found[0] == found[1] == found[2]
