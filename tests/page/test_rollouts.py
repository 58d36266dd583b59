"""The page of rollouts in a real browser: a conversation, moved through by keys; hostile texts stay texts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import rollbook
from agent_rollouts import record_agents


def test_rollouts_are_read_by_keys_and_hostile_texts_stay_texts(
    page: Any, serve: Callable[[Path], str], tmp_path: Path
) -> None:
    record_agents(tmp_path / "runs", 3)
    tab = page.open(serve(tmp_path / "runs"), "#/rollouts").tab
    tab.wait_for_selector(".turn")
    assert tab.locator(".turn script, .turn img, .grid img").count() == 0
    assert "⟨U+202E⟩" in tab.inner_text('[aria-label="The rollout"]')
    first = tab.inner_text('[aria-label="One rollout"] h2')
    tab.keyboard.press("j")
    tab.keyboard.press("j")
    tab.wait_for_function(
        "first => document.querySelector('[aria-label=\"One rollout\"] h2').innerText !== first", arg=first
    )
    tab.wait_for_selector(".turn.trained")
    assert tab.locator("details[open]").count() <= tab.locator(".turn.tool .bad").count()
    tab.keyboard.press("o")
    tab.wait_for_selector("details.calls[open]")
    tab.keyboard.press("n")
    tab.wait_for_selector(".turn.now")
    buttons = tab.locator(".bar.fates button")
    for place in range(buttons.count()):  # each leaves as many rollouts as it says
        many = buttons.nth(place).locator("b").inner_text()
        buttons.nth(place).click()
        tab.wait_for_function(
            "many => document.querySelector('.pane .foot b').innerText === many && "
            "document.querySelectorAll('.bar.fates [aria-pressed=true]').length === 1",
            arg=many,
        )
    assert buttons.count() > 2
    tab.click("text=Fates")
    tab.wait_for_selector("canvas")
    assert "of 24 rollouts taught something" in tab.inner_text("#main")
    tab.click("text=Prompts")
    tab.locator(".grid-row", has_text="⟨U+202E⟩").click()
    tab.wait_for_selector('[aria-label="The prompt"] >> text=⟨U+202E⟩')
    tab.wait_for_selector('[aria-label="Its best attempts"] a')
    assert tab.locator(".grid-row.chosen", has_text="⟨U+202E⟩").count() == 1
    assert tab.locator("#main script, #main img").count() == 0
    assert page.errors == []


MATCHED = "document.querySelector('.pane .foot b')?.innerText"


def test_a_part_of_training_is_chosen_by_mouse_and_by_keys_and_each_fate_counts_in_it(
    page: Any, serve: Callable[[Path], str], tmp_path: Path
) -> None:
    record_agents(tmp_path / "runs", 6)
    tab = page.open(serve(tmp_path / "runs"), "#/rollouts").tab
    brush = tab.locator("#brush")
    brush.wait_for()
    box = brush.bounding_box()
    tab.mouse.move(box["x"] + box["width"] * 1.5 / 6, box["y"] + 9)  # from the second update
    tab.mouse.down()
    tab.mouse.move(box["x"] + box["width"] * 3.5 / 6, box["y"] + 9, steps=3)  # to the fourth
    tab.mouse.up()
    tab.wait_for_function(f"() => {MATCHED} === '24'")  # of 48
    assert "gradient_step+between+2+and+4" in tab.evaluate("location.hash")
    assert brush.get_attribute("aria-valuetext") in tab.inner_text(".overtraining")
    fate = tab.locator(".bar.fates button").nth(1)
    many = fate.locator("b").inner_text()
    fate.click()
    tab.wait_for_function(f"many => {MATCHED} === many", arg=many)
    tab.keyboard.press("w")
    tab.keyboard.press("Shift+ArrowLeft")
    tab.keyboard.press("ArrowRight")
    tab.wait_for_function("() => location.hash.includes('gradient_step+between+3+and+4+and+')")
    tab.keyboard.press("Escape")
    tab.wait_for_function(
        "() => !location.hash.includes('between') && location.hash.includes('where=')"
    )  # the fate stays
    assert page.errors == []


def test_one_goes_through_a_group_reads_tokens_and_sees_where_two_rollouts_part(
    page: Any, serve: Callable[[Path], str], tmp_path: Path
) -> None:
    record_agents(tmp_path / "runs", 3)
    tab = page.open(serve(tmp_path / "runs"), "#/rollouts").tab
    place = tab.locator(".place-in")
    place.wait_for()
    first = int(place.inner_text().removesuffix(" of 4"))
    tab.get_by_label("Next of the group").click()
    tab.wait_for_function(
        "text => document.querySelector('.place-in')?.innerText === text", arg=f"{first % 4 + 1} of 4"
    )
    tab.keyboard.press("t")
    tokens = tab.locator(".heatstrip:focus")
    tokens.wait_for()
    tab.keyboard.press("Home")
    tab.keyboard.press("ArrowRight")
    tab.wait_for_function("() => document.activeElement.ariaValueNow === '1'")
    said = tokens.get_attribute("aria-valuetext")
    assert said.startswith("token 1, id ")
    assert all(f"{number} " in said for number in ("sampler", "entropy"))
    assert "token 1 of " in tab.locator(".readout").first.inner_text()
    tab.keyboard.press("d")
    tab.wait_for_selector(".turnsdiff")
    assert f"{first % 4 + 1} against {(first + 1) % 4 + 1}" in tab.inner_text(".turnsdiff")
    assert tab.locator(".turnsdiff script, .turnsdiff img").count() == 0
    assert page.errors == []


def test_keys_pressed_before_the_next_rollout_is_there_are_about_that_one(
    page: Any, serve: Callable[[Path], str], tmp_path: Path
) -> None:
    record_agents(tmp_path / "runs", 3)
    tab = page.open(serve(tmp_path / "runs"), "#/rollouts").tab
    tab.locator(".place-in").wait_for()
    page.settled()
    held: list[Any] = []
    for keys in ("]d", "jd"):  # the next of the group, and one of another group
        tab.route("**/api/runs/*/rollouts/*", lambda route: held.append(route))
        for key in keys:
            tab.keyboard.press(key)
        tab.wait_for_function("() => location.hash.includes('row=')")
        page.let_pass(300)
        assert held, "the next rollout was asked for"
        while held:
            held.pop().continue_()
        tab.unroute("**/api/runs/*/rollouts/*")
        tab.wait_for_selector(".turnsdiff")
        page.settled()
        asked = parse_qs(tab.evaluate("location.hash").partition("?")[2])
        assert asked["diff"] != asked["row"]
        a, b = tab.inner_text(".turnsdiff b").split(" against ")
        assert a != b
        tab.keyboard.press("]")  # what was beside it is left
        tab.wait_for_selector(".turnsdiff", state="detached")
        page.settled()
    assert page.errors == []


def test_groups_are_unfolded_by_keys_and_a_link_shows_the_same_rollout(
    page: Any, serve: Callable[[Path], str], tmp_path: Path
) -> None:
    record_agents(tmp_path / "runs", 3)
    tab = page.open(serve(tmp_path / "runs"), "#/rollouts").tab
    tab.wait_for_selector(".grid-row.group")
    assert tab.locator(".grid-body .grid-row").count() == 6  # of 24 rollouts
    for key in ("J", "J", "ArrowRight"):
        tab.keyboard.press(key)
    tab.wait_for_selector(".grid-row .place")
    assert tab.locator(".grid-body .grid-row").count() == 10
    for key in ("j", "j", "h"):
        tab.keyboard.press(key)
    page.settled()  # the turns of the rollout that the keys went to are there: n goes to one of them
    tab.keyboard.press("n")
    tab.wait_for_selector(".turn.now .nr")
    tab.wait_for_selector(".heatbar [aria-pressed=true]")
    tab.wait_for_selector(".place-in")
    page.settled()  # the rollout that the keys went to is there, and the others of its group are known
    for key in ("d", "Enter"):
        tab.keyboard.press(key)
    tab.wait_for_selector(".split.whole .turnsdiff")
    places = [".place-in", ".turn.now .nr", ".heatbar [aria-pressed=true]", ".turnsdiff b"]
    state = f"() => {places}.map(at => document.querySelector(at)?.innerText)"
    page.settled()
    seen = tab.evaluate(state)
    assert seen[0] == "2 of 4"
    assert None not in seen
    tab.reload()
    tab.wait_for_selector(".split.whole .turnsdiff")
    assert page.settled().tab.evaluate(state) == seen
    tab.keyboard.press("Escape")
    tab.wait_for_selector(".grid-row.group")
    tab.keyboard.press("g")
    tab.wait_for_selector(".grid-row .asked-for")
    assert page.settled().tab.locator(".grid-body .grid-row").count() == 24
    assert page.errors == []


def test_two_runs_are_compared_on_the_prompts_that_both_have(
    page: Any, serve: Callable[[Path], str], tmp_path: Path
) -> None:
    first, second = (record_agents(tmp_path / "runs", updates) for updates in (3, 5))
    tab = page.open(serve(tmp_path / "runs"), f"#/rollouts?run={first}&tab=prompts").tab
    tab.wait_for_selector('[aria-label="Prompts of both runs"] td')  # with the newest other run of its project at first
    assert tab.input_value('[aria-label="Two runs on the same prompts"] select') == second
    assert "of 4 prompts" in tab.inner_text("#main")
    assert tab.locator("#main script, #main img").count() == 0
    tab.locator('[aria-label="Prompts of both runs"] a').nth(1).focus()
    tab.keyboard.press("Enter")
    tab.wait_for_selector(".turn")
    assert page.errors == []


def test_a_prompt_over_training_is_a_strip_whose_parts_keys_and_hands_open(
    page: Any, serve: Callable[[Path], str], tmp_path: Path
) -> None:
    with rollbook.init("sums", "grpo", dir=tmp_path / "runs", sinks=[], keeper="inline", rules=()) as run:
        for step in range(60):  # more updates than a strip has parts
            tried = ["hard", "late"] if step % 20 < 10 else ["hard"]
            for prompt in tried:
                reward = [0.0, float(prompt == "late" and step >= 40)]
                run.rollouts.log_many(
                    prompts=[prompt] * 2, completions=["a"] * 2, reward=reward, group=f"{step}", gradient_step=step
                )
    tab = page.open(serve(tmp_path / "runs"), "#/rollouts?tab=tasks").tab
    strip = tab.locator("#strip")
    strip.wait_for()
    words = tab.locator(".solvedstrip[role=img]").get_attribute("aria-label")
    assert words == (
        "at first updates 0 to 2: 0 of 6 solved; first solved updates 39 to 41: 2 of 4 solved; "
        "at last updates 48 to 50: 2 of 4 solved"
    )
    tab.keyboard.press("w")
    tab.wait_for_function("() => document.activeElement.id === 'strip'")
    assert strip.get_attribute("aria-valuetext") == "updates 57 to 59: 0 of 6 solved"
    tab.keyboard.press("ArrowLeft")
    tab.wait_for_function("() => document.querySelector('.pane .foot').innerText.includes('updates 54 to 56: 0 of 6')")
    tab.keyboard.press("Enter")
    tab.wait_for_function(f"() => {MATCHED} === '6'")
    assert "gradient_step+between+54+and+56" in tab.evaluate("location.hash")
    tab.go_back()
    strip.wait_for()
    late = tab.locator(".solvedstrip[role=img]")
    box = late.bounding_box()
    late.click(position={"x": box["width"] * 14.5 / 20, "y": 12})  # of twenty parts the fifteenth: updates 42 to 44
    tab.wait_for_function(f"() => {MATCHED} === '6'")
    assert "gradient_step+between+42+and+44" in tab.evaluate("location.hash")
    assert page.errors == []


def test_tokens_show_their_recorded_texts_and_where_there_are_none_what_would_give_them(
    page: Any, serve: Callable[[Path], str], tmp_path: Path
) -> None:
    texts = ["It", " is", "\n<b>", "4", " \u202e!"]
    numbers: dict[str, Any] = {"tokens": [5, 6, 7, 8, 9], "logprobs": [-0.1, -0.2, -3.0, -0.4, -0.5]}
    with rollbook.init("sums", "grpo", dir=tmp_path / "runs", sinks=[], keeper="inline", rules=()) as run:
        rows = []
        for more in ({"token_texts": texts}, {}, {"token_texts": texts[:2]}):
            with run.rollouts.begin(task="2 + 2?") as rollout:
                rollout.turn("assistant", "".join(texts), **numbers, **more)
            rows.append(rollout.id)
    address = serve(tmp_path / "runs")
    tab = page.open(address, f"#/rollouts?row={rows[0]}").tab
    tab.wait_for_selector(".heatstrip")
    assert tab.locator(".heatstrip i").all_text_contents() == ["It", " is", "⏎\n<b>", "4", " ⟨U+202E⟩!"]
    assert tab.locator(".turn.trained pre").count() == 0, "the tokens say it already"
    tab.keyboard.press("t")
    tab.keyboard.press("Home")
    tab.keyboard.press("ArrowRight")
    tab.wait_for_function("() => document.querySelector('.heatstrip .at')?.textContent === ' is'")
    assert tab.locator(".heatstrip").get_attribute("aria-valuetext").startswith("token 1, ␣is, id 6, sampler ")
    assert tab.get_by_text("ids alone").count() == 0
    for row in rows[1:]:  # without texts, or with another number of them
        page.open(address, f"#/rollouts?row={row}")
        tab.get_by_text("ids alone; turn(…, token_texts=[…]) gives their text").wait_for()
        assert tab.locator(".turn.trained pre").count() == 1
        assert "id 7" in tab.locator(".readout").inner_text()
    assert page.errors == []


def test_a_run_with_a_clock_of_its_own_has_it_in_each_row_and_an_ended_one_waits_for_no_fate(
    page: Any, serve: Callable[[Path], str], tmp_path: Path
) -> None:
    """While it goes on, the words above the list and the list itself are about the same rollouts."""
    more: dict[str, Any] = {"dir": tmp_path / "runs", "sinks": [], "keeper": "inline", "rules": ()}
    run = rollbook.init("sums", "grpo", clocks=["train_iter"], **more)

    def iterate(step: int, status: str = "completed") -> None:
        run.rollouts.log_many(
            prompts=["2 + 2?"] * 4,
            completions=["4"] * 4,
            reward=[1.0, 0.0, 1.0, 0.0],
            group=f"{step}",
            policy_version=step,
            train_iter=40 + step,
            status=status,
        )

    for step in range(3):
        iterate(step, "failed" if step == 2 else "completed")
    tab = page.open(serve(tmp_path / "runs"), "#/rollouts?list=one").settled().tab
    heads = tab.locator("[role=columnheader]").all_inner_texts()
    assert "train_iter" in " ".join(heads).replace("\n", "")
    assert tab.locator("[aria-label='Table of rollouts'] .grid-row:not(.waits)", has_text="42").count() == 4
    assert "no fate yet" in tab.inner_text("[aria-label=Rollouts]")
    iterate(3)
    tab.wait_for_function("() => document.querySelector('.pane .foot b').innerText === '16'")
    page.settled()
    assert "of 16 rollouts" in tab.inner_text("[aria-label='Over training']")
    run.finish()
    tab.wait_for_function("() => !document.querySelector('#main').innerText.includes('no fate yet')")
    assert "no fate" in tab.inner_text("[aria-label=Rollouts]")
    assert page.errors == []


def test_answers_that_begin_alike_are_told_apart_by_their_ends(page: Any, serve: Any, tmp_path: Path) -> None:
    think = "<think>" + "so " * 60 + "</think> The answer is "
    with rollbook.init("sums", "grpo", dir=tmp_path / "runs", sinks=[], keeper="inline", rules=()) as run:
        answers = [f"{think}\\boxed{{{n}}}" for n in (4, 22)]
        run.rollouts.log_many(prompts=["2 + 2?"] * 2, completions=answers, reward=[1.0, 0.0], group="g")
    tab = page.open(serve(tmp_path / "runs"), "#/rollouts").tab
    tab.locator(".grid-body .fold").first.click()
    for answer in ("4", "22"):
        end = tab.locator(".grid-body .itemtext bdi", has_text=f"boxed{{{answer}}}").first
        end.wait_for()
        box, cell = end.bounding_box(), end.locator("xpath=ancestor::*[@role='cell']").bounding_box()
        assert box["x"] + box["width"] <= cell["x"] + cell["width"] + 1, "the end is not cut"
    assert page.errors == []
