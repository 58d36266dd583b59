"""Many runs at once, and notes that are Markdown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import rollbook

NOTES = """# Why
**bold** and `code`, see https://example.org/a_b and [this](https://example.org) or [evil](javascript:alert(1))
- [x] one
- two
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
    page.tab.get_by_role("button", name="Remove from 12 runs").click()
    page.tab.wait_for_function("() => !document.querySelector('.grid-body').innerText.includes('icml')")
    assert all(book.tags == ["paper"] for book in rollbook.open(folder))
    page.tab.locator("#edit-drawn").click()
    page.tab.get_by_role("button", name="Archive 12 runs").click()
    page.tab.get_by_text("show 12 archived").wait_for()
    assert page.errors == []


def test_notes_are_markdown_and_nothing_in_them_acts(page: Any, serve: Any, tmp_path: Path) -> None:
    with rollbook.init("p", "ppo", dir=tmp_path / "runs", sinks=[], keeper="inline", rules=(), notes=NOTES) as run:
        run.log({"train/return": 1.0}, env_step=1)
    page.open(serve(tmp_path / "runs"), f"#/run/{run.id}").settled()
    notes = page.tab.locator(".markdown")
    assert notes.locator("b").inner_text() == "bold"
    assert notes.locator("code").inner_text() == "code"
    assert notes.locator("li").all_inner_texts()[:2] == ["☑ one", "two"]
    addresses = [one.get_attribute("href") for one in notes.locator("a").all()]
    assert addresses == ["https://example.org/a_b", "https://example.org"]
    assert notes.locator("img, script").count() == 0
    assert "<script>" in notes.inner_text()
    assert page.tab.title() != "hacked"
    assert page.errors == []
