"""Where room is short, what tells things apart stays: ends of names, values, and panels whose content comes late."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

import rollbook
from agent_rollouts import record_agents

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
        page.tab.locator("#main").get_by_text("20000").first.wait_for()
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


@pytest.fixture(scope="module")
def long_tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("long") / "runs"
    record_agents(folder, 10)
    with rollbook.init("p", "r", dir=folder, sinks=[], keeper="inline", rules=()) as run:
        for step in range(80):
            run.log_samples([f"prompt {step}"], completion=["c"], reward=[float(step)], gradient_step=step)
            run.log_episode(**{"return": float(step)}, length=3, env_step=step)
    return folder


@pytest.mark.parametrize("place", ["rollouts", "samples", "episodes"])
def test_on_a_phone_what_a_row_of_a_long_table_opens_comes_on_the_screen(
    place: str, tab_of: Any, serve: Any, long_tables: Path
) -> None:
    page = tab_of(390, 844).open(serve(long_tables), f"#/{place}").settled()
    page.tab.locator(".grid-body .grid-row").nth(4).click()
    if place == "rollouts":  # that was a group, which is unfolded
        page.tab.locator(".grid-body .grid-row:not(.group)").first.click()
    page.tab.wait_for_function(
        """() => {
            const panes = [...document.querySelectorAll('main > .pane')];
            const top = panes.find(pane => !pane.querySelector('.grid.asked'))?.getBoundingClientRect().top;
            return 0 <= top && top < innerHeight / 2 && document.querySelector('.grid-row.chosen');
        }"""
    )
    assert page.tab.locator(".grid.asked").bounding_box()["height"] < 844 / 2
    assert page.errors == []


def test_the_tables_of_five_groups_fit_without_scrolling_sideways(page: Any, serve: Any, tmp_path: Path) -> None:
    for place in range(5):
        name = f"a rather long name of the group with penalty {place}0000"
        with rollbook.init(
            "cartpole",
            name,
            dir=tmp_path / "runs",
            sinks=[],
            keeper="inline",
            rules=(),
            group=name,
            config={"p": place},
        ) as run:
            run.log({"test/return": 40_000.5 + place}, env_step=1)
    page.open(serve(tmp_path / "runs"), "#/compare").settled()
    page.tab.locator("[aria-label='Configuration of each group'] td").first.wait_for()
    page.tab.locator(".pairs td").first.wait_for()
    for width in (1440, 1280, 1024):
        page.tab.set_viewport_size({"width": width, "height": 900})
        page.settled()
        wide = "many => many.filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.ariaLabel)"
        assert page.tab.locator("main .minitable").evaluate_all(wide) == [], width
    assert page.errors == []


def test_runs_that_share_a_key_and_no_axis_are_a_word_beside_the_curves_that_are_drawn(
    page: Any, serve: Any, tmp_path: Path
) -> None:
    more: dict[str, Any] = {"dir": tmp_path / "runs", "sinks": [], "keeper": "inline", "rules": ()}
    for name, clock in (("ppo", "env_step"), ("grpo", "train_iter")):
        with rollbook.init("p", name, clocks=["train_iter"], **more) as run:
            for step in range(20):
                run.log({"train/reward": float(step)}, **{clock: step})
    page.open(serve(tmp_path / "runs"), "#/runs?g=none").drawn(1).settled()
    chart = page.tab.locator("[data-key='train/reward']")
    assert "1 not along" in chart.inner_text()
    assert chart.locator(".alert, .failure, [role=alert]").count() == 0
    assert page.errors == []


def test_the_health_of_a_crashed_run_says_that_it_crashed(page: Any, serve: Any, tmp_path: Path) -> None:
    with (
        contextlib.suppress(RuntimeError),
        rollbook.init("p", "crash", dir=tmp_path, sinks=[], keeper="import", rules=()) as run,
    ):
        run.log({"train/return": 1.0}, env_step=1)
        raise RuntimeError("out of memory")
    page.open(serve(tmp_path), f"#/health?run={run.id}").settled()
    assert "RuntimeError: out of memory" in page.tab.inner_text("#main")
    assert page.errors == []
