"""What a look at runs of other tools costs beside their rows."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

import rollbook
from rollbook.system.files import is_loose


def test_laying_out_the_cache_waits_for_no_disk_and_starts_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cache can be made again; a process and a sync for each of a hundred runs took seconds a run on a busy host."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for n in range(3):
        folder = tmp_path / "logs" / f"run_{n}"
        folder.mkdir(parents=True)
        (folder / "progress.csv").write_text("step,loss\n" + "".join(f"{k},{k / 2}\n" for k in range(20)))
    waited: list[Any] = []
    for name in ("fsync", "fdatasync"):
        if hasattr(os, name):
            monkeypatch.setattr(os, name, waited.append)
    started: list[Any] = []
    real = subprocess.Popen

    def popen(*words: Any, **named: Any) -> Any:
        started.append(words)
        return real(*words, **named)

    monkeypatch.setattr(subprocess, "Popen", popen)
    runs = rollbook.open(tmp_path / "logs")
    assert [book.metrics(["loss"])["loss"].to_pylist() for book in runs] == [[k / 2 for k in range(20)]] * 3
    assert (waited, started, is_loose()) == ([], [], False)
