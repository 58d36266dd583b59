"""Following a journal: every committed row once, in order, whatever happens to the files meanwhile."""

from __future__ import annotations

import math
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_writer import FakeWriter
from hypothesis import given
from hypothesis import strategies as st

from rollbook.errors import Damaged
from rollbook.journal import format as layout
from rollbook.journal.files import BLOCK
from rollbook.journal.frame_files import FrameFile
from rollbook.journal.reader import JournalReader, list_writers, newest_rows, rows_since
from rollbook.journal.segments import Segment
from rollbook.values import Histogram, Image, Video


def test_a_row_comes_back_with_clocks_values_and_identity(tmp_path: Path) -> None:
    stream = FakeWriter(tmp_path).lane().stream("a", "n", "b", types="dqb", scope="update")
    stream.log(1.5, 2**60, 1, env_step=7, epoch=0)
    (row,) = rows_since(tmp_path, {})
    assert row.values == {"a": 1.5, "n": 2**60, "b": True}
    assert type(row.values["b"]) is bool
    assert row.clocks == {"env_step": 7, "epoch": 0}
    assert (row.scope, row.writer, row.lane, row.seq, row.attempt) == ("update", "w1", 0, 1, 1)
    assert row.time == pytest.approx(1_700_000_000.001)


def test_nan_and_infinities_are_kept(tmp_path: Path) -> None:
    stream = FakeWriter(tmp_path).lane().stream("a", "b")
    stream.log(math.nan, -math.inf)
    (row,) = rows_since(tmp_path, {})
    assert math.isnan(row.values["a"])
    assert row.values["b"] == -math.inf


def test_the_cursor_moves_and_a_second_poll_gives_only_what_is_new(tmp_path: Path) -> None:
    stream = FakeWriter(tmp_path).lane().stream("a")
    cursor: dict[str, dict[int, int]] = {}
    with JournalReader(tmp_path) as reader:
        for i in range(5):
            stream.log(i)
        assert [r.values["a"] for r in reader.rows_since(cursor)] == [0, 1, 2, 3, 4]
        assert cursor == {"w1": {0: 5}}
        assert list(reader.rows_since(cursor)) == []
        stream.log(5)
        assert [r.values["a"] for r in reader.rows_since(cursor)] == [5]


def test_a_cursor_survives_json(tmp_path: Path) -> None:
    stream = FakeWriter(tmp_path).lane().stream("a")
    stream.log(0.0)
    stream.log(1.0)
    cursor: dict = {"w1": {"0": 1}}
    assert [r.values["a"] for r in rows_since(tmp_path, cursor)] == [1.0]
    assert cursor == {"w1": {0: 2}}


def test_stopping_early_goes_on_behind_the_last_row_given(tmp_path: Path) -> None:
    lane = FakeWriter(tmp_path).lane()
    stream = lane.stream("a")
    for i in range(10):
        stream.log(i)
    cursor: dict[str, dict[int, int]] = {}
    rows = rows_since(tmp_path, cursor)
    assert [next(rows).values["a"] for _ in range(4)] == [0, 1, 2, 3]
    rows.close()
    assert [r.values["a"] for r in rows_since(tmp_path, cursor)] == [4, 5, 6, 7, 8, 9]


def test_a_chunk_that_was_given_in_part_is_given_again(tmp_path: Path) -> None:
    lane = FakeWriter(tmp_path).lane()
    lane.chunk("metrics", {"a": np.arange(3.0)}, 3, clock_columns={"env_step": [10, 20, 30]})
    cursor: dict[str, dict[int, int]] = {}
    rows = rows_since(tmp_path, cursor)
    next(rows)
    rows.close()
    again = list(rows_since(tmp_path, cursor))
    assert [(r.clocks["env_step"], r.values["a"]) for r in again] == [(10, 0.0), (20, 1.0), (30, 2.0)]


def test_batches_never_divide_a_frame_and_carry_their_cursor(tmp_path: Path) -> None:
    lane = FakeWriter(tmp_path).lane()
    stream = lane.stream("b")
    for _ in range(4):
        lane.chunk("metrics", {"a": np.arange(3.0)}, 3)
        stream.log(1.0)
    with JournalReader(tmp_path) as reader:
        start: dict[str, dict[int, int]] = {}
        batches = list(reader.batches(start, most_rows=2))
        assert start == {}
        assert sum(len(rows) for rows, _ in batches) == 16
        for i, (_, cursor) in enumerate(batches[:-1]):
            rest = [row.seq for later, _ in batches[i + 1 :] for row in later]
            assert [row.seq for row in reader.rows_since({w: dict(lanes) for w, lanes in cursor.items()})] == rest


def test_streams_and_frames_of_a_lane_come_in_the_order_they_were_written(tmp_path: Path) -> None:
    lane = FakeWriter(tmp_path).lane()
    a, b = lane.stream("a"), lane.stream("b")
    a.log(0)
    lane.rare({"r": 1, "big": 2**70})
    b.log(2)
    lane.mark("dump", ("a",), env_step=3)
    a.log(4)
    lane.mark("store", ("a",))
    lane.mark("rewind")
    lane.mark("final")
    rows = list(rows_since(tmp_path, {}))
    assert [r.seq for r in rows] == [1, 2, 3, 4, 5, 7, 8]  # no reader of rows hears of "store"
    assert rows[1].values == {"r": 1, "big": 2**70}
    assert (rows[3].mark, rows[3].keys, rows[3].clocks) == ("dump", ("a",), {"env_step": 3})
    assert [r.mark for r in rows[5:]] == ["rewind", "final"]


def test_lanes_and_writers_are_merged_by_time(tmp_path: Path) -> None:
    first = FakeWriter(tmp_path, "w1", start=1_700_000_000.0, step_ns=10_000_000)
    second = FakeWriter(tmp_path, "w2", start=1_700_000_000.005, step_ns=10_000_000)
    streams = [first.lane().stream("a"), second.lane().stream("a")]
    for i in range(10):
        streams[i % 2].log(i)
    rows = list(rows_since(tmp_path, {}))
    assert [r.values["a"] for r in rows] == list(range(10))
    assert {r.writer for r in rows} == {"w1", "w2"}


def test_text_histograms_media_and_timings_arrive_as_values(tmp_path: Path) -> None:
    lane = FakeWriter(tmp_path).lane()
    lane.chunk("text", {"key": ["note"], "text": ["hello"]}, 1)
    lane.chunk("histograms", {"key": ["h"], "values": [[1.0, 2.0, 2.0, math.nan]]}, 1)
    lane.chunk("histograms", {"key": ["g"], "edges": [[0.0, 1.0, 2.0]], "counts": [[3.0, 1.0]], "low": [0.1]}, 1)
    lane.chunk("media", {"key": ["i"], "kind": ["image"], "path": ["media/i.png"], "width": [4], "height": [3]}, 1)
    lane.chunk("media", {"key": ["v"], "kind": ["video"], "path": ["media/v.mp4"], "frames": [9], "fps": [30]}, 1)
    lane.chunk("episodes", {"return": [1.0]}, 1)
    lane.chunk("timings", {"name": ["collect"], "seconds": [0.5]}, 1)
    values = [next(iter(r.values.items())) for r in rows_since(tmp_path, {})]
    assert values[0] == ("note", "hello")
    histogram = values[1][1]
    assert isinstance(histogram, Histogram)
    assert (histogram.count, histogram.low, histogram.high, histogram.total) == (3, 1.0, 2.0, 5.0)
    assert values[2][1].low == 0.1
    assert values[3:5] == [("i", Image("media/i.png", 4, 3)), ("v", Video("media/v.mp4", 0, 0, 9, 30.0))]
    assert values[5:] == [("time/collect_seconds", 0.5)]
    timings = list(rows_since(tmp_path, {}, tables=frozenset({"timings"})))
    assert [r.values for r in timings] == [{"time/collect_seconds": 0.5}]


def test_a_row_waits_for_its_device_values_and_then_has_them(tmp_path: Path) -> None:
    import time

    writer = FakeWriter(tmp_path, start=time.time() + 3600)  # however slow the machine is, it is not yet a while
    lane, other = writer.lane(), writer.lane()
    stream = lane.stream("a", deferred=["d"])
    plain = lane.stream("b")
    plain.log(0.0)
    seq = stream.log(1.0)
    plain.log(2.0)
    cursor: dict[str, dict[int, int]] = {}
    with JournalReader(tmp_path) as reader:
        assert [r.values for r in reader.rows_since(cursor)] == [{"b": 0.0}]
        assert list(reader.rows_since(cursor)) == []
        other.frame({"fill": [seq], "lane": 0, "columns": {"d": [7.5]}})
        assert [r.values for r in reader.rows_since(cursor)] == [{"a": 1.0, "d": 7.5}, {"b": 2.0}]


def test_a_row_whose_device_value_never_came_goes_without_it_after_a_while(tmp_path: Path) -> None:
    lane = FakeWriter(tmp_path, start=1_600_000_000.0).lane()
    stream = lane.stream("a", deferred=["d"])
    stream.log(1.0)
    lane.frame(
        {"table": "metrics", "scope": "", "at": "", "clocks": [], "keys": ["x"], "values": [2], "deferred": ["y"]}
    )
    assert [r.values for r in rows_since(tmp_path, {})] == [{"a": 1.0}, {"x": 2}]


def test_rare_rows_get_their_device_values_too(tmp_path: Path) -> None:
    lane = FakeWriter(tmp_path).lane()
    payload = {"table": "metrics", "scope": "", "at": "", "clocks": [], "keys": ["x"], "values": [2], "deferred": ["y"]}
    first, second = lane.frame(payload), lane.frame(payload)
    fill = {"fill": np.array([first, second]), "lane": 0, "columns": {"y": np.array([1.0, 2.0])}}
    lane.frame({**fill, "has": {"y": np.array([True, False])}})
    assert [r.values for r in rows_since(tmp_path, {})] == [{"x": 2, "y": 1.0}, {"x": 2}]


def test_holes_are_passed_and_a_torn_row_is_no_row(tmp_path: Path) -> None:
    lane = FakeWriter(tmp_path).lane()
    stream = lane.stream("a", size=65536)
    stream.log(0.0)
    for _ in range(200):
        stream.hole()
    stream.log(1.0)
    stream.torn(99.0)
    cursor: dict[str, dict[int, int]] = {}
    with JournalReader(tmp_path) as reader:
        assert [r.values["a"] for r in reader.rows_since(cursor)] == [0.0, 1.0]
        for _ in range(30):
            stream.hole()
        lane.rare({"r": 1})
        stream.log(2.0)
        found = [row.values for _ in range(16) for row in reader.rows_since(cursor)]
        assert found == [{"r": 1}, {"a": 2.0}]


def test_rows_from_an_earlier_use_of_a_segment_are_not_rows(tmp_path: Path) -> None:
    stream = FakeWriter(tmp_path).lane().stream("a", size=1024)
    stream.roll()
    for i in range(stream.capacity):
        stream.log(i)
    path = stream.path
    assert path is not None
    stream.leave(layout.SEALED)
    stream.log(100.0)
    assert stream.path == path
    assert [r.values["a"] for r in rows_since(tmp_path, {})] == [100.0]
    with Segment(path) as segment:
        assert [row[3] for row in segment.committed()] == [(100.0,)]
        assert segment.look().generation == 2


def test_a_segment_that_is_being_recycled_gives_nothing(tmp_path: Path) -> None:
    stream = FakeWriter(tmp_path).lane().stream("a")
    stream.log(1.0)
    assert stream.path is not None
    with Segment(stream.path) as segment:
        look = segment.look()
        assert look is not None
        stream.set_word(stream.path, layout.GENERATION_AT, 1)
        assert segment.copy(look) is None
        assert segment.look() is None


def test_newest_rows_gives_one_row_a_stream_but_every_text_and_mark(tmp_path: Path) -> None:
    lane = FakeWriter(tmp_path).lane()
    a, b = lane.stream("a"), lane.stream("b", scope="test")
    for i in range(50):
        a.log(i)
        lane.rare({"rare": i})
    b.log(7.0)
    lane.chunk("text", {"key": ["note"] * 2, "text": ["x", "y"]}, 2)
    lane.mark("final")
    cursor: dict[str, dict[int, int]] = {}
    rows = newest_rows(tmp_path, cursor)
    assert [r.values for r in rows] == [{"a": 49}, {"rare": 49}, {"b": 7.0}, {"note": "y"}, {}] or [
        r.values for r in rows
    ] == [{"a": 49}, {"rare": 49}, {"b": 7.0}, {"note": "x"}, {"note": "y"}, {}]
    assert newest_rows(tmp_path, cursor) == []


@pytest.mark.parametrize("holes", [0.0, 0.1])
@pytest.mark.parametrize("sum_timings", [False, True])
def test_the_newest_rows_are_the_last_of_each_stream_whatever_lies_between_two_polls(
    tmp_path: Path, holes: float, sum_timings: bool
) -> None:
    lane = FakeWriter(tmp_path).lane()
    streams = [lane.stream("a"), lane.stream("b", size=2048), lane.stream("t", table="timings")]
    rng = np.random.default_rng(7)
    newest: dict[str, dict[int, int]] = {}
    every: dict[str, dict[int, int]] = {}
    with JournalReader(tmp_path) as glance, JournalReader(tmp_path) as reader:
        for rows in (1, 3, 70, 400, 0, 65, 900):
            stream = streams[int(rng.integers(0, 3))]
            for i in range(rows):
                if rng.random() < 0.05:  # mostly one stream for long, as in a training
                    stream = streams[int(rng.integers(0, 3))]
                if rng.random() < holes:
                    stream.hole()
                else:
                    stream.log(float(i))
            last: dict[tuple[str, ...], tuple[int, dict[str, Any]]] = {}
            for row in reader.rows_since(every):
                kind, values = tuple(row.values), dict(row.values)
                if sum_timings and row.table == "timings" and kind in last:
                    values = {key: value + last[kind][1][key] for key, value in values.items()}
                last[kind] = (row.seq, values)
            found = glance.newest_rows(newest, sum_timings=sum_timings)
            assert [(row.seq, row.values) for row in found] == sorted(last.values(), key=lambda item: item[0])
            assert newest == every


def test_the_newest_rows_of_a_long_backlog_are_found_without_copying_it(tmp_path: Path) -> None:
    stream = FakeWriter(tmp_path).lane().stream("a", size=2**20)
    stream.log(0.0)
    assert stream.path is not None
    rows = [stream.row_bytes((float(seq),), {}, seq, seq * 1000) for seq in range(2, stream.capacity + 1)]
    with open(stream.path, "r+b") as file:
        file.seek(stream.header_size + stream.row.size)
        file.write(b"".join(rows))
    newest_rows(tmp_path, {})
    tracemalloc.start()
    (row,) = newest_rows(tmp_path, {})
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert row.seq == stream.capacity
    assert most < 2**20 / 2


def test_a_torn_frame_ends_the_file_until_it_is_whole(tmp_path: Path) -> None:
    lane = FakeWriter(tmp_path).lane()
    lane.rare({"a": 1})
    lane.rare({"a": 2})
    assert lane.log_path is not None
    whole = lane.log_path.read_bytes()
    lane.log_path.write_bytes(whole[:-5])
    cursor: dict[str, dict[int, int]] = {}
    with JournalReader(tmp_path) as reader:
        assert [r.values["a"] for r in reader.rows_since(cursor)] == [1]
        lane.log_path.write_bytes(whole)
        assert [r.values["a"] for r in reader.rows_since(cursor)] == [2]
    with FrameFile(lane.log_path) as file:
        assert len(list(file.frames())) == 2
        assert file.torn_bytes() == 0


def test_a_damaged_frame_between_good_ones_is_left_out_and_named(tmp_path: Path) -> None:
    lane = FakeWriter(tmp_path).lane()
    for i in range(3):
        lane.rare({"a": i})
    assert lane.log_path is not None
    with FrameFile(lane.log_path) as file:
        starts = [start for _, _, _, start, _ in file.scan()]
    data = bytearray(lane.log_path.read_bytes())
    data[starts[1] + 30] ^= 1
    lane.log_path.write_bytes(bytes(data))
    assert [r.values["a"] for r in rows_since(tmp_path, {})] == [0, 2]
    with FrameFile(lane.log_path) as file:
        assert len(list(file.frames())) == 2
        assert file.problems[0][0] == starts[1]


def test_a_frame_larger_than_a_block_is_read(tmp_path: Path) -> None:
    lane = FakeWriter(tmp_path).lane()
    lane.chunk("metrics", {f"a{i}": np.zeros(3000) for i in range(100)}, 3000)
    assert sum(path.stat().st_size for path in tmp_path.rglob("*.log")) > 2 * BLOCK
    lane.rare({"b": 1})
    rows = list(rows_since(tmp_path, {}))
    assert len(rows) == 3001
    assert rows[-1].values == {"b": 1}


def test_a_file_that_is_just_being_created_is_tried_again(tmp_path: Path) -> None:
    writer = FakeWriter(tmp_path)
    stream = writer.lane().stream("a")
    stream.log(1.0)
    assert stream.path is not None
    whole = stream.path.read_bytes()
    stream.path.write_bytes(b"")
    cursor: dict[str, dict[int, int]] = {}
    with JournalReader(tmp_path) as reader:
        assert list(reader.rows_since(cursor)) == []
        assert reader.problems
        stream.path.write_bytes(whole)
        assert [r.values["a"] for r in reader.rows_since(cursor)] == [1.0]
        assert not reader.problems


def test_an_empty_folder_has_no_rows(tmp_path: Path) -> None:
    assert list(rows_since(tmp_path, {})) == []
    assert list_writers(tmp_path) == []


def test_a_writer_without_its_json_is_known_by_its_segments(tmp_path: Path) -> None:
    writer = FakeWriter(tmp_path, attempt=3)
    writer.lane().stream("a").log(1.0, env_step=4)
    (writer.folder / "writer.json").unlink()
    (info,) = list_writers(tmp_path)
    assert (info.attempt, info.clocks, "missing" in info.problem) == (3, writer.clocks, True)
    (row,) = rows_since(tmp_path, {})
    assert row.clocks == {"env_step": 4}


def test_an_implausible_commit_word_costs_its_row_and_no_other(tmp_path: Path) -> None:
    stream = FakeWriter(tmp_path).lane().stream("a")
    for i in range(6):
        stream.log(i)
    assert stream.path is not None
    with Segment(stream.path) as segment:
        at = segment.header.header_size + 3 * segment.width - 8
    for word in (2**50, 5, 1):
        stream.set_word(stream.path, at, word)
        with Segment(stream.path) as segment:
            assert [row[3][0] for row in segment.committed()] == [0, 1, 3, 4, 5]


def test_longest_increase_keeps_most() -> None:
    assert Segment.longest_increase([0, 1, 2, 3], [1, 9, 3, 4], 0) == [0, 2, 3]
    assert Segment.longest_increase([0, 1], [2**50, 2], 0) == [1]
    assert Segment.longest_increase([], [], 0) == []


@pytest.mark.parametrize("size", [0, 10, 63, 64, 100])
def test_a_truncated_segment_is_damage_and_no_crash(tmp_path: Path, size: int) -> None:
    stream = FakeWriter(tmp_path).lane().stream("a")
    stream.log(1.0)
    assert stream.path is not None
    stream.path.write_bytes(stream.path.read_bytes()[:size])
    with pytest.raises(Damaged):
        Segment(stream.path)
    assert list(rows_since(tmp_path, {})) == []


@given(st.data())
def test_flipped_bits_never_crash_a_reader(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    run = tmp_path_factory.mktemp("run")
    lane = FakeWriter(run).lane()
    stream = lane.stream("a", size=1024)
    for i in range(6):
        stream.log(i)
        lane.rare({"r": i})
    for path in [stream.path, lane.log_path]:
        assert path is not None
        content = bytearray(path.read_bytes())
        for at in data.draw(st.lists(st.integers(0, len(content) * 8 - 1), max_size=6)):
            content[at // 8] ^= 1 << at % 8
        path.write_bytes(bytes(content))
    with JournalReader(run) as reader:
        list(reader.rows_since({}))
        reader.newest_rows({})


def test_every_row_comes_once_while_a_thread_writes_rolls_and_makes_holes(tmp_path: Path) -> None:
    writer = FakeWriter(tmp_path)
    written: list[tuple[int, int]] = []
    done = threading.Event()

    def work(index: int) -> None:
        lane = writer.lanes[index]
        streams = [lane.stream("a", size=2048), lane.stream("b", size=2048)]
        rng = np.random.default_rng(index)
        for i in range(600):
            kind = int(rng.integers(0, 20))
            if kind == 0:
                streams[0].hole()
            elif kind < 4:
                written.append((index, lane.rare({"r": i})))
            else:
                written.append((index, streams[kind % 2].log(i)))

    for _ in range(2):
        writer.lane()
    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    cursor: dict[str, dict[int, int]] = {}
    seen: list[tuple[int, int]] = []
    with JournalReader(tmp_path) as reader:
        while True:
            finished = not any(thread.is_alive() for thread in threads)
            seen += [(row.lane, row.seq) for row in reader.rows_since(cursor)]
            if finished:
                break
    done.set()
    assert len(seen) == len(set(seen))
    assert sorted(seen) == sorted(written)
    assert all(
        [seq for lane, seq in seen if lane == index] == sorted(seq for lane, seq in seen if lane == index)
        for index in range(2)
    )


def test_following_a_journal_needs_only_the_standard_library(tmp_path: Path) -> None:
    FakeWriter(tmp_path).lane().stream("a").log(1.0)
    code = (
        "import sys; from rollbook.journal.reader import rows_since;"
        f"assert len(list(rows_since({str(tmp_path)!r}, {{}}))) == 1;"
        "assert not {'numpy', 'pyarrow', 'pandas'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})
