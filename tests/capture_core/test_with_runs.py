"""The capture rooms on real runs: what was captured is read back from the book."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollbook
from rollbook.values.spool.encode import encode_spooled, locate


@pytest.fixture
def begin(tmp_path: Path) -> Any:
    def init(**more: Any) -> Any:
        arguments: dict[str, Any] = {"dir": tmp_path, "keeper": "inline", "sinks": [], "strict": True, "run_id": "r1"}
        return rollbook.init("p", "x", **{**arguments, **more})

    return init


def test_stages_are_read_back_with_their_nested_names(begin: Any) -> None:
    with begin() as run:
        for _ in range(3):
            with run.timer("update"), run.timer("backward"):
                pass
    names = run.book.timings()["name"].to_pylist()
    assert sorted(names) == ["update"] * 3 + ["update/backward"] * 3


def test_stored_values_are_raw_rows_and_the_dump_is_one_row(begin: Any) -> None:
    with begin() as run:
        train = run.scope("train")
        for i in range(4):
            train.store(ret=float(i), env_step=i)
        row = train.dump(with_min_and_max=True, env_step=10)
        statistics = {"mean": 1.5, "std": 1.25**0.5, "median": 1.5, "n": 4, "min": 0.0, "max": 3.0}
        assert row == {f"ret/{name}": value for name, value in statistics.items()}
        assert run.dump() == {}
    table = run.book.metrics(["train/ret", "train/ret/mean", "train/ret/n"], x="env_step")
    assert table["train/ret"].drop_null().to_pylist() == [0.0, 1.0, 2.0, 3.0]
    assert table["train/ret/mean"].drop_null().to_pylist() == [1.5]
    assert table["train/ret/n"].drop_null().to_pylist() == [4]
    assert table["env_step"].to_pylist() == [0, 1, 2, 3, 10]


def test_a_configuration_is_in_the_book_and_if_asked_for_in_two_python_files(begin: Any) -> None:
    config = {"lr": 3e-4, "net": {"sizes": (64, 64)}, "n": np.int64(3)}
    with begin(config=config) as run:
        run.write_config_files()
    assert run.book.config == {"lr": 3e-4, "net": {"sizes": [64, 64]}, "n": 3}
    for name in ("total_config.py", "formatted_total_config.py"):
        space: dict[str, Any] = {}
        exec((run.folder / name).read_text(), space)
        assert space["exp_config"] == {"lr": 3e-4, "net": {"sizes": (64, 64)}, "n": 3}


def test_a_resumed_run_goes_on_from_its_checkpoint_with_its_random_numbers(begin: Any) -> None:
    with begin() as run:
        for step in range(10):
            run.log({"loss": float(step)}, env_step=step)
        checkpoint = run.save_checkpoint({"w": np.arange(3.0)}, score=1.0, keep=2)
        expected = random.random(), float(np.random.rand())
        for step in range(10, 15):
            run.log({"loss": -1.0}, env_step=step)
        run.scope("test", at=checkpoint).log({"return": 7.0})
    assert checkpoint.path == run.folder / "ckpt" / "iteration_9.ckpt"

    with begin(resume="must") as run:
        restored = run.restore("best")
        assert restored.state["w"].tolist() == [0.0, 1.0, 2.0]
        assert restored.clocks == {"env_step": 9}
        assert (random.random(), float(np.random.rand())) == expected
        for step in range(10, 13):
            run.log({"loss": float(step)}, env_step=step)
        again = run.save_checkpoint({"w": np.zeros(1)}, score=0.5)
        assert not again.is_best  # the score of the first attempt counts

    table = run.book.metrics(["loss", "test/return"], x="env_step")
    assert table["loss"].drop_null().to_pylist() == [float(step) for step in range(13)]
    assert table["test/return"].drop_null().to_pylist() == [7.0]
    rows = run.book.checkpoints()
    assert rows["checkpoint_id"].to_pylist() == [checkpoint.id, again.id]
    assert rows["path"].to_pylist() == ["ckpt/iteration_9.ckpt", "ckpt/iteration_12.ckpt"]


def test_a_run_that_crashes_again_before_its_next_checkpoint_goes_back_to_the_same_one(begin: Any) -> None:
    with begin() as run:
        run.log({"loss": 0.0}, env_step=0)
        checkpoint = run.save_checkpoint({"i": 0})
        run.log({"loss": -1.0}, env_step=1)
    for attempt in (1, 2, 3):
        with begin(resume="must") as run:
            restored = run.restore()
            assert (restored.id, restored.state["i"]) == (checkpoint.id, 0)
            run.log({"loss": float(attempt)}, env_step=1)
    assert run.book.metrics(["loss"], x="env_step")["loss"].to_pylist() == [0.0, 3.0]


def test_deleting_old_checkpoints_does_not_turn_the_clocks_back(begin: Any) -> None:
    with begin() as run:
        for step in range(4):
            run.clock(env_step=step)
            run.save_checkpoint({"i": step}, keep=1)
        assert run.clocks_now() == {"env_step": 3}
        run.log({"x": 1.0})
    assert run.book.metrics(["x"])["env_step"].to_pylist() == [3]
    rows = run.book.checkpoints(everything=True)
    gone = [step for step, kept in zip(rows["env_step"].to_pylist(), rows["kept"].to_pylist(), strict=True) if not kept]
    assert gone == [0, 1, 2]


def test_pictures_and_films_stand_in_the_book_with_their_clocks(begin: Any) -> None:
    with begin() as run:
        run.scope("test").log_image("frame", np.zeros((4, 6, 3), np.uint8), env_step=5)
        run.log_video("film", np.zeros((3, 8, 8, 3), np.uint8), fps=10, env_step=6)
        assert run.bill()["media"]["spooled_bytes"] == 72 + 576
    encode_spooled(run.folder)
    media = run.book.media()
    assert media["key"].to_pylist() == ["test/frame", "film"]
    assert media["env_step"].to_pylist() == [5, 6]
    assert media["width"].to_pylist() == [6, 8]
    for path in media["path"].to_pylist():
        assert locate(run.folder, path) == str(run.folder / path)


def test_what_is_no_picture_does_not_stop_a_run_that_is_not_strict(begin: Any) -> None:
    with begin(strict=False) as run:
        with pytest.warns(rollbook.errors.RollbookWarning, match="int64"):
            run.log_image("x", np.full((4, 4), 300, np.int64))
        with pytest.warns(rollbook.errors.RollbookWarning, match="cannot be written"):
            assert run.save_checkpoint({"agent": object()}).path is None
        drops = run.bill()["drops"]
    assert (drops["media_refused"], drops["checkpoint_failed"]) == (1, 1)


def test_where_a_run_came_from_is_on_its_page(begin: Any) -> None:
    with begin() as run:
        pass
    info = run.book.info
    assert info.packages["numpy"] == np.__version__
    assert info.cpu["cores"] >= 1
