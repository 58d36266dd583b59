"""What a keeper does while writers live, and when they have gone."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from rollbook.keeper.ending import mark_crashed
from rollbook.keeper.main import Keeper
from rollbook.keeper.own_files import Lock, host_and_namespace
from rollbook.keeper.writers import Writers
from rollbook.protocols import Row, RunInfo
from rollbook.schema.manifest import ManifestLock
from rollbook.system import files
from rollbook.system.liveness import identity
from waiting import PATIENCE, until


class Kept:
    """A sink that keeps its rows."""

    accepts: frozenset[type] = frozenset({float, int})

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.closed = 0

    def open(self, run: RunInfo) -> None:
        return

    def write(self, rows: Sequence[Row]) -> None:
        self.rows.extend(rows)

    def close(self) -> None:
        self.closed += 1


def steps(keeper: Keeper) -> None:
    """Step until it is done."""
    until(lambda: keeper.step() is None)


def record_seals(run: Any) -> tuple[str, ...]:
    """A sealing command that writes down how it was called."""
    script = f"import sys; open({str(run.folder / 'seals')!r}, 'a').write(' '.join(sys.argv[2:]) + '.')"
    return (sys.executable, "-I", "-S", "-c", script)


def dead_writer(run: Any) -> Any:
    """A writer whose process has ended without a goodbye."""
    writer = run.add_writer(main=True, attempt=2)
    path = os.path.join(writer.folder, "writer.json")
    with open(path, encoding="utf-8") as file:
        about = json.load(file)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({**about, "start_time": "1"}, file)
    return writer


def test_it_forwards_and_reports_that_rows_arrive_while_the_writer_is_alive(make_run: Any, make_keeper: Any) -> None:
    run = make_run(sinks=[{"name": "jsonl"}])
    keeper, log = make_keeper(run), run.log()
    for i in range(5):
        log({"i": float(i)}, env_step=i)
    assert keeper.step() == 1.0
    assert [line["i"] for line in run.lines()] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert run.keeper_file("heartbeat") == {run.writer.id: {"0": 5}}
    assert run.state()["phase"] == "running"
    assert run.info()["status"] == "running"


def test_when_the_last_writer_says_goodbye_it_finishes_the_book_and_leaves(make_run: Any, make_keeper: Any) -> None:
    run = make_run(sinks=[{"name": "jsonl"}])
    keeper, log = make_keeper(run, seal_command=record_seals(run)), run.log()
    keeper.step()
    log({"i": 1.0})
    run.writer.close()
    steps(keeper)
    assert keeper.phase == "done"
    assert [line["i"] for line in run.lines()] == [1.0]
    assert (run.folder / "seals").read_text() == "--final."
    assert run.state()["complete"] == [run.writer.id]
    assert run.info()["status"] == "running"  # its writer had its say; ours is not the last word
    left = {path.name for path in (run.folder / "data" / "keeper").iterdir()}
    assert not {name for name in left if name.startswith(("lock", "ballast")) or name.endswith(".tmp")}


def test_a_run_that_is_over_at_once_needs_no_waiting(make_run: Any, make_keeper: Any, clock: Any) -> None:
    """The first seconds, in which a keeper waits for a writer, are not for one whose writer has come and gone."""
    run = make_run()
    emptied = "import shutil, sys; shutil.rmtree(sys.argv[1] + '/data/journal')"
    keeper = make_keeper(run, clock=clock, seal_command=(sys.executable, "-I", "-S", "-c", emptied))
    run.log()({"i": 1.0})
    run.writer.close()
    steps(keeper)
    assert keeper.phase == "done"


def test_a_trainer_that_vanished_leaves_a_crashed_run(make_run: Any, make_keeper: Any) -> None:
    run, sink = make_run(), Kept()
    writer = dead_writer(run)
    run.writer.close()
    run.writer = writer
    run.write_info()
    run.log()({"i": 1.0})
    began = time.time()
    keeper = make_keeper(run, sinks=[sink])
    steps(keeper)
    info = run.info()
    assert (info["status"], info["attempts"][-1]["status"]) == ("crashed", "crashed")
    now = time.time()
    assert began <= info["ended"] <= now
    assert [row.values for row in sink.rows[:-1]] == [{"i": 1.0}]
    assert sink.rows[-1].mark == "final"
    assert sink.closed == 1


def test_a_run_that_was_resumed_meanwhile_is_not_called_crashed(make_run: Any, make_keeper: Any) -> None:
    run = make_run()
    writer = dead_writer(run)
    run.write_info(attempts=[{"n": 1, "writer": writer.id}, {"n": 2, "writer": run.writer.id}])
    run.writer.close()
    steps(make_keeper(run))
    assert run.info()["status"] == "running"


def test_writers_of_another_host_keep_the_run_from_being_called_crashed(
    make_run: Any, make_keeper: Any, clock: Any
) -> None:
    run = make_run()
    elsewhere = run.add_writer()
    path = os.path.join(elsewhere.folder, "writer.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({**identity(), "writer": elsewhere.id, "boot_id": "another", "host": "node-7", "attempt": 1}, file)
    run.writer.close()
    run.writer = dead_writer(run)
    run.write_info()
    keeper = make_keeper(run, clock=clock, sinks=[Kept()])
    for _ in range(5):
        assert keeper.step() is not None
        clock.now += 1
    assert (keeper.phase, run.info()["status"]) == ("waiting", "running")
    beats = run.folder / "data" / "keeper" / "heartbeat"
    for beat in range(40):  # it gives signs of life: nobody leaves
        beats.write_text(json.dumps({elsewhere.id: {"0": beat}}))
        clock.now += 5
        assert keeper.step() is not None
    clock.now += 70

    def is_done() -> bool:
        clock.now += 0.01
        return keeper.step() is None

    until(is_done)
    assert (keeper.phase, run.info()["status"]) == ("done", "crashed")


def test_a_closed_writers_rows_are_home_while_another_still_writes(make_run: Any, make_keeper: Any) -> None:
    run, sink = make_run(), Kept()
    other = run.add_writer()
    keeper = make_keeper(run, sinks=[sink])
    run.log()({"i": 1.0})
    run.writer.close()
    keeper.step()
    keeper.step()
    assert run.state()["complete"] == [run.writer.id]
    assert run.state()["phase"] == "running"
    run.log(other)({"i": 2.0})
    other.close()
    steps(keeper)
    assert [row.values["i"] for row in sink.rows if row.values] == [1.0, 2.0]


def test_a_resumed_run_is_carried_on_by_the_same_keeper(make_run: Any, make_keeper: Any) -> None:
    run = make_run(sinks=[{"name": "jsonl"}])
    keeper = make_keeper(run)
    run.log()({"i": 1.0})
    run.writer.close()
    keeper.step()
    first = run.writer
    run.writer = run.add_writer(main=True, attempt=2)
    run.write_info(attempts=[{"n": 1, "writer": first.id}, {"n": 2, "writer": run.writer.id}])
    run.log()({"i": 2.0})
    for _ in range(20):
        assert keeper.step() is not None
    run.log()({"i": 3.0})
    run.writer.close()
    steps(keeper)
    assert [(line["i"], line["attempt"]) for line in run.lines()] == [(1.0, 1), (2.0, 2), (3.0, 2)]


def test_a_later_keeper_goes_on_where_an_earlier_one_stopped(make_run: Any, make_keeper: Any) -> None:
    run = make_run(sinks=[{"name": "jsonl"}, {"name": "csv"}])
    log = run.log()
    for attempt in range(5):
        log({"i": float(attempt)})
        keeper = make_keeper(run)
        keeper.step()
        keeper.leave()
    assert [line["i"] for line in run.lines()] == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_only_one_keeper_works_at_a_time(make_run: Any, make_keeper: Any) -> None:
    run = make_run()
    first, second = make_keeper(run), make_keeper(run)
    assert first.step() is not None
    assert second.step() is None
    assert second.phase == "taken"
    first.leave()
    assert make_keeper(run).step() is not None


def test_a_lock_whose_holder_is_dead_is_taken_over(make_run: Any, make_keeper: Any, tmp_path: Any) -> None:
    run = make_run()
    path = run.folder / "data" / "keeper" / f"lock-{host_and_namespace()}"
    script = (
        "import fcntl, sys; f = open(sys.argv[1], 'r+'); fcntl.flock(f, fcntl.LOCK_EX); print('held', flush=True); "
        "sys.stdin.read()"
    )
    path.write_text(json.dumps({**identity(), "start_time": "1"}))  # an orphan keeps the descriptor of a dead keeper
    orphan = subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert orphan.stdout is not None
        assert orphan.stdout.readline() == "held\n"
        assert Lock(str(run.folder)).taken() is False
        assert make_keeper(run).step() is not None
    finally:
        orphan.communicate()


def test_a_keeper_whose_lock_was_removed_stops(make_run: Any, make_keeper: Any) -> None:
    run = make_run()
    keeper = make_keeper(run)
    keeper.step()
    (run.folder / "data" / "keeper" / f"lock-{host_and_namespace()}").unlink()
    assert keeper.step() is None
    assert keeper.phase == "taken"


def test_a_file_system_without_locks_goes_by_the_name_in_the_file(
    make_run: Any, make_keeper: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    def refuse(*_: Any) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    run = make_run()
    path = run.folder / "data" / "keeper" / f"lock-{host_and_namespace()}"
    sleeper = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    try:
        from rollbook.system.liveness import start_time

        about = {**identity(), "pid": sleeper.pid, "start_time": start_time(sleeper.pid), "image": ""}
        path.write_text(json.dumps(about))
        assert Lock(str(run.folder)).taken() is True
        assert make_keeper(run).step() is None
    finally:
        sleeper.communicate()
    assert Lock(str(run.folder)).taken() is False
    assert make_keeper(run).step() is not None


def test_a_run_folder_that_was_removed_ends_its_keeper(make_run: Any, make_keeper: Any) -> None:
    import shutil

    run = make_run(sinks=[{"name": "jsonl", "filters": [["aggregate", {"keys": "i"}]]}])
    keeper = make_keeper(run)
    run.log()({"i": 1.0})
    keeper.step()
    run.writer.close()
    shutil.rmtree(run.folder)
    assert keeper.step() is None
    assert keeper.phase == "gone"
    assert not run.folder.exists()


@pytest.mark.parametrize("rows", [2_000, 20_000])
def test_sealing_begins_when_enough_has_waited_for_a_while_and_when_much_waits(
    make_run: Any, make_keeper: Any, clock: Any, tuned: Any, eventually: Any, rows: int
) -> None:
    tuned(seal_bytes=30_000)
    run = make_run()
    run.writer.first_segment_bytes = run.writer.largest_segment_bytes = 4096
    keeper, log = make_keeper(run, seal_command=record_seals(run), clock=clock), run.log()
    keeper.step()
    for i in range(rows):
        log({"i": float(i)})
    keeper.step()
    assert keeper._sealing.busy == (rows == 20_000)
    clock.now += 11
    keeper.step()
    eventually(lambda: (run.folder / "seals").exists() and (run.folder / "seals").read_text() == ".")


def test_sealing_begins_when_something_has_waited_for_a_minute(
    make_run: Any, make_keeper: Any, clock: Any, eventually: Any
) -> None:
    run = make_run()
    run.writer.first_segment_bytes = run.writer.largest_segment_bytes = 4096
    keeper, log = make_keeper(run, seal_command=record_seals(run), clock=clock), run.log()
    for i in range(200):
        log({"i": float(i)})
    keeper.step()
    clock.now += 59
    keeper.step()
    assert not keeper._sealing.busy
    clock.now += 2
    keeper.step()
    assert keeper._sealing.busy
    eventually((run.folder / "seals").exists)


def test_sealing_that_fails_is_reported_once_tried_again_and_ends_nothing(make_run: Any, make_keeper: Any) -> None:
    run = make_run(sinks=[{"name": "jsonl"}])
    failing = (sys.executable, "-I", "-S", "-c", "import sys; sys.exit('no pyarrow here')")
    keeper = make_keeper(run, seal_command=failing)
    run.log()({"i": 1.0})
    run.writer.close()
    steps(keeper)
    assert run.keeper_log().splitlines().count("no pyarrow here") == 3
    assert run.keeper_log().count("sealing failed: no pyarrow here (exit status 1)") == 1
    assert keeper.phase == "done"
    assert [line["i"] for line in run.lines()] == [1.0]


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="elsewhere the keeper looks more often instead")
def test_a_keeper_sleeps_until_the_child_that_seals_has_ended(make_run: Any, make_keeper: Any) -> None:
    run = make_run()
    run.log()({"i": 1.0})
    run.writer.close()
    go = run.folder / "go"
    os.mkfifo(go)
    keeper = make_keeper(run, seal_command=(sys.executable, "-I", "-S", "-c", f"open({str(go)!r}).read()"))
    looks = []

    def wait_for(pause: float, descriptors: list[int]) -> None:
        looks.append(pause)
        if keeper._sealing.busy:
            with open(go, "w"):  # the child may end
                pass
            assert pause >= 0.25
            poller = select.poll()
            for descriptor in descriptors:
                poller.register(descriptor, select.POLLIN)
            assert poller.poll(1000 * PATIENCE), "its end wakes the keeper"

    assert keeper.run(wait_for) == "done"
    assert len([pause for pause in looks if pause >= 0.25]) == 1, "and it is looked for no second time"


def test_after_a_reboot_what_went_before_is_sealed_before_its_durable_marks_are_replaced(
    make_run: Any, make_keeper: Any, eventually: Any
) -> None:
    run = make_run()
    former = run.add_writer()
    with open(os.path.join(former.folder, "writer.json"), "w", encoding="utf-8") as file:
        json.dump({**identity(), "boot_id": "before", "writer": former.id, "attempt": 1}, file)
    marks = {"boot_id": "before", "marks": {former.id: {"0": 7}}}
    path = run.folder / "data" / "keeper" / "durable.json"
    path.write_text(json.dumps(marks))
    held = run.folder / "held"
    os.mkfifo(held)
    keeper = make_keeper(run, seal_command=(*record_seals(run)[:-1], f"open({str(held)!r}).read()"))
    log = run.log()
    for i in range(3):
        log({"i": float(i)})
        keeper.step()
        assert run.keeper_file("durable.json") == marks
    held.write_text("sealed")
    eventually(lambda: keeper.step() is not None and run.keeper_file("durable.json") != marks)
    eventually(lambda: keeper.step() and run.keeper_file("durable.json")["marks"][run.writer.id] == {"0": 3})


def test_host_rows_are_rows_of_the_run(make_run: Any, make_keeper: Any, clock: Any) -> None:
    run, sink = make_run(host_seconds=10.0), Kept()
    keeper = make_keeper(run, clock=clock, sinks=[sink])
    run.log()({"i": 1.0})
    for _ in range(25):
        clock.now += 1
        keeper.step()
    host = [row for row in sink.rows if "host/memory_percent" in row.values or "host/load" in row.values]
    assert len(host) == 2
    assert "rollbook/keeper/lag_seconds" in host[0].values
    assert "rollbook/sink/Kept/rows" in host[0].values
    assert host[0].values["host/process/rss_bytes"] > 1e6
    run.writer.close()
    clock.now += 1
    steps(keeper)
    assert keeper.phase == "done"  # its own writer keeps nobody waiting


def test_no_host_rows_when_the_plan_wants_none(make_run: Any, make_keeper: Any, clock: Any) -> None:
    run, sink = make_run(host_seconds=None), Kept()
    keeper = make_keeper(run, clock=clock, sinks=[sink])
    run.log()({"i": 1.0})
    for _ in range(30):
        clock.now += 1
        keeper.step()
    assert len(sink.rows) == 1
    assert len(list((run.folder / "data" / "journal").iterdir())) == 1


def test_the_ballast_is_there_while_there_is_room_and_gone_when_there_is_none(
    make_run: Any, make_keeper: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rollbook.keeper.ballast import Ballast

    run = make_run()
    keeper = make_keeper(run)
    keeper.step()
    path = run.folder / "data" / "keeper" / "ballast"
    if (keeper._ballast.free_bytes() or 0) < 2**27:
        pytest.skip("a full disk")
    assert path.stat().st_blocks * 512 >= 4 * 2**20
    monkeypatch.setattr(Ballast, "free_bytes", lambda self: 1000)
    keeper._sealing.begin(final=False)
    assert not path.exists()


def test_a_full_disk_under_the_keepers_own_files_ends_nothing(
    make_run: Any, make_keeper: Any, eventually: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rollbook.keeper import durable

    run, sink = make_run(), Kept()
    keeper = make_keeper(run, sinks=[sink])
    log = run.log()

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(durable, "write_json", full)
    log({"i": 1.0})
    assert keeper.step() == 1.0
    log({"i": 2.0})
    assert keeper.step() == 1.0
    assert [row.values["i"] for row in sink.rows] == [1.0, 2.0]
    assert run.keeper_log().count("No space left") == 1
    monkeypatch.undo()
    log({"i": 3.0})
    eventually(lambda: keeper.step() and run.keeper_file("durable.json")["marks"][run.writer.id] == {"0": 3})


def test_asked_to_end_it_goes_on_for_a_while_and_at_once_the_second_time(
    make_run: Any, make_keeper: Any, clock: Any
) -> None:
    run = make_run()
    keeper = make_keeper(run, clock=clock)
    keeper.step()
    keeper.hurry()
    clock.now += 20
    assert keeper.step() is not None
    clock.now += 20
    assert keeper.step() is None
    keeper = make_keeper(run, clock=clock)
    keeper.step()
    keeper.hurry()
    keeper.hurry()
    assert keeper.step() is None
    assert Lock(str(run.folder)).taken() is False


def test_in_a_thread_it_does_the_same(make_run: Any, make_keeper: Any) -> None:
    run, sink = make_run(sinks=[{"name": "jsonl"}]), Kept()
    keeper = make_keeper(run, sinks=[sink], sinks_in_turn=False).start_thread()
    log = run.log()
    for i in range(100):
        log({"i": float(i)})
    run.writer.close()
    assert keeper.finish(PATIENCE) is True
    assert [line["i"] for line in run.lines()] == [float(i) for i in range(100)]
    assert [row.values["i"] for row in sink.rows if row.values] == [float(i) for i in range(100)]


def test_inline_it_does_all_at_the_end_and_does_not_wait_for_other_writers(make_run: Any, make_keeper: Any) -> None:
    run, sink = make_run(sinks=[{"name": "jsonl"}]), Kept()
    child = run.add_writer()
    run.log()({"i": 1.0})
    run.log(child)({"i": 2.0})
    run.writer.close()
    assert make_keeper(run, sinks=[sink]).run_to_end() is True
    assert [line["i"] for line in run.lines()] == [1.0, 2.0]
    assert Lock(str(run.folder)).taken() is False
    child.close()
    keeper = make_keeper(run)
    assert keeper.run_to_end() is True
    assert keeper.phase == "done"


def test_inline_nothing_is_left_by_a_writer_that_ends_while_the_keeper_leaves_because_of_it(
    make_run: Any, make_keeper: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has seen the lock taken, and started no keeper."""
    run = make_run()
    child = run.add_writer()
    run.log(child)({"i": 1.0})
    run.writer.close()
    keeper = make_keeper(run)
    leave = keeper.leave

    def ends_before_it_leaves() -> None:
        child.close()
        leave()

    monkeypatch.setattr(keeper, "leave", ends_before_it_leaves)
    assert keeper.run_to_end() is True
    assert keeper.phase == "done"
    assert Lock(str(run.folder)).taken() is False


def test_inline_a_sink_that_fails_is_not_waited_for_longer_because_others_write(
    make_run: Any, make_keeper: Any, tuned: Callable[..., None]
) -> None:
    class Failing(Kept):
        def write(self, rows: Sequence[Row]) -> None:
            raise OSError("away")

    tuned(drain_here_seconds=0.1)
    run = make_run()
    run.add_writer()
    run.log()({"i": 1.0})
    run.writer.close()
    assert make_keeper(run, sinks=[Failing()]).run_to_end() is False
    assert Lock(str(run.folder)).taken() is False


def test_a_writer_that_ends_while_the_keeper_looks_is_not_called_complete_before_it_is_sealed(
    make_run: Any, make_keeper: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run()
    run.log()({"i": 1.0})
    keeper = make_keeper(run)
    living = Writers.living

    def ends(writers: Writers) -> object:
        answer = living(writers)
        run.writer.close()
        return answer

    monkeypatch.setattr(Writers, "living", ends)
    keeper.step()
    assert keeper.complete == set()
    assert keeper.run() == "done"
    assert keeper.complete == {run.writer.id}


def test_a_keeper_that_finds_no_writer_waits_a_moment_for_one(make_run: Any, make_keeper: Any, clock: Any) -> None:
    run = make_run()
    run.writer.close()
    import shutil

    shutil.rmtree(run.folder / "data" / "journal")
    keeper = make_keeper(run, clock=clock)
    assert keeper.step() is not None
    clock.now += 1
    late = run.add_writer(main=True)
    keeper.step()
    clock.now += 100
    assert keeper.step() is not None
    late.close()
    steps(keeper)
    assert run.state()["complete"] == [late.id]


def test_what_other_processes_left_half_replaced_is_swept(make_run: Any, make_keeper: Any) -> None:
    run = make_run()
    old, new = (run.folder / "data" / "keeper" / name for name in ("cursors.json.1.tmp", "cursors.json.2.tmp"))
    old.write_text("")
    new.write_text("")
    os.utime(old, (1, 1))
    make_keeper(run).step()
    assert not old.exists()
    assert new.exists()


def test_a_run_that_is_resumed_while_its_keeper_writes_crashed_stays_resumed(
    make_run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run()
    waits = threading.Event()
    try_lock = files.try_lock

    def watched(fd: int, *, shared: bool = False) -> bool | None:
        got = try_lock(fd, shared=shared)
        if got is False:
            waits.set()
        return got

    monkeypatch.setattr(files, "try_lock", watched)
    answers: list[bool] = []
    keeper = threading.Thread(target=lambda: answers.append(mark_crashed(str(run.folder), run.writer.id)))
    with ManifestLock(str(run.folder)):  # what init(resume=…) holds from its look at the run until it has said so
        about = run.info()
        keeper.start()
        assert waits.wait(PATIENCE)
        about["attempts"].append({"n": 2, "writer": "another", "status": "running", "ended": None})
        (run.folder / "run.json").write_text(json.dumps(about))
    keeper.join(PATIENCE)
    assert answers == [False]
    assert (run.info()["status"], len(run.info()["attempts"])) == ("running", 2)


def test_a_keeper_that_comes_to_a_run_that_was_removed_makes_no_new_one(tmp_path: Any) -> None:
    keeper = Keeper(tmp_path / "p" / "removed-12345678")
    assert (keeper.step(), keeper.phase) == (None, "gone")
    assert list(tmp_path.iterdir()) == []


def test_a_lock_that_cannot_be_had_delays_no_other(make_run: Any) -> None:
    run = make_run()
    with ManifestLock(str(run.folder)), ManifestLock(str(run.folder), seconds=0.0), ManifestLock("/nowhere/at/all"):
        pass
    assert mark_crashed(str(run.folder), run.writer.id)


def test_a_busy_keeper_syncs_no_more_than_about_once_a_second(
    make_run: Any, make_keeper: Any, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rollbook.keeper import durable

    synced: list[float] = []
    monkeypatch.setattr(durable, "_sync_file", lambda path: synced.append(clock()))
    run = make_run()
    keeper, log = make_keeper(run, clock=clock), run.log()
    for i in range(60):
        log({"i": float(i)})
        keeper.step()
        clock.now += 0.05
    assert len({round(moment, 3) for moment in synced}) == 4  # at 0, 0.9, 1.8 and 2.7 s
    run.writer.close()
    keeper.step()
    assert synced[-1] == clock()  # the last rows wait for nothing
