"""Writers for the tests of the journal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rollbook.journal.writer import Writer


@pytest.fixture
def open_writer(tmp_path: Path) -> Iterator[Callable[..., Writer]]:
    """Opens writers that the test need not close."""
    made: list[Writer] = []

    def make(**options: Any) -> Writer:
        writer = Writer(str(tmp_path), main=not made, **options)
        made.append(writer)
        return writer

    yield make
    for writer in made:
        writer.close()
