"""Stoix itself, from a checkout: a DQN of a few thousand steps, with its TensorBoard logger next to ours."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import rollbook
from rollbook.formats import importers

GROUPS = ("stoix",)

CHECKOUT = Path(os.environ.get("ROLLBOOK_UPSTREAM", "")) / "Stoix"

OPTIONS = """
arch.total_num_envs=8 arch.total_timesteps=4096 arch.num_evaluation=4 arch.num_eval_episodes=8 arch.seed=7
arch.absolute_metric=False system.total_buffer_size=4096 system.total_batch_size=64 system.epochs=2
logger.loggers.tensorboard.enabled=true logger.loggers.console.enabled=false
+logger.loggers.rollbook._target_=rollbook.adapters.stoix.RollbookLogger +logger.loggers.rollbook.enabled=true
+logger.loggers.rollbook.project=cartpole
"""


@pytest.mark.core
def test_every_number_of_stoix_own_event_file_is_in_the_book(own_place: Path) -> None:
    if not (CHECKOUT / "stoix").is_dir():
        pytest.skip("there is no checkout of Stoix, which is on no registry: put it into $ROLLBOOK_UPSTREAM/Stoix")
    program = [sys.executable, str(CHECKOUT / "stoix" / "systems" / "q_learning" / "ff_dqn.py"), *OPTIONS.split()]
    folders = [f"logger.base_exp_path={own_place / 'theirs'}", f"+logger.loggers.rollbook.dir={own_place / 'runs'}"]
    path = os.pathsep.join([str(CHECKOUT), os.environ.get("PYTHONPATH", "")])
    # tensorboard_logger has protobuf files of 2017
    env = dict(os.environ, PYTHONPATH=path, PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION="python", WANDB_MODE="disabled")
    options = [*folders, f"hydra.run.dir={own_place / 'hydra'}"]
    subprocess.run([*program, *options], check=True, timeout=500, cwd=CHECKOUT, env=env)
    (book,) = rollbook.open(own_place / "runs")
    assert (book.project, book.name, book.seed, book.status) == ("cartpole", "ff_dqn", 7, "finished")
    theirs: dict[str, list[tuple[int, float]]] = {}
    for run in importers.make("tensorboard").runs(own_place / "theirs"):
        for row in run.rows():
            for key, value in row.values.items():
                theirs.setdefault(key, []).append((row.clocks["step"], float(value)))  # type: ignore[arg-type]
    for key, points in theirs.items():  # its TensorBoard logger counts evaluations where ours knows both clocks
        series = book.series(key, x="epoch" if key.startswith("evaluator/") else "env_step")
        ours = [struct.unpack("f", struct.pack("f", value))[0] for value in series.mean.tolist()]
        assert list(zip(series.x.tolist(), ours, strict=True)) == points, key
    assert sum(map(len, theirs.values())) >= 100
    assert book.info.hydra["run_dir"] == str(own_place / "hydra")
    assert {"train/return", "test/return", "update/loss/q"} <= set(book.canonical())
    assert book.problems() == []
