"""rollbook-core: everything is recorded with Python and msgspec alone, and a full rollbook elsewhere reads it all."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rollbook
from core_alone import core_alone
from rollbook.book.repair.doctor import repair, verify
from waiting import PATIENCE

SOURCES = Path(rollbook.__file__).parent

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")

TRAINING = """
import json, os, signal, sys
import rollbook
from rollbook.values import Histogram

root, attempt, mode = sys.argv[1], int(sys.argv[2]), sys.argv[3]
run = rollbook.init("p", "n", dir=root, seed=3, config={"lr": 1e-3, "net": {"layers": [64, 64]}}, keeper=mode,
                    sinks=["jsonl", "csv", "text"], resume="must" if attempt > 1 else "never")
start = 0
if attempt == 2:
    restored = run.restore()
    start = restored.state["step"]
    assert run.clocks_now()["env_step"] == 29 and restored.state["weights"] == [1.0, 2.5], restored.state
run.log_many({"many": [1.0, 2.0, 3.0]}, env_step=[start, start + 1, start + 2])
run.log({"spread": Histogram([0.0, 1.0, 2.0], [3, 4])}, env_step=start)
run.log_histogram("weights", [0.5, 1.5, 2.5], env_step=start)
run.log_text("prompt", "hello", env_step=start)
run.note("a remark")
run.log_samples([{"prompt": "a"}, {"prompt": "b"}, {"prompt": "a"}], reward=[1.0, 0.0, 0.5], env_step=start)
run.record("mine", {"cells": [1, 2, 3]}, n=3, env_step=start)
rollout = run.rollouts.begin(task_id="t", group="g")
rollout.turn("assistant", "text", tokens=3)
rollout.reward(exact=1.0)
rollout.stop("length")
rollout.end()
run.config["late"] = attempt
for step in range(start, start + 40):
    run.log({"train/loss": 1.0 / (step + 1), "note": f"at {step}", "done": step % 7 == 0}, env_step=step)
    run.store({"kl": step / 8})
    with run.timer("collect"), run.timer("act"):
        pass
    if step % 10 == 9:
        run.dump(env_step=step)
        run.log_episode(env_step=step, **{"return": float(step), "length": 10})
        run.scope("eval").log({"return": step * 2.0}, env_step=step)
        run.summary["best"] = step
    if step == 29:
        run.save_checkpoint({"step": 30, "weights": [1.0, 2.5]}, score=3.0, env_step=step)
if attempt == 1:
    os.kill(os.getpid(), signal.SIGKILL)
if attempt == 2:
    run.rewind(env_step=60)
    run.log({"train/loss": 0.5}, env_step=61)
run.finish()
beyond = {name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names)
print(json.dumps({"bill": run.bill(), "loaded": sorted(beyond)}, default=str))
"""
TABLES = ("metrics", "episodes", "samples", "timings", "histograms", "checkpoints", "text", "mine", "rollouts", "turns")
OF_ITS_OWN = {"time", "writer", "lane", "seq", "path", "checkpoint_id", "positions", "state", "seconds", "item_path"}
"""Columns that differ between two runs of one program."""


def _train(root: Path, attempt: int, mode: str, environment: dict[str, str]) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", TRAINING, str(root), str(attempt), mode]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _rows(book: rollbook.Book, table: str, attempts: Any) -> list[str]:
    """The rows of a table in some order, without empty cells and what differs between two runs.

    Nor what the keeper logs of itself: when it does so depends on the machine.
    """

    def is_shared(name: str) -> bool:
        return name not in OF_ITS_OWN and not name.endswith("_id") and "seconds" not in name

    every = book.table(table, attempts).to_pylist()
    rows = [row for row in every if not any(k.startswith("rollbook/") and v is not None for k, v in row.items())]
    return sorted(repr(sorted((k, v) for k, v in row.items() if v is not None and is_shared(k))) for row in rows)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The variables for a process with rollbook-core alone."""
    return core_alone(tmp_path_factory.mktemp("core") / "alone")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> tuple[Path, Path, dict[str, Any]]:
    """(runs of rollbook-core, runs of rollbook, what the former reported): the same training, killed once, resumed."""
    alone, full = tmp_path_factory.mktemp("alone"), tmp_path_factory.mktemp("full")
    places = {alone: environment, full: dict(os.environ)}
    for attempt, mode in ((1, "process"), (2, "inline")):
        started = {root: _train(root, attempt, mode, variables) for root, variables in places.items()}
        said = {root: process.communicate(timeout=PATIENCE) for root, process in started.items()}
        for root, process in started.items():
            assert process.returncode == (-signal.SIGKILL if attempt == 1 else 0), said[root][1]
    return alone, full, json.loads(said[alone][0].splitlines()[-1])


def test_a_process_with_rollbook_core_loads_msgspec_and_nothing_else(
    trained: tuple[Path, Path, dict[str, Any]],
) -> None:
    assert {*trained[2]["loaded"]} - {"__main__", "_distutils_hack", "sitecustomize"} == {"msgspec", "rollbook"}


@pytest.mark.parametrize("attempts", ["effective", "all"])
def test_every_row_of_rollbook_core_is_read_like_that_of_rollbook(
    trained: tuple[Path, Path, dict[str, Any]], attempts: str
) -> None:
    alone, full = (rollbook.open(root).one() for root in trained[:2])
    for table in TABLES:
        rows = _rows(alone, table, attempts)
        assert rows, table
        assert rows == _rows(full, table, attempts), table
    assert (alone.config, alone.seed, alone.status) == (full.config, full.seed, full.status)
    assert alone.summary["best"] == full.summary["best"] == 69
    assert alone.checkpoint("best").clocks == full.checkpoint("best").clocks


def test_rollbook_core_states_once_that_rows_stay_in_the_journal_and_fails_at_nothing(
    trained: tuple[Path, Path, dict[str, Any]],
) -> None:
    root, _, report = trained
    book = rollbook.open(root).one()
    (problem,) = book.problems()
    assert "rollbook repair" in problem
    assert report["bill"]["keeper"]["troubles"] == {"seal": problem.partition(": ")[2]}
    assert report["bill"]["drops"] == {}
    assert "sealing failed" not in (book.path / "data/keeper/log").read_text() + str(report)
    assert not list(book.path.rglob("*.parquet"))


def test_a_run_of_rollbook_core_is_sealed_and_continued_elsewhere_and_stays_one_run(
    trained: tuple[Path, Path, dict[str, Any]], environment: dict[str, str], tmp_path: Path
) -> None:
    import shutil

    root = tmp_path / "copied"
    shutil.copytree(trained[0], root)
    before = {table: _rows(rollbook.open(root).one(), table, "all") for table in TABLES}
    (run_folder,) = (book.path for book in rollbook.open(root))
    assert repair(run_folder)
    book = rollbook.open(root).one()
    assert book.problems() == verify(run_folder) == []
    assert {table: _rows(book, table, "all") for table in TABLES} == before

    with rollbook.init("p", "n", dir=root, resume="must", sinks=[], rules=(), keeper="inline") as run:
        run.log({"train/loss": 0.25}, env_step=62)
    again = subprocess.run(
        [sys.executable, "-c", LOG_ON, str(root)], env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert again.returncode == 0, again.stderr
    assert re.search(r"a full rollbook sealed part of it.*pip install 'rollbook-core\[full\]'", again.stdout)
    book = rollbook.open(root).one()
    assert [attempt["n"] for attempt in book.attempts] == [1, 2, 3, 4, 5]
    assert book.metrics(["train/loss"], start=61, x="env_step")["train/loss"].to_pylist() == [0.5, 0.25, 0.125]


LOG_ON = """
import sys, rollbook
with rollbook.init("p", "n", dir=sys.argv[1], resume="must", sinks=[], keeper="inline") as run:
    try:
        run.restore()
    except rollbook.errors.MissingExtra as err:
        print(err)
    run.log({"train/loss": 0.125}, env_step=63)
"""
REFUSALS = """
import importlib, sys, rollbook
from rollbook.errors import MissingExtra
asked = {name: lambda name=name: getattr(rollbook, name) for name in ("open", "Book", "RunSet")}
asked |= {name: lambda name=name: importlib.import_module(name) for name in sys.argv[1:]}
for name, ask in asked.items():
    try:
        ask()
    except MissingExtra as err:
        print(name, "|", err)
    except ImportError as err:
        print(name, "raised", type(err).__name__, err)
    else:
        print(name, "works")
"""


def test_what_needs_more_than_rollbook_core_says_what_was_asked_and_how_to_install_it(
    environment: dict[str, str],
) -> None:
    listing = [path for path in sorted(SOURCES.rglob("*.py")) if "__all__ = " in path.read_text("utf-8")]
    dotted = [".".join(path.relative_to(SOURCES.parent).with_suffix("").parts) for path in listing]
    names = [name.removesuffix(".__init__") for name in dotted]
    modules = [name for name in names if "." in name and not re.search(r"\.cli\.|\._", name)]
    command = [sys.executable, "-c", REFUSALS, *modules]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=True)
    lines = answer.stdout.splitlines()
    assert len(lines) == len(modules) + 3
    refused = [line.partition(" | ")[0] for line in lines if " | " in line]
    assert [line for line in lines if "raised" in line] == []
    for line in lines:
        assert " | " not in line or "rollbook-core" in line, line
    reading = ("compare", "demo", "formats.datasets", "plots", "runs", "server", "stats")
    expected = {name for name in modules if name.removeprefix("rollbook.").startswith(reading)}
    assert {"open", "Book", "RunSet", *expected} - {*refused} == set()
    adapters = {name for name in modules if name.startswith("rollbook.adapters") and name not in refused}
    assert {f"rollbook.adapters.{name}" for name in ("sb3", "tensorboard", "wandb", "rllib", "tianshou")} <= adapters


def test_the_command_of_rollbook_core_says_that_it_needs_rollbook(environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "rollbook", "ls"]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    assert (answer.returncode, answer.stdout) == (1, "")
    (line,) = answer.stderr.splitlines()
    assert re.search(
        rf"the command line of rollbook {rollbook.__version__} needs .*pip install 'rollbook-core\[full\]'\.", line
    )
