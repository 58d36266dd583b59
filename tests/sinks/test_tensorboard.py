"""What real TensorBoard reads of our event file."""

from __future__ import annotations

import math
import socket
import struct
import sys
import zlib

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

from rollbook import sinks, testing
from rollbook.errors import MissingExtra
from rollbook.protocols import Row
from rollbook.sinks import TensorBoard
from rollbook.sinks.event_files import whole_records
from rollbook.values import Histogram, Image

PNG = (
    b"\x89PNG\r\n\x1a\n"
    + b"\x00\x00\x00\rIHDR\x00\x00\x00\x02\x00\x00\x00\x01\x08\x02\x00\x00\x00"
    + struct.pack(">I", zlib.crc32(b"IHDR\x00\x00\x00\x02\x00\x00\x00\x01\x08\x02\x00\x00\x00"))
)


def event_file(folder):
    (path,) = (folder / "log" / "serial").iterdir()
    return path


def read(folder, *, purge=True):
    found = EventAccumulator(
        str(event_file(folder)),
        size_guidance={"scalars": 0, "histograms": 0, "images": 0, "tensors": 0},
        purge_orphaned_data=purge,
    )
    found.Reload()
    return found


def scalars(found, tag):
    return [(event.step, event.value) for event in found.Scalars(tag)]


def row(time, values, attempt=1, **clocks):
    return Row(time, clocks, values, "", "w", 0, int(time), attempt)


def test_scalars_have_their_tag_step_value_and_time(write):
    folder = write(TensorBoard(), {"train/return": 1.5, "train/n": 3, "train/on": True}, env_step=7, epoch=1)
    found = read(folder)
    assert found.Tags()["scalars"] == ["train/return", "train/n", "train/on"]
    assert scalars(found, "train/return") == [(7, 1.5)]
    assert scalars(found, "train/n") == [(7, 3.0)]
    assert scalars(found, "train/on") == [(7, 1.0)]
    assert found.Scalars("train/return")[0].wall_time == 1_700_000_000.25


def test_there_is_one_file_with_the_name_people_expect(write):
    folder = write(TensorBoard(), {"a": 1.0}, {"b": 2.0})
    host = socket.gethostname().partition(".")[0]
    assert event_file(folder).name == f"events.out.tfevents.1700000000.{host}"


def test_histograms_text_and_images_arrive_whole(run):
    (run.folder / "media").mkdir(parents=True)
    (run.folder / "media/a.png").write_bytes(PNG)
    sink = TensorBoard()
    sink.open(run)
    histogram = Histogram([0.0, 1.0, 4.0], [2.0, 3.0], low=0.25, high=3.5, total=7.0, total_squares=15.0)
    sink.write([row(1.0, {"h": histogram, "note": "über\n*all*", "pic": Image("media/a.png", 2, 1)}, env_step=5)])
    found = read(run.folder)
    (event,) = found.Histograms("h")
    assert event.step == 5
    value = event.histogram_value
    assert (value.min, value.max, value.num, value.sum, value.sum_squares) == (0.25, 3.5, 5.0, 7.0, 15.0)
    assert (list(value.bucket_limit), list(value.bucket)) == ([1.0, 4.0], [2.0, 3.0])
    assert found.Images("pic")[0].encoded_image_string == PNG
    assert found.Tensors("note")[0].tensor_proto.string_val[0].decode() == "über\n*all*"
    assert found.PluginTagToContent("text") == {"note": b""}


def test_an_image_outside_of_the_run_or_gone_is_left_out(run):
    (run.folder.parent / "secret.png").write_bytes(PNG)
    sink = TensorBoard()
    sink.open(run)
    sink.write([row(1.0, {"a": Image("../secret.png", 2, 1), "b": Image("media/gone.png", 2, 1), "x": 1.0})])
    assert PNG not in event_file(run.folder).read_bytes()
    assert read(run.folder).Tags()["images"] == []
    assert read(run.folder).Tags()["scalars"] == ["x"]


def test_numbers_an_event_cannot_hold_become_what_is_nearest(write):
    values = {"a": math.nan, "b": 1e300, "c": -(10**400), "d": 10**400, "e": math.inf}
    found = read(write(TensorBoard(), values))
    assert math.isnan(found.Scalars("a")[0].value)
    assert [found.Scalars(tag)[0].value for tag in "bcde"] == [math.inf, -math.inf, math.inf, math.inf]


def test_the_step_is_the_clock_of_choice_or_the_first_known_one_or_the_row(run):
    sink = TensorBoard(x="gradient_step")
    sink.open(run)
    sink.write([row(1.0, {"x": 1.0}, env_step=5, gradient_step=2, epoch=9)])
    sink.write([row(2.0, {"x": 2.0}, env_step=6, epoch=9)])
    sink.write([row(3.0, {"y": 3.0}, epoch=9)])
    sink.write([row(4.0, {"y": 4.0})])
    found = read(run.folder, purge=False)
    assert scalars(found, "x") == [(2, 1.0), (6, 2.0)]
    assert scalars(found, "y") == [(9, 3.0), (4, 4.0)]


def test_a_resumed_run_goes_on_in_the_same_file_without_a_zigzag(run, tmp_path):
    sink = TensorBoard()
    sink.open(run)
    sink.write([row(i, {"r": float(i)}, env_step=10 * i) for i in range(10)])
    state = sink.state()
    sink.close()
    again = TensorBoard()
    again.open(testing.some_run(run.folder, attempt=2))
    again.set_state(state)
    again.write([row(100.0, {"host/cpu": 5.0}, 2, epoch=1)])  # knows nothing of env_step: no place to cut at
    again.write([row(100 + i, {"r": 100.0 + i}, 2, env_step=10 * i) for i in range(6, 12)])
    again.close()
    shown = scalars(read(run.folder), "r")
    assert shown == [(10 * i, float(i)) for i in range(6)] + [(10 * i, 100.0 + i) for i in range(6, 12)]
    assert len(scalars(read(run.folder, purge=False), "r")) == 16


def test_rows_that_know_another_clock_alone_are_not_hidden_by_a_resume(run):
    sink = TensorBoard(x="env_step")
    sink.open(run)
    sink.write([row(i, {"r": float(i)}, env_step=1000 * i) for i in range(5)])
    sink.write([row(i, {"learner": float(i)}, gradient_step=2000 + i) for i in range(3)])  # of another process
    sink.close()
    again = TensorBoard(x="env_step")
    again.open(testing.some_run(run.folder, attempt=2))
    again.set_state(sink.state())
    again.write([row(100.0 + i, {"r": 100.0 + i}, 2, env_step=1000 * i) for i in (1, 2, 3, 4)])
    again.close()
    found = read(run.folder)
    assert scalars(found, "learner") == [(2000, 0.0), (2001, 1.0), (2002, 2.0)]
    shown = scalars(found, "r")
    assert shown[:3] == [(0, 0.0), (1000, 1.0), (2000, 2.0)]  # before the mark at 2003: a zigzag
    assert shown[3:] == [(1000, 101.0), (2000, 102.0), (3000, 103.0), (4000, 104.0)]


def test_half_a_record_at_the_end_is_cut_off_before_the_next_is_written(run):
    sink = TensorBoard()
    sink.open(run)
    sink.write([row(i, {"r": float(i)}, env_step=i) for i in range(3)])
    path = event_file(run.folder)
    whole = path.read_bytes()
    path.write_bytes(whole[:-7])
    again = TensorBoard()
    again.open(run)
    again.write([row(5.0, {"r": 5.0}, env_step=5)])
    assert scalars(read(run.folder), "r") == [(0, 0.0), (1, 1.0), (5, 5.0)]


@pytest.mark.parametrize("cut", range(1, 60))
def test_whole_records_end_where_a_record_ends(tmp_path, cut):
    path = tmp_path / "events"
    record = struct.pack("<Q", 20) + b"crc1" + b"x" * 20 + b"crc2"
    path.write_bytes((record * 3)[:cut])
    assert whole_records(path, cut) == cut // len(record) * len(record)


def test_events_have_the_checksums_tensorboard_verifies(write):
    folder = write(TensorBoard(), {"x": 1.0})
    path = event_file(folder)
    assert len(list(EventFileLoader(str(path)).Load())) == 3
    data = bytearray(path.read_bytes())
    data[-8] ^= 1
    path.write_bytes(data)
    assert len(list(EventFileLoader(str(path)).Load())) == 2


def test_every_row_is_sent_and_on_request_each_key_once_in_so_many_seconds(run, tmp_path):
    rows = [row(i / 10, {"a": float(i)} if i % 2 else {"b": float(i)}, env_step=i) for i in range(45)]
    for folder, options, expected in (("thin", {"every_seconds": 1.0}, 5), ("all", {}, 22)):
        (tmp_path / folder).mkdir()
        sink = sinks.make("tensorboard", **options)
        sink.open(testing.some_run(tmp_path / folder))
        sink.write(rows)
        sink.close()
        found = scalars(read(tmp_path / folder), "a")
        assert len(found) in (expected, expected + 1)
        assert found[-1] == (43, 43.0)


def test_a_missing_package_is_named_with_the_line_that_installs_it(run, monkeypatch):
    for module in [name for name in sys.modules if name.partition(".")[0] == "tensorboard"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(MissingExtra, match=r"the TensorBoard sink needs .*rollbook(-core)?\[tensorboard\]"):
        TensorBoard().open(run)
