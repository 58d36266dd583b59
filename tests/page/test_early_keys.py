"""A key that is pressed before the answer it is for has come acts when that is there, and never somewhere else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_rollouts import record_agents

TURN = "() => new URLSearchParams(location.hash.split('?')[1] ?? '').get('turn')"


class Held:
    """Answers to some questions, held back until they are let go."""

    def __init__(self, tab: Any, *where: str) -> None:
        self._routes: list[Any] = []
        self._is_free = False
        for pattern in where:
            tab.route(pattern, self._came)

    def _came(self, route: Any) -> None:
        if self._is_free:
            route.continue_()
        else:
            self._routes.append(route)

    def asked(self, page: Any) -> None:
        for _ in range(300):
            if self._routes:
                return
            page.let_pass(50)
        raise AssertionError("nothing was asked")

    def let_go(self) -> None:
        self._is_free = True
        for route in self._routes:
            route.continue_()


@pytest.fixture(scope="module")
def talks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("talks") / "runs"
    record_agents(folder, 3)
    return folder


def test_turns_are_counted_from_keys_before_the_rollout_is_there(
    page: Any, serve: Callable[[Path], str], talks: Path
) -> None:
    held = Held(page.tab, "**/api/runs/*/rollouts/*")
    page.open(serve(talks), "#/rollouts")
    held.asked(page)
    for key in ("n", "z", "n", "n"):  # z means nothing anywhere
        page.tab.keyboard.press(key)
    assert page.tab.evaluate(TURN) is None
    held.let_go()
    page.tab.wait_for_function(f"() => ({TURN})() === '2'")
    page.settled()
    page.tab.keyboard.press("p")
    page.tab.wait_for_function(f"() => ({TURN})() === '1'")
    assert page.errors == []


def test_the_row_that_j_and_enter_meant_before_the_table_came_is_opened(
    page: Any, serve: Callable[[Path], str], recorded: Path
) -> None:
    held = Held(page.tab, "**/api/runs")
    page.open(serve(recorded), "#/runs?g=none")
    held.asked(page)
    for key in ("j", "j", "Enter"):
        page.tab.keyboard.press(key)
    held.let_go()
    page.tab.wait_for_function("() => location.hash.startsWith('#/run/')")
    opened = page.settled().tab.evaluate("() => location.hash.split('?')[0]")
    page.tab.go_back()
    second = page.settled().tab.locator(".grid.runs a.runname").nth(1).get_attribute("href")
    assert opened == second
    assert page.errors == []


def test_enter_in_the_search_waits_for_what_it_searches(
    page: Any, serve: Callable[[Path], str], recorded: Path
) -> None:
    page.open(serve(recorded), "#/runs?g=none").drawn(1).settled()
    held = Held(page.tab, "**/api/**")
    page.tab.keyboard.press("/")
    page.tab.keyboard.type("loss")
    page.tab.keyboard.press("Enter")
    held.asked(page)
    assert page.tab.get_by_role("combobox").input_value() == "loss"
    held.let_go()
    page.tab.locator(".found-chart [data-key='update/loss'] .plotarea[data-drawn]").wait_for()
    assert page.errors == []


@pytest.mark.parametrize("left_by", ["Escape", "click", "page"])
def test_a_key_for_what_was_left_meanwhile_does_nothing(
    page: Any, serve: Callable[[Path], str], talks: Path, left_by: str
) -> None:
    held = Held(page.tab, "**/api/runs/*/rollouts/*")
    page.open(serve(talks), "#/rollouts")
    held.asked(page)
    page.tab.keyboard.press("n")
    if left_by == "page":
        page.tab.evaluate("() => { location.hash = '#/episodes'; }")
    elif left_by == "click":
        page.tab.locator(".context h1").click()
    else:
        page.tab.keyboard.press("Escape")
    held.let_go()
    page.settled()
    assert page.tab.evaluate(TURN) is None
    assert page.errors == []
