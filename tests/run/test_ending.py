"""How a run ends: the status that each way of leaving gives."""

from __future__ import annotations

import json
import os
import signal
import threading
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import rollbook
from cases import some_of
from forked_programs import Interpreter
from rollbook.errors import LoggingFailed, RollbookWarning
from rollbook.protocols import Row
from rollbook.sinks import Memory
from waiting import PATIENCE, until

Start = Callable[..., rollbook.Run]

HEAD = """\
import os, signal, sys, time
import rollbook
run = rollbook.init('p', 'n', sinks=[], keeper='inline')
run.log({'a': 1.0})
"""


Ended = Callable[[str], tuple[dict[str, Any], int]]


@pytest.fixture
def run_program(root: Path, interpreter: Interpreter) -> Ended:
    """Runs a program and returns its run's page and its exit status."""

    def run(body: str) -> tuple[dict[str, Any], int]:
        done = interpreter.run(HEAD + body, env=os.environ)
        (page,) = (root / "p").glob("n-*/run.json")
        return dict(json.loads(page.read_text())), done.returncode

    return run


@pytest.mark.parametrize(
    ("body", "status"),
    some_of(
        [
            ("", "finished"),
            ("def steps():\n    with run:\n        yield 1\n        yield 2\nnext(steps())", "finished"),
            ("run.finish('killed')", "killed"),
            ("raise ValueError", "crashed"),
            ("raise KeyboardInterrupt", "killed"),
            ("try:\n    with run:\n        raise ValueError\nexcept ValueError:\n    pass", "crashed"),
            ("with run:\n    sys.exit(3)", "crashed"),
            ("os.kill(os.getpid(), signal.SIGINT); time.sleep(5)", "killed"),
            ("run.finish()", "finished"),
            ("sys.exit(0)", "finished"),
            ("with run:\n    raise ValueError", "crashed"),
            ("with run:\n    raise KeyboardInterrupt", "killed"),
            ("with run:\n    sys.exit(0)", "finished"),
        ],
        8,
    ),
)
def test_the_way_a_program_ends_is_the_status_of_its_run(run_program: Ended, body: str, status: str) -> None:
    page, _code = run_program(body)
    assert page["status"] == status
    assert page["attempts"][-1]["status"] == status


def test_runs_end_whole_where_no_thread_can_be_started_any_more(
    root: Path, tmp_path: Path, interpreter: Interpreter
) -> None:
    """Python 3.12 refuses each while the interpreter exits, every Python at the system's limit of threads."""
    body = f"""
import atexit, threading
from rollbook.system.tuning import TUNING
TUNING.finish_seconds = {PATIENCE}
def refuse(thread):
    raise RuntimeError("can't create new thread at interpreter shutdown")
for keeper in ('inline', 'thread', 'process'):
    mine = rollbook.init('ends', keeper, keeper=keeper, remote={str(tmp_path / "place")!r})
    mine.log({{'a': 1}}, env_step=1)
atexit.register(setattr, threading.Thread, 'start', refuse)
"""
    done = interpreter.run(HEAD + body, env=os.environ)
    assert done.returncode == 0, done.stderr
    assert "RollbookWarning" not in done.stderr
    for keeper in ("inline", "thread", "process"):
        assert any(f" ends/{keeper} " in line and line.endswith("| finished") for line in done.stderr.splitlines())
    books = rollbook.open(root / "ends")
    assert [(book.status, book.problems(), book.metrics(["a"]).num_rows) for book in books] == [("finished", [], 1)] * 3
    assert all(list(folder.glob("data/metrics/wide/*.parquet")) for folder in (root / "ends").iterdir())
    assert len(rollbook.open(tmp_path / "place")) == 3


def test_sigterm_ends_the_run_as_killed_and_still_kills(run_program: Ended) -> None:
    page, code = run_program("os.kill(os.getpid(), signal.SIGTERM); time.sleep(5)")
    assert page["status"] == "killed"
    assert code == -signal.SIGTERM


def test_the_users_own_handler_stays(run_program: Ended) -> None:
    body = (
        "signal.signal(signal.SIGTERM, lambda *_: (run.log({'last': 1.0}), print('mine'), sys.exit(0)))\n"
        "os.kill(os.getpid(), signal.SIGTERM); time.sleep(5)"
    )
    page, code = run_program(body)
    assert (page["status"], code) == ("finished", 0)


def test_a_handler_set_before_init_is_not_replaced(root: Path, interpreter: Interpreter) -> None:
    code = "import signal\nmine = lambda *_: None\nsignal.signal(signal.SIGTERM, mine)\n" + HEAD
    code += "assert signal.getsignal(signal.SIGTERM) is mine; run.finish()"
    assert interpreter.run(code, env=os.environ).returncode == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_does_not_end_its_parents_run(run_program: Ended) -> None:
    body = (
        "pid = os.fork()\n"
        "if pid == 0:\n    run.log({'child': 1.0}); sys.exit(0)\n"
        "os.waitpid(pid, 0)\n"
        "import json; assert json.load(open(run.folder / 'run.json'))['status'] == 'running'\n"
    )
    page, code = run_program(body)
    assert (page["status"], code) == ("finished", 0)


def test_a_failure_inside_rollbook_never_ends_the_program(root: Path, interpreter: Interpreter) -> None:
    body = """
import shutil
while os.path.exists(run.folder):  # the run's own thread may write a file between the others' end and the folder's
    shutil.rmtree(run.folder, ignore_errors=True)
for i in range(5000):
    run.log({'a': float(i), f'k{i % 50}': 1.0})
"""
    done = interpreter.run(HEAD + body, env=os.environ)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "is gone" in done.stderr


def test_strict_raises_in_the_loop(root: Path) -> None:
    with rollbook.init("p", "n", sinks=[], keeper="inline", strict=True) as run, pytest.raises(LoggingFailed):
        run.log({"odd": object()})


def test_what_was_asked_for_is_done_before_the_run_ends_and_can_still_log(start: Start) -> None:
    run = start()
    said = []

    @run.on_finish
    def first(status: str) -> None:
        said.append(("first", status, run.status))
        run.log({"last": 1.0}, env_step=7)

    run.on_finish(lambda status: said.append(("second", status, run.status)))
    run.finish("killed")
    run.finish("finished")
    assert said == [("second", "killed", "running"), ("first", "killed", "running")]
    assert run.book.metrics(["last"])["env_step"].to_pylist() == [7]


def test_last_words_that_fail_are_counted_and_the_run_ends(start: Start) -> None:
    run = start()
    done: list[str] = []
    run.on_finish(done.append)

    def broken(_status: str) -> None:
        run.finish("crashed")  # a fault of its own; the run ends once
        raise RuntimeError("no network")

    run.on_finish(broken)
    with pytest.warns(RollbookWarning, match="no network"):
        run.finish()
    assert done == ["crashed"]
    assert run.book.status == "crashed"


@pytest.mark.parametrize(
    ("body", "status"),
    [("", "finished"), ("raise ValueError", "crashed"), ("os.kill(os.getpid(), signal.SIGTERM)", "killed")],
)
def test_last_words_are_reported_however_the_program_ends(
    root: Path, run_program: Ended, body: str, status: str
) -> None:
    forks = "if not os.fork():\n    run.finish()\n    os._exit(0)\n"
    run_program(f"run.on_finish(run.note)\n{forks}{body}")
    (book,) = rollbook.open(root)
    assert book.text("note")["text"].to_pylist() == [status], "once, and not in the forked child"


def test_the_bill_counts_the_time_of_rare_rows_and_records_too(start: Start) -> None:
    run = start()
    costs = [run.bill()["seconds"]]
    for write in (
        lambda: run.log({"once": 1.0}),
        lambda: run.log_text("words", "said"),
        lambda: run.log_episode(return_=1.0, length=3),
        lambda: [run.log({"often": 1.0}) for _ in range(100)],
    ):
        write()
        costs.append(run.bill()["seconds"])
    assert costs == sorted(costs)
    assert len(set(costs)) == 5
    bill = run.bill()
    assert bill["rows"] >= 103
    assert bill["microseconds_per_row"] > 0


@pytest.mark.parametrize("keeper", ["process", "thread", "inline"])
def test_a_sink_that_hangs_holds_up_neither_the_run_nor_its_end_nor_other_sinks(
    tmp_path: Path, tuned: Callable[..., None], keeper: Any
) -> None:
    tuned(finish_seconds=1.0, drain_here_seconds=2.0)
    # What the one that hangs is waited for is also what the other one has for its last rows.
    tuned(drain_seconds=2.0, close_seconds=0.5)
    answers, other = threading.Event(), Memory()

    class Hangs(Memory):
        def write(self, rows: Sequence[Row]) -> None:
            answers.wait()

    gives_up = threading.Timer(PATIENCE, answers.set)
    gives_up.start()
    try:
        run = rollbook.init("p", "n", dir=tmp_path, sinks=[Hangs(), other], keeper=keeper)
        for i in range(10):
            run.log({"i": i}, env_step=i)
        if keeper != "inline":  # that feeds sinks at the end alone
            until(lambda: len([row for row in other.rows if "i" in row.values]) == 10)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run.finish()
        assert not answers.is_set()
        assert [row.values["i"] for row in other.rows if "i" in row.values] == list(range(10))
        assert rollbook.open(run.folder).one().metrics(["i"]).num_rows == 10
        if keeper == "process":
            assert run.bill()["drops"] == {"sink_Hangs": 1}
    finally:
        gives_up.cancel()
        answers.set()
