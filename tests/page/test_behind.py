"""What comes behind the first view: after its curves, and only where bytes are cheap."""

from __future__ import annotations

from pathlib import Path
from typing import Any

OTHERS = """() => performance.getEntriesByType('resource')
    .filter(one => /Compare|Rollouts|Timings/.test(one.name) && one.name.endsWith('.js'))
    .map(one => one.startTime)"""
CURVES = """() => performance.getEntriesByType('resource')
    .filter(one => /api\\/(curves|series)$/.test(one.name)).map(one => one.responseEnd)"""


def test_the_other_pages_come_after_the_first_curves(page: Any, serve: Any, recorded: Path) -> None:
    page.open(serve(recorded), "#/runs").drawn(1)
    page.tab.wait_for_function(f"() => ({OTHERS})().length >= 3")
    assert min(page.tab.evaluate(OTHERS)) > min(page.tab.evaluate(CURVES))
    assert page.errors == []


def test_where_bytes_are_dear_a_page_comes_when_it_is_opened(page: Any, serve: Any, recorded: Path) -> None:
    page.tab.add_init_script("Object.defineProperty(navigator, 'connection', {value: {saveData: true}})")
    page.open(serve(recorded), "#/runs").drawn(1)
    page.let_pass(8_000)
    assert page.tab.evaluate(OTHERS) == []
    page.tab.keyboard.press("c")
    page.tab.wait_for_selector(".said .ranking")
    assert len(page.tab.evaluate(OTHERS)) == 1
    assert page.errors == []
