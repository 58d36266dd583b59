"""Event files as rollbook writes them, whatever writer the machine has besides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rollbook.adapters.tensorboard import native


@pytest.fixture(autouse=True)
def without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The event files are rollbook's own: what the program has loaded besides is not looked at."""
    monkeypatch.setattr(native, "_loaded", lambda: "rollbook")


@pytest.fixture
def native_writer(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """Another package's writer of event files, which a `SummaryWriter` then hands its calls to."""
    return lambda writer: monkeypatch.setattr(native, "open_events", lambda *_: writer)
