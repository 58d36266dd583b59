"""Each gesture and key of the help sheet does what the sheet promises, seen by the address it leads to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rollbook

HASH = "() => location.hash"


def middle(page: Any) -> tuple[float, float]:
    """A place on the first chart, with curves around it."""
    box = page.tab.locator(".slot.big .plotarea").first.bounding_box()
    return box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.5


def zoomed(page: Any, serve: Any, folder: Path) -> None:
    page.open(serve(folder), "#/runs?z=200_900").drawn(2).settled()


def drag(page: Any, by: float) -> None:
    x, y = middle(page)
    page.tab.mouse.move(x, y)
    page.tab.mouse.down()
    page.tab.mouse.move(x + by, y, steps=4)
    page.tab.mouse.up()


def turn_wheel(page: Any) -> None:
    page.tab.mouse.move(*middle(page))
    page.tab.keyboard.down("Control")
    page.tab.mouse.wheel(0, -60)
    page.tab.keyboard.up("Control")


def pan(page: Any) -> None:
    page.tab.keyboard.down("Shift")
    drag(page, 60)
    page.tab.keyboard.up("Shift")


def press_on_chart(key: str) -> Any:
    def act(page: Any) -> None:
        page.tab.locator(".slot.big .plotarea").first.focus()
        page.tab.keyboard.press(key)

    return act


def press(*keys: str) -> Any:
    return lambda page: [page.tab.keyboard.press(key) for key in keys]


def after(word: str, text: str = "") -> str:
    """The word of the address stands there and contains `text`."""
    return f"(new URLSearchParams(location.hash.split('?')[1] ?? '').get('{word}') ?? '-none-').includes('{text}')"


MOVED = after("z") + " && !" + after("z", "200_900")
WHOLE = "!location.hash.includes('z=')"
CAUSE = after("cause") + " && location.hash.includes('cause=')"

ACTS = {
    "click": (lambda page: page.tab.mouse.click(*middle(page)), CAUSE),
    "double click": (lambda page: page.tab.mouse.dblclick(*middle(page)), WHOLE),
    "slow double click": (lambda page: page.tab.mouse.dblclick(*middle(page), delay=100), WHOLE),
    "drag": (lambda page: drag(page, 90), MOVED),
    "shift drag": (pan, MOVED),
    "ctrl wheel": (turn_wheel, MOVED),
    "+": (press("+"), MOVED),
    "-": (press("-"), MOVED),
    "0": (press("0"), WHOLE),
    "shift arrow": (press("Shift+ArrowRight"), MOVED),
    "enter on a chart": (press_on_chart("Enter"), CAUSE),
    "g": (press("g"), after("g", "none")),
    "c": (press("c"), "location.hash.startsWith('#/compare')"),
    "f": (press("f"), "location.hash.includes('full=')"),
    "i": (press("i"), "location.hash.includes('show=')"),
    "ctrl a": (press("Control+a"), "location.hash.includes('show=')"),
    "j and Space": (press("j", " "), "location.hash.includes('show=')"),
}


@pytest.mark.parametrize("act", ACTS)
def test_a_hand_does_what_the_help_sheet_promises(page: Any, serve: Any, recorded: Path, act: str) -> None:
    do, there = ACTS[act]
    zoomed(page, serve, recorded)
    do(page)
    page.tab.wait_for_function(f"() => {there}")
    page.let_pass(500)  # longer than any click waits for a second one: nothing else follows
    assert page.tab.evaluate(f"() => {there}"), page.tab.evaluate(HASH)
    if "click" not in act or act.endswith("double click"):
        assert ("cause=" in page.tab.evaluate(HASH)) == (there == CAUSE)
    assert page.errors == []


def test_a_drag_beside_the_curves_or_back_to_its_start_zooms_nowhere(page: Any, serve: Any, recorded: Path) -> None:
    zoomed(page, serve, recorded)
    box = page.tab.locator(".slot.big .plotarea").first.bounding_box()
    left, right, y = box["x"], box["x"] + box["width"], box["y"] + box["height"] * 0.5
    for places in [(right - 8, right - 2), (right - 2, right + 40), (left + 8, left + 1), (left + 200,) * 2]:
        page.tab.mouse.move(places[0], y)
        page.tab.mouse.down()
        page.tab.mouse.move(places[0] + 30, y)
        page.tab.mouse.move(places[1], y)
        page.tab.mouse.up()
    page.let_pass(500)
    assert "z=200_900" in page.tab.evaluate(HASH)
    assert page.errors == []


def test_a_shift_drag_past_the_end_of_the_curves_leaves_the_window_as_wide_as_it_was(
    page: Any, serve: Any, recorded: Path
) -> None:
    zoomed(page, serve, recorded)  # 200 to 900 of 0 to 1 499
    x, y = middle(page)
    page.tab.keyboard.down("Shift")
    for by, window in ((-480, "799_1499"), (480, "0_700")):
        for _ in range(2):
            page.tab.mouse.move(x - by / 2, y)
            page.tab.mouse.down()
            page.tab.mouse.move(x + by / 2, y, steps=4)
            page.tab.mouse.up()
        page.tab.wait_for_function(f"() => {after('z', window)}")
    page.tab.keyboard.up("Shift")
    page.let_pass(500)
    assert "z=0_700" in page.tab.evaluate(HASH)
    assert page.errors == []


ROW = ".grid-row:not(.project) .more"
MENUS = {"#pick-x": "x", "#pick-y": "y", "#pick-s": "s", "#pick-board": "b"}
MENUS |= dict.fromkeys(("#group-by", "#color-by", "#pick-columns", ROW), "")
"""By the letter that opens it; those without one are opened by their button."""


@pytest.mark.parametrize("menu", MENUS)
def test_behind_an_open_menu_no_letter_acts(page: Any, serve: Any, recorded: Path, menu: str) -> None:
    page.open(serve(recorded)).drawn(2).settled()
    before = page.tab.evaluate(HASH)
    button = page.tab.locator(menu).first
    if MENUS[menu]:
        page.tab.keyboard.press(MENUS[menu])
    else:
        page.tab.keyboard.press("j")  # the buttons of the active row can be seen
        button.focus()
        page.tab.keyboard.press("Enter")
    page.tab.locator(":popover-open :focus").wait_for()
    for letter in "lgocfjk0+T?":
        page.tab.keyboard.press(letter)
    page.let_pass(300)  # the address is written a moment after a change
    assert page.tab.evaluate(HASH) == before
    assert page.tab.locator(":popover-open").count() == 1
    assert page.tab.locator("dialog[open]").count() == 0
    find = page.tab.locator(":popover-open input[type=search]")
    assert find.count() == 0 or find.input_value() == "lgocfjk0+T?"
    page.tab.keyboard.press("Escape")
    page.tab.locator(":popover-open").wait_for(state="hidden")
    before = "document.body" if MENUS[menu] else f"document.querySelector({menu!r})"
    page.tab.wait_for_function(f"() => document.activeElement === {before}")  # the focus goes back to where it was
    assert page.errors == []


def test_the_palette_finds_keys_runs_pages_and_actions_and_a_key_is_a_chart(
    page: Any, serve: Any, recorded: Path
) -> None:
    page.open(serve(recorded)).drawn(2).settled()
    first = page.tab.evaluate(HASH)
    rows = page.tab.locator(".grid-row").count()
    option = page.tab.get_by_role("option")
    for opens, text, kind in (
        ("/", "loss", "update/loss"),
        ("Control+k", "seed 2", "ppo lr 0.001, seed 2"),
        ("/", "health", "Health"),
        ("Control+k", "whole range", "whole range"),
    ):
        page.tab.keyboard.press(opens)
        page.tab.keyboard.type(text)
        option.filter(has_text=kind).first.wait_for()
        page.tab.keyboard.press("Escape")
        page.tab.locator("dialog[open]").wait_for(state="detached")
    assert page.tab.evaluate(HASH) == first
    assert page.tab.locator(".grid-row").count() == rows, "finding never filters the table"
    page.tab.keyboard.press("/")
    page.tab.keyboard.type("loss")
    option.filter(has_text="update/loss").first.wait_for()
    page.tab.keyboard.press("Enter")
    page.tab.locator(".found-chart [data-key='update/loss']").wait_for()
    page.tab.wait_for_function("() => location.hash.includes('see=update/loss')")
    page.tab.keyboard.press("/")
    page.tab.keyboard.type("timings")
    option.filter(has_text="Timings").first.click()
    page.tab.wait_for_function("() => location.hash.startsWith('#/timings')")
    assert page.errors == []


def test_the_palette_finds_what_is_wrong_by_its_rule_its_words_and_its_run(
    page: Any, serve: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "runs"
    for seed, rule in enumerate(("gripper", "drift", "gripper")):
        with rollbook.init("arm", "sac", seed=seed, dir=folder, sinks=[], keeper="inline", rules=()) as run:
            run.log({"train/return": 1.0}, env_step=1)
            own = {"rule": rule, "message": f"the {rule} of joint 4 is stuck", "level": "warn", "source": "own"}
            run.record("alerts", {name: [cell] for name, cell in {**own, "evidence": "{}"}.items()}, n=1, env_step=1)
    page.open(serve(folder)).drawn(1).settled()
    for text in ("gripper", "joint 4 gripper", "stuck grip"):
        page.tab.keyboard.press("/")
        page.tab.keyboard.type(text)
        page.tab.get_by_role("option").filter(has_text="gripper · 2 runs").wait_for()
        page.tab.keyboard.press("Escape")
        page.tab.locator("dialog[open]").wait_for(state="detached")
    page.tab.keyboard.press("/")
    page.tab.keyboard.type("drift")
    page.tab.get_by_role("option").filter(has_text="drift · 1 run").wait_for()
    page.tab.keyboard.press("Enter")
    page.tab.get_by_role("heading", name="1 finding").wait_for()
    assert page.tab.locator(".worstrow").all_inner_texts()[0].count("drift") > 0
    page.tab.get_by_role("button", name="show all").click()
    page.tab.get_by_role("heading", name="2 findings").wait_for()
    assert page.errors == []


def test_only_the_chart_under_the_cursor_writes_a_table_of_its_values(page: Any, serve: Any, recorded: Path) -> None:
    """One in each chart was made anew with every move of the hand, and seen in none."""
    page.open(serve(recorded), "#/runs?g=none").drawn(2).settled()
    tips = page.tab.locator(".tip")
    assert tips.count() == 0
    for place in (0, 1):
        box = page.tab.locator("#charts .plotarea").nth(place).bounding_box()
        page.tab.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.5)
        page.tab.locator(".chart.here .tip").wait_for()
        assert tips.count() == 1
    page.tab.mouse.move(2, 2)
    page.tab.wait_for_function("() => document.querySelectorAll('.tip').length === 0")
    assert page.errors == []


FOCUS = "() => document.activeElement.closest('#charts .plotarea, .grid.runs, .skip')?.className ?? ''"


def test_a_keyboard_comes_to_the_charts_at_once_and_through_one_row_of_the_table(
    page: Any, serve: Any, recorded: Path
) -> None:
    page.open(serve(recorded), "#/runs?g=none").drawn(2).settled()
    press = page.tab.keyboard.press
    press("Tab")
    press("Tab")
    assert page.tab.evaluate("() => document.activeElement.innerText") == "To the charts"
    press("Enter")
    first, second = (page.tab.locator("#charts [data-key]").nth(i).get_attribute("data-key") for i in range(2))
    at = "() => document.activeElement.closest('[data-key]')?.dataset.key ?? ''"
    assert page.tab.evaluate(at) == first
    press("ArrowDown")
    assert page.tab.evaluate(at) == second
    press("ArrowUp")
    assert page.tab.evaluate(at) == first
    press("v")
    assert "runs" in page.tab.evaluate(FOCUS)
    press("ArrowDown")
    press("ArrowDown")
    press("ArrowDown")
    press("ArrowUp")
    active = page.tab.locator(".grid-row.active .runname")
    name = active.inner_text()
    stops = []
    while len(stops) < 60:
        press("Tab")
        row = page.tab.evaluate("() => document.activeElement.closest('.grid-body .grid-row')?.innerText ?? null")
        if row is None and stops and stops[-1] is not None:
            break
        stops.append(row)
    rows = [row for row in stops if row is not None]
    assert 1 <= len(rows) <= 4, "one row, not all six"
    assert all(name in row for row in rows)
    press("v")
    assert page.tab.evaluate(at) == first
    press("?")
    for words in ("to the charts, or back to the table", "in the table: another run"):
        page.tab.locator("dialog[open]", has_text=words).wait_for()  # its code comes when it is asked for
    assert page.errors == []


def test_tab_stops_at_a_head_once_and_arrows_change_its_width(page: Any, serve: Any, recorded: Path) -> None:
    page.open(serve(recorded), "#/runs?g=none").drawn(2).settled()
    press = page.tab.keyboard.press
    head = page.tab.locator(".grid.runs [data-column=status]")
    head.locator("button").focus()
    press("Tab")
    at = "() => document.activeElement.closest('[data-column]')?.dataset.column ?? ''"
    assert page.tab.evaluate(at) != "status"
    press("Shift+Tab")
    assert page.tab.evaluate(at) == "status"
    width = head.bounding_box()["width"]
    press("ArrowDown")
    press("ArrowRight")
    assert head.bounding_box()["width"] > width + 8
    press("Delete")
    assert abs(head.bounding_box()["width"] - width) < 2
    press("ArrowUp")
    assert page.tab.evaluate("() => document.activeElement.tagName") == "BUTTON"
    press("j")
    press("m")
    page.tab.locator(".menu:popover-open").get_by_role("link", name="Open the run").wait_for()
    press("Escape")
    page.tab.wait_for_function("() => document.querySelector('.menu:popover-open') === null")
    assert page.errors == []
