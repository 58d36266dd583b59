"""Where curves of a group bend: where its runs have rows, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rollbook import compare
from rollbook.errors import BadInput


def lines(xs: list[list[float]], crashed: int = -1) -> dict[str, compare.RunCurve]:
    return {
        f"seed {n}": compare.RunCurve(np.array(x, np.float64), np.array(x, np.float64) * (n + 1), crashed=n == crashed)
        for n, x in enumerate(xs)
    }


def test_runs_that_log_at_the_same_steps_meet_at_those_steps() -> None:
    steps = [1000.0, 2000.0, 3000.0]
    curves = compare.curves({"ppo": lines([steps] * 5), "dqn": lines([[1500.0, 3000.0]] * 5)}, key="r", axis="env_step")
    assert curves.x_P.tolist() == [1000, 1500, 2000, 3000]
    ppo, dqn = curves["ppo"], curves["dqn"]
    drawn = ppo.vertices_P
    assert curves.x_P[drawn].tolist() == steps, "no stair where only the other group was measured"
    assert ppo.band.centre_P[drawn].tolist() == [3000, 6000, 9000], "the mean of 1, 2, 3, 4 and 5 times the step"
    assert curves.x_P[dqn.vertices_P].tolist() == [1000, 1500, 3000]
    (line,) = (each for each in curves.panel().lines if each.label.startswith("ppo"))
    assert line.x.tolist() == steps


def test_more_steps_than_points_make_an_even_grid_that_keeps_the_steps_of_groups_with_few() -> None:
    rare, often = [0.0, 40.0, 100.0], list(range(101))
    curves = compare.curves({"rare": lines([rare] * 3), "often": lines([often] * 3)}, key="r", axis="x", points=21)
    assert curves.x_P.tolist() == list(range(0, 101, 5))
    assert curves.x_P[curves["rare"].vertices_P].tolist() == rare
    assert curves["often"].vertices_P.all()
    between = compare.curves(
        {"rare": lines([[0.0, 41.0, 100.0]]), "often": lines([often])}, key="r", axis="x", points=21
    )
    assert between.x_P[between["rare"].vertices_P].tolist() == [0, 41, 100]


def test_a_run_that_ends_bends_the_line_on_both_sides_of_its_end() -> None:
    curves = compare.curves(
        {"": lines([[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [0.0, 2.0]], crashed=1)}, key="r", axis="x", points=50
    )
    assert curves[""].n_P.tolist() == [2, 2, 2, 1, 1, 1]
    even = np.linspace(0, 5, 50)
    curves = compare.curves({"": lines([[0.0, 5.0], [0.0, 2.0]], crashed=1)}, key="r", axis="x", grid=even)
    n_P = curves[""].n_P
    (last,) = np.flatnonzero(np.diff(n_P))
    assert np.flatnonzero(curves[""].vertices_P).tolist() == [0, last, last + 1, 49], "not one long slope over the end"


def test_a_part_of_the_axis_takes_the_rows_beyond_its_edges_so_that_lines_cross_them() -> None:
    xs = [np.arange(0.0, 100.0, 10.0)] * 2
    assert compare.shared_grid([xs], 50, start=25, stop=55).tolist() == [20, 30, 40, 50, 60]
    assert compare.shared_grid([xs], 50, start=30).tolist() == [30, 40, 50, 60, 70, 80, 90]
    assert compare.shared_grid([xs], 3, start=25, stop=55).tolist() == [25, 40, 55]
    with pytest.raises(BadInput, match="no run has rows between 200 and 90"):
        compare.shared_grid([xs], 50, start=200)


def test_rows_without_a_finite_step_make_no_point() -> None:
    assert compare.shared_grid([[np.array([0.0, np.nan, 2.0])], [np.array([1.0, np.inf])]], 10).tolist() == [0, 1, 2]


Seeds = list[list[float]]
steps_of_runs = st.lists(
    st.lists(st.integers(0, 3000), min_size=1, max_size=40, unique=True).map(sorted), min_size=1, max_size=4
)


@given(steps_of_runs, st.lists(steps_of_runs, min_size=1, max_size=3), st.sampled_from([2, 5, 20, 200]))
@example([[6000, 12000]] * 2, [[[37 * n for n in range(549)]]], 200)
@example([[3], [0, 1]], [[[0]]], 2)  # no point at which both have a value
@example([[0, 4], [1, 2]], [[[1]]], 2)  # both have a value between two points of an even grid
def test_another_group_never_moves_the_ends_and_extremes_of_a_group(
    own: Seeds, others: list[Seeds], points: int
) -> None:
    mine = {"mine": lines(own)}
    alone = compare.curves(mine, key="r", axis="x", points=points, draws=9)["mine"]
    every = compare.curves(
        mine | {f"other {n}": lines(xs) for n, xs in enumerate(others)}, key="r", axis="x", points=points, draws=9
    )
    beside = every["mine"]

    def extremes(group: compare.GroupCurve) -> list[float]:
        return [float(np.nanmin(group.min_P)), float(np.nanmax(group.max_P))]

    def ends(group: compare.GroupCurve) -> list[float]:
        shown = group.aligned.x_P[np.isfinite(group.band.centre_P)]
        return [float(shown[0]), float(shown[-1])] if len(shown) else []

    assert extremes(beside) == extremes(alone)
    step = max(float(np.diff(alone.aligned.x_P).max(initial=0.0)), float(np.diff(beside.aligned.x_P).max(initial=0.0)))
    assert ends(beside) == pytest.approx(ends(alone), abs=step), "where all have a value, to a point of the grid"
    assert not ends(beside) or ends(beside)[1] <= max(map(max, own)), "no line goes beyond the last row of its runs"


def test_the_reason_for_no_band_stands_once_however_many_groups_have_none() -> None:
    seeds = {"two": 2, "three": 3, "four, one ended early": 4}
    groups = {name: lines([[0.0, 5.0]] * (n - 1) + [[0.0, 2.0]]) for name, n in seeds.items()}
    remarks = [remark for remark in compare.curves(groups, key="r", axis="x").panel().remarks if "No band" in remark]
    (said,) = remarks
    reasons = said.removeprefix("No band: ").split("; ")
    assert len(reasons) == len(set(reasons)) >= 2
