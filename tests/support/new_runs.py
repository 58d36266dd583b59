"""A fixture for tests that read what was written: strict runs without a keeper, which are not sealed at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rollbook
from rollbook.run import ending


@pytest.fixture
def new_run(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """`new_run("name", seed=1)`: further arguments are those of `init`."""
    runs: list[Any] = []

    def make(name: str = "run", **more: Any) -> Any:
        runs.append(
            rollbook.init("project", name, dir=tmp_path / "runs", sinks=[], keeper="inline", strict=True, **more)
        )
        return runs[-1]

    yield make
    for run in runs:
        ending.forget(run)
        run.internals.writer.close()
        run.status = "finished"
