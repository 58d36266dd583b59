"""The run as an output of a logger with Stable-Baselines3's interface: one call of `write` a dump."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fake_sb3 import Figure, HParam, Image, Video
from rollbook.errors import LoggingFailed


class Logger:
    """Hands each row to its outputs, as Stable-Baselines3's logger does."""

    def __init__(self, *outputs: Any) -> None:
        self.outputs, self.row, self.excluded = outputs, {}, {}

    def record(self, key: str, value: object, exclude: str | tuple[str, ...] | None = None) -> None:
        self.row[key] = value
        self.excluded[key] = exclude if isinstance(exclude, tuple) else (exclude or "",)

    def dump(self, step: int = 0) -> None:
        for output in self.outputs:
            output.write(self.row, self.excluded, step)
        self.row.clear()
        self.excluded.clear()


def test_each_dump_is_a_row_at_its_native_step(sb3_host: Any, run: Any, rows: Any) -> None:
    logger = Logger(sb3_host.RollbookOutputFormat(run))
    for step in (2048, 4096):
        logger.record("rollout/ep_rew_mean", step / 100)
        logger.record("train/approx_kl", np.float32(0.1))
        logger.record("time/fps", step)
        logger.dump(step)
    assert rows(run, "rollout/ep_rew_mean", x="env_step") == [(2048, 20.48), (4096, 40.96)]
    assert rows(run, "time/fps", x="step") == [(2048, 2048), (4096, 4096)]
    assert rows(run, "train/approx_kl") == [(float(np.float32(0.1)),)] * 2


def test_arrays_become_histograms_and_single_elements_numbers(sb3_host: Any, run: Any, rows: Any) -> None:
    logger = Logger(sb3_host.RollbookOutputFormat(run))
    logger.record("single", np.array([1.5]))
    logger.record("zero_d", np.array(2.5))
    logger.record("many", np.arange(10.0))
    logger.record("list", [1.0, 2.0, 3.0])
    logger.record("text", "hello")
    logger.record("none", None)
    logger.dump(1)
    assert rows(run, "single") == [(1.5,)]
    assert rows(run, "zero_d") == [(2.5,)]
    assert [row["key"] for row in run.book.histograms().to_pylist()] == ["many", "list"]
    assert [(row["key"], row["text"]) for row in run.book.text().to_pylist()] == [("text", "hello")]
    assert run.bill()["drops"] == {}


def test_pictures_films_and_figures_are_media_of_the_run(sb3_host: Any, run: Any) -> None:
    figures = pytest.importorskip("matplotlib.figure")
    logger = Logger(sb3_host.RollbookOutputFormat(run))
    logger.record("image", Image(np.zeros((3, 8, 10), dtype=np.uint8), "CHW"), exclude=("stdout", "log"))
    logger.record("video", Video(np.zeros((1, 4, 3, 8, 10), dtype=np.uint8), 20))
    logger.record("figure", Figure(figures.Figure(), close=True))
    logger.dump(3)
    found = {row["key"]: row for row in run.book.media().to_pylist()}
    assert {key: row["kind"] for key, row in found.items()} == {"image": "image", "video": "video", "figure": "figure"}
    assert (found["image"]["width"], found["image"]["height"]) == (10, 8)
    assert (found["video"]["frames"], found["video"]["fps"]) == (4, 20)


def test_hyper_parameters_go_to_configuration_and_summary(sb3_host: Any, run: Any) -> None:
    logger = Logger(sb3_host.RollbookOutputFormat(run))
    logger.record("hparams", HParam({"lr": 0.1}, {"rollout/ep_len_mean": 0}))
    logger.dump(0)
    assert run.config["hparams"] == {"lr": 0.1}
    assert run.summary["rollout/ep_len_mean"] == 0.0


def test_a_strict_run_raises_what_would_have_been_counted(sb3_host: Any, strict_run: Any) -> None:
    logger = Logger(sb3_host.RollbookOutputFormat(strict_run))
    logger.record("a", object())
    with pytest.raises(LoggingFailed):
        logger.dump()


@pytest.mark.parametrize("exclude", ["rollbook", ("csv", "rollbook")])
def test_a_key_that_is_excluded_from_rollbook_is_not_in_the_book(sb3_host: Any, run: Any, exclude: Any) -> None:
    logger = Logger(sb3_host.RollbookOutputFormat(run))
    logger.record("shown", 1, exclude="csv")
    logger.record("hidden", 2, exclude=exclude)
    logger.dump()
    assert run.book.keys() == ["shown"]
