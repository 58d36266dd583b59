"""The page of runs and charts, in a real browser against the real server."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

import rollbook
import wild
from page_server import record
from rollbook.formats.foreign import laid_out


def test_runs_stand_in_the_table_and_their_curves_are_drawn(page: Any, serve: Any, recorded: Path) -> None:
    page.open(serve(recorded), "#/runs?g=none").drawn(2)
    assert page.tab.locator(".runname").count() == 6
    assert "6 runs" in page.tab.locator(".foot").first.inner_text()
    assert page.errors == []


def test_the_square_of_a_run_hides_and_shows_its_curve(page: Any, serve: Any, recorded: Path) -> None:
    page.open(serve(recorded), "#/runs?g=none").drawn(1)
    before = page.tab.locator(".square[aria-pressed=true]").count()
    page.tab.locator(".square[aria-pressed=true]").first.click()
    page.tab.wait_for_function(
        "n => document.querySelectorAll('.square[aria-pressed=true]').length === n - 1",
        arg=before,
    )
    assert "show=" in page.tab.evaluate("location.hash") or page.tab.wait_for_function(
        "() => location.hash.includes('show=')"
    )


def test_a_link_restores_exactly_this_view(page: Any, browser: Any, serve: Any, recorded: Path) -> None:
    address = serve(recorded)
    page.open(address, "#/runs?g=none").drawn(1)
    box = page.tab.locator(".plotarea").first.bounding_box()
    page.tab.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 60)
    page.tab.mouse.down()
    page.tab.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 60, steps=4)
    page.tab.mouse.up()
    page.tab.keyboard.press("s")
    page.tab.get_by_label("Smoothing, from 0 to 0.99").fill("0.6")
    page.tab.keyboard.press("Enter")
    page.tab.keyboard.press("Escape")
    page.tab.wait_for_function("() => location.hash.includes('z=') && location.hash.includes('s=0.6')")
    link = page.tab.evaluate("location.href")
    other = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    other.goto(link)
    other.wait_for_selector(".plotarea .clip canvas")
    other.wait_for_function("() => document.querySelectorAll('.square[aria-pressed=true]').length > 0")
    assert other.evaluate("location.href") == link
    assert "0.60" in other.locator("#pick-s").inner_text()
    other.context.close()


def test_runs_are_grouped_and_coloured_by_any_setting_from_a_menu(page: Any, serve: Any, recorded: Path) -> None:
    page.open(serve(recorded)).drawn(2).settled()
    names = page.tab.locator(".grid-row.group .runname")
    page.tab.locator("#group-by").click()
    page.tab.locator(".choice:visible").filter(has_text="seed").first.click()
    page.tab.wait_for_function("() => document.querySelectorAll('.grid-row.group').length === 3")
    page.tab.keyboard.press("Escape")
    page.tab.locator("#group-by").click()
    page.tab.locator(".choice:visible").filter(has_text="nothing").click()
    names.first.wait_for(state="detached")
    colors = "() => [...document.querySelectorAll('.square[aria-pressed=true] i')].map(one => one.className)"
    page.tab.keyboard.press("Control+a")
    page.tab.wait_for_function("() => document.querySelectorAll('.square[aria-pressed=true]').length === 6")
    own = page.tab.evaluate(colors)
    assert len(set(own)) == 6
    page.tab.locator("#color-by").click()
    page.tab.locator(".choice:visible").filter(has_text="lr").click()
    page.tab.wait_for_function(f"() => new Set(({colors})()).size === 2 && !({colors})().includes('dot s0')")
    legend = page.tab.locator(".foot [aria-label='Colours by lr']")
    assert legend.inner_text().split() == ["3e-4", "0.001"]
    shown = legend.locator("i").evaluate_all("all => all.map(one => one.className)")
    assert set(shown) == set(page.tab.evaluate(colors))
    page.tab.locator("#color-by").click()
    page.tab.locator(".choice:visible").filter(has_text="each its own").click()
    page.tab.wait_for_function(f"() => new Set(({colors})()).size === 6")
    assert page.tab.evaluate(colors) == own, "colour by is a view: it overwrites nothing"
    assert page.errors == []


def test_all_rows_are_drawn_a_range_of_them_or_the_others(page: Any, serve: Any, recorded: Path) -> None:
    page.open(serve(recorded), "#/runs?g=none&show=-").settled()
    square = page.tab.locator(".square")

    def drawn(many: int) -> None:
        page.tab.wait_for_function(
            "n => document.querySelectorAll('.square[aria-pressed=true]').length === n", arg=many
        )

    square.nth(1).click()
    drawn(1)
    square.nth(3).click(modifiers=["Shift"])
    drawn(3)
    pressed = "() => [...document.querySelectorAll('.square')].map(one => one.getAttribute('aria-pressed')).join()"
    assert page.tab.evaluate(pressed) == "false,true,true,true,false,false"
    page.tab.get_by_role("button", name="Invert").click()
    page.tab.wait_for_function(f"() => ({pressed})() === 'true,false,false,false,true,true'")
    page.tab.get_by_role("button", name="Draw all").click()
    drawn(6)
    assert page.errors == []


def test_the_column_return_takes_the_tests_or_else_training_and_says_which(
    page: Any, serve: Any, tmp_path: Path
) -> None:
    for name, key in (("tested", "test/return"), ("trained", "train/return")):
        with rollbook.init("p", name, seed=1, dir=tmp_path / "runs", sinks=[], keeper="inline") as run:
            run.log({key: 7.5, "update/entropy": 1.0}, env_step=1)
    page.open(serve(tmp_path / "runs"), "#/runs?g=none&cols=return")
    page.tab.wait_for_function("() => document.querySelectorAll('.grid-body .num').length === 2")
    page.tab.wait_for_function("() => document.querySelector('.grid-body').innerText.includes('7.50')")
    cells = dict(
        zip(*(page.tab.locator(f".grid-body {s}").all_text_contents() for s in (".runname", ".num")), strict=True)
    )
    assert cells == {"tested, seed 1": "7.50", "trained, seed 1": "7.50 train"}


def test_an_empty_folder_says_how_it_fills(page: Any, serve: Any, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    page.open(serve(tmp_path / "runs"))
    page.tab.get_by_text(re.compile("No runs in .* yet")).wait_for()
    assert "rollbook.init" in page.tab.locator("pre").inner_text()


def test_a_folder_whose_runs_went_to_the_bin_says_so_and_how_they_come_back(
    page: Any, serve: Any, tmp_path: Path
) -> None:
    rollbook.init("p", "ppo", dir=tmp_path / "runs", sinks=[], keeper="inline", rules=()).finish()
    rollbook.open(tmp_path / "runs").remove(dry_run=False)
    page.open(serve(tmp_path / "runs"))
    page.tab.get_by_text(re.compile("All runs of .* are in the bin: 1")).wait_for()
    commands = page.tab.locator("pre").inner_text().splitlines()
    assert [shlex.split(line)[2:] for line in commands] == [
        ["--bin", "--dir", str(tmp_path / "runs")],
        ["--restore", "ID", "--dir", str(tmp_path / "runs")],
    ]


def test_a_click_on_a_point_says_what_happened_there_and_asks_once(page: Any, serve: Any, recorded: Path) -> None:
    asked: list[str] = []
    page.tab.on("request", lambda request: "/cause?" in request.url and asked.append(request.url))
    page.open(serve(recorded), "#/runs").drawn(2).settled()
    box = page.tab.locator(".slot.big .plotarea").first.bounding_box()
    page.tab.mouse.click(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.5)
    page.tab.locator("#cause .causehead h2").wait_for()
    page.tab.locator("#cause section").nth(1).wait_for()
    page.settled()
    assert len(asked) == 1
    assert page.errors == []


def test_after_a_click_on_a_chart_letters_are_shortcuts_and_esc_gives_the_hand_back_to_it(
    page: Any, serve: Any, recorded: Path
) -> None:
    page.open(serve(recorded)).drawn(2)
    field = page.tab.locator("#find-key")
    field.fill("return|loss")
    page.settled()
    chart = page.tab.locator(".plotarea").first
    box = chart.bounding_box()
    page.tab.mouse.click(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.5)
    page.tab.locator("#cause .causehead h2").wait_for()
    page.tab.keyboard.press("?")
    page.tab.locator("dialog[open]").wait_for()
    page.tab.keyboard.press("Escape")
    page.tab.keyboard.press("Escape")
    page.tab.locator("#cause").wait_for(state="detached")
    assert field.input_value() == "return|loss"
    page.tab.wait_for_function("() => document.activeElement.classList.contains('plotarea')")
    assert page.errors == []


def test_the_run_of_a_point_has_its_name_while_its_group_is_folded(page: Any, serve: Any, recorded: Path) -> None:
    page.open(serve(recorded), "#/runs").drawn(2).settled()
    box = page.tab.locator(".slot.big .plotarea").first.bounding_box()
    page.tab.mouse.click(box["x"] + box["width"] * 0.4, box["y"] + box["height"] * 0.5)
    page.tab.locator("#cause .causehead h2").wait_for()
    name = page.tab.locator(".slot.big .read span").first.filter(has_text="seed")  # not its id
    name.wait_for()


def test_a_cause_stands_beside_the_charts_and_gives_the_table_back_as_it_was(
    page: Any, serve: Any, recorded: Path
) -> None:
    page.open(serve(recorded), "#/runs?g=none").drawn(2).settled()
    charts = (
        "() => [...document.querySelectorAll('.slot')].map(one => [one.dataset.key, one.getBoundingClientRect().x])"
    )
    before = page.tab.evaluate(charts)
    page.tab.keyboard.press("j")
    page.tab.keyboard.press("j")
    chosen = page.tab.locator(".grid-row.active .runname").inner_text()
    box = page.tab.locator(".slot.big .plotarea").first.bounding_box()
    page.tab.mouse.click(box["x"] + box["width"] * 0.4, box["y"] + box["height"] * 0.5)
    page.tab.locator("#cause .causehead h2").wait_for()
    page.settled()
    assert page.tab.evaluate(charts) == before
    front = page.tab.locator(".slot.big .read span")
    assert front.count() == 1, "the run of the point stands in front, the others have no names"
    assert page.tab.locator(".slot.big .chartnote").count() == 0
    first = page.tab.locator("#cause h2").inner_text()
    page.tab.keyboard.press("ArrowRight")
    page.tab.wait_for_function("was => document.querySelector('#cause h2').innerText !== was", arg=first)
    page.tab.go_back()
    page.tab.wait_for_function("was => document.querySelector('#cause h2').innerText === was", arg=first)
    page.tab.keyboard.press("Escape")
    page.tab.locator("#cause").wait_for(state="detached")
    assert page.tab.locator(".grid-row.active .runname").inner_text() == chosen
    assert page.errors == []


def train_and_crash(folder: Path) -> None:
    more: dict[str, Any] = {"dir": folder, "sinks": [], "keeper": "inline", "total": {"env_step": 90}}
    with rollbook.init("cartpole", "ppo", seed=1, **more) as run:
        for step in range(40):
            run.log({"train/return": float(step)}, env_step=step)
        run.save_checkpoint(write=lambda path: Path(path).write_bytes(b"x"), env_step=30)
        raise ZeroDivisionError("no steps in this epoch")


def test_a_crashed_run_says_why_first_and_how_it_goes_on(page: Any, serve: Any, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        train_and_crash(tmp_path / "runs")
    page.open(serve(tmp_path / "runs"), "#/runs?g=none").drawn(1)
    page.tab.locator(".why").click()
    page.tab.locator("#cause").wait_for()
    identity = page.tab.evaluate("decodeURIComponent(location.hash).split('cause=')[1].split(',')[0]")
    for where in ("#cause", ".drawerlike"):
        told = page.tab.locator(where)
        told.locator(".ended").wait_for()
        told.get_by_text("Go on from the last checkpoint").wait_for()
        words = told.inner_text()
        order = ["ZeroDivisionError: no steps", "test_runs.py:", "Go on from the last checkpoint", 'resume="must"']
        places = [words.index(part) for part in order]
        assert places == sorted(places)
        page.tab.goto(f"{page.tab.url.partition('#')[0]}#/run/{identity}")
    assert page.errors == []


def test_every_chart_of_the_registry_can_be_chosen_and_stands_in_the_link(
    page: Any, serve: Any, recorded: Path
) -> None:
    page.open(serve(recorded)).drawn(2).settled()
    page.tab.locator("#pick-y").click()
    page.tab.locator(".choice:visible").filter(has_text="last values").click()
    values = page.tab.locator(".plotarea.ends").first.locator("button")
    values.first.wait_for()
    page.tab.wait_for_function("() => location.hash.includes('draw=ends')")
    page.settled()
    assert values.count() == 2  # a dot a group, the better one first
    numbers = [float(text) for text in values.locator("b").all_inner_texts()]
    assert numbers == sorted(numbers, reverse=True)
    page.tab.keyboard.press("Escape")
    values.first.click()
    page.tab.locator("#cause .causehead h2").wait_for()
    assert page.errors == []


def test_zooming_asks_for_rows_and_not_for_the_table_of_runs_again(page: Any, serve: Any, recorded: Path) -> None:
    page.open(serve(recorded), "#/runs").drawn(2).settled()
    asked: list[str] = []
    page.tab.on("request", lambda request: "/api/" in request.url and asked.append(request.url.rpartition("/")[2]))
    box = page.tab.locator(".slot.big .plotarea").first.bounding_box()
    page.tab.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.5)
    page.tab.keyboard.down("Control")
    for _ in range(4):
        page.tab.mouse.wheel(0, -60)
    page.tab.keyboard.up("Control")
    page.tab.wait_for_function("() => location.hash.includes('z=')")
    page.settled()
    assert "curves" in asked
    assert "runs" not in asked


def test_the_first_view_is_one_file_of_code_and_asks_for_curves_as_soon_as_the_table_is_there(
    page: Any, serve: Any, recorded: Path
) -> None:
    came: list[tuple[str, int]] = []

    def count(response: Any) -> None:
        size = response.headers.get("content-length", "0")
        came.append((response.url.partition("?")[0].rsplit("/", 1)[-1], int(size)))

    page.tab.on("response", count)
    page.open(serve(recorded), "#/runs?g=none").drawn(2)
    until = next(place for place, (name, _) in enumerate(came) if name == "series")
    first = came[: until + 1]
    scripts = [(name, size) for name, size in first if name.endswith(".js") and "worker" not in name]
    assert len(scripts) == 1, scripts
    assert 0 < scripts[0][1] <= 60_000, "60 kB of compressed code, at most"
    assert "keys" not in [name for name, _ in first], "the keys come with the table"
    assert page.errors == []


def test_a_damaged_run_is_marked_in_the_table_and_its_page_says_what_to_do(
    page: Any, serve: Any, tmp_path: Path
) -> None:
    for seed in range(2):
        identity = record(tmp_path / "runs", "ppo", seed, 1e-3)
    folder = next(path for path in (tmp_path / "runs").rglob("run.json") if identity in path.read_text()).parent
    for part in (folder / "data" / "metrics").rglob("*.parquet"):
        part.write_bytes(part.read_bytes()[: part.stat().st_size // 2])
    page.open(serve(tmp_path / "runs"), "#/runs?g=none")
    page.tab.locator("a.lost[aria-label*='cannot be read']").click()
    page.tab.get_by_text("Not everything can be read").wait_for()
    assert f"rollbook repair {folder}" in page.tab.locator(".damage pre").inner_text()


def test_a_run_that_was_forked_leads_to_the_run_it_came_from(page: Any, serve: Any, tmp_path: Path) -> None:
    more: dict[str, Any] = {"dir": tmp_path / "runs", "sinks": [], "keeper": "inline", "rules": ()}
    with rollbook.init("p", "first", seed=3, **more) as first:
        saved = first.save_checkpoint(write=lambda path: Path(path).write_bytes(b"state"), env_step=7)
    with rollbook.init("p", "later", forked_from=saved, **more) as later:
        later.log({"train/return": 1.0}, env_step=8)
    page.open(serve(tmp_path / "runs"), f"#/run/{later.id}")
    fact = page.tab.locator("dt", has_text="forked from").locator("+ dd")
    assert saved.id in fact.inner_text()
    fact.get_by_role("link", name="first, seed 3").click()
    page.tab.wait_for_function("() => document.querySelector('h1').textContent === 'first, seed 3'")
    assert first.id in page.tab.evaluate("location.hash")
    assert page.errors == []


def test_compare_takes_what_the_page_of_runs_has_drawn_and_each_page_is_found_as_it_was_left(
    page: Any, serve: Any, tmp_path: Path
) -> None:
    for name, lr in (("ppo", 1e-3), ("dqn", 1e-3), ("sac", 1e-3)):
        record(tmp_path / "runs", name, 1, lr, rows=200)
    with rollbook.init("alone", "newest", dir=tmp_path / "runs", sinks=[], keeper="inline") as run:
        run.log({"train/return": 1.0}, env_step=1)
    tab = page.open(serve(tmp_path / "runs"), "#/runs?f=project+%3D+'cartpole'+and+name+!%3D+'sac'").drawn(1).tab
    page.settled()
    tab.locator("nav a", has_text="Compare").click()
    tab.locator(".ranking").wait_for()
    assert sorted(tab.locator(".ranking b").all_inner_texts()) == ["dqn, seed 1", "ppo, seed 1"]
    tab.locator("nav a", has_text="Runs").click()
    page.drawn(1).settled()
    assert tab.get_by_label("Filter runs").input_value() == "project = 'cartpole' and name != 'sac'"
    assert page.errors == []


def test_the_style_of_a_page_that_was_loaded_behind_changes_no_other(page: Any, serve: Any, recorded: Path) -> None:
    page.open(serve(recorded))
    page.tab.wait_for_function(f"() => ({OF_PAGES})().length > 100")  # all pages are loaded behind the first
    everywhere = page.tab.evaluate(f"() => ({OF_PAGES})().filter(one => !one.includes('[data-page='))")
    assert everywhere == []


OF_PAGES = """() => [...document.styleSheets].filter(sheet => /(Sweep|Rollouts)-/.test(sheet.href))
    .flatMap(sheet => [...sheet.cssRules]).flatMap(rule => rule.selectorText ?? [...rule.cssRules].map(
        inner => inner.selectorText))"""


def test_chosen_runs_of_other_tools_are_labelled_in_two_clicks(
    page: Any, serve: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for n in range(3):
        wild.put_sb3_tensorboard(tmp_path / "study" / "x" / f"one{n}", iter([1.0, 2.0, 3.0]))
    folder, _ = laid_out(tmp_path / "study")
    page.open(serve(Path(str(folder))), "#/runs?g=none").drawn(1)
    page.tab.locator(".square[aria-pressed=true]").first.click()
    page.tab.wait_for_function("() => document.querySelectorAll('.square[aria-pressed=true]').length === 2")
    page.tab.get_by_role("button", name="Label 2 runs").click()
    page.tab.get_by_label("algo").fill("ppo")
    page.tab.get_by_label("others").fill("width=64")
    page.tab.get_by_role("button", name="Save", exact=True).click()
    said = page.tab.locator(".words [role=status]")
    page.tab.wait_for_function("() => document.querySelector('.words [role=status]').innerText.includes('labels')")
    assert said.inner_text() == f"2 runs: {tmp_path}/study/x/rollbook.labels"
    rows = rollbook.open(tmp_path / "study").rows()
    assert sorted((str(row["algo"]), row["config"].get("width")) for row in rows) == [
        ("None", None),
        ("ppo", 64),
        ("ppo", 64),
    ]
    assert page.errors == []


def test_a_key_of_groups_that_have_another_axis_is_drawn_over_time_without_an_error(
    page: Any, serve: Any, tmp_path: Path
) -> None:
    """Folders of several tools: one counts steps of the environment, another updates."""
    for name, clock, key in (("td3", "env_step", "rollout/ep_rew_mean"), ("ppo", "gradient_step", "Train/mean_reward")):
        for seed in (1, 2):
            more: dict[str, Any] = {"dir": tmp_path, "sinks": [], "keeper": "inline", "rules": ()}
            with rollbook.init("mixed", name, seed=seed, **more) as run:
                for step in range(30):
                    run.log({key: float(step)}, **{clock: step})
    page.open(serve(tmp_path), "#/runs").drawn(2).settled()
    keys = page.tab.locator("#charts [data-key]")
    for key in ("rollout/ep_rew_mean", "Train/mean_reward"):
        assert keys.and_(page.tab.locator(f"[data-key='{key}']")).locator("[data-drawn]").count() == 1
    assert page.tab.locator("#charts .alert").count() == 0
    assert page.tab.get_by_text("over time", exact=True).count() == 1
    assert page.errors == []


def test_the_square_of_a_folded_group_shows_that_some_of_its_runs_are_drawn(
    page: Any, serve: Any, recorded: Path
) -> None:
    page.open(serve(recorded), "#/runs").settled()
    group = page.tab.locator(".grid-body .group").first
    group.locator(".square").click()
    group.locator(".fold").click()
    page.tab.locator(".grid-body .seed .square").first.click()
    group.locator(".fold").click()
    page.settled()
    assert page.tab.locator(".grid-body .seed").count() == 0
    assert group.locator(".square[aria-pressed=false] .dot.part").get_attribute("class")
    assert group.locator(".square").get_attribute("title") == "1 run of it drawn"
    assert page.errors == []
