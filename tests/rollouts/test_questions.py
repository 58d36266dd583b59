"""Each question about rollouts has the same right answer in Python, by a command and on the page."""

from __future__ import annotations

import itertools
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import rollbook
from cases import some_of
from rollbook.book import RolloutQueries
from rollbook.capture import RolloutLog
from rollbook.cli.app import app
from rollbook.errors import BadInput, UnknownKey

DOCS = Path(__file__).parents[2] / "docs" / "rollouts.md"
PAGE = Path(__file__).parents[2] / "dashboard" / "src" / "pages" / "rollouts"


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Four rollouts of two prompts: one is hacked, one fails by its tool, one is dropped, one is lost."""
    folder = tmp_path_factory.mktemp("runs")
    with rollbook.init("p", "r", dir=folder, sinks=[], keeper="import", rules=()) as run:
        ids = []
        for task, reward, version in (("easy", 1.0, 0), ("easy", 0.0, 1), ("hard", 0.0, 1), ("hard", 0.0, 1)):
            with run.rollouts.begin(task=task, group=f"{task}-{version}", policy_version=version) as rollout:
                rollout.turn("assistant", "pytest.skip it", tokens=[7, 8], logprobs=[-1.0, -1.0], seconds=3.0)
                rollout.turn("tool", "?", name="bash", seconds=1.0, error=None if task == "easy" else "TimeoutError")
                rollout.turn("assistant", "done", tokens=[7, 9, 9], logprobs=[-1.0, -1.0, -1.0], seconds=2.0)
                rollout.reward(tests=reward)
            ids.append(rollout.id)
        run.rollouts.trained(
            ids[:2],
            advantage=[1.0, -1.0],
            gradient_step=2,
            trained_version=2,
            clipped=[0.1, 0.3],
            gap_max=[0.5, 3.0],
            gap_mean=[0.2, 0.6],
            trainer_logprobs=[[-1.0, -1.5, -1.0, -1.0, -1.25], [-1.0, -1.0, -1.0, -4.0, -1.0]],
        )
        run.rollouts.dropped(ids[2], reason="zero_std", gradient_step=2)
    return rollbook.open(folder).one()


@pytest.fixture(scope="module")
def one(book: Any) -> str:
    """The first of these rollouts."""
    return str(book.rollouts()["rollout_id"][0].as_py())


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A run of two rollouts of which little is known, and one of them."""
    with rollbook.init("p", "bare", dir=tmp_path_factory.mktemp("bare"), sinks=[], keeper="import", rules=()) as run:
        ids = run.rollouts.log_many(prompts=["a long question " * 20] * 2, completions=["4", "5"], reward=[1.0, 0.0])
        run.rollouts.trained(ids, advantage=[1.0, -1.0], gradient_step=1)
    return run.folder, ids[0]


def _first(book: Any, question: str, **more: Any) -> dict[str, Any]:
    return dict(book.rollout_answer(question, **more).to_pylist()[0])


def test_a_group_taught_nothing_if_no_rollout_of_it_moved_the_policy(tmp_path: Path) -> None:
    """One of a group that was dropped says nothing about the others; and names may return with another task."""
    with rollbook.init("p", "r", dir=tmp_path, sinks=[], keeper="import", rules=()) as run:
        ids = {}
        for name, task in (("taught", "t"), ("equal", "t"), ("dropped", "t"), ("in flight", "t"), ("taught", "u")):
            ids[name, task] = run.rollouts.log_many(
                prompts=[task] * 2, completions=["a", "b"], rewards=[0, 1], group=[name] * 2
            )
        run.rollouts.trained(ids["taught", "t"][:1], advantage=[1.0], gradient_step=1)
        run.rollouts.dropped(ids["taught", "t"][1:], reason="surplus", gradient_step=1)
        run.rollouts.trained(ids["equal", "t"], advantage=[0.0, 0.0], gradient_step=2)
        run.rollouts.dropped(ids["dropped", "t"], reason="surplus", gradient_step=3)
        run.rollouts.trained(ids["taught", "u"], reason="zero_std", gradient_step=4)
        answer = run.book.rollout_answer("groups").to_pylist()
    assert [(row["reason"], row["groups"], row["rollouts"], row["first"]) for row in answer] == [
        ("surplus", 1, 2, 3),
        ("zero advantage", 1, 2, 2),
        ("zero_std", 1, 2, 4),
    ]


def test_each_answer_begins_with_the_row_that_matters_most(book: Any) -> None:
    ids = book.rollouts()["rollout_id"].to_pylist()
    assert _first(book, "fates") == {
        "fate": "used",
        "rollouts": 2,
        "groups": 2,
        "sampled_tokens": 10,
        "reward": 0.5,
    }
    assert _first(book, "groups") == {
        "reason": "zero_std",
        "groups": 1,
        "rollouts": 1,
        "sampled_tokens": 5,
        "first": 2,
        "last": 2,
    }
    stale = {row["staleness"]: (row["n"], row["clipped"]) for row in book.rollout_answer("staleness").to_pylist()}
    assert stale == {1: (1, 0.3), 2: (1, 0.1)}
    assert (_first(book, "gaps")["rollout_id"], _first(book, "gaps")["gap_max"]) == (ids[1], 3.0)
    worst = _first(book, "tokens")
    assert (worst["token"], worst["gap_max"], worst["rollout_id"], worst["turn"], worst["token_index"]) == (
        9,
        3.0,
        ids[1],
        2,
        1,
    )
    assert [row["token"] for row in book.rollout_answer("tokens").to_pylist()] == [9, 8, 7]
    assert {name: _first(book, "tools")[name] for name in ("name", "calls", "failed", "share")} == {
        "name": "bash",
        "calls": 4,
        "failed": 2,
        "share": 0.5,
    }
    assert _first(book, "time") == {"part": "model", "seconds": 20.0, "share": 20 / 24}
    assert (_first(book, "lost")["rollouts"], _first(book, "lost")["rollout_id"]) == (1, ids[3])
    assert _first(book, "prompts", limit=1)["prompt"] == "hard"
    history = book.rollout_answer("history", rollout_id=ids[0]).to_pylist()
    assert [(row["version"], row["rollouts"], row["reward"]) for row in history] == [(0, 1, 1.0), (1, 1, 0.0)]


@pytest.mark.parametrize("others", [True, False], ids=["others reported", "others not reported"])
def test_the_worst_tokens_are_found_whatever_was_reported_of_each_use(others: bool, tmp_path: Path) -> None:
    """Each rollout is used twice: of each use the trainer reports the gap, nothing or NaN; one of them is larger."""
    kinds: list[Any] = [lambda gap: gap, lambda gap: None, lambda gap: math.nan]
    cases = list(itertools.product(kinds, kinds, (0, 1)))
    with rollbook.init("p", "r", dir=tmp_path, sinks=[], keeper="import", rules=()) as run:
        talks = [
            [{"role": "assistant", "content": "a", "tokens": [n, 99], "logprobs": [-1.0, -1.0]}] for n in range(50)
        ]
        ids = run.rollouts.log_many(talks, group="g")
        trainer = RolloutLog(run)  # as in another process, which lacks the lists of the sampler
        for use in (0, 1):
            gaps = [9 - n / 8 if n < len(cases) and cases[n][2] == use else 0.25 for n in range(50)]
            said = [case[use](gap) for case, gap in zip(cases, gaps, strict=False)]
            said += [gap if others else None for gap in gaps[len(cases) :]]
            lists = [[-1.0 - gap, -1.0] for gap in gaps]
            trainer.trained(ids, gradient_step=use, gap_max=said, trainer_logprobs=lists)
        trainer.trained(run.rollouts.log_many(prompts=["q"], completions=["a"]), gap_max=99.0, gradient_step=3)
    worst = rollbook.open(tmp_path).one().rollout_answer("tokens", limit=len(cases)).to_pylist()
    found = [(row["token"], row["gap_max"], row["times"], row["rollout_id"]) for row in worst]
    assert found == [(n, 9 - n / 8, 2, ids[n]) for n in range(len(cases))]


def test_words_of_hacked_answers_come_first(tmp_path: Path) -> None:
    with rollbook.init("p", "r", dir=tmp_path, sinks=[], keeper="import", rules=()) as run:
        texts = [f"answer {n} " + ("pytest.skip" if n >= 36 else "fixed") for n in range(40)]
        ids = run.rollouts.log_many(prompts=["q"] * 40, completions=texts, reward=[float(n) for n in range(40)])
        run.rollouts.trained(ids, advantage=[float(n) for n in range(40)], gradient_step=1)
    assert _first(rollbook.open(tmp_path).one(), "words") == {"word": "pytest.skip", "high": 4, "low": 0}


@pytest.mark.parametrize("question", some_of(RolloutQueries.QUESTIONS, [*RolloutQueries.QUESTIONS][1::2].count))
def test_the_command_gives_the_answer_of_python(question: str, book: Any, one: str) -> None:
    words = ["rollouts", str(book.path), question, "--json", *(["--id", one] if question == "history" else [])]
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    expected = book.rollout_answer(question, rollout_id=one)
    rows = json.loads(done.stdout)
    assert len(rows) == expected.num_rows
    assert [set(row) for row in rows] == [set(expected.column_names)] * len(rows)


def test_an_unknown_question_and_a_history_of_nothing_say_what_there_is(book: Any) -> None:
    with pytest.raises(BadInput, match=r"'tool'.*Did you mean 'tools'"):
        book.rollout_answer("tool")
    with pytest.raises(BadInput, match="one of its rollouts"):
        book.rollout_answer("history")
    with pytest.raises(UnknownKey, match="no-such"):
        book.rollout_answer("history", rollout_id="no-such")
    assert "--id ROLLOUT" in CliRunner().invoke(app, ["rollouts", str(book.path), "history"]).stderr


@pytest.mark.parametrize("question", some_of(RolloutQueries.QUESTIONS, [*RolloutQueries.QUESTIONS][::2].count))
def test_an_empty_answer_says_why_and_every_answer_fits_the_terminal(
    question: str, book: Any, one: str, bare: tuple[Path, str]
) -> None:
    for path, identity in ((book.path, one), bare):
        words = ["rollouts", str(path), question, *(["--id", identity] if question == "history" else [])]
        done = CliRunner().invoke(app, words, catch_exceptions=False, env={"COLUMNS": "80"})
        assert max(map(len, done.stdout.splitlines()), default=0) <= 80
        assert done.stdout or re.search(r"nothing to list: \w+", done.stderr), question


def test_every_question_about_a_run_without_rollouts_answers_that_it_has_none(tmp_path: Path) -> None:
    rollbook.init("p", "none", dir=tmp_path, sinks=[], keeper="import").finish()
    for question in RolloutQueries.QUESTIONS.keys() - {"history"}:
        done = CliRunner().invoke(app, ["rollouts", "none", question, "--dir", str(tmp_path)])
        assert (done.exit_code, "the run has no rollouts" in done.stderr) == (0, True), question


def test_the_table_of_the_docs_names_every_question_once_with_its_command_and_place() -> None:
    table = re.findall(
        r"^\|[^|]+\| `rollbook rollouts last(?:` or `…)? (\w+)[^|]*\| `([^|]+)` \| ([^|]+) \| \d+ \|$",
        DOCS.read_text(),
        re.M,
    )
    assert [question for question, _python, _place in table] == list(RolloutQueries.QUESTIONS)
    page = "".join(file.read_text("utf-8") for file in PAGE.glob("*.tsx"))
    own = {
        "history": "book.rollout(id).history()",
        "prompts": "book.rollout_prompts()",
        "curves": "book.rollout_curves()",
    }
    for question, python, place in table:
        assert python == own.get(question, f'book.rollout_answer("{question}")')
        heading = place.partition(":")[2].partition(";")[0].strip() or place
        assert re.search(rf"\b{re.escape(heading)}\b", page), place
