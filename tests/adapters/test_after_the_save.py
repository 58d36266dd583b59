"""What a training logs after a save, at the step of the save, is in the book once after a kill and a resume."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rollbook
from rollbook import adapters
from rollbook.adapters.lightzero import EvaluatorLog, LearnerLog
from rollbook.adapters.spinningup import EpochLogger
from syntax import tree as tree_of

EXACT = {"tianshou/book.py": "the trainer tests once more where it resumes; an epoch's summary is logged `at` the save"}
"""Adapters whose checkpoints end at their save, and why."""


def spinningup(run: Any, first: int, last: int, folder: Path) -> None:
    """As its off-policy programs do: save, test, then dump the row of the epoch."""
    logger = EpochLogger(str(folder), run=run)
    logger._epochs = first
    for epoch in range(first, last):
        logger.store(EpRet=float(epoch), EpLen=3)
        logger.save_state({"w": epoch}, None)
        logger.store(TestEpRet=float(epoch), TestEpLen=3)
        for key in ("EpRet", "TestEpRet"):
            logger.log_tabular(key, average_only=True)
        logger.log_tabular("Epoch", epoch)
        logger.log_tabular("TotalEnvInteracts", 100 * (epoch + 1))
        logger.dump_tabular()


def lightzero(run: Any, first: int, last: int, folder: Path) -> None:
    evaluator, learner = EvaluatorLog(run), LearnerLog(run)
    for iteration in range(first, last):
        learner.save_checkpoint({"w": iteration}, iteration, 10 * iteration)
        with evaluator.evaluating():
            evaluator.episode(float(iteration), 3)
        evaluator.report(iteration, 10 * iteration)  # nobody hands it the checkpoint


ADAPTERS: dict[str, tuple[Callable[..., None], str, str, str]] = {
    "spinningup": (spinningup, "epoch", "TestEpRet", "test"),
    "lightzero": (lightzero, "gradient_step", "evaluator/reward_mean", "evaluator"),
}


@pytest.mark.parametrize("name", list(ADAPTERS))
def test_evaluations_after_the_save_survive_a_resume(name: str, tmp_path: Path) -> None:
    train, clock, key, scope = ADAPTERS[name]
    options: dict[str, Any] = {"dir": tmp_path / "runs", "sinks": (), "keeper": "inline"}
    run = rollbook.init("p", name, **options)
    train(run, 0, 3, tmp_path / "first")
    run.log({key: 0.0}, **{clock: 3})  # the next one was under way
    run.scope(scope).log_episode(return_=0.0, length=3, **{clock: 3})
    run.finish("crashed")
    run = rollbook.init("p", name, resume="must", **options)
    assert run.restore("last") is not None
    train(run, 3, 6, tmp_path / "second")
    assert run.book.metrics([key], x=clock)[clock].to_pylist() == [0, 1, 2, 3, 4, 5]
    episodes = [row[clock] for row in run.book.episodes().to_pylist() if row["scope"] == scope]
    assert episodes == [0, 1, 2, 3, 4, 5]


def test_every_adapter_records_how_far_a_checkpoint_reaches() -> None:
    place = Path(adapters.__file__).parent
    silent = []
    for path in sorted(place.rglob("*.py")):
        for node in ast.walk(tree_of(path.read_text(encoding="utf-8"))):
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(node, ast.Call) and getattr(called, "id", "") == "partial" and node.args:
                called = node.args[0]
            if not isinstance(called, ast.Attribute) or called.attr != "save_checkpoint":
                continue
            base = ast.unparse(called.value)
            if base.endswith("run") and "through" not in [word.arg for word in node.keywords]:
                silent.append(path.relative_to(place).as_posix())
    assert silent == list(EXACT)
