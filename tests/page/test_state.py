"""The state of the page is the user's: whatever happens to runs and to the server, what one looks at stays."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import rollbook
from page_server import record
from rollbook.plots._style import THEMES
from rollbook.runs.report import write
from rollbook.server.serving import listen
from rollbook.server.settings import ServerSettings

STATE = """() => {
    const at = document.activeElement;
    return {
        hash: location.hash,
        drawn: [...document.querySelectorAll('.square[aria-pressed=true]')].map(
            one => one.getAttribute('aria-label') + one.firstElementChild.className
        ).sort(),
        names: document.querySelector('.slot.big .plotarea')?.dataset.drawn.split(' ').slice(0, 2).join(' '),
        scroll: [...document.querySelectorAll('.scroll')].map(one => [one.getAttribute('aria-label'), one.scrollTop]),
        menus: [...document.querySelectorAll(':popover-open input')].map(one => one.value),
        focus: [at.tagName, at.id, at.className, at.getAttribute('aria-label')?.replace(/ends at.*/, '')],
        cause: document.querySelector('#cause h2')?.textContent ?? '',
        red: document.querySelectorAll('.alert.bad').length,
    };
}"""
COLORS = """() => Object.fromEntries([...document.querySelectorAll('.square[aria-pressed=true]')].map(
    one => [one.getAttribute('aria-label'), one.firstElementChild.className]))"""


def scroll(page: Any) -> None:
    page.tab.locator("#charts .scroll").evaluate("box => { box.scrollTop = 240; }")


def open_menu(page: Any) -> None:
    page.tab.locator("text=Columns").first.click()
    page.tab.locator(":popover-open input[type=search]").fill("lr")


def open_cause(page: Any) -> None:
    box = page.tab.locator(".slot.big .plotarea").first.bounding_box()
    page.tab.mouse.click(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.5)
    page.tab.locator("#cause .causehead h2").wait_for()
    page.tab.locator("#cause section").nth(1).wait_for()


STATES: dict[str, tuple[str, Any]] = {
    "the first view": ("#/runs", lambda page: None),
    "a selection": ("#/runs", lambda page: page.tab.locator(".square").nth(1).click()),
    "a zoom": ("#/runs?z=60_240", lambda page: None),
    "a scroll": ("#/runs", scroll),
    "an open menu": ("#/runs", open_menu),
    "the focus": ("#/runs", lambda page: page.tab.locator(".plotarea").first.focus()),
    "the focus of a row": ("#/runs", lambda page: page.tab.locator(".square").nth(1).focus()),
    "a filter": ("#/runs?q=pp", lambda page: None),
    "the cause of a point": ("#/runs", open_cause),
}


def look(page: Any) -> Any:
    return page.settled().tab.evaluate(STATE)


@pytest.mark.parametrize("state", STATES)
def test_no_event_changes_what_one_looks_at(page: Any, tmp_path: Path, state: str) -> None:
    folder = tmp_path / "runs"
    for name in ("ppo", "dqn"):
        record(folder, name, 1, 1e-3, rows=300)
    start, act = STATES[state]
    live = page.tab.locator(".live")
    more: dict[str, Any] = {"dir": folder, "sinks": [], "keeper": "inline"}

    def running(many: int) -> None:
        page.tab.wait_for_function(
            "n => document.querySelector('.live').textContent.includes(n)", arg=f"{many} running"
        )

    with listen(ServerSettings(roots=(str(folder),), port=0)) as server:
        address = server.address
        page.open(address, start).drawn(2).settled()
        act(page)
        before = look(page)
        newborn = rollbook.init("newborn", "sac", seed=1, config={"lr": 0.5}, **more)
        for i in range(2000):
            newborn.log({"train/return": float(i), "own/key": 1.0}, env_step=i)
        running(1)
        assert look(page) == before, "a run appeared"
        other = rollbook.init("cartpole", "ppo", seed=1, config={"lr": 0.7, "seed": 1, "net": {"width": 64}}, **more)
        other.log({"train/return": 1.0}, env_step=1)
        running(2)
        assert look(page)["red"] == 0, "a group appeared"
        for i in range(2, 4000):
            other.log({"train/return": float(i)}, env_step=i)
        newborn.finish()
        other.finish()
        page.tab.wait_for_function("() => !document.querySelector('.live').textContent.includes('running')")
        after = look(page)
    page.tab.wait_for_selector(".banner:has-text('does not answer')")
    with listen(ServerSettings(roots=(str(folder),), port=urlsplit(address).port)):
        page.tab.evaluate("dispatchEvent(new Event('online'))")
        page.tab.locator(".banner:has-text('does not answer')").wait_for(state="detached")
        back = look(page)
        assert back == after, "the server was away"
    # Another run of its name and seed is there: the group has another id, the run says what tells it from that one.
    group, setting = re.compile(r"ppo[^~.]*"), re.compile(r"(?<=ppo) lr [\d.]+(?=, seed)")
    for one in (before, after):
        one["hash"] = group.sub("ppo", one["hash"])
        one["drawn"] = [setting.sub("", name) for name in one["drawn"]]
        one["focus"] = [setting.sub("", name or "") for name in one["focus"]]
    assert after == before, "a group appeared, and runs ended"
    assert live.count() == 1
    assert page.errors == []


def test_a_new_run_is_announced_and_drawn_when_that_is_asked_for(page: Any, serve: Any, tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    record(folder, "ppo", 1, 1e-3, rows=300)
    page.open(serve(folder)).drawn(1).settled()
    with rollbook.init("newborn", "sac", seed=1, dir=folder, sinks=[], keeper="inline") as run:
        run.log({"train/return": 1.0}, env_step=1)
        page.tab.locator(".newborn").wait_for()
        assert "newborn/sac, seed 1" in page.tab.locator(".newborn").inner_text()
        page.tab.wait_for_function("() => document.querySelectorAll('.square[aria-pressed=true]').length === 1")
        page.tab.locator(".newborn >> text=show").click()
        page.tab.wait_for_function("() => document.querySelectorAll('.square[aria-pressed=true]').length === 2")
        assert page.tab.locator(".newborn").count() == 0
    assert page.errors == []


SEEDS = """() => [...document.querySelectorAll('.grid-row.seed .runname, .grid-row.group .fold')].map(
    one => one.title.split(/[ ,]/)[0] || one.ariaExpanded)"""


def test_groups_are_folded_by_hand_alone(page: Any, serve: Any, tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    for name in ("ppo", "dqn"):
        for seed in range(2):
            record(folder, name, seed, 1e-3, rows=200)
    page.open(serve(folder)).drawn(1).settled()
    tab = page.tab

    def seen(*expected: str) -> None:
        tab.wait_for_function(
            f"seen => JSON.stringify(({SEEDS})()) === seen", arg=json.dumps(expected).replace(", ", ",")
        )

    ppo = ["cartpole/ppo"] * 2
    seen("false", "false")
    tab.locator(".grid-row.group", has_text="ppo").locator(".fold").click()
    seen("false", "true", *ppo)
    tab.locator(".grid-row.group", has_text="ppo").locator(".square").click()  # open, and not drawn
    tab.keyboard.press("Escape")
    tab.keyboard.press("j")  # dqn
    tab.keyboard.press("ArrowRight")
    dqn = ["cartpole/dqn"] * 2
    seen("true", *dqn, "true", *ppo)
    tab.keyboard.press("j")  # one of its seeds
    tab.keyboard.press("ArrowLeft")
    seen("false", "true", *ppo)
    assert tab.locator(".grid-row.active").inner_text().startswith("dqn"), "where its group is now"
    with rollbook.init("cartpole", "ppo", seed=3, config={"lr": 0.7}, dir=folder, sinks=[], keeper="inline") as run:
        run.log({"train/return": 1.0}, env_step=1)
        tab.wait_for_function("() => document.querySelector('.live').textContent.includes('1 running')")
        tab.wait_for_function(f"() => ({SEEDS})().filter(one => one === 'cartpole/ppo').length === 2")
        page.settled()
        assert tab.evaluate(SEEDS).count("cartpole/ppo") == 2, "its group has another name now, and stays open"
    tab.locator("nav a", has_text="Health").click()
    page.settled()
    tab.locator("nav a", has_text="Runs").click()
    tab.wait_for_function(f"() => ({SEEDS})().filter(one => one === 'cartpole/ppo').length === 2")
    page.settled().tab.reload()
    tab.wait_for_function(f"() => ({SEEDS})().filter(one => one === 'cartpole/ppo').length === 2")
    assert tab.evaluate(SEEDS).count("true") == 1
    assert page.errors == []


ANNOUNCED = """() => {
    window.said = [];
    new MutationObserver(() => {
        const text = document.querySelector('.newborn')?.textContent ?? '';
        if (text !== '' && text !== window.last) window.said.push(text);
        window.last = text;
    }).observe(document.body, {childList: true, subtree: true, characterData: true});
}"""


def test_each_new_run_announces_itself_once_whatever_follows(page: Any, tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    record(folder, "ppo", 1, 1e-3, rows=300)
    line = page.tab.locator(".newborn")
    with listen(ServerSettings(roots=(str(folder),), port=0)) as server:
        address = server.address
        page.open(address).drawn(1).settled().tab.evaluate(ANNOUNCED)
        runs = []
        for name in ("shown", "closed"):
            run = rollbook.init("newborn", name, seed=1, dir=folder, sinks=[], keeper="inline")
            run.log({"train/return": 1.0}, env_step=1)
            runs.append(run)
            line.get_by_text(f"newborn/{name}, seed 1").wait_for()
            line.get_by_role("button", name="show" if name == "shown" else "Close").click()
            line.wait_for(state="detached")
        for run in runs:
            run.log({"train/return": 2.0}, env_step=2)
        page.tab.locator("nav a", has_text="Health").click()
        page.settled().tab.locator("nav a", has_text="Runs").click()
        page.settled()
    page.tab.wait_for_selector(".banner:has-text('does not answer')")
    with listen(ServerSettings(roots=(str(folder),), port=urlsplit(address).port)):
        page.tab.evaluate("dispatchEvent(new Event('online'))")
        page.tab.locator(".banner:has-text('does not answer')").wait_for(state="detached")
        for run in runs:
            run.log({"train/return": 3.0}, env_step=3)
            run.finish()
        page.tab.wait_for_function("() => !document.querySelector('.live').textContent.includes('running')")
        said = page.settled().tab.evaluate("() => window.said")
    assert said == [f"newborn/{name}, seed 1 started show" for name in ("shown", "closed")]
    assert page.errors == []


def test_colours_stay_over_reloads_filters_and_newer_runs(page: Any, serve: Any, tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    for name in ("ppo", "dqn"):
        record(folder, name, 1, 1e-3, rows=200)
    address = serve(folder)
    page.open(address).drawn(1).settled()
    first = page.tab.evaluate(COLORS)
    assert len(set(first.values())) == 2
    record(folder, "sac", 1, 1e-3, rows=200)
    page.tab.wait_for_function("() => document.body.innerText.includes('sac')")  # the server knows it
    page.tab.reload()
    page.drawn(1).settled()
    later = page.tab.evaluate(COLORS)
    assert len(later) == 3
    assert first.items() <= later.items()
    for name in ("ppo", "dqn", "sac"):
        page.open(address, f"#/runs?f=name+%3D+'{name}'").settled()
        page.tab.wait_for_function("() => document.querySelectorAll('.square[aria-pressed=true]').length === 1")
        assert page.tab.evaluate(COLORS).items() <= later.items()
    assert page.errors == []


def test_groups_have_one_colour_on_the_page_in_plots_and_in_reports(page: Any, serve: Any, tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    for name in ("ppo", "dqn", "sac"):
        for seed in (1, 2):
            record(folder, name, seed, 1e-3, rows=200)
    address = serve(folder)
    page.open(address, "#/runs?f=name+%3D+'sac'").drawn(1).settled()  # first drawn alone: the first colour
    page.open(address, "#/runs").settled()
    page.tab.wait_for_function("() => document.querySelectorAll('.square[aria-pressed=true]').length === 3")
    shown = page.tab.evaluate(COLORS)
    number = {label.split()[-1]: int(name.rpartition(" s")[2]) for label, name in shown.items()}
    assert number["sac"] == 1
    assert len(set(number.values())) == 3
    runs = rollbook.open(folder)
    (legend,) = runs.plot("train/return", by="name").figure().legends
    light = THEMES["light"].series
    plotted = {
        text.get_text().split(":")[0]: light.index(line.get_color()) + 1
        for line, text in zip(legend.get_lines(), legend.get_texts(), strict=True)
        if line.get_color() in light  # the mark of values that are not finite has none
    }
    assert plotted == number
    report = Path(write(runs.where("name = 'sac'"), tmp_path / "report.html", metric="train/return", by="name"))
    (body,) = re.findall("<svg.*?</svg>", report.read_text(), re.DOTALL)[:1]
    assert set(re.findall(r"var\(--rb-series-(\d+)", body)) == {"1"}
    page.tab.evaluate("localStorage.clear()")
    page.tab.reload()
    page.drawn(1).settled()
    assert page.tab.evaluate(COLORS) == shown, "they are kept with the runs, not in the browser"
    page.tab.locator(".grid-row.group").first.hover()
    page.tab.locator(".grid-row.group .more").first.click()
    page.tab.get_by_label("Colour 9").click()
    page.tab.wait_for_function(f"() => Object.values(({COLORS})()).some(one => one.endsWith('s9'))")
    page.settled()
    assert 9 in {look + 1 for look in runs.curves("train/return", by="name").looks.values()}, "a hand chose it"
    assert page.errors == []
