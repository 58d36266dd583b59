"""Columns of the runs table: what sorts them, and how their cells are written."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

import rollbook

GAPS = """() => {
    const canvas = document.querySelector('.slot.big .clip canvas');
    const [width, height] = [canvas.width, canvas.height];
    const {data} = canvas.getContext('2d').getImageData(0, 0, width, height);
    const inked = x => [...Array(height).keys()].some(y => data[4 * (y * width + x) + 3] > 60);
    const columns = [...Array(width).keys()].map(inked);
    return columns.slice(columns.indexOf(true), columns.lastIndexOf(true)).filter(is => !is).length;
}"""


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs: one finished, two that ended by an error; the last was at work twice, with a day between."""
    folder = tmp_path_factory.mktemp("ended") / "runs"
    how: dict[str, Any] = {"dir": folder, "sinks": [], "keeper": "inline", "rules": ()}
    for seed, error in enumerate((None, ZeroDivisionError("0"), KeyboardInterrupt())):
        try:
            with rollbook.init("p", "ppo", seed=seed, **how) as run:
                for step in range(20):
                    values = {"train/return": float(step * seed), "gpu/memory_used_bytes": 59_032_727_552.0 + seed}
                    run.log(values, env_step=step)
                if error is not None:
                    raise error
        except (ZeroDivisionError, KeyboardInterrupt):
            pass
    path = Path(run.folder) / "run.json"
    about = json.loads(path.read_text())
    (first,) = about["attempts"]
    begun = about["created"] = first["started"] = first["started"] - 90_000.0
    first["ended"] = begun + 60.0
    about["attempts"].append({**first, "n": 2, "parent": 1, "started": begun + 86_400, "ended": begun + 86_430})
    about["ended"] = begun + 86_430
    path.write_text(json.dumps(about))
    return folder


def cells(page: Any, place: int) -> list[str]:
    """What stands in a column, from the top: 0 is the name."""
    return page.tab.locator(f".grid-body .grid-row:not(.project) > :nth-child({place + 1})").all_inner_texts()


def test_causes_and_the_time_at_work_are_columns_and_sort(page: Any, serve: Any, ended: Path) -> None:
    page.open(serve(ended), "#/runs?g=none&cols=cause~worked~duration&sort=-worked").settled()
    page.tab.get_by_text("1 m 30 s").wait_for()
    assert cells(page, 1)[0] == "KeyboardInterrupt"
    assert cells(page, 2)[0] == "1 m 30 s", "the day between its attempts is no work"
    assert cells(page, 3)[0].startswith("1 d")
    page.tab.locator("[data-column=cause] button").click()
    page.tab.wait_for_function("() => location.hash.includes('sort=-cause')")
    page.settled()
    assert sorted(cells(page, 1)) == ["KeyboardInterrupt", "ZeroDivisionError", "\N{EN DASH}"]
    assert cells(page, 1)[0] == "ZeroDivisionError"
    field = page.tab.get_by_label("Filter runs")
    field.fill("cause = 'ZeroDivisionError'")
    field.press("Enter")
    page.tab.wait_for_function("() => document.querySelectorAll('.grid-body .name').length === 1")
    assert page.errors == []


def test_the_whole_head_of_a_column_sorts_and_its_edge_does_not(page: Any, serve: Any, ended: Path) -> None:
    page.open(serve(ended), "#/runs?g=none&cols=cause~status").settled()
    head = page.tab.locator("[data-column=cause]").bounding_box()
    page.tab.mouse.click(head["x"] + head["width"] - 12, head["y"] + head["height"] - 2)  # far from the word
    page.tab.wait_for_function("() => location.hash.includes('sort=-cause')")
    page.settled()
    page.tab.mouse.click(head["x"] + head["width"] - 2, head["y"] + head["height"] / 2)
    page.let_pass(300)
    assert "sort=-cause" in page.tab.evaluate("() => location.hash")
    assert page.errors == []


def test_bytes_have_their_unit_in_charts_and_cells(page: Any, serve: Any, ended: Path) -> None:
    key = "gpu/memory_used_bytes"
    page.open(serve(ended), f"#/runs?g=none&cols=last:{key}&k=bytes").drawn(1).settled()
    assert cells(page, 1) == ["59.0 GB"] * 3
    chart = page.tab.locator(f"[data-key='{key}']")
    assert "ends at 59.0 GB" in chart.locator(".plotarea").get_attribute("aria-label")
    chart.locator(".plotarea").hover(position={"x": 120, "y": 60})
    page.tab.wait_for_function(
        "() => [...document.querySelectorAll('.read b')].some(one => /^59.0 GB$/.test(one.innerText))"
    )
    page.tab.evaluate("() => { location.hash += '&draw=ends'; }")
    chart.locator(".ends b").first.wait_for()
    assert set(chart.locator(".ends b").all_inner_texts()) == {"59.0 GB"}
    assert page.errors == []


def test_a_run_that_is_drawn_alone_has_a_line_without_dashes_whatever_its_colour(
    page: Any, serve: Any, ended: Path
) -> None:
    page.open(serve(ended), "#/runs?g=none").settled()
    row = page.tab.locator(".grid-body .runname").first
    identity = row.get_attribute("href").split("/")[-1]
    page.tab.evaluate("id => { location.hash = `#/runs?g=none&pin=train%2Freturn&show=${id}.9`; }", identity)
    page.drawn(1).settled()
    assert page.tab.evaluate(GAPS) == 0, "ink in every column of pixels"
    assert page.errors == []


def test_no_two_columns_have_one_head_and_a_curve_is_called_one(page: Any, serve: Any, recorded: Path) -> None:
    columns = "spark~return~last:train/return~max:train/return~last:update/loss~config.lr"
    page.open(serve(recorded), f"#/runs?cols={columns}").settled()
    heads = page.tab.locator("[role=columnheader] [role=img]").evaluate_all("all => all.map(one => one.ariaLabel)")
    assert heads == ["curve", "return", "train/return", "max return", "loss", "lr"]
    page.open(page.tab.url.split("#")[0], "#/runs?cols=status~spark").settled()
    assert "return" in page.tab.locator("[data-column=spark]").inner_text(), "alone it says of what it is"
    assert page.errors == []


def test_a_resumed_run_says_where_each_of_its_attempts_went_on(page: Any, serve: Any, tmp_path: Path) -> None:
    """Attempts: killed by an exception, from a checkpoint before the end of the first, behind the last row."""
    how: dict[str, Any] = {"dir": tmp_path, "sinks": [], "keeper": "inline", "rules": ()}

    def attempt(steps: range, *, restores: bool, fails: bool, **more: Any) -> str:
        with contextlib.suppress(ZeroDivisionError), rollbook.init("p", "ppo", seed=1, **how, **more) as run:
            if restores:
                run.restore("last")
            for step in steps:
                run.log({"train/return": float(step)}, env_step=step)
                if step == 5:
                    run.save_checkpoint({"step": step})
            if fails:
                raise ZeroDivisionError("a crash")
        return run.id

    attempt(range(9), restores=False, fails=True)
    attempt(range(6, 12), restores=True, fails=True, resume="must")
    run = attempt(range(12, 15), restores=False, fails=False, resume="must")
    page.open(serve(tmp_path), f"#/run/{run}").drawn(1).settled()
    rows = page.tab.locator("[aria-label=Attempts] tbody tr").all_inner_texts()
    assert len(rows) == 3
    assert "the beginning" in rows[0]
    assert "iteration" in rows[1] or "ckpt" in rows[1], "the checkpoint that it went on from"
    assert "the end of attempt 2" in rows[2]
    assert page.tab.get_by_text("abandoned stretches are ghosts").is_visible()
    assert page.tab.get_by_text("keeper, 0 B").count() == 0, "a log without a line is none"
    label = page.tab.locator("[data-key='train/return'] .plotarea").get_attribute("aria-label")
    assert "ends at 14" in label
    assert page.errors == []


def test_each_run_has_the_curve_of_the_value_beside_it_whatever_it_calls_its_return(
    tmp_path: Path, serve: Any, page: Any
) -> None:
    keys = ("test/return", "train/return", "train/reward")
    for seed, key in enumerate(keys):
        with rollbook.init("p", "ppo", seed=seed, dir=tmp_path / "runs", sinks=[], keeper="inline", rules=()) as run:
            for step in range(20):
                run.log({key: float(step), "losses/policy": 1.0}, env_step=step)
    page.open(serve(tmp_path / "runs"), "#/runs?g=none").settled()
    page.tab.wait_for_function(
        "() => [...document.querySelectorAll('.spark .line')].filter(o => o.getAttribute('d')).length === 3"
    )
    assert "return" in page.tab.locator(".grid.runs").inner_text()
    assert page.errors == []
