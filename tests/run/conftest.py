"""Runs that need no keeper process and write into a temporary folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rollbook
from unkept import nothing_is_kept


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of all runs of a test, which is also the default one."""
    folder = tmp_path / "runs"
    monkeypatch.setenv("ROLLBOOK_DIR", str(folder))
    monkeypatch.delenv("ROLLBOOK_RUN_ID", raising=False)
    return folder


@pytest.fixture
def start(root: Path) -> Iterator[Callable[..., rollbook.Run]]:
    """`rollbook.init` without sinks, rules and a keeper process; finishes what the test leaves open."""
    made: list[rollbook.Run] = []

    def init(*names: str, **options: Any) -> rollbook.Run:
        defaults: dict[str, Any] = {"sinks": [], "keeper": "inline", "rules": ()}
        run = rollbook.init(*(names or ("project", "name")), **{**defaults, **options})
        made.append(run)
        return run

    yield init
    with nothing_is_kept():
        for run in made:
            run.finish()
