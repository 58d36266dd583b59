"""What one sees is in the address: a link, a reload, the way back and another machine show the same."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import rollbook

SEEN = """() => ({
    hash: location.hash,
    rows: [...document.querySelectorAll('.grid-row .runname')].map(one => one.innerText),
    drawn: [...document.querySelectorAll('.square[aria-pressed=true]')].map(one => one.ariaLabel).sort(),
    colours: [...document.querySelectorAll('.square[aria-pressed=true] i')].map(one => one.className).sort(),
    sorted: document.querySelector('[aria-sort]')?.innerText ?? '',
    charts: [...document.querySelectorAll('.slot')].map(one => one.dataset.key),
    axes: [...document.querySelectorAll('.plotarea')].map(one => one.dataset.drawn),
})"""


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nine configurations, two seeds each; the later, the worse."""
    folder = tmp_path_factory.mktemp("sweep") / "runs"
    for place in range(9):
        for seed in range(2):
            config = {"lr": 1e-4 * (place + 1), "seed": seed}
            with rollbook.init(
                "p", "ppo", seed=seed, config=config, dir=folder, sinks=[], keeper="inline", rules=()
            ) as run:
                for step in range(0, 1000, 20):
                    run.log({"train/return": step * (9 - place) + seed, "update/loss": 1 / (1 + step)}, env_step=step)
    return folder


def test_what_nobody_chose_stays_drawn_over_a_sort_a_reload_a_link_and_on_another_machine(
    page: Any, tab_of: Any, serve: Any, sweep: Path, tmp_path: Path
) -> None:
    address = serve(sweep)
    page.open(address, "#/runs?x=env_step&pin=train/return&shut=train").drawn(1).settled()
    before = page.tab.evaluate(SEEN)
    page.tab.get_by_role("button", name="return", exact=True).click()
    page.tab.wait_for_function("() => location.hash.includes('sort=')")
    after = page.settled().tab.evaluate(SEEN)
    assert after["rows"] != before["rows"]
    assert len(after["drawn"]) == 5
    assert after["drawn"] == before["drawn"]
    page.tab.reload()
    assert page.drawn(1).settled().tab.evaluate(SEEN) == after
    shutil.copytree(sweep, tmp_path / "runs")
    for there in (address, serve(tmp_path / "runs")):
        assert tab_of(1440, 900).open(there, after["hash"]).drawn(1).settled().tab.evaluate(SEEN) == after
    page.tab.goto(f"{address}#/health")
    page.settled().tab.go_back()
    assert page.drawn(1).settled().tab.evaluate(SEEN) == after
    assert page.errors == []


def test_another_filter_draws_its_own_first_rows_and_the_way_back_those_of_before(
    page: Any, serve: Any, sweep: Path
) -> None:
    address = serve(sweep)
    page.open(address, "#/runs").drawn(1).settled()
    before = page.tab.evaluate(SEEN)
    page.tab.goto(f"{page.tab.evaluate('location.href')}&f=config.lr+%3E+0.00055")
    page.settled()
    page.tab.wait_for_function("() => document.querySelectorAll('.square[aria-pressed=true]').length === 4")
    page.tab.go_back()
    assert page.settled().tab.evaluate(SEEN) == before


def test_a_link_to_rows_that_are_gone_draws_the_first_rows_of_today(page: Any, serve: Any, sweep: Path) -> None:
    page.open(serve(sweep), "#/runs?auto=gone.3").drawn(1).settled()
    assert page.tab.locator(".square[aria-pressed=true]").count() == 5
    assert "gone" not in page.tab.evaluate("location.hash")
