"""A run that needs no keeper process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rollbook
from rollbook.run import start_and_finish


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with rollbook.init("p", "r", dir=tmp_path, sinks=[], keeper="inline", rules=()) as run:
        yield run
        monkeypatch.setattr(start_and_finish, "_keep_here", lambda run: None)  # nobody reads what would be sealed now
