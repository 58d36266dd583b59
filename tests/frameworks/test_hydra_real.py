"""Jobs of Hydra: without a line in the program, a run has the job's configuration, overrides and folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import rollbook

GROUPS = ("loggers",)

pytest.importorskip("hydra")

PROGRAM = """
import hydra
import rollbook

@hydra.main(version_base=None, config_path="conf", config_name="train")
def main(cfg):
    with rollbook.init("study", "sac", dir=cfg.root, sinks=(), rules=()) as run:
        for n in range(3):
            run.log({"loss": cfg.algo.lr * n}, env_step=n)

main()
"""


@pytest.mark.core
def test_each_job_of_a_multirun_is_a_run_with_its_configuration_and_overrides(own_place: Path) -> None:
    (own_place / "conf").mkdir()
    (own_place / "conf" / "train.yaml").write_text(
        f"seed: 1\nroot: {own_place / 'runs'}\nalgo:\n  name: sac\n  lr: 0.5\n  warm: ${{algo.lr}}\n"
        f"hydra:\n  sweep:\n    dir: {own_place / 'sweep'}\n  run:\n    dir: {own_place / 'single'}\n"
    )
    (own_place / "train.py").write_text(PROGRAM)
    program = [sys.executable, str(own_place / "train.py")]
    subprocess.run([*program, "-m", "seed=1,2", "algo.lr=0.1", "+api_key=abc"], check=True, timeout=300)
    first, second = sorted(rollbook.open(own_place / "runs"), key=lambda book: book.seed or 0)
    for n, book in enumerate((first, second)):
        assert book.seed == book.config["seed"] == n + 1
        assert book.config["algo"] == {"name": "sac", "lr": 0.1, "warm": 0.1}
        job = dict(book.info.hydra)
        assert (job["num"], job["sweep_dir"]) == (n, str(own_place / "sweep"))
        assert (Path(job["run_dir"]) / ".hydra" / "config.yaml").is_file()
        assert set(job["overrides"]) >= {f"seed={n + 1}", "algo.lr=0.1"}
        assert "abc" not in str(book.info.hydra) + str(book.config)
    subprocess.run([*program, "algo.lr=0.25"], check=True, timeout=300)
    (alone,) = (book for book in rollbook.open(own_place / "runs") if "num" not in book.info.hydra)
    assert alone.config["algo"]["lr"] == 0.25
    assert alone.info.hydra == {
        "job": "train",
        "overrides": ["algo.lr=0.25"],
        "run_dir": str(own_place / "single"),
    }


@pytest.mark.core
def test_a_job_that_raises_has_crashed_its_run_although_hydra_catches_it(own_place: Path) -> None:
    (own_place / "conf").mkdir()
    (own_place / "conf" / "train.yaml").write_text(
        f"seed: 1\nroot: {own_place / 'runs'}\nhydra: {{sweep: {{dir: {own_place}}}}}\n"
    )
    program = (
        PROGRAM.replace("    with rollbook.init(", "    run = rollbook.init(")
        .replace(" as run:", "")
        .replace("cfg.algo.lr * n", "1 / (2 - cfg.seed)")
    )
    (own_place / "train.py").write_text(
        program.replace("        for n", "    for n").replace("            run.", "        run.")
    )
    done = subprocess.run([sys.executable, str(own_place / "train.py"), "-m", "seed=1,2,3"], timeout=300)
    assert done.returncode == 1
    ends = {
        book.seed: (book.status, book.failure and book.failure["type"]) for book in rollbook.open(own_place / "runs")
    }
    assert ends == {1: ("finished", None), 2: ("crashed", "ZeroDivisionError"), 3: ("finished", None)}
