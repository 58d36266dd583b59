"""The older Stable-Baselines' logger: `writekvs(kvs)` and `Logger.CURRENT`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

import rollbook
from rollbook.adapters.sb3 import RollbookOutputFormat, legacy

GROUPS = ("main",)
pytestmark = pytest.mark.frameworks


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Any]:
    with rollbook.init("tests", "legacy", dir=tmp_path / "runs", sinks=(), keeper="inline") as opened:
        yield opened


@pytest.fixture(autouse=True)
def own_current() -> Iterator[None]:
    legacy.Logger.CURRENT = legacy.Logger.DEFAULT = legacy.Logger(None, [])
    yield
    legacy.Logger.CURRENT = legacy.Logger.DEFAULT = legacy.Logger(None, [])


class NeptuneLogger(legacy.KVWriter):
    """As the seed article has it."""

    def __init__(self, experiment: Any) -> None:
        super().__init__()
        self._experiment = experiment

    def writekvs(self, kvs: Any) -> None:
        for k, v in sorted(kvs.items()):
            if hasattr(v, "dtype"):
                v = float(v)
            self._experiment.append((k, v))


def test_an_output_of_the_older_shape_is_appended_to_the_current_logger(run: Any) -> None:
    experiment: list[Any] = []
    outputs = legacy.Logger.CURRENT.output_formats
    outputs += [NeptuneLogger(experiment), RollbookOutputFormat(run)]
    legacy.logkv("total_timesteps", 128)
    legacy.logkvs({"loss": np.float32(0.5)})
    legacy.logkv_mean("m", 1.0)
    legacy.logkv_mean("m", None)
    legacy.logkv_mean("m", 2.0)
    legacy.dumpkvs()
    assert experiment == [("loss", 0.5), ("m", 1.5), ("total_timesteps", 128)]
    assert run.book.metrics(["loss", "m"], x="env_step").select(["env_step", "loss", "m"]).to_pylist() == [
        {"env_step": 128, "loss": 0.5, "m": 1.5}
    ]
    assert legacy.getkvs() == {}


def test_configuring_again_keeps_outputs_that_a_user_appended(run: Any, tmp_path: Path) -> None:
    mine, book = NeptuneLogger([]), RollbookOutputFormat(run)
    legacy.Logger.CURRENT.output_formats += [mine, book]
    legacy.configure(str(tmp_path), ["csv"])
    assert legacy.Logger.CURRENT.output_formats[1:] == [mine, book]
    legacy.record_tabular("a", 1)
    legacy.dump_tabular()
    assert (tmp_path / "progress.csv").read_text() == "a\n1\n"
    legacy.reset()
    assert legacy.Logger.CURRENT is legacy.Logger.DEFAULT


def test_a_block_may_have_a_logger_of_its_own(tmp_path: Path, run: Any) -> None:
    book = RollbookOutputFormat(run)
    legacy.Logger.CURRENT.output_formats.append(book)
    before = legacy.Logger.CURRENT
    with legacy.ScopedConfigure(str(tmp_path), ["json"]):
        assert legacy.get_dir() == str(tmp_path)
        legacy.logkv("inside", 1)
        legacy.dumpkvs()
    assert legacy.Logger.CURRENT is before
    assert run.status == "running"
    assert (tmp_path / "progress.json").read_text() == '{"inside": 1}\n'


def test_ranks_above_0_write_files_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMI_RANK", "2")
    legacy.configure(str(tmp_path))
    legacy.logkv("a", 1)
    legacy.dumpkvs()
    assert [path.name for path in tmp_path.iterdir()] == ["log-rank002.txt"]


def test_timed_blocks_add_up_in_the_row() -> None:
    @legacy.profile("step")
    def work() -> int:
        return 3

    assert work() == work() == 3
    assert legacy.getkvs()["wait_step"] > 0.0


def test_levels_filter_text(capsys: pytest.CaptureFixture[str]) -> None:
    from stable_baselines3.common.logger import HumanOutputFormat

    legacy.Logger.CURRENT.output_formats.append(HumanOutputFormat(sys.stdout))
    legacy.set_level(legacy.WARN)
    legacy.info("quiet")
    legacy.warn("loud")
    assert legacy.get_level() == legacy.WARN
    assert capsys.readouterr().out == "loud\n"
