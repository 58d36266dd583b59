"""The page of rollouts in a real browser: a conversation, moved through by keys; hostile texts stay texts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent_rollouts import record_agents


def test_rollouts_are_read_by_keys_and_hostile_texts_stay_texts(
    page: Any, serve: Callable[[Path], str], tmp_path: Path
) -> None:
    record_agents(tmp_path / "runs", 3)
    tab = page.open(serve(tmp_path / "runs"), "#/rollouts").tab
    tab.wait_for_selector(".turn")
    assert tab.locator(".turn script, .turn img, .grid img").count() == 0
    assert "⟨U+202E⟩" in tab.inner_text('[aria-label="The rollout"]')
    first = tab.inner_text('[aria-label="One rollout"] h2')
    tab.keyboard.press("j")
    tab.keyboard.press("j")
    tab.wait_for_function(
        "first => document.querySelector('[aria-label=\"One rollout\"] h2').innerText !== first", arg=first
    )
    tab.wait_for_selector(".turn.trained")
    assert tab.locator("details[open]").count() <= tab.locator(".turn.tool .bad").count()
    tab.keyboard.press("o")
    tab.wait_for_selector("details.calls[open]")
    tab.keyboard.press("n")
    tab.wait_for_selector(".turn.now")
    buttons = tab.locator(".bar.fates button")
    for place in range(buttons.count()):  # each leaves as many rollouts as it says
        many = buttons.nth(place).locator("b").inner_text()
        buttons.nth(place).click()
        tab.wait_for_function(
            "many => document.querySelector('.pane .foot b').innerText === many && "
            "document.querySelectorAll('.bar.fates [aria-pressed=true]').length === 1",
            arg=many,
        )
    assert buttons.count() > 2
    tab.click("text=Fates")
    tab.wait_for_selector("canvas")
    assert "of 24 rollouts taught something" in tab.inner_text("#main")
    tab.click("text=Prompts")
    tab.locator(".grid-row", has_text="⟨U+202E⟩").click()
    tab.wait_for_selector('[aria-label="The prompt"] >> text=⟨U+202E⟩')
    tab.wait_for_selector('[aria-label="Its best attempts"] a')
    assert tab.locator(".grid-row.chosen", has_text="⟨U+202E⟩").count() == 1
    assert tab.locator("#main script, #main img").count() == 0
    assert page.errors == []


def test_two_runs_are_compared_on_the_prompts_that_both_have(
    page: Any, serve: Callable[[Path], str], tmp_path: Path
) -> None:
    first, second = (record_agents(tmp_path / "runs", updates) for updates in (3, 5))
    tab = page.open(serve(tmp_path / "runs"), f"#/rollouts?run={first}&tab=prompts").tab
    tab.wait_for_selector('[aria-label="Prompts of both runs"] td')  # with the newest other run of its project at first
    assert tab.input_value('[aria-label="Two runs on the same prompts"] select') == second
    assert "of 4 prompts" in tab.inner_text("#main")
    assert tab.locator("#main script, #main img").count() == 0
    tab.locator('[aria-label="Prompts of both runs"] a').nth(1).focus()
    tab.keyboard.press("Enter")
    tab.wait_for_selector(".turn")
    assert page.errors == []
