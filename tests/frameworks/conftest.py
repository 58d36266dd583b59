"""Tests inside the real frameworks; scripts/framework_env.py runs each file with the interpreter of its group.

Elsewhere (the ordinary suite, whose environment holds no framework) these files are not collected.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

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
