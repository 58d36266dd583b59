"""How far writers got, told without reading values; and what is made durable."""

from __future__ import annotations

import os
from typing import Any

import pytest

from rollbook.journal import Positions
from rollbook.journal import format as layout
from rollbook.keeper import durable as durable_room
from rollbook.keeper.durable import Durable
from rollbook.keeper.writers import GRAIN_NS, KnownWriter, Writers


def known(run: Any) -> KnownWriter:
    writers = Writers(str(run.folder), lambda: 0.0)
    writers.look()
    return next(writer for writer in writers if writer.id == run.writer.id)


def positions_of(run: Any) -> Positions:
    return Positions(known(run).folder, GRAIN_NS)


@pytest.mark.parametrize("rows", [0, 1, 7, 8, 9, 100, 1000, 5000])
def test_the_last_number_of_a_lane_is_found(make_run: Any, rows: int) -> None:
    run = make_run()
    log = run.log()
    for i in range(rows):
        log({"i": float(i)})
    assert positions_of(run).look() == ({"0": rows} if rows else {})
    assert run.writer.positions()[run.writer.id] == ({"0": rows} if rows else {})


def test_it_follows_a_run_as_it_grows_and_rolls(make_run: Any) -> None:
    run = make_run()
    run.writer.first_segment_bytes, run.writer.largest_segment_bytes = 2048, 4096
    log, positions = run.log(), positions_of(run)
    logged = 0
    for more in (1, 3, 0, 20, 1, 200, 7, 1000):
        for _ in range(more):
            logged += 1
            log({"a": 1.0} if logged % 3 else {"b": 1.0, "c": 2})
        assert positions.look() == {"0": logged}


def test_rows_from_an_earlier_use_of_a_recycled_segment_are_not_counted(make_run: Any) -> None:
    run = make_run()
    run.writer.first_segment_bytes = run.writer.largest_segment_bytes = 4096
    run.writer.rows_before_stream = 1
    log = run.log()
    log({"i": 0.0})
    positions = positions_of(run)
    first = next(iter((run.folder / "data" / "journal" / run.writer.id).glob("*.seg")))
    count = 1
    generation = 0
    while generation == 0:
        log({"i": float(count)})
        count += 1
        data = first.read_bytes()
        if int.from_bytes(data[layout.STATE_AT : layout.STATE_AT + 8], "little") == layout.LEFT:
            with first.open("r+b") as file:
                file.seek(layout.STATE_AT)
                file.write(layout.WORD.pack(layout.SEALED))
        generation = int.from_bytes(data[layout.GENERATION_AT : layout.GENERATION_AT + 8], "little")
    assert positions.look() == {"0": count}


def test_a_hole_that_an_interrupt_left_does_not_hide_the_rows_behind_it(make_run: Any) -> None:
    run = make_run()
    run.writer.rows_before_stream = 1
    log = run.log()
    for i in range(10):
        log({"i": float(i)})
    lane = run.writer.lanes[0]
    stream = next(iter(lane.shapes.values()))
    stream.offset += stream.width  # what an interrupt between the two leaves
    lane.seq += 1
    log({"i": 11.0})
    assert positions_of(run).look() == {"0": 12}


def test_frames_and_torn_tails_are_distinguished(make_run: Any) -> None:
    run = make_run()
    for _ in range(3):
        run.writer.frame({"mark": "dump"})
    path = next(iter((run.folder / "data" / "journal" / run.writer.id).glob("*.log")))
    with path.open("ab") as file:
        file.write(layout.pack_frame(4, 0, b"x" * 100)[:60])
    positions = positions_of(run)
    assert positions.look() == {"0": 3}
    with path.open("r+b") as file:
        file.seek(-60, os.SEEK_END)
        file.write(layout.pack_frame(4, 0, b"x" * 100))
    assert positions.look() == {"0": 4}


def test_what_was_logged_is_synced_before_it_is_called_durable(make_run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run()
    events: list[str] = []
    real_write = durable_room.write_json

    def write(path: str, data: Any, **options: Any) -> None:
        events.append(os.path.basename(path))
        real_write(path, data, **options)

    monkeypatch.setattr(durable_room, "write_json", write)
    log = run.log()
    for i in range(20):
        log({"i": float(i)})
    durable = Durable(str(run.folder), lambda: 0.0, sync_file=lambda path: events.append("sync"))
    writer = known(run)
    assert durable.step([writer], alive=True, alone=True) == [run.writer.id]
    assert events == ["sync", "sync", "durable.json", "heartbeat"]  # the frame file of the first rows, and the segment
    assert run.keeper_file("durable.json")["marks"] == {run.writer.id: {"0": 20}}
    assert run.keeper_file("heartbeat") == {run.writer.id: {"0": 20}}
    events.clear()
    assert durable.step([writer], alive=True, alone=True) == []
    assert events == []  # nothing new: nothing written
    log({"i": 20.0})
    durable.step([writer], alive=True, alone=True)
    assert events == ["sync", "durable.json"]  # the other file has not changed; the heartbeat was touched


def test_each_look_that_finds_rows_touches_the_heartbeat_and_other_places_find_in_it_how_far_they_are(
    make_run: Any, clock: Any
) -> None:
    run = make_run()
    beat = run.folder / "data" / "keeper" / "heartbeat"
    durable, writer, log = Durable(str(run.folder), clock), known(run), run.log()
    said = []
    for seconds, alone in ((0, True), (1, True), (1, True), (1, False), (1, True), (60, True)):
        clock.now += seconds
        log({"i": 1.0})
        if beat.exists():
            os.utime(beat, (1.0, 1.0))
        durable.step([writer], alive=True, alone=alone)
        assert beat.stat().st_mtime > 1.0
        said.append(run.keeper_file("heartbeat")[run.writer.id]["0"])
    assert said == [1, 1, 1, 4, 4, 6]
    beat.unlink()  # a person tidied up
    log({"i": 1.0})
    durable.step([writer], alive=True, alone=True)
    assert run.keeper_file("heartbeat") == {run.writer.id: {"0": 7}}


def test_a_disk_that_cannot_sync_makes_nothing_durable(make_run: Any) -> None:
    run = make_run()
    run.log()({"i": 1.0})
    fails = [True]

    def sync(path: str) -> None:
        if fails:
            raise OSError(5, "Input/output error")

    durable, writer = Durable(str(run.folder), lambda: 0.0, sync_file=sync), known(run)
    durable.step([writer], alive=True, alone=True)
    assert durable.marks == {}
    fails.clear()
    run.log()({"i": 2.0})
    durable.step([writer], alive=True, alone=True)
    assert durable.marks == {run.writer.id: {"0": 2}}


def test_the_heartbeat_goes_on_while_a_writer_is_alive_and_logs_nothing(make_run: Any, clock: Any) -> None:
    run = make_run()
    durable, writer = Durable(str(run.folder), clock), known(run)
    durable.step([writer], alive=True, alone=True)
    path = run.folder / "data" / "keeper" / "heartbeat"
    path.unlink()
    clock.now += 10
    durable.step([writer], alive=True, alone=True)
    assert not path.exists()
    clock.now += 10
    durable.step([writer], alive=True, alone=True)
    assert path.exists()
    path.unlink()
    clock.now += 100
    durable.step([writer], alive=False, alone=True)
    assert not path.exists()


def test_the_entries_of_other_hosts_keepers_are_kept(make_run: Any) -> None:
    run = make_run()
    folder = run.folder / "data" / "keeper"
    (run.folder / "data" / "journal" / "elsewhere").mkdir()
    (folder / "heartbeat").write_text('{"elsewhere": {"0": 5}, "removed": {"0": 1}}')
    (folder / "durable.json").write_text('{"boot_id": "x", "marks": {"elsewhere": {"0": 4}}}')
    run.log()({"i": 1.0})
    Durable(str(run.folder), lambda: 0.0).step([known(run)], alive=True, alone=False)
    assert run.keeper_file("heartbeat") == {"elsewhere": {"0": 5}, run.writer.id: {"0": 1}}
    assert run.keeper_file("durable.json")["marks"] == {"elsewhere": {"0": 4}, run.writer.id: {"0": 1}}


def test_what_waits_to_be_sealed_is_what_its_writer_has_left(make_run: Any) -> None:
    run = make_run()
    run.writer.first_segment_bytes = run.writer.largest_segment_bytes = 4096
    run.writer.rows_before_stream = 1
    log = run.log()
    durable, writer = Durable(str(run.folder), lambda: 0.0), known(run)
    log({"i": 0.0})
    durable.step([writer], alive=True, alone=True)
    assert durable.waiting([writer]) == []
    for i in range(200):
        log({"i": float(i)})
    durable.step([writer], alive=True, alone=True)
    left = durable.waiting([writer])
    files = len(list((run.folder / "data" / "journal" / run.writer.id).glob("*.seg")))
    assert files > 2
    assert len(left) == files - 1
    assert sum(size for _, size in left) == sum(os.path.getsize(path) for path, _ in left)
    run.writer.close()
    durable.step([writer], alive=True, alone=True)
    assert len(durable.waiting([writer])) == files
