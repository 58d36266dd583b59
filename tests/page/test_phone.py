"""On a phone, in the dark: what can be done with many runs and with charts can be done there, too."""

from __future__ import annotations

import contextlib
import itertools
from pathlib import Path
from typing import Any

import rollbook
from page_server import record

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
    tab.locator(".choice:visible").filter(has_text="log scale").tap()
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


def test_removed_runs_come_back_with_a_finger(phone: Any, serve: Any, tmp_path: Path) -> None:
    folder = recorded(tmp_path / "runs")
    tab = phone.open(serve(folder), "#/runs?g=none").settled().tab
    tab.get_by_role("button", name="Draw all").tap()
    tab.wait_for_function("() => document.querySelectorAll('.square[aria-pressed=true]').length === 6")
    tab.locator("#edit-drawn").tap()
    tab.get_by_role("button", name="Remove 6 runs").tap()
    tab.get_by_role("button", name="Move 6 runs").tap()
    tab.get_by_text("6 runs went to the bin").wait_for()
    assert tab.evaluate(INSIDE)
    tab.get_by_role("button", name="Bring them back").tap()
    tab.get_by_role("button", name="Bring them back").wait_for(state="detached")
    assert len(rollbook.open(folder)) == 6
    assert phone.errors == []


def test_one_chart_gets_a_range_and_a_smoothing_with_a_finger(phone: Any, serve: Any, tmp_path: Path) -> None:
    tab = phone.open(serve(recorded(tmp_path / "runs")), "#/runs?g=none&pin=train/return").drawn(1).settled().tab
    chart = tab.locator("[data-key='train/return']")
    chart.scroll_into_view_if_needed()
    chart.locator(".tools button").last.tap()
    low, high, weight = (tab.get_by_label(f"train/return, {what}") for what in ("y from", "y to", "smoothing from"))
    low.wait_for()
    assert tab.evaluate(INSIDE)
    sizes = [one.bounding_box() for one in (low, high, weight)]
    assert all(size["height"] >= 24 and size["width"] >= 40 for size in sizes), sizes
    low.fill("90")
    low.press("Enter")
    high.fill("130")
    high.press("Enter")
    tab.get_by_label("train/return, kind of smoothing").select_option("gauss")
    tab.wait_for_function("() => location.hash.includes('gauss')")
    tab.wait_for_function(
        "() => document.querySelector(\"[data-key='train/return'] .plotarea\").dataset.drawn.includes(' 90 130 ')"
    )
    assert tab.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    assert phone.errors == []


def test_keys_act_while_rows_arrive(page: Any, serve: Any, tmp_path: Path) -> None:
    """A hand on the keyboard, and four live runs: nothing that is typed is lost, and no row changes its place."""
    folder = tmp_path / "runs"
    with contextlib.ExitStack() as ends:
        runs = [
            ends.enter_context(rollbook.init("p", f"ppo-{n}", seed=n, dir=folder, sinks=[], keeper="inline", rules=()))
            for n in range(4)
        ]
        steps = itertools.count()

        def rows(many: int = 40) -> None:
            for step in itertools.islice(steps, many):
                for n, run in enumerate(runs):
                    run.log({"train/return": float(step * (n + 1)), "loss": 1.0 / (step + 1)}, env_step=step)

        rows()
        tab = page.open(serve(folder), "#/runs?g=none").drawn(2).settled().tab
        last = "() => document.querySelector(\"[data-key='train/return'] .plotarea\").getAttribute('aria-label')"

        def come() -> None:
            """More rows are there, and in the chart's sentence: its numbers are those at the cursor."""
            before = tab.evaluate(last)
            rows()
            tab.wait_for_function(f"before => JSON.stringify(({last})()) !== JSON.stringify(before)", arg=before)

        for moves in range(3):
            tab.keyboard.press("j")
            come()
            assert (
                tab.evaluate(
                    "() => [...document.querySelectorAll('.grid-body .grid-row')]"
                    ".findIndex(row => row.classList.contains('active'))"
                )
                == moves
            )
        tab.keyboard.press("/")
        for letter in "loss":
            tab.keyboard.press(letter)
            rows(5)
        field = tab.get_by_role("combobox")
        assert field.input_value() == "loss"
        tab.keyboard.press("Enter")
        tab.locator(".found-chart [data-key='loss'] .plotarea[data-drawn]").wait_for()
        tab.locator(".found-chart .plotarea").focus()
        for _ in range(5):
            tab.keyboard.press("ArrowRight")
            rows(5)
        come()
        assert tab.evaluate("() => document.activeElement.classList.contains('plotarea')")
        tab.keyboard.press("Enter")
        tab.wait_for_function("() => location.hash.includes('cause=')")
        rows()
        tab.locator("#cause section.causehead p").first.wait_for()
        tab.keyboard.press("Escape")
        tab.wait_for_function("() => !location.hash.includes('cause=')")
    assert page.errors == []


def test_the_columns_of_a_link_are_there_on_a_phone_as_far_as_there_is_room(
    phone: Any, serve: Any, tmp_path: Path
) -> None:
    folder = recorded(tmp_path / "runs")
    tab = phone.open(serve(folder), "#/runs?g=none&cols=seed~last:train/return~created").settled().tab
    heads = [head for head in tab.locator("[role=columnheader]").all() if head.is_visible()]
    assert [head.get_attribute("data-column") for head in heads] == ["name", "seed", "last:train/return"]
    assert tab.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    assert phone.errors == []


def test_a_row_has_on_a_phone_what_it_has_under_a_pointer(phone: Any, serve: Any, tmp_path: Path) -> None:
    """Open, draw, pin, compare, only such runs (no column shows the setting), tag, archive, remove."""
    for seed, lr in enumerate((3e-4, 1e-3)):
        record(tmp_path, "ppo", seed, lr, rows=50)
    tab = phone.open(serve(tmp_path), "#/runs?g=none").drawn(1).settled().tab
    menu = tab.locator(".onrow button")
    assert menu.count() == 0, "nothing lies over the rows until one was touched"
    row = tab.locator(".grid-body .grid-row").nth(1)
    name = row.locator(".runname").inner_text()
    row.locator("[role=cell]").nth(1).tap()
    assert " ".join(menu.inner_text().split()) == " ".join(name.split())
    menu.tap()
    panel = tab.locator(".menu:popover-open")
    panel.get_by_role("button", name="Remove 1 run").wait_for()
    panel.get_by_role("button", name="Only lr = ").wait_for()  # asked for when the menu opens
    assert tab.evaluate(INSIDE)
    said = panel.inner_text()
    for words in ("Open the run", "its curves", "Pin to the top", "Compare", "Only lr = ", "Archive"):
        assert words in said, said
    for field in ("name", "tags", "notes"):
        assert panel.get_by_label(field).count() == 1
    panel.get_by_role("button", name="Pin to the top").tap()
    tab.wait_for_function("() => location.hash.includes('top=')")
    menu.tap()
    panel.get_by_role("button", name="Only lr = ").tap()
    tab.wait_for_function("() => location.hash.includes('lr')")
    assert tab.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    assert phone.errors == []
