"""What was logged besides numbers: pictures, texts and histograms at a step, side by side over runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollbook
from page_server import file_server
from rollbook.server.static_copy import export


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Two runs with a picture and a text every hundred steps, and a histogram that wanders."""
    folder, runs = tmp_path_factory.mktemp("logged") / "runs", []
    for seed in (1, 2):
        with rollbook.init("p", "ppo", seed=seed, dir=folder, sinks=[], keeper="inline", rules=()) as run:
            runs.append(run.id)
            for step in range(0, 1000, 100):
                picture = np.full((8, 8, 3), 20 * seed + step // 20, dtype=np.uint8)
                run.log_image("view", picture, env_step=step)
                run.log_text("answer", f"<b>step {step}</b> of seed {seed}", env_step=step)
                run.log_histogram("weights", np.linspace(0, 1, 100) + step / 100 + seed, env_step=step)
                run.log_histogram("biases", np.linspace(0, 1, 100) + step / 100 + seed + 10, env_step=step)
                run.log({"train/return": float(step)}, env_step=step)
    return folder, runs


def test_a_slider_shows_pictures_texts_and_histograms_of_two_runs_at_one_step(
    page: Any, serve: Any, logged: tuple[Path, list[str]]
) -> None:
    folder, (first, second) = logged
    page.open(serve(folder), f"#/media?run={first}&beside={second}&at=300").settled()
    assert page.tab.locator("pre.logged").all_inner_texts() == [
        "<b>step 300</b> of seed 1",
        "<b>step 300</b> of seed 2",
    ], "a text is a text"
    shown = page.tab.locator(".video").evaluate_all("all => all.map(one => one.src)")
    page.tab.get_by_role("button", name="A step on").click()
    page.tab.wait_for_function("() => document.querySelector('pre.logged').innerText.includes('step 400')")
    assert page.tab.locator(".video").evaluate_all("all => all.map(one => one.src)") != shown
    page.tab.locator("h1").click()
    page.tab.keyboard.press("ArrowLeft")
    page.tab.wait_for_function("() => document.querySelector('pre.logged').innerText.includes('step 300')")
    told = page.tab.locator(".shades canvas").evaluate_all("all => all.map(one => one.ariaLabel)")
    assert told[2:] == [f"weights: {low} to {low + 1}, mean {low + 0.5:.2f} at step 300" for low in (4, 5)], (
        "of each run the histogram at this step"
    )
    page.settled()
    assert "at=300" in page.tab.evaluate("location.hash")
    assert page.errors == []


def test_a_picture_keeps_its_shape_and_a_small_one_its_pixels(
    page: Any, serve: Any, logged: tuple[Path, list[str]]
) -> None:
    folder, (first, _) = logged
    page.open(serve(folder), f"#/media?run={first}").settled()
    page.tab.wait_for_selector(".beside img.video.coarse")
    wide, high, drawn = page.tab.locator(".beside img.video").evaluate(
        "one => [one.clientWidth, one.clientHeight, getComputedStyle(one).imageRendering]"
    )
    assert (wide, drawn) == (high, "pixelated"), "eight pixels by eight"
    assert page.errors == []


def test_a_copy_has_pictures_texts_and_histograms_at_each_step(
    tab_of: Any, logged: tuple[Path, list[str]], tmp_path: Path
) -> None:
    folder, (first, second) = logged
    export([str(folder)], tmp_path / "copy")
    with file_server(tmp_path / "copy") as address:
        page = tab_of(390, 844).open(address, f"#/media?run={first}&beside={second}&at=300").settled()
        told = page.tab.locator(".shades canvas").evaluate_all("all => all.map(one => one.ariaLabel)")
        assert told == [
            f"{key}: {low} to {low + 1}, mean {low + 0.5:#.3g} at step 300"
            for key, more in (("biases", 10), ("weights", 0))
            for low in (4 + more, 5 + more)
        ]
        page.tab.get_by_role("button", name="A step on").click()
        page.tab.wait_for_function("() => document.querySelector('pre.logged').innerText.includes('step 400')")
        assert page.tab.locator(".video").count() == 2
        assert page.errors == []


def test_histograms_of_a_key_lie_in_common_bins_and_keep_every_number(logged: tuple[Path, list[str]]) -> None:
    from page_server import client_of

    folder, (first, _) = logged
    with client_of(folder) as client:
        found = client.get(f"/api/runs/{first}/histograms?bins=20&key=weights").json()
        assert (found["keys"], found["key"], found["total"]) == (["biases", "weights"], "weights", 10)
        assert found["positions"] == [float(step) for step in range(0, 1000, 100)]
        assert (found["edges"][0], found["edges"][-1], len(found["edges"])) == (1.0, 11.0, 21)
        assert [sum(counts) for counts in found["counts"]] == [100.0] * 10
        few = client.get(f"/api/runs/{first}/histograms?steps=4&key=weights").json()
        assert len(few["positions"]) <= 4
        assert few["positions"][-1] == 900.0
        assert client.get(f"/api/runs/{first}/histograms?bins=0").status_code == 400
        assert client.get(f"/api/runs/{first}/histograms?key=none").json()["counts"] == []
