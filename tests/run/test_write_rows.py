"""`Run.write_rows`: rows that were made elsewhere, with their own clocks and times."""

from __future__ import annotations

import datetime
import itertools
import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rollbook
from cases import some_of
from rollbook.book.book import Book
from rollbook.errors import BadInput, RollbookWarning
from rollbook.journal.reader import JournalReader
from rollbook.keeper.sealed import LazySealed
from rollbook.protocols import Row, Scalars
from rollbook.run import foreign_rows
from rollbook.values import Histogram


def open_run(folder: Path, **more: Any) -> rollbook.Run:
    return rollbook.init("p", "r", dir=folder, sinks=[], keeper="inline", rules=(), **more)


def cells_of(book: Book, key: str) -> list[tuple[float, int | None, Any]]:
    """(time, env_step, value) of a key, in the order of the book."""
    table = book.metrics([key], exact=True)
    times = [moment.timestamp() for moment in table["time"].to_pylist()]
    steps = table["env_step"].to_pylist() if "env_step" in table.column_names else [None] * len(times)
    return [cell for cell in zip(times, steps, table[key].to_pylist(), strict=True) if cell[2] is not None]


def test_rows_keep_their_own_times_clocks_and_kinds(tmp_path: Path) -> None:
    moment = datetime.datetime(2024, 5, 6, 7, 8, 9, 250_000, tzinfo=datetime.UTC)
    rows = [
        {"time": 1.5e9, "env_step": 10, "loss": 0.5, "nested": {"a": 1}, "none": None, "scope": "train"},
        {"time": moment, "env_step": 20.0, "loss": math.nan, "note": "a word"},
        Row(1.8e9, {"gradient_step": 3}, {"loss": 2.0, "dist": Histogram([0, 1, 2], [3, 4])}, at="", scope="update"),
    ]
    with open_run(tmp_path) as run:
        assert run.write_rows(rows) == 3
        assert run.bill()["drops"] == {}
    book = run.book
    (first, second, third) = cells_of(book, "loss")
    assert first == (1.5e9, 10, 0.5)
    assert (second[0], second[1]) == (moment.timestamp(), 20)
    assert math.isnan(second[2])
    assert third == (1.8e9, None, 2.0)
    assert cells_of(book, "nested/a") == [(1.5e9, 10, 1)]
    assert book.text().select(["key", "text"]).to_pylist() == [{"key": "note", "text": "a word"}]
    (histogram,) = book.table("histograms").to_pylist()
    assert (histogram["key"], histogram["counts"], histogram["gradient_step"]) == ("dist", [3.0, 4.0], 3)


def test_an_arrow_table_is_rows(tmp_path: Path) -> None:
    nanoseconds = 1_600_000_000_123_456_000
    table = pa.table(
        {
            "time": pa.array([nanoseconds, nanoseconds + 1000], pa.timestamp("ns", tz="UTC")),
            "env_step": [1, 2],
            "loss": [0.25, None],
            "won": [True, False],
        }
    )
    with open_run(tmp_path) as run:
        assert run.write_rows(table) == 2
        assert run.write_rows(table.to_batches()[0]) == 2
        assert run.write_rows(pa.RecordBatchReader.from_batches(table.schema, table.to_batches())) == 2
    moments = run.book.metrics(["won"])["time"].cast(pa.timestamp("ns", tz="UTC")).cast(pa.int64())
    assert sorted(moments.to_pylist()) == [nanoseconds] * 3 + [nanoseconds + 1000] * 3
    assert len(cells_of(run.book, "loss")) == 3


def test_a_key_keeps_the_kind_of_each_of_its_values_when_it_is_sealed(tmp_path: Path) -> None:
    values = [1, 2.5, True, 2**53 + 1, 2**70]
    with open_run(tmp_path) as run:
        with pytest.warns(RollbookWarning, match="beyond 64 bits"):
            run.write_rows([{"time": 1e9 + n, "a": value} for n, value in enumerate(values)])
        run.log_many({"b": [1, 2]})
        run.log_many({"b": [0.5, 1.0]})
    with JournalReader(str(run.folder), sealed=LazySealed(str(run.folder))) as reader:
        rows = list(reader.rows_since({}))
    assert repr([row.values["a"] for row in sorted(rows, key=lambda row: row.time) if "a" in row.values]) == repr(
        [*values[:4], float(2**70)]
    )
    assert repr([row.values["b"] for row in rows if "b" in row.values]) == "[1, 2, 0.5, 1.0]"
    assert run.book.metrics(["b"])["b"].to_pylist() == [1.0, 2.0, 0.5, 1.0]


def test_rows_of_another_table_are_its_columns(tmp_path: Path) -> None:
    with open_run(tmp_path) as run:
        run.write_rows(
            [{"time": 1e9 + n, "env_step": n, "return": 2.0 * n, "length": n} for n in range(3)], table="episodes"
        )
    episodes = run.book.episodes()
    assert episodes["return"].to_pylist() == [0.0, 2.0, 4.0]
    assert episodes["env_step"].to_pylist() == [0, 1, 2]


def test_what_cannot_be_used_is_left_out_counted_and_named(tmp_path: Path) -> None:
    rows = [
        {"time": 1e9, "loss": 1.0},
        3,
        {"time": "yesterday", "loss": 2.0},
        {"time": -5.0, "loss": 3.0},
        {"time": 1e9, "env_step": 1.5, "loss": 4.0, "odd": object()},
    ]
    with open_run(tmp_path) as run:
        with pytest.warns(RollbookWarning) as warned:
            assert run.write_rows(rows) == 2
        assert run.bill()["drops"] == {"bad_row": 3, "odd_clock": 1, "unloggable": 1}
    assert any("neither a mapping nor a Row" in str(warning.message) for warning in warned)
    assert [cell[2] for cell in cells_of(run.book, "loss")] == [1.0, 4.0]
    assert [cell[2] for cell in cells_of(run.book, "clock/env_step")] == [1.5]
    for wrong in ({"loss": 1}, "rows", 3):
        with open_run(tmp_path) as run, pytest.raises(BadInput, match="Arrow table"):
            run.write_rows(wrong)


def source(n: int) -> list[dict[str, Any]]:
    """Rows of three key sets and two tables."""
    return [
        {"time": 1.6e9 + i, "env_step": i, **({"a": float(i)}, {"b": i, "c": 0.5 * i}, {"note": f"n{i}"})[i % 3]}
        for i in range(n)
    ]


def whole(book: Book) -> list[Any]:
    texts = book.text().select(["env_step", "text"]).to_pylist()
    return [cells_of(book, "a"), cells_of(book, "b"), cells_of(book, "c"), texts]


def test_a_source_goes_on_where_it_stopped_in_this_attempt_and_the_next(tmp_path: Path) -> None:
    with open_run(tmp_path) as run:
        assert run.write_rows(source(30), source="s") == 30
        assert run.write_rows(source(40), source="s") == 10
        assert run.write_rows(source(40), source="s") == 0
    with open_run(tmp_path, resume="must") as run:
        assert run.write_rows(source(55), source="s") == 15
        assert run.write_rows(source(3), source="another") == 3
    with open_run(tmp_path / "other") as straight:
        straight.write_rows(source(55))
        straight.write_rows(source(3))
    assert whole(run.book) == whole(straight.book)


@pytest.mark.parametrize("frames", some_of(range(9), [0, 1, 4, 8].count))
def test_a_batch_that_was_cut_short_anywhere_is_completed_and_nothing_is_doubled(
    tmp_path: Path, monkeypatch: Any, tuned: Any, frames: int
) -> None:
    tuned(batch_rows=12)
    with open_run(tmp_path) as run:
        put, left = foreign_rows.ForeignRows._frame, [frames]

        def fails(self: Any, payload: Any) -> None:
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1
            put(self, payload)

        monkeypatch.setattr(foreign_rows.ForeignRows, "_frame", fails)
        with pytest.raises(KeyboardInterrupt):
            run.write_rows(source(30), source="s")
        left[0] = 2  # and once more while it goes on
        if frames % 2:
            with pytest.raises(KeyboardInterrupt):
                run.write_rows(source(30), source="s")
        monkeypatch.setattr(foreign_rows.ForeignRows, "_frame", put)
        if frames % 3 == 0:
            run.finish()
            run = open_run(tmp_path, resume="must")
        run.write_rows(source(30), source="s")
        run.finish()
    with open_run(tmp_path / "other") as straight:
        straight.write_rows(source(30))
    assert whole(run.book) == whole(straight.book)


PROGRAM = """
import os, sys, rollbook
from rollbook.run import foreign_rows
foreign_rows._BATCH = 10
sys.path.insert(0, sys.argv[2])
from test_write_rows import source
run = rollbook.init("p", "r", dir=sys.argv[1], sinks=[], keeper="inline", rules=(), resume="allow")
def rows():
    for n, row in enumerate(source(5000)):
        if n % 10 == 0:
            print(n, flush=True)
        yield row
run.write_rows(rows(), source="s")
run.finish()
print("done", flush=True)
"""


@pytest.mark.long
def test_a_program_that_is_killed_again_and_again_brings_each_row_once(tmp_path: Path) -> None:
    for lines in (3, 100, 10_000):
        command = [sys.executable, "-c", PROGRAM, str(tmp_path), str(Path(__file__).parent)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
            assert program.stdout is not None
            for _ in range(lines):
                line = program.stdout.readline()
                if line in ("", "done\n"):
                    break
            if line != "done\n":
                os.kill(program.pid, signal.SIGKILL)
    assert line == "done\n"
    run_book = rollbook.open(tmp_path).one("p/r")
    with open_run(tmp_path / "other") as straight:
        straight.write_rows(source(5000))
    assert whole(run_book) == whole(straight.book)


def test_a_source_that_was_changed_is_refused(tmp_path: Path) -> None:
    with open_run(tmp_path) as run:
        run.write_rows(source(30), source="s")
    with open_run(tmp_path, resume="must") as run:
        with pytest.raises(BadInput, match="others now"):
            run.write_rows([{**row, "env_step": 7} for row in source(40)], source="s")
        with pytest.raises(BadInput, match="was changed"):
            run.write_rows(source(20), source="s")


def test_what_the_source_raises_comes_out_and_the_batches_before_are_there(tmp_path: Path, tuned: Any) -> None:
    tuned(batch_rows=10)

    def torn() -> Any:
        yield from source(25)
        raise OSError("the disk of the source")

    with open_run(tmp_path) as run:
        with pytest.raises(OSError, match="disk of the source"):
            run.write_rows(torn(), source="s")
        assert run.write_rows(source(25), source="s") == 5


KEYS = st.sampled_from(["a", "b/c", "loss", "time/x_seconds"])
NUMBERS = st.floats() | st.integers(-(2**63), 2**63 - 1) | st.booleans()
ROWS = st.lists(
    st.fixed_dictionaries(
        {"time": st.integers(1, 6_000_000_000_000).map(lambda ms: ms / 1000), "values": st.dictionaries(KEYS, NUMBERS)},
        optional={"env_step": st.integers(-(2**62), 2**62), "epoch": st.integers(0, 9)},
    ),
    max_size=12,
)


def test_any_rows_read_back_as_they_were_live_and_sealed(tmp_path: Path) -> None:
    run = open_run(tmp_path)
    reader, cursor, expected = JournalReader(str(run.folder)), {}, {}  # type: ignore[var-annotated]

    @settings(suppress_health_check=list(HealthCheck), database=None)
    @given(rows=ROWS)
    def check(rows: list[dict[str, Any]]) -> None:
        reader.skip(cursor)
        prefix = f"e{len(expected)}"
        rows = [{**row, "values": {f"{prefix}/{key}": cell for key, cell in row["values"].items()}} for row in rows]
        wanted = sorted(
            (key, repr(row["time"]), repr(row.get("env_step")), repr(cell))
            for row in rows
            for key, cell in row["values"].items()
        )
        run.write_rows([{**row, "values": None, **row["values"]} for row in rows])
        live = sorted(
            (key, repr(row.time), repr(row.clocks.get("env_step")), repr(cell))
            for row in reader.rows_since(cursor)
            for key, cell in row.values.items()
            if key.startswith(f"{prefix}/")
        )
        assert live == wanted
        expected[prefix] = wanted

    check()
    reader.close()
    run.finish()
    sealed: dict[str, list[Any]] = {prefix: [] for prefix in expected}
    with JournalReader(str(run.folder), sealed=LazySealed(str(run.folder))) as reader:
        for row in reader.rows_since({}):
            for key, cell in row.values.items():
                prefix = key.partition("/")[0]
                if prefix in sealed:
                    sealed[prefix].append((key, repr(row.time), repr(row.clocks.get("env_step")), repr(cell)))
    assert {prefix: sorted(rows) for prefix, rows in sealed.items()} == expected


def test_rows_of_one_number_keep_the_clock_each_of_them_has(tmp_path: Path) -> None:
    """They take a shorter way: of one key, some by one clock and some by another, some with a reading that is none."""
    said: list[tuple[str, Any, Any]] = [
        ("env_step", 1, 0.5), ("gradient_step", 7, 1.5), ("env_step", 2, 2.5), ("env_step", 3, 3), ("epoch", 2.5, 4.5),
        ("gradient_step", 8, 5.5), ("env_step", -4, 6.5), ("env_step", True, 7.5), ("env_step", 2**70, 8.5),
    ]  # fmt: skip
    rows = [Row(1.6e9 + n, {clock: reading}, {"loss": value}) for n, (clock, reading, value) in enumerate(said)]
    with pytest.warns(RollbookWarning), open_run(tmp_path) as run:
        assert run.write_rows(rows, source="x") == len(rows)
    table = rollbook.open(tmp_path).one().metrics(["loss"])
    found = {
        value: (env, gradient)
        for env, gradient, value in zip(
            table["env_step"].to_pylist(), table["gradient_step"].to_pylist(), table["loss"].to_pylist(), strict=True
        )
    }
    assert [found[value] for value in (0.5, 1.5, 2.5, 3, 5.5)] == [
        (1, None),
        (None, 7),
        (2, None),
        (3, None),
        (None, 8),
    ]
    assert set(found) == {float(value) for *_, value in said}
    assert [found[value] for value in (4.5, 8.5)] == [(None, None)] * 2


def test_blocks_of_scalars_are_written_like_their_rows_however_they_are_cut(
    tmp_path: Path, tuned: Callable[..., None]
) -> None:
    """A source that has grown between two calls, whose blocks end elsewhere then, brings what is new and no more."""
    tuned(block_rows=64)
    rng = np.random.default_rng(5)
    n, keys = 300, ["a", "b", "c"]
    columns = (rng.integers(0, 3, n), 1.5e9 + rng.random(n), np.arange(n) // 3, rng.normal(size=n))
    whole = Scalars("env_step", keys, *columns)

    def blocks(edges: list[int]) -> Any:
        for start, stop in itertools.pairwise(edges):
            yield whole.part(start, stop)
            if stop == 150:
                yield Row(1.6e9, {"env_step": 7}, {"a": 2.5, "word": "between"})

    with open_run(tmp_path / "rows") as run:
        assert run.write_rows([row for block in blocks([0, 150, 300]) for row in _rows_of(block)]) == 301
    with open_run(tmp_path / "blocks") as grown:
        assert grown.write_rows(blocks([0, 1, 90, 150]), source="x") == 151
        assert grown.write_rows(blocks([0, 150]), source="x") == 0
        assert grown.write_rows(blocks([0, 40, 150, 222, 300]), source="x") == 150
        with pytest.raises(BadInput, match="has 40 now"):
            grown.write_rows(blocks([0, 40]), source="x")
        grown._parts.foreign_rows._positions.clear()  # as in another process, which asks the disk how far it came
        assert grown.write_rows(blocks([0, 150, 300]), source="x") == 0
    for key in keys:
        assert sorted(cells_of(grown.book, key)) == sorted(cells_of(run.book, key))
    assert grown.book.text()["text"].to_pylist() == ["between"]


def test_a_batch_of_blocks_that_was_half_written_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    block = Scalars("env_step", ["a", "b"], np.arange(8) % 2, 1.5e9 + np.arange(8), np.arange(8), np.arange(8.0))
    run = open_run(tmp_path)
    put = foreign_rows.ForeignRows._put
    written: list[Any] = []

    def one_alone(self: Any, group: Any) -> None:
        if written:
            raise KeyboardInterrupt
        written.append(group)
        put(self, group)

    with monkeypatch.context() as patched:
        patched.setattr(foreign_rows.ForeignRows, "_put", one_alone)
        with pytest.raises(KeyboardInterrupt):
            run.write_rows([block], source="x")
    assert run.write_rows([block.part(0, 3), block.part(3, 8)], source="x") == 4
    run.finish()
    assert [cell[2] for cell in cells_of(run.book, "a")] == [0.0, 2.0, 4.0, 6.0]
    assert [cell[2] for cell in cells_of(run.book, "b")] == [1.0, 3.0, 5.0, 7.0]


def _rows_of(item: Any) -> Any:
    return item.rows() if isinstance(item, Scalars) else [item]
