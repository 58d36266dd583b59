"""SIGKILL of the trainer, of its keeper, of both: real processes, real signals."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from typing import Any

import pytest

from rollbook.keeper.launch import launch
from rollbook.keeper.own_files import Lock
from rollbook.system.liveness import is_alive
from waiting import PATIENCE, pause, until

KEEPER = """
import sys, time
from rollbook.keeper.main import Keeper
from rollbook.sinks import Jsonl

class Slow(Jsonl):
    def truncate(self, position):
        super().truncate(position)
        print("cut back", flush=True)

    def write(self, rows):
        half = len(rows) // 2
        for some in (rows[:half], rows[half:]):
            super().write(some)
            if some and len(sys.argv) > 2:
                print("half written", flush=True)
                sys.stdin.read()   # until it is killed: written, and not noted
            time.sleep(0.005)

Keeper(sys.argv[1], sinks=[Slow()]).run()
"""

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals"),
    pytest.mark.usefixtures("real_sealing_children"),
]

TRAINER = """
import json, os, sys, time
from rollbook.schema.clocks import STANDARD
from rollbook.journal.writer import Writer
from rollbook.keeper.launch import launch, wait_done
folder, rows, pause = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
os.makedirs(folder + "/data/keeper", exist_ok=True)
writer = Writer(folder, main=True)
writer.open()
json.dump({"status": "running", "id": "x", "clocks": list(STANDARD), "attempts": [{"n": 1, "writer": writer.id}]},
          open(folder + "/run.json", "w"))
json.dump({"sinks": [{"name": "jsonl"}], "host_seconds": None}, open(folder + "/data/keeper/plan.json", "w"))
launch(folder)
log = writer.make_log(writer.channel())
out = os.open(sys.argv[4], os.O_WRONLY | os.O_CREAT)
for i in range(rows):
    log({"i": float(i)}, env_step=i)
    os.pwrite(out, str(i).encode().rjust(20), 0)   # what `log` returned from
    if pause:
        time.sleep(pause)
writer.close()
print(wait_done(folder, 300))
"""


@pytest.fixture
def bare_run(make_run: Any) -> Any:
    """A run folder without any writer in it yet."""
    import shutil

    run = make_run()
    run.writer.close()
    shutil.rmtree(run.folder)
    return run


def keeper_of(run: Any, eventually: Any) -> dict[str, Any]:
    return eventually(lambda: is_alive(run.state()) and run.state())  # type: ignore[no-any-return]


def last_acknowledged(path: Any) -> int:
    text = path.read_bytes() if path.exists() else b""
    return int(text) if text.strip() else -1


def test_a_trainer_that_ends_well_finds_all_done(bare_run: Any, python: Any, tmp_path: Any) -> None:
    trainer = python(TRAINER, bare_run.folder, 500, 0, tmp_path / "ack")
    said, _ = trainer.communicate(timeout=600)
    assert said.strip() == "True"
    assert [line["i"] for line in bare_run.lines()] == [float(i) for i in range(500)]
    until(lambda: not bare_run.state(), "the keeper has removed what only it needs")
    assert len(bare_run.keeper_file("finished.json")["writers"]) == 1


def test_the_keeper_finishes_the_book_of_a_killed_trainer(
    bare_run: Any, python: Any, tmp_path: Any, eventually: Any
) -> None:
    trainer = python(TRAINER, bare_run.folder, 10**9, 0.00002, tmp_path / "ack")
    keeper = keeper_of(bare_run, eventually)
    eventually(lambda: last_acknowledged(tmp_path / "ack") > 500)
    trainer.kill()
    trainer.wait()
    acknowledged = last_acknowledged(tmp_path / "ack")
    eventually(lambda: is_alive(keeper) is False)
    found = [line["i"] for line in bare_run.lines()]
    assert found == [float(i) for i in range(len(found))]
    assert len(found) in (acknowledged + 1, acknowledged + 2)
    assert (bare_run.info()["status"], bare_run.state()["phase"]) == ("crashed", "done")
    assert Lock(str(bare_run.folder)).taken() is False


def test_the_trainer_does_not_notice_that_its_keeper_was_killed(
    bare_run: Any, python: Any, tmp_path: Any, eventually: Any
) -> None:
    trainer = python(TRAINER, bare_run.folder, 10**9, 0.0005, tmp_path / "ack")
    keeper = keeper_of(bare_run, eventually)
    os.kill(keeper["pid"], signal.SIGKILL)
    seen = last_acknowledged(tmp_path / "ack")
    eventually(lambda: last_acknowledged(tmp_path / "ack") > seen + 100)
    assert trainer.poll() is None
    until(lambda: not Lock(str(bare_run.folder)).taken(), "the killed keeper has let go")
    assert launch(bare_run.folder) is True  # what resume, attach and repair do
    keeper = keeper_of(bare_run, eventually)
    trainer.kill()
    trainer.wait()
    eventually(lambda: is_alive(keeper) is False)
    found = [line["i"] for line in bare_run.lines()]
    assert found == [float(i) for i in range(len(found))]
    assert len(found) > last_acknowledged(tmp_path / "ack")


def stands_still(pid: int) -> bool:
    """Whether SIGSTOP has reached a process; where there is no /proc, that is taken for granted."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "T"
    except FileNotFoundError:
        return True


def test_after_both_were_killed_the_next_keeper_carries_on(
    bare_run: Any, python: Any, tmp_path: Any, eventually: Any
) -> None:
    trainer = python(TRAINER, bare_run.folder, 10**9, 0.0002, tmp_path / "ack")
    keeper = keeper_of(bare_run, eventually)
    eventually(lambda: bare_run.keeper_file("cursors/jsonl.json").get("rows", 0) > 100)
    os.kill(keeper["pid"], signal.SIGSTOP)
    until(lambda: stands_still(keeper["pid"]), "the keeper has stopped")
    trainer.kill()
    os.kill(keeper["pid"], signal.SIGKILL)
    trainer.wait()
    until(lambda: not Lock(str(bare_run.folder)).taken(), "the killed keeper has let go")
    assert bare_run.info()["status"] == "running"
    assert launch(bare_run.folder) is True
    eventually(lambda: bare_run.state().get("pid") != keeper["pid"] and bare_run.state()["phase"] == "done")
    found = [line["i"] for line in bare_run.lines()]
    assert found == [float(i) for i in range(len(found))]
    assert len(found) in (last_acknowledged(tmp_path / "ack") + n for n in (1, 2))
    assert bare_run.info()["status"] == "crashed"


@pytest.mark.parametrize("kills", [6, pytest.param(100, marks=pytest.mark.long)])
def test_many_killed_keepers_neither_lose_nor_repeat_a_row(kills: int, make_run: Any, python: Any) -> None:
    """Two threads log all the while; most keepers are killed between writing rows and noting that they did."""
    from rollbook.storage.sealing.folder import seal

    run = make_run()
    run.writer.first_segment_bytes = run.writer.largest_segment_bytes = 4096
    chance = random.Random(20)
    counts, allowed = [0, 0], [0]  # a slow machine logs no more than a quick one
    stop = threading.Event()

    def work(thread: int) -> None:
        log, key = run.log(), f"t{thread}"
        while not stop.is_set():
            for _ in range(10 if counts[thread] < allowed[0] else 0):
                log({key: float(counts[thread])}, env_step=counts[thread])
                counts[thread] += 1
            pause(0.005)

    output = run.folder / "log" / "jsonl" / "metrics.jsonl"

    def noted() -> int:
        position = run.keeper_file("cursors/Slow.json").get("position", {})
        return int(position.get("log/jsonl/metrics.jsonl", 0))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    unnoted = 0
    try:
        for kill in range(kills):
            allowed[0] += 200
            if kill % 8 == 7:  # part of what the next keeper has to forward is in Parquet
                seal(run.folder)
            holds = kill % 2 == 0
            keeper = python(KEEPER, run.folder, *["holds"] * holds, stdin=subprocess.PIPE)
            if holds:
                assert [keeper.stdout.readline() for _ in range(2)] == ["cut back\n", "half written\n"]
            elif chance.random() < 0.9:
                before = noted()
                until(lambda before=before: noted() > before)  # the lives do some of the work
                pause(chance.uniform(0.0, 0.03))
            keeper.kill()
            keeper.wait()
            unnoted += holds and noted() < output.stat().st_size
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert unnoted == kills // 2  # each of these would be repeated by a keeper that does not cut its output back
    run.writer.close()
    python(KEEPER, run.folder).wait(PATIENCE)
    lines = run.lines()
    for thread in range(2):
        found = [line[f"t{thread}"] for line in lines if f"t{thread}" in line]
        assert found == [float(i) for i in range(counts[thread])]
