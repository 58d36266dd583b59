"""One keeper process for all runs of a user and host."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from other_machine import CGROUP, STATUS, system_file
from rollbook.keeper import child as child_module
from rollbook.keeper import many_runs
from rollbook.keeper.child import command_of
from rollbook.keeper.launch import is_kept, launch, wait_done
from rollbook.keeper.many_runs import ManyRuns
from rollbook.keeper.one_run import OneRun
from rollbook.keeper.sealing import Sealing
from rollbook.keeper.shared_keeper_files import MODE_VARIABLE, SharedKeeper, may_share, shared_keeper
from rollbook.keeper.shipping import Shipping
from rollbook.keeper.warm_children import WarmChildren
from rollbook.schema.addresses import begin
from rollbook.system.liveness import is_alive
from rollbook.system.tuning import TUNING
from waiting import PATIENCE

pytestmark = pytest.mark.skipif(os.name == "nt", reason="a keeper for each run there")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tuned: Callable[..., None]) -> Iterator[SharedKeeper]:
    """A shared keeper of this test's own, whose keeper is ended afterwards. One in this process waits for no run."""
    tuned(linger_seconds=0.1)
    monkeypatch.setenv(MODE_VARIABLE, "host")
    monkeypatch.setenv("ROLLBOOK_RUNTIME_DIR", str(tmp_path / "runtime"))
    found = shared_keeper()
    assert found is not None
    yield found
    keeper = found.keeper()
    if keeper is not None and keeper["pid"] != os.getpid():
        os.kill(keeper["pid"], signal.SIGKILL)


def keepers_of(runs: list[Any]) -> set[int]:
    """The processes that say they keep these runs, and live."""
    states = [run.state() for run in runs]
    return {int(state["pid"]) for state in states if state and is_alive(state)}


def test_runs_of_one_user_share_a_keeper_process(
    home: SharedKeeper, make_run: Any, eventually: Callable[..., Any]
) -> None:
    runs = [make_run(f"run-{i}", sinks=[{"name": "jsonl"}]) for i in range(6)]
    for run in runs:
        launch(run.folder)
    eventually(lambda: all(is_kept(run.folder) and run.state() for run in runs))
    (pid,) = keepers_of(runs)
    assert pid != os.getpid()
    for i, run in enumerate(runs):
        run.log()({"i": float(i)})
        run.writer.close()
        assert wait_done(run.folder, PATIENCE)
        assert [line["i"] for line in run.lines()] == [float(i)]
    eventually(lambda: home.keeper() is None)  # it leaves when there is nothing to keep
    assert list(home.entries()) == []


def test_a_shared_keeper_that_is_killed_is_followed_by_another_and_no_row_is_lost_or_doubled(
    home: SharedKeeper, make_run: Any, eventually: Callable[..., Any]
) -> None:
    runs = [make_run(f"run-{i}", sinks=[{"name": "jsonl"}]) for i in range(5)]
    logs = [run.log() for run in runs]
    for run, log in zip(runs, logs, strict=True):
        launch(run.folder)
        log({"i": 0.0})
    eventually(lambda: all(run.lines() for run in runs))
    (first,) = keepers_of(runs)
    os.kill(first, signal.SIGKILL)
    for log in logs:
        log({"i": 1.0})
    eventually(lambda: home.keeper() is None)
    eventually(lambda: launch(runs[0].folder))  # any of the runs does; its successor finds the others by itself
    eventually(lambda: all(len(run.lines()) == 2 for run in runs))
    (second,) = keepers_of(runs)
    assert second != first
    for run in runs:
        run.writer.close()
        assert wait_done(run.folder, PATIENCE)
        assert [line["i"] for line in run.lines()] == [0.0, 1.0]


def test_runs_that_end_one_after_the_other_are_sealed_by_one_process_and_another_where_that_died(make_run: Any) -> None:
    children = WarmChildren(command_of(Sealing.module))
    pids = []
    for n in range(4):
        run = make_run(f"run-{n}")
        run.log()({"i": float(n)})
        run.writer.close()
        log = run.folder / "data" / "keeper" / "log"
        failing = children.take([str(run.folder), "--no-such-word"], str(log))
        assert failing.wait(PATIENCE) == 1
        assert "--no-such-word" in log.read_text(), "why is in the log of the run it was about"
        child = children.take([str(run.folder), "--final"], str(log))
        assert child.pid == failing.pid
        if n == 2:  # at work: that run is tried again, as after any child that failed
            child.kill()
            assert child.wait(PATIENCE) == -signal.SIGKILL
            continue
        assert child.wait(PATIENCE) == 0
        assert list(run.folder.glob("data/metrics/**/*.parquet"))
        pids.append(child.pid)
        if n == 1:  # while it waits
            os.kill(child.pid, signal.SIGKILL)
            os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert pids[0] == pids[1] != pids[2]
    children.trim(0.0)
    with contextlib.suppress(ChildProcessError):  # it has ended and was waited for, or it ends
        os.waitid(os.P_PID, pids[2], os.WEXITED | os.WNOWAIT)


def test_a_hang_is_found_and_left_within_two_seconds() -> None:
    assert TUNING.step_seconds + many_runs._WATCH_SECONDS <= 2.0


@pytest.mark.parametrize("why_it_stays", ["", "recent", "an entry", "a keeper", "a file of others"])
def test_a_keeper_removes_folders_of_other_environments_that_had_no_runs_for_a_week(
    home: SharedKeeper, tmp_path: Path, why_it_stays: str
) -> None:
    other = SharedKeeper(str(Path(home.folder).with_name("other")))
    entry = other.announce(str(tmp_path))
    assert other.acquire()
    if why_it_stays != "an entry":
        os.unlink(entry)
    if why_it_stays != "a keeper":
        other.release()
    if why_it_stays == "a file of others":
        Path(other.folder, "theirs").touch()
    if why_it_stays != "recent":
        os.utime(os.path.join(other.folder, "runs"), (0, 0))
    home.announce(str(tmp_path))
    home.remove_old()
    assert os.path.isdir(other.folder) == bool(why_it_stays)
    assert os.path.isdir(home.folder)
    other.release()


class Busy:
    """A keeper of a run that always has something to do; its steps take time of a pretended machine."""

    feed_seconds = 0.0

    def __init__(self, machine: SimpleNamespace, cpu: float) -> None:
        self._machine, self._cpu, self.at = machine, cpu, []  # type: ignore[var-annotated]

    def rests(self) -> bool:
        return False

    def filenos(self) -> list[int]:
        return []

    def step(self) -> float:
        self.at.append(self._machine.now)
        self._machine.now += self._cpu
        self._machine.cpu += self._cpu
        return 1.0


@pytest.mark.parametrize(("runs", "latest"), [(1, 1.0), (10, 1.2), (80, 5.0), (300, 5.0)])
def test_a_busy_run_is_synced_each_second_and_of_eighty_runs_each_five_seconds_at_the_latest(
    home: SharedKeeper, monkeypatch: pytest.MonkeyPatch, runs: int, latest: float
) -> None:
    """A step that syncs costs 2.5 ms of a processor here; docs/guarantees.md says what a power loss costs."""
    machine = SimpleNamespace(now=0.0, cpu=0.0)
    clocks = SimpleNamespace(monotonic=lambda: machine.now, thread_time=lambda: machine.cpu)
    monkeypatch.setattr(many_runs, "time", clocks)
    keeper = ManyRuns(home)
    kept = [many_runs._KeptRun(Busy(machine, 0.0025), f"entry-{i}", (0, i)) for i in range(runs)]  # type: ignore[arg-type]
    for each in kept:
        keeper._runs[each.entry] = each
        keeper._schedule(each, 0.0)
    while machine.now < 90.0:
        due = keeper._next(machine.now)
        if due is None:
            machine.now = keeper._due[0][0]
        else:
            keeper._step(due, keeper._leader)
    later = [at for each in kept for at in zip(each.keeper.at[:-1], each.keeper.at[1:], strict=True)]  # type: ignore[attr-defined]
    slack = 0.0025 * runs + 0.1 + 0.01  # the others of the same round, and a tenth of a second within which all wait
    assert max(after - before for before, after in later) <= latest + slack
    last_minute = sum(at > 30.0 for each in kept for at in each.keeper.at)  # type: ignore[attr-defined]
    assert last_minute * 0.0025 <= 60 * max(0.05, 1.1 * 0.0025 * runs / 5), "nor is it more work than it has to be"


def test_a_run_that_hangs_holds_up_no_other(
    home: SharedKeeper,
    make_run: Any,
    eventually: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    tuned: Callable[..., None],
) -> None:
    hung, fine = make_run("hung"), make_run("fine", sinks=[{"name": "jsonl"}])
    released, step = threading.Event(), OneRun.step
    tuned(step_seconds=0.1)

    def hang(self: OneRun) -> float | None:
        if self.folder == str(hung.folder):
            released.wait()
        return step(self)

    monkeypatch.setattr(OneRun, "step", hang)
    many = ManyRuns(home)
    many.listens = False
    for run in (hung, fine):
        home.announce(str(run.folder))
    thread = threading.Thread(target=many.run)
    thread.start()
    try:
        log = fine.log()
        for i in range(3):
            log({"i": float(i)})
            eventually(lambda i=i: len(fine.lines()) == i + 1)
        assert many.promotions >= 1, "another thread took over from the one that hangs"
        assert hung.state() == {}
    finally:
        released.set()
        eventually(lambda: hung.state())  # what hung goes on where it was
        for run in (hung, fine):
            run.writer.close()
        thread.join(PATIENCE)
    assert not thread.is_alive()
    assert all(run.keeper_file("finished.json") and not run.state() for run in (fine, hung))


def test_a_keeper_that_is_asked_twice_to_end_leaves_runs_at_once_that_rest(
    home: SharedKeeper, make_run: Any, eventually: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run("idle")
    monkeypatch.setattr(OneRun, "rests", lambda kept: kept._locked)  # for ever, not for ten seconds
    many = ManyRuns(home)
    many.listens = False
    home.announce(str(run.folder))
    thread = threading.Thread(target=many.run)
    thread.start()
    try:
        eventually(run.state)
        (kept_run,) = many._runs.values()
        os.write(many._write, bytes([signal.SIGTERM]))  # as the system does where it listens
        eventually(lambda: kept_run.keeper._hurry_until is not None)
        os.write(many._write, bytes([signal.SIGTERM]))
        thread.join(PATIENCE)
        assert not thread.is_alive()
    finally:
        run.writer.close()
    assert run.info()["status"] == "running", "its writer lived, and has the next keeper"


def test_a_run_that_comes_back_from_a_hang_while_its_writer_ends_stops_no_other(
    home: SharedKeeper, make_run: Any
) -> None:
    """The leading thread has heard of a writer's end that the thread which comes back has just ceased to watch."""
    many = ManyRuns(home)
    many.listens = False
    many._listen()
    kept_run = many_runs._KeptRun(OneRun(str(make_run("hung").folder)), "entry", (0, 0))
    ended, _ = os.pipe()
    many._watch(kept_run, (ended,))

    class Poll:
        def __init__(self, poll: Any) -> None:
            self.register, self.unregister = poll.register, poll.unregister

        def poll(self, _milliseconds: float) -> list[tuple[int, int]]:
            many._watch(kept_run, ())
            return [(ended, select.POLLIN)]

    many._poll = Poll(many._poll)
    many._wait(0.0)
    assert not many._owners


def test_a_fault_of_the_keeper_itself_does_not_end_what_it_does_for_its_runs(
    home: SharedKeeper,
    make_run: Any,
    eventually: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    tuned: Callable[..., None],
) -> None:
    run = make_run("fine", sinks=[{"name": "jsonl"}])
    wait, faults = ManyRuns._wait, iter(range(2))

    def fail(self: ManyRuns, now: float) -> None:
        if next(faults, None) is not None:
            raise KeyError(13)
        wait(self, now)

    monkeypatch.setattr(ManyRuns, "_wait", fail)
    tuned(fault_seconds=0.01)
    many = ManyRuns(home)
    many.listens = False
    home.announce(str(run.folder))
    thread = threading.Thread(target=many.run)
    thread.start()
    try:
        run.log()({"i": 1.0})
        eventually(lambda: len(run.lines()) == 1)
    finally:
        run.writer.close()
        thread.join(PATIENCE)
    assert run.keeper_file("finished.json")
    assert not run.state()


def test_a_run_in_which_nothing_happens_is_not_stepped(make_run: Any, make_keeper: Any) -> None:
    run = make_run()
    keeper, log = make_keeper(run), run.log()
    for _ in range(20):
        log({"x": 1.0})
    keeper.step()
    keeper.step()
    assert keeper.rests()
    log({"x": 2.0})
    assert not keeper.rests()
    keeper.step()
    keeper.step()
    assert keeper.rests()
    run.add_writer()
    assert not keeper.rests()
    keeper.step()
    keeper.step()
    run.writer.frame({"mark": "dump", "scope": "", "at": "", "clocks": [], "keys": []})
    assert not keeper.rests()


def test_a_run_with_a_remote_rests_too_between_two_shipments(
    make_run: Any, make_keeper: Any, eventually: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    started: list[float] = []
    promised: list[str] = []
    now = [1000.0]

    def start(command: Any, words: Any, log: Any) -> Any:
        started.append(now[0])
        promised.append(words[1])
        return start_child([sys.executable, "-c", ""], (), log)

    start_child = child_module.start_child
    monkeypatch.setattr(child_module, "start_child", start)
    run = make_run()
    begin(run.folder, (tmp_path / "place").as_uri(), home=True)
    keeper = make_keeper(run, clock=lambda: now[0])
    run.log()({"x": 1.0})
    keeper.step()
    assert not keeper.rests(), "a shipment is under way"

    def settled() -> bool:
        keeper.step()
        return bool(keeper.rests())

    eventually(settled)
    now[0] = 1005.0
    assert keeper.rests()
    for moment in (1021.0, 1045.0, 1062.0, 1110.0, 1143.0, 1290.0, 1304.0, 1600.0, 1625.0, 1900.0, 1946.0):
        now[0] = moment
        assert not keeper.rests()
        eventually(settled)
    assert started == [1000.0, 1021.0, 1062.0, 1143.0, 1304.0, 1625.0, 1946.0], "seldom, where none came for long"
    assert promised == [f"--every={seconds}" for seconds in (40, 40, 80, 160, 320, 320, 320)]
    run.log()({"x": 1.0})
    keeper.step()
    now[0] = 1967.0
    eventually(settled)
    assert (started[-1], promised[-1]) == (1967.0, "--every=40"), "twenty seconds after a row"


def test_only_runs_whose_sinks_are_our_own_files_share_a_keeper(home: SharedKeeper, make_run: Any) -> None:
    assert may_share(str(make_run("a", sinks=[{"name": "text"}, {"name": "csv"}]).folder))
    assert may_share(str(make_run("b").folder))
    assert not may_share(str(make_run("c", sinks=[{"name": "wandb"}]).folder))
    assert not may_share(str(make_run("d", sinks=[{"name": "theirs"}]).folder))
    assert may_share(str(make_run("e", rules=[{"name": "silent"}]).folder))
    assert not may_share(str(make_run("f", rules=[{"name": "their.module:Rule"}]).folder))


def test_a_run_that_gets_a_service_leaves_the_shared_keeper(
    home: SharedKeeper, make_run: Any, eventually: Callable[..., Any]
) -> None:
    run = make_run(sinks=[{"name": "jsonl"}])
    launch(run.folder)
    shared = eventually(lambda: run.state().get("pid"))
    run.plan(sinks=[{"name": "jsonl"}, {"name": "of another package"}])
    assert launch(run.folder)
    eventually(lambda: run.state().get("pid") not in (None, shared))
    assert "entry" not in run.state()


def test_trainers_that_differ_in_what_a_keeper_needs_of_them_have_different_ones(
    home: SharedKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    def folder() -> str:
        found = shared_keeper()
        assert found is not None
        return found.folder

    own = folder()
    monkeypatch.setenv("ROLLBOOK_DIR", "/elsewhere")
    assert folder() == own
    for change in (
        lambda m: m.setenv("AWS_PROFILE", "another"),
        lambda m: m.setattr("sys.executable", "/another/python"),
        lambda m: system_file(m, STATUS, "Umask:\t0077\n"),
        lambda m: m.setenv("ROLLBOOK_HOST", "node-1"),
        lambda m: m.setenv("CUDA_VISIBLE_DEVICES", "3"),
        lambda m: system_file(m, CGROUP, "0::/another-job\n"),
        lambda m: m.setattr(os, "sched_getaffinity", lambda _pid: {7}, raising=False),
        lambda m: m.setattr(os, "geteuid", lambda: 12345, raising=False),
    ):
        with monkeypatch.context() as m:
            change(m)
            try:
                assert folder() != own
            except AssertionError:
                assert os.geteuid() == 12345  # a folder of another user shares no keeper
                assert shared_keeper() is None


def test_a_folder_that_others_may_write_is_not_used_for_a_shared_keeper(
    home: SharedKeeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    monkeypatch.setenv("ROLLBOOK_RUNTIME_DIR", str(open_to_all))
    assert shared_keeper() is None


def test_the_entry_of_a_run_that_is_gone_is_removed(home: SharedKeeper, tmp_path: Path) -> None:
    home.announce(str(tmp_path / "was here"))
    many = ManyRuns(home)
    many.listens = False
    assert many.run()
    assert list(home.entries()) == []
    assert not (tmp_path / "was here").exists()


def test_runs_that_wait_for_room_to_be_shipped_are_shipped_in_turn_and_promise_no_more_than_they_keep(
    tmp_path: Path, clock: Any, monkeypatch: pytest.MonkeyPatch, eventually: Callable[..., Any]
) -> None:
    monkeypatch.setattr(Shipping, "most_at_once", 2)
    shippings, program = [], "import os, sys, time\nwhile not os.path.exists(sys.argv[1] + '/go'): time.sleep(0.01)"
    for i in range(6):
        folder = tmp_path / f"run-{i}"
        (folder / "data" / "keeper").mkdir(parents=True)
        begin(str(folder), f"file://{tmp_path}/store", home=True)
        shippings.append(Shipping(str(folder), clock, lambda *_: None, [sys.executable, "-c", program]))
    waiting = list(shippings)
    for waited in (0, 30, 60):
        for _ in range(5):
            for shipping in waiting:
                shipping.step(changed_at=clock.now)
        under_way = [shipping for shipping in shippings if shipping.busy]
        assert under_way == waiting[:2]
        for shipping in under_way:
            assert shipping.options == (f"--every={40 + waited}",)
            (tmp_path / f"run-{shippings.index(shipping)}" / "go").touch()
            eventually(lambda shipping=shipping: shipping.poll() is not None)
        waiting = waiting[2:]
        clock.now += 30
    assert not waiting
    assert Shipping.at_work == 0


@pytest.mark.parametrize(("status", "words"), [(1, "To be shipped once that is mended"), (75, "To be shipped later")])
def test_what_a_person_has_to_mend_is_not_promised_to_be_shipped_later(
    tmp_path: Path, clock: Any, eventually: Callable[..., Any], status: int, words: str
) -> None:
    (tmp_path / "data" / "keeper").mkdir(parents=True)
    begin(str(tmp_path), f"file://{tmp_path}/store", home=True)
    program = [sys.executable, "-c", f"raise SystemExit({status})"]
    shipping = Shipping(str(tmp_path), clock, lambda *_: None, program)
    shipping.step()
    eventually(lambda: shipping.poll() is False)
    trouble = shipping.trouble()
    assert trouble is not None
    assert words in str(trouble["words"])
