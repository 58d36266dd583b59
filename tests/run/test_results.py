"""The part of a run's summary that fills itself: last and best scores, best checkpoint, length, status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollbook
from cases import some_of
from rollbook import Book
from rollbook.book.results import results_of
from rollbook.schema import manifest


def results(folder: Any) -> dict[str, Any]:
    return manifest.results(manifest.read(folder))


def test_a_run_that_ended_says_what_it_came_to(tmp_path: Path) -> None:
    with rollbook.init("study", "ppo", dir=tmp_path, sinks=[], keeper="inline") as run:
        for step, value in enumerate([1.0, 9.0, float("nan"), 4.0]):
            run.log(
                {"test/return": value, "rollout/ep_rew_mean": -value, "update/loss/total": value}, env_step=10 * step
            )
        run.log_episode(return_=3.0, length=7, env_step=30)
        run.save_checkpoint({"a": 1}, score=2.0, env_step=30)
        best = run.save_checkpoint({"a": 2}, score=5.0, env_step=31)
    book = Book(run.folder)
    assert results(run.folder) == results_of(book), "the keeper wrote what a reader would work out"
    summary = book.summary
    assert (summary["test/return.last"], summary["test/return.best"]) == (4.0, 9.0)
    assert summary["train/return.best"] == -1.0, "by its canonical name, whatever the framework calls it"
    assert "update/loss/total.best" not in summary, "a loss is no score"
    assert (summary["checkpoint.best"], summary["checkpoint.best_score"]) == (best.id, 5.0)
    assert (summary["length.env_step"], summary["length.episodes"], summary["status"]) == (30, 1, "finished")
    (row,) = rollbook.open(tmp_path).rows()
    assert row["summary"] == summary
    assert len(rollbook.open(tmp_path).where('summary."test/return".best > 8 and summary.length.env_step = 30')) == 1
    assert rollbook.open(tmp_path).table(["summary.test/return.best"])["summary.test/return.best"].to_pylist() == [9.0]


def test_words_of_the_user_win(tmp_path: Path) -> None:
    with rollbook.init("study", "ppo", dir=tmp_path, sinks=[], keeper="inline") as run:
        run.log({"test/return": 5.0}, env_step=1)
        run.summary["test/return.best"] = "by hand"
    assert run.book.summary["test/return.best"] == "by hand"
    assert run.book.summary["test/return.last"] == 5.0
    assert run.book.info.summary == {"test/return.best": "by hand"}
    assert rollbook.open(tmp_path).rows()[0]["summary"]["test/return.best"] == "by hand"


@pytest.mark.parametrize("gone", some_of(["written", "never written"], 1))
def test_what_was_abandoned_is_not_the_best(tmp_path: Path, gone: str) -> None:
    with rollbook.init("study", "ppo", dir=tmp_path, run_id="one", sinks=[], keeper="inline") as run:
        run.log_many({"test/return": np.arange(50.0)}, env_step=np.arange(50))
        mark = run.save_checkpoint({"a": 1}, env_step=49)
        run.log_many({"test/return": 100 + np.arange(50.0)}, env_step=50 + np.arange(50))
    assert results(run.folder)["test/return.best"] == 149.0
    with rollbook.init("study", "ppo", dir=tmp_path, run_id="one", resume="must", sinks=[], keeper="inline") as again:
        assert "test/return.best" not in again.summary, "what fills itself is no word of the user"
        again.restore(mark.id)
        again.log({"test/return": 60.0}, env_step=50)
        assert again.book.summary["test/return.best"] == 60.0, "while it runs, too"
        assert "status" not in again.book.summary
    if gone == "never written":
        page = Path(again.folder) / "run.json"
        page.write_text(json.dumps({k: v for k, v in json.loads(page.read_text()).items() if k != "results"}))
    summary = Book(again.folder).summary
    assert (summary["test/return.last"], summary["test/return.best"], summary["length.env_step"]) == (60.0, 60.0, 50)
