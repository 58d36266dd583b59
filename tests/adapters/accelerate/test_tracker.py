"""The tracker, with what Accelerate asks of one but without Accelerate."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

import rollbook
from rollbook.adapters._versions import UnsupportedVersion
from rollbook.errors import MissingExtra
from rollbook.run.run import Run

MODULE = "rollbook.adapters.accelerate"


class Host:
    """One process of Accelerate: the rank decides whether methods of trackers do anything."""

    def __init__(self, rank: int) -> None:
        self.rank, self.registered = rank, dict[str, type]()
        self.tracking: Any = ModuleType("accelerate.tracking")
        self.tracking.GeneralTracker = type("GeneralTracker", (), {})
        self.tracking.on_main_process = self.on_main_process
        self.tracking.LOGGER_TYPE_TO_CLASS = self.registered
        self.tracking.register_tracker_class = lambda cls: self.registered.update({cls.name: cls})

    def on_main_process(self, method: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(method)
        def run_on_main(*args: object, **kwargs: object) -> object:
            return method(*args, **kwargs) if self.rank == 0 else None

        return run_on_main


@pytest.fixture(params=[0])
def host(request: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    """Accelerate with nothing but what the tracker uses."""
    host = Host(request.param)
    package: Any = ModuleType("accelerate")
    package.tracking = host.tracking
    monkeypatch.setitem(sys.modules, "accelerate", package)
    monkeypatch.setitem(sys.modules, "accelerate.tracking", host.tracking)
    sys.modules.pop(MODULE, None)
    yield host
    sys.modules.pop(MODULE, None)


def module() -> Any:
    return importlib.import_module(MODULE)


def test_rows_have_the_native_keys_and_the_step_of_the_program(host: Host, run: Run, rows: Any) -> None:
    tracker = module().RollbookTracker("project", run=run)
    tracker.start()
    assert tracker.tracker is run
    tracker.store_init_configuration({"lr": 0.1, "nested": {"a": 1}})
    tracker.log({"loss": 0.5, "epoch": 0.25}, step=3)
    tracker.log({"loss": 0.25}, step=4, env_step=100)
    tracker.log({"loss": 0.125})
    assert rows(run, "loss", x="step") == [(3, 0.5), (4, 0.25), (4, 0.125)]  # one without a step: the run's current one
    assert rows(run, "loss", x="env_step") == [(100, 0.25), (100, 0.125)]
    assert (run.config["lr"], run.config["nested"]) == (0.1, {"a": 1})
    assert run.bill()["drops"] == {}
    tracker.finish()
    assert run.status == "running"  # whoever opened it ends it


def test_a_setting_that_the_program_gave_itself_stays(host: Host, run: Run) -> None:
    run.config["lr"] = 1.0
    module().RollbookTracker(run=run).store_init_configuration({"lr": 0.1, "batch": 4})
    assert (run.config["lr"], run.config["batch"]) == (1.0, 4)


def test_a_run_that_the_tracker_opens_ends_with_the_training(host: Host) -> None:
    options = {"name": "ppo", "seed": 7, "sinks": (), "keeper": "inline"}
    tracker = module().RollbookTracker("walker", **options)
    tracker.start()
    tracker.start()
    tracker.log({"loss": 1.0}, step=1)
    tracker.finish()
    (book,) = rollbook.open("runs")
    assert (book.project, book.name, book.seed, book.status) == ("walker", "ppo", 7, "finished")


@pytest.mark.parametrize("host", [1], indirect=True)
def test_other_processes_open_no_run_and_write_nothing(host: Host) -> None:
    tracker = module().RollbookTracker("walker")
    for call in (tracker.start, tracker.finish, lambda: tracker.log({"loss": 1.0}), lambda: tracker.log_images({})):
        call()
    tracker.store_init_configuration({"lr": 1})
    assert tracker.tracker is None
    assert len(rollbook.open(".")) == 0


def test_pictures_are_kept_at_their_step(host: Host, run: Run) -> None:
    numpy = pytest.importorskip("numpy")
    tracker = module().RollbookTracker(run=run)
    tracker.log_images({"frames": numpy.zeros((2, 4, 4, 3), "uint8")}, step=5)
    tracker.log_images({"frames": 3}, step=6)
    media = run.book.table("media").to_pylist()
    assert [(row["key"], row["step"]) for row in media] == [("frames", 5), ("frames", 5)]
    assert run.bill()["drops"] == {"images": 1}


def test_the_name_is_known_once_registered(host: Host) -> None:
    module().register()
    module().register()
    assert host.registered == {"rollbook": module().RollbookTracker}


def test_an_accelerate_that_takes_no_new_names_is_named_with_the_way_out(host: Host) -> None:
    del host.tracking.register_tracker_class
    with pytest.raises(UnsupportedVersion, match="log_with=RollbookTracker"):
        module().register()


def test_without_accelerate_the_line_that_installs_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "accelerate", None)
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    with pytest.raises(MissingExtra, match=r"pip install 'rollbook(-core)?\[accelerate\]'"):
        module()
