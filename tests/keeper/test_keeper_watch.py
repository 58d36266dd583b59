"""A keeper that dies or hangs while a run is written is replaced, and everything it does goes on."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rollbook
from cases import some_of
from rollbook.errors import RollbookWarning
from rollbook.keeper.keeper_watch import KeeperWatch
from rollbook.keeper.main import Keeper
from rollbook.keeper.own_files import Lock, state_path
from rollbook.schema.addresses import backlog, begin
from rollbook.system.files import read_json, write_json
from rollbook.system.liveness import is_alive
from waiting import PATIENCE, pause, until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")

LOOK_SECONDS = 0.25
"""How often the runs of this file look after their keeper: eight times as often as others."""

OPENER = (
    "import sys, rollbook\n"
    "run = rollbook.init('p', 'n', sinks=[{'name': 'jsonl'}], remote=sys.argv[1])\n"
    "print(run.folder, flush=True)\n"
    "sys.stdin.read()\n"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where a test's runs are; none of their keepers is left."""
    monkeypatch.setenv("ROLLBOOK_DIR", str(tmp_path / "runs"))
    monkeypatch.setenv("ROLLBOOK_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.delenv("ROLLBOOK_RUN_ID", raising=False)
    yield tmp_path
    for path in tmp_path.glob("runs/*/*"):
        holder = keeper_of(path)
        if holder.get("pid") != os.getpid() and is_alive(holder):
            os.kill(holder["pid"], signal.SIGKILL)


def keeper_of(run: Path) -> dict[str, Any]:
    return read_json(state_path(str(run)))


def a_run(how: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[rollbook.Run, Callable[..., None]]:
    """A run, and how rows are logged to it."""
    place = (folder / "place").as_uri()
    if how == "attached":
        opener = subprocess.Popen(
            [sys.executable, "-c", OPENER, place], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert opener.stdout is not None
        run = rollbook.attach(opener.stdout.readline().strip())
        opener.kill()
        opener.communicate()
        return run, run.log
    if how == "host":
        monkeypatch.setenv("ROLLBOOK_KEEPER", "host")
    run = rollbook.init("p", "n", sinks=[{"name": "jsonl"}], remote=place)
    if how != "forked":
        return run, run.log

    def log_in_a_child(row: dict[str, float], **clocks: int) -> None:
        child = os.fork()
        if not child:
            run.log(row, **clocks)
            os._exit(0)
        os.waitpid(child, 0)

    return run, log_in_a_child


@pytest.mark.filterwarnings("ignore::rollbook.errors.RollbookWarning")
@pytest.mark.parametrize(
    ("how", "death"),
    some_of(
        [(how, "SIGKILL") for how in ("own", "forked", "host", "attached")] + [("host", "SIGSTOP"), ("own", "SIGSTOP")],
        [("forked", "SIGKILL"), ("host", "SIGSTOP")].count,
    ),
)
def test_after_a_keepers_death_rows_are_forwarded_judged_sealed_and_shipped_again(
    folder: Path, how: str, death: str, monkeypatch: pytest.MonkeyPatch, tuned: Callable[..., None]
) -> None:
    tuned(keeper_look_seconds=LOOK_SECONDS)
    monkeypatch.setenv("SEAL_BYTES", "65536")
    run, log = a_run(how, folder, monkeypatch)
    log({"before": 1.0, "loss": 1.0}, env_step=0)
    jsonl = run.folder / "log" / "jsonl" / "metrics.jsonl"
    until(lambda: jsonl.exists() and '"before"' in jsonl.read_text())
    until(lambda: (backlog(run.folder) or {}).get("done"))
    first = keeper_of(run.folder)
    os.kill(first["pid"], getattr(signal, death))
    if death == "SIGSTOP":  # the run's own thread finds that in a minute
        now = [time.monotonic()]
        watch = KeeperWatch(run.folder, lambda *_: None, clock=lambda: now[0])
        while watch.starts == 0:
            now[0] += 2.0
            watch.look()
    until(lambda: is_alive(first) is False)
    died = time.time()
    log({"after": 1.0, "loss": float("nan")}, env_step=1)
    row = {f"key-{n}": 1.0 for n in range(60)}
    for _ in range(1_000):  # some segments, more than is sealed at once
        run.log(row)
    until(lambda: keeper_of(run.folder).get("pid") not in (None, first["pid"]))
    until(lambda: '"after"' in jsonl.read_text(), "the sink")
    until(lambda: run.book.alerts().num_rows, "the rules")
    until(lambda: list(run.folder.glob("data/metrics/*/*.parquet")), "sealing")
    until(lambda: float((backlog(run.folder) or {}).get("time") or 0.0) > died, "shipping")
    run.finish()
    until(lambda: not Lock(str(run.folder)).taken())
    rows = [json.loads(line) for line in jsonl.read_text().splitlines()]
    assert sum("before" in row for row in rows) == sum("after" in row for row in rows) == 1
    assert run.book.problems() == []


FORKED = (
    "import os, signal, sys, rollbook\n"
    "from rollbook.system.tuning import TUNING\n"
    f"TUNING.keeper_look_seconds = {LOOK_SECONDS}\n"
    "run = rollbook.init('p', 'n', sinks=[{'name': 'jsonl'}])\n"
    "if not os.fork():\n"
    "    for line in sys.stdin:\n"
    "        run.log({line.strip(): 1.0})\n"
    "    os._exit(0)\n"
    "print(run.folder, flush=True)\n"
    "signal.pause()\n"
)


def test_a_forked_child_starts_a_keeper_when_that_died_together_with_the_process_that_opened_the_run(
    folder: Path,
) -> None:
    opener = subprocess.Popen(
        [sys.executable, "-c", FORKED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    assert opener.stdout is not None
    assert opener.stdin is not None
    run = Path(opener.stdout.readline().strip())
    jsonl = run / "log" / "jsonl" / "metrics.jsonl"
    numbers = itertools.count()
    for death in ("before its first row", "after it"):
        first = until(lambda: Lock(str(run)).taken() and keeper_of(run))
        opener.kill()
        os.kill(first["pid"], signal.SIGKILL)
        until(lambda first=first: is_alive(first) is False)

        def heard(death: str = death) -> bool:
            """It is by a key of its own that the child looks for the keeper: more seldom than this asks."""
            opener.stdin.write(f"{death} {next(numbers)}\n")
            pause(LOOK_SECONDS / 4)
            return jsonl.exists() and death in jsonl.read_text()

        until(heard)
    opener.communicate()
    until(lambda: not Lock(str(run)).taken())
    keys = [key for line in jsonl.read_text().splitlines() for key in json.loads(line) if key.split()[-1].isdigit()]
    assert len(keys) == len(set(keys)) == next(numbers)
    assert read_json(str(run / "run.json"))["status"] == "crashed"


SUSPENDED = """
import sys, time, rollbook
run = rollbook.init("p", "n", sinks=[{"name": "jsonl"}])
print(run.folder, flush=True)
plain = time.time, time.time_ns
for line in sys.stdin:
    word, ahead = line.split()
    time.time = lambda: plain[0]() + int(ahead)
    time.time_ns = lambda: plain[1]() + int(ahead) * 10**9
    run.log({word: 1.0})
run.finish()
print(run.bill()["keeper"]["restarts"], run.bill()["remarks"], run.bill()["drops"])
"""


def test_a_machine_that_slept_and_whose_clock_jumps_costs_neither_row_nor_keeper(folder: Path) -> None:
    """Training and keeper stop and go on; an hour has gone by in between, and the clock is set twice."""
    training = subprocess.Popen(
        [sys.executable, "-c", SUSPENDED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    assert training.stdout is not None
    assert training.stdin is not None
    run = Path(training.stdout.readline().strip())
    jsonl = run / "log" / "jsonl" / "metrics.jsonl"
    for word, ahead in (("before", 0), ("later", 86_400), ("earlier", -86_400)):
        training.stdin.write(f"{word} {ahead}\n")
        until(lambda word=word: jsonl.exists() and f'"{word}"' in jsonl.read_text())
        asleep = [keeper_of(run)["pid"], training.pid]
        for pid in asleep:
            os.kill(pid, signal.SIGSTOP)
        for path in (run / "run.json", *run.glob("data/keeper/heartbeat")):
            os.utime(path, (time.time() - 3600, time.time() - 3600))
        assert rollbook.open(folder / "runs").one().status == "running"
        for pid in asleep:
            os.kill(pid, signal.SIGCONT)
    said, _none = training.communicate(timeout=PATIENCE)
    assert said.split() == ["0", "{}", "{}"]
    book = rollbook.open(folder / "runs").one()
    assert (book.status, book.problems()) == ("finished", [])
    assert [jsonl.read_text().count(f'"{word}"') for word in ("before", "later", "earlier")] == [1, 1, 1]
    assert {"before", "later", "earlier"} <= set(book.keys())


def test_a_restart_of_the_keeper_is_reported_once_and_counts_as_no_loss(
    folder: Path, tuned: Callable[..., None]
) -> None:
    tuned(keeper_look_seconds=LOOK_SECONDS)
    run = rollbook.init("p", "n", sinks=[])
    first = until(lambda: keeper_of(run.folder))
    os.kill(first["pid"], signal.SIGKILL)
    with pytest.warns(RollbookWarning, match="another one was started"):
        until(lambda: run.bill()["remarks"])
    until(lambda: run.bill()["keeper"]["at_work"])
    assert run.bill()["drops"] == {}
    assert run.bill()["remarks"] == {"keeper_restarted": 1}
    run.finish()


def test_a_keeper_that_dies_at_every_start_is_given_up_in_words_and_one_death_is_reported_once(
    make_run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the new keeper takes so long to begin that a further one is started beside it."""
    run, now, started, found = make_run(), [0.0], [], []
    from rollbook.keeper import keeper_watch

    write_json(state_path(str(run.folder)), {"phase": "running", "pid": 2, "start_time": 3})
    monkeypatch.setattr(keeper_watch, "launch", lambda folder: started.append(now[0]) or True)
    watch = KeeperWatch(run.folder, lambda *report: found.append(report), clock=lambda: now[0])
    for _ in range(1000):
        now[0] += 1.0
        watch.look()
    assert started == [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0], "ever more rarely"
    assert watch.starts == 1
    restarted, (cause, words, is_lasting) = found
    assert restarted[0] == "keeper_restarted"
    assert (cause, is_lasting) == ("no_keeper", True)
    assert "8 times in a row" in words


def test_a_keeper_that_waits_and_one_whose_watcher_slept_are_not_taken_for_hung(
    make_run: Any, make_keeper: Any, eventually: Callable[..., Any]
) -> None:
    """Looks are counted while it does not run at all: what a clock says of the time between them is nothing."""
    run, now = make_run(), [0.0]
    other = subprocess.Popen([sys.executable, "-m", "rollbook.keeper", str(run.folder)])
    try:
        until(lambda: run.state())
        watch = KeeperWatch(run.folder, lambda *_: None, clock=lambda: now[0])
        for _ in range(10):
            now[0] += 3600.0
            watch.look()
        assert other.poll() is None
        assert watch.starts == 0
    finally:
        other.kill()
        other.wait(PATIENCE)


def test_a_keeper_thread_outlives_a_sink_that_ends_its_thread(make_run: Any) -> None:
    run = make_run()

    class Leaves:
        accepts = frozenset({float})
        calls = 0

        def open(self, run: Any) -> None: ...
        def write(self, rows: Any) -> None:
            self.calls += 1
            if self.calls == 1:
                raise SystemExit("enough")

        def close(self) -> None: ...

    sink = Leaves()
    keeper = Keeper(run.folder, sinks=[sink], seal_command=(sys.executable, "-c", "")).start_thread()
    log = run.log()
    try:
        log({"a": 1.0})
        until(lambda: sink.calls)
        log({"b": 1.0})
        until(lambda: sink.calls > 1)
    finally:
        run.writer.close()
        assert keeper.finish(PATIENCE)


@pytest.mark.parametrize(
    ("age", "due", "since", "is_believed"),
    [
        (0, 20, 0, True),
        (70, 20, 0, True),  # a shipment may be a minute late
        (90, 20, 0, False),
        (-3600, 20, 0, True),  # the clock was set back: nothing is known to be late
        (90, None, 0, True),  # the last one: nothing is to follow
        (90, None, 30, False),  # but it was the last of an earlier attempt
    ],
)
def test_a_report_about_shipping_is_not_believed_when_its_source_is_old(
    tmp_path: Path, age: float, due: float | None, since: float, is_believed: bool
) -> None:
    begin(tmp_path, (tmp_path / "place").as_uri(), home=True)
    path, now = tmp_path / "data" / "keeper" / "shipped.json", time.time()
    written = now - age
    report = {"time": written, "due": due and written + due, "done": True, "waiting_files": 0, "words": ""}
    write_json(path, report)
    os.utime(path, (written, written))
    state = backlog(tmp_path, since=since and now - since)
    assert state is not None
    assert state["done"] is is_believed
    assert (state["waiting_files"] == 0) is is_believed
    assert bool(state["words"]) is not is_believed
