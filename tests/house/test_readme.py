"""README.md is also what a package index shows, where none of the repository's other files is."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from script_files import script

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Any:
    """scripts/hatch_readme.py, whether hatchling is installed here or not."""
    for name in ("hatchling", "hatchling.metadata", "hatchling.metadata.plugin", "hatchling.metadata.plugin.interface"):
        module = ModuleType(name)
        module.MetadataHookInterface = object  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, name, module)
    return script("hatch_readme")


def test_what_a_package_index_shows_leads_to_no_file_of_the_repository(hook: Any) -> None:
    readme = hook.ReadmeHook()
    readme.root = str(ROOT)
    metadata: dict[str, Any] = {}
    readme.update(metadata)
    text = metadata["readme"]["text"]
    assert PROJECT["tool"]["hatch"]["metadata"]["hooks"]["custom"]["path"] == "scripts/hatch_readme.py"
    assert "readme" in PROJECT["project"]["dynamic"]
    assert "## Quick start" in text
    assert "Concepts, reference, command line" in text
    assert not re.findall(r"<picture|<img|srcset|!\[", text)
    assert [link for link in re.findall(r"\]\(([^)]*)\)", text) if not link.startswith(("https:", "#"))] == []


def test_only_systems_that_tests_ran_on_are_claimed() -> None:
    systems = [line for line in PROJECT["project"]["classifiers"] if line.startswith("Operating System")]
    assert systems == ["Operating System :: POSIX :: Linux"]
    assert "macOS and Windows" in (ROOT / "README.md").read_text("utf-8")
