"""Charts as one wants them: several keys in one, expressions, an axis and a smoothing of one's own, searches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rollbook


@pytest.fixture(scope="module")
def gaps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four runs whose training is 100 above their test, whatever the step."""
    folder = tmp_path_factory.mktemp("gaps") / "runs"
    for algo in ("ppo", "dqn"):
        for seed in (1, 2):
            with rollbook.init(
                "p", algo, seed=seed, config={"lr": 1e-3 * seed}, dir=folder, sinks=[], keeper="inline", rules=()
            ) as run:
                for step in range(100):
                    values = {
                        "train/return": 100.0 + step,
                        "test/return": float(step),
                        "loss/value": 10.0 ** (step % 4),
                    }
                    run.log({**values, "loss/policy": 2.0, "update/kl": 0.1}, env_step=step)
    return folder


def drawn(page: Any, key: str) -> list[float]:
    """x from, x to, y from, y to, of the chart of a key."""
    chart = page.tab.locator(f"[data-key='{key}'] .plotarea").first
    chart.scroll_into_view_if_needed()
    page.settled()
    return [float(part) for part in chart.get_attribute("data-drawn").split()[:4]]


def test_an_expression_over_keys_is_a_chart_that_a_link_and_a_board_keep(page: Any, serve: Any, gaps: Path) -> None:
    page.open(serve(gaps), "#/runs?g=none").drawn(2).settled()
    page.tab.keyboard.press("a")
    field = page.tab.get_by_label("Keys and signs")
    field.fill("train/return - tset/return")
    field.press("Enter")
    page.tab.get_by_text("No drawn run has a key “tset/return”").wait_for()
    field.fill("train/return - test/return")
    field.press("Enter")
    key = '="train/return" - "test/return"'
    page.tab.locator(f"[data-key='{key}']").wait_for()
    _, _, low, high = drawn(page, key)
    assert low <= 100 <= high, "the difference is 100 at every step"
    assert high - low < 50
    page.tab.locator("#pick-board").click()
    page.tab.get_by_label("name").fill("gap")
    page.tab.get_by_role("button", name="Save this view").click()
    page.tab.wait_for_function("() => location.hash.includes('board=gap')")
    page.tab.evaluate("() => { location.hash = '#/runs?g=none'; }")
    page.tab.locator(f"[data-key='{key}']").wait_for(state="detached")
    page.tab.locator("#pick-board").click()
    page.tab.locator(".choice:visible").filter(has_text="gap").click()
    page.tab.locator(f"[data-key='{key}']").wait_for()
    page.tab.reload()
    assert drawn(page.settled(), key)[2:] == [low, high]
    page.tab.get_by_role("button", name=f"Unpin {key}").click(force=True)
    page.tab.locator(f"[data-key='{key}']").wait_for(state="detached")
    assert page.errors == []


def test_two_keys_in_one_chart_have_a_line_each_and_runs_and_keys_are_named_once(
    page: Any, serve: Any, gaps: Path
) -> None:
    page.open(serve(gaps), "#/runs?pin=" + '="train/return",+"test/return"~loss/policy&full=').drawn(1).settled()
    key = '="train/return", "test/return"'
    chart = page.tab.locator(f"[data-key='{key}']")
    runs = page.tab.locator(".square[aria-pressed=true]").count()
    assert chart.locator(".read:first-of-type em").count() == 2 * runs
    names = [one for one in chart.locator(".read span:not(.twin) em").all_inner_texts() if one]
    assert len(set(names)) == len(names) == runs + 2
    assert names[-2:] == ["train", "test"]
    dashes = [one.get_attribute("stroke-dasharray") for one in chart.locator(".read path").all()]
    assert len(set(dashes)) == 2
    assert drawn(page, key)[2] <= 0
    assert drawn(page, key)[3] >= 199
    page.tab.locator(f"[data-key='{key}'] .plotarea").click()
    page.tab.wait_for_function("() => location.hash.includes('cause=')")
    assert page.errors == []


def test_one_chart_has_a_scale_a_range_and_a_smoothing_of_its_own(page: Any, serve: Any, gaps: Path) -> None:
    page.open(serve(gaps), "#/runs?g=none&pin=loss/value~train/return").drawn(2).settled()
    other = drawn(page, "train/return")

    def menu() -> None:
        page.tab.get_by_role("button", name="Axis, smoothing, files of loss/value").click(force=True)

    menu()
    page.tab.locator(".choice:visible").filter(has_text="log scale").click()
    page.tab.wait_for_function("() => location.hash.includes('own=')")
    page.tab.keyboard.press("Escape")
    assert drawn(page, "loss/value")[2] > 0, "a log scale begins above 0"
    menu()
    page.tab.get_by_label("loss/value, y from").fill("0.5")
    page.tab.get_by_label("loss/value, y from").press("Tab")
    page.tab.get_by_label("loss/value, y to").fill("200")
    page.tab.get_by_label("loss/value, y to").press("Tab")
    page.tab.get_by_label("loss/value, kind of smoothing").select_option("gauss")
    page.tab.wait_for_function("() => location.hash.includes('gauss')")
    page.tab.keyboard.press("Escape")
    assert drawn(page, "loss/value")[2:] == [0.5, 200]
    page.tab.reload()
    assert drawn(page.settled(), "loss/value")[2:] == [0.5, 200]
    assert drawn(page, "train/return") == other, "the other charts are as they were"
    menu()
    page.tab.get_by_text("As all charts").click()
    page.tab.wait_for_function("() => !location.hash.includes('own=')")
    assert page.errors == []


def test_words_and_wildcards_search_and_conditions_filter(page: Any, serve: Any, gaps: Path) -> None:
    page.open(serve(gaps), "#/runs?g=none").drawn(1).settled()
    field = page.tab.get_by_label("Filter runs")
    names = "() => [...document.querySelectorAll('.grid-body .runname')].map(one => one.innerText).sort().join()"
    for text, found in (
        ("ppo", "ppo, seed 1,ppo, seed 2"),
        ("d?n", "dqn, seed 1,dqn, seed 2"),
        ("p*o", "ppo, seed 1,ppo, seed 2"),
        ("/^p dqn/", "dqn, seed 1,dqn, seed 2"),
        ("lr < 0.0015 and name = 'ppo'", "ppo, seed 1"),
        ("config.lr > 0.0015", "dqn, seed 2,ppo, seed 2"),
    ):
        field.fill(text)
        page.tab.wait_for_function(f"found => ({names})() === found", arg=found)
    field.fill("")
    page.settled()
    keys = page.tab.get_by_label("Filter keys")
    for text, many in (("loss val", 1), ("l*/pol", 1), ("^t.*return$", 2), ("kl|return", 3)):
        keys.fill(text)
        page.tab.wait_for_function("many => document.querySelectorAll('.slot').length === many", arg=many)
    assert page.errors == []
