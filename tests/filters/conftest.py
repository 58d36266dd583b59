from __future__ import annotations

import pytest

from rollbook.sinks import Memory


@pytest.fixture
def kept() -> Memory:
    """A sink that keeps rows."""
    return Memory()
