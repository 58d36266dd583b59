"""What is said to resume a run does resume it, by whichever door its program came."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rollbook
from cases import some_of
from rollbook.book import Book
from rollbook.errors import RollbookWarning
from rollbook.schema.endings import how_to_resume, resume_line
from rollbook.schema.manifest import Attempt, RunJson, worked
from sealing_forks import python_path

DOORS = {
    "init": """
import rollbook
with rollbook.init("p", "n", sinks=[], rules=(), keeper="inline") as run:
    run.log({"a": 1.0}, env_step=1)
    work()
""",
    "SummaryWriter": """
from rollbook.adapters.tensorboard import SummaryWriter
writer = SummaryWriter("logs/n__1__1700000000", run_options={"keeper": "inline", "rules": ()})
writer.add_scalar("a", 1.0, 1)
work()
""",
    "wandb": """
import rollbook.wandb as wandb
wandb.init(project="p", name="n", config={"seed": 1})
wandb.log({"a": 1.0}, step=1)
work()
""",
}
WORK = "import os, sys\ndef work():\n    if sys.argv[1:] == ['fail now']: raise ValueError('why')\n"


def start(place: Path, words: list[str]) -> None:
    environment = {**os.environ, "PYTHONPATH": python_path(Path(rollbook.__file__).parent.parent)}
    subprocess.run(words, cwd=place, env=environment, timeout=600, check=False, capture_output=True)


@pytest.mark.parametrize("door", some_of(DOORS, lambda door: door != "SummaryWriter"))
def test_the_command_that_a_run_names_starts_its_next_attempt(door: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(WORK + DOORS[door])
    start(tmp_path, [sys.executable, "train.py", "fail now"])
    book = rollbook.open(tmp_path).one()
    assert book.status == "crashed"
    said = book.overview().resume
    assert said[0].startswith(f"cd {tmp_path} && ROLLBOOK_RESUME={book.id} ")
    assert len(said) == (2 if door == "init" else 1)
    assert resume_line(book.info) == said[-1]
    start(tmp_path.parent, ["sh", "-c", said[0].replace("'fail now'", "")])
    again = rollbook.open(tmp_path).one()  # one run, not two
    assert (again.id, len(again.attempts), again.status) == (book.id, 2, "finished")


def test_a_module_is_started_again_as_one(tmp_path: Path) -> None:
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").write_text("")
    (tmp_path / "pack" / "__main__.py").write_text(WORK + DOORS["init"])
    start(tmp_path, [sys.executable, "-m", "pack", "fail now"])
    book = rollbook.open(tmp_path).one()
    assert book.overview().resume[0].endswith(" -m pack 'fail now'")


def test_a_run_that_is_not_of_this_project_is_not_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROLLBOOK_RESUME", "nosuchid")
    with (
        pytest.warns(RollbookWarning, match="no run of that id"),
        rollbook.init("p", "n", dir=tmp_path, sinks=[], rules=(), keeper="inline") as run,
    ):
        assert not run.resumed


def test_it_counts_for_one_run_of_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    how: dict[str, Any] = {"dir": tmp_path, "sinks": [], "rules": (), "keeper": "inline"}
    with rollbook.init("p", "n", **how) as run:
        run.log({"a": 1.0})
    monkeypatch.setenv("ROLLBOOK_RESUME", run.id)
    with rollbook.init("p", "n", **how) as again:
        assert (again.id, again.attempt) == (run.id, 2)
    with rollbook.init("p", "n", **how) as other:
        assert other.id != run.id


@pytest.mark.parametrize(
    ("fields", "lines"),
    [
        (
            {"id": "a", "project": "p", "name": "n", "command": ["python", "t.py"], "cwd": "/w x"},
            ["cd '/w x' && ROLLBOOK_RESUME=a python t.py", "rollbook.init('p', 'n', run_id='a', resume=\"must\")"],
        ),
        ({"id": "a", "door": "wandb", "command": ["python", "t.py", "--key=***"]}, ["ROLLBOOK_RESUME=a"]),
        ({"id": "a", "door": "wandb"}, ["ROLLBOOK_RESUME=a"]),
        ({"id": "a", "made_by": "W&B offline run", "command": ["python", "t.py"]}, []),
    ],
)
def test_a_command_that_would_not_work_is_not_said(fields: dict[str, Any], lines: list[str]) -> None:
    assert how_to_resume(RunJson.of(fields)) == lines


def test_time_at_work_leaves_out_the_time_between_attempts() -> None:
    attempts = [Attempt(started=100.0, ended=160.0), Attempt(started=1_000.0, ended=1_030.0), Attempt(started=2_000.0)]
    assert worked(RunJson(attempts=attempts[:2])) == 90.0
    assert worked(RunJson(attempts=attempts)) == 90.0
    assert worked(RunJson(attempts=attempts), until=2_010.0) == 100.0
    assert worked(RunJson(attempts=[Attempt(started=5.0, ended=4.0)])) == 0.0


def test_a_listing_has_the_cause_and_the_time_at_work(tmp_path: Path) -> None:
    how: dict[str, Any] = {"dir": tmp_path, "sinks": [], "rules": (), "keeper": "inline"}
    for seed, error in enumerate((None, ValueError("a"), KeyboardInterrupt())):
        try:
            with rollbook.init("p", "n", seed=seed, **how) as run:
                run.log({"a": 1.0})
                if error is not None:
                    raise error
        except (ValueError, KeyboardInterrupt):
            pass
    rows = {row["seed"]: row for row in rollbook.open(tmp_path).rows()}
    assert [rows[seed]["cause"] for seed in range(3)] == [None, "ValueError", "KeyboardInterrupt"]
    assert all(0 <= row["worked"] < 600 for row in rows.values())
    assert [book.seed for book in rollbook.open(tmp_path).where("cause == 'ValueError'")] == [1]
    assert Book(run.folder).overview().worked == rows[2]["worked"]
