"""Names say what differs among those shown, curves keep their room, and columns the width a hand gave them."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

import rollbook

ROOM = """() => [...document.querySelectorAll('.chart')].filter(one => one.querySelector('[data-drawn]')).map(one => {
    const [, , , , left, right] = one.querySelector('[data-drawn]').dataset.drawn.split(' ').map(Number);
    return (right - left) / one.getBoundingClientRect().width;
})"""
NAMES = """() => [...document.querySelectorAll('.chart')].map(one =>
    [...one.querySelectorAll('.read span:not([hidden]) em')].map(name => name.innerText))"""
OVER = """() => [...document.querySelectorAll('.chart')].filter(one => {
    const title = one.querySelector('.title').getBoundingClientRect();
    return [...one.querySelectorAll('.read span:not([hidden])')].some(name => {
        const box = name.getBoundingClientRect();
        return box.width > 0 && box.left < title.right - 1 && box.right > title.left + 1
            && box.top < title.bottom - 1 && box.bottom > title.top + 1;
    });
}).length"""


@pytest.fixture(scope="module")
def alike(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs as usual scripts call them: what differs stands in the middle of long names."""
    folder = tmp_path_factory.mktemp("alike") / "runs"
    for algo in ("ppo", "a2c", "sac_discrete"):
        for seed in (1, 2):
            name = f"CartPole-v1__{algo}__{seed}__17000000{seed}{len(algo)}"
            with rollbook.init("p", name, seed=seed, dir=folder, sinks=[], keeper="inline", rules=()) as run:
                for step in range(40):
                    values = {"train/return": step * len(algo) + seed, "update/loss": 1 / (1 + step)}
                    run.log(
                        {**values, "update/a_name_of_a_key_that_is/longer_than/its_card_is_wide": 1.0}, env_step=step
                    )
    return folder


@pytest.mark.parametrize("width", [1900, 1440, 1100, 390])
def test_names_are_told_apart_and_curves_keep_seven_tenths_of_their_card(
    tab_of: Any, serve: Any, alike: Path, width: int
) -> None:
    page = tab_of(width, 900).open(serve(alike), "#/runs?g=none").drawn(1).settled()
    for view in ("#/runs?g=none", "#/runs?g=none&full=train%2Freturn", "#/runs?g=none&as=each&draw=curves&k=loss"):
        page.tab.evaluate("hash => { location.hash = hash; }", view)
        page.settled().drawn(1)
        assert min(page.tab.evaluate(ROOM)) >= 0.7
        for names in page.tab.evaluate(NAMES):
            assert len(set(names)) == len(names), "no two names of one chart are alike"
            assert not any("CartPole" in name for name in names), "what all share is left out"
        assert page.tab.evaluate(OVER) == 0, "no name lies over a title"
    rows = page.tab.locator(".runname").all_inner_texts()
    assert len(set(rows)) == 6
    assert page.errors == []


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of one name and few seeds, which differ in four settings."""
    folder = tmp_path_factory.mktemp("sweep") / "runs"
    for depth in (6, 24):
        for schedule in ("cosine", "constant"):
            for lr, warmup in ((1e-4, 0), (3e-4, 1000), (0.003, 1000), (0.003, 500)):
                config = {"model": {"depth": depth}, "optim": {"schedule": schedule, "lr": lr, "warmup": warmup}}
                for seed in (1, 2):
                    with rollbook.init(
                        "sweep", "xl", seed=seed, config=config, dir=folder, sinks=[], keeper="inline", rules=()
                    ) as run:
                        for step in range(10):
                            more = {f"update/loss_{n}": n / (1 + step) for n in range(6)}
                            run.log({"train/return": step * depth, **more}, env_step=step)
    return folder


@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_runs_of_one_name_are_told_apart_by_their_settings_wherever_they_stand(
    tab_of: Any, serve: Any, sweep: Path, width: int
) -> None:
    address = serve(sweep)
    for view, many in (("#/runs?g=none", 32), ("#/runs", 16)):
        page = tab_of(width, 2_000).open(address, view).drawn(1).settled()
        rows = page.tab.locator(".runname").all_inner_texts()
        assert len(rows) == len(set(rows)) == many
        seen = page.tab.evaluate(
            "() => [...document.querySelectorAll('.runname .middle')].every(one => [one, ...one.children].every("
            "part => part.scrollWidth <= part.clientWidth + 1 || getComputedStyle(part).display === 'inline'))"
        )
        assert seen, "no name is cut"
        charts = page.tab.evaluate(NAMES)
        assert any(len(names) == 5 for names in charts)
        assert all(len(set(names)) == len(names) for names in charts)
        page.tab.get_by_role("link", name="Compare 5").click()
        page.tab.wait_for_selector(".ranking b")
        ranked = page.settled().tab.locator(".ranking b").all_inner_texts()
        assert len(set(ranked)) == len(ranked) == 5
        assert page.errors == []


def test_a_column_keeps_the_width_that_a_hand_gave_it_and_stands_where_it_was_dragged(
    page: Any, serve: Any, alike: Path
) -> None:
    address = serve(alike)
    page.open(address, "#/runs?g=none").drawn(1).settled()
    width = "() => document.querySelector('[data-column=name]').getBoundingClientRect().width"
    before = page.tab.evaluate(width)
    grip = page.tab.get_by_label("Width of the column run").bounding_box()
    x, y = grip["x"] + grip["width"] / 2, grip["y"] + grip["height"] / 2
    page.tab.mouse.move(x, y)
    page.tab.mouse.down()
    page.tab.mouse.move(x + 60, y, steps=3)
    page.tab.mouse.up()
    assert abs(page.tab.evaluate(width) - before - 60) < 3
    page.tab.get_by_label("Width of the column run").press("ArrowRight")
    wide = page.tab.evaluate(width)
    assert wide > before + 65
    page.tab.reload()
    page.drawn(1).settled()
    assert page.tab.evaluate(width) == wide
    page.tab.locator("[data-column='return']").drag_to(page.tab.locator("[data-column=status]"))
    heads = "() => [...document.querySelectorAll('[data-column]')].map(one => one.dataset.column)"
    page.tab.wait_for_function(f"() => ({heads})()[1] === 'return'")
    assert "cols=return~status" in page.settled().tab.evaluate("decodeURIComponent(location.hash)")
    page.tab.get_by_label("Width of the column run").press("Delete")
    assert abs(page.tab.evaluate(width) - before) < 3
    assert page.errors == []


def test_enter_opens_the_row_that_a_key_went_to_after_a_click_elsewhere(page: Any, serve: Any, alike: Path) -> None:
    page.open(serve(alike), "#/runs?g=none").drawn(1).settled()
    page.tab.locator(".square").nth(3).click()
    pressed = page.tab.locator(".square[aria-pressed=true]").count()
    page.tab.keyboard.press("j")
    page.tab.keyboard.press("Enter")
    page.tab.wait_for_function("() => location.hash.startsWith('#/run/')")
    page.tab.go_back()
    page.settled()
    assert page.tab.locator(".square[aria-pressed=true]").count() == pressed


def test_beside_the_name_of_the_only_line_a_key_can_be_read(page: Any, serve: Any, tmp_path: Path) -> None:
    """Its name is the same in every chart, and its value stays."""
    name = "anymal_c_rough_with_a_long_name_of_its_own"
    with rollbook.init("rsl_rl", name, seed=1, dir=tmp_path, sinks=[], keeper="inline", rules=()) as run:
        for step in range(20):
            run.log({f"Episode_Reward/{key}": step / 7 for key in ("track_lin_vel", "ang_vel_xy")}, env_step=step)
    page.open(serve(tmp_path), "#/runs").drawn(2).settled()
    cut = """() => [...document.querySelectorAll('#charts .chart')].filter(one => {
        const [title, value] = [one.querySelector('.title'), one.querySelector('.read b').getBoundingClientRect()];
        return title.scrollWidth > title.clientWidth || value.right > one.getBoundingClientRect().right
            || value.width === 0;
    }).length"""
    assert page.tab.evaluate(cut) == 0
    assert page.errors == []


SHIFT = """() => new PerformanceObserver(seen => {
    for (const one of seen.getEntries()) {
        if (one.hadRecentInput) continue;
        window.shifted = (window.shifted ?? 0) + one.value;
        (window.moved ??= []).push(...one.sources.map(({ node }) => node?.className ?? node?.nodeName));
    }
}).observe({ type: 'layout-shift', buffered: true })"""


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (1024, 768), (390, 844)])
def test_nothing_moves_while_a_page_comes(tab_of: Any, serve: Any, sweep: Path, width: int, height: int) -> None:
    """The cumulative layout shift of each page is below 0.1, what browsers call good."""
    address = serve(sweep)
    run = next(iter(rollbook.open(sweep))).id
    for place in ("#/runs", "#/runs?g=none", "#/compare", "#/sweep", f"#/run/{run}", "#/health"):
        page = tab_of(width, height)
        page.tab.add_init_script(f"({SHIFT})()")
        page.open(address, place).settled()
        page.let_pass(500)
        assert page.tab.evaluate("() => window.shifted ?? 0") < 0.1, (place, page.tab.evaluate("() => window.moved"))
        assert page.errors == []


@pytest.mark.parametrize("width", [1440, 1180, 1024, 960, 800])
def test_compare_stands_in_the_line_of_what_runs_are_grouped_by(
    tab_of: Any, serve: Any, sweep: Path, width: int
) -> None:
    page = tab_of(width, 800).open(serve(sweep), "#/runs").drawn(1).settled()
    places = [page.tab.locator(one).bounding_box() for one in ("#group-by", "section[aria-label=Runs] a.btn.main")]
    assert places[0]["y"] == places[1]["y"]
    pane = page.tab.locator("section[aria-label=Runs]").bounding_box()
    assert places[1]["x"] + places[1]["width"] <= pane["x"] + pane["width"]
    assert page.tab.locator("#group-by b").evaluate("one => one.scrollWidth <= one.clientWidth"), "its word is whole"


@pytest.fixture(scope="module")
def sixty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep of sixty configurations, and one setting whose values are long words."""
    folder = tmp_path_factory.mktemp("sixty") / "runs"
    settings = itertools.product((0.99, 0.995, 0.999), (3e-4, 1e-3, 3e-3), (0.0, 0.01), (1, 2), ("one", "two"))
    for gamma, lr, ent, layers, task in [*settings][:60]:
        optim = {"lr": lr, "schedule": f"a_schedule_with_a_long_name_that_ends_in_{task}"}
        config = {"gamma": gamma, "ent_coef": ent, "layers": layers, "optim": optim}
        with rollbook.init("hopper", "ppo", config=config, dir=folder, sinks=[], keeper="inline", rules=()) as run:
            for step in range(4):
                run.log({"train/return": step * layers + gamma, "update/loss": lr / (1 + step)}, env_step=step)
    return folder


SAME = """places => places.flatMap(([within, names]) => [...document.querySelectorAll(within)].flatMap(place => {
    const shown = new Map();
    return [...place.querySelectorAll(names)].filter(one => one.getClientRects().length > 0).flatMap(one => {
        const name = one.getAttribute('aria-label') ?? one.title ?? '';
        const said = one.closest('[title]')?.title || one.querySelector('title')?.textContent;
        const full = name || said || one.textContent;
        const wide = one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflow !== 'visible';
        const text = one.tagName === 'text' ? one.firstChild.textContent : one.innerText;
        const same = shown.has(text) && shown.get(text) !== full ? [`${text}: ${shown.get(text)} | ${full}`] : [];
        shown.set(text, full);
        return wide ? [...same, `cut: ${text}`] : same;
    });
}))"""
SHOWN = {
    "#/runs": [(".grid.runs", ".runname > span"), ("#charts .chart", ".read em")],
    "#/compare": [
        (".ranking", "b"),
        (".rowsplot", ".named"),
        (".pairs thead", ".named"),
        (".pairs tbody", ".named"),
        (".sides thead", ".named"),
        (".chart", ".read em"),
    ],
    "#/sweep": [
        (".tried tbody", ".named"),
        (".parallel g", "text"),
        (".matters", ".rowname"),
        (".axisnames", "button"),
    ],
}


@pytest.mark.parametrize("width", [1400, 900, 390])
def test_in_a_sweep_of_sixty_two_names_never_look_alike(tab_of: Any, serve: Any, sixty: Path, width: int) -> None:
    address = serve(sixty)
    for place, where in SHOWN.items():
        page = tab_of(width, 900).open(address, place).settled()
        assert page.tab.evaluate(SAME, where) == [], place
        counted = "where => where.map(([within, names]) => document.querySelectorAll(`${within} ${names}`).length)"
        assert min(page.tab.evaluate(counted, where)) >= 4, place
        assert page.errors == []
