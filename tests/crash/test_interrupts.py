"""Exceptions that somebody else raises while rollbook is at work: Ctrl-C, time limits, pre-emption.

The rule: they come out unchanged and once, no acknowledged row is lost or doubled, and the next call works.
`ROLLBOOK_INTERRUPTS=n` raises every kind of exception at every line (n > 0) and makes the random test n times as long.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rollbook
from interrupting import KINDS, interrupt_at
from journal_reading import read_frames, read_rows

LONG = int(os.environ.get("ROLLBOOK_INTERRUPTS", "0"))

Call = Callable[[Any, int], object]


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
        runs.append(rollbook.init("p", "r", dir=tmp_path, sinks=[], keeper="inline"))
        return runs[-1]

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


def check(run: Any, done: list[int], undone: list[int]) -> None:
    seen = marks(run.folder)
    lost = [i for i in done if seen[i] == 0]
    doubled = [i for i in (*done, *undone) if seen[i] > 1]
    assert not lost, f"{len(lost)} of {len(done)} acknowledged rows are lost: {lost[:10]}"
    assert not doubled, f"{len(doubled)} rows are there twice: {doubled[:10]}"
    assert not set(seen) - {*done, *undone}


@pytest.mark.parametrize("verb", VERBS)
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
    assert len(run.writer.lanes) <= 4, "interrupts use up lanes"
    with capsys.disabled():
        print(f"{verb}: {len(undone) + len(more_undone)} interrupts, {len(done) + len(more_done)} acknowledged")
