"""What is taken out of the page as a file, and what narrows the table."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

import rollbook
from page_server import file_server
from rollbook.server.static_copy import export

RUNS = "Table of 3 runs (CSV)"


def taken(page: Any, *words: str) -> list[dict[str, str]]:
    """The rows of a file that choices of an open menu save."""
    with page.tab.expect_download() as saved:
        for word in words:
            page.tab.get_by_role("button", name=word).click()
    with open(saved.value.path(), encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_table_is_a_file_of_its_columns_of_what_fits_in_its_order(page: Any, serve: Any, recorded: Path) -> None:
    where = "#/runs?g=none&cols=spark~status~return~config.lr~progress&f=lr+>+5e-4&sort=-seed"
    page.open(serve(recorded), where).settled()
    page.tab.locator("#edit-drawn").click()
    rows = taken(page, RUNS)
    books = {book.id: book for book in rollbook.open(recorded) if book.config["lr"] > 5e-4}
    assert [row["seed"] for row in rows] == ["2", "1", "0"]
    assert [*rows[0]] == [*("id", "project", "name", "seed", "status", "last:train/return", "config.lr", "progress")]
    for row in rows:
        book = books.pop(row["id"])
        assert (row["status"], float(row["config.lr"])) == (book.status, 1e-3)
        assert float(row["last:train/return"]) == pytest.approx(book.summary["train/return.last"])
    assert page.errors == []


def test_folded_runs_are_a_file_of_groups_with_the_numbers_of_the_command_line(
    page: Any, serve: Any, recorded: Path
) -> None:
    page.open(serve(recorded), "#/runs?cols=last:train/return~config.lr").settled()
    page.tab.locator("#edit-drawn").click()
    rows = taken(page, "Table of the groups (CSV)")
    groups = {one["group"]: one for one in rollbook.open(recorded).groups("auto", {"train/return": "last"})}
    assert {row["group"]: row["runs"] for row in rows} == dict.fromkeys(groups, "3")
    for row in rows:
        numbers = groups[row["group"]]["train/return"]
        for part, head in (("centre", ""), ("low", " low"), ("high", " high"), ("n", " n")):
            said = row[f"last:train/return{head}"]
            assert (float(said) if said else None) == pytest.approx(numbers[part]), "three seeds have no interval"
    assert {float(row["config.lr"]) for row in rows} == {3e-4, 1e-3}
    assert page.errors == []


def test_a_copy_saves_its_table_and_charts_too(page: Any, recorded: Path, tmp_path: Path) -> None:
    export([str(recorded)], tmp_path / "copy")
    with file_server(tmp_path / "copy") as address:
        page.open(address, "#/runs").drawn(1).settled()
        page.tab.locator("#edit-drawn").click()
        assert page.tab.get_by_label("Tags of").count() == 0, "a copy is not edited"
        assert len(taken(page, "Table of 6 runs (CSV)")) == 6
        page.tab.get_by_role("button", name="Axis, smoothing, files of train/return").click(force=True)
        assert {row["line"] for row in taken(page, "Numbers as drawn (CSV)")} == {"ppo lr 3e-4", "ppo lr 0.001"}
    assert page.errors == []


def test_the_numbers_of_a_chart_are_those_that_are_drawn(page: Any, serve: Any, recorded: Path) -> None:
    pins = 'train/return~="train/return" / "update/loss"'
    page.open(serve(recorded), f"#/runs?pin={pins}&s=0.5").drawn(2).settled()
    page.tab.get_by_role("button", name="Axis, smoothing, files of train/return").click(force=True)
    rows = taken(page, "Numbers as drawn (CSV)")
    assert [*rows[0]] == ["line", "env_step", "value", "low", "high", "smoothed", "seeds"]
    for curve in rollbook.open(recorded).curves("train/return", by="auto").groups:
        mine = [row for row in rows if row["line"] == curve.label]
        (last,) = [row for row in mine if float(row["env_step"]) == 1_499]
        assert float(last["value"]) == pytest.approx(curve.band.centre_P[-1], rel=1e-5)
        assert last["seeds"] == "3"
    page.tab.keyboard.press("Escape")
    page.tab.get_by_role("button", name='Axis, smoothing, files of ="train/return" / "update/loss"').click(force=True)
    rows = taken(page, "Numbers as drawn (CSV)")
    assert len({row["line"] for row in rows}) == 2
    assert page.errors == []


def test_a_value_in_the_table_leaves_only_the_runs_that_have_it(page: Any, serve: Any, recorded: Path) -> None:
    folder = recorded
    page.open(serve(folder), "#/runs?g=none&cols=config.lr~seed&f=ppo").settled()
    page.tab.locator(".grid-body .only", has_text="3e-4").first.click()
    page.tab.wait_for_function("() => document.querySelectorAll('.grid-body .name').length === 3")
    assert page.tab.get_by_label("Filter runs").input_value() == "config.lr = 3e-4"
    assert page.tab.get_by_role("button", name="Runs named ppo").count() == 1, "the words are kept"
    page.tab.go_back()
    page.tab.wait_for_function("() => document.querySelectorAll('.grid-body .name').length === 6")
    page.tab.keyboard.press("j")  # by keys: the menu of the row that they are on
    page.tab.locator(".grid-row.active .more").focus()
    page.tab.keyboard.press("Enter")
    page.tab.get_by_role("button", name="Only lr = 0.001").focus()
    page.tab.keyboard.press("Enter")
    page.tab.wait_for_function("() => document.querySelectorAll('.grid-body .name').length === 3")
    assert "config.lr = 0.001" in page.tab.get_by_label("Filter runs").input_value()
    assert page.errors == []


def test_a_tag_in_the_table_leaves_only_the_runs_that_have_it(page: Any, serve: Any, tmp_path: Path) -> None:
    for seed in range(4):
        tags = ["it's paper"] if seed < 2 else ["draft"]
        with rollbook.init(
            "p", "ppo", seed=seed, dir=tmp_path / "runs", sinks=[], keeper="inline", rules=(), tags=tags
        ) as run:
            run.log({"train/return": float(seed)}, env_step=1)
    address = serve(tmp_path / "runs")
    page.open(address, "#/runs?g=group&cols=tags").settled()
    assert "[" not in page.tab.inner_text(".grid-body"), "tags of a group look as those of a run"
    page.open(address, "#/runs?g=none&cols=tags").settled()
    page.tab.locator(".grid-body .only", has_text="it's paper").first.click()
    page.tab.wait_for_function("() => document.querySelectorAll('.grid-body .name').length === 2")
    assert page.errors == []


def test_words_that_only_a_setting_has_lead_to_its_condition(page: Any, serve: Any, recorded: Path) -> None:
    page.open(serve(recorded), "#/runs?g=none").settled()
    page.tab.get_by_label("Filter runs").fill("3e-4")
    page.tab.get_by_role("button", name="Runs with lr = 3e-4").click()
    page.tab.wait_for_function("() => document.querySelectorAll('.grid-body .name').length === 3")
    assert page.tab.get_by_label("Filter runs").input_value() == "config.lr = 3e-4"
    assert page.errors == []


def test_enter_picks_the_first_that_was_found_in_a_menu(page: Any, serve: Any, recorded: Path) -> None:
    page.open(serve(recorded), "#/runs?g=none").settled()
    page.tab.locator("#pick-columns").click()
    page.tab.get_by_label("Find a column").fill("width")
    page.tab.keyboard.press("Enter")
    page.tab.wait_for_selector("[data-column='config.net.width']")
    page.tab.keyboard.press("Escape")
    assert page.tab.evaluate("() => document.querySelector(':popover-open')") is None
    assert page.errors == []
