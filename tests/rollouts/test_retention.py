"""The oldest rollouts lose token lists and texts beyond a limit, never rows, and every reader says so."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import rollbook
from agent_rollouts import record_agents
from rollbook.book import Retention
from rollbook.cli.app import app
from rollbook.keeper import sealing_child
from rollbook.storage import Trimming

TABLES = ("tasks", "rollouts", "turns", "tokens", "fates")
CELLS = {"tokens": "ids", "turns": "text", "rollouts": "item"}
KILLED = """
import os, signal, sys
import rollbook
from rollbook.book import Retention
from rollbook.storage import encode

replace, left = encode.replace_file, [int(sys.argv[3])]

def replaced(source, target):
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left[0] -= 1
    replace(source, target)

encode.replace_file = replaced
Retention(rollbook.open(sys.argv[1]).one()).trim(int(sys.argv[2]))
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    record_agents(folder, updates=20, tasks=4)
    with rollbook.init(
        "agents", "grpo", run_id=_book(folder).id, resume="must", dir=folder, sinks=[], rules=(), keeper="inline"
    ) as run:
        with run.rollouts.begin(task="judge me", group="eval", mode="eval") as rollout:
            rollout.turn("assistant", "an evaluation")
        run.record(
            "alerts", {"rule": "mine", "level": "warn", "message": "look", "source": "me", "key": ""}, gradient_step=3
        )
        (late := run.rollouts.begin(task="never ends")).turn("assistant", "still in flight")
    assert late.id
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    shutil.copytree(whole, tmp_path / "runs")
    return tmp_path / "runs"


def test_rows_rewards_and_fates_stay_and_the_oldest_lose_tokens_first(folder: Path) -> None:
    book = _book(folder)
    before = {name: book.table(name).num_rows for name in TABLES}
    facts = book.sql("select rollout_id, reward, used, reason, turns from rollouts_now order by 1").fetchall()
    times = book.sql("select sum(seconds), count(error) from turns").fetchall()
    limit = int(_size(book) * 0.85)
    entry = Retention(book).trim(limit)
    book = _book(folder)
    assert entry["bytes"] == _size(book) <= limit
    assert entry["tokens"] > 0 == entry["text"] == entry["answers"]
    assert {name: book.table(name).num_rows for name in TABLES} == before
    assert book.sql("select rollout_id, reward, used, reason, turns from rollouts_now order by 1").fetchall() == facts
    assert book.sql("select sum(seconds), count(error) from turns").fetchall() == times
    (newest_without,) = book.sql(
        "select max(gradient_step) from rollouts_now join (select distinct rollout_id from "
        "tokens where trimmed) using (rollout_id)"
    ).fetchall()[0]
    newer = f"select rollout_id from rollouts_now where gradient_step > {newest_without}"
    assert book.sql(f"select count(*), count(trimmed) from tokens where rollout_id in ({newer})").fetchall()[0][1] == 0
    assert book.problems() == []


def test_evaluations_best_worst_and_alarmed_rollouts_keep_everything(folder: Path) -> None:
    entry = Retention(_book(folder)).trim(1)
    book = _book(folder)
    for table, column in CELLS.items():
        said = book.sql(f"select bool_and(({column} is null) = (trimmed is true)) from {table}").fetchall()
        assert said == [(True,)]
    whole = set(
        book.sql("select rollout_id from turns group by 1 having count(trimmed) = 0")
        .to_arrow_table()["rollout_id"]
        .to_pylist()
    )
    rows = book.rollouts().to_pylist()
    assert {row["rollout_id"] for row in rows if row["mode"] == "eval" or row["gradient_step"] == 3} <= whole
    for step in {row["gradient_step"] for row in rows if row["mode"] == "train"}:
        rewards = [row["reward"] for row in rows if row["gradient_step"] == step]
        left = [row["reward"] for row in rows if row["gradient_step"] == step and row["rollout_id"] in whole]
        assert {min(rewards), max(rewards)} <= set(left)
    assert "still in flight" in book.table("turns")["text"].to_pylist()
    assert entry["answers"] == sum(row["trimmed"] is True for row in rows) > 0
    assert "what its rules keep takes" in Retention.words(entry)
    assert Retention(book).trim(1) == entry


def test_the_texts_of_tokens_go_with_the_text_of_their_turn(tmp_path: Path) -> None:
    with rollbook.init("p", "n", dir=tmp_path, sinks=[], keeper="import", rules=()) as run:
        for n in range(40):
            with run.rollouts.begin(task="t", group=str(n), policy_version=n) as rollout:
                rollout.turn("assistant", "a b", tokens=[1, 2], token_texts=["a", f" b{n}"])
            run.rollouts.trained([rollout.id], advantage=1.0, gradient_step=n)

    def gone() -> set[tuple[bool, bool]]:
        turns = _book(tmp_path).table("turns").to_pylist()
        return {(turn["text"] is None, turn["token_texts"] is None) for turn in turns}

    assert gone() == {(False, False)}
    Retention(_book(tmp_path)).trim(1)
    assert gone() == {(True, True)}


def test_show_a_rollout_and_run_json_say_what_was_trimmed(folder: Path) -> None:
    book = _book(folder)
    assert "trimmed" not in CliRunner().invoke(app, ["show", str(book.path)]).output
    assert CliRunner().invoke(app, ["trim", str(book.path), "--keep", "1kB"]).exit_code == 0
    book = _book(folder)
    assert book.info.retention["tokens"] > 0
    assert "rollouts without token lists" in CliRunner().invoke(app, ["show", str(book.path)]).output
    gone = book.rollout(book.rollouts("trimmed", limit=1)["rollout_id"][0].as_py())
    assert gone.trimmed == ["tokens", "text", "answer"]
    assert book.rollout(book.rollouts("mode = 'eval'", limit=1)["rollout_id"][0].as_py()).trimmed == []


def test_the_limit_of_a_run_is_applied_when_its_keeper_seals(folder: Path) -> None:
    book = _book(folder)
    limit = int(_size(book) * 0.85)
    with rollbook.init(
        "agents", "grpo", run_id=book.id, resume="must", dir=folder, sinks=[], rules=(), keeper="inline"
    ) as run:
        run.rollouts.keep(bytes=limit)
        run.rollouts.keep(bytes="much")
        assert run.bill()["drops"] == {"rollout_value": 1}
        run.log({"loss": 1.0})
    assert sealing_child.main([str(book.path), "--final"]) == 0
    book = _book(folder)
    assert book.info.retention["keep_bytes"] == limit
    assert _size(book) == book.info.retention["bytes"] <= limit
    assert Retention(book).trim_if_due() is None


@pytest.mark.long
@pytest.mark.parametrize("parts", [2, 0])
def test_a_kill_in_the_middle_leaves_a_readable_run_that_the_next_call_finishes(folder: Path, parts: int) -> None:
    book = _book(folder)
    rows = book.sql("select count(*), sum(reward) from rollouts").fetchall()
    done = subprocess.run([sys.executable, "-c", KILLED, str(folder), "1", str(parts)], check=False)
    assert done.returncode == -signal.SIGKILL
    book = _book(folder)
    assert book.sql("select count(*), sum(reward) from rollouts").fetchall() == rows
    for table, column in CELLS.items():
        said = book.sql(f"select bool_and(({column} is null) = (trimmed is true)) from {table}").fetchall()
        assert said == [(True,)]
    entry = Retention(book).trim(1)
    assert min(entry["tokens"], entry["text"], entry["answers"]) > 0
    assert _book(folder).problems() == []
    assert not list(folder.rglob("*.tmp")) or sealing_child.main([str(book.path), "--final"]) == 0
    assert not list(folder.rglob("*.tmp"))


def test_a_long_text_goes_when_no_other_row_needs_it(tmp_path: Path) -> None:
    long = "word " * 80_000
    with rollbook.init("p", "r", dir=tmp_path, sinks=[], keeper="inline", rules=()) as run:
        for step, text in enumerate([long, "a" * 400_000, long, "short"]):
            for reward in (0.0, 0.5, 1.0):
                with run.rollouts.begin(task="t", group=str(step), gradient_step=step) as rollout:
                    rollout.turn("assistant", text if reward == 0.5 or step == 2 else "short")
                    rollout.reward(tests=reward)
    book = _book(tmp_path)
    items = book.path / "data" / "items"
    assert len(list(items.iterdir())) == 2
    Retention(book).trim(1)
    assert [file.stat().st_size for file in items.iterdir()] == [len(long)]


def _book(folder: Path) -> Any:
    return rollbook.open(folder).one()


def _size(book: Any) -> int:
    return Trimming(str(book.path)).sealed_bytes(TABLES)
