"""Exceptions that somebody else raises while rollbook is at work: Ctrl-C, time limits, pre-emption.

The rule: they come out unchanged and once, no acknowledged row is lost or doubled, and the next call works.
Verbs that cost microseconds are struck at every line. Those that read and write files are struck at some lines by
`make test` and at many more by `make test-long`; `ROLLBOOK_INTERRUPTS=n` raises every kind of exception at every line
(n > 0) and makes the random test n times as long.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import first_calls
import rollbook
from cases import some_of
from interrupting import KINDS, Limit, at_random_moments, interrupt_at
from journal_reading import read_frames, read_rows
from rollbook.system import files
from waiting import PATIENCE

LONG = int(os.environ.get("ROLLBOOK_INTERRUPTS", "0"))

Call = Callable[[Any, int], object]


def lines_apart(some: int, many: int) -> pytest.MarkDecorator:
    """From one line that is struck to the next: in `make test`, and in `make test-long`."""
    return pytest.mark.parametrize("apart", [some, pytest.param(1 if LONG else many, marks=pytest.mark.long)])


def marks(folder: Path) -> Counter[int]:
    """How often each number i of a call stands in the journal."""
    seen: Counter[int] = Counter(int(row.values["i"]) for row in read_rows(folder) if "i" in row.values)
    for frame in read_frames(folder):
        columns = frame.get("columns", {})
        seen.update(int(n) for n in re.findall(r"<(\d+)>", str(columns.get("text", ""))))
        cells = columns.get("i", [])
        seen.update(cells.rows() if hasattr(cells, "rows") else cells if isinstance(cells, list) else [cells])
    return seen


VERBS: dict[str, Call] = {
    "log": lambda run, i: run.log({"i": i, "x": i / 2}, env_step=i),
    "log with clocks that are no int": lambda run, i: run.log({"i": i, "x": i / 2}, env_step=float(i)),
    "log of key sets that change": lambda run, i: run.log({"i": i, f"k{i % 3}": 1.0, f"m{i}": 2.0}),
    "log of types that change": lambda run, i: run.log({"i": i, "x": (1, 0.5, True)[i % 3]}),
    "log of nested dicts, text and arrays": lambda run, i: run.log(
        {"i": i, "deep": {"er": 1.0}, "words": "some", "many": [1.0, 2.0]}
    ),
    "log of what is refused": lambda run, i: run.log({"i": i, "odd": object()}),
    "log in a scope": lambda run, i: run.scope("s").run.log({"i": i}),
    "log_many": lambda run, i: run.log_many({"i": [i], "x": [0.5]}, env_step=[i]),
    "record": lambda run, i: run.record("own", {"i": [i], "x": [1.5]}, env_step=i),
    "log_text": lambda run, i: run.log_text("words", f"<{i}>"),
    "note": lambda run, i: run.note(f"<{i}>"),
    "log_episode": lambda run, i: run.log_episode(i=i, return_=1.0, length=3),
    "log_histogram": lambda run, i: (run.log_histogram("h", [1.0, 2.0]), run.log({"i": i})),
    "log_samples": lambda run, i: run.log_samples([f"prompt {i}"], i=[i]),
    "store": lambda run, i: run.store({"i": i}),
    "clock": lambda run, i: (run.clock(env_step=i), run.log({"i": i})),
}
"""Calls that write one row (or record) with the number i."""


@pytest.fixture
def open_run(tmp_path: Path) -> Iterator[Callable[[], Any]]:
    """Opens runs whose rows stay in the journal."""
    runs = []

    def make() -> Any:
        run = rollbook.init("p", "r", dir=tmp_path, sinks=[], keeper="inline")
        runs.append(run)
        return run

    yield make
    for run in runs:
        run.finish()


def interrupted_calls(run: Any, call: Call, first: int) -> tuple[list[int], list[int], list[str]]:
    """Interrupt the call at each of its events in turn, each time followed by one that nobody disturbs.

    Returns:
      The numbers of calls that returned, those of calls that did not, and the places.
    """
    done, undone, places = [], [], []
    i = first
    event = 1
    while True:
        raised = False
        for kind in KINDS if LONG else (KINDS[event % len(KINDS)],):
            reached, place = interrupt_at(event, kind(), lambda n=i: call(run, n))
            (undone if reached else done).append(i)
            raised = raised or reached
            places.append(place)
            call(run, i + 1)
            done.append(i + 1)
            i += 2
        if not raised:
            return done, undone, places
        event += 1


def report(capsys: pytest.CaptureFixture[str], what: str, interrupts: int, rows: int) -> None:
    """A line of the interrupt matrix; nothing is said of rows lost, doubled or eaten, as the test fails then."""
    with capsys.disabled():
        print(f"\n| {what} | {interrupts} interrupts | {rows} acknowledged | lost 0 | doubled 0 | eaten 0 |", end="")


def check(run: Any, done: list[int], undone: list[int]) -> None:
    seen = marks(run.folder)
    lost = [i for i in done if seen[i] == 0]
    doubled = [i for i in (*done, *undone) if seen[i] > 1]
    assert not lost, f"{len(lost)} of {len(done)} acknowledged rows are lost: {lost[:10]}"
    assert not doubled, f"{len(doubled)} rows are there twice: {doubled[:10]}"
    assert not set(seen) - {*done, *undone}


@pytest.mark.parametrize("verb", some_of(VERBS, lambda verb: list(VERBS).index(verb) % 2 == 0))
def test_an_exception_at_any_line_comes_out_and_costs_no_row(
    open_run: Callable[[], Any], verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run, call = open_run(), VERBS[verb]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.warn", lambda *_a, **_k: None)
        done, undone, _places = interrupted_calls(run, call, 0)
        # Once more with what was made by then: streams, segments, files.
        more_done, more_undone, _places = interrupted_calls(run, call, 100_000)
    check(run, done + more_done, undone + more_undone)
    assert sys.exc_info()[1] is None, "an exception is still being handled"
    # A few come of the run's own thread, which on a slow machine looks at a lane just when it is wanted.
    assert len(run.internals.writer.lanes) <= 8, "interrupts use up lanes"
    report(capsys, verb, len(undone) + len(more_undone), len(done) + len(more_done))


class DeviceNumber:
    """A number that lies on a device, as far as rollbook can tell."""

    device = "cuda:0"
    size = 1

    def __init__(self, number: float) -> None:
        self.number = number

    def copy(self) -> DeviceNumber:
        return DeviceNumber(self.number)

    def item(self) -> float:
        return self.number


class DeviceArray:
    """Several of them."""

    device, size, shape, dtype = "cuda:0", 2, (2,), "float32"

    def copy(self) -> DeviceArray:
        return DeviceArray()

    def get(self) -> list[float]:
        return [1.0, 2.0]


def test_device_values_of_acknowledged_rows_are_fetched_once_whatever_comes_in_between(
    open_run: Callable[[], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    run = open_run()
    values = run.internals.writer.device_values
    event = calls = interrupts = 0
    reached = True
    while reached:
        event += 1
        calls += 1
        run.log({"i": calls, "slow": DeviceNumber(calls + 0.5), f"h{calls}": DeviceArray()})
        reached, _place = interrupt_at(event, KINDS[event % len(KINDS)](), values.flush)
        interrupts += reached
        values.flush()
    fills = [frame for frame in read_frames(run.folder) if "fill" in frame]
    numbers = {number for frame in fills for number in frame["columns"]["slow"]}
    histograms = [f["columns"]["key"][0] for f in read_frames(run.folder) if f.get("table") == "histograms"]
    assert numbers == {n + 0.5 for n in range(1, calls + 1)}
    assert sorted(histograms) == sorted(f"h{n}" for n in range(1, calls + 1))
    report(capsys, "fetching device values", interrupts, 2 * calls)


def test_a_dump_that_was_interrupted_leaves_its_values_to_the_next_one(
    open_run: Callable[[], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    run = open_run()
    event, interrupts, stored = 0, 0, 0
    reached = True
    while reached:
        event += 1
        run.store({"v": float(event)})
        stored += 1
        reached, _place = interrupt_at(event, KINDS[event % len(KINDS)](), run.dump)
        interrupts += reached
        run.dump()
    said = sum(int(row.values["v/n"]) for row in read_rows(run.folder) if "v/n" in row.values)
    assert said >= stored, f"{stored - said} of {stored} values are in no dump"
    assert run.dump() == {"v/n": 0}, "and they are let go once a dump has said them"
    report(capsys, "dump", interrupts, stored)


def test_stages_keep_their_names_after_an_exception_as_one_was_entered_or_left(
    open_run: Callable[[], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    run = open_run()

    def work() -> None:
        with run.timer("outer"), run.timer("inner"):
            run.log({"i": 1})

    event = interrupts = 0
    reached = True
    while reached:
        event += 1
        reached, _place = interrupt_at(event, KINDS[event % len(KINDS)](), work)
        interrupts += reached
        work()
    rows = read_rows(run.folder)
    assert {key for row in rows for key in row.values} == {"i", "outer", "outer/inner"}
    for name in ("outer", "outer/inner"):
        assert sum(name in row.values for row in rows) >= event
    report(capsys, "timer", interrupts, 2 * event)


@lines_apart(293, 37)
def test_a_checkpoint_that_was_interrupted_leaves_the_others_whole_and_the_next_is_saved(
    open_run: Callable[[], Any], apart: int, capsys: pytest.CaptureFixture[str]
) -> None:
    run = open_run()
    event, interrupts, saved = 0, 0, []
    reached = True
    while reached:
        event += apart
        error = KINDS[event % len(KINDS)]()
        reached, _place = interrupt_at(event, error, lambda n=event: run.save_checkpoint({"w": [1.0]}, score=n))
        interrupts += reached
        saved.append(run.save_checkpoint({"w": [2.0]}, score=-float(event), env_step=event))
    assert all(checkpoint.path is not None and checkpoint.path.exists() for checkpoint in saved)
    rows = [frame["columns"] for frame in read_frames(run.folder) if frame.get("table") == "checkpoints"]
    ids = Counter(row["checkpoint_id"][0] for row in rows)
    assert all(ids[checkpoint.id] == 1 for checkpoint in saved)
    report(capsys, "save_checkpoint", interrupts, len(saved))


def media_of(run: Any) -> Counter[str]:
    return Counter(
        key for frame in read_frames(run.folder) if frame.get("table") == "media" for key in frame["columns"]["key"]
    )


@lines_apart(121, 7)
@pytest.mark.parametrize("verb", ["log_image", "log_video", "log_figure"])
def test_a_picture_or_film_whose_call_returned_has_its_row_once_and_its_file(
    open_run: Callable[[], Any], verb: str, apart: int, capsys: pytest.CaptureFixture[str]
) -> None:
    run = open_run()
    figure = pytest.importorskip("matplotlib.figure").Figure(figsize=(0.2, 0.2)) if verb == "log_figure" else None
    frames = np.full((2, 2, 2, 3), 64, dtype=np.uint8)
    pixels = figure or (frames if verb == "log_video" else frames[0])
    call = getattr(run, verb)
    call("begun", pixels)
    event, interrupts, done = 0, 0, ["begun"]
    reached = True
    while reached:
        event += apart
        error = KINDS[event % len(KINDS)]()
        reached, _place = interrupt_at(event, error, lambda n=event: call(f"struck{n}", pixels))
        interrupts += reached
        done += [] if reached else [f"struck{event}"]
        call(f"next{event}", pixels)
        done.append(f"next{event}")
    rows = media_of(run)
    assert not [key for key in done if rows[key] != 1]
    assert max(rows.values()) == 1
    run.finish()
    table = run.book.media()
    assert table.num_rows == len(rows)
    assert all((run.folder / path).is_file() for path in table["path"].to_pylist())
    report(capsys, verb, interrupts, len(done))


def test_values_of_the_summary_are_kept_whatever_interrupts_setting_them(
    open_run: Callable[[], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    run = open_run()
    event, interrupts, done = 0, 0, {}
    reached = True
    while reached:
        event += 1
        error = KINDS[event % len(KINDS)]()
        reached, _place = interrupt_at(event, error, lambda n=event: run.summary.update({f"struck{n}": n}))
        interrupts += reached
        done |= {} if reached else {f"struck{event}": event}
        run.summary[f"next{event}"] = event
        done[f"next{event}"] = event
        assert run.log({"i": event}) is None
    said: dict[str, int] = {}  # what an attempt that is killed now has said: the marks alone
    for frame in read_frames(run.folder):
        said |= frame["values"] if frame.get("mark") == "summary" else {}
    assert done.items() <= said.items()
    run.finish()
    assert done.items() <= run.book.summary.items()
    report(capsys, "summary", interrupts, len(done))


@lines_apart(8009, 61)
@pytest.mark.parametrize("verb", some_of(["restore", "rewind"], 1))
def test_going_back_happens_or_does_not_and_rows_logged_afterwards_count(
    open_run: Callable[[], Any], verb: str, apart: int, capsys: pytest.CaptureFixture[str]
) -> None:
    event = interrupts = rows = 0
    reached = True
    while reached:
        run = open_run()  # a fresh one now and then, for each going back is an attempt
        for i in range(3):
            run.log({"i": i}, env_step=i)
        run.save_checkpoint({"w": [1.0]})
        go_back = run.restore if verb == "restore" else (lambda run=run: run.rewind(env_step=2))
        before, number = [0, 1, 2], 10
        for _ in range(12):
            run.log({"i": number}, env_step=3)
            event += apart
            error = KINDS[event % len(KINDS)]()
            reached, place = interrupt_at(
                event,
                error,
                go_back,
                ("run/", "journal/", "capture/", "schema/", "values/", "system/"),
            )
            interrupts += reached
            run.log({"i": number + 1}, env_step=3)
            rows += 2
            shown = run.book.metrics(["i"])["i"].to_pylist()
            assert shown in ([*before, number + 1], [*before, number, number + 1]), f"struck at {place}"
            go_back()
            assert run.book.metrics(["i"])["i"].to_pylist() == before, f"struck at {place}"
            number += 2
            if not reached:
                break
        everything = Counter(run.book.metrics(["i"], attempts="all")["i"].to_pylist())
        assert everything == Counter([*before, *range(10, number)])
        assert len(run.internals.writer.lanes) <= 4
    report(capsys, verb, interrupts, rows)


@pytest.mark.long
def test_a_writer_that_begins_an_attempt_can_log_whatever_line_of_it_was_struck(open_run: Callable[[], Any]) -> None:
    event, reached = 0, True
    while reached:
        event += 1
        run = open_run()
        run.log({"i": 0}, env_step=0)
        run.log({"i": 1}, env_step=1)
        error = KINDS[event % len(KINDS)]()
        reached, place = interrupt_at(event, error, lambda run=run: run.rewind(env_step=0), ("journal/writer",))
        run.log({"i": 2}, env_step=1)
        shown = run.book.metrics(["i"])["i"].to_pylist()
        assert shown in ([0, 2], [0, 1, 2]), f"struck at {place}"
    assert event > 10


@pytest.mark.parametrize("when", ["before", "after"])
def test_what_the_runs_own_thread_logs_as_an_attempt_begins_lets_no_row_stay(
    open_run: Callable[[], Any], when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its ten-second row, just as a restore begins a new attempt: what is logged next is abandoned by the next one."""
    run = open_run()
    run.log({"i": 0}, env_step=0)
    run.save_checkpoint({"w": [1.0]})
    ticker, begin = run._parts.ticker, run.internals.writer.begin_attempt

    def beside(number: int) -> None:
        if when == "after":
            begin(number)
        ticker._cost_due = 0.0
        ticker._own_cost()
        if when == "before":
            begin(number)

    monkeypatch.setattr(type(run.internals.writer), "begin_attempt", lambda _writer, number: beside(number))
    for i in (1, 2, 3):
        run.log({"i": i}, env_step=1)
        run.restore()
        assert run.book.metrics(["i"])["i"].to_pylist() == [0]


class SealedAtOnce:
    """A sealing process that has already done its work."""

    def poll(self) -> int:
        return 0

    def terminate(self) -> None: ...

    def wait(self, timeout: float | None = None) -> None: ...


@lines_apart(2003, 401)
def test_a_finish_that_seals_and_forwards_in_this_process_is_finished_by_the_next_call(
    tmp_path: Path, apart: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from rollbook.keeper.sealing import Sealing

    def start(sealing: Any, *, final: bool) -> None:
        sealing._process, sealing.was_final = SealedAtOnce(), final

    # The process that seals is a child; what becomes of a run that is sealed half is the next test.
    monkeypatch.setattr(Sealing, "_start", start)
    monkeypatch.setattr(Sealing, "at_work", 0)
    event = interrupts = 0
    reached = True
    errors = []
    while reached:
        event += 3 if LONG else apart
        run = rollbook.init("p", "r", dir=tmp_path / str(event), sinks=["jsonl"], keeper="inline")
        for i in range(20):
            run.log({"i": i}, env_step=i)
        errors.append(KINDS[event % len(KINDS)]())
        reached, place = interrupt_at(
            event,
            errors[-1],
            run.finish,
            ("keeper/", "sinks/", "run/", "schema/", "values/", "system/", "journal/"),
        )
        interrupts += reached
        run.finish()
        assert run.status == run.book.status == "finished", place
        assert run.book.metrics(["i"])["i"].to_pylist() == list(range(20)), place
        lines = [json.loads(line) for path in run.folder.rglob("*.jsonl") for line in path.read_text().splitlines()]
        assert [line["i"] for line in lines if "i" in line] == list(range(20)), place
    report(capsys, "finish with keeper inline", interrupts, 20 * interrupts)


@lines_apart(8009, 401)
def test_sealing_that_was_interrupted_anywhere_is_done_by_the_next_one(
    open_run: Callable[[], Any],
    tmp_path: Path,
    apart: int,
    capsys: pytest.CaptureFixture[str],
    nothing_is_sealed: None,
) -> None:
    from rollbook.book.book import Book
    from rollbook.storage.sealing.folder import seal

    run = open_run()
    for i in range(24):
        run.log({"i": i, f"k{i % 2}": 1.0}, env_step=i)
        run.log_text("words", f"<{i}>")
    run.finish()
    event = interrupts = 0
    reached = True
    while reached:
        event += 7 if LONG else apart
        folder = tmp_path / f"copy{event}"
        shutil.copytree(run.folder, folder)
        reached, place = interrupt_at(event, KeyboardInterrupt(), lambda to=folder: seal(to, final=True))
        interrupts += reached
        book = Book(folder)
        assert book.metrics(["i"])["i"].to_pylist() == list(range(24)), f"before: {place}"
        seal(folder, final=True)
        assert book.metrics(["i"])["i"].to_pylist() == list(range(24)), place
        assert book.text().num_rows == 24, place
        assert not book.problems(), place
    report(capsys, "sealing", interrupts, 48 * interrupts)


@lines_apart(293, 13)
def test_a_finish_that_was_interrupted_is_finished_by_the_next_call(
    tmp_path: Path, apart: int, capsys: pytest.CaptureFixture[str], nothing_is_sealed: None
) -> None:
    # The keeper is a process of its own; that it carries on after anything is the business of its tests.
    event = interrupts = 0
    reached = True
    while reached:
        event += apart
        run = rollbook.init("p", "r", dir=tmp_path / str(event), sinks=[], keeper="inline")
        for i in range(20):
            run.log({"i": i})
        error = KINDS[event % len(KINDS)]()
        reached, _place = interrupt_at(event, error, run.finish)
        interrupts += reached
        run.finish()
        assert run.status == "finished"
        assert run.book.status == "finished"
        assert run.book.metrics(["i"])["i"].to_pylist() == list(range(20))
        assert not run.book.problems()
    report(capsys, "finish", interrupts, 20 * interrupts)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no interval timers")
@pytest.mark.parametrize("kind", some_of(["OSError", "ValueError", "TimeoutError"], 1))
def test_exceptions_in_the_first_calls_of_a_forked_child_come_out_once_and_its_rows_are_kept(
    kind: str, tmp_path: Path
) -> None:
    """In an interpreter of its own, where nothing but `init` has loaded anything."""
    children = 24 * max(1, LONG)
    command = [sys.executable, first_calls.__file__, kind, str(tmp_path), str(children)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["eaten"] == 0, done.stderr[-2000:]
    assert told["hung"] == told["other"] == 0, done.stderr[-2000:]
    assert told["came out"] > children / 4
    seen = marks(Path(told["folder"]))
    assert [i for i in told["acknowledged"] if seen[i] != 1] == []
    assert max(seen.values()) == 1


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no interval timers")
@pytest.mark.parametrize(
    "make", some_of([lambda: TimeoutError("time is up"), KeyboardInterrupt, lambda: Limit("time is up")], 1)
)
def test_exceptions_at_random_moments_cost_no_row_and_are_never_eaten(
    open_run: Callable[[], Any], make: Callable[[], BaseException], capsys: pytest.CaptureFixture[str]
) -> None:
    run = open_run()
    chance = random.Random(5)
    verbs = list(VERBS.values())
    done: list[int] = []
    begun = raised = eaten = 0
    unheard: list[object] = []

    def go_on_until_struck() -> None:  # apart: CPython 3.13.0 leaves the jump of a loop out of its `try`
        nonlocal begun
        end, heard = time.monotonic() + 2, len(unheard)
        while time.monotonic() < end and len(unheard) == heard:
            n = begun
            begun += 1
            verbs[n % len(verbs)](run, n)
            done.append(n)

    with pytest.MonkeyPatch.context() as patch, at_random_moments(make, lambda: chance.uniform(2e-5, 3e-3)) as start:
        patch.setattr("warnings.warn", lambda *_a, **_k: None)
        # What strikes in a finalizer or a callback of the garbage collector, Python itself keeps to itself.
        patch.setattr("sys.unraisablehook", unheard.append)
        for _ in range(120 * max(1, LONG)):
            try:
                start()
                go_on_until_struck()
                eaten += 1
            except type(make()):
                raised += 1
    assert eaten <= len(unheard), f"{eaten} of {eaten + raised} exceptions never came out"
    check(run, done, list(set(range(begun)) - set(done)))
    assert len(run.internals.writer.lanes) <= 6
    report(capsys, f"all verbs, {type(make()).__name__} by timer", raised, len(done))


@pytest.mark.parametrize("question", ["exists", "lexists", "is_link", "is_file", "is_folder", "real_path"])
def test_a_timer_of_the_program_comes_out_of_a_question_about_a_path(
    question: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`os.path.exists` and its like answer False when a signal handler raises an OSError, as TimeoutError is one."""

    def alarm(_signum: int, _frame: object) -> None:
        raise TimeoutError("of the program")

    def interrupted(*_: object, **__: object) -> None:
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, alarm)
    try:
        for name in ("stat", "lstat"):
            monkeypatch.setattr(os, name, interrupted)
        with pytest.raises(TimeoutError, match="of the program"):
            getattr(files, question)(tmp_path / "a")
    finally:
        monkeypatch.undo()
        signal.signal(signal.SIGINT, before)
