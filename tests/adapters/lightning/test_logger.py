"""The logger, with what Lightning asks of one but without Lightning."""

from __future__ import annotations

import functools
import importlib
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import rollbook
from rollbook.errors import MissingExtra
from rollbook.run.run import Run

MODULE = "rollbook.adapters.lightning"
PACKAGES = ("lightning.pytorch", "pytorch_lightning", "lightning.fabric", "lightning_fabric")
EVERY_PART = [
    ".".join(parts[: n + 1])
    for package in PACKAGES
    for tail in ("loggers.logger", "utilities.rank_zero")
    for parts in [f"{package}.{tail}".split(".")]
    for n in range(len(parts))
]


class Host:
    """One process of one of the packages that hold Lightning: on other ranks than 0 nothing is done."""

    def __init__(self, package: str, rank: int) -> None:
        self.package, self.rank = package, rank
        self.Logger = type("Logger", (), {})

    def rank_zero_only(self, method: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(method)
        def only(*args: object, **kwargs: object) -> object:
            return method(*args, **kwargs) if self.rank == 0 else None

        return only

    def rank_zero_experiment(self, method: Callable[..., object]) -> Callable[..., object]:
        return lambda logger: method(logger) if self.rank == 0 else SimpleNamespace()


@pytest.fixture(params=[("lightning.pytorch", 0)])
def host(request: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    host = Host(*request.param)
    for name in EVERY_PART:
        monkeypatch.delitem(sys.modules, name, raising=False)
    for name in EVERY_PART:
        if name.startswith(f"{host.package}.") or host.package.startswith(f"{name}.") or name == host.package:
            module: Any = ModuleType(name)
            module.__path__ = []
            monkeypatch.setitem(sys.modules, name, module)
    loggers: Any = sys.modules[f"{host.package}.loggers.logger"]
    loggers.Logger, loggers.rank_zero_experiment = host.Logger, host.rank_zero_experiment
    rank: Any = sys.modules[f"{host.package}.utilities.rank_zero"]
    rank.rank_zero_only = host.rank_zero_only
    sys.modules.pop(MODULE, None)
    yield host
    sys.modules.pop(MODULE, None)


def logger(*args: Any, **kwargs: Any) -> Any:
    return importlib.import_module(MODULE).RollbookLogger(*args, **kwargs)


@pytest.mark.parametrize("host", [(package, 0) for package in PACKAGES], indirect=True)
def test_it_is_a_logger_of_the_package_that_is_loaded(host: Host, run: Run) -> None:
    assert isinstance(logger(run=run), host.Logger)


def test_rows_have_the_native_keys_and_the_step_of_the_trainer(host: Host, run: Run, rows: Any) -> None:
    log = logger(run=run)
    log.log_metrics({"train_loss": 0.5, "epoch": 0}, step=9)
    log.log_metrics({"train_loss": 0.25, "epoch": 1.0}, step=19)
    log.log_metrics({"train_loss": 0.125, "epoch": 1.5}, step=20)
    log.log_metrics({"epoch": 2}, step=21)
    log.log_metrics({"plain": 1.0})
    assert rows(run, "train_loss", x="step") == [(9, 0.5), (19, 0.25), (20, 0.125)]
    assert rows(run, "train_loss", x="epoch") == [(0, 0.5), (1, 0.25), (1, 0.125)]
    assert rows(run, "plain") == [(1.0,)]
    assert run.bill()["drops"] == {}
    assert (log.name, log.version, log.experiment) == (run.name, run.id, run)
    log.finalize("success")
    log.close()
    assert run.status == "running"


@pytest.mark.parametrize("params", [{"lr": 0.1, "net": {"width": 8}}, Namespace(lr=0.1, net={"width": 8})])
def test_hyperparameters_are_the_configuration(host: Host, run: Run, params: Any) -> None:
    run.config["seed_of_mine"] = 4
    logger(run=run).log_hyperparams(params)
    logger(run=run).log_hyperparams({"lr": 9.0, "seed_of_mine": 5})
    logger(run=run).log_hyperparams(None)
    assert (run.config["lr"], run.config["net"], run.config["seed_of_mine"]) == (0.1, {"width": 8}, 4)


def test_a_run_is_opened_at_the_first_use_and_outlives_finalize(host: Host) -> None:
    log = logger("vision", name="cnn", seed=3, sinks=(), keeper="inline", save_dir="files")
    assert len(rollbook.open(".")) == 0
    log.log_metrics({"loss": 1.0}, step=1)
    log.finalize("success")
    log.log_metrics({"test_loss": 2.0}, step=1)
    assert (log.name, log.save_dir, log.root_dir) == ("cnn", "files", "files")
    log.close()
    (book,) = rollbook.open("runs")
    assert (book.project, book.name, book.seed, book.status) == ("vision", "cnn", 3, "finished")
    assert book.series("test_loss", x="step").mean.tolist() == [2.0]


@pytest.mark.parametrize(("does", "left"), [("fit", [0, 1, 2, 2]), ("test", [0, 1, 2, 2, 2, 3, 4])])
def test_a_fit_that_goes_on_from_a_checkpoint_shows_each_step_once_and_a_test_of_one_hides_nothing(
    host: Host, does: str, left: list[int]
) -> None:
    def begin(**more: Any) -> Any:
        log = logger("vision", name="cnn", seed=3, sinks=(), keeper="inline", **more)
        log.log_graph(SimpleNamespace(trainer=SimpleNamespace(state=SimpleNamespace(fn=SimpleNamespace(value=does)))))
        return log

    log = begin()
    for step in range(5):
        log.log_metrics({"loss": 1.0}, step=step)
    log.close()
    log = begin(resume="must")
    log.log_metrics({"loss": 0.5}, step=2)
    log.log_metrics({"val_loss": 0.5}, step=2)
    log.close()
    (book,) = rollbook.open("runs")
    steps = book.metrics(["loss", "val_loss"])["step"].to_pylist()
    assert (len(book.attempts), sorted(steps)) == (2, left)


@pytest.mark.parametrize("host", [("lightning.pytorch", 1)], indirect=True)
def test_other_ranks_open_no_run_and_write_nothing(host: Host) -> None:
    log = logger("vision")
    log.log_metrics({"loss": 1.0}, step=1)
    log.log_hyperparams({"lr": 1})
    log.after_save_checkpoint(SimpleNamespace())
    log.finalize("failed")
    log.close()
    assert (log.name, log.version) == ("vision", "")
    assert len(rollbook.open(".")) == 0


def test_each_file_that_was_saved_is_registered_once(host: Host, run: Run, tmp_path: Path) -> None:
    best, last = tmp_path / "best.ckpt", tmp_path / "last.ckpt"
    best.write_text("b")
    last.write_text("l")
    callback = SimpleNamespace(
        last_model_path=str(last),
        current_score=0.5,
        best_model_path=str(best),
        best_model_score=0.25,
        best_k_models={str(best): 0.25, str(tmp_path / "deleted.ckpt"): 1.0},
        mode="min",
    )
    log = logger(run=run)
    log.log_metrics({"val_loss": 0.25}, step=7)
    log.after_save_checkpoint(callback)
    log.after_save_checkpoint(callback)
    log.after_save_checkpoint(SimpleNamespace(best_k_models=3))  # counted, not raised
    saved = run.book.checkpoints().to_pylist()
    assert sorted((Path(row["path"]).name, row["score"], row["step"], row["is_best"]) for row in saved) == [
        ("best.ckpt", 0.25, 7, True),
        ("last.ckpt", 0.5, 7, False),
    ]
    assert run.bill()["drops"] == {"checkpoint": 1}


def test_without_lightning_the_line_that_installs_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in EVERY_PART:
        monkeypatch.delitem(sys.modules, name, raising=False)
    for name in ("lightning", "pytorch_lightning", "lightning_fabric"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr("importlib.util.find_spec", lambda *_: None)
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    with pytest.raises(MissingExtra, match=r"pip install 'rollbook(-core)?\[lightning\]'"):
        importlib.import_module(MODULE)
