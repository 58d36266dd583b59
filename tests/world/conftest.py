"""Runs as the programs of this folder open them, and programs of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rollbook
from forked_programs import Interpreter
from waiting import PATIENCE

HEAD = """import rollbook
from rollbook.run import start_and_finish
start_and_finish._let_keeper_finish = lambda run: None  # sealing is no subject here, and loads much
QUIET = dict(sinks=[], keeper="import", rules=())
"""


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of all runs of a test, which is also the default one."""
    for name in [name for name in os.environ if name.startswith(("WANDB_", "SLURM_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("ROLLBOOK_DIR", str(tmp_path / "runs"))
    return tmp_path / "runs"


@pytest.fixture
def begin(nothing_is_sealed: None) -> Iterator[Callable[..., Any]]:
    """`rollbook.init` without sinks and keeper process; what stays open is finished at the end."""
    made: list[Any] = []

    def init(name: str = "run", **options: Any) -> Any:
        made.append(rollbook.init("world", name, **{"sinks": [], "keeper": "import", "rules": (), **options}))
        return made[-1]

    yield init
    for run in made:
        run.finish()


@pytest.fixture
def real_program(tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """Start a program that is a file, in a Python process of its own: it starts others from that file."""

    def start(text: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        file = tmp_path / f"program{len(list(tmp_path.glob('*.py')))}.py"
        file.write_text(HEAD + text)
        return subprocess.Popen(
            [sys.executable, str(file), *arguments],
            env={**os.environ, **environment},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    return start


class Forked:
    """A program in a fork of an interpreter: as much of a `subprocess.Popen` as `outcome` needs."""

    def __init__(self, interpreter: Interpreter, said: Path, code: str, words: tuple[str, ...], env: dict[str, str]):
        self.returncode = -1
        self._interpreter, self._said = interpreter, [said.with_suffix(each) for each in (".out", ".err")]
        with open(os.devnull, "rb") as nothing, self._said[0].open("wb") as out, self._said[1].open("wb") as err:
            self.pid = interpreter.fork(code, words, env, [each.fileno() for each in (nothing, out, err)])

    def communicate(self, timeout: float) -> list[str]:
        """Wait for its end, and give its output and error output."""
        self.returncode = self._interpreter.wait(self.pid)
        return [each.read_text() for each in self._said]


@pytest.fixture
def program(tmp_path: Path, interpreter: Interpreter) -> Callable[..., Forked]:
    """Start a program in a process of its own, which is a fork."""

    def start(text: str, *words: str, **environment: str) -> Forked:
        said = tmp_path / f"program{len(list(tmp_path.glob('*.out')))}"
        return Forked(interpreter, said, HEAD + text, words, {**os.environ, **environment})

    return start


@pytest.fixture
def outcome() -> Callable[[Any], tuple[int, str, str]]:
    """Exit code, output and error output of a program that has ended."""

    def wait(started: Any) -> tuple[int, str, str]:
        out, err = started.communicate(timeout=PATIENCE)
        return started.returncode, out, err

    return wait
