"""The main job: a real agent learns, rollbook records it, and a stop in the middle leaves no trace in the curves."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click import Context
from click.testing import CliRunner

import rollbook
from cases import some_of
from rollbook.cli.app import app

pytest.importorskip("gymnasium")

import rollbook.demo.train as train_module
from rollbook.demo.agent import Agent
from rollbook.demo.loop import CONFIG, train
from rollbook.demo.train import main, several
from waiting import until

SMALL: dict[str, Any] = {
    **CONFIG,
    "env_steps": 1024,
    "n_envs": 4,
    "rollout_steps": 32,
    "checkpoint_every_updates": 2,
    "evaluation_episodes": 2,
    "agent": {**CONFIG["agent"], "hidden": 8, "batch_size": 64, "passes": 2},
}
UPDATE = ["loss/policy", "loss/value", "entropy", "kl", "explained_variance", "learning_rate"]


def small_run(folder: Path, **arguments: Any) -> rollbook.Run:
    """A run of the demo that takes a second."""
    return rollbook.init("cartpole", "ppo", dir=folder, sinks=[], keeper="inline", **arguments)


def curves(folder: Path) -> dict[str, list[Any]]:
    """What the book says about learning, episodes and evaluations: all of it but times and names."""
    book = rollbook.open(folder).one("cartpole/ppo")
    updates = book.metrics([f"update/{key}" for key in UPDATE], x="gradient_step").to_pylist()
    tests = book.metrics(["test/return"], x="env_step").to_pylist()
    # Those in flight at a checkpoint are cut there; whether their beginning is kept is no matter of learning.
    episodes = [row for row in book.episodes().to_pylist() if row["complete"]]
    return {
        "updates": [
            (r["env_step"], r["gradient_step"], r["epoch"], *(r[f"update/{k}"] for k in UPDATE)) for r in updates
        ],
        "tests": [(r["env_step"], r["test/return"]) for r in tests],
        "episodes": sorted((e["scope"], e["env_step"], e["env_index"], e["return"], e["length"]) for e in episodes),
    }


@pytest.mark.filterwarnings("ignore:restore:rollbook.errors.RollbookWarning")  # the first stop is before any checkpoint
@pytest.mark.parametrize("stops", some_of([((1, 3, 8),), ((5,),)], 1, ids=["three times", "once"]))
def test_a_run_that_was_stopped_and_resumed_reads_like_one_that_never_was(
    stops: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C in the middle of an update, also before the first checkpoint; the curves are equal to the last bit."""
    with small_run(tmp_path / "whole", seed=5, config=SMALL) as run:
        train(run)
    original = Agent.update
    updates = 0

    def interrupted(self: Agent, *args: Any, **kwargs: Any) -> dict[str, float]:
        nonlocal updates
        updates += 1
        if updates in stops:
            raise KeyboardInterrupt
        return original(self, *args, **kwargs)

    monkeypatch.setattr(Agent, "update", interrupted)
    with pytest.raises(KeyboardInterrupt), small_run(tmp_path / "parts", seed=5, config=SMALL) as run:
        train(run)
    assert rollbook.open(tmp_path / "parts").one("cartpole/ppo").status == "killed"
    for _ in stops[1:]:
        with pytest.raises(KeyboardInterrupt), small_run(tmp_path / "parts", resume="allow") as run:
            train(run)
    with small_run(tmp_path / "parts", resume="allow") as run:
        assert run.attempt == len(stops) + 1
        train(run)

    whole, parts = curves(tmp_path / "whole"), curves(tmp_path / "parts")
    assert len(whole["updates"]) == 8
    assert parts["updates"] == whole["updates"]
    assert parts["tests"] == whole["tests"]
    assert parts["episodes"] == whole["episodes"]
    everything = rollbook.open(tmp_path / "parts").one("cartpole/ppo").metrics(["update/entropy"], attempts="all")
    assert everything.num_rows == updates - len(stops)


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts `rollbook …` in a process of its own; none outlives the test."""
    started: list[subprocess.Popen[str]] = []
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ROLLBOOK")}
    code = "from rollbook.cli import main; main()"

    def start(*arguments: str, **kwargs: Any) -> subprocess.Popen[str]:
        words = [sys.executable, "-c", code, *arguments]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **kwargs}
        started.append(subprocess.Popen(words, cwd=tmp_path, env=environment, **pipes))
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
            process.communicate()


Command = Callable[..., "subprocess.Popen[str]"]


@pytest.mark.long
def test_the_demo_solves_cartpole_and_says_what_to_do_next(command: Command, tmp_path: Path) -> None:
    done = command("demo", "--seed", "1")
    out, err = done.communicate(timeout=600)
    assert done.returncode == 0, err
    book = rollbook.open(tmp_path / "runs").one("cartpole/ppo", seed=1)
    assert book.status == "finished"
    last = book.metrics(["test/return"], x="env_step").to_pylist()[-1]
    assert last["test/return"] >= 475
    assert last["env_step"] >= CONFIG["env_steps"]
    assert "solved" in out
    assert re.search(r"What to try next:(\n +.*\brollbook'? \w.*){3}", out)
    assert {"collect", "update", "evaluate", "checkpoint"} <= set(book.timings().column("name").to_pylist())
    checkpoints = {row["checkpoint_id"]: row for row in book.checkpoints(everything=True).to_pylist()}
    assert max(row["score"] for row in checkpoints.values()) == 500
    evaluated = [e for e in book.episodes().to_pylist() if e["scope"] == "test"]
    assert len(evaluated) == 20 * len(checkpoints)


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="Windows sends Ctrl-C to whole consoles")
def test_ctrl_c_leaves_a_killed_run_that_resume_finishes(command: Command, tmp_path: Path) -> None:
    first = command("demo", start_new_session=True)
    until(lambda: first.poll() is not None or list(tmp_path.glob("runs/cartpole/ppo-*/ckpt/iteration_*")))
    assert first.poll() is None, first.communicate()
    first.send_signal(signal.SIGINT)
    out, err = first.communicate(timeout=600)
    assert first.returncode == 130, err
    assert "demo --resume" in out
    book = rollbook.open(tmp_path / "runs").one("cartpole/ppo")
    assert book.status == "killed"
    reached = max(r["env_step"] for r in book.metrics(["update/entropy"], x="env_step").to_pylist())

    second = command("demo", "--resume", "--steps", str(reached + 2_048))
    out, err = second.communicate(timeout=600)
    assert second.returncode == 0, err
    book = rollbook.open(tmp_path / "runs").one("cartpole/ppo")
    assert (book.status, len(book.attempts)) == ("finished", 2)
    steps = [row["env_step"] for row in book.metrics(["update/entropy"], x=None).to_pylist()]
    assert steps == sorted(set(steps)), "the curve goes back"
    assert steps[0] == 1024
    assert steps[-1] >= reached + 2_048
    assert re.search(r"What to try next:(\n +.*\brollbook'? \w.*){3}", out)
    assert {"collect", "update", "evaluate", "checkpoint"} <= set(book.timings().column("name").to_pylist())


def test_resume_without_a_run_says_how_to_start_one(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="rollbook demo"):
        main(resume="", dir=tmp_path)


def commands_in(text: str) -> list[list[str]]:
    """The commands that a text proposes, as a shell takes them apart."""
    return [shlex.split(line) for line in text.splitlines() if line.startswith("  ")]


NAMES = ("rollbook", "with spaces", "\u00fc \u00e4", "it's", 'a;b $HOME `c` "d"')


@pytest.mark.skipif(os.name == "nt", reason="a script for sh")
@pytest.mark.parametrize("linked", [False, True], ids=["", "behind a link"])
@pytest.mark.parametrize("name", NAMES)
def test_what_the_demo_proposes_can_be_pasted_wherever_the_checkout_and_the_runs_lie(
    name: str, linked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command is given to a shell, and the program gets the words that are meant."""
    checkout = tmp_path / name
    checkout.mkdir()
    if linked:
        checkout.rename(tmp_path / "real")
        checkout.symlink_to(tmp_path / "real")
    program = checkout / ".venv" / "bin" / "rollbook"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\nprintf "%s\\0" "$@"\n')
    program.chmod(0o755)
    runs = checkout / "runs of mine"
    monkeypatch.setattr(sys, "executable", str(program.with_name("python")))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    place = f" --dir {shlex.quote(str(runs))}"
    for here in (tmp_path, checkout):
        monkeypatch.chdir(here)
        for text in (train_module._what_next(place), train_module._what_next_of_several(2, 9, place)):
            for line in text.splitlines()[1:]:
                done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=600, check=True)
                words = done.stdout.split("\0")[:-1]
                assert words == shlex.split(line)[1:]
                assert words[0] in app.list_commands(Context(app))
                assert words[-2:] == ["--dir", str(runs)]


def test_no_test_takes_a_printed_line_apart_at_the_name_of_its_folder() -> None:
    """A checkout is called rollbook where `git clone` made it, so a path may hold the word anywhere."""
    tests = Path(__file__).resolve().parents[1]
    pattern = re.compile(r"""\.(r?split|r?partition|index|find)\(\s*["']/?rollbook["']""")
    found = [path.name for path in tests.rglob("*.py") if pattern.search(path.read_text("utf-8"))]
    assert found == []


def test_several_seeds_train_a_run_each_and_the_commands_that_are_named_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("rollbook.demo.train.CONFIG", SMALL)
    monkeypatch.chdir(tmp_path)
    assert several(2, steps=512, dir="some runs") == 0
    runs = rollbook.open("some runs")
    assert sorted(book.seed for book in runs) == [0, 1]
    assert {book.status for book in runs} == {"finished"}
    named = commands_in(capsys.readouterr().out)
    assert {words[1] for words in named} >= {"ls", "plot", "compare", "report"}
    for program, *words in named:
        assert Path(program).name == "rollbook"
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, (words, done.output)
        assert "one group" not in done.output, "a comparison of nothing was proposed"
    assert Path("curves.png").read_bytes().startswith(b"\x89PNG")
    assert "test/return" in Path("report.html").read_text()
