"""verl itself, as far as a CPU without a serving engine goes: its Tracking and its way of writing rollout dumps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

GROUPS = ("verl",)

pytest.importorskip("verl")

from verl.utils import tracking as native  # noqa: E402

import rollbook  # noqa: E402
from rollbook.adapters.verl import Tracking, register  # noqa: E402

ROWS = [
    {"actor/pg_loss": 0.1 * step, "critic/rewards/mean": float(step), "training/epoch": 0, "timing_s/gen": 1.25}
    for step in range(1, 6)
]


@pytest.fixture
def run(own_place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("VERL_FILE_LOGGER_ROOT", str(own_place / "verl"))
    run = rollbook.init("verl", "test", dir=own_place / "runs", sinks=(), keeper="inline")
    yield run
    run.finish()


def log_all(tracking: Any) -> None:
    for step, row in enumerate(ROWS, 1):
        tracking.log(data=row, step=step)
    tracking.finish()


def file_rows(own_place: Path) -> list[dict[str, Any]]:
    text = (own_place / "verl" / "p" / "e.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def book_rows(run: Any) -> list[dict[str, Any]]:
    found = [row for row in run.book.metrics().to_pylist() if row["actor/pg_loss"] is not None]  # not the host's
    return [{"step": row["step"], "data": {key: row[key] for key in ROWS[0]}} for row in found]


@pytest.mark.core
def test_verls_own_tracking_takes_the_back_end_and_both_say_the_same(run: Any, own_place: Path) -> None:
    register(run)
    log_all(native.Tracking("p", "e", ["file", "rollbook"], {"trainer": {}}))
    assert book_rows(run) == file_rows(own_place)
    assert len(file_rows(own_place)) == 5
    with pytest.raises(AssertionError, match="nonsense is not supported"):
        native.Tracking("p", "e", ["rollbook", "nonsense"])


def test_our_tracking_hands_the_others_to_verl(run: Any, own_place: Path) -> None:
    log_all(Tracking("p", "e", ["file", "rollbook"], {"trainer": {}}, run=run))
    assert book_rows(run) == file_rows(own_place)


def test_dumps_that_verl_writes_become_samples(run: Any, own_place: Path) -> None:
    trainer = pytest.importorskip("verl.trainer.ppo.ray_trainer").RayPPOTrainer
    folder = own_place / "rollouts"
    one = Tracking("p", "e", config={"trainer": {"rollout_data_dir": str(folder)}}, run=run)
    prompts, answers = ["2+2", "2+2", "3+3", "3+3"], ["4", "vier", "6", "é\n7"]
    more = {"acc": [1.0, 0.0, 1.0, 0.0], "request_id": list("abcd")}
    trainer._write_generations(prompts, answers, ["4", "4", "6", "6"], [1.0, 0.5, 1.0, 0.0], more, str(folder), 1)
    one.log(ROWS[0], step=1)
    one.finish()
    rows = run.book.samples().to_pylist()
    assert [(row["prompt"], row["item"]) for row in rows] == list(zip(prompts, answers, strict=True))
    assert [row["reward"] for row in rows] == [1.0, 0.5, 1.0, 0.0]
    assert [row["acc"] for row in rows] == more["acc"]
    assert [row["group"] for row in rows] == ["train-1-0"] * 2 + ["train-1-1"] * 2


def test_the_environment_variable_registers_the_back_end_at_import(own_place: Path) -> None:
    program = (
        "from verl.utils.tracking import Tracking\n"
        "one = Tracking('p', 'e', ['console', 'rollbook'], {'trainer': {'total_training_steps': 2}})\n"
        "one.log({'a': 1.5}, 1)\n"
        "one.log({'a': 2.5}, 2)\n"
        "one.finish(exit_code=1)\n"
    )
    env = dict(os.environ, VERL_USE_EXTERNAL_MODULES="rollbook.adapters.verl", ROLLBOOK_DIR=str(own_place / "runs"))
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    (book,) = rollbook.open(own_place / "runs")
    assert (book.project, book.name, book.status) == ("p", "e", "crashed")
    assert book.series("a", x="step").mean.tolist() == [1.5, 2.5]
    assert book.info["total"] == {"step": 2}


def test_a_tracking_that_is_collected_does_not_end_the_run(own_place: Path) -> None:
    register(dir=own_place / "runs", sinks=(), keeper="inline")
    one = native.Tracking("p", "collected", ["rollbook"], {})
    run = one.logger["rollbook"].run
    del one
    assert run.book.status == "running"
    run.finish()
