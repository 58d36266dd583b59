"""What somebody new wants to know, found without a manual: by what stands on the page and few clicks (counted).

The ways of the hands through lists and sweeps are here too, seen by the address they lead to.
"""

from __future__ import annotations

import contextlib
import itertools
import random
from pathlib import Path
from typing import Any

import pytest

import rollbook

HASH = "() => location.hash"


def trained_on_prompts(more: dict[str, Any]) -> None:
    with rollbook.init("sums", "grpo", seed=1, clocks=["train_iter"], **more) as run:
        for step in range(12):
            for prompt, solved in (("2 + 3", 3), ("17 * 23", step // 4), ("the 40th prime", 0)):
                reward = [float(n < solved) for n in range(4)]
                texts = [f"It is {n}" for n in range(4)]
                asked = [f"What is {prompt}?"] * 4
                run.log_samples(texts, group=f"{step} {prompt}", prompt=asked, completion=texts, reward=reward,
                                train_iter=step)  # fmt: skip
                run.rollouts.log_many(prompts=asked, completions=texts, reward=reward, group=f"{step}",
                                      policy_version=step, gradient_step=step)  # fmt: skip
            for scope in ("train", "test"):
                run.scope(scope).log_episode(return_=float(step), length=2, terminated=step % 2 == 0,
                                truncated=step % 2 == 1, train_iter=step)  # fmt: skip


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two learning rates with five seeds, of which one crashed, and a run that is trained on three prompts."""
    folder = tmp_path_factory.mktemp("study") / "runs"
    more: dict[str, Any] = {"dir": folder, "sinks": [], "keeper": "inline", "rules": ()}
    for lr, slope in ((3e-4, 0.2), (1e-3, 0.6)):
        if lr == 1e-3:
            trained_on_prompts(more)  # is among the newest runs, of which a page opens the first with something to show
        for seed in range(5):
            noise = random.Random(seed)
            with (
                contextlib.suppress(ZeroDivisionError),
                rollbook.init("cartpole", "ppo", seed=seed, config={"lr": lr}, total={"env_step": 300}, **more) as run,
            ):
                for step in range(0, 300, 3):
                    run.log({"train/return": step * slope + noise.gauss(0, 5)}, env_step=step)
                    if (lr, seed, step) == (1e-3, 3, 150):
                        raise ZeroDivisionError("no episode ended in this batch")
    return folder


class Newcomer:
    """Clicks on what can be read, and counts."""

    def __init__(self, page: Any) -> None:
        self.page, self.clicks = page, 0

    def click(self, name: str, role: str = "link") -> None:
        self.page.tab.get_by_role(role, name=name, exact=True).first.click()
        self.clicks += 1

    def reads(self, *words: str) -> None:
        """Waits until these words stand on the page, within what can be seen without scrolling."""
        self.page.tab.wait_for_function(
            """words => {
                const seen = [...document.querySelectorAll('main *')].filter(one => {
                    const box = one.getBoundingClientRect();
                    return one.checkVisibility() && box.height > 0 && box.top < innerHeight && box.bottom > 0;
                });
                return words.every(word => seen.some(one => one.textContent.includes(word)));
            }""",
            arg=list(words),
        )


def test_which_seed_failed_and_why_is_one_click_away(page: Any, serve: Any, study: Path) -> None:
    newcomer = Newcomer(page.open(serve(study)))
    newcomer.reads("1 crashed")
    page.tab.locator("nav a", has_text="Health").click()
    newcomer.clicks += 1
    newcomer.reads("ZeroDivisionError: no episode ended in this batch", "ppo lr 0.001, seed 3")
    assert newcomer.clicks == 1
    assert page.errors == []


def test_which_learning_rate_is_best_is_two_clicks_away(page: Any, serve: Any, study: Path) -> None:
    newcomer = Newcomer(page.open(serve(study)))
    newcomer.reads("ppo lr")
    newcomer.click("Compare")
    newcomer.click("Sweep")
    newcomer.reads("lr matters most", "The best so far is lr 0.001", "It is ahead of all others.")
    assert newcomer.clicks == 2
    assert page.errors == []


def test_which_prompt_is_never_solved_is_two_clicks_away(page: Any, serve: Any, study: Path) -> None:
    newcomer = Newcomer(page.open(serve(study)))
    newcomer.click("Rollouts")
    newcomer.click("Prompts", "button")
    newcomer.reads("What is the 40th prime?", "Never solved in 48 attempts")
    assert newcomer.clicks == 2
    texts = page.tab.locator(".grid-body .grid-row").all_inner_texts()
    rows = [" ".join(text.replace("\N{EN DASH}", " to ").split()) for text in texts]
    assert rows[0].startswith("What is the 40th prime? 48 never 0 to 7 % 0 % 0 to 24 %")
    assert rows[1].startswith("What is 17 * 23? 48 25 % 15 to 39 % 50 % 25 to 75 %")
    assert rows[2].startswith("What is 2 + 3? 48 75 % 61 to 85 %")
    newcomer.click("Runs")
    page.tab.locator(".grid-row.whole").first.wait_for()
    projects = page.tab.locator(".grid-row.whole").all_inner_texts()
    assert [text.split()[0] for text in projects] == ["cartpole", "sums"], "styles of other pages hide no row"
    assert page.errors == []


def pressed(name: str, word: str) -> Any:
    """A button of a row of buttons, and the word that it puts into the address."""

    def act(page: Any) -> None:
        page.tab.get_by_role("button", name=name, exact=True).first.click()

    return act, f"location.hash.includes('{word}')"


def key(name: str, word: str) -> Any:
    """A key, and the word that the row it moves to puts into the address."""
    return lambda page: page.tab.keyboard.press(name), f"location.hash.includes('{word}=')"


LISTS = {
    "episodes of a scope": ("episodes", *pressed("test", "scope=test")),
    "episodes by their end": ("episodes", *pressed("truncated", "only=truncated")),
    "episodes with a video": ("episodes", *pressed("video", "only=video")),
    "the worst samples": ("samples", *pressed("worst", "sort=reward")),
    "prompts that are never solved": ("rollouts?tab=tasks", *pressed("never 1", "only=never")),
    "the next prompt": ("rollouts?tab=tasks", *key("j", "row")),
    "the next sample": ("samples", *key("j", "row")),
    "the next episode": ("episodes", *key("j", "episode")),
}


def test_what_is_chosen_in_a_list_stands_in_the_address_and_a_reload_restores_it(
    page: Any, serve: Any, study: Path
) -> None:
    address = serve(study)
    run = next(path.name.rpartition("-")[2] for path in (study / "sums").iterdir())
    for name, (place, act, there) in LISTS.items():
        page.tab.goto("about:blank")
        page.open(address, f"#/{place}{'&' if '?' in place else '?'}run={run}").settled()
        page.tab.locator(".grid-row").first.wait_for()
        act(page)
        page.tab.wait_for_function(f"() => {there}")
        page.settled()
        shown = page.tab.locator(".pane .grid-body").first.inner_text()
        hash = page.tab.evaluate(HASH)
        page.tab.reload()
        page.settled()
        assert page.tab.evaluate(HASH) == hash, name
        assert page.tab.locator(".pane .grid-body").first.inner_text() == shown, name
    assert page.errors == []


def test_letters_in_a_field_are_text_and_nothing_else(page: Any, serve: Any, study: Path) -> None:
    address = serve(study)
    run = next(path.name.rpartition("-")[2] for path in (study / "sums").iterdir())
    for place, field in (
        ("#/runs", "#find-key"),
        ("#/samples", "input[aria-label='Condition']"),
        ("#/samples", "input[aria-label='Search in texts']"),
    ):
        page.tab.goto("about:blank")
        page.open(address, f"{place}?run={run}").settled()
        page.tab.locator(field).focus()
        page.tab.keyboard.type("gcfjbT?0")
        assert page.tab.locator(field).input_value() == "gcfjbT?0"
        assert page.tab.locator("dialog[open], :popover-open").count() == 0
        assert page.tab.evaluate(HASH).startswith(place)
        assert page.tab.evaluate("document.documentElement.dataset.theme ?? ''") in ("", "light")


@pytest.fixture(scope="module")
def two_settings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two learning rates and two ranges of clipping: of one setting the picture against the score says it all."""
    folder = tmp_path_factory.mktemp("sweep") / "runs"
    for lr, clip in itertools.product((1e-3, 1e-2), (0.1, 0.2)):
        config = {"lr": lr, "clip": clip}
        with rollbook.init("cartpole", "ppo", config=config, dir=folder, sinks=[], keeper="inline", rules=()) as run:
            run.log({"train/return": lr + clip}, env_step=1)
    return folder


def test_the_setting_of_a_sweep_is_chosen_with_the_keyboard_alone(page: Any, serve: Any, two_settings: Path) -> None:
    page.open(serve(two_settings), "#/sweep")
    name = page.tab.locator(".axisnames button").first
    name.focus()
    page.tab.keyboard.press("Enter")
    page.tab.wait_for_function("() => location.hash.includes('of=')")
    assert name.evaluate("one => one === document.activeElement"), "the focus stays where the hand is"
    assert page.errors == []


def test_a_range_of_a_sweep_is_kept_moved_and_let_go_with_the_keyboard_alone(
    page: Any, serve: Any, two_settings: Path
) -> None:
    page.open(serve(two_settings), "#/sweep")
    name = page.tab.locator(".axisnames button").first
    name.wait_for()
    page.tab.keyboard.press("?")
    sheet = page.tab.locator("dialog[open] .keys")
    assert "on the name of a setting: keep a range of it" in sheet.inner_text()
    page.tab.keyboard.press("Escape")
    name.focus()
    before = page.tab.evaluate(HASH)
    for key, range_ in (("ArrowUp", "0.75_1"), ("ArrowDown", "0.7_0.95"), ("Shift+ArrowDown", "0.7_0.9")):
        page.tab.keyboard.press(key)
        page.tab.wait_for_function(f"() => location.hash.endsWith(':{range_}')")
    assert page.tab.locator(".threads rect.range").count() == 1
    page.tab.keyboard.press("Delete")
    page.settled()
    assert page.tab.evaluate(HASH) == before
    assert name.evaluate("one => one === document.activeElement")
    assert page.errors == []


def test_compare_opens_on_a_project_with_two_groups_and_names_those_without_a_score(
    page: Any, serve: Any, tmp_path: Path
) -> None:
    more: dict[str, Any] = {"dir": tmp_path / "runs", "sinks": [], "keeper": "inline", "rules": ()}
    for lr, seeds in ((1e-3, 2), (1e-2, 2), (1e-1, 1)):
        for seed in range(seeds):
            with (
                contextlib.suppress(ZeroDivisionError),
                rollbook.init("cartpole", "ppo", seed=seed, config={"lr": lr}, **more) as run,
            ):
                run.log({"train/return": lr}, env_step=1)
                if lr == 1e-1:
                    raise ZeroDivisionError
                run.log({"train/return": 2 * lr}, env_step=2)
    with rollbook.init("newest", "sac", seed=0, **more) as run:
        run.log_many({"train/return": [1.0, 2.0]}, env_step=[1, 2])
    address = serve(tmp_path / "runs")
    page.open(address).settled()
    for way in ("a link", "a key of the table"):
        if way == "a key of the table":
            page.open(address).settled()
            page.tab.keyboard.press("c")
        else:
            page.open(address, "#/compare")
        page.tab.locator(".ranking").wait_for()
        said = page.tab.inner_text(".said")
        assert "No score" in said
        assert "1 did not finish" in said
        assert page.tab.inner_text(".ranking").count("?") == 1, "of three groups one has no score"
    page.tab.get_by_role("button", name="unfinished worst").click()
    page.tab.locator(":popover-open input[name=floor]").fill("-0.5")
    page.tab.locator(":popover-open").get_by_role("button", name="Compare so").click()
    page.tab.wait_for_function("() => (document.querySelector('.ranking')?.innerText.match(/\\?/g) ?? []).length === 2")
    page.tab.wait_for_function("() => location.hash.includes('floor=-0.5')")
    assert "No score" not in page.tab.inner_text(".said"), "the run that did not finish counts as -0.5"
    page.tab.get_by_role("button", name="groups of").click()
    page.tab.locator(":popover-open").get_by_text("newest").click()
    page.tab.get_by_role("button", name="Compare the groups of cartpole").click()
    page.tab.wait_for_function("() => document.querySelector('.ranking').innerText.includes('?')")
    assert page.errors == []
