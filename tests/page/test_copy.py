"""A copy of the page, from a plain file server: every page of it opens and asks for no file that is not there."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from page_geometry import CONTROLS, COVERED
from page_server import file_server, record_rich
from rollbook.server.static_copy import export


@pytest.fixture(scope="module")
def copy(recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Two groups of seeds, and a run with something on every page."""
    folder = tmp_path_factory.mktemp("copy") / "copy"
    shutil.copytree(recorded, folder.with_name("runs"))
    record_rich(folder.with_name("runs"))
    export([str(folder.with_name("runs"))], folder)
    with file_server(folder) as address:
        yield address


def test_the_charts_of_a_copy_are_drawn_and_it_says_that_it_is_one(copy: str, page: Any) -> None:
    page.open(copy).drawn(2)
    assert "a copy of" in page.tab.inner_text("header")
    assert page.errors == []


@pytest.mark.parametrize("name", ["compare", "episodes", "samples", "rollouts", "timings", "health"])
def test_every_page_of_a_copy_opens(name: str, copy: str, page: Any) -> None:
    missing: list[str] = []
    page.tab.on("response", lambda answer: answer.status >= 400 and missing.append(answer.url))
    page.open(copy, f"#/{name}")
    page.tab.wait_for_function("!document.querySelector('main [aria-busy=true]')")
    shown = page.tab.inner_text("main").strip()
    assert shown
    assert "needs the live page" not in shown  # nobody has asked for anything yet
    assert (page.errors, missing) == ([], [])


def test_the_comparison_of_a_copy_has_its_curves(copy: str, page: Any) -> None:
    page.open(copy, "#/compare").drawn(1)
    page.tab.wait_for_selector(".plotarea canvas")
    assert "none of the drawn runs has rows here" not in page.tab.inner_text("main")


def test_an_episode_without_a_film_shows_its_row_in_a_copy(copy: str, page: Any) -> None:
    page.open(copy, "#/episodes?episode=e50")
    page.tab.wait_for_selector(".facts")
    assert "e50" in page.tab.inner_text("main")
    assert "needs the live page" not in page.tab.inner_text("main")


def test_no_control_of_a_copy_is_cut_or_covered_at_any_width(copy: str, page: Any) -> None:
    hidden = []
    for name in ("runs", "compare", "episodes", "rollouts"):
        page.open(copy, f"#/{name}")
        page.tab.wait_for_function("!document.querySelector('main [aria-busy=true]')")
        for width in (1440, 1280, 1120, 1024, 900, 390):
            page.tab.set_viewport_size({"width": width, "height": 800})
            hidden += [(name, width, one) for one in page.tab.evaluate(COVERED, CONTROLS)]
    assert hidden == []
