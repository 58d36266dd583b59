"""Examples run as they stand, with the interpreter of their group, and leave a finished run behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import rollbook

GROUPS = ("trl", "jax", "rllib")

ROOT = Path(__file__).parents[2]
RUNS = {  # group -> (program, arguments, a key of its book, how many rows there are)
    "trl": ("trl_grpo.py", ["--steps", "5"], "train/reward", 5),
    "jax": ("jax_scan.py", ["--updates", "40"], "train/return", 40),
    "rllib": ("rllib_env_data.py", ["--iterations", "1"], "update/loss/total", 1),
}


def test_the_example_runs_as_it_stands(own_place: Path) -> None:
    program, arguments, key, rows = RUNS[os.environ["ROLLBOOK_FRAMEWORK_GROUP"]]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, str(ROOT / "examples" / program), *arguments]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip()
    (book,) = rollbook.open("runs")
    assert book.status == "finished"
    assert len(book.series(key)) == rows
    assert book.problems() == []


def test_every_group_has_its_example() -> None:
    assert set(RUNS) == set(GROUPS)
    assert all((ROOT / "examples" / program).exists() for program, *_ in RUNS.values())
