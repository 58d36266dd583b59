"""Each figure of the benchmarks' page belongs to a row that a command measures, and names its commit."""

from __future__ import annotations

import re

import pytest
from benchmarks.__main__ import TABLE
from benchmarks.results import RESULTS, page, row_of, rows_in
from benchmarks.rows import Line

LINES = rows_in(RESULTS.read_text("utf-8"))


def test_each_line_belongs_to_a_row_that_a_command_measures_and_names_its_commit() -> None:
    assert LINES
    assert {row_of(cells[0]) for cells in LINES} == set(TABLE)
    for cells in LINES:
        assert len(cells) == 8, cells
        assert row_of(cells[0]) in TABLE, cells
        assert re.fullmatch(r"[0-9a-f]{7,12}\+?", cells[-1]), cells


@pytest.mark.parametrize(("ours", "theirs"), [(3.0, -1.0), (-3.0, 1.0), (3.0, 0.0)])
def test_a_cost_that_noise_made_negative_meets_no_goal(ours: float, theirs: float) -> None:
    assert Line(4, "CPU a point", ours, "ns", "csv", theirs, 1 / 5).met is False
    assert not [cells for cells in LINES if re.search(r" -\d", cells[3]) or cells[4].startswith("-")]


def test_new_lines_take_the_place_of_those_of_their_row_and_others_stay() -> None:
    line = ["", "", "", "", "met", "abc1234"]
    old = page([["2", "b", *line], ["10", "c", *line], ["D1", "d", *line], ["D2", "e", *line]], "")
    new = page([["D1", "new", *line], ["1", "a", *line]], old)
    assert [cells[:2] for cells in rows_in(new)] == [["1", "a"], ["2", "b"], ["10", "c"], ["D1", "new"]]
