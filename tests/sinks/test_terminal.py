from __future__ import annotations

import io
import json
import os
import sys
import threading
from itertools import pairwise
from pathlib import Path

import pytest

from rollbook.protocols import Row
from rollbook.schema import manifest
from rollbook.sinks import Terminal
from waiting import PATIENCE


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def row(i, **values):
    return Row(1000.0 + i, {"env_step": 10 * i}, values or {"train/return": float(i)}, "", "w", 0, i)


def page(run, **fields):
    """What run.json says of `run`."""
    run.folder.mkdir(exist_ok=True)
    return manifest.RunJson.of({"format": manifest.FORMAT, "id": run.id, **fields})


def block(stream):
    return [line for line in stream.screen if "env_step" in line]


def test_without_a_terminal_each_report_is_one_line(run, clock):
    out = io.StringIO()
    sink = Terminal(stream=out, clock=clock, total={"env_step": 100})
    sink.open(run)
    for i in range(10):
        clock.now += 0.3
        sink.write([row(i)])
    sink.close()
    reported = out.getvalue().splitlines()
    assert len(reported) == 3  # after one second, after two, and at the end
    assert all(line.startswith("[") and "cartpole/ppo" in line for line in reported)
    assert "\x1b" not in out.getvalue()


def test_without_a_terminal_reports_become_rarer_down_to_one_a_minute(run, clock):
    out = io.StringIO()
    sink = Terminal(stream=out, clock=clock)
    sink.open(run)
    times = []
    for i in range(4 * 3600):
        clock.now += 1
        before = out.tell()
        sink.write([row(i)])
        if out.tell() > before:
            times.append(i)
    gaps = [b - a for a, b in pairwise(times)]
    assert gaps[:7] == [1, 2, 4, 8, 10, 10, 10]
    assert gaps == sorted(gaps)
    assert gaps[-1] == 60
    assert len(times) < 400


def test_without_a_terminal_a_note_a_rewind_and_the_end_are_reported_soon(run, clock):
    out = io.StringIO()
    sink = Terminal(stream=out, clock=clock)
    sink.open(run)
    for i in range(3600):
        clock.now += 1
        sink.write([row(i)])
    for news in (row(1, note="halved the rate"), Row(9000.0, {}, {}, mark="rewind"), Row(9000.0, {}, {}, mark="final")):
        clock.now += 2
        before = out.tell()
        sink.write([news])
        assert out.tell() > before
    assert out.getvalue().endswith("| finished\n")


def test_rollbooks_own_keys_are_shown_to_who_asks(run, clock):
    telemetry = Row(1000.0, {}, {"rollbook/row_microseconds": 14810.0}, "rollbook", "w", 0, 1)
    for asked in (False, True):
        out = io.StringIO()
        sink = Terminal(stream=out, clock=clock, telemetry=asked)
        sink.open(run)
        clock.now += 2
        sink.write([telemetry])
        assert bool(out.getvalue()) is asked, "a row of telemetry alone is no news"
        sink.write([row(1, **{"host/cpu": 0.5, "train/return": 7.0})])
        sink.close()
        assert ("rollbook/" in "".join(sink.board.keys)) is asked
        assert "train/return 7.0" in out.getvalue()
        assert "host/" not in out.getvalue()


def test_a_total_that_comes_to_be_known_later_makes_the_bar(run, clock):
    manifest.write(run.folder, page(run))
    out = io.StringIO()
    sink = Terminal(stream=out, clock=clock)
    sink.open(run)
    clock.now += 2
    sink.write([row(25)])
    assert "env_step 250 |" in out.getvalue()
    manifest.write(run.folder, page(run, total={"env_step": 500}))
    os.utime(manifest.path_of(run.folder), ns=(0, 1))
    clock.now += 20
    sink.write([row(30)])
    assert "env_step 300 of 500 (60%)" in out.getvalue()
    sink.close()


def test_notes_are_reported_and_cannot_drive_the_terminal(run, clock):
    out = io.StringIO()
    sink = Terminal(stream=out, clock=clock)
    sink.open(run)
    sink.write([row(1, note="halved\x1b[2J the rate")])
    sink.write([row(2, **{"train/note": "and\nmore"})])
    sink.close()
    assert "note: halved\\x1b[2J the rate\nnote: and\nnote: more\n" in out.getvalue()


def test_many_notes_at_once_are_counted(run, clock):
    out = io.StringIO()
    sink = Terminal(stream=out, clock=clock)
    sink.open(run)
    sink.write([row(i, note=str(i)) for i in range(100)])
    sink.close()
    assert out.getvalue().count("note: ") == 6
    assert "note: and 95 lines more" in out.getvalue()


def test_a_stream_without_unicode_gets_ascii(run, clock):
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    sink = Terminal(stream=out, clock=clock)
    sink.open(run)
    sink.write([row(1, **{"train/récompense": 1.0})])
    sink.close()
    out.flush()
    assert b"train/r\\xe9compense" in out.buffer.getvalue()


def test_on_a_terminal_the_view_is_redrawn_in_place(opened, clock, terminal):
    sink = opened(clock)
    for i in range(50):
        clock.now += 1
        sink.write([row(i)])
    assert len(block(terminal)) == 1
    assert "490" in block(terminal)[0]
    assert len(terminal.screen) < 8
    sink.close()
    assert "490" in block(terminal)[0]


def test_the_view_is_drawn_at_most_once_a_second(opened, clock, terminal):
    sink = opened(clock)
    for i in range(100):
        clock.now += 0.05
        sink.write([row(i)])
    assert sum("\x1b[J" in text for text in terminal.written) in (5, 6)


def test_what_the_program_prints_scrolls_past_above_the_view(opened, clock, terminal):
    sink = opened(clock)
    for i in range(9):
        clock.now += 1
        sink.write([row(i)])
        print("said", i)
        if i == 4:
            print("to stderr", file=sys.stderr)
    sink.close()
    print("after")
    said = [line for line in terminal.screen if "said" in line or "stderr" in line]
    assert said == [f"said {i}" for i in range(5)] + ["to stderr"] + [f"said {i}" for i in range(5, 9)]
    assert terminal.screen[: len(said)] == said
    assert len(block(terminal)) == 1
    assert terminal.screen[-1] == "after"


def test_a_line_that_is_not_finished_goes_on_where_it_stopped(opened, clock, terminal):
    sink = opened(clock)
    for i in range(3):
        print("episode", i, end=" ... ")
        clock.now += 1
        sink.write([row(i)])
        print("done")
    sink.close()
    assert terminal.screen[:3] == [f"episode {i} ... done" for i in range(3)]
    assert len(block(terminal)) == 1


def test_a_progress_bar_of_the_program_and_the_view_stand_one_above_the_other(opened, clock, terminal):
    sink = opened(clock)
    for i in range(30):
        sys.stderr.write(f"\r{i:3}% |{'#' * i}")
        clock.now += 0.4
        sink.write([row(i)])
    sink.close()
    assert terminal.screen[0] == f" 29% |{'#' * 29}"
    assert len(block(terminal)) == 1
    assert sum("%" in line and "#" in line for line in terminal.screen) == 1


def test_notes_stay_above_the_view(opened, clock, terminal):
    sink = opened(clock)
    for i in range(3):
        clock.now += 1
        sink.write([row(i, note=f"note {i}")])
    assert terminal.screen[:3] == [f"note: note {i}" for i in range(3)]
    sink.close()


def test_a_long_alert_is_not_cut_within_a_word(opened, clock, terminal):
    sink = opened(clock)
    words = "losses and returns became nan; usually a division by 0 " * 5
    clock.now += 1
    sink.write([row(1, note=words)])
    said = [line.strip() for line in terminal.screen]
    assert " ".join(said).startswith(f"note: {words}".strip())
    assert f"note: {words}".strip() not in said
    sink.close()


def test_the_standard_streams_are_as_before_after_close(opened, clock, terminal):
    sink = opened(clock)
    assert sys.stdout is not terminal
    assert sys.stdout.encoding == "utf-8"
    sink.write([row(1)])
    sink.close()
    sink.close()
    assert sys.stdout is terminal
    assert sys.stderr is terminal


def test_a_stream_that_somebody_redirected_meanwhile_is_left_to_them(opened, clock, terminal, monkeypatch):
    sink = opened(clock)
    kept = sys.stdout
    other = io.StringIO()
    monkeypatch.setattr(sys, "stdout", other)
    sink.close()
    assert sys.stdout is other
    monkeypatch.setattr(sys, "stdout", kept)
    print("still works")
    assert terminal.screen[-1] == "still works"


def test_two_runs_in_one_process_have_a_line_each(opened, clock, terminal):
    sinks = [opened(clock), opened(clock)]
    for i in range(5):
        clock.now += 1
        for sink in sinks:
            sink.write([row(i)])
    assert len([line for line in terminal.screen if "cartpole" in line]) == 2
    for sink in sinks:
        sink.close()
    assert sys.stdout is terminal


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_prints_without_touching_the_view(opened, clock, terminal, tmp_path):
    sink = opened(clock)
    sink.write([row(1)])
    before = len(terminal.written)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            print("from the child")
            texts = [text for text in terminal.written[before:] if text.strip()]
            status = 0 if texts == ["from the child"] else 1
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    sink.close()


def test_dumb_terminals_get_lines(opened, clock, terminal, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    sink = opened(clock)
    clock.now += 2
    sink.write([row(1)])
    assert sys.stdout is terminal
    assert "\x1b" not in "".join(terminal.written)


def test_colours_can_be_switched_off(opened, clock, terminal, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    sink = opened(clock)
    sink.write([row(1)])
    sink.close()
    assert "\x1b[3" not in "".join(terminal.written)


def test_the_total_of_the_run_makes_the_bar(run, clock):
    manifest.write(run.folder, page(run, total={"env_step": 500}))
    out = io.StringIO()
    sink = Terminal(stream=out, clock=clock)
    sink.open(run)
    sink.write([row(25)])
    sink.close()
    assert "env_step 250 of 500 (50%)" in out.getvalue()
    Path(manifest.path_of(run.folder)).write_text(json.dumps({**page(run).as_json(), "total": ["odd"]}))
    sink.open(run)
    sink.close()


def test_printing_waits_for_no_longer_than_a_moment_while_something_is_drawn(opened, clock, terminal, tuned):
    tuned(screen_wait_seconds=0.01)
    sink = opened(clock)
    sink.write([row(1)])
    held, go = threading.Event(), threading.Event()

    def hold():
        with sink._screen._lock:
            held.set()
            go.wait(PATIENCE)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(PATIENCE)
    print("through")
    assert thread.is_alive(), "it is still drawn"
    assert "through" in "".join(terminal.written)
    go.set()
    thread.join()
    sink.close()
