"""An `init` that does not return closes what it opened: nothing is locked, nothing half of a run stays."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest

import rollbook
from cases import some_of
from interrupting import KINDS, interrupt_at
from rollbook.run.current import opened

KEEPERS = ["process", "thread", "inline"]


def threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("rollbook")}


@pytest.mark.parametrize("keeper", KEEPERS)
def test_a_run_whose_init_was_interrupted_as_its_thread_began_is_continued_by_the_same_process(
    keeper: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollbook.init("p", "r", dir=tmp_path, sinks=[], keeper="inline").finish()

    def interrupted(_thread: object) -> None:
        raise KeyboardInterrupt

    start = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        rollbook.init("p", "r", dir=tmp_path, sinks=[], keeper=keeper, resume="must")
    monkeypatch.setattr(threading.Thread, "start", start)
    assert not opened
    with rollbook.init("p", "r", dir=tmp_path, sinks=[], keeper=keeper, resume="must") as run:
        run.log({"a": 1.0})
    assert run.book.metrics(["a"])["a"].to_pylist() == [1.0]


@pytest.mark.parametrize("apart", [151, pytest.param(3, marks=pytest.mark.long)])
@pytest.mark.parametrize("resume", some_of(["must", "never"], 1))
def test_an_init_that_is_interrupted_anywhere_leaves_nothing_open_and_the_run_as_it_was(
    resume: str, apart: int, tmp_path: Path, nothing_is_sealed: None
) -> None:
    with rollbook.init("p", "r", dir=tmp_path / "first", sinks=[], keeper="inline") as run:
        run.log({"a": 0.0})
    event, reached, before = 0, True, threads()
    while reached:
        event += apart
        error, root = KINDS[event % len(KINDS)](), tmp_path / str(event)
        shutil.copytree(tmp_path / "first", root)
        reached, place = interrupt_at(
            event, error, lambda root=root: rollbook.init("p", "r", dir=root, sinks=[], keeper="inline", resume=resume)
        )
        if not reached:
            opened[-1].finish()
        assert not opened, place
        assert threads() <= before, place
        for left in (root / "p").iterdir():
            assert (left / "run.json").exists(), f"half of a run is left by {place}"
        with rollbook.init("p", "r", dir=root, run_id=run.id, sinks=[], keeper="inline", resume="must") as again:
            again.log({"a": 1.0})
        assert again.book.metrics(["a"])["a"].to_pylist() == [0.0, 1.0], place
        shutil.rmtree(root)
