"""A copy of the page, from a plain file server: every page of it opens and asks for no file that is not there."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import rollbook
from copy_answers import answers_of_copy
from page_geometry import CONTROLS, COVERED
from page_server import client_of, file_server, record_rich
from page_server import record as record_page
from rollbook.server import static_copy
from rollbook.server.static_copy import export
from waiting import until


@pytest.fixture(scope="module")
def copy(recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Two groups of seeds, and a run with something on every page."""
    folder = tmp_path_factory.mktemp("copy") / "copy"
    shutil.copytree(recorded, folder.with_name("runs"))
    record_rich(folder.with_name("runs"))
    export([str(folder.with_name("runs"))], folder)
    with file_server(folder) as address:
        yield address


def test_the_charts_of_a_copy_are_drawn_and_it_says_that_it_is_one(copy: str, page: Any) -> None:
    page.open(copy).drawn(2)
    assert page.tab.get_by_text("needs a file server").count() == 0, "that is for those who see nothing else"
    assert "a copy of" in page.tab.inner_text("header")
    assert page.errors == []


@pytest.mark.parametrize("name", ["compare", "episodes", "samples", "rollouts", "timings", "health"])
def test_every_page_of_a_copy_opens(name: str, copy: str, page: Any) -> None:
    missing: list[str] = []
    page.tab.on("response", lambda answer: answer.status >= 400 and missing.append(answer.url))
    page.open(copy, f"#/{name}")
    page.tab.wait_for_function("!document.querySelector('main [aria-busy=true]')")
    shown = page.tab.inner_text("main").strip()
    assert shown
    assert "needs the live page" not in shown  # nobody has asked for anything yet
    assert (page.errors, missing) == ([], [])


def test_a_copy_of_runs_with_axes_of_their_own_draws_each_along_its_own(tmp_path: Path, page: Any) -> None:
    folder = tmp_path / "runs"
    more: dict[str, Any] = {"dir": folder, "sinks": [], "keeper": "inline", "rules": ()}
    for seed in range(4):
        with rollbook.init("one", "ppo", seed=seed, config={"lr": seed // 2}, **more) as run:
            for step in range(20):
                run.log({"test/return": step + seed}, env_step=step)
        with rollbook.init("two", "grpo", seed=seed, config={"lr": seed // 2}, clocks=["train_iter"], **more) as run:
            for step in range(20):
                run.log({"reward": step + seed, "loss": 1 / (step + 1)}, train_iter=step)
    export([str(folder)], tmp_path / "copy")
    with file_server(tmp_path / "copy") as address:
        page.open(address, "#/runs").settled()
        assert "train_iter" in page.tab.inner_text("#pick-x"), "the axis of what is drawn"
        assert page.tab.locator(".grid-body .spark path[d^=M]").count() >= 2
        page.tab.locator(".square[aria-pressed=false]").evaluate_all("every => every.forEach(one => one.click())")
        page.drawn(3).settled()
        assert page.tab.locator("main [role=alert], main .alert.bad").count() == 0
        assert "has no answer" not in page.tab.inner_text("main")
        own = page.tab.locator(".chart:has(.tag)", has_text="own axis").first
        assert "own axis" in own.inner_text()
        assert len({name for name in own.locator(".read em").all_inner_texts() if name}) == 2, "its lines have names"
    assert page.errors == []


def test_the_comparison_of_a_copy_has_its_curves(copy: str, page: Any) -> None:
    page.open(copy, "#/compare").drawn(1)
    page.tab.wait_for_selector(".plotarea canvas")
    assert "none of the drawn runs has rows here" not in page.tab.inner_text("main")


def test_an_episode_without_a_video_shows_its_row_in_a_copy(copy: str, page: Any) -> None:
    page.open(copy, "#/episodes?episode=e50")
    page.tab.wait_for_selector(".facts")
    assert "e50" in page.tab.inner_text("main")
    assert "needs the live page" not in page.tab.inner_text("main")


def test_no_control_of_a_copy_is_cut_or_covered_at_any_width(copy: str, page: Any) -> None:
    hidden = []
    for name in ("runs", "compare", "episodes", "rollouts"):
        page.open(copy, f"#/{name}")
        page.tab.wait_for_function("!document.querySelector('main [aria-busy=true]')")
        for width in (1440, 1280, 1120, 1024, 900, 390):
            page.tab.set_viewport_size({"width": width, "height": 800})
            hidden += [(name, width, one) for one in page.tab.evaluate(COVERED, CONTROLS)]
    assert hidden == []


SORTED = [
    [{"column": "return", "descending": True}],
    [{"column": "return"}],
    [{"column": "length"}],
    [{"column": "outcome"}, {"column": "return", "descending": True}],
    [{"column": "episode_id"}],
]
WINDOWS: list[dict[str, Any]] = [{"offset": 1, "limit": 3}, {"limit": 1}]
SEARCHES = ["", "dqn", "DQN 1", "p*o", "s?ed", "strasse", "σίσυφος", "nobody", "grpo", "a.b", "(", "paper"]


def _of_runs() -> Iterator[dict[str, Any]]:
    for search in SEARCHES:
        for group_by in (None, ["auto"], ["config.lr"]):
            for sections in (None, False):
                if group_by == ["config.lr"] and search:
                    continue
                yield {"search": search, "group_by": group_by, "sections": sections, "columns": [], "limit": 50}
    columns = ["last:test/return", "last:train/return", "duration", "config.lr"]
    yield {"columns": columns, "limit": 2, "offset": 1}
    yield {"columns": columns, "group_by": ["auto"]}
    yield {"columns": ["max:train/return"]}
    yield {"filter": "config.lr < 0.01"}
    yield {"filter": "search me"}
    for name in ("name", "last:test/return", "config.lr", "created", "duration", "tags", "seed", "status", "progress"):
        for group_by in (None, ["auto"]):
            for sections in (None, False):
                sort = [{"column": name, "descending": sections is None}, {"column": "seed"}]
                yield {"sort": sort, "group_by": group_by, "sections": sections, "limit": 50}
    yield {"archived": True}


def _of_rows(run: str, rollouts: Sequence[str] = ("none",)) -> Iterator[list[Any]]:
    of_episodes: list[dict[str, Any]] = [
        {}, {"video": True}, {"traces": True}, {"video": True, "traces": True}, {"outcome": ["terminated"]},
        {"outcome": ["cut", "truncated"]}, {"where": '"return" > 1'}, {"attempts": "all"},
        {"box": {"x": "env_step", "x0": 0, "x1": 900, "y": "return", "y0": -5, "y1": 1e9}},
        {"box": {"x": "relative", "x0": 0, "x1": 900, "y": "return", "y0": -5, "y1": 5}},
        *({"sort": sort} for sort in SORTED), {"outcome": ["cut"], "sort": SORTED[1]},
    ]  # fmt: skip
    alike = [{kind: name} for name in rollouts for kind in ("group", "task")]
    by_reward = [{"sort": [{"column": "reward", "descending": one}]} for one in (True, False)]
    of_rollouts: list[dict[str, Any]] = [
        {}, *alike, *by_reward, {**alike[-1], **by_reward[0]}, {"by_group": True}, {"by_group": True, **by_reward[0]},
        {"where": "used"}, {"search": "two"}, {"sort": [{"column": "item"}]},
    ]  # fmt: skip
    of_prompts: list[dict[str, Any]] = [
        {},
        {"only": "never"},
        {"only": "sometimes"},
        {"above": 0.9},
        {"sort": [{"column": "groups"}]},
        {"sort": [{"column": "best"}, {"column": "recent_rate", "descending": True}]},
    ]
    of_samples: list[dict[str, Any]] = [
        {},
        {"search": "two"},
        {"where": "reward > 0"},
        {"sort": [{"column": "reward"}]},
    ]
    tables = {"episodes": of_episodes, "rollouts": of_rollouts, "prompts": of_prompts, "samples": of_samples}
    for table, asks in tables.items():
        yield from ([table, run, ask] for ask in asks)
        yield from ([table, run, {**asks[1], **window}] for window in WINDOWS)


def record_rollouts(folder: Path, groups: int) -> tuple[str, list[str]]:
    """Rollouts in groups of eight, some of them used; gives the run's id, and three of them."""
    every: list[str] = []
    with rollbook.init("agents", "grpo", dir=folder, sinks=[], keeper="import", rules=()) as run:
        for place in range(groups):
            talks = [
                [{"role": "user", "content": f"task {place % 3}"}, {"role": "assistant", "content": f"two {n}"}]
                for n in range(8)
            ]
            rewards = [float((place + n) % (2 + place % 3) == 0) for n in range(8)]
            names = run.rollouts.log_many(talks, rewards=rewards, group=f"g{place}", policy_version=place, mode="train")
            run.rollouts.trained(names[:5], advantage=[0.5] * 5, gradient_step=place + 1)
            every += names
        return run.id, [every[0], every[30 % len(every)], every[-1]]


def test_a_copy_and_a_server_answer_alike_wherever_both_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each condition on runs and on the rows of a run, asked of both. A copy may refuse, in three parts."""
    runs = tmp_path / "runs"
    for name, seed, lr in (("dqn", 0, 1e-3), ("dqn", 1, 1e-3), ("Straße", 0, 1e-2), ("ΣΊΣΥΦΟΣ a.b", 0, 1e-2)):
        record_page(runs, name, seed, lr, rows=50, tags=["paper"] if seed == 1 else [], notes="(one\ntwo)")
    rows = [*_of_rows(record_rich(runs)), *_of_rows(*record_rollouts(runs, 2)), *_of_rows(*record_rollouts(runs, 6))]
    monkeypatch.setattr(static_copy, "_MOST_ROLLOUTS", 20)  # the third group is recorded in part
    export([str(runs)], tmp_path / "copy")
    questions: list[list[Any]] = [*(["runs", ask] for ask in _of_runs()), *rows]
    answers = answers_of_copy(tmp_path / "copy", tmp_path, questions)
    answered: Counter[str] = Counter()
    with client_of(runs) as client:
        until(lambda: client.post("/api/columns", json={}).json()["pending"] == 0)
        for question, found in zip(questions, answers, strict=True):
            name, *of, ask = question
            body = _in_sql(name, {key: value for key, value in ask.items() if value is not None})
            live = client.post("/".join(["/api/runs", *of, name] if of else ["/api/runs"]), json=body).json()
            if "refused" in found:
                assert "this copy has no answer to it" in found["refused"], found
                assert "rollbook" in found["hint"]
                continue
            assert "error" not in live, (question, live)
            answered[name] += 1
            assert _told(name, found["answer"]) == _told(name, live), question
    assert len(answers) - sum(answered.values()) < sum(answered.values())
    assert min(answered[name] for name in ("runs", "episodes", "rollouts", "prompts", "samples")) > 2


def _in_sql(name: str, ask: dict[str, Any]) -> dict[str, Any]:
    """A window of a table in the words of the server, as the page's `server.ts` writes it."""
    newest = {"rollouts": static_copy._NEWEST_ROLLOUTS, "prompts": None}
    if name not in ("episodes", "samples", *newest):
        return ask
    sort, box, where = ask.pop("sort", []), ask.pop("box", None), [ask.pop("where", "")]
    if box is not None:
        where += [f'try_cast("{box[axis]}" as double) between {box[axis + "0"]} and {box[axis + "1"]}' for axis in "xy"]
    by = ", ".join(f'"{each["column"]}"' + (" desc" if each.get("descending") else "") for each in sort)
    where = [each for each in where if each]
    solved = {"solved": ask.pop("above")} if "above" in ask else {}
    usual = newest.get(name, static_copy._NEWEST)
    return ask | solved | {"order_by": by or usual} | ({"where": " and ".join(where)} if where else {})


def _told(name: str, answer: dict[str, Any]) -> dict[str, Any]:
    """What an answer says of its question; of a row of runs what the page and the API call alike."""
    parts = ("total", "matched", "offset", "rows", "fates", "groups", "rows_total", "never", "sometimes", "always")
    told = {part: answer.get(part) for part in parts}
    if name == "runs":
        told["rows"] = [
            {field: row.get(field) or None for field in ("kind", "id", "name", "run", "member_of", "open", "tags")}
            | {"runs": row["run_count"] if "run_count" in row and row["kind"] == "section" else row.get("runs")}
            for row in answer["rows"]
        ]
    return told
