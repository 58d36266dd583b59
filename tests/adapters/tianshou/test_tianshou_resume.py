"""A training that is killed and resumed: the same counters, one clean curve."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollbook
from rollbook.adapters.tianshou import RollbookLogger
from rollbook.errors import NotARun

pytestmark = pytest.mark.usefixtures("sealed")


class Trainer:
    """Calls a logger as Tianshou's off-policy trainer does: an epoch has 30 environment steps and 3 updates of 2."""

    def __init__(self, logger: Any, folder: Path, die_in: int = 0, resume: bool = False) -> None:
        self.logger, self.folder, self.die_in = logger, folder, die_in
        self.epoch = self.env_step = self.update_step = 0
        if resume:
            self.epoch, self.env_step, self.update_step = logger.restore_data()
        self.began_at = self.epoch, self.env_step, self.update_step
        self._test()

    def _test(self) -> None:
        self.logger.log_test_data({"returns_stat": {"mean": self.env_step + 0.5}, "n": 1}, self.env_step)

    def _save(self, epoch: int, env_step: int, update_step: int) -> str:
        path = self.folder / "checkpoint.pth"
        path.write_text(f"{epoch} {env_step} {update_step}")
        return str(path)

    def run(self, epochs: int) -> None:
        while self.epoch < epochs:
            self.epoch += 1
            for _ in range(3):
                self.update_step += 1
                for half in (0.0, 0.5):
                    self.logger.log_update_data({"loss": self.update_step + half}, self.update_step)
                self.env_step += 10
                self.logger.log_training_data({"n": self.env_step}, self.env_step)
                if self.epoch == self.die_in:
                    import os

                    os.kill(os.getpid(), 9)
            self.logger.save_data(self.epoch, self.env_step, self.update_step, self._save)
            self._test()
            self.logger.log_info_data({"best_score": float(self.epoch)}, self.epoch)


def test_a_killed_and_resumed_training_has_the_same_counters_and_one_clean_curve(tmp_path: Path) -> None:
    code = textwrap.dedent(f"""
        import sys
        from pathlib import Path
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        import rollbook
        from rollbook.adapters.tianshou import RollbookLogger
        from test_tianshou_resume import Trainer
        run = rollbook.init("p", "t", dir={str(tmp_path / "runs")!r}, run_id="one", sinks=[], keeper="inline", rules=())
        Trainer(RollbookLogger(run), Path({str(tmp_path)!r}), die_in=3).run(5)
    """)
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == -9
    with rollbook.init(
        "p", "t", dir=tmp_path / "runs", run_id="one", resume="must", sinks=[], keeper="inline", rules=()
    ) as run:
        logger = RollbookLogger(run)
        trainer = Trainer(logger, tmp_path, resume=True)
        assert trainer.began_at == (2, 60, 6)
        trainer.run(4)
        book = run.book

        def curve(key: str, clock: str) -> list[tuple[int, float]]:
            table = book.metrics([key], x=clock)
            return list(zip(table.column(clock).to_pylist(), table.column(key).to_pylist(), strict=True))

        assert curve("training/n", "env_step") == [(n, n) for n in range(10, 121, 10)]
        assert curve("test/returns_stat/mean", "env_step") == [(n, n + 0.5) for n in range(0, 121, 30)]
        assert curve("info/best_score", "epoch") == [(n, float(n)) for n in (1, 2, 3, 4)]
        losses = curve("update/loss", "gradient_step")
        assert [step for step, _ in losses] == list(range(1, 25))
        assert [loss for _, loss in losses] == [1 + i / 2 for i in range(24)]
        assert curve("save/epoch", "epoch") == [(n, n) for n in (1, 2, 3, 4)]
        everything = book.metrics(["training/n"], attempts="all").column("training/n").to_pylist()
        assert sorted(everything) == sorted([*range(10, 121, 10), 70])


def test_the_native_file_has_no_repeated_test_after_a_resume(tmp_path: Path) -> None:
    class Writer:
        def __init__(self) -> None:
            self.tests: list[int] = []

        def add_scalar(self, tag: str, value: Any, global_step: int) -> None:
            if tag == "test/env_step":
                self.tests.append(global_step)

        def flush(self) -> None: ...

        def close(self) -> None: ...

    writer = Writer()
    for attempt in (1, 2):
        options = {"dir": tmp_path, "run_id": "one", "resume": "allow", "sinks": [], "keeper": "inline", "rules": ()}
        with rollbook.init("p", "t", **options) as run:
            Trainer(RollbookLogger(run, writer=writer), tmp_path, resume=attempt == 2).run(2 * attempt)
    assert writer.tests == [0, 30, 60, 90, 120]


def test_the_best_score_survives_a_resume(tmp_path: Path) -> None:
    saved: list[tuple[int, float]] = []
    options = {"dir": tmp_path, "run_id": "one", "resume": "allow", "sinks": [], "keeper": "inline", "rules": ()}
    for attempt, scores in ((1, [3.0, 7.0, 5.0]), (2, [4.0, 6.0, 9.0])):
        with rollbook.init("p", "t", **options) as run:
            logger = RollbookLogger(run)
            if attempt == 2:
                logger.restore_data()
            for i, score in enumerate(scores):
                logger.log_test_data({"returns_stat": {"mean": score}}, 10 * attempt + i)
                logger.save_best(lambda _, attempt=attempt, score=score: saved.append((attempt, score)))(None)  # type: ignore[misc]
                logger.save_data(3 * attempt + i, 10 * attempt + i, i, None)
    assert saved == [(1, 3.0), (1, 7.0), (2, 9.0)]


def test_what_was_logged_comes_back_as_nested_arrays_with_their_steps(tmp_path: Path) -> None:
    with rollbook.init("p", "t", dir=tmp_path, sinks=[], keeper="inline", rules=()) as run:
        logger = RollbookLogger(run)
        Trainer(logger, tmp_path).run(2)
        run.log({"mine/x": 1.0})
        folder = run.folder
    found = RollbookLogger.restore_logged_data(str(folder))
    np.testing.assert_array_equal(found["training"]["n"], [10, 20, 30, 40, 50, 60])
    np.testing.assert_array_equal(found["train"]["n"].steps, [10, 20, 30, 40, 50, 60])
    np.testing.assert_array_equal(found["test"]["returns_stat"]["mean"], [0.5, 30.5, 60.5])
    np.testing.assert_array_equal(found["info"]["best_score"].steps, [1, 2])
    assert "train" in found
    assert "mine" not in found
    assert found["test"]["n"].times.min() > 1.6e9


def test_tensorboard_files_of_both_versions_come_back_alike(tmp_path: Path) -> None:
    board = pytest.importorskip("tensorboard.summary.writer.event_file_writer")
    from tensorboard.compat.proto import event_pb2, summary_pb2

    for scope, points in (("train", 10_100), ("training", 120)):
        writer = board.EventFileWriter(str(tmp_path / scope))
        for step in range(points):
            value = summary_pb2.Summary.Value(tag=f"{scope}/x", simple_value=float(step))
            writer.add_event(
                event_pb2.Event(step=step, wall_time=1e9 + step, summary=summary_pb2.Summary(value=[value]))
            )
        value = summary_pb2.Summary.Value(tag=f"{scope}/x/mean", simple_value=1.0)
        writer.add_event(event_pb2.Event(step=5, wall_time=1e9, summary=summary_pb2.Summary(value=[value])))
        writer.close()
        found = RollbookLogger.restore_logged_data(str(tmp_path / scope))
        for name in ("train", "training"):
            assert len(found[name]["x"][""]) == points  # Tianshou keeps 10,000 of them, and fails at x/mean beside x
            np.testing.assert_array_equal(found[name]["x"]["mean"], [1.0])


def test_nothing_there_is_nothing_and_a_lost_run_is_named(tmp_path: Path) -> None:
    assert RollbookLogger.restore_logged_data(str(tmp_path / "nowhere")) == {}
    (tmp_path / "rollbook.json").write_text('{"folder": "../gone"}')
    with pytest.raises(NotARun, match="gone"):
        RollbookLogger.restore_logged_data(str(tmp_path))
