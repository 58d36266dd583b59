"""Sweep and Compare say what these runs can tell, and offer nothing that they then refuse."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path
from typing import Any

import pytest

import rollbook
from rollbook.server.curves import memory
from waiting import PATIENCE


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


def test_an_answer_that_takes_long_says_how_many_runs_are_read(
    tried: Path, serve: Any, page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, nth, contents = threading.Event(), itertools.count(), memory.contents

    def slow(context: Any, row: Any, stamp: object = None) -> Any:
        if next(nth) == 10:
            seen.wait(PATIENCE)
        return contents(context, row, stamp)

    monkeypatch.setattr(memory, "contents", slow)
    page.open(serve(tried), "#/sweep")
    page.tab.get_by_text("10 of 24 runs").wait_for()
    seen.set()
    page.tab.locator(".verdict").wait_for()
    assert page.tab.get_by_text("of 24 runs").count() == 0
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
    table = page.tab.get_by_label("Table of runs")
    before = table.bounding_box()
    page.tab.keyboard.press("Control+a")
    offer = page.tab.get_by_role("link", name="Compare 20 of 24, what is drawn")
    offer.wait_for()
    assert table.bounding_box() == before, "the table stays where it is"
    offer.click()
    page.tab.wait_for_selector(".said .ranking")
    page.settled()
    assert "The first 20 of 24 that are drawn." in page.tab.locator(".said").inner_text()
    assert page.errors == []


@pytest.fixture(scope="module")
def nested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random search over a deep configuration: long paths, long words, no two runs alike."""
    folder = tmp_path_factory.mktemp("nested") / "runs"
    for n in range(14):
        config = {
            "env": {"id": ("FrozenLake-v1-slippery", "Taxi-v3")[n % 2]},
            "agent": {
                "optim": {"lr": 10.0 ** -(1 + n % 5), "lr_decay": (0.0, 1e-3)[n // 7]},
                "exploration": {"kind": ("eps_greedy", "softmax", "ucb")[n % 3], "temperature": 0.1 * (n + 1)},
                "n_step": 1 + n % 4,
            },
            "critic": {"optim": {"lr": 10.0 ** -(1 + n % 3)}},
        }
        with rollbook.init("p", f"trial_{n}", dir=folder, config=config, sinks=[], keeper="inline", rules=()) as run:
            for step in range(4):
                run.log({"test/return": n % 5 + step * 0.1}, env_step=step)
    return folder


NAMES_LIE_OVER = """() => {
    const boxes = [...document.querySelectorAll('.axisnames button')].map(one => one.getBoundingClientRect());
    return boxes.slice(1).filter((box, i) => box.left < boxes[i].right - 1).length;
}"""
CUT_AT_THE_LEFT = """() => {
    const left = document.querySelector('.threads svg').getBoundingClientRect().left;
    return [...document.querySelectorAll('.threads .tick')].filter(
        one => one.getBoundingClientRect().left < left).length;
}"""


@pytest.mark.parametrize("width", [1440, 1000, 390])
def test_axes_have_names_of_their_own_that_can_be_read(nested: Path, serve: Any, tab_of: Any, width: int) -> None:
    page = tab_of(width, 900).open(serve(nested), "#/sweep").settled()
    assert page.tab.evaluate(NAMES_LIE_OVER) == 0
    assert page.tab.evaluate(CUT_AT_THE_LEFT) == 0
    names = [
        name.replace("\n", " ").removesuffix(" log") for name in page.tab.locator(".axisnames button").all_inner_texts()
    ]
    assert len(set(names)) == len(names)
    ranks = page.tab.get_by_role("table", name="Configurations").get_by_role("link").all_inner_texts()
    assert not any("…" in rank and rank.replace("…", "").strip("# 0123456789") == "" for rank in ranks), ranks
    assert {"temperature", "n_step", "lr_decay", "exploration.kind", "env.id"} <= set(names)
    assert page.errors == []


def test_many_notes_about_pairs_are_folded(nested: Path, serve: Any, page: Any) -> None:
    page.open(serve(nested), "#/runs?g=none").settled()
    page.tab.keyboard.press("c")
    page.tab.wait_for_selector(".said .ranking")
    page.settled()
    assert page.tab.locator(".said .notes .tag:visible").count() <= 3
    assert page.errors == []


@pytest.mark.parametrize("width", [1440, 390])
def test_the_values_of_a_setting_stay_inside_their_card_and_apart(
    tmp_path: Path, serve: Any, tab_of: Any, width: int
) -> None:
    for env in ("CartPole-v1", "HalfCheetah-v5", "Hopper-v5", "Walker2d-v5", "HumanoidStandup-v5"):
        for seed in (0, 1):
            with rollbook.init(
                "p", env, seed=seed, config={"env": env}, dir=tmp_path, sinks=[], keeper="inline", rules=()
            ) as run:
                run.log({"test/return": len(env) + 0.1 * seed}, env_step=1)
    page = tab_of(width, 900).open(serve(tmp_path), "#/sweep").settled()
    card = page.tab.locator(".against").bounding_box()
    ticks = page.tab.locator(".against .tick[text-anchor=middle]:not(.name)").all()
    boxes = sorted((tick.bounding_box() for tick in ticks), key=lambda box: box["x"])
    assert len(boxes) >= 3
    assert boxes[0]["x"] >= card["x"] + 2
    assert boxes[-1]["x"] + boxes[-1]["width"] <= card["x"] + card["width"] - 2
    assert all(one["x"] + one["width"] < other["x"] for one, other in itertools.pairwise(boxes))
    assert page.errors == []
