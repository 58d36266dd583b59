"""A figure of the benchmarks' page names its commit, and is not called met once its rooms changed."""

from __future__ import annotations

import re

import pytest
from benchmarks.__main__ import TABLE
from benchmarks.results import RESULTS, ROOMS, ROOT, changed_since, code_of, page, row_of, rows_in, wrongly_met
from benchmarks.rows import Line

LINES = rows_in(RESULTS.read_text("utf-8"))


def test_each_line_belongs_to_a_row_that_a_command_measures_and_names_its_commit() -> None:
    assert LINES
    assert set(ROOMS) == set(TABLE)
    for cells in LINES:
        assert len(cells) == 8, cells
        assert row_of(cells[0]) in TABLE, cells
        assert re.fullmatch(r"[0-9a-f]{7,12}\+?", cells[-1]), cells


@pytest.mark.parametrize(("ours", "theirs"), [(3.0, -1.0), (-3.0, 1.0), (3.0, 0.0)])
def test_a_cost_that_noise_made_negative_meets_no_goal(ours: float, theirs: float) -> None:
    assert Line(4, "CPU a point", ours, "ns", "csv", theirs, 1 / 5).met is False
    assert not [cells for cells in LINES if re.search(r" -\d", cells[3]) or cells[4].startswith("-")]


def test_the_rooms_of_a_row_are_there() -> None:
    for rooms in ROOMS.values():
        for room in rooms:
            assert (ROOT / "src" / "rollbook" / room / "__init__.py").is_file() or room == "dashboard", room


def test_no_line_is_called_met_that_was_measured_before_its_rooms_changed() -> None:
    """`python -m benchmarks --mark` marks such lines; `make bench` measures them again."""
    assert wrongly_met(RESULTS.read_text("utf-8")) == []


@pytest.mark.parametrize("state", ["met", "met; on a busy machine", "MISSED", ""])
def test_a_line_whose_rooms_changed_is_marked_and_reported(state: str) -> None:
    old = page([["1", "log", "2 us", "", "", "<= 2.5 us", state, "abc1234"]], "")
    assert rows_in(page([], old, lambda commit, rooms: False)) == rows_in(old)
    marked = page([], old, lambda commit, rooms: commit == "abc1234")
    (cells,) = rows_in(marked)
    assert cells[-2] == state.replace("met", "older")
    assert wrongly_met(old, lambda commit, rooms: True) == (["1 log"] if state.startswith("met") else [])
    assert wrongly_met(marked, lambda commit, rooms: True) == []


def test_new_lines_take_the_place_of_those_of_their_row_and_others_stay() -> None:
    line = ["", "", "", "", "met", "abc1234"]
    old = page([["2", "b", *line], ["10", "c", *line], ["D1", "d", *line], ["D2", "e", *line]], "")
    new = page([["D1", "new", *line], ["1", "a", *line]], old, lambda commit, rooms: None)
    assert [cells[:2] for cells in rows_in(new)] == [["1", "a"], ["2", "b"], ["10", "c"], ["D1", "new"]]


def test_what_git_does_not_know_is_not_called_changed() -> None:
    assert changed_since("0000000", ["journal"]) is None


def test_other_words_about_the_same_code_make_no_row_older() -> None:
    same = ('"""A."""\ndef f():\n    return 1\n', '"""B."""\ndef f():\n    """C."""\n    return 1  # one\n')
    assert code_of(same[0]) == code_of(same[1]) != code_of(same[0].replace("1", "2"))
