"""Several folders at once: `rollbook.open([a, b])` and `rollbook ls a b` are the runs of all, each once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import rollbook
from rollbook.cli.app import app
from rollbook.errors import BadInput, RunNotFound


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """`here` has a run of rollbook and one of another tool, `there` one of another tool, `there/inner` another."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    with rollbook.init("own", "ppo", dir=tmp_path / "here", sinks=[], keeper="import", config={"lr": 1}) as run:
        run.log({"train/return": 1.0}, env_step=1)
    for place, seed in (("here/dqn", 1), ("there/dqn", 2), ("there/inner/dqn", 3)):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "progress.csv").write_text("env_step,train/return\n" + f"1,{seed}\n2,{seed}\n")
        (tmp_path / place / "config.json").write_text(f'{{"seed": {seed}}}')
    return ["here", "there"]


def listed(*words: str) -> list[dict[str, Any]]:
    done = CliRunner().invoke(app, ["ls", *words, "--json"])
    assert done.exit_code == 0, done.output
    return list(json.loads(done.stdout))


def paths(rows: Any) -> list[str]:
    return sorted(str(row["path"]) for row in rows)


def test_a_list_of_folders_has_the_runs_of_all(folders: list[str]) -> None:
    runs = rollbook.open(folders)
    assert sorted((book.name, book.seed) for book in runs) == [("dqn", 1), ("dqn", 2), ("inner-dqn", 3), ("ppo", None)]
    assert paths(runs.rows()) == sorted(path for one in folders for path in paths(rollbook.open(one).rows()))
    assert paths(rollbook.open([Path(folder) for folder in folders]).rows()) == paths(runs.rows())
    assert paths(listed(*folders)) == paths(runs.rows())


@pytest.mark.parametrize("asked", [["there", "there/inner"], ["there/inner", "there"], ["there", "there/../there"]])
def test_a_run_that_two_of_the_folders_have_is_there_once(folders: list[str], asked: list[str]) -> None:
    assert sorted(book.seed for book in rollbook.open(asked)) == [2, 3]
    assert sorted(row["seed"] for row in listed(*asked)) == [2, 3]


@pytest.mark.parametrize(
    ("where", "seeds"), [("seed >= 2", [2, 3]), ("config.lr = 1", [None]), ("name = 'dqn'", [1, 2])]
)
def test_a_condition_is_asked_of_all_runs_together(folders: list[str], where: str, seeds: list[int | None]) -> None:
    runs = rollbook.open(folders, where=where)
    assert sorted((book.seed for book in runs), key=str) == seeds
    assert paths(listed(*folders, "--where", where)) == paths(runs.rows())
    assert len(runs) + runs.unread <= 4


def test_a_question_about_several_folders_has_one_answer_by_both_doors(folders: list[str]) -> None:
    answer = rollbook.open(folders).compare("train/return", by="path")
    done = CliRunner().invoke(app, ["compare", *folders, "-m", "train/return", "--by", "path", "--json"])
    assert done.exit_code == 0, done.output
    assert {group["group"]: group["iqm"] for group in json.loads(done.stdout)["groups"]} == {
        group.label: float(group.scores_RT.mean()) for group in answer.groups
    }


def test_names_and_folders_may_be_mixed(folders: list[str]) -> None:
    assert sorted(str(row["seed"]) for row in listed("ppo", "there/", "--dir", "here")) == ["2", "3", "None"]


def test_what_is_not_there_is_named(folders: list[str]) -> None:
    with pytest.raises(RunNotFound, match="nowhere"):
        rollbook.open([*folders, "nowhere"])
    with pytest.raises(BadInput, match="names no folder"):
        rollbook.open([])
    with pytest.raises(RunNotFound, match="in the folders that were opened"):
        rollbook.open(folders).one("gone")
    assert CliRunner().invoke(app, ["ls", *folders, "nowhere/"]).exit_code == 1
