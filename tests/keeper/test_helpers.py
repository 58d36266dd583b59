"""A run with several writers is sealed by several processes, each of which may be killed."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rollbook.book.book import Book
from rollbook.schema.finished import sealed_lasts
from rollbook.storage.sealing import helpers
from rollbook.storage.sealing.folder import seal
from rollbook.storage.sealing.merge import SIZES, Sizes
from waiting import PATIENCE, pause, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are found and killed by the Linux rules")

LEADER = """
import sys
from rollbook.storage.sealing.folder import seal
from rollbook.storage.sealing.merge import Sizes
print(seal(sys.argv[1], processes=3, sizes=Sizes(helper_bytes=1)), flush=True)
"""

FEW = Sizes(helper_bytes=1)
"""Several processes seal however little has been left."""


def log_of(run: Any, writer: Any) -> Any:
    writer.first_segment_bytes = writer.largest_segment_bytes = 4096
    return run.log(writer)


def test_several_processes_seal_what_one_would(make_run: Any, tmp_path: Path) -> None:
    run = make_run()
    for number, writer in enumerate([run.writer, *(run.add_writer() for _ in range(4))]):
        log = log_of(run, writer)
        for i in range(900):
            log({"i": float(i), "who": number}, env_step=i)
            if i % 100 == 0:
                log({f"rare{i}": float(i)}, env_step=i)
    alone = shutil.copytree(run.folder, tmp_path / "alone")
    by_one = seal(alone)
    by_several = seal(run.folder, processes=3, sizes=FEW)
    assert by_several.segments == by_one.segments > 20
    assert (by_several.rows, by_several.problems) == (by_one.rows, [])

    def parts(folder: Path) -> list[str]:
        return sorted(path.name for path in (folder / "data").rglob("*.parquet"))

    def remembered(folder: Path) -> Any:
        return sealed_lasts(folder)

    assert parts(run.folder) == parts(alone)
    assert remembered(run.folder) == remembered(alone)
    for writer in run.writers:
        writer.close()
    seal(run.folder, final=True, processes=2, sizes=FEW)
    book = Book(run.folder)
    rows = Counter(zip(*(book.metrics(["who", "i"])[name].to_pylist() for name in ("who", "i")), strict=True))
    assert rows == Counter((who, float(i)) for who in range(5) for i in range(900))
    assert not book.problems()


def test_helpers_come_only_where_much_waits_and_take_half_of_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    much = SIZES.helper_bytes
    assert helpers._shares({"a": much, "b": much // 2}, 8, much) == [["a", "b"]]  # not worth a second process
    assert helpers._shares({}, 8, much) == []
    sixteen = {f"w{number}": much for number in range(16)}
    assert [len(share) for share in helpers._shares(sixteen, 4, much)] == [4, 4, 4, 4]
    assert sorted(id for share in helpers._shares(sixteen, 5, much) for id in share) == sorted(sixteen)
    for cores, most in ((1, 1), (2, 1), (4, 2), (64, 32)):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _pid, n=cores: range(n))
        assert helpers.most_processes() == most
        assert helpers.most_processes(2) == max(1, most // 2)


def test_one_writer_is_sealed_without_help(make_run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run()
    log = log_of(run, run.writer)
    for i in range(900):
        log({"i": float(i)}, env_step=i)
    monkeypatch.setattr(helpers.subprocess, "Popen", None)
    assert seal(run.folder, processes=8, sizes=FEW).rows > 800


def test_where_no_process_can_be_started_one_seals_alone(make_run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run()
    for writer in (run.writer, run.add_writer()):
        log = log_of(run, writer)
        for i in range(900):
            log({"i": float(i)}, env_step=i)

    def refuse(*_args: object, **_options: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(helpers.subprocess, "Popen", refuse)
    assert seal(run.folder, processes=8, sizes=FEW).rows > 1600


def children_of(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


@pytest.mark.long
@pytest.mark.parametrize("kills", [2, 16])
def test_processes_that_are_killed_while_they_seal_neither_lose_nor_double_a_row(
    kills: int, make_run: Any, python: Any
) -> None:
    """Three writers log all the while; of the process that seals and its helpers one is killed, at any moment."""
    run = make_run()
    chance = random.Random(11)
    writers = [run.writer, run.add_writer(), run.add_writer()]
    counts, stop = [0] * len(writers), threading.Event()

    def work(who: int) -> None:
        log = log_of(run, writers[who])
        while not stop.is_set():
            for _ in range(20):
                log({"who": float(who), "i": float(counts[who])}, env_step=counts[who])
                counts[who] += 1
            pause(0.01)

    threads = [threading.Thread(target=work, args=(who,)) for who in range(len(writers))]
    for thread in threads:
        thread.start()
    struck: Counter[str] = Counter()
    try:
        while sum(struck.values()) < kills or len(struck) < 2:
            leader = python(LEADER, run.folder)
            helping: list[int] = []
            while leader.poll() is None and len(helping) < 2:
                helping = children_of(leader.pid)
                pause(0.002)
            pause(chance.uniform(0.0, 0.9))  # where in its work it is hit is left to chance
            if chance.random() < 0.5 and helping:
                victim = chance.choice(helping)
                if victim in children_of(leader.pid):
                    os.kill(victim, signal.SIGKILL)
                    struck["helper"] += 1
                assert "another process" not in leader.communicate(timeout=PATIENCE)[0]
            elif leader.poll() is None:
                leader.kill()
                leader.wait()
                struck["leader"] += 1
                until(lambda pids=helping: not any(Path(f"/proc/{pid}").exists() for pid in pids))  # they end with it
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    live = Book(run.folder).metrics(["who", "i"])
    for writer in writers:
        writer.close()
    seal(run.folder, final=True)
    book = Book(run.folder)
    for table in (live, book.metrics(["who", "i"])):
        rows = Counter(zip(table["who"].to_pylist(), table["i"].to_pylist(), strict=True))
        assert rows == Counter((float(who), float(i)) for who, n in enumerate(counts) for i in range(n))
    assert not book.problems()
