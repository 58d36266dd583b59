"""Many runs at once, and notes that are Markdown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import rollbook

NOTES = """# Why
**bold** and `code`, see https://example.org/a_b and [this](https://example.org) or [evil](javascript:alert(1))
- [x] one
- two

| lr | return |
|:---|---:|
| `3e-4` | **491** \\| 12 |
<img src=x onerror="document.title='hacked'"> <script>document.title = 'hacked'</script>
"""


def test_all_drawn_runs_are_tagged_and_archived_at_once(page: Any, serve: Any, tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    for seed in range(12):
        with rollbook.init(
            "p", "ppo", seed=seed, dir=folder, sinks=[], keeper="inline", rules=(), tags=["first"]
        ) as run:
            run.log({"train/return": float(seed)}, env_step=1)
    page.open(serve(folder), "#/runs?g=none&cols=tags").settled()
    page.tab.get_by_role("button", name="Draw all").click()
    page.tab.wait_for_function("() => document.querySelectorAll('.square[aria-pressed=true]').length === 12")
    page.tab.locator("#edit-drawn").click()
    page.tab.get_by_label("Tags of 12 runs").fill("paper, icml")
    page.tab.get_by_role("button", name="Add to 12 runs").click()
    page.tab.wait_for_function(
        "() => [...document.querySelectorAll('.grid-body .tag')].filter(one => one.innerText === 'icml').length === 12"
    )
    assert all(set(book.tags) == {"first", "paper", "icml"} for book in rollbook.open(folder))
    page.tab.locator("#edit-drawn").click()
    page.tab.get_by_label("Tags of 12 runs").fill("first, icml")
    page.tab.get_by_role("button", name="Take away from 12 runs").click()
    page.tab.wait_for_function("() => !document.querySelector('.grid-body').innerText.includes('icml')")
    assert all(book.tags == ["paper"] for book in rollbook.open(folder))
    page.tab.locator("#edit-drawn").click()
    page.tab.get_by_role("button", name="Archive 12 runs").click()
    page.tab.get_by_text("show 12 archived").wait_for()
    assert page.errors == []


def test_all_runs_that_fit_are_edited_though_few_of_them_are_drawn(page: Any, serve: Any, tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    for seed in range(12):
        with rollbook.init(
            "p", "ppo" if seed < 9 else "dqn", seed=seed, dir=folder, sinks=[], keeper="inline", rules=()
        ) as run:
            run.log({"train/return": float(seed)}, env_step=1)
    page.open(serve(folder), "#/runs?g=none&cols=tags&f=ppo").settled()
    page.tab.locator("#edit-drawn").click()
    page.tab.get_by_role("button", name="Archive 5 runs").wait_for()  # what is drawn
    page.tab.get_by_role("button", name="all 9 that fit").click()
    page.tab.get_by_label("Tags of 9 runs").fill("paper")
    page.tab.get_by_role("button", name="Add to 9 runs").click()
    page.tab.wait_for_function("() => document.querySelectorAll('.grid-body .tag').length === 9")
    assert {(book.name, *book.tags) for book in rollbook.open(folder)} == {("ppo", "paper"), ("dqn",)}
    assert page.errors == []


def test_rows_of_the_question_before_say_so_until_the_answer_is_there(page: Any, serve: Any, recorded: Path) -> None:
    page.open(serve(recorded), "#/runs?g=none").settled()
    held: list[Any] = []
    page.tab.route("**/api/runs", lambda route: held.append(route))
    page.tab.get_by_label("Filter runs").fill("nothing_is_called_so")
    waits = page.tab.get_by_text("looking for what was asked")
    waits.wait_for()
    while held:
        held.pop().continue_()
    page.tab.unroute("**/api/runs")
    waits.wait_for(state="detached")
    assert page.tab.locator(".grid-body .name").count() == 0
    assert page.errors == []


def test_notes_are_markdown_and_nothing_in_them_acts(page: Any, serve: Any, tmp_path: Path) -> None:
    with rollbook.init("p", "ppo", dir=tmp_path / "runs", sinks=[], keeper="inline", rules=(), notes=NOTES) as run:
        run.log({"train/return": 1.0}, env_step=1)
    page.open(serve(tmp_path / "runs"), f"#/run/{run.id}").settled()
    notes = page.tab.locator(".markdown")
    assert notes.locator("b").first.inner_text() == "bold"
    assert notes.locator("code").first.inner_text() == "code"
    assert notes.locator("li").all_inner_texts()[:2] == ["☑ one", "two"]
    addresses = [one.get_attribute("href") for one in notes.locator("a").all()]
    assert addresses == ["https://example.org/a_b", "https://example.org"]
    assert notes.locator("img, script").count() == 0
    assert notes.locator("th, td").all_inner_texts() == ["lr", "return", "3e-4", "491 | 12"]
    assert "<script>" in notes.inner_text()
    assert page.tab.title() != "hacked"
    assert page.errors == []


def test_drawn_runs_go_into_the_bin_and_come_back_and_one_that_is_written_stays(
    page: Any, serve: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "runs"
    how: dict[str, Any] = {"dir": folder, "sinks": [], "keeper": "inline", "rules": ()}
    for seed in range(3):
        with rollbook.init("p", "ppo", seed=seed, **how) as run:
            run.log({"train/return": float(seed)}, env_step=1)
    with rollbook.init("p", "ppo", seed=3, **how) as live:
        live.log({"train/return": 3.0}, env_step=1)
        page.open(serve(folder), "#/runs?g=none").settled()
        page.tab.get_by_role("button", name="Draw all").click()
        page.tab.wait_for_function("() => document.querySelectorAll('.square[aria-pressed=true]').length === 4")
        page.tab.locator("#edit-drawn").focus()
        page.tab.keyboard.press("Enter")
        page.tab.get_by_role("button", name="Remove 4 runs").click()
        page.tab.get_by_text("a process writes it").wait_for()
        assert len(rollbook.open(folder)) == 4, "so far it was only asked"
        page.tab.get_by_role("button", name="Move 3 runs").click()
        page.tab.get_by_text("3 runs went to the bin").wait_for()
        assert [book.seed for book in rollbook.open(folder)] == [3]
        page.tab.get_by_role("button", name="Bring them back").click()
        page.tab.get_by_role("button", name="Bring them back").wait_for(state="detached")
        assert sorted(book.seed for book in rollbook.open(folder)) == [0, 1, 2, 3]  # type: ignore[type-var]
    assert page.errors == []
