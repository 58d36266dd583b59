"""An axis is divided into stretches in one way: a row on an edge is in the same point, whoever reads it and how."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fake_writer import FakeWriter, make_run
from hypothesis import given
from hypothesis import strategies as st

from rollbook.book.book import Book
from rollbook.book.series import Buckets, reduce_points, reduced_rows, starts_between, stretch_edges, stretches

START = 1_700_000_000 * 10**9


@st.composite
def axes_with_rows_on_edges(draw: st.DrawFn) -> tuple[np.ndarray, int]:
    """(readings in order, points), with readings that lie on the edges between the points, and beside them."""
    low = draw(st.sampled_from([0, 7, START]))
    span = draw(st.integers(2, 10**6 if low < START else 10**9))
    points = draw(st.integers(1, 60))
    edges = low + span * np.arange(1, points) / points
    near = draw(st.lists(st.tuples(st.integers(0, max(0, points - 2)), st.integers(-2, 2)), max_size=30))
    inner = [int(edges[place]) + beside for place, beside in near if points > 1]
    return np.unique(np.clip(np.array([low, *inner, low + span], dtype=np.int64), low, low + span)), points


@given(case=axes_with_rows_on_edges())
def test_a_row_on_an_edge_is_in_the_same_point_however_it_is_reduced(case: tuple[np.ndarray, int]) -> None:
    x, points = case
    values = np.arange(len(x), dtype=np.float64) ** 2
    at_once = reduced_rows(x, {"a": values}, stretches(x, points, None, None), "x")["a"]
    edges = stretch_edges(float(x[0]), float(x[-1]), points, integer=True)
    reduced_before = Buckets.of_stretches(x, values, starts_between(x, edges))
    shuffled = np.random.default_rng(0).permutation(len(x))
    for buckets in (
        Buckets.of_rows(x, values),
        Buckets.of_rows(x[shuffled], values[shuffled]),
        reduced_before,
    ):
        again = reduce_points(buckets, points, "x", None, None)
        for name in ("x", "mean", "min", "max", "count"):
            np.testing.assert_array_equal(getattr(again, name), getattr(at_once, name), err_msg=name)


@pytest.mark.parametrize("x", ["time", "env_step"])
@pytest.mark.parametrize("points", [2, 3, 7, 10, 49])
@pytest.mark.parametrize("sealed", [False, True])
def test_keys_read_together_are_divided_like_one_read_alone(tmp_path: Path, x: str, points: int, sealed: bool) -> None:
    run = make_run(tmp_path)
    writer = FakeWriter(run, "w1", start=1.7e9)
    lane = writer.lane()
    both, late = lane.stream("a", "b"), lane.stream("c")
    for row in range(200):  # the rows of a fake writer are equally far from each other: many lie on edges
        both.log(float(row), -float(row), env_step=3 * row)
        if row % 7 == 3:
            late.log(row / 3, env_step=3 * row)
    if sealed:
        writer.close()
    book = Book(run)
    for start, stop in ((None, None), (1.7e9, 1.7e9 + 0.1) if x == "time" else (30, 300)):
        batch = book.batch(["a", "b", "c"], x=x, points=points, start=start, stop=stop)
        assert sorted(batch) == ["a", "b", "c"]
        for key, series in batch.items():
            alone = book.series(key, x=x, points=points, start=start, stop=stop)
            for name in ("x", "mean", "min", "max", "count"):
                np.testing.assert_array_equal(getattr(series, name), getattr(alone, name), err_msg=f"{key} {name}")
