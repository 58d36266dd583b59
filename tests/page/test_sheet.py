"""Every key on the help sheet of a page changes what it says; one without a line here fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import rollbook
from agent_rollouts import record_agents
from page_server import record

KEYS = """() => [...document.querySelectorAll('dialog[open] .keys li[data-keys]')].map(
    one => [one.dataset.keys, one.textContent])"""
NAMES = {" ": "Space"}


def word(name: str) -> str:
    """The value of a word of the address."""
    return f"new URLSearchParams(location.hash.split('?')[1] ?? '').get('{name}')"


def menu(button: str) -> str:
    """Whether the menu of a button is open."""
    return f"document.querySelector(':popover-open')?.parentElement.querySelector('#{button}') != null"


class Act(NamedTuple):
    """What is looked at (JavaScript) has to change when the key is pressed, after the keys of `first`.

    Attributes:
      becomes: what it has to be then; None: anything else than before.
    """

    looked: str
    first: tuple[str, ...] = ()
    becomes: Any = None


ROW = word("row")
DIALOG = "document.querySelector('dialog[open]') !== null"
PAGE = "location.hash.match(/^#.\\w+/)[0]"
EVERYWHERE = {
    "/ ctrl k": Act(DIALOG, (), True),
    "?": Act(DIALOG, (), True),
    "T": Act("document.documentElement.dataset.theme"),
}
FOCUSED = "document.activeElement.className"
TIME = "document.querySelector('video').currentTime"
ACTIVE, SHOWN, ZOOM = "document.querySelector('.grid-row.active')?.textContent", word("show"), word("z")
PAGES: dict[str, tuple[str, str, dict[str, Act]]] = {
    "runs": ("#/runs?z=60_140", ".slot.big .plotarea", {
        "ArrowRight": Act(word("open"), ("j", "j")), "ArrowLeft": Act(word("open"), ("ArrowRight",)),  # of a group
        "j": Act(ACTIVE), "k": Act(ACTIVE, ("j", "j")), " ": Act(SHOWN, ("j",)),
        "Enter": Act("location.hash + document.querySelectorAll('.grid-row').length", ("j",)), "g": Act(word("g")),
        "shift ArrowDown": Act(SHOWN, ("j",)), "shift ArrowUp": Act(SHOWN, ("j", "j", "j")),
        "ctrl a": Act(SHOWN), "i": Act(SHOWN), "c": Act(PAGE, (), "#/compare"),
        "+ =": Act(ZOOM), "-": Act(ZOOM), "0": Act(ZOOM, (), None),
        "shift ArrowLeft": Act(ZOOM), "shift ArrowRight": Act(ZOOM),
        **{key: Act(menu(f"pick-{name}")) for key, name in zip("xysb", ("x", "y", "s", "board"), strict=True)},
        "a": Act(menu("add-chart")), "f": Act(word("full")), "Escape": Act(word("full"), ("f",)),
        "ArrowUp ArrowDown": Act(ACTIVE, ("v", "v", "ArrowDown", "ArrowDown")), "v": Act(FOCUSED),
        "m ContextMenu": Act("document.querySelector('.menu:popover-open') !== null", ("j",), True),
    }),
    "cause": ("#/runs?g=none&cause={run},env_step,150,train/return", "#cause section", {
        "ArrowLeft": Act(word("cause")), "ArrowRight": Act(word("cause")),
        "e": Act(PAGE, (), "#/episodes"), "Escape": Act(word("cause")),
    }),
    "episodes": ("#/episodes?run={run}", "video", {
        "j ]": Act(word("episode")), "k [": Act(word("episode"), ("j", "j")), " ": Act(TIME),
        ",": Act(TIME, (".", ".")), ".": Act(TIME), "b": Act(menu("beside")),
    }),
    "samples": ("#/samples?run={run}", ".grid-row", {"j": Act(ROW), "k": Act(ROW, ("j", "j"))}),
    "media": ("#/media?run={run}", ".stepper", {
        "ArrowLeft": Act(word("at")), "ArrowRight": Act(word("at"), ("ArrowLeft", "ArrowLeft")),
    }),
    "timings": ("#/timings?run={run}", "canvas", {
        "w": Act(word("at")), "s": Act(word("at"), ("w", "w")), "a": Act(word("at"), ("w",)),
        "d": Act(word("at"), ("w",)),
    }),
    "rollouts": ("#/rollouts?run={agents}", ".turn", {
        "j": Act(ROW), "k": Act(ROW, ("j", "j")), "n": Act("document.querySelector('.turn.now')?.id"),
        "p": Act("document.querySelector('.turn.now')?.id", ("n", "n")),
        "o": Act("document.querySelectorAll('details[open]').length"),
        "h": Act("document.querySelector('[aria-label=\"The rollout\"]').innerHTML"),
        "[": Act(ROW, ("]", "]")), "]": Act(ROW), "d": Act("document.querySelector('.turnsdiff')?.ariaLabel"),
        "J": Act(ROW), "K": Act(ROW, ("J", "J")), "g": Act(word("list")), "e": Act(word("turn"), ("J", "J")),
        "ArrowRight": Act("document.querySelectorAll('.fold[aria-expanded=true]').length", ("j",)),
        "ArrowLeft": Act("document.querySelectorAll('.fold[aria-expanded=true]').length", ("j", "ArrowRight")),
        "Enter": Act(word("open")), "Escape": Act(word("open"), ("Enter",)),
        "t": Act("document.activeElement.className", (), "heatstrip"),
        "w": Act("document.activeElement.id", (), "brush"),
    }),
    "prompts": ("#/rollouts?run={agents}&tab=tasks", ".grid-row", {
        "j": Act(ROW), "k": Act(ROW, ("j", "j")), "w": Act("document.activeElement.id", (), "strip"),
    }),
    **{name: (f"#/{name}?run={{run}}", "main *", {}) for name in ("run", "health", "compare", "sweep", "sql")},
}  # fmt: skip


@pytest.fixture(scope="module")
def studied(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """Runs that have something on every page; their ids by the word that addresses use."""
    pytest.importorskip("imageio_ffmpeg", reason="without it videos are pictures that move, and have no cursor")
    folder = tmp_path_factory.mktemp("studied") / "runs"
    agents = record_agents(folder, 2)
    for seed in range(3):
        record(folder, "ppo", seed, 1e-3, rows=200)
    with rollbook.init("dot", "cem", seed=1, dir=folder, sinks=[], keeper="inline", rules=()) as run:
        for n in range(300):
            with run.timer("update"):
                run.log({"train/return": float(n)}, env_step=n)
        for n in range(3):
            run.log_episode(episode_id=f"e{n}", return_=float(n), length=20, terminated=True, env_step=100 * n + 50)
            frames = np.zeros((20, 32, 32, 3), np.uint8)
            run.log_video("video", frames, fps=10, episode_id=f"e{n}", env_step=100 * n + 50)
            run.log_samples([f"why {n}?"], [f"so {n}"], reward=[float(n)], env_step=n)
        return folder, {"run": run.id, "agents": str(agents)}


@pytest.mark.parametrize("name", PAGES)
def test_every_key_of_the_help_sheet_does_what_it_says(
    page: Any, serve: Any, studied: tuple[Path, dict[str, str]], name: str
) -> None:
    folder, ids = studied
    where, there, own = PAGES[name]
    address, where = serve(folder), where.format(**ids)
    acts = EVERYWHERE | own
    tab = page.tab

    def fresh() -> None:
        """As the address says, without menus; what the page was asked before has been answered."""
        tab.keyboard.press("Escape")
        tab.evaluate("where => { location.hash = where }", where)
        tab.wait_for_selector(there)
        page.settled()

    page.open(address, where).settled()
    fresh()
    tab.keyboard.press("?")
    tab.wait_for_selector("dialog[open] kbd")
    sheet = dict(tab.evaluate(KEYS))
    # The cause of a point stands beside the charts, whose keys still work.
    others = set(PAGES["runs"][2]) if name == "cause" else set()
    assert set(sheet) - others <= set(acts), "a key of the sheet is not tried here"
    assert set(acts) - {"Escape"} <= set(sheet), "a key that is tried here is not on the sheet"
    for keys, act in acts.items():
        fresh()
        for key in act.first:
            tab.keyboard.press(NAMES.get(key, key))
            page.settled()  # what the key opened is there, and the address is written
        before = tab.evaluate(f"() => {act.looked}")
        key = NAMES.get(keys) or keys.replace("shift ", "Shift+").replace("ctrl a", "Control+a").split(" ")[0]
        tab.keyboard.press(key)
        try:
            tab.wait_for_function(f"before => ({act.looked}) !== before", arg=before, timeout=60_000)
        except Exception:
            raise AssertionError(f"{name}: {keys!r} ({sheet.get(keys)}) left {act.looked} at {before!r}") from None
        if act.becomes is not None:
            assert tab.evaluate(f"() => {act.looked}") == act.becomes, f"{name}: {keys!r}"
    assert page.errors == []
