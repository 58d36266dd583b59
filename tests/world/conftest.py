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
def program(tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """Start a program in a process of its own."""

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


@pytest.fixture
def outcome() -> Callable[[subprocess.Popen[str]], tuple[int, str, str]]:
    """Exit code, output and error output of a program that has ended."""

    def wait(started: subprocess.Popen[str]) -> tuple[int, str, str]:
        out, err = started.communicate(timeout=PATIENCE)
        return started.returncode, out, err

    return wait
