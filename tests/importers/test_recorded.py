"""A training that a run records is shown once, though its framework also keeps files of its own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import rollbook

OPTIONS: dict[str, Any] = {"sinks": (), "keeper": "inline"}


def table(folder: Path, moment: float | None = None) -> None:
    """What a framework writes: no number says that it is the run's."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "progress.csv").write_text("step,loss\n1,0.5\n2,0.25\n")
    if moment is not None:
        os.utime(folder / "progress.csv", (moment, moment))


def shown(place: Path) -> list[str]:
    return sorted(book.name.rpartition("-")[2] for book in rollbook.open(place))


def test_files_that_an_adapter_names_are_no_run_of_their_own_from_the_first_moment_on(tmp_path: Path) -> None:
    run = rollbook.init("p", "ours", dir=tmp_path / "runs", **OPTIONS)
    table(tmp_path / "logs" / "a")
    table(tmp_path / "logs" / "b")
    assert shown(tmp_path) == ["a", "b", "ours"]
    run.internals.lies_beside(str(tmp_path / "logs" / "a"))
    assert shown(tmp_path) == ["b", "ours"]
    run.log({"loss": 9.0}, step=1)
    run.finish()
    assert shown(tmp_path) == ["b", "ours"]
    (tmp_path / "x").mkdir()
    (tmp_path / "runs").rename(tmp_path / "x" / "runs")
    (tmp_path / "logs").rename(tmp_path / "x" / "logs")
    assert shown(tmp_path / "x") == ["b", "ours"], "both were moved"


def test_what_was_there_before_the_run_or_came_after_it_is_a_training_of_its_own(tmp_path: Path) -> None:
    run = rollbook.init("p", "ours", dir=tmp_path / "runs", **OPTIONS)
    run.internals.lies_beside(str(tmp_path / "logs"))
    created = run.book.info.created
    run.finish()
    for name, moment in (("before", created - 3600), ("during", created), ("after", created + 3600)):
        table(tmp_path / "logs" / name, moment)
    assert shown(tmp_path) == ["after", "before", "ours"]


@pytest.mark.parametrize("place", ["runs", "runs/p"])
def test_a_folder_that_holds_the_run_itself_says_nothing_about_what_lies_deeper(tmp_path: Path, place: str) -> None:
    run = rollbook.init("p", "ours", dir=tmp_path / "runs", **OPTIONS)
    run.internals.lies_beside(str(tmp_path / place))
    table(tmp_path / place)
    table(tmp_path / place / "another")
    assert "another" in str(shown(tmp_path / "runs"))
    assert len(rollbook.open(tmp_path / "runs")) == 2
    run.finish()


def test_every_adapter_whose_framework_writes_files_names_their_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROLLBOOK_DIR", str(tmp_path / "runs"))
    from rollbook.adapters.spinningup import EpochLogger
    from rollbook.adapters.tensorboard import SummaryWriter

    writer = SummaryWriter(tmp_path / "tb" / "ppo")
    writer.add_scalar("a", 1.0, 1)
    assert shown(tmp_path) == ["ppo"]
    writer.close()
    logger = EpochLogger(tmp_path / "data" / "vpg_s3")
    logger.log_tabular("a", 1.0)
    logger.dump_tabular()
    assert shown(tmp_path) == ["ppo", "vpg"]
    del logger
    rollbook.finish()
