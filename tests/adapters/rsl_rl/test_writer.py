"""The log writer, with what rsl_rl asks of one but without rsl_rl."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import rollbook
from rollbook.errors import MissingExtra
from rollbook.run.run import Run

MODULE = "rollbook.adapters.rsl_rl"


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[type]:
    """rsl_rl's base class of log writers."""
    for name in ("rsl_rl", "rsl_rl.utils", "rsl_rl.utils.log_writer"):
        module: Any = ModuleType(name)
        module.__path__ = []
        monkeypatch.setitem(sys.modules, name, module)
    module.LogWriter = type("LogWriter", (), {})
    sys.modules.pop(MODULE, None)
    yield module.LogWriter
    sys.modules.pop(MODULE, None)


def writer(*args: Any, **kwargs: Any) -> Any:
    return importlib.import_module(MODULE).RollbookWriter(*args, **kwargs)


def test_numbers_have_the_native_tags_and_the_iteration(host: type, run: Run, rows: Any) -> None:
    log = writer(log_dir="logs/anymal/first", run=run)
    assert isinstance(log, host)
    for it in range(3):
        log.add_scalar("Loss/value", 1.0 / (it + 1), it)
        log.add_scalar("Train/mean_reward", float(it), it)
        log.add_scalar("Train/mean_reward/time", float(it), 1000 + it)  # seconds, not iterations
    assert rows(run, "Loss/value", x="step") == [(0, 1.0), (1, 0.5), (2, 1.0 / 3)]
    assert rows(run, "Train/mean_reward", x="step") == [(0, 0.0), (1, 1.0), (2, 2.0)]
    assert "Train/mean_reward/time" not in run.book.keys()  # noqa: SIM118
    assert run.book.series("train/return").mean.tolist() == [0.0, 1.0, 2.0]
    assert run.bill()["drops"] == {}
    log.stop()
    assert run.status == "running"


@pytest.mark.parametrize("env", [{"terrain": "flat"}, SimpleNamespace(to_dict=lambda: {"terrain": "flat"})])
def test_both_configurations_are_kept(host: type, run: Run, env: Any) -> None:
    writer("logs", run=run).store_config(env, {"num_steps_per_env": 24})
    assert (run.config["env"], run.config["train"]) == ({"terrain": "flat"}, {"num_steps_per_env": 24})


def test_a_run_that_the_writer_opens_takes_names_from_the_folder_and_ends_with_learn(host: type) -> None:
    log = writer("logs/anymal/first", sinks=(), keeper="inline")
    log.store_config(None, {"seed": 42})
    log.add_scalar("Loss/value", 1.0, 0)
    log.stop()
    (book,) = rollbook.open("runs")
    assert (book.project, book.name, book.seed, book.status) == ("anymal", "first", 42, "finished")
    assert "env" not in book.config


def test_options_of_the_configuration_win(host: type) -> None:
    writer("logs/anymal/first", project="walk", name="ppo", seed=3, sinks=(), keeper="inline").stop()
    (book,) = rollbook.open("runs")
    assert (book.project, book.name, book.seed) == ("walk", "ppo", 3)


def test_models_are_registered_where_they_are(host: type, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "model_50.pt"
    path.write_text("weights")
    log = writer("logs", run=run)
    log.save_model(str(path), 50)
    (row,) = run.book.checkpoints().to_pylist()
    assert (Path(row["path"]).name, row["step"]) == ("model_50.pt", 50)


def test_without_rsl_rl_the_line_that_installs_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rsl_rl", None)
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    with pytest.raises(MissingExtra, match=r"pip install 'rollbook(-core)?\[rsl_rl\]'"):
        importlib.import_module(MODULE)
