"""The keeper's step for health rules: what it shows them, what becomes of what they say, and what a bad one costs."""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import rollbook
import rollbook.health
from cases import some_of
from forked_programs import Interpreter
from rollbook.errors import RollbookWarning
from rollbook.journal import JournalReader
from rollbook.keeper import child
from rollbook.keeper import rules as step
from rollbook.keeper.main import Keeper
from rollbook.keeper.rules import Rules, rules_path
from rollbook.protocols import Alert
from waiting import PATIENCE, until

SEEN: list[Any] = []
HELD = threading.Event()


class Watches:
    """Remembers what it is shown."""

    name, tables = "watches", frozenset({"metrics", "episodes"})

    def open(self, run: Any) -> None:
        SEEN.append("open")

    def look(self, columns: Any, now: float) -> Any:
        for table in ("metrics", "episodes"):
            for key in columns.keys(table):
                SEEN.extend((table, key, value) for value in columns.column(key, table).values)
        return ()

    def state(self) -> dict[str, Any]:
        return {"seen": len(SEEN)}

    def set_state(self, state: Any) -> None:
        SEEN.append(dict(state))


class Counts(Watches):
    """Remembers that it was asked."""

    name = "counts"

    def look(self, columns: Any, now: float) -> Any:
        SEEN.append("look")
        return ()


class Raises(Watches):
    """Fails at every look."""

    name = "raises"

    def look(self, columns: Any, now: float) -> Any:
        raise ZeroDivisionError("by design")


class Hangs(Watches):
    """Does not come back."""

    name = "hangs"

    def look(self, columns: Any, now: float) -> Any:
        HELD.wait(PATIENCE)
        return [Alert("hangs", "warn", "too late")]


class OpensLate(Watches):
    """Keeps all rules waiting before they begin."""

    name = "opens_late"

    def open(self, run: Any) -> None:
        HELD.wait(PATIENCE)


class OpensSlowly(Watches):
    """The same, for a moment that is longer than the end may wait for a rule."""

    name = "opens_slowly"

    def open(self, run: Any) -> None:
        HELD.wait(0.6)


class RemembersSlowly(Watches):
    """Does not come back from the run's history."""

    name = "remembers_slowly"

    def look(self, columns: Any, now: float) -> Any:
        return HELD.wait(PATIENCE) and () if "recalling" in sys.argv[0] else ()


class Speaks(Watches):
    """Says something of each row."""

    name = "speaks"

    def look(self, columns: Any, now: float) -> Any:
        losses = columns.column("loss") if len(columns) else ()
        places = [losses.where(i)["clocks"] for i in range(len(losses))]
        return [Alert("speaks", "warn", f"a row at {place}", {"n": 1}, key="k", clocks=place) for place in places]


@pytest.fixture(autouse=True)
def nothing_seen() -> Any:
    SEEN.clear()
    HELD.clear()
    yield
    HELD.set()


def spec(made: type) -> dict[str, str]:
    return {"name": f"{__name__}:{made.__name__}"}


def look_at_all(run: Any, *asked: type, report: Any = lambda cause, words: None, **limits: Any) -> Rules:
    rules = Rules(str(run.folder), [spec(made) for made in asked], report=report, **limits)
    until(rules.finish)
    return rules


def _book(folder: Path) -> list[dict[str, Any]]:
    from rollbook.book.book import Book

    return Book(folder).alerts().to_pylist()


def test_the_end_of_a_run_waits_for_its_rules_and_not_for_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("rollbook.keeper.main.wait", lambda seconds, _descriptors: pauses.append(seconds))
    with rollbook.init("p", "n", dir=tmp_path, sinks=[], keeper="inline") as run:
        for step in range(50):
            run.log({"loss": 1.0 if step < 49 else math.nan}, env_step=step)
    assert [row["rule"] for row in _book(run.folder)] == ["non_finite"]
    assert not any(pauses)


def test_rules_see_the_rows_of_their_tables_in_order_and_none_of_the_keepers_or_rollbooks_own(make_run: Any) -> None:
    run = make_run()
    log = run.log()
    own = run.add_writer()
    about = Path(own.folder) / "writer.json"
    about.write_text(json.dumps({**json.loads(about.read_text()), "keeper": True}))
    for n in range(50):
        log({"loss": float(n)}, env_step=n)
    run.log(own)({"host/cpu": 1.0})
    run.writer.make_log(run.writer.channel(prefix="rollbook/", scope="rollbook"))({"rollbook/seconds": 1.0})
    run.writer.frame({"table": "episodes", "scope": "", "at": "", "clocks": [], "n": 1, "columns": {"return": [3.0]}})
    run.writer.frame({"table": "text", "scope": "", "at": "", "clocks": [], "n": 1, "columns": {"key": ["a"]}})
    rules = look_at_all(run, Watches)
    assert SEEN[0] == "open"
    assert SEEN[1:51] == [("metrics", "loss", float(n)) for n in range(50)]
    assert SEEN[51:] == [("episodes", "return", 3.0)]
    assert rules.rows == 51


def test_a_later_keeper_goes_on_where_the_former_one_stopped(make_run: Any) -> None:
    run = make_run()
    log = run.log()
    log({"loss": 1.0})
    look_at_all(run, Watches)
    log({"loss": 2.0})
    SEEN.clear()
    look_at_all(run, Watches)
    assert SEEN[0] == "open"
    assert SEEN[1] == {"seen": 2}
    assert SEEN[2:] == [("metrics", "loss", 2.0)]


def test_an_alert_is_one_row_with_its_evidence_and_its_place_and_its_likes_are_counted(make_run: Any) -> None:
    run = make_run()
    log = run.log()
    for n in range(12):
        log({"loss": 1.0}, env_step=n)
    rules = look_at_all(run, Speaks)
    assert rules.alerts == 12
    look_at_all(run, Speaks)
    first, tenth = _book(run.folder)
    assert (first["rule"], first["key"], first["env_step"]) == ("speaks", "k", 0)
    assert json.loads(first["evidence"]) == {"n": 1, "count": 1}
    assert tenth["message"].endswith("(10 times so far)")
    assert read_said(run.folder) == [["speaks", "warn\0k\0", 12]]


def read_said(folder: Path) -> Any:
    return json.loads(Path(rules_path(str(folder))).read_text())["said"]


def test_a_rule_that_raises_is_asked_three_times_and_the_others_go_on(make_run: Any) -> None:
    run = make_run()
    said: list[str] = []
    rules = Rules(str(run.folder), [spec(Raises), spec(Speaks)], report=lambda cause, words: said.append(words))
    looker = step._RuleBook(rules, _Alone())
    log = run.log()
    for _ in range(5):
        log({"loss": 1.0}, env_step=1)
        looker.look(last=True)
    looker.close()
    assert rules.failures == 3
    assert [words.rpartition("; ")[2] for words in said] == ["it is asked again"] * 2 + ["it is asked no more"]
    assert rules.alerts == 5
    (note,) = (row for row in _book(run.folder) if row["level"] == "note")
    assert note["rule"].endswith("Raises")
    assert "it is asked no more. To ask it now: rollbook check" in note["message"]


class _Alone:
    """Stands in for the thread."""

    abandoned = False

    def between(self, name: str) -> bool:
        return True


def test_a_rule_that_hangs_is_left_behind_and_the_keeper_and_the_others_go_on(
    make_run: Any, make_keeper: Any, tuned: Any, eventually: Any
) -> None:
    run = make_run(sinks=[{"name": "jsonl"}], rules=[spec(Hangs), spec(Speaks)])
    keeper = make_keeper(run)
    run.log()({"loss": 1.0}, env_step=3)
    run.writer.close()

    def done() -> bool:
        looker = keeper._rules._looker
        hangs = looker is not None and looker.at_work[0].endswith("Hangs")
        # However slow the machine is, only the one that hangs takes too long.
        tuned(look_seconds=0.05 if hangs else PATIENCE)
        return keeper.step() is None

    eventually(done)
    assert keeper.phase == "done"
    assert "Hangs took over 0.05 s for one look; it is asked no more" in run.keeper_log()
    hangs, speaks = sorted(_book(run.folder), key=lambda row: str(row["level"]))
    assert (speaks["rule"], hangs["level"]) == ("speaks", "note")
    assert "Hangs took over 0.05 s for one look; it is asked no more" in hangs["message"]
    assert any('"loss"' in line for line in map(json.dumps, run.lines()))
    assert any("alert/speaks" in line for line in map(json.dumps, run.lines())), "what rules find goes to the sinks"


def test_no_rule_holds_up_the_end_of_a_run_and_what_it_finds_later_is_kept(
    make_run: Any, make_keeper: Any, eventually: Any, clock: Any
) -> None:
    run = make_run(sinks=[{"name": "jsonl"}], rules=[spec(Hangs)])
    keeper = make_keeper(run, clock=clock)
    run.log()({"loss": 1.0}, env_step=3)
    run.writer.close()
    keeper.step()
    clock.now += 0.6

    def complete() -> bool:
        assert keeper.step() is not None
        return run.writer.id in run.state().get("complete", ())

    eventually(complete)
    assert keeper.phase == "running"
    assert keeper._rules._looker.busy, "the rule still hangs, and nobody waits for it"
    HELD.set()
    eventually(lambda: keeper.step() is None)
    assert keeper.phase == "done"
    assert any("too late" in line for line in map(json.dumps, run.lines()))
    assert [row["message"] for row in _book(run.folder)] == ["too late"]


def looks_fail(monkeypatch: Any, times: float) -> None:
    """The first looks of the rules at rows fail."""
    read, failed = JournalReader.columns, list[int]()

    def columns(*arguments: Any, **options: Any) -> Any:
        if len(failed) < times:
            failed.append(1)
            raise OSError("by design")
        return read(*arguments, **options)

    monkeypatch.setattr(JournalReader, "columns", columns)


SLOW = {
    "the start of the rules": OpensSlowly,
    "a rule": Hangs,
    "a history": RemembersSlowly,
    "a look that fails": Watches,
}


@pytest.mark.parametrize("slow", SLOW)
def test_a_nan_is_reported_when_the_run_ends_whatever_else_is_slow_or_fails(
    tmp_path: Path, monkeypatch: Any, tuned: Any, slow: str
) -> None:
    tuned(rules_seconds=0.0, rules_end_seconds=PATIENCE, recall_end_seconds=0.0)
    looks_fail(monkeypatch, 2 if slow == "a look that fails" else 0)
    rules = [spec(SLOW[slow]), *rollbook.health.DEFAULT]
    options: dict[str, Any] = {"dir": tmp_path, "sinks": [], "keeper": "inline", "rules": rules}
    with rollbook.init("p", "one", **options) as run:
        for n in range(30):
            run.log({"loss": 1.0 if n < 20 or slow == "a history" else math.nan}, env_step=n)
    if slow == "a history":
        with rollbook.init("p", "one", **options, resume=True) as run:
            run.rewind(env_step=15)
            for n in range(16, 30):
                run.log({"loss": 1.0 if n < 20 else math.nan}, env_step=n)
    found = [row for row in _book(run.folder) if row["level"] != "note"]  # that the slow rule is asked no more
    assert [(row["rule"], row["env_step"]) for row in found] == [("non_finite", 20)]


@pytest.mark.parametrize("looks", [0, 5])
def test_a_keeper_ends_although_no_look_of_the_rules_succeeds(
    make_run: Any, make_keeper: Any, monkeypatch: Any, eventually: Any, looks: int
) -> None:
    """However often they have failed before the run ends."""
    looks_fail(monkeypatch, math.inf)
    run = make_run(rules=[{"name": "non_finite"}])
    keeper = make_keeper(run, seal_command=None)
    log = run.log()

    def looked() -> bool:
        log({"loss": 1.0})
        keeper.step()
        return keeper._rules.failures >= looks

    eventually(looked)
    run.writer.close()
    eventually(lambda: keeper.step() is None)
    assert "could not look at the last rows" in keeper._rules.unseen
    assert not Path(run.writer.folder).exists(), "all is sealed"


def test_rows_that_no_rule_has_seen_yet_are_not_sealed_at_the_end_and_are_judged_later(
    make_run: Any, make_keeper: Any, tuned: Any, eventually: Any
) -> None:
    tuned(rules_end_seconds=0.0)
    run = make_run(rules=[spec(OpensLate), {"name": "non_finite"}])
    keeper = make_keeper(run, seal_command=None)
    for n in range(30):
        run.log()({"loss": 1.0 if n < 20 else math.nan}, env_step=n)
    run.writer.close()

    def complete() -> bool:
        assert keeper.step() is not None
        return run.writer.id in run.state().get("complete", ())

    eventually(complete)
    HELD.set()
    eventually(lambda: keeper.step() is None)
    assert [row["rule"] for row in _book(run.folder)] == ["non_finite"]
    assert not Path(run.writer.folder).exists(), "and then all is sealed"


def test_what_no_rule_has_seen_when_the_run_ends_is_reported_with_the_command_that_asks_them(
    tmp_path: Path, tuned: Any
) -> None:
    tuned(rules_end_seconds=0.0)
    run = rollbook.init("p", "one", dir=tmp_path, sinks=[], keeper="inline", rules=[spec(OpensLate)])
    run.log({"loss": 1.0}, env_step=3)
    with pytest.warns(RollbookWarning, match="ended before the health rules had seen its last rows.*rollbook check"):
        run.finish()
    HELD.set()
    assert run.bill()["remarks"] == {"unjudged": 1}


def test_a_run_that_keeps_itself_leaves_a_rule_behind_that_hangs(make_run: Any, make_keeper: Any) -> None:
    run = make_run(rules=[spec(Hangs)])
    run.log()({"loss": 1.0}, env_step=3)
    run.writer.close()
    keeper = make_keeper(run)
    assert keeper.run_to_end()
    assert "was still at work when the run ended" in run.keeper_log()


def test_rows_are_sealed_after_the_rules_have_looked_at_them(
    make_run: Any, make_keeper: Any, monkeypatch: Any, tuned: Any, eventually: Any
) -> None:
    tuned(seal_bytes=1, seal_delay_seconds=PATIENCE, rules_seconds=PATIENCE, look_rest=0)
    run = make_run(rules=[spec(Watches)])
    run.writer.largest_segment_bytes = run.writer.first_segment_bytes = 4096
    keeper = make_keeper(run, seal_command=None)
    keeper.step()  # which makes the rules of the plan
    # A busy machine makes them pass over nothing.
    keeper._rules.look_seconds = keeper._rules.last_look_seconds = PATIENCE
    log = run.log()
    logged: list[float] = []
    start_child = child.start_child

    def write() -> None:
        for _ in range(500):
            logged.append(float(len(logged)))
            log({"loss": logged[-1]}, env_step=len(logged))

    def begins_late(*asked: Any) -> Any:
        if not run.writer.closed:
            write()  # after the rules' last look
        process = start_child(*asked)
        process.wait()  # and they look again only when it has sealed
        return process

    def sealed() -> bool:
        if len(logged) < 2000:
            write()
        keeper.step()
        return keeper._sealing.successes >= 2

    monkeypatch.setattr(child, "start_child", begins_late)
    eventually(sealed)
    run.writer.close()
    eventually(lambda: keeper.step() is None)
    seen = [value for _table, _key, value in SEEN[1:]]
    assert sorted(set(seen) & set(logged)) == seen  # in order, each once
    assert (len(seen), keeper._rules.skipped) == (len(logged), 0), "nothing was sealed before it was looked at"


def test_a_memory_that_a_rule_cannot_use_lets_it_begin_again(make_run: Any) -> None:
    run = make_run()
    for n in range(30):
        run.log()({"loss": math.nan if n > 20 else 1.0}, env_step=n)
    path = Path(rules_path(str(run.folder)))
    path.write_text(json.dumps({"rules": {name: {"odd": 1} for name in rollbook.health.DEFAULT}}))
    said: list[str] = []
    rules = Rules(
        str(run.folder),
        [{"name": name} for name in rollbook.health.DEFAULT],
        report=lambda cause, words: said.append(words),
    )
    until(rules.finish)
    assert rules.alerts == 1
    assert len([words for words in said if "starts again" in words]) == len(rollbook.health.DEFAULT)


def test_a_rule_that_cannot_be_made_is_reported_and_the_others_look(make_run: Any) -> None:
    run = make_run()
    run.log()({"loss": 1.0})
    said: list[str] = []
    rules = Rules(str(run.folder), [{"name": "nothing"}, spec(Watches)], report=lambda cause, words: said.append(words))
    until(rules.finish)
    assert len(SEEN) == 2
    assert "no rule is named 'nothing'" in said[0]


def test_nothing_is_read_while_nothing_is_logged(make_run: Any, clock: Any) -> None:
    rules = Rules(str(make_run().folder), [spec(Watches)], clock=clock)
    for _ in range(100):
        clock.now += 1
        rules.step({})
    assert rules._looker is None, "an idle keeper has no thread for them"
    rules.close()


def test_rules_are_asked_at_once_when_rows_come_and_now_and_then_while_none_do(make_run: Any, clock: Any) -> None:
    """Else a rule would be late, or none could say that a run stands still."""
    run = make_run()
    run.log()({"loss": 1.0})
    rules = Rules(str(run.folder), [spec(Counts)], clock=clock)

    def looks(rows: int, after: float) -> int:
        clock.now += after
        rules.step({"writer": {"0": rows}})
        rules.wait(PATIENCE)
        return SEEN.count("look")

    assert [looks(1, 0), looks(1, 1), looks(2, 0), looks(2, 1), looks(2, 60), looks(3, 1)] == [1, 1, 2, 2, 3, 4]
    rules.close()


def test_a_torrent_is_looked_at_in_samples_and_what_was_left_out_is_counted(make_run: Any) -> None:
    run = make_run()
    log = run.log()
    for n in range(5000):
        log({"loss": float(n)}, env_step=n)
    rules = look_at_all(run, Watches, last_look_seconds=0.0, stretch_bytes=16 * 1024)
    assert rules.rows + rules.skipped == 5000
    assert rules.skipped > 2000
    assert SEEN[-1] == ("metrics", "loss", 4999.0)


def test_rows_that_were_left_out_are_no_absence_of_what_they_held(make_run: Any) -> None:
    """A healthy loop that logs more than can be looked at: each row has what the rules wait for."""
    run = make_run()
    log = run.log()
    keys = ("train/return", "train/length", "test/return", "update/loss/policy", "update/entropy")
    rules = Rules(
        str(run.folder),
        [{"name": name} for name in rollbook.health.DEFAULT],
        last_look_seconds=0.0,
        stretch_bytes=64 * 1024,
    )
    for n in range(20_000):
        if n == 500:
            rules.step({"writer": {"0": n}})
            until(lambda: not rules.wait(0.1))
        log(dict.fromkeys(keys, 1.0 + n / 1000), env_step=n)
    until(rules.finish)
    assert rules.rows > 500
    assert rules.skipped > 10_000
    waiting = {"never_updated", "no_episode", "silent"}
    assert [row["message"] for row in _book(run.folder) if row["rule"] in waiting] == []


def test_rules_are_shown_the_rows_that_count_and_after_a_rewind_remember_only_those(
    tmp_path: Path, make_run: Any
) -> None:
    with rollbook.init("p", dir=tmp_path, sinks=[], keeper="inline", rules=[spec(Watches)]) as run:
        for n in range(5):
            run.log({"loss": 1.0}, env_step=n)
        run.rewind(env_step=2)
        run.log({"loss": 9.0}, env_step=3)
    assert [row if row == "open" else row[2] for row in SEEN] == ["open", *[1.0] * 3, 9.0]
    SEEN.clear()
    with rollbook.init("p", "seen", dir=tmp_path, sinks=[], keeper="inline", rules=()) as run:
        for n in range(5):
            run.log({"loss": 1.0}, env_step=n)
        look_at_all(run, Watches)
        run.rewind(env_step=2)
        run.log({"loss": 9.0}, env_step=3)
        look_at_all(run, Watches)
    opened = ["open", {"seen": 6}]  # by the second keeper
    went_back = ["open", {"seen": 4}]  # what a process that saw three rows remembers
    shown = [row if row == "open" or isinstance(row, dict) else row[2] for row in SEEN]
    assert shown == ["open", *[1.0] * 5, *opened, *went_back, 9.0]


def test_a_run_says_what_the_usual_rules_find_and_nothing_without_them(tmp_path: Path) -> None:
    for name, chosen in (("usual", {}), ("none", {"rules": ()})):
        with rollbook.init("p", name, dir=tmp_path, sinks=["jsonl"], keeper="inline", **chosen) as run:
            for n in range(30):
                run.log({"loss": math.nan if n > 20 else 1.0}, env_step=n)
        found = _book(run.folder)
        assert [(row["rule"], row["level"], row["env_step"]) for row in found] == (
            [("non_finite", "fail", 21)] if name == "usual" else []
        )


def test_a_keeper_process_asks_the_rules_and_the_alerts_outlive_it(tmp_path: Path) -> None:
    with rollbook.init("p", dir=tmp_path, sinks=[]) as run:
        for n in range(30):
            run.log({"loss": math.nan if n > 20 else 1.0}, env_step=n)
    Keeper(run.folder).run_to_end()
    assert [row["level"] for row in _book(run.folder)] == ["fail"]


RESUMED = """
import math, os, signal, sys, rollbook
from rollbook.system.tuning import TUNING
TUNING.recall_end_seconds = TUNING.finish_seconds = 60.0  # an attempt of milliseconds waits for its history
root, name, stop = sys.argv[1], sys.argv[2], int(sys.argv[3])
run = rollbook.init("p", name, dir=root, sinks=[], keeper=sys.argv[4], resume="allow", total={"env_step": 20_000})
begin = run.restore().state["step"] if run.resumed else 0
for step in range(begin, 20_000, 50):
    if step and step % 2_000 == 0:
        run.save_checkpoint({"step": step})
    shape = min(1.0, step / 5_000) if "learns" in name else math.sin(step / 1_000)
    run.log({"train/return": 20 + 480 * shape + step % 7, "update/loss/policy": math.sin(step)}, env_step=step)
    if step == 3_000 and "breaks" in name:
        run.log({"update/loss/value": math.nan}, env_step=step)
    if step >= stop:
        os.kill(os.getpid(), signal.SIGKILL)
run.finish()
"""


@pytest.mark.parametrize("kind", some_of(["rises-and-falls", "learns", "breaks"], 1))
@pytest.mark.parametrize("keeper", some_of(["inline", "process"], 1))
def test_a_run_that_was_killed_and_resumed_is_judged_like_one_that_was_not(
    tmp_path: Path, kind: str, keeper: str, interpreter: Interpreter
) -> None:
    """The first returns of an attempt are not those of the run: a good policy goes on as a good one."""

    def train(name: str, *stops: int) -> list[tuple[str, str, str, int]]:
        for stop in stops:
            interpreter.run(RESUMED, tmp_path, name, stop, keeper, env=os.environ)
        (folder,) = (tmp_path / "p").glob(f"{name}-*")
        assert json.loads((folder / "run.json").read_text())["status"] == "finished"
        return sorted((row["rule"], row["level"], row["key"], row["env_step"]) for row in _book(folder))

    whole = train("whole-" + kind, 99_999)
    assert bool(whole) == (kind != "learns")
    assert train("killed-" + kind, 5_130, 13_000, 99_999) == whole


class Breaks(Watches):
    """Ends the process that reads a run's history."""

    name = "breaks"

    def look(self, columns: Any, now: float) -> Any:
        if "recalling" in sys.argv[0]:
            raise ZeroDivisionError("by design")
        return ()


class Dies(Breaks):
    """The same, as the system does when memory is short."""

    name = "dies"

    def look(self, columns: Any, now: float) -> Any:
        if "recalling" in sys.argv[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        return ()


WITHOUT_HISTORY: dict[str, tuple[type | None, dict[str, float]]] = {
    "no time": (None, {"recall_seconds": 0.0}),
    "a history that is too long": (None, {"recall_rows": 10}),
    "a process that is killed": (Dies, {}),
    "a process that fails": (Breaks, {}),
}


@pytest.mark.parametrize(("wrong", "values"), some_of(WITHOUT_HISTORY.values(), 3, ids=[*WITHOUT_HISTORY]))
@pytest.mark.parametrize("has_memory", some_of([True, False], 1))
def test_rules_without_the_history_of_a_run_say_nothing_false_and_still_see_a_nan(
    tmp_path: Path, wrong: type | None, values: dict[str, float], has_memory: bool, tuned: Any
) -> None:
    """The returns of this attempt are good from the first on: they are no start at which nothing is known."""
    tuned(recall_end_seconds=PATIENCE, **values)
    options: dict[str, Any] = {"dir": tmp_path, "sinks": [], "keeper": "inline", "total": {"env_step": 400}}
    rules = [*rollbook.health.DEFAULT, *([spec(wrong)] if wrong else [])]
    with rollbook.init("p", "one", **options, rules=rules if has_memory else ()) as run:
        for step in range(300):
            run.log({"train/return": min(90.0, 0.5 * step) + step % 7, "loss": 1.0}, env_step=step)
    with rollbook.init("p", "one", **options, rules=rules, resume=True) as run:
        run.rewind(env_step=250)
        for step in range(251, 400):
            run.log({"train/return": 90.0 + step % 7, "loss": math.nan if step == 390 else 1.0}, env_step=step)
    assert [(row["rule"], row["env_step"]) for row in _book(run.folder)] == [("non_finite", 390)]
    log = run.folder / "data" / "keeper" / "log"  # gone if there was nothing to note
    assert (log.exists() and "not asked in it: below_earlier, " in log.read_text()) == (not has_memory)
