"""Curves of several runs on one grid: no point is invented, nobody is forgotten, nothing looks ahead."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollbook.errors import BadInput
from rollbook.sinks.filters.smooth import Smooth
from rollbook.stats import align, common_grid, ema, ordered_rows, overlap, warm_up_average

NAN = np.nan


def test_previous_holds_the_last_value_and_knows_no_future() -> None:
    found = align({"a": ([0, 10, 20], [1, 2, 3])}, grid=[-1, 0, 5, 10, 19, 20, 21])
    np.testing.assert_array_equal(found.values_RP[0], [NAN, 1, 1, 2, 2, 3, NAN])
    assert found.n_P.tolist() == [0, 1, 1, 1, 1, 1, 0]


def test_linear_lies_between_its_neighbours_and_does_not_go_beyond_them() -> None:
    found = align({"a": ([0, 10, 20], [1, 2, 0])}, grid=[-1, 0, 5, 10, 15, 20, 21], interpolation="linear")
    np.testing.assert_array_equal(found.values_RP[0], [NAN, 1, 1.5, 2, 1, 0, NAN])


def test_none_takes_only_what_was_logged_at_exactly_this_x() -> None:
    found = align({"a": ([0, 10], [1, 2]), "b": ([5, 10], [3, 4])}, interpolation="none")
    assert found.x_P.tolist() == [0, 5, 10]
    np.testing.assert_array_equal(found.values_RP, [[1, NAN, 2], [NAN, 3, 4]])


def test_a_late_and_a_short_run_change_n_and_the_sentences_say_so() -> None:
    found = align({"a": ([0, 100], [0, 1]), "b": ([0, 50], [0, 1])}, grid=[0, 25, 50, 75, 100])
    assert found.n_P.tolist() == [2, 2, 2, 1, 1]
    assert found.sentences() == ["The group ends at 50: beyond it 1 of 2 runs is left."]


@pytest.mark.parametrize(
    ("way", "expected", "n"),
    [("count", [1, 2, NAN], [2, 2, 1]), ("floor", [1, 2, -5], [2, 2, 2]), ("hold", [1, 2, 2], [2, 2, 2])],
)
def test_a_crashed_run_stays_in_the_denominator(way: str, expected: list[float], n: list[int]) -> None:
    runs = {"a": ([0, 1, 2], [7, 8, 9]), "dead": ([0, 1], [1, 2])}
    found = align(runs, grid=[0, 1, 2], crashed=["dead"], crashed_as=way, floor=-5)
    np.testing.assert_array_equal(found.values_RP[1], expected)
    assert found.n_P.tolist() == n
    assert (found.started, found.crashed) == (2, 1)
    assert any("1 of 2 runs did not finish" in sentence for sentence in found.sentences())


def test_a_crashed_run_is_left_out_only_on_request_and_by_name() -> None:
    runs = {"a": ([0, 1], [7, 8]), "dead": ([0], [1])}
    found = align(runs, grid=[0, 1], crashed=["dead"], crashed_as="drop")
    assert found.names == ("a",)
    assert list(found.left_out) == ["dead"]


def test_a_run_that_crashed_before_its_first_row_counts_at_the_floor() -> None:
    found = align({"a": ([0, 1], [7, 8]), "dead": ([], [])}, grid=[0, 1], crashed=["dead"], crashed_as="floor", floor=0)
    np.testing.assert_array_equal(found.values_RP[1], [0, 0])
    assert found.floor_RP[1].all()


def test_a_run_without_the_key_is_named() -> None:
    found = align({"a": ([0, 1], [7, 8]), "b": ([], [])}, points=2)
    assert found.left_out == {"b": "has no row with this key"}
    with pytest.raises(BadInput, match="None of 1 run"):
        align({"b": ([], [])})


def test_a_restart_replaces_what_it_repeats() -> None:
    series = ordered_rows([0, 10, 20, 30, 15, 25, 35], [0, 1, 2, 3, 10, 11, 12])
    assert series.x.tolist() == [0, 10, 15, 25, 35]
    assert series.y.tolist() == [0, 1, 10, 11, 12]
    assert series.superseded == 2


def test_a_restart_at_a_logged_x_replaces_that_row_too() -> None:
    series = ordered_rows([0, 10, 20, 10, 20], [0, 1, 2, 11, 12])
    assert series.x.tolist() == [0, 10, 20]
    assert series.y.tolist() == [0, 11, 12]


def test_restarts_of_restarts_leave_one_line() -> None:
    series = ordered_rows([0, 1, 2, 3, 2, 3, 4, 1, 2], [0, 1, 2, 3, 12, 13, 14, 21, 22])
    assert series.x.tolist() == [0, 1, 2]
    assert series.y.tolist() == [0, 21, 22]


def test_going_back_can_be_sorting_or_an_error_instead() -> None:
    assert ordered_rows([0, 2, 1], [0, 2, 1], backwards="sort").y.tolist() == [0, 1, 2]
    with pytest.raises(BadInput, match="goes back from 2 to 1"):
        ordered_rows([0, 2, 1], [0, 2, 1], backwards="refuse", name="seed-3")
    for wrong in ("backwards", "ties"):
        with pytest.raises(BadInput, match=wrong):
            ordered_rows([0, 1, 2], [0, 1, 2], **{wrong: "forwards"})  # type: ignore[arg-type]


def test_rows_at_one_x_become_the_last_or_their_mean() -> None:
    assert ordered_rows([0, 1, 1, 1], [0, 1, 2, 6]).y.tolist() == [0, 6]
    assert ordered_rows([0, 1, 1, 1], [0, 1, 2, 6], ties="mean").y.tolist() == [0, 3]
    assert ordered_rows([0, 1, 1, 1], [0, 1, 2, 6], ties="mean").merged == 2


def test_nan_is_refused_with_run_and_place_unless_something_is_chosen() -> None:
    runs = {"seed-3": ([0, 10, 20], [1, NAN, 3])}
    with pytest.raises(BadInput, match="Run seed-3 has nan at 10"):
        align(runs, grid=[0, 10, 20])
    kept = align(runs, grid=[0, 10, 20], nan="keep")
    np.testing.assert_array_equal(kept.values_RP[0], [1, NAN, 3])
    assert kept.n_P.tolist() == [1, 1, 1]
    np.testing.assert_array_equal(align(runs, grid=[0, 10, 20], nan="drop").values_RP[0], [1, 1, 3])
    np.testing.assert_array_equal(align(runs, grid=[0, 10, 20], nan="floor", floor=0).values_RP[0], [1, 0, 3])


def test_rows_without_a_place_are_counted() -> None:
    assert ordered_rows([0, NAN, 2], [1, 2, 3]).unplaced == 1


def test_a_gap_stays_a_gap() -> None:
    runs = {"a": ([0, 10, 100], [1, 2, 3])}
    found = align(runs, grid=[5, 15, 50, 100], max_gap=10)
    np.testing.assert_array_equal(found.values_RP[0], [1, 2, NAN, 3])
    linear = align(runs, grid=[5, 15, 50, 100], max_gap=10, interpolation="linear")
    np.testing.assert_array_equal(linear.values_RP[0], [1.5, NAN, NAN, 3])


def test_a_window_takes_its_own_past_alone() -> None:
    runs = {"a": ([1, 2, 3, 4, 9], [1, 2, 3, 4, 9])}
    found = align(runs, grid=[2, 4, 7, 9], window=2.0)
    np.testing.assert_array_equal(found.values_RP[0], [1.5, 3.5, NAN, 9])
    biggest = align(runs, grid=[2, 4, 7, 9], window=2.0, reduce="max")
    np.testing.assert_array_equal(biggest.values_RP[0], [2, 4, NAN, 9])


@given(
    st.lists(st.tuples(st.integers(0, 50), st.floats(-9, 9)), min_size=2, max_size=30),
    st.integers(0, 50),
    st.sampled_from([None, 7.0]),
)
def test_nothing_later_changes_what_was_seen_before(
    rows: list[tuple[int, float]], until: int, window: float | None
) -> None:
    rows = sorted(dict(rows).items())
    early = [row for row in rows if row[0] <= until]
    grid = np.arange(0.0, until + 1)
    if not early:
        return
    whole = align({"a": tuple(zip(*rows, strict=True))}, grid=grid, window=window)
    part = align({"a": tuple(zip(*early, strict=True))}, grid=grid, window=window)
    seen = part.present_RP[0]
    np.testing.assert_allclose(whole.values_RP[0][seen], part.values_RP[0][seen], atol=1e-9)


def test_the_order_of_runs_changes_only_the_order_of_rows() -> None:
    rng = np.random.default_rng(0)
    runs = {str(i): (np.sort(rng.random(20)), rng.random(20)) for i in range(5)}
    one, other = align(runs, points=30), align(dict(reversed(runs.items())), points=30)
    np.testing.assert_array_equal(one.values_RP, other.values_RP[::-1])


def test_raw_rows_stay_reachable() -> None:
    found = align({"a": ([0, 10, 20], [1, 2, 3])}, points=2)
    assert found.raw[0].y.tolist() == [1, 2, 3]


def test_runs_without_a_common_point_are_distinguished() -> None:
    runs = {"a": ([0, 10], [1, 2]), "b": ([20, 30], [1, 2])}
    with pytest.raises(BadInput, match="no common point: one begins at 20, another has ended at 10"):
        align(runs, span="all")
    a, b = align({"a": runs["a"]}), align({"b": runs["b"]})
    assert overlap(a, b) is None
    assert overlap(a, align({"c": ([5, 30], [1, 2])})) == (5, 10)


def test_grids_reach_from_the_first_to_the_last_point() -> None:
    assert common_grid([[0, 1], [5, 9]], 4).tolist() == [0, 3, 6, 9]
    assert common_grid([[0, 6], [5, 9]], 2, span="all").tolist() == [5, 6]
    assert common_grid([[1, 100]], 3, spacing="log") == pytest.approx([1, 10, 100])
    assert common_grid([[3, 3]], 50).tolist() == [3]
    with pytest.raises(BadInput, match="above 0"):
        common_grid([[0, 1]], 3, spacing="log")


def test_a_choice_that_clashes_is_refused() -> None:
    runs = {"a": ([0, 1], [1, 2])}
    for bad in ({"crashed_as": "floor"}, {"window": 1.0, "interpolation": "linear"}, {"crashed": ["x"]}, {"window": 0}):
        with pytest.raises(BadInput):
            align(runs, **bad)


def test_tensorboards_average_by_hand() -> None:
    # average = 0.5 * average + 0.5 * value from 0, divided by 1 - 0.5 ** n
    assert ema([1.0, 2.0, 4.0], 0.5) == pytest.approx([1.0, (0.25 + 1.0) / 0.75, (0.125 + 0.5 + 2.0) / 0.875])


class Nowhere:
    """A sink that a filter can be made with."""

    accepts: frozenset[type] = frozenset()


def test_averages_equal_those_of_the_filter_that_writes_them() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(size=300).cumsum()
    values[[3, 70, 200]] = [NAN, np.inf, -np.inf]
    for mode, function in (("bias_corrected", ema), ("warm_up", warm_up_average)):
        written = Smooth(Nowhere(), "r", 0.9, mode=mode)
        expected = [written._next("r", float(v)) for v in values]
        found = function(values, 0.9)
        usable = np.isfinite(values)
        assert found[usable] == pytest.approx([e for e in expected if e is not None], rel=1e-9)
        np.testing.assert_array_equal(found[~usable], values[~usable])


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=200), st.integers(1, 199), st.floats(0, 0.999))
def test_smoothing_never_looks_ahead(values: list[float], until: int, weight: float) -> None:
    for function in (
        lambda v: ema(v, weight),
        lambda v: warm_up_average(v, weight),
    ):
        np.testing.assert_allclose(function(values)[:until], function(values[:until]), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("call", [lambda: ema([1.0], 1.0), lambda: ema([[1.0]], 0.5),
                                  lambda: warm_up_average([1.0], -0.1)])  # fmt: skip
def test_smoothing_out_of_range_is_refused(call: object) -> None:
    with pytest.raises(BadInput):
        call()  # type: ignore[operator]
