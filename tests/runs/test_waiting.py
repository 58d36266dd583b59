"""Waiting for a condition on a run, and listing what went wrong: what scripts and agents stand on."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import rollbook
from cases import some_of
from rollbook.book.book import Book
from rollbook.cli.app import app
from rollbook.errors import BadInput
from rollbook.runs.waiting import Waited, wait


@pytest.fixture(autouse=True)
def _no_run_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROLLBOOK_RUN_ID", raising=False)


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run: a return that rose to 500 and fell to 20, a loss that ended in NaN."""
    root = tmp_path_factory.mktemp("ended")
    with rollbook.init("p", "n", dir=root, sinks=[], keeper="inline", seed=3, config={"lr": 0.1, "it's": 1}) as run:
        for step, value in enumerate((10.0, 500.0, 20.0)):
            run.log({"test/return": value, "loss": math.nan if step == 2 else 1.0, 'a"b': 1.0}, env_step=10 * step)
    return Path(run.folder)


def look(folder: Path, until: str) -> Waited:
    return wait(Book(folder), until, timeout=0)


TRUE = [
    'last("test/return") > 15', "last('test/return') = 20", 'max("test/return") >= 500', 'min("test/return") < 11',
    'mean("test/return") > 100', 'last("env_step") = 20', 'status = "finished"', 'status != "running"',
    'config.lr > 0.05', 'config["lr"] > 0.05', "config['lr'] > 0.05", "seed = 3",
    "seed == 3 and not status == 'killed'",
    'last( "test/return" )>15', 'LAST("test/return") > 15', 'last("loss") is null', 'abs(last("test/return")) > 15',
    'last("nowhere") > 1 or status = "finished"', 'last("a""b") = 1', "name = \"n\" and project = 'p'",
    'mean("test/return", last="67%") = 260', 'median("test/return", last=2) = 260', "max('test/return', last=1) = 20",
    'steps_to(475, "test/return") = 10', 'steps_to(1000, "test/return") is null', 'first("test/return") = 10',
    'status in ("finished", "killed")', 'summary["test/return.best"] = 500',
]  # fmt: skip
FALSE = [
    'last("test/return") > 475', 'max("test/return") > 500', 'last("loss") > 0', 'last("loss") < 0',
    'last("loss") != 1',
    'last("nowhere") > 0', 'max("nowhere") > 0', 'not last("nowhere") > 0', 'status = "running"',
    "name = 'status != \"running\"'", "status = 'last(\"test/return\") > 15'",
]  # fmt: skip
REFUSED = [
    "", "last(", 'second("test/return") > 1', 'avg("loss") > 0', "statsu = 'finished'", "1; select 2",
    "(select 1) = 1", 'status = "finished" order by 1', "read_text('/etc/hostname') = ''", "__import__('os')",
    "last(loss) > 1 and nothing = 2", 'status > ',
]  # fmt: skip


@pytest.mark.parametrize("until", some_of(TRUE, TRUE[::2].count))
def test_a_condition_that_is_true_is_met(until: str, ended: Path) -> None:
    assert look(ended, until).outcome == "met"


@pytest.mark.parametrize("until", FALSE)
def test_one_that_is_not_true_of_a_run_that_ended_says_so_at_once(until: str, ended: Path) -> None:
    assert wait(Book(ended), until, timeout=1e9, sleep=lambda seconds: pytest.fail("it slept")).outcome == "ended"


def test_a_function_that_is_none_of_a_key_is_named_with_those_there_are(ended: Path) -> None:
    with pytest.raises(BadInput, match=r"a key has no function 'maxx'\. Did you mean 'max'\? Available: area, best, "):
        look(ended, 'maxx("test/return") > 1')
    said = call("wait", str(ended), "--until", "statsu = 'finished'").stderr
    assert "condition \"statsu = 'finished'\"" in said


@pytest.mark.parametrize("until", REFUSED)
def test_what_cannot_be_read_is_refused_by_the_first_look(until: str, ended: Path) -> None:
    with pytest.raises(BadInput):
        look(ended, until)
    assert call("wait", str(ended), "--until", until).exit_code == 2


def test_a_live_run_is_looked_at_until_it_is_true(tmp_path: Path) -> None:
    run = rollbook.init("p", "n", dir=tmp_path, sinks=[], keeper="inline")
    steps = iter(range(1, 100))

    def train(seconds: float) -> None:
        run.log({"test/return": float(next(steps))}, env_step=1)

    waited = wait(Book(run.folder), 'last("test/return") >= 3', timeout=1e9, sleep=train)
    assert (waited.outcome, waited.status) == ("met", "running")
    assert waited.values == {'last("test/return")': 3.0}

    def end(seconds: float) -> None:
        run.log({"test/return": 1000.0}, env_step=2)
        run.finish()

    waited = wait(Book(run.folder), 'last("test/return") > 475', timeout=1e9, sleep=end)
    assert waited.outcome == "met", "what a run wrote before it ended counts"


def test_the_time_is_up_when_it_is_up_and_the_key_meant_is_named(tmp_path: Path) -> None:
    now = 0.0

    def pass_by(seconds: float) -> None:
        nonlocal now
        now += seconds

    with rollbook.init("p", "n", dir=tmp_path, sinks=[], keeper="inline") as run:
        run.log({"test/return": 1.0})
        waited = wait(
            Book(run.folder), 'last("test/retrun") > 5', timeout=0.7, poll_seconds=0.5, clock=lambda: now, sleep=pass_by
        )
    assert (waited.outcome, waited.seconds) == ("timeout", 0.7)
    assert "Did you mean 'test/return'?" in waited.hint


@pytest.mark.parametrize("number", [-1.0, math.nan])
def test_a_wait_of_no_length_is_refused(number: float, ended: Path) -> None:
    with pytest.raises(BadInput):
        wait(Book(ended), "seed = 3", timeout=number)
    with pytest.raises(BadInput):
        wait(Book(ended), "seed = 3", timeout=0.5, poll_seconds=number)


def call(*words: str) -> Result:
    done = CliRunner().invoke(app, list(words))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def test_the_exit_status_says_how_waiting_ended(ended: Path, tmp_path: Path) -> None:
    for until, status in (('last("test/return") = 20', 0), ('last("test/return") = 21', 4), ("nothing = 1", 2)):
        assert call("wait", str(ended), "--until", until).exit_code == status
    assert call("wait", "nowhere", "--dir", str(tmp_path), "--until", "seed = 3").exit_code == 1
    with rollbook.init("p", "live", dir=tmp_path, sinks=[], keeper="inline") as run:
        done = call("wait", str(run.folder), "--until", 'last("x") = 1', "--timeout", "0", "--json")
    assert done.exit_code == 3
    answer = json.loads(done.stdout)
    assert (answer["outcome"], answer["status"], answer["run"]) == ("timeout", "running", run.id)


def alerts_run(root: Path, name: str, *levels: str) -> Any:
    with rollbook.init("p", name, dir=root, sinks=[], keeper="inline") as run:
        for n, level in enumerate(levels):
            row = {
                "rule": f"rule{n}",
                "level": level,
                "message": f"message {n}",
                "evidence": "{}",
                "source": "",
                "key": "x",
            }
            run.record("alerts", row, env_step=n)
    return run


def test_alerts_of_all_runs_are_listed_by_time_and_from_a_moment_on(tmp_path: Path) -> None:
    for name, levels in {"a": ["warn"], "b": ["warn", "fail"], "c": []}.items():
        alerts_run(tmp_path, name, *levels)
    rows = json.loads(call("alerts", "--dir", str(tmp_path), "--json").stdout)
    assert [row["name"] for row in rows] == ["a", "b", "b"]
    assert [row["level"] for row in rows] == ["warn", "warn", "fail"]
    assert rows == sorted(rows, key=lambda row: row["seconds"])
    for moment in (str(rows[1]["seconds"]), rows[1]["time"]):
        assert json.loads(call("alerts", "--dir", str(tmp_path), "--since", moment, "--json").stdout) == rows[1:]
    assert json.loads(call("alerts", "--dir", str(tmp_path), "--since", "1h", "--json").stdout) == rows
    assert call("alerts", "--dir", str(tmp_path), "--since", "yesterday").exit_code == 2
    assert "message 0" in call("alerts", "a", "--dir", str(tmp_path)).stdout


@pytest.mark.parametrize(
    ("levels", "fail_on", "status"),
    [
        ((), "warn", 0),
        (("warn",), "never", 0),
        (("warn",), "warn", 1),
        (("warn",), "fail", 0),
        (("fail",), "warn", 1),
        (("fail",), "fail", 1),
    ],
)
def test_alerts_exit_with_1_from_the_level_on_that_was_asked_for(
    levels: tuple[str, ...], fail_on: str, status: int, tmp_path: Path
) -> None:
    alerts_run(tmp_path, "a", *levels)
    assert call("alerts", "--dir", str(tmp_path), "--fail-on", fail_on).exit_code == status
