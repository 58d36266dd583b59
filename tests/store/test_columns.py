"""Columns cut from the journal say what its rows say."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cases import some_of
from rollbook.journal.reader import JournalReader
from rollbook.journal.writer import Writer
from rollbook.protocols import Row
from rollbook.schema.columns import Columns, columns_of
from rollbook.schema.tables import FORWARDED
from rollbook.values.arrow import table_of

TABLES = FORWARDED | {"episodes", "timings"}


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    writer = Writer(str(tmp_path), main=True)
    yield writer
    writer.close()


def logged(writer: Writer, rows: int, seed: int) -> None:
    """Rows of many kinds: key sets that take turns, integers, truth values, NaN, texts, chunks, rows without clocks."""
    draw, log, timings = random.Random(seed), writer.make_log(writer.channel()), writer.channel("timings")
    time_it = writer.make_log(timings)
    own = writer.make_log(writer.channel(prefix="rollbook/", scope="rollbook"))
    for n in range(rows):
        values: dict[str, Any] = {f"k{i}": draw.random() for i in range(4)}
        kind = draw.randrange(12)
        if kind == 0:
            values["k1"] = draw.choice([float("nan"), float("inf"), -float("inf"), 1.7e308, -1.7e308])
        elif kind == 1:
            values = {"k1": draw.random(), "rare": n, "yes": n % 2 == 0}
        elif kind == 2:
            values = {"k2": draw.randrange(-9, 9), f"once{n}": 1.0}
        elif kind == 3:
            time_it({"collect": draw.random()})
        elif kind == 4:
            own({"seconds": 1.0})
        elif kind == 5:
            columns = {"return": [draw.random(), 2.0], "length": [3, 4]}
            payload = {"table": "episodes", "scope": "", "at": "", "clocks": [], "n": 2, "columns": columns}
            writer.frame(payload)
        log(values, **({} if n % 7 == 0 else {"env_step": -n if n % 11 == 0 else n}))


def all_columns(reader: JournalReader, most_bytes: int) -> list[Columns]:
    reads = reader.columns({}, most_bytes=most_bytes, is_late=lambda: False)
    return [Columns(read.pieces) for read in reads]


def content(columns: list[Columns]) -> dict[Any, list[Any]]:
    """(table, key) -> value, clocks, time to the microsecond and identity of each row."""
    content: dict[Any, list[Any]] = {}
    for some in columns:
        for table in sorted(TABLES):
            for key in some.keys(table):
                column = some.column(key, table)
                steps = column.clock("env_step")
                for i, (value, time) in enumerate(zip(column.values, column.times(), strict=True)):
                    where = column.where(i)
                    assert where["time"] == pytest.approx(time)
                    assert where["clocks"].get("env_step", -(2**63)) == steps[i]
                    place = (repr(value), sorted(where["clocks"].items()), sorted(where["row"].items()))
                    content.setdefault((table, key), []).append(place)
    return content


def rows_of(folder: Path) -> list[Row]:
    with JournalReader(folder, tables=TABLES) as reader:
        return [row for row in reader.rows_since({}) if row.scope != "rollbook"]


@pytest.mark.parametrize("stretch", [1, 8 * 1024, 1 << 30], ids=["short", "middle", "one"])
@pytest.mark.parametrize("seed", some_of(range(4), 2))
def test_columns_hold_the_numbers_of_the_rows_in_their_order(
    writer: Writer, tmp_path: Path, stretch: int, seed: int
) -> None:
    writer.first_segment_bytes = 4096
    logged(writer, 700, seed)
    with JournalReader(tmp_path, tables=TABLES) as reader:
        columns = all_columns(reader, stretch)
    rows = rows_of(tmp_path)
    assert content(columns) == content([columns_of(rows)])
    assert sum(map(len, columns)) == len(rows)
    assert (len(columns) > 1) == (stretch < 1 << 20)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_no_number_is_named_without_looking_at_each_value(writer: Writer, tmp_path: Path, seed: int) -> None:
    logged(writer, 300, seed)
    with JournalReader(tmp_path, tables=TABLES) as reader:
        (columns,) = all_columns(reader, 1 << 30)
    assert columns.non_finite() == columns_of(rows_of(tmp_path)).non_finite() == {"k1"}


def test_the_longest_pause_is_that_between_rows_of_all_streams(writer: Writer, tmp_path: Path) -> None:
    logged(writer, 200, 1)
    with JournalReader(tmp_path, tables=TABLES) as reader:
        (columns,) = all_columns(reader, 1 << 30)
    times = columns.times()
    longest = max(after - before for before, after in pairwise(times))
    assert columns.longest_pause(None, 0.0) == pytest.approx(longest, abs=1e-6)
    assert columns.longest_pause(times[0] - 9.0, 0.0) == pytest.approx(9.0, abs=1e-6)
    assert columns.longest_pause(times[0] - 9.0, 10.0) == 0.0


def test_a_reader_goes_on_where_it_stopped_and_leaves_out_the_middle_when_it_is_late(
    writer: Writer, tmp_path: Path
) -> None:
    writer.first_segment_bytes = 4096
    log = writer.make_log(writer.channel())
    with JournalReader(tmp_path) as reader:
        cursor: dict[str, dict[int, int]] = {}
        seen: list[float] = []
        for n in range(600):
            log({"k": float(n)}, env_step=n)
            if n in (3, 4, 200, 599):
                for read in reader.columns(cursor, most_bytes=1, is_late=lambda: False):
                    cursor, seen = read.cursor, seen + list(Columns(read.pieces).column("k").values)
        assert seen == [float(n) for n in range(600)]
        assert list(reader.columns(cursor, most_bytes=1, is_late=lambda: False)) == []
        (last,) = reader.columns({}, most_bytes=1, is_late=lambda: True)
    values = list(Columns(last.pieces).column("k").values)
    assert values[-1] == 599.0
    assert len(values) + last.skipped == 600


def test_rows_as_a_table_are_what_arrow_itself_would_make() -> None:
    part = pa.struct([("fate", pa.string()), ("n", pa.int64())])
    schema = pa.schema(
        [
            ("name", pa.string()),
            ("n", pa.int64()),
            ("share", pa.float64()),
            ("parts", pa.list_(part)),
            ("part", part),
        ]
    )
    rows: list[dict[str, Any]] = [
        {"name": "ä", "n": 2**62, "share": 0.1, "parts": [{"fate": "used", "n": 1}, {"fate": None}], "part": {"n": 3}},
        {"name": None, "n": None, "share": float("inf"), "parts": None, "part": {"fate": "lost", "n": None}},
        {"parts": []},
    ]
    made, theirs = table_of(rows, schema), pa.Table.from_pylist(rows, schema=schema)
    assert made.schema == theirs.schema
    assert [row | {"part": None} for row in made.to_pylist()] == [row | {"part": None} for row in theirs.to_pylist()]
    assert made["part"].to_pylist()[:2] == theirs["part"].to_pylist()[:2]
    assert table_of([], schema).num_rows == 0
    with pytest.raises(TypeError, match="bool"):
        table_of([{"x": True}], pa.schema([("x", pa.bool_())]))
