"""The example without LightZero runs as it stands."""

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


def test_a_loop_of_ones_own_gets_the_folder(own_place: Path) -> None:
    pytest.importorskip("gymnasium")
    pytest.importorskip("tensorboard")
    printed = run_example("lightzero_any_loop.py", "--iterations", "6")
    (book,) = rollbook.open("runs")
    assert book.status == "finished"
    assert len(book.series("evaluator/reward_mean").x) == 2
    for component in ("buffer", "collector", "evaluator", "learner"):
        assert f"log/{component}/{component}_logger.txt" in printed
    assert "ckpt/ckpt_best.ckpt" in printed
