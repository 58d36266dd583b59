"""The page over a store, in a real browser: a run that trains elsewhere and is shipped is seen growing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rollbook
from rollbook.remote.push import push
from rollbook.server.serving import listen
from rollbook.server.settings import ServerSettings

LOOK = """() => ({
    hash: location.hash,
    drawn: [...document.querySelectorAll('.square[aria-pressed=true]')].map(
        one => one.getAttribute('aria-label') + one.firstElementChild.className),
})"""


def test_a_run_that_is_shipped_grows_on_the_page_and_what_is_chosen_stays(
    page: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROLLBOOK_CACHE", str(tmp_path / "cache"))
    store = f"file://{tmp_path}/store"
    run = rollbook.init("cartpole", "ppo", dir=tmp_path / "here", sinks=[], keeper="inline")
    for step in range(100):
        run.log({"train/return": float(step)}, env_step=step)
    push(run.folder, store, final=False)
    with listen(ServerSettings(roots=(store,), port=0, writable=False)) as server:
        page.open(server.address, "#/runs?g=none").drawn(1).settled()
        before = page.tab.evaluate(LOOK)
        assert len(before["drawn"]) == 1
        page.tab.wait_for_function("() => document.body.innerText.includes('99')")
        for step in range(100, 778):
            run.log({"train/return": float(step)}, env_step=step)
        push(run.folder, final=False)
        page.tab.wait_for_function(
            "() => document.querySelector('.ends, .plotarea').parentElement.innerText.includes('777')"
        )
        with rollbook.init("cartpole", "dqn", dir=tmp_path / "here", sinks=[], keeper="inline") as other:
            other.log({"train/return": 1.0}, env_step=0)
        push(other.folder, store)
        page.tab.locator(".newborn").wait_for()
        assert page.tab.evaluate(LOOK) == before
        run.finish()
        push(run.folder)
        page.tab.wait_for_function("() => !document.querySelector('.grid-body').innerText.includes('running')")
        assert page.tab.evaluate(LOOK) == before
        for text, found in (("name = 'dqn'", "dqn"), ('last("train/return") > 500', "ppo"), ("", "dqn ppo")):
            page.tab.get_by_label("Filter runs").fill(text)
            page.tab.wait_for_function(
                "found => [...document.querySelectorAll('.runname')].map(one => one.innerText.trim()).sort().join(' ')"
                " === found",
                arg=found,
            )
        page.tab.get_by_label("Filter runs").fill("config.nothing = 1")
        page.tab.get_by_text("No run of 2 fits").wait_for()
    assert page.errors == []
