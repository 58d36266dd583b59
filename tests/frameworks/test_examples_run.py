"""Examples run as they stand, with the interpreter of their group, and leave a finished run behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import rollbook

GROUPS = ("trl", "jax", "rllib", "loggers", "loops", "brax")

ROOT = Path(__file__).parents[2]
RUNS = (  # group, program, arguments, a key of its book, how many rows there are
    ("trl", "trl_grpo.py", ["--steps", "5"], "train/reward", 5),
    ("trl", "accelerate_loop.py", ["--steps", "5"], "train/loss", 5),
    ("loggers", "lightning_fit.py", ["--epochs", "5"], "val/loss", 5),
    ("loggers", "rsl_rl_ppo.py", ["--iterations", "5"], "train/return", 5),
    ("loggers", "optuna_study.py", ["--trials", "8"], "value", 8),
    ("loops", "skrl_dqn.py", ["--timesteps", "1000"], "train/return", 10),
    ("loops", "torchrl_reinforce.py", ["--batches", "3"], "train/episode_reward", 3),
    ("loops", "elements_loop.py", ["--episodes", "20"], "train/return", 20),
    ("brax", "brax_ppo.py", [], "test/return", 4),
    ("jax", "keras_fit.py", ["--epochs", "3"], "val_loss", 3),
    ("jax", "jax_scan.py", ["--updates", "40"], "train/return", 40),
    ("rllib", "rllib_env_data.py", ["--iterations", "1"], "update/loss/total", 1),
)
HERE = [run[1:] for run in RUNS if run[0] == os.environ.get("ROLLBOOK_FRAMEWORK_GROUP")]


@pytest.mark.parametrize(("program", "arguments", "key", "rows"), HERE, ids=[run[0] for run in HERE])
def test_the_example_runs_as_it_stands(
    own_place: Path, program: str, arguments: list[str], key: str, rows: int
) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "KERAS_BACKEND": "jax"}
    command = [sys.executable, str(ROOT / "examples" / program), *arguments]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip()
    (book,) = rollbook.open("runs")
    assert book.status == "finished"
    assert len(book.series(key)) == rows
    assert book.problems() == []


def test_every_group_has_its_example() -> None:
    assert {group for group, *_ in RUNS} == set(GROUPS)
    assert all((ROOT / "examples" / program).exists() for _, program, *_ in RUNS)
