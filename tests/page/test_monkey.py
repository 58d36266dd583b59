"""Hands that mean nothing: many random clicks, keys, drags and sizes, while a run writes and the server is restarted.

Whatever they lead to, nothing fails in the console, and the address restores the view.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import rollbook
from page_server import record, record_rich
from rollbook.server.serving import listen
from rollbook.server.settings import ServerSettings

KEYS = [*"jkgcfixysb0+-T?/", "Escape", "Escape", "Enter", "Space", "Tab", "ArrowLeft", "ArrowDown", "Shift+ArrowRight"]
SIZES = [(1440, 900), (390, 844), (1024, 700)]
PAGES = ("runs", "compare", "sweep", "episodes", "samples", "rollouts", "timings", "health")
SEEN = "() => [location.hash, document.querySelector('main')?.innerText.length > 0]"


def click(page: Any, dice: random.Random) -> None:
    """Something that can be clicked and leads to no download or other site."""
    page.tab.evaluate(
        """at => {
            const all = [...document.querySelectorAll('button, a[href^="#"], .grid-row')].filter(
                one => one.checkVisibility() && !one.disabled && !/download|save|stop/i.test(one.textContent));
            all[Math.floor(at * all.length)]?.click();
        }""",
        dice.random(),
    )


def drag(page: Any, dice: random.Random) -> None:
    size = page.tab.viewport_size
    places = [(dice.random() * size["width"], dice.random() * size["height"]) for _ in range(2)]
    page.tab.mouse.move(*places[0])
    page.tab.mouse.down()
    page.tab.mouse.move(*places[1], steps=3)
    page.tab.mouse.up()


def wheel(page: Any, dice: random.Random) -> None:
    page.tab.keyboard.down("Control")
    page.tab.mouse.wheel(0, dice.choice([-120, 120]))
    page.tab.keyboard.up("Control")


def key(page: Any, dice: random.Random) -> None:
    page.tab.keyboard.press(dice.choice(KEYS))


def resize(page: Any, dice: random.Random) -> None:
    width, height = dice.choice(SIZES)
    page.tab.set_viewport_size({"width": width, "height": height})


def travel(page: Any, dice: random.Random) -> None:
    page.tab.evaluate("hash => { location.hash = hash; }", f"#/{dice.choice(PAGES)}")


ACTS = [click] * 8 + [key] * 8 + [drag] * 2 + [wheel] * 2 + [resize, travel]


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3, 17))])
def test_random_hands_break_nothing_and_the_address_restores_what_they_left(
    page: Any, tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)
    folder = tmp_path / "runs"
    record_rich(folder)
    for number in range(3):
        record(folder, "ppo", number, 1e-3, rows=200)
    with rollbook.init("cartpole", "dqn", seed=1, dir=folder, sinks=[], keeper="inline") as run:
        port = 0
        for part in range(3):
            with listen(ServerSettings(roots=(str(folder),), port=port)) as server:
                port = urlsplit(server.address).port or 0
                if part == 0:
                    page.open(server.address).drawn(1)
                did = []
                for step in range(40):
                    act = dice.choice(ACTS)
                    did.append(act.__name__)
                    act(page, dice)
                    run.log({"train/return": float(step)}, env_step=40 * part + step)
                    assert page.errors == [], did[-8:]
                page.tab.locator(".live:not(.off)").wait_for(state="attached")  # it has found the new server
                before = page.settled().tab.evaluate(SEEN)
                page.tab.reload()
                assert page.settled().tab.evaluate(SEEN) == before
                assert page.errors == []
