"""A run of one row, one of each thing: what is printed of it says "1 row", never "1 rows"."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

import rollbook
from rollbook.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
ODD = re.compile(
    r"(?<![\d.,/%=:-])1 (?:runs|rows|files|pieces|parts|keys|seeds|episodes|checkpoints|problems|segments|alerts|hosts|"
    r"lines|differences|samples|rollouts|turns|folders|writers|attempts|columns|bytes)\b"
)
COMMANDS = (
    "ls", "show last", "show last --all", "verify last", "seal last", "repair last", "check .", "plot one --key loss",
    "diff last", "report last -o r.html", "samples last", "checkpoints last", "rollouts last", "export last -o x.csv",
    "push last stored", "pull stored --dir back", "catalogue stored", "ls stored", "tail last", "forward last --to csv",
    "sql last 'select * from metrics'", "show last --json", "ls --where \"name == 'nothing'\"",
    "compare one --metric train/return --by name",
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    with rollbook.init("one", "a", dir="runs", keeper="inline", sinks=[]) as run:
        run.log({"loss": 1.0, "train/return": 2.0}, env_step=1)
        run.log_samples(["an item"], reward=[1.0], env_step=1)
        run.save_checkpoint({"weights": [1.0]}, score=1.0)
        with run.rollouts.begin(task="a task") as rollout:
            rollout.turn("assistant", "an answer")
    return Path(run.folder)


def test_what_is_printed_of_one_thing_is_in_the_singular(folder: Path) -> None:
    said = []
    for words in COMMANDS:
        answer = CliRunner().invoke(app, shlex.split(words))
        assert answer.output, words
        said.append(f"$ {words}\n{answer.output}")
    chosen = rollbook.open("runs")
    said += [repr(chosen), chosen._repr_html_(), repr(chosen.map(str)), repr(rollbook.open(folder))]
    assert [line for text in said for line in text.splitlines() if ODD.search(line)] == []


def test_no_test_or_page_expects_it_otherwise() -> None:
    files = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    lines = ((path, line) for path in files if path != Path(__file__) for line in path.read_text("utf-8").splitlines())
    assert [f"{path}: {line}" for path, line in lines if ODD.search(line)] == []
