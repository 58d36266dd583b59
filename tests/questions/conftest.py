"""Hard runs are recorded once for all tests of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from hard_runs import record


@pytest.fixture(scope="session")
def hard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of `hard_runs.record`, which nobody changes; runs of another kind may lie beside `runs`."""
    folder = tmp_path_factory.mktemp("hard")
    record(folder)
    return folder
