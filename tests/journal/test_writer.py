"""What the writing end of the journal promises."""

from __future__ import annotations

import gc
import itertools
import math
import os
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from journal_reading import Read, read_frames, read_rows
from line_by_line import at_line
from rollbook.errors import LoggingFailed, RollbookWarning
from rollbook.journal import last_numbers, list_writers, log_function
from rollbook.journal.frames import decode, encode
from rollbook.journal.unusual_calls import UnusualCalls
from rollbook.journal.writer import Writer
from rollbook.schema.clocks import STANDARD
from rollbook.system.bill import Bill
from rollbook.values.arrays import host_array

Open = Callable[..., Writer]


def log_of(writer: Writer, **channel: Any) -> Callable[..., None]:
    return writer.make_log(writer.channel(**channel))


def repeat(times: int, act: Callable[[], object]) -> None:
    for _ in range(times):
        act()


@pytest.mark.parametrize("last", ["stream", "frames", "another stream"])
def test_a_lane_ends_with_its_last_row_in_whichever_file_that_is(open_writer: Open, tmp_path: Path, last: str) -> None:
    """A run that is taken over is cut there: what its former writer still writes does not count."""
    log = log_of(open_writer())
    rows: dict[str, dict[str, float]] = {"stream": {"a": 1.0}, "frames": {"rare": 1.0}, "another stream": {"b": 1.0}}
    for key in ("stream", "another stream"):
        repeat(10, lambda key=key: log(rows[key]))
    log(rows["frames"])
    log(rows[last])
    (info,) = list_writers(tmp_path)
    assert last_numbers(info) == {0: 22}


@pytest.mark.parametrize("mapped", [True, False], ids=["mapped", "pwrite"])
def test_every_row_is_in_the_files_when_log_has_returned(open_writer: Open, tmp_path: Path, mapped: bool) -> None:
    writer = open_writer(mapped=mapped)
    log = log_of(writer)
    for i in range(3000):
        log({"loss": i / 7, "n": i, "ok": i % 2 == 0}, env_step=i)
        if i in (0, 7, 8, 500):
            assert len(read_rows(tmp_path)) == i + 1
    rows = read_rows(tmp_path)
    assert [row.values for row in rows] == [{"loss": i / 7, "n": i, "ok": i % 2 == 0} for i in range(3000)]
    assert [row.clocks for row in rows] == [{"env_step": i} for i in range(3000)]
    assert [row.seq for row in rows] == list(range(1, 3001))
    assert {row.where for row in rows[7:]} == {"stream"}, "from its eighth row on a key set has a stream"
    assert all(a.time <= b.time for a, b in itertools.pairwise(rows))


def test_mapped_and_written_segments_hold_the_same_bytes(tmp_path: Path) -> None:
    contents = []
    for mapped in (True, False):
        folder = tmp_path / str(mapped)
        folder.mkdir()
        writer = Writer(str(folder), mapped=mapped)
        log = log_of(writer)
        for i in range(40):
            log({"a": i * 0.5, "b": i}, env_step=i)
        (segment,) = Path(writer.folder).glob("*.seg")
        data = segment.read_bytes()
        header_size = struct.unpack_from("<I", data, 12)[0]
        words = np.frombuffer(data[header_size : header_size + 32 * 80], "<i8").reshape(32, 10).copy()
        words[:, 6] = 0  # the time differs
        contents.append(words)
        writer.close()
    np.testing.assert_array_equal(*contents)


def test_a_row_takes_the_clocks_of_its_call_and_the_last_known_ones(open_writer: Open, tmp_path: Path) -> None:
    log = log_of(open_writer())
    for _ in range(12):
        log({"a": 1.0}, env_step=5)
        log({"a": 2.0}, gradient_step=7)
        log({"a": 3.0}, env_step=4)
    assert [row.clocks for row in read_rows(tmp_path)][-3:] == [
        {"env_step": 5, "gradient_step": 7},
        {"env_step": 5, "gradient_step": 7},
        {"env_step": 4, "gradient_step": 7},
    ]


def test_scopes_share_the_runs_clocks_and_a_scope_at_a_checkpoint_does_not(open_writer: Open, tmp_path: Path) -> None:
    writer = open_writer()
    run = writer.channel()
    train = log_of(writer, prefix="train/", scope="train", current=run.current)
    late = log_of(writer, prefix="test/", scope="test", at="c1")
    train({"return": 1.0}, env_step=900)
    late({"return": 2.0}, env_step=100)
    writer.make_log(run)({"x": 0.0})
    assert [(row.values, row.clocks["env_step"]) for row in read_rows(tmp_path)] == [
        ({"train/return": 1.0}, 900),
        ({"test/return": 2.0}, 100),
        ({"x": 0.0}, 900),
    ]


@pytest.mark.parametrize("step", [np.int64(3), np.uint8(3), 3.0, np.float32(3.0), True], ids=repr)
def test_a_clock_takes_whatever_counts(open_writer: Open, tmp_path: Path, step: Any) -> None:
    log = log_of(open_writer())
    for _ in range(10):
        log({"a": 1.0}, env_step=step)
    assert {row.clocks["env_step"] for row in read_rows(tmp_path)} == {int(step)}


@pytest.mark.parametrize("step", [0.125, "7", 2**63, math.nan, object()], ids=lambda step: type(step).__name__)
def test_a_clock_that_does_not_count_is_kept_as_a_value_and_reported_once(
    open_writer: Open, tmp_path: Path, step: Any
) -> None:
    log = log_of(open_writer())
    with pytest.warns(RollbookWarning, match="a clock counts") as caught:
        repeat(12, lambda: log({"a": 1.0}, env_step=step))
    assert len(caught) == 1
    rows = read_rows(tmp_path)
    assert len(rows) == 12
    assert all(row.values["a"] == 1.0 and "env_step" not in row.clocks for row in rows)
    texts = [frame for frame in read_frames(tmp_path) if frame.get("table") == "text"]
    assert all("clock/env_step" in row.values for row in rows) or len(texts) == 12


@pytest.mark.parametrize("clock", ["env_step", "step", "tokens"])
@pytest.mark.parametrize("reading", [2**63, 2**70, -(2**63) - 1], ids=["2**63", "2**70", "-2**63-1"])
@pytest.mark.parametrize("rows_before", [0, 20], ids=["at first", "of a known key set"])
@pytest.mark.filterwarnings("ignore:.*a clock counts")
def test_a_reading_that_no_row_can_hold_costs_no_later_row(
    open_writer: Open, tmp_path: Path, clock: str, reading: int, rows_before: int
) -> None:
    writer = open_writer(clocks=(*STANDARD, "tokens"))
    log = log_of(writer)
    for n in range(rows_before):
        log({"a": 0.0}, **{clock: n})
    log({"a": 1.0}, **{clock: reading})
    log({"a": 2.0})
    log({"a": 3.0}, **{clock: 7})
    rows = {row.values["a"]: row.clocks.get(clock) for row in read_rows(tmp_path) if row.values.get("a")}
    assert rows == {1.0: None, 2.0: None, 3.0: 7}
    assert writer.bill.counts == {"odd_clock": 1}


def test_declared_clocks_are_keywords_and_others_are_named(open_writer: Open, tmp_path: Path) -> None:
    writer = open_writer(clocks=("env_step", "gradient_step", "epoch", "episode", "policy_version", "step", "tokens"))
    log = log_of(writer)
    for i in range(12):
        log({"a": 1.0}, tokens=i * 1000)
    with pytest.warns(RollbookWarning, match="no clock 'tokns'"):
        log({"a": 1.0}, tokns=5)
    rows = read_rows(tmp_path)
    assert [row.clocks["tokens"] for row in rows[:12]] == [i * 1000 for i in range(12)]
    assert rows[12].values == {"a": 1.0, "clock/tokns": 5}


def test_values_keep_their_type_when_it_changes(open_writer: Open, tmp_path: Path) -> None:
    log = log_of(open_writer())
    said = []
    for i in range(40):
        value: Any = (2**60 + 1, 0.5, True)[i % 3]
        log({"x": value, "y": 1.0})
        said.append(value)
    assert [row.values["x"] for row in read_rows(tmp_path)] == said


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16, np.int32, np.uint64, np.bool_], ids=str)
def test_numpy_scalars_and_zero_dimensional_arrays_are_numbers(
    open_writer: Open, tmp_path: Path, kind: type[Any]
) -> None:
    log = log_of(open_writer())
    for _ in range(12):
        log({"scalar": kind(1), "array": np.asarray(kind(1)), "one": np.asarray([kind(1)])})
    assert all(row.values == {"scalar": 1, "array": 1, "one": 1} for row in read_rows(tmp_path))


def test_what_a_mask_hides_is_no_value(open_writer: Open, tmp_path: Path) -> None:
    """A mean of nothing, `numpy.ma.masked`, was read as 0, an element under a mask as what it had been or as 1e20."""
    log = log_of(open_writer())
    integers = np.ma.array([1, 2, 3], mask=[False, True, False])
    for _ in range(10):
        log({"nothing": np.ma.masked, "one": np.ma.array(5, mask=True), "mean": integers.mean(), "all": integers})
        log({"nothing": 1.0, "one": integers[1:2]})
    for row in read_rows(tmp_path):
        assert math.isnan(row.values["one"])
        assert row.values["nothing"] == 1.0 or (math.isnan(row.values["nothing"]) and row.values["mean"] == 2.0)
    assert host_array(integers).tolist()[::2] == [1.0, 3.0]
    assert math.isnan(host_array(integers)[1])
    column: Any = decode(encode({"column": integers.astype(float)})[0])["column"]
    assert np.isnan(np.frombuffer(column.data)).tolist() == [False, True, False]


@pytest.mark.parametrize("kind", "FDG")
def test_a_complex_number_is_refused_whatever_its_precision(open_writer: Open, tmp_path: Path, kind: str) -> None:
    writer = open_writer()
    log_of(writer)({"x": np.ones(1, kind)[0], "y": 1.0})
    assert [row.values for row in read_rows(tmp_path)] == [{"y": 1.0}]
    assert writer.bill.counts["unloggable"] == 1


def test_nan_and_infinities_are_kept(open_writer: Open, tmp_path: Path) -> None:
    log = log_of(open_writer())
    for _ in range(10):
        log({"a": math.nan, "b": math.inf, "c": -math.inf, "d": -0.0})
    for row in read_rows(tmp_path):
        assert math.isnan(row.values["a"])
        assert (row.values["b"], row.values["c"]) == (math.inf, -math.inf)
        assert math.copysign(1, row.values["d"]) == -1


def test_an_integer_beyond_int64_keeps_all_its_digits(open_writer: Open, tmp_path: Path) -> None:
    log = log_of(open_writer())
    for _ in range(12):
        log({"a": 2**70 + 1, "b": 1})
    assert all(row.values == {"a": 2**70 + 1, "b": 1} for row in read_rows(tmp_path))


def test_nested_dicts_are_joined_text_becomes_text_and_none_is_missing(open_writer: Open, tmp_path: Path) -> None:
    log = log_of(open_writer())
    log({"loss": {"pi": 1.0, "v": {"one": 2.0}}, "note": "hello", "nothing": None})
    (row,) = read_rows(tmp_path)
    assert row.values == {"loss/pi": 1.0, "loss/v/one": 2.0}
    (frame,) = read_frames(tmp_path)
    assert frame["table"] == "text"
    assert frame["columns"] == {"key": ["note"], "text": ["hello"]}


def test_a_mapping_that_contains_itself_does_not_hang(open_writer: Open, tmp_path: Path) -> None:
    log = log_of(open_writer())
    ring: dict[str, Any] = {"a": 1.0}
    ring["self"] = ring
    log(ring)
    assert read_rows(tmp_path)[0].values == {"a": 1.0}


def test_arrays_become_histograms_raw_up_to_4096_elements(open_writer: Open, tmp_path: Path) -> None:
    log = log_of(open_writer())
    small, large = np.arange(10.0), np.arange(10_000.0)
    log({"small": small, "large": large, "listed": [1, 2, 3]})
    frames = {frame["columns"]["key"][0]: frame["columns"] for frame in read_frames(tmp_path)}
    assert frames["small"]["values"] == [list(small)]
    assert frames["listed"]["values"] == [[1.0, 2.0, 3.0]]
    assert sum(frames["large"]["counts"][0]) == 10_000
    assert (frames["large"]["low"], frames["large"]["high"]) == ([0.0], [9999.0])
    assert frames["large"]["total"] == [large.sum()]


def test_what_cannot_be_logged_is_named_once_and_the_rest_is_kept(open_writer: Open, tmp_path: Path) -> None:
    writer = open_writer()
    log = log_of(writer)
    with pytest.warns(RollbookWarning, match="'odd'") as caught:
        repeat(5, lambda: log({"odd": object(), "good": 1.0}))
    assert len(caught) == 1
    assert writer.bill.counts["unloggable"] == 5
    assert [row.values for row in read_rows(tmp_path)] == [{"good": 1.0}] * 5


def test_a_list_without_a_number_is_called_empty(open_writer: Open) -> None:
    log = log_of(open_writer())
    with pytest.warns(RollbookWarning, match="found an empty list, which holds no number; it was not kept"):
        log({"losses": []})


def test_the_warning_points_at_the_line_of_the_caller(open_writer: Open) -> None:
    log = log_of(open_writer())
    with pytest.warns(RollbookWarning) as caught:
        log({"odd": object()})
    assert caught[0].filename == __file__


def test_strict_raises_what_would_have_been_counted(open_writer: Open) -> None:
    log = log_of(open_writer(bill=Bill(strict=True)))
    with pytest.raises(LoggingFailed, match="odd"):
        log({"odd": object()})
    with pytest.raises(LoggingFailed, match="dict"):
        log(3.0)


def test_logging_after_the_end_is_counted_and_does_not_raise(open_writer: Open, tmp_path: Path) -> None:
    writer = open_writer()
    log = log_of(writer)
    for _ in range(10):
        log({"a": 1.0})
    writer.close()
    with pytest.warns(RollbookWarning, match="after finish"):
        log({"a": 2.0})
    assert len(read_rows(tmp_path)) == 10


def test_many_threads_log_without_losing_or_mixing_rows(open_writer: Open, tmp_path: Path) -> None:
    writer = open_writer()
    writer.first_segment_bytes = writer.largest_segment_bytes = 4096
    log = log_of(writer)
    start = threading.Barrier(6)

    def work(thread: int) -> None:
        start.wait()
        for i in range(2000):
            log({"thread": thread, "i": i, "x": thread * 1e6 + i}, env_step=thread * 10_000 + i)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = read_rows(tmp_path)
    assert sorted((row.values["thread"], row.values["i"]) for row in rows) == [
        (thread, i) for thread in range(6) for i in range(2000)
    ]
    for row in rows:
        assert row.values["x"] == row.values["thread"] * 1e6 + row.values["i"]
        assert row.clocks["env_step"] == row.values["thread"] * 10_000 + row.values["i"]
    assert not writer.bill.counts


@pytest.mark.parametrize("rows_before", [0, 12], ids=["rare keys", "keys with a stream"])
def test_a_row_keeps_the_clocks_of_its_call_when_another_thread_logs_meanwhile(
    open_writer: Open, tmp_path: Path, rows_before: int
) -> None:
    writer = open_writer(clocks=("env_step", "gradient_step", "epoch", "episode", "policy_version", "step", "turn"))
    log = log_of(writer)

    class Reading:
        """A reading in whose conversion another thread has its turn."""

        def __index__(self) -> int:
            log({"other": 1.0}, env_step=99, turn=98)
            return 3

    for _ in range(rows_before):
        log({"own": 0.0}, env_step=0, turn=0)
    log({"own": 1.0}, env_step=1, gradient_step=Reading(), turn=2)
    log({"own": 2.0}, env_step=1, turn=Reading())
    rows = [row for row in read_rows(tmp_path) if row.values.get("own")]
    assert [row.clocks for row in rows] == [
        {"env_step": 1, "gradient_step": 3, "turn": 2},
        {"env_step": 1, "gradient_step": 3, "turn": 3},
    ]


def test_a_call_that_gives_no_clock_sets_none_back_when_its_segment_is_full(
    open_writer: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = open_writer()
    writer.first_segment_bytes = writer.largest_segment_bytes = 4096
    channel = writer.channel()
    log, others = writer.make_log(channel), log_of(writer, scope="other", current=channel.current)
    for n in range(12):
        log({"own": n}, env_step=5)
        others({"n": n})
    unusual, turns = UnusualCalls.__call__, iter([lambda: others({"n": 12}, env_step=6)])

    def after_another_thread(self: UnusualCalls, *arguments: Any) -> None:
        for turn in turns:
            turn()
        unusual(self, *arguments)

    monkeypatch.setattr(UnusualCalls, "__call__", after_another_thread)
    for n in range(200):
        log({"own": n})
    assert next(turns, None) is None, "a segment was full"
    steps = [row.clocks["env_step"] for row in read_rows(tmp_path) if "own" in row.values]
    assert set(steps) == {5, 6}
    assert steps == sorted(steps), "never back"


def test_more_threads_than_lanes_wait_briefly_and_are_counted(open_writer: Open) -> None:
    writer = open_writer()
    writer.most_lanes, writer.lane_wait_seconds = 1, 0.01
    log = log_of(writer)
    log({"a": 1.0})
    taken = writer.take()  # somebody is inside log()
    with pytest.warns(RollbookWarning, match="threads logged at once"):
        log({"a": 2.0})
    assert writer.bill.counts["no_lane"] == 1
    assert taken is not None
    writer.free.append(taken)
    log({"a": 3.0})
    assert writer.bill.counts["no_lane"] == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("hooks", [True, False], ids=["with fork hooks", "fork below Python's hooks"])
def test_a_forked_child_writes_files_of_its_own_from_its_first_log(
    open_writer: Open, tmp_path: Path, hooks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rollbook.journal import writer as module

    writer = open_writer()
    log = log_of(writer)
    for i in range(20):
        log({"who": 0, "i": i})
    if not hooks:
        # A fork in C code runs no hooks; the child then finds out at the first call that takes the slow path.
        monkeypatch.setattr(module, "_live_writers", [])
    silent, talking = os.fork(), 0
    if silent == 0:
        os._exit(0)
    talking = os.fork()
    if talking == 0:
        fields = {"who": 1} if hooks else {"who": 1, "new": 1.0}
        for i in range(20):
            log({**fields, "i": i})
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(silent, 0)[1]) == 0
    assert os.waitstatus_to_exitcode(os.waitpid(talking, 0)[1]) == 0
    for i in range(20, 40):
        log({"who": 0, "i": i})
    rows = read_rows(tmp_path)
    assert [row.values["i"] for row in rows if row.values["who"] == 0] == list(range(40))
    assert [row.values["i"] for row in rows if row.values["who"] == 1] == list(range(20))
    folders = os.listdir(tmp_path / "data" / "journal")
    assert len(folders) == 2, "a child that logs nothing leaves nothing"


def test_rows_go_on_through_rolling_and_recycling(open_writer: Open, tmp_path: Path) -> None:
    """A sealed segment is used again; rows of its earlier use must not show."""
    from rollbook.journal import format as layout

    writer = open_writer(mapped=True)
    writer.first_segment_bytes = writer.largest_segment_bytes = 4096
    log = log_of(writer)
    sealed = set()
    for i in range(5000):
        log({"i": i})
        for path in Path(writer.folder).glob("*.seg") if i % 40 == 0 else ():
            data = bytearray(path.read_bytes())
            if struct.unpack_from("<Q", data, layout.STATE_AT)[0] == layout.LEFT:
                sealed |= {row.values["i"] for row in _rows_in(path)}
                with open(path, "r+b") as file:
                    file.seek(layout.STATE_AT)
                    file.write(struct.pack("<Q", layout.SEALED))
    live = [row.values["i"] for row in read_rows(tmp_path)]
    assert len(live) == len(set(live))
    assert set(live) | sealed == set(range(5000))
    files = len(list(Path(writer.folder).glob("*.seg")))
    assert files < 12, f"segments are used again, not piled up: {files} files"


def test_while_a_segment_is_taken_again_its_readers_get_nothing(
    open_writer: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader may see some words of its head as they were and others as they become: old rows would count again."""
    from rollbook.journal import format as layout
    from rollbook.journal import stream
    from rollbook.journal.segments import Segment

    writer = open_writer(mapped=True)  # others are not kept to be taken again
    writer.first_segment_bytes = writer.largest_segment_bytes = 4096
    log = log_of(writer)
    paths: list[Path] = []
    for i in range(2000):
        log({"i": i})
        if len(paths := sorted(Path(writer.folder).glob("*.seg"))) == 2:
            break
    former = paths[0]
    with open(former, "r+b") as file:
        file.seek(layout.STATE_AT)
        file.write(struct.pack("<Q", layout.SEALED))
    stores: list[int] = []
    with Segment(former) as segment:
        before = segment.look()
        assert before is not None
        assert before.count > 0
        store = stream._Slot.set_word

        def stored(slot: Any, at: int, value: int) -> None:
            store(slot, at, value)
            now = struct.unpack_from("<Q", former.read_bytes(), layout.GENERATION_AT)[0]
            if now == before.generation + 2 or (not stores and at == layout.STATE_AT):
                return  # it is done, or the segment before was left
            stores.append(at)
            assert segment.look() is None
            assert segment.copy(before) is None

        monkeypatch.setattr(stream._Slot, "set_word", stored)
        for i in range(2000):
            log({"i": i})
            if stores:
                break
        assert {layout.GENERATION_AT, layout.FIRST_SEQ_AT, layout.STATE_AT} == set(stores)
        after = segment.look()
        assert after is not None
        assert (after.generation, after.count) == (before.generation + 2, 1)


def _rows_in(path: Path) -> list[Any]:
    from rollbook.journal.segments import Segment

    with Segment(path) as segment:
        return [
            Read(s, t, {}, dict(zip(segment.header.keys, v, strict=True)), "") for s, t, _c, v in segment.committed()
        ]


def test_an_interrupt_leaves_a_hole_and_never_a_row_written_over(open_writer: Open, tmp_path: Path) -> None:
    writer = open_writer()
    log = log_of(writer)
    for i in range(10):
        log({"i": i})
    (lane,) = writer.lanes
    (stream,) = lane.shapes.values()
    real = stream.pack

    def interrupted(*args: Any) -> None:
        real(*args)
        raise KeyboardInterrupt

    stream.pack = interrupted
    with pytest.raises(KeyboardInterrupt):
        log({"i": 10})
    stream.pack = real
    for i in range(11, 20):
        log({"i": i})
    rows = read_rows(tmp_path)
    assert [row.values["i"] for row in rows] == list(range(20)), "the row was whole, so it stays"
    assert len({row.seq for row in rows}) == 20
    assert writer.free == [lane], "the lane came back"


def test_a_signal_handler_that_logs_neither_hangs_nor_mixes(open_writer: Open, tmp_path: Path) -> None:
    writer = open_writer()
    log = log_of(writer)
    for i in range(10):
        log({"i": i})
    (lane,) = writer.lanes
    (stream,) = lane.shapes.values()
    real = stream.pack

    def interrupted(*args: Any) -> None:  # a handler runs between two bytecodes of log(), on the same thread
        stream.pack = real
        log({"i": -1})
        real(*args)

    stream.pack = interrupted
    log({"i": 10})
    rows = [row.values["i"] for row in read_rows(tmp_path)]
    assert sorted(rows) == [-1, *range(11)]


def test_a_signal_handler_that_logs_at_any_line_of_log_costs_no_row(open_writer: Open, tmp_path: Path) -> None:
    log = log_of(open_writer())
    for _ in range(10):
        log({"i": -1, "handler": False})
    for number in itertools.count():
        lines = at_line(
            number,
            (log_function.__file__,),
            lambda number=number: log({"i": number, "handler": True}, env_step=number),
            lambda number=number: log({"i": number, "handler": False}, env_step=number),
        )
        if lines < number:
            break
    rows = [(row.values["i"], row.values["handler"]) for row in read_rows(tmp_path)]
    assert number > 20, "the fast way has so many lines"
    assert sorted(rows[10:]) == sorted([(n, False) for n in range(number + 1)] + [(n, True) for n in range(1, number)])


def test_a_garbage_collection_that_logs_neither_hangs_nor_mixes(open_writer: Open, tmp_path: Path) -> None:
    log, limits, seen = log_of(open_writer()), gc.get_threshold(), itertools.count()

    def collected(phase: str, _: object) -> None:  # runs wherever something is made, inside log() as well
        if phase == "stop":
            log({"collection": next(seen)})

    gc.callbacks.append(collected)
    gc.set_threshold(5, 2, 2)
    try:
        for i in range(500):
            log({"i": i, f"other {i % 7}": [i]})
    finally:
        gc.callbacks.remove(collected)
        gc.set_threshold(*limits)
    rows = [row.values for row in sorted(read_rows(tmp_path), key=lambda row: row.time)]  # whichever lane took them
    assert [row["i"] for row in rows if "i" in row] == list(range(500))
    assert sorted(row["collection"] for row in rows if "collection" in row) == list(range(next(seen)))


def test_a_thousand_key_sets_do_not_pile_up_files_or_memory(open_writer: Open, tmp_path: Path) -> None:
    writer = open_writer()
    log = log_of(writer)
    for key in range(1000):
        for i in range(9):
            log({f"key{key}": i})
    assert len(list(Path(writer.folder).glob("*.seg"))) <= writer.most_streams
    mapped = sum(stream.mapped_bytes for lane in writer.lanes for stream in lane.shapes.values())
    assert mapped <= writer.most_mapped_bytes
    assert len(read_rows(tmp_path)) == 9000


def test_a_key_set_that_rests_in_a_free_lane_gives_its_stream_to_a_new_one_and_the_lane_stays_free(
    open_writer: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = open_writer()
    writer.most_streams = 2
    log = log_of(writer)
    repeat(9, lambda: log({"first": 1}))
    taken = writer.free.pop()  # as while its thread logs
    repeat(9, lambda: log({"second": 1}))
    writer.free.append(taken)
    monkeypatch.setattr("rollbook.journal.writer.now", lambda: time.time_ns() + 2_000_000_000)
    repeat(9, lambda: log({"third": 1}))
    assert len(writer.lanes) == len(writer.free) == 2
    streams = [shape[1] for lane in writer.lanes for shape in lane.shapes]
    assert sorted(streams) == [("first",), ("third",)]
    repeat(9, lambda: log({"second": 2}))
    assert len(read_rows(tmp_path)) == 36


def test_a_key_set_of_few_rows_takes_no_segment(open_writer: Open, tmp_path: Path) -> None:
    writer = open_writer()
    log = log_of(writer)
    for key in range(5):
        for i in range(2):
            log({f"key{key}": i})
    assert not list(Path(writer.folder).glob("*.seg"))
    assert sum(path.stat().st_size for path in Path(writer.folder).iterdir()) < 8192


class FakeDeviceArray:
    """A device array: reading it is a synchronisation, which the test counts."""

    reads = 0

    def __init__(self, value: float) -> None:
        self.value = value
        self.device = "fake:0"
        self.size = 1
        self.dtype = "float32"
        self.shape = ()

    def copy(self) -> FakeDeviceArray:
        return FakeDeviceArray(self.value)

    def item(self) -> float:
        type(self).reads += 1
        return self.value

    __float__ = item


def test_a_device_value_is_copied_at_once_and_read_later(open_writer: Open, tmp_path: Path) -> None:
    writer = open_writer()
    log = log_of(writer)
    FakeDeviceArray.reads = 0
    array = FakeDeviceArray(0.0)
    for i in range(20):
        array.value = i / 2
        log({"loss": array, "cpu": float(i)}, gradient_step=i)
        array.value = -1.0  # the caller overwrites it
    assert FakeDeviceArray.reads == 0, "logging does not wait for the device"
    assert [row.values for row in read_rows(tmp_path)] == [{"cpu": float(i)} for i in range(20)]
    writer.device_values.flush()
    rows = read_rows(tmp_path)
    filled: dict[int, Any] = {}
    for frame in read_frames(tmp_path):
        filled.update(zip(frame["fill"], frame["columns"]["loss"], strict=True))
    assert [filled[row.seq] for row in rows] == [i / 2 for i in range(20)]


class JaxTracer:
    """What a JAX transformation passes around; known by its name and module."""

    __module__ = "jax._src.core"
    __name__ = "Tracer"

    def __float__(self) -> float:
        raise RuntimeError("a tracer has no number")


def test_a_jax_tracer_is_refused_with_a_hint(open_writer: Open) -> None:
    log = log_of(open_writer())
    with pytest.warns(RollbookWarning, match=r"rollbook\.adapters\.jax"):
        log({"loss": JaxTracer(), "other": 1.0})


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["a", "b", "c/d", "é"]),
            st.one_of(st.floats(allow_nan=False), st.integers(-(2**70), 2**70), st.booleans(), st.none()),
            max_size=4,
        ),
        max_size=60,
    )
)
def test_what_was_logged_is_what_is_read(tmp_path_factory: pytest.TempPathFactory, said: list[dict[str, Any]]) -> None:
    folder = tmp_path_factory.mktemp("run")
    writer = Writer(str(folder))
    writer.rows_before_stream = 2
    log = log_of(writer)
    for values in said:
        log(values)
    rows = [row.values for row in read_rows(folder)] if writer.opened else []
    writer.close()
    expected = [{k: v for k, v in values.items() if v is not None} for values in said]
    assert rows == [values for values in expected if values]
