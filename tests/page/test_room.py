"""Where room is short, what tells things apart stays: ends of names, values, and panels whose content comes late."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rollbook

LONG = ("a rather long name of the group with penalty 10000", "a rather long name of the group with penalty 20000", "b")
CUT = """what => [...document.querySelectorAll(what)].filter(one => one.checkVisibility()).flatMap(one => {
    const box = one.getBoundingClientRect();
    for (let at = one.parentElement; at && at !== document.body; at = at.parentElement) {
        const outer = at.getBoundingClientRect(), style = getComputedStyle(at);
        if (/auto|scroll/.test(style.overflowX)) break;
        if (style.overflowX !== 'visible' && (box.right > outer.right + 1 || box.left < outer.left - 1))
            return [one.textContent];
    }
    const frame = one.closest('.chart')?.getBoundingClientRect();
    return frame && box.right > frame.right + 1 ? [one.textContent] : [];
})"""
"""Texts that the frame of a chart, or anything that hides what is too wide, cuts."""


@pytest.fixture(scope="module")
def named_alike(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("alike") / "runs"
    for place, name in enumerate(LONG):
        for seed in range(2):
            with rollbook.init(
                "cartpole", name, seed=seed, dir=folder, sinks=[], keeper="inline", rules=(), group=name
            ) as run:
                for step in range(30):
                    tiny = (-(10.0 ** -(place + 15))) * (1 + step)
                    run.log({"test/return": 40_000.5 + place + step, "update/kl": tiny}, env_step=step)
    return folder


def test_names_that_differ_at_their_ends_can_be_distinguished_and_no_value_is_cut(
    page: Any, serve: Any, named_alike: Path
) -> None:
    address = serve(named_alike)
    for place in ("runs", "compare"):
        page.tab.goto("about:blank")
        page.open(address, f"#/{place}").settled()
        page.tab.locator(".middle bdi:last-child", has_text="20000").first.wait_for()
        for width in (1440, 1280, 1024):
            page.tab.set_viewport_size({"width": width, "height": 900})
            page.settled()
            cut = page.tab.evaluate(CUT, ".read.ends b, .middle bdi:last-child, .pairs td")
            assert cut == [], (place, width)
    assert page.errors == []


def test_a_menu_whose_content_comes_late_stays_on_the_screen(page: Any, serve: Any, named_alike: Path) -> None:
    def late(route: Any) -> None:
        page.tab.wait_for_function("() => document.querySelector(':popover-open')?.style.visibility === 'visible'")
        route.continue_()

    page.open(serve(named_alike)).settled()
    page.tab.route("**/api/boards", late)
    page.tab.keyboard.press("b")
    page.tab.get_by_text("A board keeps this view").wait_for()
    page.tab.wait_for_function(
        """() => {
            const box = document.querySelector(':popover-open').getBoundingClientRect();
            return box.left >= 0 && box.right <= innerWidth && box.bottom <= innerHeight;
        }"""
    )
    assert page.errors == []
