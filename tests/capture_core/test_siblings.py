"""Runs that are trained side by side and take arrays with a leading seed axis."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollbook
from rollbook.errors import BadInput, LoggingFailed
from rollbook.run.siblings import open_siblings
from rollbook.schema.run_files import journal_folder
from rollbook.system.files import names_in
from waiting import PATIENCE, until

pytestmark = pytest.mark.usefixtures("sealed")


class FakeRun:
    """Remembers what it was asked to do."""

    def __init__(self, **arguments: Any) -> None:
        self.arguments = arguments
        self.calls: list[Any] = []
        self.counts: dict[str, int] = {}
        self.status = "running"

    def __getattr__(self, name: str) -> Any:
        if name not in ("log", "log_many", "store", "clock", "note"):
            raise AttributeError(name)

        def call(*args: Any, **clocks: Any) -> None:
            self.calls.append((name, *args, clocks))

        return call

    def dump(self, **clocks: Any) -> dict[str, float]:
        return {"seed": self.arguments["seed"], **clocks}

    def scope(self, name: str, at: Any = None) -> FakeRun:
        scope = FakeRun(scope=name, at=at)
        scope.calls = self.calls
        return scope

    def count(self, cause: str, n: int = 1, message: str = "") -> None:
        self.counts[cause] = self.counts.get(cause, 0) + n

    def _end_writing(self, status: str) -> None:
        self.status = status

    def finish(self, status: str = "finished") -> None:
        self.status = status


def test_each_run_has_its_seed_and_the_first_alone_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rollbook.run.session.init", FakeRun)
    asked = [{"name": "terminal"}, "terminal", "csv"]
    group = rollbook.siblings(3, seeds=[7, 5, 9], project="p", run_id="r", sinks=asked)
    assert [run.arguments["seed"] for run in group] == [7, 5, 9] == list(group.seeds)
    assert [run.arguments["run_id"] for run in group] == ["r-7", "r-5", "r-9"]
    assert [run.arguments["sinks"] for run in group] == [asked, ["csv"], ["csv"]]
    assert {run.arguments["project"] for run in group} == {"p"}
    group = rollbook.siblings(2, seeds=10)
    assert [run.arguments["seed"] for run in group] == [10, 11]
    assert [run.arguments.get("sinks") for run in group] == [None, []]
    assert [run.arguments["seed"] for run in open_siblings(2, open_run=FakeRun)] == [0, 1]


@pytest.mark.parametrize(("n", "seeds"), [(0, None), (-1, None), (2, [1]), (2, [1, 1]), (True, None), ("2", None)])
def test_numbers_that_do_not_fit_are_refused(n: Any, seeds: Any) -> None:
    with pytest.raises(BadInput, match=r"found|must be an integer"):
        open_siblings(n, seeds=seeds, open_run=FakeRun)


def test_if_one_cannot_be_opened_the_others_are_ended() -> None:
    opened: list[FakeRun] = []

    def open_run(**arguments: Any) -> FakeRun:
        if len(opened) == 2:
            raise OSError("full")
        opened.append(FakeRun(**arguments))
        return opened[-1]

    with pytest.raises(OSError, match="full"):
        open_siblings(3, open_run=open_run)
    assert [run.status for run in opened] == ["crashed", "crashed"]


def test_each_run_gets_its_slice_and_what_has_no_seed_axis_goes_to_all() -> None:
    group = open_siblings(2, open_run=FakeRun)
    group.log(
        {"loss": np.array([1.0, 2.0]), "nested": {"l": [3, 4], "s": 5}, "lr": 0.1, "z": np.array(9), "t": "x"},
        env_step=np.array([10, 20]),
        epoch=3,
    )
    assert [run.calls for run in group] == [
        [("log", {"loss": 1.0, "nested": {"l": 3, "s": 5}, "lr": 0.1, "z": 9, "t": "x"}, {"env_step": 10, "epoch": 3})],
        [("log", {"loss": 2.0, "nested": {"l": 4, "s": 5}, "lr": 0.1, "z": 9, "t": "x"}, {"env_step": 20, "epoch": 3})],
    ]
    assert type(group[0].calls[0][1]["loss"]) is float


def test_columns_may_be_shared_or_apart() -> None:
    group = open_siblings(2, open_run=FakeRun)
    group.log_many({"r": np.array([[1, 2, 3], [4, 5, 6]]), "lr": [0.1, 0.2, 0.3]}, env_step=np.arange(3))
    for run, expected in zip(group, ([1, 2, 3], [4, 5, 6]), strict=True):
        ((verb, columns, clocks),) = run.calls
        assert verb == "log_many"
        assert columns["r"].tolist() == expected
        assert columns["lr"] == [0.1, 0.2, 0.3]
        assert clocks["env_step"].tolist() == [0, 1, 2]
    group.log_many({"r": [[1], [2]]}, env_step=[[5], [6]])
    assert [run.calls[-1] for run in group] == [
        ("log_many", {"r": [1]}, {"env_step": [5]}),
        ("log_many", {"r": [2]}, {"env_step": [6]}),
    ]


def test_an_array_of_another_length_is_counted_and_left_out() -> None:
    group = open_siblings(2, open_run=FakeRun)
    group.log({"bad": np.zeros(3), "good": np.ones(2)})
    assert [run.calls[0][1] for run in group] == [{"good": 1.0}, {"good": 1.0}]
    assert group[0].counts == {"sibling_axis": 1}


def test_the_other_verbs_reach_every_run() -> None:
    group = open_siblings(2, open_run=FakeRun)
    group.store({"a": np.array([1.0, 2.0])}, b=3)
    group.clock(env_step=[4, 5])
    group.note("hello", epoch=1)
    group.scope("train").log({"x": [1, 2]})
    assert group[1].calls == [
        ("store", {"a": 2.0, "b": 3}, {}),
        ("clock", {"env_step": 5}),
        ("note", "hello", {"epoch": 1}),
        ("log", {"x": 2}, {}),
    ]
    assert group.dump(env_step=1) == [{"seed": 0, "env_step": 1}, {"seed": 1, "env_step": 1}]
    assert [scope.arguments["at"] for scope in group.scope("test", at=["c0", "c1"])] == ["c0", "c1"]
    assert len(group) == 2


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (None, "finished"),
        (ValueError(), "crashed"),
        (KeyboardInterrupt(), "killed"),
        (SystemExit(0), "finished"),
        (SystemExit(3), "crashed"),
    ],
)
def test_all_end_together(error: Any, status: str) -> None:
    group = open_siblings(2, open_run=FakeRun)
    try:
        with group:
            if error is not None:
                raise error
    except (ValueError, KeyboardInterrupt, SystemExit):
        pass
    assert [run.status for run in group] == [status, status]


def test_the_end_of_each_is_on_disk_before_the_first_keeper_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keepers seal while the others end, and a program that is killed meanwhile has crashed no run."""
    from rollbook.run import start_and_finish

    waited: list[list[str]] = []

    def wait(run: rollbook.Run) -> None:
        pages = [json.loads(page.read_text()) for page in tmp_path.glob("p/*/run.json")]
        waited.append([page["status"] for page in pages])

    monkeypatch.setattr(start_and_finish, "_let_keeper_finish", wait)
    group = rollbook.siblings(3, project="p", dir=tmp_path, keeper="inline", sinks=[])
    group.log({"loss": np.arange(3.0)})
    said: list[str] = []
    for run in group:
        run.on_finish(said.append)
    group.finish()
    group.finish()
    assert waited == [["finished"] * 3] * 3
    assert said == ["finished"] * 3


@pytest.mark.parametrize("keeper", ["process", "thread"])
def test_a_keeper_that_is_ready_first_takes_nothing_from_the_end(
    keeper: str, tmp_path: Path, monkeypatch: Any, tuned: Any, capfd: Any
) -> None:
    """It has removed the journal and shipped everything before this process waits for it: the terminal has the last
    mark, and nothing is said to be missing in the remote. It has removed the journal alone: the rest is waited for."""
    from rollbook.keeper import launch
    from rollbook.run import start_and_finish

    let_finish, seen = start_and_finish._let_keeper_finish, []

    def late(run: rollbook.Run) -> None:
        until(lambda: not names_in(journal_folder(run.folder)))
        another, thread = {"another that has closed"}, run._parts.keeper_thread
        seen.append(thread.finish(0.0, another) if thread else launch.wait_done(run.folder, 0.0, another))
        let_finish(run)

    monkeypatch.setattr(start_and_finish, "_let_keeper_finish", late)
    tuned(finish_seconds=PATIENCE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        group = rollbook.siblings(2, project="p", dir=tmp_path / "runs", keeper=keeper, remote=str(tmp_path / "far"))
        group.log({"loss": np.arange(2.0)}, env_step=1)
        group.finish()
    assert seen == [False, False]
    assert capfd.readouterr().err.count("| finished") == 1
    assert len(rollbook.open(tmp_path / "far")) == 2


def test_a_keeper_that_seals_as_soon_as_the_writer_has_closed_takes_no_row_from_the_sinks_here(
    tmp_path: Path, monkeypatch: Any, capfd: Any
) -> None:
    """It need not wait until this process wakes it."""
    from rollbook.keeper.launch import wake

    run = rollbook.init("p", "r", dir=tmp_path, keeper="process")
    run.log({"loss": 1.0}, env_step=1)
    close = run._writer.close

    def closed() -> None:
        close()
        wake(str(run.folder))
        until(lambda: not names_in(journal_folder(run.folder)))

    monkeypatch.setattr(run._writer, "close", closed)
    run.finish()
    assert "loss 1.0 | finished" in capfd.readouterr().err


def test_one_that_raises_at_its_end_keeps_none_of_the_others_open(tmp_path: Path) -> None:
    group = rollbook.siblings(3, project="p", dir=tmp_path, keeper="inline", sinks=[], strict=True)
    group[0].on_finish(lambda status: 1 / 0)
    with pytest.raises(LoggingFailed, match="ZeroDivisionError"):
        group.finish()
    assert [run.status for run in group] == ["finished"] * 3
    assert all(rollbook.open(tmp_path).one(id=run.id).status == "finished" for run in group)


def test_tensors_are_taken_apart_without_reading_them() -> None:
    torch = pytest.importorskip("torch")
    group = open_siblings(2, open_run=FakeRun)
    group.log({"loss": torch.tensor([1.0, 2.0])})
    assert [float(run.calls[0][1]["loss"]) for run in group] == [1.0, 2.0]
    assert all(isinstance(run.calls[0][1]["loss"], torch.Tensor) for run in group)


def test_real_runs_hold_each_its_own_rows(tmp_path: Path) -> None:
    arguments = {"project": "p", "name": "x", "dir": tmp_path, "keeper": "inline", "sinks": [], "strict": True}
    with rollbook.siblings(3, seeds=[4, 5, 6], **arguments) as group:
        for i in range(20):
            with group.timer("update"):
                group.scope("update").log({"loss": np.arange(3.0) + i}, env_step=i)
        group.log_many({"r": np.arange(12.0).reshape(3, 4)}, env_step=np.arange(4))
        with pytest.raises(LoggingFailed):
            group.log({"bad": np.zeros(2)})
    for seed, run in zip((4, 5, 6), group, strict=True):
        book = rollbook.open(tmp_path).one("p/x", seed=seed)
        table = book.metrics(["update/loss"], x="env_step")
        assert table["update/loss"].drop_null().to_pylist() == [float(i + seed - 4) for i in range(20)]
        assert book.metrics(["r"])["r"].drop_null().to_pylist() == [float(4 * (seed - 4) + i) for i in range(4)]
        assert book.timings().num_rows == 20
        assert run.status == "finished"
