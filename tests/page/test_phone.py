"""On a phone, in the dark: what can be done with many runs and with charts can be done there, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import rollbook

INSIDE = """() => { const box = document.querySelector(':popover-open').getBoundingClientRect();
    return box.left >= 0 && box.right <= innerWidth && box.top >= 0 && box.bottom <= innerHeight; }"""


def recorded(folder: Path) -> Path:
    """Six runs of two keys."""
    for seed in range(6):
        with rollbook.init("p", "ppo", seed=seed, dir=folder, sinks=[], keeper="inline", rules=()) as run:
            for step in range(60):
                run.log({"train/return": 100.0 + step, "test/return": float(step)}, env_step=step)
    return folder


def test_many_runs_are_tagged_archived_and_removed_with_a_finger(phone: Any, serve: Any, tmp_path: Path) -> None:
    folder = recorded(tmp_path / "runs")
    tab = phone.open(serve(folder), "#/runs?g=none").settled().tab
    tab.get_by_role("button", name="Draw all").tap()
    tab.wait_for_function("() => document.querySelectorAll('.square[aria-pressed=true]').length === 6")
    tab.locator("#edit-drawn").tap()
    field = tab.get_by_label("Tags of 6 runs")
    field.wait_for()
    assert tab.evaluate(INSIDE)
    field.fill("paper")
    tab.get_by_role("button", name="Add to 6 runs").tap()
    tab.locator(":popover-open").wait_for(state="detached")
    assert all(book.tags == ["paper"] for book in rollbook.open(folder))
    tab.locator("#edit-drawn").tap()
    tab.get_by_role("button", name="Remove 6 runs").tap()
    tab.get_by_role("button", name="Move 6 runs").wait_for()
    assert len(rollbook.open(folder)) == 6, "so far it was only asked"
    assert tab.evaluate(INSIDE)
    tab.get_by_role("button", name="Archive 6 runs").tap()
    tab.get_by_text("show 6 archived").wait_for()
    assert phone.errors == []


def test_a_chart_of_ones_own_is_made_scaled_found_and_kept_with_a_finger(
    phone: Any, serve: Any, tmp_path: Path
) -> None:
    tab = phone.open(serve(recorded(tmp_path / "runs")), "#/runs?g=none").drawn(1).settled().tab
    tab.locator("#add-chart").tap()
    tab.get_by_label("Keys and signs").fill("train/return - test/return")
    assert tab.evaluate(INSIDE)
    tab.get_by_role("button", name="Add the chart").tap()
    chart = tab.locator("""[data-key='="train/return" - "test/return"']""")
    chart.locator(".plotarea[data-drawn]").wait_for()
    chart.locator(".tools button").last.tap()
    tab.get_by_role("menuitemradio", name="log scale").tap()
    assert tab.evaluate(INSIDE)
    tab.wait_for_function("() => decodeURIComponent(location.hash).includes('|log|')")
    tab.keyboard.press("Escape")
    tab.locator("#find-key").fill("t?st ret*")
    tab.wait_for_function(
        "() => [...document.querySelectorAll('#charts .slot')].map(one => one.dataset.key).join() === 'test/return'"
    )
    tab.locator("#find-key").fill("")
    chart.wait_for()
    tab.locator("#pick-board").tap()
    tab.get_by_label("name").fill("gap")
    tab.get_by_role("button", name="Save this view").tap()
    tab.wait_for_function("() => location.hash.includes('board=gap')")
    assert tab.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    assert phone.errors == []
