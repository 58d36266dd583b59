"""Many keys: what is out of sight costs nothing, and is there when one comes to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollbook

KEYS = 900
MADE = "() => document.querySelectorAll('#charts .plotarea').length"
LISTED = "() => document.querySelectorAll('#charts .slot').length"


@pytest.fixture(scope="module")
def layers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs with a norm for each of very many layers."""
    folder = tmp_path_factory.mktemp("layers") / "runs"
    steps = np.arange(30)
    for seed in range(2):
        norms = {f"grad_norm/layer_{i}": steps * (seed + 1.0) + i for i in range(KEYS)}
        with rollbook.init("p", "ppo", seed=seed, dir=folder, sinks=[], keeper="inline", rules=()) as run:
            run.log_many({"train/return": steps * 1.0, **norms}, env_step=steps)
    return folder


def test_a_chart_is_made_when_it_comes_near_the_screen_and_follows_the_others_then(
    page: Any, serve: Any, layers: Path
) -> None:
    page.open(serve(layers), "#/runs?g=none&z=5_20").drawn(2).settled()
    page.tab.get_by_role("button", name="Show 100 more").click()
    page.tab.wait_for_function("() => document.querySelectorAll('#charts .slot').length > 120")
    page.settled()
    assert page.tab.evaluate(MADE) < 40
    titles = page.tab.locator("#charts .section:last-child .title").all_inner_texts()
    layers_shown = [int(title.split("layer_")[-1]) for title in titles]
    assert layers_shown == sorted(layers_shown), "2 before 10"
    last = page.tab.locator("[data-key='grad_norm/layer_110']")
    assert last.locator(".plotarea").count() == 0
    last.scroll_into_view_if_needed()
    last.locator(".plotarea[data-drawn]").wait_for()
    page.settled()
    assert last.locator(".plotarea").get_attribute("data-drawn").split()[:2] == ["5", "20"], "the part that all show"
    assert page.errors == []


def test_a_search_among_very_many_keys_finds_by_words_and_leaves_the_view(page: Any, serve: Any, layers: Path) -> None:
    page.open(serve(layers), "#/runs?g=none").drawn(2).settled()
    before = page.tab.evaluate("() => location.hash")
    field = page.tab.locator("#find-key")
    field.click()
    page.tab.keyboard.type("norm layer_89?")
    page.tab.wait_for_function(f"() => ({LISTED})() === 10")
    page.drawn(3)
    page.tab.keyboard.press("Escape")
    page.tab.wait_for_function(f"() => ({LISTED})() > 20")
    assert page.settled().tab.evaluate("() => location.hash") == before
    assert page.errors == []


def test_a_chart_that_was_out_of_sight_shows_the_cursor_where_the_others_have_it(
    page: Any, serve: Any, layers: Path
) -> None:
    page.open(serve(layers), "#/runs?g=none").drawn(2).settled()
    pane = page.tab.locator("#charts .scroll")
    pane.evaluate("pane => pane.scrollTo(0, 600)")
    page.drawn(4).settled()
    low = page.tab.locator("[data-key='grad_norm/layer_9'] .plotarea")
    low.locator("canvas").first.wait_for(state="attached")
    pane.evaluate("pane => pane.scrollTo(0, 0)")
    page.settled()
    page.tab.locator(".slot.big .plotarea").first.focus()
    for _ in range(30):
        page.tab.keyboard.press("ArrowRight")
    at = "() => document.querySelector('.slot.big .cursorline').style.transform"
    page.tab.wait_for_function(f"() => ({at})() !== ''")
    pane.evaluate("pane => pane.scrollTo(0, 600)")
    low.locator(".cursorline:not([hidden])").wait_for(state="attached")
    assert page.errors == []
