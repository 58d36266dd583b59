"""Runs, trainers and keepers for the tests of the keeper."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rollbook
from rollbook.journal.writer import Writer
from rollbook.keeper.main import Keeper
from rollbook.keeper.own_files import state_path
from rollbook.schema.clocks import STANDARD
from rollbook.system.files import read_json
from rollbook.system.liveness import is_alive
from waiting import PATIENCE, until

SOURCE = str(Path(rollbook.__file__).parent.parent)
SEAL_NOTHING = (sys.executable, "-I", "-S", "-c", "pass")


class FakeRun:
    """A run folder with one main writer, without the training process's face."""

    def __init__(self, folder: Path, *, main: Writer | None = None, **plan: Any) -> None:
        self.folder = folder
        (folder / "data" / "keeper").mkdir(parents=True, exist_ok=True)
        self.writers: list[Writer] = []
        self.writer = main if main is not None else self.add_writer(main=True)
        self.plan(**plan)
        self.write_info()

    def add_writer(self, **options: Any) -> Writer:
        writer = Writer(str(self.folder), **options)
        writer.open()
        self.writers.append(writer)
        return writer

    def write_info(self, **more: Any) -> None:
        attempt = {"n": self.writer.attempt, "writer": self.writer.id, "status": "running", "ended": None}
        info = {
            "format": 1, "id": "abc", "project": "p", "name": "n", "status": "running", "ended": None,
            "clocks": list(STANDARD), "attempts": [attempt], **more,
        }  # fmt: skip
        (self.folder / "run.json").write_text(json.dumps(info))

    def plan(self, sinks: list[Any] | None = None, host_seconds: float | None = None, **more: Any) -> None:
        text = json.dumps({"sinks": sinks or [], "host_seconds": host_seconds, **more})
        (self.folder / "data" / "keeper" / "plan.json").write_text(text)

    def log(self, writer: Writer | None = None) -> Callable[..., None]:
        writer = writer or self.writer
        return writer.make_log(writer.channel())

    def lines(self) -> list[dict[str, Any]]:
        """What the jsonl sink has written."""
        path = self.folder / "log" / "jsonl" / "metrics.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def info(self) -> dict[str, Any]:
        return json.loads((self.folder / "run.json").read_text())  # type: ignore[no-any-return]

    def keeper_file(self, name: str) -> dict[str, Any]:
        return read_json(str(self.folder / "data" / "keeper" / name))

    def state(self) -> dict[str, Any]:
        return read_json(state_path(str(self.folder)))

    def keeper_log(self) -> str:
        path = self.folder / "data" / "keeper" / "log"
        return path.read_text() if path.exists() else ""


class Clock:
    """Time in the test's hands."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def eventually() -> Callable[..., Any]:
    return until


@pytest.fixture
def make_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., FakeRun]]:
    """Makes runs; ends their keepers afterwards, which no other test shares."""
    monkeypatch.setenv("ROLLBOOK_RUNTIME_DIR", str(tmp_path / "runtime"))
    made: list[FakeRun] = []

    def make(name: str = "run", **options: Any) -> FakeRun:
        run = FakeRun(tmp_path / name, **options)
        made.append(run)
        return run

    yield make
    for run in made:
        for writer in run.writers:
            writer.close()
        end_keeper(run.folder)


@pytest.fixture
def make_keeper() -> Iterator[Callable[..., Keeper]]:
    """Keepers in this process, which seal nothing."""
    made: list[Keeper] = []

    def make(run: FakeRun, **options: Any) -> Keeper:
        keeper = Keeper(run.folder, **{"seal_command": SEAL_NOTHING, "sinks_in_turn": True, **options})
        made.append(keeper)
        return keeper

    yield make
    for keeper in made:
        if keeper._thread is not None:  # it does so itself, at its next step
            keeper.hurry(0.0)
            keeper._wake.set()
            keeper._thread.join(PATIENCE)
        keeper.leave()


@pytest.fixture
def python() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a script in an interpreter of its own that can import rollbook."""
    made: list[subprocess.Popen[str]] = []

    def start(script: str, *arguments: object, **options: Any) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", script, *map(str, arguments)]
        environment = {**os.environ, "PYTHONPATH": SOURCE}
        options = {"stdout": subprocess.PIPE, "text": True, "env": environment, **options}
        process = subprocess.Popen(command, **options)
        made.append(process)
        return process

    yield start
    for process in made:
        if process.poll() is None:
            process.kill()
        process.communicate()


def end_keeper(folder: Path) -> None:
    """Kill the keeper process of a run, if one is at work."""
    state = read_json(state_path(str(folder)))
    if state.get("signal") and state.get("pid") != os.getpid() and is_alive(state):
        os.kill(state["pid"], signal.SIGKILL)


@pytest.fixture
def kill_keeper() -> Callable[[FakeRun], None]:
    return lambda run: end_keeper(run.folder)
