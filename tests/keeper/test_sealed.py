"""Sinks and sealing: rows that became Parquet before a sink had them reach it from there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rollbook
from rollbook.keeper.forward import Forwarder
from rollbook.keeper.replaying import replay
from rollbook.keeper.sealed import LazySealed
from rollbook.protocols import Row, RunInfo
from rollbook.storage.sealed_rows import SealedRows

seal_room = pytest.importorskip("rollbook.storage.sealing.folder")


class Kept:
    """A sink that keeps its rows, or is down."""

    accepts: frozenset[type] = frozenset({float, int})

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.down = False

    def open(self, run: RunInfo) -> None:
        return

    def write(self, rows: Sequence[Row]) -> None:
        if self.down:
            raise ConnectionError("down")
        self.rows.extend(rows)

    def close(self) -> None:
        return

    def values(self, key: str) -> list[Any]:
        return [row.values[key] for row in self.rows if key in row.values]


def small_segments(run: Any) -> Any:
    run.writer.first_segment_bytes = run.writer.largest_segment_bytes = 4096
    return run.log()


def test_an_outage_is_caught_up_with_from_parquet(make_run: Any, clock: Any) -> None:
    run, sink = make_run(), Kept()
    log = small_segments(run)
    forwarder = Forwarder(run.folder, sink, name="kept", clock=clock)
    for i in range(50):
        log({"i": float(i)}, env_step=i)
    forwarder.step()
    sink.down = True
    for i in range(50, 1000):
        log({"i": float(i)}, env_step=i)
        if i % 100 == 0:
            log({"rare": float(i)})
            clock.now += 100
            forwarder.step()
            seal_room.seal(run.folder)
    sink.down = False
    for i in range(1000, 1010):
        log({"i": float(i)}, env_step=i)
    clock.now += 100
    forwarder.step()
    assert sink.values("i") == [float(i) for i in range(1010)]
    assert sink.values("rare") == [float(i) for i in range(100, 1000, 100)]
    assert [row.clocks["env_step"] for row in sink.rows if "i" in row.values] == list(range(1010))
    assert len({(row.writer, row.lane, row.seq) for row in sink.rows}) == len(sink.rows)


def test_a_sink_that_comes_when_all_is_sealed_and_merged_gets_everything(make_run: Any) -> None:
    run = make_run()
    log = small_segments(run)
    for i in range(700):
        log({"i": float(i)}, env_step=i)
        if i % 50 == 0:
            log({f"rare{i}": float(i)})
    run.writer.close()
    seal_room.seal(run.folder, final=True)
    late, again = Kept(), Kept()
    Forwarder(run.folder, late, name="late").step()
    assert late.values("i") == [float(i) for i in range(700)]
    assert sorted(v for row in late.rows for key, v in row.values.items() if key.startswith("rare")) == [
        float(i) for i in range(0, 700, 50)
    ]
    assert replay(run.folder, again) == 714
    assert again.values("i") == late.values("i")
    before = len(late.rows)
    Forwarder(run.folder, late, name="late").step()
    assert len(late.rows) == before


def test_rows_whose_time_repair_could_not_read_reach_a_sink_all_the_same(make_run: Any) -> None:
    run, sink = make_run(), Kept()
    log = run.log()
    for i in range(20):
        log({"i": float(i)}, env_step=i)
    run.writer.close()
    seal_room.seal(run.folder, final=True)
    for part in (run.folder / "data" / "metrics").rglob("*.parquet"):
        rows = pq.read_table(part)
        place = rows.schema.get_field_index("time")
        unread = pa.nulls(rows.num_rows, rows.schema.field(place).type)
        pq.write_table(rows.set_column(place, rows.schema.field(place).with_nullable(True), unread), part)
    assert replay(run.folder, sink) == 20
    assert sink.values("i") == [float(i) for i in range(20)]
    assert 0.0 in {row.time for row in sink.rows}


def test_a_sink_that_keeps_up_never_loads_pyarrow(make_run: Any, python: Any) -> None:
    run = make_run()
    log = small_segments(run)
    script = """
import sys
from rollbook.keeper.forward import Forwarder
from rollbook.sinks import Jsonl
forwarder = Forwarder(sys.argv[1], Jsonl(), name="jsonl")
for line in sys.stdin:
    forwarder.step()
    print(forwarder.rows, "pyarrow" in sys.modules, flush=True)
"""
    import subprocess

    process = python(script, run.folder, stdin=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    for turn in range(1, 6):
        for i in range(300):
            log({"i": float(i)})
            log({"other": float(i), "two": 2.0})
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline().split() == [str(600 * turn), "False"]
        seal_room.seal(run.folder)
    assert list((run.folder / "data" / "metrics" / "wide").glob("*.S*.parquet"))
    process.communicate()


def test_what_is_sealed_is_known_from_the_footers_alone(make_run: Any) -> None:
    run = make_run()
    log = small_segments(run)
    for i in range(300):
        log({"i": float(i)})
    sealed = LazySealed(str(run.folder))
    assert sealed.lanes() == {}
    run.writer.close()
    seal_room.seal(run.folder)
    assert sealed.lanes() == {run.writer.id: {0: 300}}
    seal_room.seal(run.folder, final=True)
    assert sealed.lanes() == {run.writer.id: {0: 300}}
    tables = frozenset({"metrics"})
    assert list(sealed.rows("nobody", 0, 0, 10, tables)) == []
    assert list(sealed.rows(run.writer.id, 0, 300, 400, tables)) == []
    assert [row.values["i"] for row in sealed.rows(run.writer.id, 0, 10, 13, tables)] == [10.0, 11.0, 12.0]


def test_a_damaged_part_does_not_stop_what_can_be_read(make_run: Any) -> None:
    run, sink = make_run(), Kept()
    log = small_segments(run)
    for i in range(300):
        log({"i": float(i)})
    run.writer.close()
    seal_room.seal(run.folder)
    (run.folder / "data" / "metrics" / f"{run.writer.id}.L00.S009.1.parquet").write_bytes(b"rubbish")
    (run.folder / "data" / "metrics" / "merged.000.parquet").write_bytes(b"")
    Forwarder(run.folder, sink).step()
    assert sink.values("i") == [float(i) for i in range(300)]


def test_who_comes_late_to_many_rows_is_given_a_few_of_each_chunk_or_the_newest(tmp_path: Path) -> None:
    with rollbook.init("p", "n", dir=tmp_path, sinks=[], keeper="inline") as run:
        for chunk in range(3):
            run.log_many({"x": np.arange(5000.0) + 5000 * chunk}, env_step=np.arange(5000) + 5000 * chunk)
        for step in range(20):
            run.log({"y": float(step)}, env_step=step)
        run.log({"rare": 1.0})
    (writer,) = SealedRows(run.folder).lanes()

    def values(key: str, **options: Any) -> list[float]:
        rows = SealedRows(run.folder).rows(writer, 0, 0, 2**40, frozenset({"metrics"}), **options)
        return [row.values[key] for row in rows if key in row.values]

    assert len(values("x")) == 15_000
    few = values("x", most=100)
    assert len(few) <= 300
    assert few[-1] == 14_999.0
    assert max(np.diff(few)) <= 50.0
    assert values("y", most=100) == [float(step) for step in range(20)]
    assert values("x", newest=True) == [14_999.0]
    assert values("y", newest=True)[-1] == 19.0
    assert values("rare", newest=True) == [1.0]


def test_the_newest_row_of_each_writer_is_given_where_a_part_holds_those_of_several(tmp_path: Path) -> None:
    program = "import os, rollbook; rollbook.attach(os.environ['RUN']).log({'x': 2.0}, env_step=2)"
    with rollbook.init("p", "n", dir=tmp_path, sinks=[], keeper="inline") as run:
        for step in range(30):
            run.log({"x": 1.0}, env_step=step)
        subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, "RUN": str(run.folder)})
        for step in range(30):
            run.log({"x": 3.0}, env_step=step)
    seal_room.seal(run.folder, final=True)
    store = SealedRows(run.folder)
    assert len(store.lanes()) == 2
    own = run.internals.writer.id
    for writer, value in ((own, 3.0), *((other, 2.0) for other in store.lanes() if other != own)):
        rows = store.rows(writer, 0, 0, 2**40, frozenset({"metrics"}), newest=True)
        assert [row.values["x"] for row in rows if "x" in row.values][-1:] == [value], writer
