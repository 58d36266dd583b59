"""Boards: a view from code is the one that the page saves, and the page opens with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import rollbook
import wild
from page_server import file_server
from rollbook.adapters.tensorboard import SummaryWriter
from rollbook.server.static_copy import export

CHARTS = ["train/return - update/loss", "update/loss"]


def test_a_board_from_code_is_the_one_that_the_page_saves_and_the_page_opens_with_it(
    page: Any, serve: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "runs"
    with rollbook.init("p", "ppo", dir=folder, sinks=[], keeper="inline", rules=()) as run:
        for step in range(50):
            run.log({"train/return": float(step), "update/loss": 1 / (1 + step), "b": 1.0}, env_step=step)
    boards = rollbook.open(folder).boards
    boards.save("from code", CHARTS, smoothing=0.3, first=True)
    address = serve(folder)
    page.open(address, "").drawn(2).settled()
    pinned = "() => [...document.querySelectorAll('.pinned .slot')].map(one => one.dataset.key)"
    assert page.tab.evaluate(pinned) == ['="train/return" - "update/loss"', "update/loss"]
    assert "from code" in page.tab.inner_text("#pick-board")
    page.tab.locator("#pick-board").click()
    page.tab.get_by_label("name").fill("from page")
    page.tab.get_by_role("button", name="Save this view").click()
    page.tab.wait_for_function("() => location.hash.includes('board=from+page')")
    code, own = boards.entries()
    assert {word: own.state[word] for word in code.state} == code.state
    page.tab.locator("#pick-board").click()
    page.tab.get_by_role("button", name="Open the page with the board from page").click()
    page.tab.wait_for_selector("[aria-pressed=true][aria-label='Open the page with the board from page']")
    assert [board.name for board in boards.entries() if board.first] == ["from page"]
    page.tab.get_by_role("button", name="No board").click()
    page.tab.wait_for_function("() => !location.hash.includes('board=')")
    page.settled()
    assert "b" in page.tab.evaluate(pinned), "without a board: what was pinned before"
    page.tab.goto("about:blank")
    page.open(address, "").drawn(1)
    assert "from page" in page.tab.inner_text("#pick-board")
    page.tab.goto("about:blank")
    page.open(address, "#/runs?pin=b").drawn(1).settled()
    assert page.tab.evaluate(pinned) == ["b"], "a link shows what it says"
    export([str(folder)], tmp_path / "copy")
    with file_server(tmp_path / "copy") as copied:
        page.open(copied, "").drawn(2).settled()
        assert page.tab.evaluate(pinned) == ['="train/return" - "update/loss"', "update/loss"]
    assert page.errors == []


LAYOUT = {
    "Losses": {"both": ["Multiline", ["loss/policy", "loss/value"]]},
    "Band": {"m": ["Margin", ["m", "lo", "hi"]]},
}


def test_the_layout_of_a_summary_writer_is_a_board_live_in_a_copy_and_of_event_files(
    page: Any, serve: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "runs"
    with rollbook.init("p", "ppo", dir=folder, sinks=[], keeper="inline", rules=()) as run:
        writer = SummaryWriter(str(tmp_path / "tb"), run=run, events=False)
        writer.add_custom_scalars(LAYOUT)
        for step in range(20):
            for tag in ("loss/policy", "loss/value", "m", "lo", "hi", "other"):
                writer.add_scalar(tag, 1.0 / (1 + step), step)
    wild.events(tmp_path / "others" / "a", {"loss/policy": [1.0, 0.5], "loss/value": [2.0, 1.0]})
    wild.layout(tmp_path / "others" / "a", {"Losses": [("both", "Multiline", ["loss/.*"])]})
    export([str(folder)], tmp_path / "copy")
    with file_server(tmp_path / "copy") as copied:
        for address in (serve(folder), copied, serve(tmp_path / "others")):
            page.tab.goto("about:blank")
            page.open(address).drawn(1).settled()
            page.tab.locator("#pick-board").click()
            page.tab.locator(".choice:visible").filter(has_text="Losses").click()
            page.tab.wait_for_function("() => location.hash.includes('board=Losses')")
            page.drawn(1).settled()
            pinned = page.tab.evaluate("() => [...document.querySelectorAll('.pinned .slot')].map(o => o.dataset.key)")
            assert pinned == ['="loss/policy", "loss/value"'], address
            page.tab.locator("#pick-board").click()
            page.tab.get_by_text("No board").wait_for()
            assert page.tab.get_by_role("button", name="Remove the board Losses").count() == 0
    assert page.errors == []
