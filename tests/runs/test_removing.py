"""Runs go into a bin and come back from it, whatever happens in between; what is written never goes."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import rollbook
from cases import some_of
from forked_programs import forked
from rollbook.cli.app import app
from rollbook.errors import BadInput, RunNotFound
from rollbook.runs.removing import BIN, Bin
from rollbook.runs.space import in_bytes, space_of

pytestmark = pytest.mark.usefixtures("sealed")

HOW: dict[str, Any] = {"sinks": [], "rules": (), "keeper": "inline"}


def record(root: Path, name: str = "n", seed: int = 0) -> Path:
    with rollbook.init("p", name, dir=root, seed=seed, **HOW) as run:
        run.log({"a": 1.0}, env_step=seed)
        run.save_checkpoint({"w": [0.0] * 1_000})
    return run.folder


@pytest.fixture(scope="module")
def pattern(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("pattern") / "runs"
    for seed in range(3):
        record(root, seed=seed)
    return root


@pytest.fixture
def root(pattern: Path, tmp_path: Path) -> Path:
    shutil.copytree(pattern, tmp_path / "runs")
    return tmp_path / "runs"


def seeds(root: Path) -> list[int | None]:
    return sorted(book.seed for book in rollbook.open(root))  # type: ignore[type-var]


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_run_goes_into_the_bin_comes_back_as_it_was_and_goes_for_good(root: Path) -> None:
    runs = rollbook.open(root)
    one = runs.where("seed == 1").one()
    identity, before = one.id, content(one.path)
    chosen = runs.where("seed == 1")
    dry = chosen.remove()
    assert dry.dry_run
    assert len(dry.moved) == 1
    assert seeds(root) == [0, 1, 2]
    chosen.remove(dry_run=False)
    assert seeds(root) == [0, 2]
    (entry,) = runs.bin.entries()
    assert (entry.id, entry.project, entry.name, entry.home) == (identity, "p", "n", str(one.path))
    assert entry.removed >= int(runs.rows()[0]["created"])  # whole seconds, in the name of a folder
    assert runs.bin.restore(identity) == [str(one.path)]
    assert content(one.path) == before
    assert seeds(root) == [0, 1, 2]
    assert not (root / BIN).exists()
    rollbook.open(root).where("seed == 1").remove(dry_run=False)
    assert runs.bin.empty(older_than_seconds=3_600) == 0
    assert runs.bin.empty() == 1
    assert runs.bin.entries() == []
    assert not (root / BIN).exists()
    with pytest.raises(RunNotFound, match="rm --bin"):
        runs.bin.restore(identity)


def test_a_run_of_the_bin_does_not_take_the_place_of_another(root: Path) -> None:
    runs = rollbook.open(root).where("seed == 1")
    path = runs.one().path
    runs.remove(dry_run=False)
    path.mkdir()
    with pytest.raises(BadInput, match="Move that away"):
        runs.bin.restore("n")
    assert len(runs.bin.entries()) == 1


def test_what_a_process_writes_stays_whatever_is_asked(root: Path) -> None:
    with rollbook.init("p", "live", dir=root, **HOW) as run:
        answer = rollbook.open(root).where("name == 'live'").remove(dry_run=False, force=True)
        assert answer.moved == ()
        assert "a process writes it" in answer.refused[str(run.folder)]
        run.log({"a": 1.0})
    assert len(rollbook.open(root).where("name == 'live'").remove(dry_run=False).moved) == 1
    side = rollbook.attach(rollbook.open(root).where("seed == 0").one().path)  # of a finished run, too
    side.log({"b": 1.0})
    answer = rollbook.open(root).where("seed == 0").remove(dry_run=False)
    assert answer.moved == ()
    side.finish()


def test_what_another_host_may_write_goes_only_by_force(root: Path) -> None:
    book = rollbook.open(root).where("seed == 0").one()
    page = book.path / "run.json"
    about = json.loads(page.read_text())
    about["part"] = {"of": "/elsewhere", "home": "node2"}
    page.write_text(json.dumps(about))
    one = rollbook.open(root).where("seed == 0")
    assert "another host" in one.remove(dry_run=False).refused[str(book.path)]
    assert len(one.remove(dry_run=False, force=True).moved) == 1


KILL = """
import os, signal, sys
from rollbook.runs import removing
import rollbook
at, when, work, root = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
count = 0
def dying(function):
    def call(*arguments, **named):
        global count
        count += 1
        is_last = count == at
        if is_last and when == "before": os.kill(os.getpid(), signal.SIGKILL)
        try:
            return function(*arguments, **named)
        finally:
            if is_last: os.kill(os.getpid(), signal.SIGKILL)
    return call
for name in ("rename", "makedirs", "rmdir", "unlink"):
    setattr(os, name, dying(getattr(os, name)))
runs = rollbook.open(root)
if work == "remove": runs.where("seed == 1").remove(dry_run=False)
elif work == "restore": runs.bin.restore("n")
else: runs.bin.empty()
"""


@pytest.fixture(scope="module")
def dying() -> Iterator[Callable[..., int]]:
    """Has another process do a work of the bin, which is killed at a step of it: the status that it ends with."""
    with forked(KILL, "import duckdb, rollbook, rollbook.runs.removing, rollbook.book.book") as run:
        yield run


@pytest.mark.parametrize(("when", "first"), some_of([("after", 1), ("after", 2), ("before", 1), ("before", 2)], 1))
@pytest.mark.parametrize("work", ["remove", "restore", "empty"])
def test_killed_at_any_step_a_run_is_here_or_there_and_whole_or_gone(
    work: str, when: str, first: int, pattern: Path, tmp_path: Path, dying: Callable[..., int]
) -> None:
    """At every second step."""
    was = content(rollbook.open(pattern).where("seed == 1").one().path)
    ended, killed = False, 0
    for step in range(first, 9 if work == "empty" else 30, 2):
        root = tmp_path / str(step)
        shutil.copytree(pattern, root)
        if work != "remove":
            rollbook.open(root).where("seed == 1").remove(dry_run=False)
        code = dying(step, when, work, root)
        assert code in (0, -signal.SIGKILL)
        killed += code == -signal.SIGKILL
        here, binned = seeds(root), Bin(root).entries()
        assert {0, 2} <= {*here}
        if work != "empty":
            assert (1 in here) != bool(binned)
        if 1 not in here and binned:
            Bin(root).restore("n")
            here = seeds(root)
        if 1 in here:
            kept = content(rollbook.open(root).where("seed == 1").one().path)
            assert {name: data for name, data in kept.items() if not name.endswith("page.lock")} == was
        Bin(root).empty()
        assert not list((root / BIN).rglob("*.parquet")) if (root / BIN).exists() else True
        shutil.rmtree(root)
        if ended := code == 0:
            break
    assert ended or work == "empty"
    assert killed > 1


def test_what_takes_the_space_is_said_by_run_and_kind(root: Path) -> None:
    with rollbook.init("p", "big", dir=root, **HOW) as run:
        run.log({"a": 1.0})
    (run.folder / "ckpt").mkdir(exist_ok=True)
    (run.folder / "ckpt" / "last.ckpt").write_bytes(os.urandom(1_000_000))
    os.link(run.folder / "ckpt" / "last.ckpt", run.folder / "ckpt" / "best.ckpt")  # one file, two names
    (run.folder / "log").mkdir(exist_ok=True)
    (run.folder / "log" / "train.txt").write_bytes(os.urandom(20_000))
    answer = rollbook.open(root).disk()
    assert answer[0].name == "big"
    assert 1_000_000 <= answer[0].bytes["checkpoints"] < 1_100_000
    assert 20_000 <= answer[0].bytes["logs"] < 30_000
    assert answer.total == sum(sum(space_of(str(book.path)).values()) for book in rollbook.open(root))
    assert [row["total"] for row in answer.table()] == sorted((run.total for run in answer), reverse=True)
    assert answer.sentences()[0].startswith("4 runs: ")
    rollbook.open(root).where("name == 'big'").remove(dry_run=False)
    assert "1 run" in rollbook.open(root).disk().sentences()[-1]
    assert [in_bytes(n) for n in (0, 999, 1_500, 2.5e9, 3e13)] == ["0 B", "999 B", "1.5 kB", "2.5 GB", "30 TB"]


def test_the_command_says_first_and_does_then(root: Path) -> None:
    def ask(*words: str) -> Any:
        return CliRunner().invoke(app, ["rm", *words, "--dir", str(root)])

    assert ask().exit_code == 2, "no run is named"
    said = ask("--where", "seed == 1")
    assert "Nothing was changed" in said.output
    assert seeds(root) == [0, 1, 2]
    assert ask("--where", "seed == 1", "--yes").exit_code == 0
    assert seeds(root) == [0, 2]
    (row,) = json.loads(ask("--bin", "--json").stdout)["runs"]
    assert ask("--empty").exit_code == 0
    assert len(Bin(root).entries()) == 1, "that was a dry run"
    assert ask("--restore", row["id"]).exit_code == 0
    assert seeds(root) == [0, 1, 2]
    ask("--where", "seed == 1", "--yes")
    ask("--empty", "--yes")
    assert Bin(root).entries() == []
    listed = CliRunner().invoke(app, ["disk", "--dir", str(root)])
    assert "checkpoints" in listed.output
