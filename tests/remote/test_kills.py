"""Killed at any moment of a pull, a push or the merging of short writers, the next call goes on, and no row is lost or
doubled."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import rollbook
from cases import some_of
from rollbook.book.book import Book
from rollbook.book.repair.doctor import verify
from rollbook.journal.writer import Writer
from rollbook.remote import open_remote, views
from rollbook.remote.pull import pull
from rollbook.remote.push import push
from rollbook.schema import manifest
from rollbook.schema.addresses import is_copy
from rollbook.storage.sealing.folder import seal
from rollbook.storage.sealing.merge import Sizes
from stores import Faults, Proxy
from waiting import PATIENCE

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="a killed child is a fork")

SENT = ("replace", "link", "unlink", "rename")


def killed_at(step: int, work: Callable[[], object]) -> bool:
    """Whether a process that does this work was killed: right before its so-manieth change of a name."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    left = [step]

    def counted(own: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **named: object) -> object:
            left[0] -= 1
            if left[0] < 0:
                os._exit(9)
            return own(*arguments, **named)

        return call

    try:
        for name in SENT:
            setattr(os, name, counted(getattr(os, name)))
        work()
        os._exit(0)
    except BaseException:
        os._exit(1)


def steps_of(path: object) -> list[int]:
    views.forget()
    return sorted(rollbook.open(path).one().metrics(["train/return"])["env_step"].to_pylist())


def shorts(root: Path, writers: int) -> Path:
    """A run with as many writers that came and went, sealed part by part."""
    run = rollbook.init("cartpole", "ppo", dir=root, sinks=[], keeper="inline")
    for number in range(writers):
        writer = Writer(str(run.folder), main=False)
        writer.open()
        log = writer.make_log(writer.channel())
        for step in range(number * 8, number * 8 + 8):
            log({"train/return": step * 0.5}, env_step=step)
        writer.close()
    run.finish()
    return Path(run.folder)


def test_a_pull_that_is_killed_goes_on_and_leaves_a_copy_or_no_run(tmp_path: Path) -> None:
    folder = shorts(tmp_path / "runs", 2)
    place, store = open_remote(f"{tmp_path}/store"), f"file://{tmp_path}/store"
    push(folder, store)
    here = tmp_path / "here" / "cartpole" / folder.name
    step, kills = 0, 0
    while killed_at(step, lambda: pull(place, f"cartpole/{folder.name}", tmp_path / "here")):
        kills += 1
        if not manifest.look(here).is_empty:
            assert is_copy(here)
        step += 1
        if step % 3 == 0:
            shutil.rmtree(here, ignore_errors=True)
    assert kills > 3
    assert is_copy(here)
    assert steps_of(here) == steps_of(store) == list(range(16))
    assert Book(here).problems() == []


def test_a_push_that_is_killed_goes_on_and_doubles_nothing(tmp_path: Path) -> None:
    folder = shorts(tmp_path / "runs", 2)
    store, kills = f"file://{tmp_path}/store", 0
    while killed_at(kills, lambda: push(folder, store)):
        kills += 1
    assert kills > 5
    assert steps_of(store) == list(range(16))
    assert rollbook.open(store).one().status == "finished"


PUSHER = """
import os, sys
import obstore.store, pyarrow.parquet
from rollbook.remote.push import push
for _ in sys.stdin:
    child = os.fork()
    if not child:
        push(sys.argv[1], sys.argv[2])
        os._exit(0)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Strike(Faults):
    """Kills a process at its so-manieth request; the store performs that one, or never hears of it."""

    def __init__(self, request: int, is_performed: bool) -> None:
        super().__init__()
        self.left, self.pid, self.is_performed, self.began = request, 0, is_performed, threading.Event()

    def chance(self, request: object) -> float:
        assert self.began.wait(PATIENCE)
        if self.left == 0:
            os.kill(self.pid, signal.SIGKILL)
            self.reset = 0.0 if self.is_performed else 1.0
        self.left -= 1
        return 0.0 if self.left == -1 else 1.0


@pytest.mark.parametrize("is_performed", some_of([True, False], 1))
def test_a_push_to_an_object_store_that_is_killed_at_any_request_goes_on(
    tmp_path: Path, proxy: Proxy, bucket: str, is_performed: bool
) -> None:
    folder = shorts(tmp_path / "runs", 2)
    pipe, kills = subprocess.PIPE, 0
    command = [sys.executable, "-c", PUSHER, str(folder), bucket]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as pusher:
        assert pusher.stdin is not None
        assert pusher.stdout is not None
        while True:
            strike = proxy.faults = Strike(kills, is_performed)
            print("push", file=pusher.stdin, flush=True)
            strike.pid = int(pusher.stdout.readline())
            strike.began.set()
            status = int(pusher.stdout.readline())
            if status == 0:
                break
            assert status == -signal.SIGKILL
            kills += 1
    proxy.faults = Faults()
    assert kills > 5
    assert steps_of(bucket) == list(range(16))
    assert rollbook.open(bucket).one().status == "finished"


def test_merging_of_short_writers_that_is_killed_loses_and_doubles_nothing(
    tmp_path: Path,
) -> None:
    soon = Sizes(many_small=4, many_writers=4)
    run = rollbook.init("cartpole", "ppo", dir=tmp_path / "runs", sinks=[], keeper="inline")
    for number in range(6):
        writer = Writer(str(run.folder), main=False)
        writer.open()
        log = writer.make_log(writer.channel())
        for step in range(number * 20, number * 20 + 20):
            log({"train/return": step * 0.5}, env_step=step)
        writer.close()
    kills = 0
    while killed_at(kills % 40, lambda: seal(str(run.folder), sizes=soon)) and kills < 80:
        kills += 1
        assert steps_of(run.folder) == list(range(120))
    assert 1 < kills < 80  # a fast machine merges between two of them
    assert steps_of(run.folder) == list(range(120))
    assert not list((run.folder / "data").glob("metrics/wide/*.L00.*.parquet"))
    run.finish()
    assert verify(run.folder) == []
    assert len(Book(run.folder).writers) == 7
