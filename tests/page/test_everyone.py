"""Everyone can use the page: axe finds nothing, by any of its rules, on any page, dark or light, wide or on a phone."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

import rollbook
from agent_rollouts import record_agents
from page_geometry import CONTROLS, COVERED

AXE = Path(__file__).parents[2] / "dashboard" / "node_modules" / "axe-core" / "axe.min.js"
PLACES = [
    "runs",
    "runs?draw=ends",
    "run/{run}",
    "compare",
    "sweep",
    "episodes?run={run}",
    "samples?run={run}",
    "timings?run={run}",
    "health",
    "health?run={run}",
    "sql?run={run}",
]
PLACES += ["runs?show={run}.1&cause={run},env_step,20,train/return"]
PLACES += ["rollouts?run={agents}", "rollouts?run={agents}&tab=tasks", "rollouts?run={agents}&tab=fates"]
PLACES += ["rollouts?run={agents}&open=1", "rollouts?run={agents}&tab=prompts&other={other}"]
PLACES += ["media?run={run}", 'runs?g=none&pin=="train/return"+-+"update/loss"~="train/return",+"update/loss"']
PLACES += ["run/{crashed}", "compare?q=nobody", "sweep?q=nobody", "runs?q=nobody"]
SCREENS = {"light": ("light", 1440, 900), "dark": ("dark", 1440, 900), "phone": ("light", 390, 844)}

ASK_AXE = """async () => {
    const left = ['experimental', 'wcag2aaa'];  // what is promised is AA
    const rules = axe.getRules().filter(rule => !rule.tags.some(tag => left.includes(tag)));
    const found = await axe.run(document, {runOnly: rules.map(rule => rule.ruleId)});
    return found.violations.filter(v => v.impact !== 'minor');
}"""


BEYOND = """() => [...document.querySelectorAll('body *')]
    .filter(one => one.getBoundingClientRect().right > innerWidth + 0.5)
    .map(one => one.cloneNode().outerHTML.slice(0, 120))"""
WIDE_TABLES = """() => [...document.querySelectorAll('.minitable, .grid')]
    .filter(one => one.checkVisibility() && one.scrollWidth > one.clientWidth + 1).map(one => one.ariaLabel)"""
DRAWN_AGAIN = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
WIDTHS = (1440, 1100, 1024, 1000, 900, 780, 390)


@pytest.fixture(scope="module")
def looked_at(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """Runs with something on every page, and the ids of some of them."""
    folder = tmp_path_factory.mktemp("everyone") / "runs"
    with (
        contextlib.suppress(ZeroDivisionError),
        rollbook.init("cartpole", "dqn", seed=1, dir=folder, sinks=[], keeper="inline") as crashed,
    ):
        crashed.log({"train/return": 1.0}, env_step=1)
        raise ZeroDivisionError("no steps")
    for seed in range(3):
        with rollbook.init(
            "cartpole",
            "ppo",
            seed=seed,
            config={"lr": (3e-4, 3e-4, 1e-3)[seed]},
            dir=folder,
            sinks=[],
            total={"env_step": 60},
        ) as run:
            for step in range(60):
                run.log({"train/return": float(step), "update/loss": 1 / (1 + step)}, env_step=step)
            run.log_samples(
                ["a prompt"] * 4,
                group=1,
                completion=["an answer"] * 4,
                reward=[1.0, 0.0, 1.0, 0.0],
                advantage=[1.0, -1.0, 1.0, -1.0],
            )
            run.log_episode(**{"return": 1.0, "length": 3, "terminated": True})
            with run.timer("collect"):
                pass
            run.note("looked at it")
    return folder, {
        "run": run.id,
        "crashed": crashed.id,
        "agents": record_agents(folder, 4),
        "other": record_agents(folder, 4),
    }


@pytest.mark.parametrize("screen", SCREENS)
def test_axe_finds_nothing_moderate_or_worse_by_any_of_its_rules(
    tab_of: Any, serve: Any, looked_at: tuple[Path, dict[str, str]], screen: str
) -> None:
    folder, runs = looked_at
    theme, width, height = SCREENS[screen]
    page = tab_of(width, height)
    address = serve(folder)
    told: dict[str, list[tuple[str, str, str]]] = {}
    for place in PLACES:
        page.tab.goto("about:blank")  # the next place is loaded anew, not only its hash
        page.open(f"{address}?theme={theme}", f"#/{place.format(**runs)}").settled()
        page.tab.evaluate(AXE.read_text())
        found = page.tab.evaluate(ASK_AXE)
        told[place] = [
            (one["id"], one["nodes"][0]["html"][:200], one["nodes"][0]["failureSummary"][:300]) for one in found
        ]
    assert {place: wrong for place, wrong in told.items() if wrong} == {}


@pytest.mark.parametrize("screen", SCREENS)
def test_axe_finds_nothing_in_any_open_menu_either(
    tab_of: Any, serve: Any, looked_at: tuple[Path, dict[str, str]], screen: str
) -> None:
    folder, runs = looked_at
    theme, width, height = SCREENS[screen]
    page = tab_of(width, height)
    told = {}
    for place in ("runs?g=none", "compare", "sweep", "rollouts?run={agents}"):
        page.tab.goto("about:blank")
        page.open(f"{serve(folder)}?theme={theme}", f"#/{place.format(**runs)}").settled()
        page.tab.evaluate(AXE.read_text())
        buttons = page.tab.locator("main [popovertarget]:visible, .top [popovertarget]:visible")
        for n in range(buttons.count()):
            buttons.nth(n).evaluate("one => { one.scrollIntoView({block: 'center'}); one.click(); }")
            page.tab.wait_for_selector(".menu:popover-open :is(button, input, a, p)")
            page.settled()
            found = page.tab.evaluate(ASK_AXE)
            told[place, n] = [(one["id"], one["nodes"][0]["html"][:200]) for one in found]
            page.tab.keyboard.press("Escape")
    assert len(told) >= 10
    assert {place: wrong for place, wrong in told.items() if wrong} == {}


def test_no_control_is_cut_or_covered_at_any_width(
    page: Any, serve: Any, looked_at: tuple[Path, dict[str, str]]
) -> None:
    folder, runs = looked_at
    address, hidden = serve(folder), []
    for place in PLACES:
        page.open(address, f"#/{place.format(**runs)}").settled()
        for width in (1920, 1600, 1366, 1280, *WIDTHS):
            page.tab.set_viewport_size({"width": width, "height": 800})
            hidden += [(place, width, one) for one in page.tab.evaluate(COVERED, CONTROLS)]
    assert hidden == []


def test_no_page_is_wider_than_the_window(page: Any, serve: Any, looked_at: tuple[Path, dict[str, str]]) -> None:
    folder, runs = looked_at
    address, wider = serve(folder), []
    for place in PLACES:
        page.open(address, f"#/{place.format(**runs)}").settled()
        for width in (1280, *WIDTHS):
            page.tab.set_viewport_size({"width": width, "height": 800})
            if page.tab.evaluate("document.documentElement.scrollWidth > innerWidth"):
                wider.append((place, width, page.tab.evaluate(BEYOND)))
            if width >= 1280 and not place.startswith("sql"):  # of which the columns are whatever was asked for
                page.tab.evaluate(DRAWN_AGAIN)
                wider += [(place, width, table) for table in page.tab.evaluate(WIDE_TABLES)]
    assert wider == []
