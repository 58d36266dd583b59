"""On every page, not only on that of the runs: no event moves or changes what one looks at."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import rollbook
from page_server import record, record_rich
from rollbook.schema.manifest import edit
from rollbook.server.serving import listen
from rollbook.server.settings import ServerSettings

PLACES = [
    "runs?show={run}.1&cause={run},env_step,1000,reward",
    "compare",
    "sweep",
    "episodes?run={run}",
    "samples?run={run}",
    "rollouts?run={run}",
    "rollouts?tab=tasks&run={run}",
    "timings?run={run}",
    "health",
    "health?run={run}",
    "run/{run}",
    "sql?run={run}",
]
ALERT = {"rule": ["own"], "level": ["fail"], "message": ["the gripper is stuck"], "evidence": ["{}"], "source": ["own"]}
HOLD = """() => {
    for (const box of document.querySelectorAll('main, main .scroll, main .grid')) box.scrollTop = 30;
    const free = [...document.querySelectorAll('main button, main a, main input')].find(
        one => one.checkVisibility() && !one.disabled && one.getBoundingClientRect().top > 0);
    free?.focus({preventScroll: true});
    document.querySelector('main').held = free;
}"""
SEEN = """() => {
    const at = document.activeElement;
    return {
        hash: location.hash,
        title: document.querySelector('h1')?.textContent,
        scroll: [...document.querySelectorAll('main, main .scroll, main .grid')].map(one => one.scrollTop),
        focus: at === document.querySelector('main').held,
        menus: document.querySelectorAll(':popover-open, dialog[open]').length,
        red: document.querySelectorAll('.alert.bad').length,
        place: Math.round(at.getBoundingClientRect().top),
    };
}"""


def test_no_event_moves_what_one_looks_at_on_any_page(tab_of: Any, tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    run = record_rich(folder)
    more: dict[str, Any] = {"dir": folder, "sinks": [], "keeper": "inline", "rules": ()}
    for seed in range(2):
        for lr in (1e-3, 1e-2):
            record(folder, "ppo", seed, lr, rows=200)
    port = 0
    pages: dict[str, Any] = {}

    def unchanged(event: str) -> None:
        first, *others = pages.values()
        first.settled(*others)
        after = {place: page.tab.evaluate(SEEN) for place, page in pages.items()}
        moved = [
            f"{place}, {what}: {before[place][what]} is now {now}"
            for place, seen in after.items()
            for what, now in seen.items()
            if now != before[place][what]
        ]
        assert moved == [], f"{event}: " + "; ".join(moved)

    def all_know(predicate: str) -> None:
        for page in pages.values():
            page.tab.wait_for_function(predicate)

    with contextlib.ExitStack() as serving:
        server = serving.enter_context(listen(ServerSettings(roots=(str(folder),), port=0)))
        port = urlsplit(server.address).port or 0
        for place in PLACES:
            pages[place] = tab_of(1280, 500).open(server.address, f"#/{place.format(run=run)}")
        first, *others = pages.values()
        for look in (HOLD, SEEN):
            first.settled(*others)
            before = {place: page.tab.evaluate(look) for place, page in pages.items()}
        newborn = rollbook.init("newborn", "sac", seed=1, config={"lr": 0.5}, **more)
        newborn.log({"train/return": 1.0}, env_step=1)
        all_know("() => document.querySelector('.live').textContent.includes('1 running')")
        unchanged("a run begins")
        newborn.record("alerts", ALERT, n=1, env_step=1)
        for step in range(200):
            newborn.log({"train/return": float(step)}, env_step=step + 2)
        with contextlib.suppress(ZeroDivisionError), rollbook.init("cartpole", "ppo", seed=7, **more) as lost:
            lost.log({"train/return": 1.0}, env_step=1)
            raise ZeroDivisionError("a crash")
        pages["health"].tab.get_by_text("new · show").wait_for()
        unchanged("an alert, and a crash")
        edit(newborn.folder, {"name": "renamed", "tags": ["kept"]})
        newborn.finish()
        all_know("() => !document.querySelector('.live').textContent.includes('running')")
        unchanged("a run gets another name, and ends")
    for page in pages.values():
        page.tab.wait_for_selector(".banner:has-text('does not answer')")
    unchanged("the server stopped")
    with listen(ServerSettings(roots=(str(folder),), port=port)):
        for page in pages.values():
            page.tab.evaluate("dispatchEvent(new Event('online'))")
            page.tab.locator(".banner:has-text('does not answer')").wait_for(state="detached")
        unchanged("the server was away")
    assert [page.errors for page in pages.values() if page.errors] == []


def test_what_is_open_and_active_in_a_list_stays_so_while_newer_rows_come_before_it(
    tab_of: Any, serve: Any, tmp_path: Path
) -> None:
    """Samples and rollouts stand newest first: nobody who reads one is shown another."""
    with rollbook.init("live", "grpo", seed=1, dir=tmp_path, sinks=[]) as run:

        def more(step: int) -> None:
            for prompt in ("2 + 3", "17 * 23"):
                texts = [f"answer {n} of step {step} to {prompt}" for n in range(4)]
                asked = [prompt] * 4
                group = f"{step} {prompt}"
                run.rollouts.log_many(
                    prompts=asked, completions=texts, reward=[0.0, 1.0, 0.0, 1.0], group=group, policy_version=step
                )
                run.log_samples(
                    texts, group=group, prompt=asked, completion=texts, reward=[0.0, 1.0, 0.0, 1.0], policy_version=step
                )

        for step in range(4):
            more(step)
        address = serve(tmp_path)
        places = {"rollouts": "#/rollouts", "list": "#/rollouts?list=one", "samples": "#/samples"}
        pages = {name: tab_of(1280, 800).open(address, at) for name, at in places.items()}
        first, *others = pages.values()
        first.settled(*others)
        opened = "() => document.querySelector('main section:last-of-type').innerText.match(/answer . of step ./)?.[0]"
        total = "() => document.querySelector('main .foot').innerText"
        before = {name: page.tab.evaluate(opened) for name, page in pages.items()}
        assert None not in before.values(), before
        seen = {name: page.tab.evaluate(total) for name, page in pages.items()}
        for step in range(4, 6):
            more(step)
        for name, page in pages.items():
            page.tab.wait_for_function(f"before => ({total})() !== before", arg=seen[name])
        first.settled(*others)
        assert {name: page.tab.evaluate(opened) for name, page in pages.items()} == before
        active = "() => document.querySelector('main .grid-row.active')?.innerText"
        for page in pages.values():
            page.tab.keyboard.press("j")
            page.tab.keyboard.press("j")
        first.settled(*others)
        held = {name: page.tab.evaluate(active) for name, page in pages.items()}
        assert None not in held.values()
        seen = {name: page.tab.evaluate(total) for name, page in pages.items()}
        more(7)
        for name, page in pages.items():
            page.tab.wait_for_function(f"before => ({total})() !== before", arg=seen[name])
        first.settled(*others)
        assert {name: page.tab.evaluate(active) for name, page in pages.items()} == held
    for page in pages.values():
        assert page.errors == []
