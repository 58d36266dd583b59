"""What is done when a program imports a library is done once, at its import and at nothing else."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path

import pytest

from rollbook.adapters._imported import when_imported


@pytest.fixture
def seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    for name in ("library_one", "library_two"):
        (tmp_path / f"{name}.py").write_text("ready = True\n")
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    done: list[str] = []
    when_imported(
        dict.fromkeys(("library_one", "library_two", "library_none"), lambda module: done.append(module.__name__))
    )
    return done


def test_a_program_that_asks_whether_there_is_a_library_and_imports_it_later_is_followed(seen: list[str]) -> None:
    """As transformers and accelerate do with wandb and tensorboard."""
    assert importlib.util.find_spec("library_one") is not None
    assert importlib.util.find_spec("library_none") is None
    assert seen == []
    assert importlib.import_module("library_one").ready
    assert seen == ["library_one"]
    importlib.reload(sys.modules["library_one"])
    importlib.import_module("library_two")
    assert seen == ["library_one", "library_two"]


def test_a_library_that_is_installed_after_it_was_missed_is_followed(seen: list[str], tmp_path: Path) -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("library_none")
    (tmp_path / "library_none.py").write_text("")
    importlib.invalidate_caches()
    importlib.import_module("library_none")
    assert seen == ["library_none"]
