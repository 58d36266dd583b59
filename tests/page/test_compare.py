"""Compare: what it advises is done by a control of the page, not by options of another door."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

import pytest

import rollbook
from page_server import file_server
from rollbook.server.static_copy import export


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two algorithms that all reach 500, in environments of their own, of which one run is shorter and one crashed."""
    folder = tmp_path_factory.mktemp("solved") / "runs"
    for algo, environment, steps in (("ppo", "CartPole-v1", 30), ("dqn", "Acrobot-v1", 20)):
        for seed in range(6):
            with (
                contextlib.suppress(ZeroDivisionError),
                rollbook.init(
                    "p",
                    algo,
                    seed=seed,
                    config={"algo": algo, "env": environment},
                    dir=folder,
                    sinks=[],
                    keeper="inline",
                    rules=(),
                ) as run,
            ):
                for step in range(steps):
                    run.log({"test/return": min(500.0, 40.0 * step * (1 + seed % 2))}, env_step=step)
                if (algo, seed) == ("dqn", 5):
                    raise ZeroDivisionError
    return folder


def said(page: Any) -> str:
    """What Compare says above its charts."""
    return str(page.tab.evaluate("() => document.querySelector('.said').innerText"))


def test_compare_offers_its_own_controls_and_no_options(page: Any, serve: Any, solved: Path) -> None:
    page.open(serve(solved), "#/runs").settled()
    page.tab.keyboard.press("c")
    page.tab.wait_for_selector(".said .ranking")
    page.settled()
    page.tab.locator(".said summary").evaluate_all("every => every.forEach(one => one.click())")
    assert "did not finish" in said(page)
    assert not re.search(r"--\w|\w=", said(page)), said(page)

    page.tab.get_by_role("button", name="Score all at 19").click()
    page.tab.wait_for_function("() => location.hash.includes('step=19')")
    page.settled()
    assert "end at different positions" not in said(page)
    page.tab.go_back()
    page.tab.get_by_role("button", name="Compare the steps to 500").click()
    page.tab.wait_for_function("() => location.hash.includes('score=steps+to+500')")
    page.settled()
    assert "steps to 500" in page.tab.locator("#main").inner_text()
    page.tab.reload()
    page.settled()
    page.tab.get_by_role("button", name="score steps to 500").click()
    page.tab.locator(".menu").get_by_role("button", name="last", exact=True).click()
    page.tab.wait_for_function("() => location.hash.includes('score=last')")
    page.settled()
    assert page.errors == []


def test_a_remark_about_environments_leads_to_groups_of_them(page: Any, serve: Any, solved: Path) -> None:
    page.open(serve(solved), "#/runs").settled()
    page.tab.keyboard.press("c")
    page.tab.get_by_role("link", name="Group by env").click()
    page.tab.wait_for_selector(".grid-body .group")
    page.settled()
    assert "g=config.env" in page.tab.evaluate("() => location.hash")
    assert page.errors == []


def test_a_setting_is_found_among_many_also_if_it_is_equal(page: Any, serve: Any, tmp_path: Path) -> None:
    for seed in range(2):
        for lr in (1, 2):
            config = {"lr": lr, **{f"layer_{n}": {"width": n} for n in range(20)}, "optimiser": {"beta": 0.9}}
            with rollbook.init(
                "p", "ppo", seed=seed, config=config, dir=tmp_path / "runs", sinks=[], keeper="inline", rules=()
            ) as run:
                run.log({"test/return": float(lr + seed)}, env_step=1)
    page.open(serve(tmp_path / "runs"), "#/compare").settled()
    table = page.tab.get_by_role("region", name="Configuration of each group")
    assert table.locator("tbody tr").count() == 1
    page.tab.get_by_label("Find a setting").fill("opt*beta")
    page.tab.wait_for_function("() => document.querySelector('.confs tbody').innerText.includes('optimiser.beta')")
    assert table.locator("tbody tr").count() == 1
    page.tab.get_by_label("Find a setting").fill("")
    page.tab.wait_for_function("() => document.querySelector('.confs tbody').innerText.includes('lr')")
    assert page.errors == []


def test_of_single_runs_nothing_is_offered_that_needs_seeds_and_no_tick_is_there_twice(
    page: Any, serve: Any, tmp_path: Path
) -> None:
    for name, score in (("kl0", 1.0921), ("kl0.04", 1.0711)):
        with rollbook.init("math", name, seed=1, dir=tmp_path / "runs", sinks=[], keeper="inline", rules=()) as run:
            for step in range(40):
                run.log({"train/reward": score}, env_step=step)
    page.open(serve(tmp_path / "runs"), "#/compare")
    page.tab.wait_for_selector(".said .ranking")
    page.settled()
    assert "Compare the steps to" not in said(page), "the better of two runs is not the best that a task can give"
    assert "Performance profile" not in page.tab.inner_text("#main")
    ticks = page.tab.locator(".rowplot .ticktext").all_inner_texts()
    assert len(ticks) == len(set(ticks)) >= 3
    assert page.errors == []


def test_of_several_environments_each_has_its_own_ranking_and_all_groups_of_a_small_study_are_drawn(
    page: Any, serve: Any, tmp_path: Path
) -> None:
    for scale, environment in enumerate(("Hopper-v5", "Ant-v5"), 1):
        for worth, algo in enumerate(("ppo", "td3", "sac")):
            for seed in range(5):
                with rollbook.init(
                    "p",
                    f"{algo}-{environment}",
                    seed=seed,
                    config={"algo": algo, "env": environment},
                    dir=tmp_path / "runs",
                    sinks=[],
                    keeper="import",
                ) as run:
                    run.log({"test/return": 10.0**scale * (1 + worth) + seed / 10}, env_step=100)
    page.open(serve(tmp_path / "runs"), "#/runs").drawn(1).settled()
    assert "Compare 6" in page.tab.locator("#main").inner_text()
    page.tab.keyboard.press("c")
    page.tab.wait_for_selector(".said .ranking")
    page.settled()
    rankings = [" ".join(text.split()) for text in page.tab.locator(".said .ranking").all_inner_texts()]
    assert sorted(rankings) == [
        "sac-Ant-v5 > td3-Ant-v5 > ppo-Ant-v5",
        "sac-Hopper-v5 > td3-Hopper-v5 > ppo-Hopper-v5",
    ]
    assert "6 of 6 pairs decided" in said(page)
    assert "Careful" not in said(page)
    export([str(tmp_path / "runs")], tmp_path / "copy")  # what the page opens with has its answer in a copy
    with file_server(tmp_path / "copy") as copy:
        page.open(copy, "#/compare").settled()
        page.tab.wait_for_selector(".said .ranking")
        assert "6 of 6 pairs decided" in said(page)
    assert page.errors == []
