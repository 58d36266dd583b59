"""The fakes, for tests that import nothing by path."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

_spec = importlib.util.spec_from_file_location("rllib_fakes", Path(__file__).with_name("fakes.py"))
assert _spec is not None
assert _spec.loader is not None
_fakes = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_fakes)


@pytest.fixture
def fakes() -> ModuleType:
    return _fakes


@pytest.fixture
def rllib(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The adapter, with something in Ray's place."""
    return _fakes.install(monkeypatch)
