"""MRL's outline runs as it stands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import rollbook
from sealing_forks import python_path

EXAMPLES = Path(__file__).parents[3] / "examples"


def run_example(name: str, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": python_path(Path(rollbook.__file__).parent.parent)}
    done = subprocess.run(
        [sys.executable, EXAMPLES / name, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_the_outline_of_mrl_learns_to_spell(own_place: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("pandas")
    printed = run_example("mrl_log.py", "--batches", "12")
    (book,) = rollbook.open("runs")
    assert book.samples().num_rows == 12 * 32
    assert "rewards of batch 5" in printed
