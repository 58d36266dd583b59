from __future__ import annotations

from pathlib import Path

import pytest

from rollbook import testing
from rollbook.protocols import Row, RunInfo


@pytest.fixture
def run(tmp_path: Path) -> RunInfo:
    return testing.some_run(tmp_path / "run")


@pytest.fixture
def write(run):
    """write(sink, {key: value}, ..., scope="train", env_step=1): rows through a sink that is then closed."""

    def write(sink, *values, scope="", **clocks):
        sink.open(run)
        sink.write([Row(1_700_000_000.25 + i, clocks, value, scope, "w", 0, i + 1) for i, value in enumerate(values)])
        sink.close()
        return run.folder

    return write
