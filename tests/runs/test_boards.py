"""Boards from code: what the page opens with, and how charts are named."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

import rollbook
from rollbook.cli.app import app
from rollbook.errors import BadInput, RollbookError
from rollbook.runs.boards import Boards, chart_name, of_programs


@pytest.mark.parametrize(
    ("chart", "name"),
    [
        ("test/return", "test/return"),
        (" my-key/a.b ", "my-key/a.b"),
        ('"eval reward"', "eval reward"),
        (["loss/policy", "loss/value"], '="loss/policy", "loss/value"'),
        ("loss/policy, loss/value", '="loss/policy", "loss/value"'),
        ("train/return - test/return", '="train/return" - "test/return"'),
        ('="train/return" - "test/return"', '="train/return" - "test/return"'),
        ("(a + b) / 2", '=("a" + "b") / 2'),
        ("log10(update/kl) ^ 2", '=log10("update/kl") ^ 2'),
        ("- a * (- b)", '=-"a" * (-"b")'),
        ('"a , b" + 1e-3', '="a , b" + 1e-3'),
        ("log", "log"),
    ],
)
def test_a_chart_is_named_as_the_page_names_it(chart: str | list[str], name: str) -> None:
    assert chart_name(chart) == name


@pytest.mark.parametrize("chart", ["", "a b", "a -", "+ a", "(a", "a)", "1 + 2", "sqrt(a, b)", 'a + "b', "a (b)", []])
def test_what_is_no_chart_is_refused_with_what_to_write(chart: str | list[str]) -> None:
    with pytest.raises(BadInput, match=r"Name a key \(\"test/return\"\), several, or an expression"):
        chart_name(chart)


def test_boards_are_kept_beside_the_runs_and_one_of_them_is_first(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    with rollbook.init("p", "ppo", dir=folder, sinks=[], keeper="inline", rules=()) as run:
        run.log({"loss": 1.0})
    boards = rollbook.open(folder).boards
    assert (boards.entries(), boards.first()) == ([], None)
    boards.save("mine", ["loss"], x="time", smoothing=0.6, log=True, where="status = 'finished'", first=True)
    boards.save("All", "loss", group_by=["config.lr", "seed"], columns=["seed", "last:loss"], sort="-last:loss")
    assert [board.name for board in boards.entries()] == ["All", "mine"]
    assert [board.state for board in boards.entries()] == [
        {"pin": "loss", "g": "config.lr,seed", "cols": "seed~last:loss", "sort": "-last:loss"},
        {"pin": "loss", "x": "time", "s": "0.6", "ylog": "1", "f": "status = 'finished'"},
    ]
    boards.save("mine", "loss - 1")  # replaced, and still the first
    assert boards.first() == Boards(folder).entries()[1]
    boards.save("All", "loss", first=True)
    assert [board.name for board in boards.entries() if board.first] == ["All"]
    boards.remove("All")
    assert boards.first() is None
    with pytest.raises(BadInput, match=r"no board 'All'.*mine"):
        boards.remove("All")
    assert Boards(run.folder).path == str(folder / "p" / ".rollbook" / "boards.json")
    assert len(rollbook.open(folder)) == 1, "a folder of boards is no run"


def test_boards_that_are_saved_at_once_are_all_there(tmp_path: Path) -> None:
    threads = [threading.Thread(target=Boards(tmp_path).save, args=(f"b{n}", "loss")) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(board.name for board in Boards(tmp_path).entries()) == sorted(f"b{n}" for n in range(12))


def test_a_file_that_is_no_list_of_boards_is_kept_and_named(tmp_path: Path) -> None:
    boards = Boards(tmp_path)
    boards.save("mine", "loss", first=True)
    Path(boards.path).write_text("{")
    with pytest.raises(RollbookError, match=r"boards\.json cannot be read"):
        boards.save("other", "loss")
    assert Path(boards.path).read_text() == "{"
    assert boards.first() is None, "the page opens all the same"


def test_the_command_saves_lists_and_removes_boards(tmp_path: Path) -> None:
    def call(*words: str) -> str:
        done = CliRunner().invoke(app, ["board", *words, "--dir", str(tmp_path)], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.stdout

    call("mine", "test/return", "train/return - test/return", "--first", "--smoothing", "0.5")
    pin = 'test/return~="train/return" - "test/return"'
    assert json.loads(call("--json")) == [{"name": "mine", "first": True, "state": {"pin": pin, "s": "0.5"}}]
    assert "mine" in call()
    call("mine", "--remove")
    assert call() == ""


def test_charts_that_programs_put_together_are_boards_whatever_stands_in_their_runs() -> None:
    known = ["loss/policy", "loss/value", "kl"]
    both = {"Losses": [["loss/policy", "loss/value"]]}
    told = of_programs([both, both, {"Losses": [["kl"]]}, {"by pattern": [["loss/.*"]]}], known)
    pins = {board.name: board.state["pin"] for board in told}
    assert pins == {
        "by pattern": '="loss/policy", "loss/value"',
        "Losses": '="loss/policy", "loss/value"~kl',
    }
    assert not any(board.saved for board in told)
    hostile: list[object] = [None, 1, {"a": 1, "b": [1, None, [], [3]], "": [["kl"]], "\n": [["kl"]], "c": [["((("]]}]
    assert [(board.name, board.state["pin"]) for board in of_programs(hostile, known)] == [("c", "(((")]
