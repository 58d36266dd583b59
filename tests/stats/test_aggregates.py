"""Numbers about a group of runs: small cases by hand, and what must not matter does not."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rollbook.errors import BadInput, UnknownKey, UnknownOption
from rollbook.stats import (
    ATARI,
    D4RL,
    aggregate,
    iqm,
    mean,
    median,
    median_of_task_means,
    normalise,
    optimality_gap,
    performance_profile,
    probability_of_improvement,
    profile_of_task_means,
    rank_distribution,
)

FINITE = st.floats(-1e6, 1e6, allow_nan=False, width=32)
TABLES = arrays(np.float64, st.tuples(st.integers(1, 9), st.integers(1, 5)), elements=FINITE)


def test_the_iqm_is_the_mean_of_the_middle_half() -> None:
    assert iqm([1.0, 2.0, 3.0, 100.0]) == 2.5
    assert iqm([-100.0, 1.0, 2.0, 3.0, 100.0]) == 2.0
    assert iqm([[0.0, 1.0], [2.0, 3.0], [4.0, 500.0]]) == pytest.approx((1 + 2 + 3 + 4) / 4)


def test_of_three_runs_the_iqm_is_the_mean() -> None:
    assert iqm([0.0, 1.0, 5.0]) == 2.0


def test_aggregates_of_small_tables_by_hand() -> None:
    table = [[0.0, 10.0], [2.0, 20.0], [4.0, 60.0]]
    assert mean(table) == 16.0
    assert median(table) == 7.0
    assert median_of_task_means(table) == 16.0
    assert optimality_gap([0.5, 1.5, 0.0]) == pytest.approx(0.5)
    assert optimality_gap([5.0, 20.0], target=10.0) == 2.5


def test_curves_keep_their_points() -> None:
    curves = np.arange(24.0).reshape(4, 2, 3)
    for statistic in ("mean", "median", "iqm", "optimality_gap", "median_of_task_means"):
        at_once = np.asarray(aggregate(statistic, curves))
        assert at_once.tolist() == [aggregate(statistic, curves[:, :, p]) for p in range(3)]


@settings(deadline=None)
@given(TABLES, st.randoms())
def test_the_order_of_runs_and_of_tasks_does_not_matter(table: np.ndarray, random: object) -> None:
    rng = np.random.default_rng(0)
    shuffled = table[rng.permutation(len(table))][:, rng.permutation(table.shape[1])]
    for statistic in ("mean", "median", "iqm", "optimality_gap", "median_of_task_means"):
        assert aggregate(statistic, shuffled) == pytest.approx(aggregate(statistic, table), rel=1e-9, abs=1e-6)


@settings(deadline=None)
@given(TABLES, st.floats(0.01, 100), st.floats(-100, 100))
def test_units_and_origin_of_scores_carry_over(table: np.ndarray, scale: float, shift: float) -> None:
    for statistic in ("mean", "median", "iqm", "median_of_task_means"):
        moved = aggregate(statistic, scale * table + shift)
        assert moved == pytest.approx(scale * aggregate(statistic, table) + shift, rel=1e-6, abs=1e-3)


@settings(deadline=None)
@given(TABLES)
def test_the_iqm_lies_between_the_extremes(table: np.ndarray) -> None:
    assert table.min() - 1e-6 <= iqm(table) <= table.max() + 1e-6


@settings(deadline=None)
@given(TABLES, TABLES)
def test_improvement_one_way_and_the_other_add_up_to_one(x: np.ndarray, y: np.ndarray) -> None:
    tasks = min(x.shape[1], y.shape[1])
    x, y = x[:, :tasks], y[:, :tasks]
    assert probability_of_improvement(x, y) + probability_of_improvement(y, x) == pytest.approx(1.0)


def test_improvement_counts_ties_half_and_averages_over_tasks() -> None:
    assert probability_of_improvement([1.0, 2.0], [1.0, 0.0]) == pytest.approx((0.5 + 1 + 1 + 1) / 4)
    assert probability_of_improvement([[1.0, 0.0]], [[0.0, 1.0]]) == 0.5
    assert probability_of_improvement([[1.0, 2.0, 3.0], [5.0]], [[0.0], [9.0, 9.0]]) == 0.5  # ragged: a list per task
    with pytest.raises(BadInput, match="same ones"):
        probability_of_improvement([[1.0, 2.0]], [[1.0]])


def test_profiles_fall_from_one_to_nothing() -> None:
    table = [[0.0, 1.0], [0.5, 2.0]]
    assert performance_profile(table, [-1.0, 0.0, 0.5, 1.0, 2.0]).tolist() == [1.0, 0.75, 0.5, 0.25, 0.0]
    assert profile_of_task_means(table, [0.0, 0.25, 1.0, 1.5]).tolist() == [1.0, 0.5, 0.5, 0.0]


def test_ranks_are_those_of_all_draws_with_ties_by_lot() -> None:
    scores = [np.array([1.0, 2.0, 2.0]), np.array([2.0, 0.0]), np.array([2.0, 3.0])]
    expected = np.zeros((3, 3))
    draws = list(itertools.product(*(range(len(s)) for s in scores)))
    for draw in draws:
        drawn = [scores[i][k] for i, k in enumerate(draw)]
        orders = [
            o for o in itertools.permutations(range(3)) if all(drawn[a] >= drawn[b] for a, b in itertools.pairwise(o))
        ]
        for order in orders:
            for rank, i in enumerate(order):
                expected[i, rank] += 1 / len(orders) / len(draws)
    found = rank_distribution(scores)
    assert found[:, 0] == pytest.approx(expected)
    assert found.sum(axis=2) == pytest.approx(1.0)
    assert found.sum(axis=0) == pytest.approx(1.0)


@pytest.mark.parametrize("bad", [[1.0, np.nan], [np.inf, 1.0], [], [[]], "abc", [[1.0], [1.0, 2.0]]])
def test_scores_that_are_no_table_of_numbers_are_refused(bad: object) -> None:
    with pytest.raises(BadInput):
        iqm(bad)  # type: ignore[arg-type]


def test_nan_is_named_with_its_place() -> None:
    with pytest.raises(BadInput, match=r"nan at position \(1, 0\)"):
        mean([[1.0], [np.nan]])


def test_an_unknown_statistic_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownOption, match="Did you mean 'median'"):
        aggregate("medain", [1.0])


@pytest.mark.parametrize("name", ["Breakout", "breakout", "ALE/Breakout-v5", "BreakoutNoFrameskip-v4", "Breakout-v4"])
def test_a_game_is_found_however_it_is_spelled(name: str) -> None:
    assert ATARI.of(name) == (1.7, 30.5)


@pytest.mark.parametrize("name", ["breakout/Breakout-v5", "MinAtar/Breakout-v1", "Breakout-MinAtar"])
def test_a_game_of_another_suite_has_no_anchors_of_atari(name: str) -> None:
    with pytest.raises(UnknownKey, match="have no task"):
        ATARI.of(name)


def test_anchors_of_an_environment_do_not_depend_on_the_data_set() -> None:
    assert D4RL.of("hopper-medium-replay-v2") == D4RL.of("hopper") == (-20.272305, 3234.3)
    assert D4RL.of("maze2d-umaze-dense-v1") == (68.537689, 193.66285642381482)
    assert D4RL.of("maze2d-umaze-v1") == (23.85, 161.86)
    assert D4RL.of("antmaze-large-play-v2") == (0.0, 1.0)


def test_there_are_fifty_seven_games() -> None:
    assert len(ATARI.scores) == 57
    assert all(low < high for low, high in ATARI.scores.values())


def test_normalised_scores_are_0_at_the_lower_and_1_at_the_upper_anchor() -> None:
    table = np.array([[1.7, -20.7], [30.5, 14.6]])
    assert normalise(table, ["Breakout", "Pong"], "atari").tolist() == [[0.0, 0.0], [1.0, 1.0]]
    own = normalise(np.array([[0.0, 5.0], [2.0, 15.0]]), ["x", "y"], {"x": (0.0, 2.0), "y": (5.0, 15.0)})
    assert own.tolist() == [[0.0, 0.0], [1.0, 1.0]]
    assert normalise([5.0], ["y"], {"y": (5.0, 15.0)}).tolist() == [0.0]
    curves = normalise(np.ones((3, 2, 4)), ["x", "y"], {"x": (0.0, 1.0), "y": (0.0, 2.0)})
    assert curves[0].tolist() == [[1.0] * 4, [0.5] * 4]


def test_anchors_that_cannot_be_used_are_refused_by_name() -> None:
    with pytest.raises(UnknownKey, match="Did you mean 'Breakout'"):
        normalise([1.0], ["Breakuot"], "atari")
    with pytest.raises(BadInput, match="two different numbers"):
        normalise([1.0], ["x"], {"x": (1.0, 1.0)})
    with pytest.raises(BadInput, match="2 tasks and 1"):
        normalise([[1.0, 2.0]], ["x"], {"x": (0.0, 1.0)})
    with pytest.raises(UnknownOption):
        normalise([1.0], ["x"], "atarri")
