"""A run that needs no keeper process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rollbook
from unkept import nothing_is_kept


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Any]:
    run = rollbook.init("p", "r", dir=tmp_path, sinks=[], keeper="import", rules=())
    yield run
    with nothing_is_kept():
        run.finish()
