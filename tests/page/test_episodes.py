"""Episodes in a real browser: chosen by scope and video, and videos side by side at one time cursor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollbook
from page_server import file_server
from rollbook.server.static_copy import export

VIDEOS = "() => [...document.querySelectorAll('.shot video')]"


@pytest.fixture(scope="module")
def filmed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seeds with four episodes of training and two tests each; every second one has a video of 20 steps."""
    pytest.importorskip("imageio_ffmpeg", reason="without it videos are pictures that move, and have no cursor")
    folder = tmp_path_factory.mktemp("filmed") / "runs"
    for seed in (1, 2):
        with rollbook.init("dot", "cem", seed=seed, dir=folder, sinks=[], keeper="inline", rules=()) as run:
            for n, scope in enumerate(("train", "train", "test", "train", "train", "test")):
                name, steps = f"s{seed}e{n}", 20 if n < 4 else 10
                of = run.scope(scope)
                of.log_episode(episode_id=name, return_=float(n), length=steps, terminated=True, env_step=20 * n)
                if n % 2 == 0:
                    frames = np.zeros((steps, 32, 32, 3), np.uint8)
                    frames[:, :, : 4 * seed] = np.arange(steps)[:, None, None, None] * 10
                    of.log_video("video", frames, fps=10, episode_id=name, env_step=20 * n)
    return folder


def test_scope_and_video_choose_the_episodes(page: Any, serve: Any, filmed: Path) -> None:
    page.open(serve(filmed), "#/episodes").settled()
    rows = page.tab.get_by_role("table", name="Table of episodes").locator(".grid-body .grid-row")
    assert rows.count() == 6
    assert page.tab.locator("video").count() == 1, "it opens on an episode with a video"
    page.tab.get_by_role("group", name="Of which scope").get_by_text("test").click()
    page.tab.wait_for_function("() => document.querySelectorAll('.grid-body .grid-row').length === 2")
    page.tab.get_by_role("group", name="Which episodes").get_by_text("video").click()
    page.tab.wait_for_function("() => document.querySelectorAll('.grid-body .grid-row').length === 1")
    assert "scope=test" in page.tab.evaluate("location.hash")
    assert page.errors == []


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seeds whose newest episodes, with a video and without, the end of training cut; and one without others."""
    folder = tmp_path_factory.mktemp("cut") / "runs"
    for seed in (3, 2, 1):
        with rollbook.init("dot", "cem", seed=seed, dir=folder, sinks=[], keeper="inline", rules=()) as run:
            for n in range(6):
                whole, name = n < 4 and seed != 3, f"s{seed}e{n}"
                more = {"terminated": True} if whole else {"complete": False}
                run.scope("train" if n % 2 else "test").log_episode(
                    episode_id=name, return_=float(n), length=4, env_step=20 * n, **more
                )
                if n != 3:
                    frames = np.zeros((4, 16, 16, 3), np.uint8)
                    run.log_video("video", frames, fps=10, episode_id=name, env_step=20 * n)
    return folder


OPENS_ON = {
    "": "s1e2",
    "only=video": "s1e2",
    "only=terminated": "s1e3",
    "scope=train": "s1e3",
    "sort=-return": "s1e2",
    "sort=return&only=video": "s1e0",
    "with=": "s1e2",
}


@pytest.mark.parametrize("said", OPENS_ON)
def test_what_opens_unasked_is_an_episode_that_came_to_its_end(page: Any, serve: Any, cut: Path, said: str) -> None:
    run = rollbook.open(cut).one(seed=1).id
    page.open(serve(cut), f"#/episodes?run={run}&{said}").settled()
    head = page.tab.get_by_role("region", name="One episode").get_by_role("heading")
    assert head.first.inner_text() == f"Episode {OPENS_ON[said]}"
    assert page.errors == []


def test_an_episode_that_is_like_all_others_is_not_called_the_worst(page: Any, serve: Any, tmp_path: Path) -> None:
    with rollbook.init("car", "dqn", seed=1, dir=tmp_path, sinks=[], keeper="inline", rules=()) as run:
        for n in range(30):
            run.log_episode(episode_id=f"e{n}", return_=-200.0, length=200, truncated=True, env_step=200 * n)
    page.open(serve(tmp_path), "#/episodes").settled()
    said = page.tab.get_by_text("return \u2212200, as all 30")
    assert said.count() == 1
    assert said.get_attribute("class").split() == ["tag"]
    with rollbook.init("car", "dqn", seed=2, dir=tmp_path, sinks=[], keeper="inline", rules=()) as run:
        for n in range(30):
            run.log_episode(episode_id=f"e{n}", return_=float(29 - n), length=200, truncated=True, env_step=200 * n)
    page.tab.evaluate("run => { location.hash = `#/episodes?run=${run}`; }", run.id)
    worst = page.tab.get_by_text("return 0, better than 0 % of 30")
    worst.wait_for()
    assert "bad" in worst.get_attribute("class").split()
    assert page.errors == []


def test_so_it_is_in_a_copy(page: Any, cut: Path, tmp_path: Path) -> None:
    export([str(cut)], tmp_path / "copy")
    run = rollbook.open(cut).one(seed=1).id
    with file_server(tmp_path / "copy") as address:
        for said in ("", "only=video", "only=terminated"):
            page.open(address, f"#/episodes?run={run}&{said}").settled()
            page.tab.get_by_role("heading", name=f"Episode {OPENS_ON[said]}").wait_for()
    assert page.errors == []


def test_a_video_that_is_put_beside_came_to_its_end_where_there_is_one(page: Any, serve: Any, cut: Path) -> None:
    one, _, bare = (rollbook.open(cut).one(seed=seed).id for seed in (1, 2, 3))
    page.open(serve(cut), f"#/episodes?run={one}").settled()
    for seed in (2, 3):
        page.tab.keyboard.press("b")
        others = page.tab.get_by_role("group", name="The newest video of another run")
        others.get_by_role("button", name=f"seed {seed}").click()
        page.tab.wait_for_function(f"() => document.querySelectorAll('.shot').length === {seed}")
    shown = page.tab.locator(".shot figcaption a").all_inner_texts()
    assert shown == ["s1e2", "s2e2", "s3e5"]
    page.open(serve(cut), f"#/episodes?run={bare}").settled()
    assert page.tab.get_by_role("heading", name="Episode s3e5").count() == 1, "where all were cut, the newest"
    assert page.errors == []


def test_videos_side_by_side_share_one_cursor(page: Any, serve: Any, filmed: Path) -> None:
    page.open(serve(filmed), "#/episodes").settled()
    page.tab.keyboard.press("b")
    page.tab.get_by_role("button", name="its first video").click()
    page.tab.wait_for_function("() => document.querySelectorAll('.shot').length === 2")
    page.tab.keyboard.press("b")
    page.tab.get_by_role("group", name="The newest video of another run").get_by_role("button").first.click()
    page.tab.wait_for_function(f"() => ({VIDEOS})().length === 3 && ({VIDEOS})().every(one => one.duration > 0)")
    for step in (1, 2, 3, 4):
        page.tab.keyboard.press(".")
        page.tab.wait_for_function(
            "step => [...document.querySelectorAll('.video-top .row b')].some(one => one.textContent == step)", arg=step
        )
    page.tab.wait_for_function(
        f"() => ({VIDEOS})().every(one => Math.abs(one.currentTime - 0.4) < 0.06)", timeout=60_000
    )
    link = page.tab.evaluate("location.href")
    page.tab.keyboard.press(" ")
    page.tab.wait_for_function(f"() => ({VIDEOS})().every(one => one.paused && one.currentTime > 0.9 * one.duration)")
    page.tab.goto("about:blank")
    page.tab.goto(link)
    page.tab.wait_for_function("() => document.querySelectorAll('.shot').length === 3")  # a link restores it
    page.tab.get_by_role("button", name="Take away the video").first.click()
    page.tab.wait_for_function("() => document.querySelectorAll('.shot').length === 2")
    assert page.errors == []
