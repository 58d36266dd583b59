"""A process that opens and ends many runs, such as a sweep or a test suite, keeps nothing of those that ended."""

from __future__ import annotations

import gc
import os
import threading
from pathlib import Path

import pytest

import rollbook
from cases import some_of
from rollbook.journal.writer import Writer
from rollbook.keeper.own_files import Lock
from rollbook.run.run import Run


def kept() -> dict[str, int]:
    """What a process holds: descriptors, threads, fork hooks of ours, runs, writers and locks."""
    gc.collect()
    kinds = {kind.__name__: 0 for kind in (Run, Writer, Lock)}
    for thing in gc.get_objects():
        if type(thing) in (Run, Writer, Lock):
            kinds[type(thing).__name__] += 1
    descriptors = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    return {"descriptors": descriptors, "threads": threading.active_count(), **kinds}


@pytest.mark.parametrize("runs", [10, pytest.param(200, marks=pytest.mark.long)])
@pytest.mark.parametrize("keeper", some_of(["thread", "inline"], 1))
def test_a_run_that_has_ended_leaves_nothing_in_the_process(
    keeper: str, runs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks: list[object] = []
    register = getattr(os, "register_at_fork", None)
    if register is not None:
        monkeypatch.setattr(os, "register_at_fork", lambda **given: (hooks.append(given), register(**given)))
    once: dict[str, int] = {}
    for n in range(runs):
        with rollbook.init("p", "r", dir=tmp_path, sinks=[], rules=(), keeper=keeper) as run:
            run.log({"a": 1.0}, env_step=n)
        del run
        if n == 4:  # the first ones load what all of them use
            once = kept()
            hooks.clear()
    now = kept()
    assert {name: now[name] - once[name] for name in now if now[name] > once[name] + 2} == {}
    assert hooks == []
