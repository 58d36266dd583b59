"""Few files are left of a finished run, whatever opened it, and whenever the process that removes the others dies."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollbook
from cases import some_of
from few_files import FEW, empty_folders, files_of, without_names
from rollbook.book.book import Book
from rollbook.book.repair.doctor import verify
from rollbook.keeper import one_run, sweeping
from rollbook.keeper.launch import wait_done
from rollbook.keeper.own_files import Lock
from rollbook.keeper.sweeping import sweep_finished
from rollbook.schema.finished import finished_path, former_writers, keeper_file, sealed_lasts
from rollbook.schema.manifest import ManifestLock
from rollbook.schema.run_files import RunFile
from rollbook.system.files import read_json
from waiting import PATIENCE, until


@pytest.fixture(autouse=True, scope="module")
def _outside_of_a_checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A run that is started in one whose files were changed keeps the changes in one file more."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("started_here"))
        yield


@pytest.mark.parametrize("keeper", ["process", "thread", "inline", "import"])
def test_a_finished_run_of_one_row_is_eight_files_and_no_empty_folder(tmp_path: Path, keeper: str) -> None:
    with rollbook.init("p", "one", dir=tmp_path, keeper=keeper, config={"lr": 0.1}, sinks=[]) as run:
        run.log({"loss": 0.5}, env_step=1)
    lock = Lock(str(run.folder))
    until(lambda: not lock.taken() and not os.path.exists(lock.path), "the keeper is done")
    assert without_names(run.folder) == sorted(FEW)
    assert empty_folders(run.folder) == []
    assert verify(run.folder) == []
    assert run.book.status == "finished"
    assert run.book.writers[0]["state"] == "closed"


def test_each_further_table_is_one_more_file(tmp_path: Path) -> None:
    with rollbook.init("p", "more", dir=tmp_path, keeper="inline", sinks=[]) as run:
        run.log({"loss": 0.5}, env_step=1)
        run.log_episode(return_=1.0, length=3, env_step=1)
        with run.timer("update"):
            pass
    assert without_names(run.folder) == sorted([*FEW, "data/episodes", "data/timings"])


ALONE = FEW - {"data/metrics/long"}
"""Those of a run without a row of numbers."""


def one_value(_place: Path) -> None:
    with rollbook.init("p", "n", keeper="inline", sinks=[]) as run:
        run.log({"loss": 0.5}, env_step=1)


def one_episode(_place: Path) -> None:
    with rollbook.init("p", "n", keeper="inline", sinks=[]) as run:
        run.log_episode(return_=1.0, length=3, env_step=1)


def one_checkpoint(_place: Path) -> None:
    with rollbook.init("p", "n", keeper="inline", sinks=[]) as run:
        run.save_checkpoint({"w": 1}, env_step=1)


def one_picture(_place: Path) -> None:
    with rollbook.init("p", "n", keeper="inline", sinks=[]) as run:
        run.log_image("frame", np.zeros((8, 8, 3), np.uint8))


def wandbs_module(_place: Path) -> None:
    import rollbook.wandb as wandb

    wandb.init(project="p", name="n", config={"lr": 1})
    wandb.log({"loss": 0.5})
    wandb.finish()


def summary_writer(place: Path) -> None:
    from rollbook.adapters.tensorboard import SummaryWriter

    writer = SummaryWriter(str(place / "events"))
    writer.add_scalar("loss", 0.5, 1)
    writer.close()


@pytest.mark.parametrize(
    ("door", "files"),
    [
        (one_value, FEW),
        (one_episode, {*ALONE, "data/episodes"}),
        (one_checkpoint, {*ALONE, "data/checkpoints", "ckpt/.index.json", "ckpt/iteration_1.ckpt"}),
        (one_picture, {*ALONE, "data/media", "media/*.png", "media/.spool/ledger.json"}),
        (wandbs_module, FEW),
        (summary_writer, FEW),
    ],
)
def test_whatever_opened_a_run_it_has_the_files_of_its_rows_and_seven_others(
    door: Callable[[Path], None], files: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/disk-format.md says of each of the seven what it is there for."""
    monkeypatch.setenv("ROLLBOOK_DIR", str(tmp_path / "runs"))
    monkeypatch.chdir(tmp_path)
    door(tmp_path)
    (book,) = rollbook.open(tmp_path / "runs")
    lock = Lock(str(book.path))
    until(lambda: not lock.taken() and not os.path.exists(lock.path), "the keeper is done")
    here = {"media/*.png" if name.startswith("media/frame-") else name for name in without_names(book.path)}
    assert here == files
    assert verify(book.path) == []


@pytest.fixture(scope="module")
def unswept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run with all files of its keeper, as a keeper leaves them that is killed before it removes one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(one_run, "sweep_finished", lambda *_: False)
        options: dict[str, Any] = {"dir": tmp_path_factory.mktemp("unswept"), "keeper": "inline"}
        with rollbook.init("p", "n", **options, sinks=["csv"], config={"lr": 0.1}) as run:
            for step in range(20):
                run.log({"loss": 1 / (step + 1)}, env_step=step)
    assert (run.folder / "data" / "keeper" / "plan.json").exists()
    return run.folder


def kept(folder: Path) -> dict[str, Any]:
    """All that readers, a later attempt and `verify` find in the run."""
    run = Book(folder)
    return {
        "loss": run.metrics(["loss"])["loss"].to_pylist(),
        "marks": len(list(run.marks())),
        "about": run.info,
        "writers": former_writers(folder),
        "sealed": sealed_lasts(folder),
        "plan": keeper_file(folder, RunFile.PLAN),
        "rules": keeper_file(folder, RunFile.RULES),
        "problems": verify(folder),
    }


def sweep(folder: Path) -> bool:
    lock = Lock(str(folder))
    assert lock.acquire()
    try:
        return sweep_finished(str(folder), lock)
    finally:
        lock.release()


def killed_before(step: int, work: Callable[[], object]) -> bool:
    """Whether a process that does the work was killed before its n-th change of a file; false: it was through."""
    pid = os.fork()
    if pid == 0:
        left = iter(range(step))

        def counted(change: Callable[..., object]) -> Callable[..., object]:
            def first_count(*arguments: Any, **options: Any) -> object:
                if next(left, None) is None:
                    os.kill(os.getpid(), signal.SIGKILL)
                return change(*arguments, **options)

            return first_count

        for name in ("unlink", "rmdir", "replace", "fsync", "open"):
            setattr(os, name, counted(getattr(os, name)))
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("first", some_of([0, 1], 1))
def test_killed_at_any_step_of_the_sweep_nothing_is_lost_and_the_next_keeper_sweeps(
    first: int, unswept: Path, tmp_path: Path
) -> None:
    """At every second step."""
    before = kept(unswept)
    assert before["problems"] == []
    assert before["plan"]["sinks"] == [{"name": "csv"}]
    assert before["rules"]["cursor"]
    for step in itertools.count(first, 2):
        folder = Path(shutil.copytree(unswept, tmp_path / str(step) / unswept.name))
        was_killed = killed_before(step, lambda folder=folder: sweep(folder))
        assert kept(folder) == before, f"killed before step {step}"
        if not was_killed:
            break
        assert sweep(folder)
        assert kept(folder) == before, f"swept after a kill before step {step}"
        left = {name for name in files_of(folder) if not name.startswith(("log/", "data/keeper/cursors/"))}
        assert len(left) == len(FEW), f"killed before step {step}"
        assert empty_folders(folder) == []
        shutil.rmtree(folder)
    assert step > 12


def test_a_run_goes_on_after_a_sweep_with_what_its_sinks_and_rules_knew(unswept: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(unswept, tmp_path / "p" / unswept.name))
    before = kept(folder)
    sweep(folder)
    options: dict[str, Any] = {"dir": tmp_path, "resume": "must", "keeper": "inline", "sinks": ["csv"]}
    with rollbook.init("p", "n", **options) as run:
        run.log({"loss": 0.0}, env_step=20)
    lines = (run.folder / "log" / "csv" / "metrics.csv").read_text().splitlines()
    assert [line.rpartition(",")[2] for line in lines[1:]] == [*map(str, before["loss"]), "0.0"]
    after = kept(run.folder)
    assert after["rules"]["cursor"].items() > before["rules"]["cursor"].items()
    assert len(after["writers"]) == 2
    assert after["problems"] == []
    assert len([name for name in files_of(run.folder) if name.startswith("data/keeper/")]) == 2, (
        "cursors, finished.json"
    )


def test_the_files_of_an_earlier_rollbook_say_the_same_and_go_when_the_run_goes_on(
    unswept: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(unswept, tmp_path / "p" / unswept.name))
    before = kept(folder)
    keeper = folder / "data" / "keeper"
    finished = read_json(finished_path(folder))
    (keeper / "finished.json").unlink()
    (folder / "data" / "writers.json").write_text(json.dumps(finished["writers"]))
    (keeper / "sealed.json").write_text(json.dumps(finished["sealed"]))
    (folder / "data" / "page.lock").touch()
    (keeper / "seal-lock").touch()
    assert kept(folder) == before
    part = next((folder / "data" / "metrics" / "long").glob("merged.*"))
    part.rename(tmp_path / part.name)
    assert "is not here" in verify(folder)[0]
    shutil.move(tmp_path / part.name, part)
    with rollbook.init("p", "n", dir=tmp_path, resume="must", keeper="inline", sinks=[]) as run:
        run.log({"loss": 0.0}, env_step=20)
    assert not {"data/writers.json", "data/keeper/sealed.json", "data/page.lock"} & set(files_of(run.folder))
    assert kept(run.folder)["writers"].items() > before["writers"].items()
    assert verify(run.folder) == []


def test_nothing_is_swept_while_a_writer_or_another_keeper_may_need_it(
    unswept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(unswept, tmp_path / unswept.name))
    before = files_of(folder)
    other = folder / "data" / "keeper" / "lock-other-host"
    other.touch()
    assert not sweep(folder)
    other.unlink()
    writer = folder / "data" / "journal" / "0000-1-a"
    writer.mkdir(parents=True)
    assert not sweep(folder)
    writer.rmdir()
    with ManifestLock(str(folder)):  # `init` opens an attempt
        monkeypatch.setattr(sweeping, "ManifestLock", partial(ManifestLock, seconds=0.0))
        assert not sweep(folder)
    assert files_of(folder) == before
    assert sweep(folder)


def test_a_training_that_waits_for_its_keeper_finds_that_it_has_swept(unswept: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(unswept, tmp_path / unswept.name))
    (writer,) = [name for name, about in former_writers(folder).items() if about.get("main")]
    sweep(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rollbook.keeper.launch.closed_writers", lambda _: {writer})
        assert wait_done(folder, PATIENCE)
        patch.setattr("rollbook.keeper.launch.closed_writers", lambda _: {"another"})
        assert not wait_done(folder, 0.0)


def test_a_lock_whose_file_was_removed_by_its_last_holder_locks_the_next_file(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with ManifestLock(str(tmp_path)) as first:
        assert first.is_held
        with ManifestLock(str(tmp_path), seconds=0.0) as second:
            assert not second.is_held
    with ManifestLock(str(tmp_path)) as third:
        assert third.is_held
    assert os.listdir(tmp_path / "data") == []
