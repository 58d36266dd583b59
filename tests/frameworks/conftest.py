"""Tests inside the real frameworks; scripts/framework_env.py runs each file with the interpreter of its group.

Elsewhere (the ordinary suite, whose environment holds no framework) these files are not collected.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from new_runs import new_run as new_run

GROUP = os.environ.get("ROLLBOOK_FRAMEWORK_GROUP", "")

collect_ignore_glob = [] if GROUP else ["test_*.py", "*/test_*.py"]


def pytest_report_header() -> str:
    return f"framework group: {GROUP or 'none (framework tests are run by scripts/framework_env.py --test)'}"


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test writes its runs in its own folder and leaves no run open."""
    monkeypatch.chdir(tmp_path)
    for name in ("ROLLBOOK_RUN_ID", "ROLLBOOK_DIR", "ROLLBOOK_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setattr(sys, "argv", ["training"])
    return tmp_path


@pytest.fixture
def reads_as() -> Callable[..., None]:
    """Canonical names, {name: native key}, read the rows of their keys out of a book."""

    def check(book: Any, names: dict[str, str]) -> None:
        told = book.canonical()
        for name, native in names.items():
            assert told[name] == native
            alias, own = book.series(name), book.series(native)
            assert len(own) > 0
            assert (alias.x.tolist(), alias.mean.tobytes()) == (own.x.tolist(), own.mean.tobytes())
        assert not set(names) & {*book.keys()}

    return check
