"""Sweep and Compare say what these runs can tell, and offer nothing that they then refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rollbook


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 runs: the score is that of lr; the optimiser, which does nothing, is another one where lr is highest."""
    folder = tmp_path_factory.mktemp("tried") / "runs"
    for number in range(12):
        lr = (1e-4, 3e-4, 1e-3)[number % 3]
        config = {
            "lr": lr,
            "opt": "sgd" if lr == 1e-3 and number != 2 else "adam",
            "ent": (0, 1e-3, 1e-2, 0.1)[number // 3],
        }
        for seed in (0, 1):
            with rollbook.init(
                "p", f"ppo-{number}", seed=seed, config=config, dir=folder, sinks=[], keeper="inline", rules=()
            ) as run:
                for step in range(4):
                    run.log({"test/return": 1e5 * lr + seed + number / 12}, env_step=step)
    return folder


def test_what_settings_share_is_named_and_shares_may_be_added(tried: Path, serve: Any, page: Any) -> None:
    page.open(serve(tried), "#/sweep").settled()
    shares = page.tab.locator(".matter .num").all_inner_texts()
    assert sum(int(share.split(" %")[0]) for share in shares if "%" in share) <= 102, "each is rounded"
    matters = page.tab.locator(".matters").inner_text()
    assert "opt alone goes with" in matters
    assert "What lr has of that is counted there" in matters
    assert page.errors == []


def test_an_axis_is_log_where_its_values_are_and_the_address_keeps_what_a_hand_chose(
    tried: Path, serve: Any, page: Any
) -> None:
    page.open(serve(tried), "#/sweep?of=config.ent").settled()
    names = page.tab.locator(".axisnames")
    assert "ent log" in names.inner_text().replace("\n", " ")
    page.tab.get_by_title("ent: linear axis").click()
    page.tab.wait_for_function("() => location.hash.includes('axes=config.ent:linear')")
    page.tab.reload()
    page.settled()
    assert page.tab.get_by_title("ent: log axis").is_visible()
    assert "ent log" not in names.inner_text().replace("\n", " ")


def test_compare_takes_what_it_offers_however_many_runs_are_drawn(tried: Path, serve: Any, page: Any) -> None:
    page.open(serve(tried), "#/runs?g=none").settled()
    page.tab.keyboard.press("Control+a")
    offer = page.tab.get_by_role("link", name="Compare 20 of 24, what is drawn")
    offer.click()
    page.tab.wait_for_selector(".said .ranking")
    page.settled()
    assert "The first 20 of 24 that are drawn." in page.tab.locator(".said").inner_text()
    assert page.errors == []
