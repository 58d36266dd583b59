"""The examples of the adapters run as they stand."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import rollbook
from sealing_forks import python_path

pytestmark = pytest.mark.usefixtures("sealed")

EXAMPLES = Path(__file__).parents[2] / "examples"


def run_example(name: str, *arguments: str) -> str:
    """What an example prints."""
    env = {**os.environ, "PYTHONPATH": python_path(Path(rollbook.__file__).parent.parent)}
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_the_spinning_up_example_learns_and_is_read_back(own_place: Path) -> None:
    pytest.importorskip("gymnasium")
    run_example("spinningup_vpg.py", "--epochs", "3", "--steps", "300")
    (book,) = rollbook.open("runs")
    assert book.status == "finished"
    series = book.series("AverageEpRet", x="env_step")
    assert series.x.tolist() == [300, 600, 900]
    assert book.config["steps_per_epoch"] == 300
    assert Path("data/vpg/vpg_s0/progress.txt").exists()


def test_the_summary_writer_example_leaves_event_files_and_a_book(own_place: Path) -> None:
    pytest.importorskip("gymnasium")
    pytest.importorskip("tensorboard")
    run_example("tensorboard_writer.py", "--total-timesteps", "1000", "--seed", "4")
    (book,) = rollbook.open("runs")
    assert book.status == "finished"
    assert book.config["seed"] == 4
    assert len(book.series("losses/td_loss", x="env_step").x) == 10
    assert len(list(Path("runs").glob("*/events.out.tfevents.*"))) == 1


def test_the_verl_example_learns_and_its_answers_are_rollouts_that_were_used(own_place: Path) -> None:
    run_example("verl_tracking.py", "--steps", "10", "--seed", "2")
    (book,) = rollbook.open("runs")
    assert (book.project, book.status) == ("arithmetic", "finished")
    assert book.series("critic/score/mean", x="step").x.tolist() == list(range(1, 11))
    rows = book.rollouts().to_pylist()
    assert len(rows) == 10 * 8
    assert {row["item"] for row in rows if row["reward"]} == {"4"}
    assert {(row["used"], row["trained_version"]) for row in rows if row["gradient_step"] == 10} == {(True, 9)}


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


def test_the_outline_of_mrl_learns_to_spell(own_place: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("pandas")
    printed = run_example("mrl_log.py", "--batches", "12")
    (book,) = rollbook.open("runs")
    assert book.samples().num_rows == 12 * 32
    assert "rewards of batch 5" in printed
