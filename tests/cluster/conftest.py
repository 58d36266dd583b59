"""Runs that several hosts write: played on one machine, for processes with other $ROLLBOOK_HOST are of other hosts."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rollbook
from forked_programs import Interpreter
from rollbook.system.liveness import HOST_VARIABLE
from unkept import nothing_is_kept


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of all runs of a test, which is also the default one."""
    folder = tmp_path / "runs"
    monkeypatch.setenv("ROLLBOOK_DIR", str(folder))
    monkeypatch.delenv("ROLLBOOK_RUN_ID", raising=False)
    monkeypatch.delenv(HOST_VARIABLE, raising=False)
    return folder


@pytest.fixture
def start(root: Path) -> Iterator[Callable[..., rollbook.Run]]:
    """`rollbook.init` without sinks and without a keeper process; finishes what the test leaves open."""
    made: list[rollbook.Run] = []

    def init(*names: str, **options: Any) -> rollbook.Run:
        run = rollbook.init(*(names or ("project", "name")), **{"sinks": [], "keeper": "inline", **options})
        made.append(run)
        return run

    yield init
    with nothing_is_kept():
        for run in made:
            run.finish()


@pytest.fixture
def on_host(root: Path, interpreter: Interpreter) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a script to its end in a process of a host of that name."""

    def play(host: str, script: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        own = {**os.environ, HOST_VARIABLE: host, **environment}
        own.pop("ROLLBOOK_RUN_ID", None)
        done = interpreter.run(script, *arguments, env=own)
        assert done.returncode == 0, done.stderr
        return done

    return play
