"""Each figure of the benchmarks page belongs to a row that a command measures; a goal is met where all turns say so."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.__main__ import TABLE, Table
from benchmarks.lines import Context, Line, NotMeasured, spread
from benchmarks.results import RESULTS, page, row_of, rows_in
from click.testing import CliRunner

from benchmarks import __main__ as program
from benchmarks import harness
from benchmarks import page as the_page
from rollbook.cli.app import app

LINES = rows_in(RESULTS.read_text("utf-8"))


def test_each_line_belongs_to_a_row_that_a_command_measures() -> None:
    assert LINES
    assert {row_of(cells[0]) for cells in LINES} <= set(TABLE)


@pytest.mark.parametrize(("ours", "theirs"), [(3.0, -1.0), (-3.0, 1.0), (3.0, 0.0)])
def test_a_cost_that_noise_made_negative_meets_no_goal(ours: float, theirs: float) -> None:
    line = Line(4, "CPU a point", ours, "ns", "csv", theirs, 1 / 5)
    assert line.ratios == [math.inf]
    assert line.met is False


@pytest.mark.parametrize(
    ("ours", "theirs", "state", "ratio"),
    [
        ([1.0, 2.0, 4.0], [12.0, 22.0, 48.0], "met", "1/12 (1/12 to 1/11)"),
        ([1.0, 2.0, 4.0], [12.0, 18.0, 48.0], "undecided", "1/12 (1/12 to 1/9)"),
        ([1.0, 2.0, 4.0], [9.0, 18.0, 32.0], "MISSED", "1/9 (1/9 to 1/8)"),
        (3.0, 33.0, "met", "1/11"),
    ],
)
def test_figures_of_one_turn_are_compared_and_a_goal_inside_their_spread_is_undecided(
    ours: float | list[float], theirs: float | list[float], state: str, ratio: str
) -> None:
    cells = Line(1, "log", ours, "us", "csv", theirs, 1 / 10).cells()
    assert cells[4:] == [ratio, "<= 1/10", state]


def test_the_spread_holds_the_median_with_nine_tenths() -> None:
    assert spread([3, 1, 2, 5, 4]) == (1, 5), "1 - 2 / 2^5 = 0.94, and between the 2nd and 4th 0.63"
    assert spread(list(range(8))) == (1, 6), "1 - 2 x 9 / 2^8 = 0.93"
    assert spread([7]) == (7, 7)


def test_the_page_names_the_one_commit_of_all_its_lines() -> None:
    text = page([["1", "a", "2 us", "", "", "", "met"]], "abc1234", {})
    assert "Measured at abc1234 with CPython" in text
    assert rows_in(text) == [["1", "a", "2 us", "", "", "", "met"]]


def test_a_row_that_fails_hangs_or_lacks_something_is_named_and_keeps_its_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(_: Context) -> Iterator[Line]:
        yield Line("a", "measured", 1.0, "us")
        raise ValueError("| no such\nfile |")

    def hangs(_: Context) -> Iterator[Line]:
        threading.Event().wait()
        yield Line("b", "never", 1.0, "us")

    def lacks(_: Context) -> Iterator[Line]:
        raise NotMeasured("a browser")
        yield

    def works(_: Context) -> Iterator[Line]:
        yield Line("d", "measured", 2.0, "us")

    rows = {"a": fails, "b": hangs, "c": lacks, "d": works}
    monkeypatch.setattr(program, "TABLE", rows)
    monkeypatch.setattr(harness, "end_children", lambda: None)
    table = Table(dict.fromkeys([*rows, "e"], "not reached"))
    for name in rows:
        program._measure(name, Context("", [], 1), table, 0.05 if name == "b" else 600)
    program._measure("e", Context("", [], 1), table, -1)
    assert [line.number for line in table.lines] == ["a", "d"]
    assert {name: why.split(" ")[0] for name, why in table.missing.items()} == {
        "a": "ValueError:",
        "b": "TimeoutError:",
        "c": "it",
        "e": "the",
    }
    text = page([line.cells() for line in table.lines], "abc1234", table.missing)
    assert "Not measured: row a, ValueError: | no such file |." in text
    assert [cells[0] for cells in rows_in(text)] == ["a", "d"]


def test_a_dry_run_measures_a_hundredth() -> None:
    assert [Context("", [], 1, dry=dry).size(n) for dry in (True, False) for n in (20_000, 5)] == [200, 1, 20_000, 5]


def test_the_page_is_measured_by_options_that_the_command_has(tmp_path: Path) -> None:
    words = the_page.ui_words(tmp_path, 0)
    shown = CliRunner().invoke(app, ["ui", "--help"]).output.split()
    assert {word for word in words if word.startswith("--")} <= set(shown)


def test_each_figure_of_the_docs_names_a_program_that_prints_it_and_a_commit() -> None:
    figures = (RESULTS.parent.parent / "docs" / "figures.md").read_text("utf-8")
    rows = [line.strip("|").split("|") for line in figures.splitlines() if re.match(r"\| (?!what |---)", line)]
    assert rows
    for *_, named, at in rows:
        words = named.strip(" `").split()
        assert words[0] in program.PROGRAMS or words[0].startswith("ROLLBOOK_"), named
        assert re.fullmatch("[0-9a-f]{8}", at.strip()), at
