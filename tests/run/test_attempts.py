"""What was true of a run stays true when one of its attempts ends and another begins."""

from __future__ import annotations

import ast
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rollbook
from forked_programs import Interpreter
from rollbook.errors import NothingToResume, RollbookWarning
from waiting import until

Start = Callable[..., rollbook.Run]


Killed = Callable[[str], None]


@pytest.fixture
def killed(root: Path, interpreter: Interpreter) -> Killed:
    """Runs a program that opens `run` and is killed by SIGKILL at its end."""

    def run(body: str) -> None:
        code = (
            "import os, signal, time, rollbook\n"
            f"run = rollbook.init('project', 'name', dir={str(root)!r}, sinks=[], keeper='inline', resume='allow')\n"
            f"{body}\nos.kill(os.getpid(), signal.SIGKILL)\n"
        )
        done = interpreter.run(code, env=os.environ)
        assert done.returncode == -signal.SIGKILL, done.stderr

    return run


# -- the summary


LATE = """
while not run.internals.about.packages: time.sleep(0.01)  # the page about the code is written
for _ in range(3):
    run._parts.ticker.tick()
run._parts.ticker.stop()                                # nothing writes run.json from here on
run.summary["best"] = 13.0
run.summary["gone"] = 1
del run.summary["gone"]
run.log({"x": 1.0}, env_step=1)
"""


def test_a_summary_that_was_set_late_survives_sigkill(killed: Killed, root: Path, start: Start) -> None:
    killed(LATE)
    (book,) = rollbook.open(root)
    assert json.loads((book.path / "run.json").read_text())["summary"] == {}  # only the journal has it
    assert book.summary.items() >= {"best": 13.0}.items()
    run = start(resume="must")
    assert dict(run.summary) == {"best": 13.0}
    run.summary["last"] = "b"
    assert run.book.summary.items() >= {"best": 13.0, "last": "b"}.items()
    run.finish()
    assert rollbook.open(root)[0].summary.items() >= {"best": 13.0, "last": "b"}.items()
    assert json.loads((book.path / "run.json").read_text())["summary"] == {"best": 13.0, "last": "b"}


def test_a_summary_survives_several_killed_attempts_and_the_sealing_of_each(killed: Killed, root: Path) -> None:
    from rollbook.storage.sealing.folder import seal

    killed(LATE)
    (book,) = rollbook.open(root)
    seal(book.path, final=True)
    killed(LATE.replace("13.0", "14.0") + "run.summary['second'] = [1, 2]\n")
    assert rollbook.open(root)[0].summary.items() >= {"best": 14.0, "second": [1, 2]}.items()
    seal(book.path, final=True)
    assert rollbook.open(root)[0].summary.items() >= {"best": 14.0, "second": [1, 2]}.items()


SCORED = """
for step, score in {rows}:
    run.log({{"test/return": score}}, env_step=step)
"""


def test_what_a_summary_fills_in_by_itself_is_that_of_all_killed_attempts(
    killed: Killed, root: Path, start: Start
) -> None:
    from rollbook.storage.sealing.folder import seal

    killed(SCORED.format(rows=[(10, 1.0), (20, 9.0), (30, 5.0)]))
    (book,) = rollbook.open(root)
    assert book.summary.items() >= {"test/return.last": 5.0, "test/return.best": 9.0, "length.env_step": 30}.items()
    seal(book.path, final=True)
    killed(SCORED.format(rows=[(40, 2.0)]))
    seal(book.path, final=True)
    expected = {"test/return.last": 2.0, "test/return.best": 9.0, "length.env_step": 40}
    assert rollbook.open(root)[0].summary.items() >= expected.items()
    run = start(resume="must")
    run.summary["test/return.best"] = "by hand"
    run.finish()
    (book,) = rollbook.open(root)
    assert book.summary.items() >= {**expected, "test/return.best": "by hand"}.items()
    (row,) = rollbook.open(root).table().to_pylist()
    assert (row["summary.test/return.last"], row["summary.test/return.best"]) == (2.0, "by hand")


def test_run_json_follows_the_summary_without_waiting_for_the_end(start: Start) -> None:
    run = start()
    run.summary["best"] = 3.0
    run._parts.ticker.tick()
    assert json.loads((run.folder / "run.json").read_text())["summary"] == {"best": 3.0}
    run.summary["deep"] = {"a": 1}
    run.summary["deep"]["a"] = 2  # nobody is told
    run.internals.write_about()
    assert run.book.summary.items() >= {"best": 3.0, "deep": {"a": 2}}.items()


# -- configuration, seed, code


def test_a_resume_with_other_values_keeps_both_and_says_once_which_differ(start: Start) -> None:
    run = start(seed=1, config={"lr": 1, "a": 2, "net": {"sizes": (64, 64)}})
    run.save_checkpoint({"w": 1})
    run.finish()
    with pytest.warns(RollbookWarning) as warned:
        again = start(seed=2, config={"lr": 5, "net": {"sizes": (64, 64)}}, resume="must", run_id=run.id)
    (said,) = [str(w.message) for w in warned]
    for phrase in ("config.lr (1, now 5)", "config.a (2, not given now)", "seed (1, now 2)"):
        assert phrase in said
    assert "config.net" not in said
    assert "another name" not in said, "the run was named by its id"
    again.restore()
    book = again.book
    assert (book.config, book.seed) == ({"lr": 5, "net": {"sizes": [64, 64]}}, 2)
    assert [attempt["config"]["lr"] for attempt in book.attempts] == [1, 5]
    assert [attempt["config"].get("a") for attempt in book.attempts] == [2, None]
    assert [attempt["seed"] for attempt in book.attempts] == [1, 2]
    again.config["late"] = True
    again.finish()
    assert [attempt["config"].get("late") for attempt in again.book.attempts] == [None, True]


def test_a_resume_with_the_same_values_or_none_says_nothing(start: Start, recwarn: Any) -> None:
    start(seed=1, config={"lr": float("nan"), "sizes": (1, 2), "tags": {"b", "a"}}).finish()
    start(seed=1, config={"lr": float("nan"), "sizes": (1, 2), "tags": {"a", "b"}}, resume="must").finish()
    again = start(resume="must")
    assert [str(w.message) for w in recwarn if issubclass(w.category, RollbookWarning)] == []
    assert [attempt["config"]["sizes"] for attempt in again.book.attempts] == [[1, 2]] * 3
    assert again.seed == 1


def test_both_configuration_files_of_an_earlier_attempt_are_kept_beside_the_new_ones(start: Start) -> None:
    def settings(name: str) -> Any:
        return ast.literal_eval((run.folder / name).read_text().partition("exp_config = ")[2])

    run = start(config={"lr": 1, "sizes": (1, 2)})
    run.write_config_files()
    run.finish()
    with pytest.warns(RollbookWarning, match=r"config\.lr.*If another run is meant"):
        start(config={"lr": 5, "sizes": (1, 2)}, resume="must").finish()
    start(resume="must").finish()
    assert settings("total_config.py") == {"lr": 5, "sizes": [1, 2]} or settings("total_config.py")["lr"] == 5
    assert settings("total_config.attempt_1.py") == {"lr": 1, "sizes": (1, 2)}
    assert settings("formatted_total_config.attempt_1.py") == {"lr": 1, "sizes": (1, 2)}


def test_the_code_and_the_packages_belong_to_the_attempt_that_ran_them(start: Start, monkeypatch: Any) -> None:
    found = {"git": {"commit": "one"}, "packages": {"torch": "1", "numpy": "2"}}
    monkeypatch.setattr("rollbook.run.origin.provenance.collect", lambda cwd, **_: dict(found))
    run = start()
    until(lambda: run.book.info.git is not None)  # the run's own thread writes it down
    assert run.book.info.git == {"commit": "one"}  # an attempt that is killed has said it, too
    run.finish()
    found["git"], found["packages"] = {"commit": "two"}, {"torch": "2", "numpy": "2"}
    again = start(resume="must")
    again.finish()
    attempts = again.book.attempts
    assert [attempt["git"]["commit"] for attempt in attempts] == ["one", "two"]
    assert [attempt["packages"]["torch"] for attempt in attempts] == ["1", "2"]


def test_the_seed_cannot_be_assigned(start: Start) -> None:
    run = start()
    with pytest.raises(AttributeError):
        run.seed = 7  # type: ignore[misc]
    run.internals.fill_in(seed=7, total={"env_step": 10})
    assert (run.seed, run.book.seed, run.book.info.total) == (7, 7, {"env_step": 10})


# -- attempts


def test_one_kill_and_one_resume_are_two_attempts(killed: Killed, root: Path, start: Start) -> None:
    killed("run.log({'x': 1.0}, env_step=1); run.save_checkpoint({'w': 1}); run.log({'x': 2.0}, env_step=2)")
    run = start(resume="must")
    run.log_text("env/spec", "CartPole-v1")  # the program took its time to start
    run._parts.ticker._cost_due = 0.0
    run._parts.ticker.tick()
    run.summary["started"] = True
    assert run.internals.writer.rows_written() == 2  # what rollbook costs is told once something was logged
    assert run.restore() is not None
    run.log({"x": 3.0}, env_step=2)
    assert [(attempt["n"], attempt["parent"]) for attempt in run.book.attempts] == [(1, None), (2, 1)]
    assert run.book.metrics("x")["x"].to_pylist() == [1.0, 3.0]


def test_a_run_in_which_nothing_is_logged_any_more_writes_nothing_by_itself(start: Start) -> None:
    run, rows = start(), []
    for step in range(2):
        run.log({"x": 1.0}, env_step=step)
        for _ in range(3):
            run._parts.ticker._cost_due = 0.0
            run._parts.ticker.tick()
            rows.append(run.internals.writer.rows_written())
    assert rows == [2, 2, 2, 4, 4, 4]  # what rollbook costs is told once after each row


def test_must_with_nothing_to_restore_raises(killed: Killed, root: Path, start: Start) -> None:
    killed("run.log({'x': 1.0}, env_step=1)")
    run = start(resume="must")
    with pytest.raises(NothingToResume, match="no such checkpoint"):
        run.restore()
    assert run.book.metrics("x").num_rows == 1  # nothing was hidden


@pytest.mark.parametrize("end", ["finished", "killed"])
def test_what_was_stored_and_not_dumped_survives_a_plain_resume(
    end: str, killed: Killed, root: Path, start: Start
) -> None:
    body = "run.scope('train').store(x=1.0); run.scope('train').store(x=3.0, y=7.0)"
    if end == "killed":
        killed(body)
    else:
        run = start()
        exec(body)
        run.finish()
    again = start(resume="must")
    train = again.scope("train")
    train.store(x=5.0)
    assert train.dump() == {
        "x/mean": 3.0,
        "x/std": pytest.approx((8 / 3) ** 0.5),
        "x/median": 3.0,
        "x/n": 3,
        "y/mean": 7.0,
        "y/std": 0.0,
        "y/median": 7.0,
        "y/n": 1,
    }
    assert train.dump() == {"x/n": 0, "y/n": 0}
    again.finish()
    third = start(resume="must")
    assert third.scope("train").dump() == {"x/n": 0, "y/n": 0}


def test_a_checkpoint_saved_by_a_resumed_run_does_not_cost_it_its_window(start: Start) -> None:
    run = start()
    run.store(x=1.0)
    run.finish()
    again = start(resume="must")
    again.save_checkpoint({"w": 1})
    assert again.dump()["x/mean"] == 1.0
    again.restore("last")
    assert again.dump()["x/n"] == 1


def test_a_clock_that_is_set_back_makes_no_run_end_before_it_began(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds, nanoseconds = time.time, time.time_ns
    for attempt in range(2):
        run = start(run_id="mine", resume="allow")
        run.log({"a": 1.0}, env_step=attempt)
        monkeypatch.setattr(time, "time", lambda: seconds() - 3600)
        monkeypatch.setattr(time, "time_ns", lambda: nanoseconds() - 3600 * 10**9)
        run.finish()
        about = run.book.info
        assert about.ended >= about.created
        assert 0 <= run.book.summary["length.seconds"] < 1800
    assert about.attempts[1].ended >= about.attempts[0].ended
