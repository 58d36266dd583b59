"""A range of rows, and what was going on at a point, cost the blocks they lie in and agree with reading everything."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_writer import FakeWriter, make_run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rollbook
from cases import examples, some_of
from rollbook.book import axis
from rollbook.book.book import Book
from rollbook.storage.pieces import Piece
from rollbook.storage.sealing.folder import seal


def _run(root: Path, seed: int, *, back: bool = False) -> Path:
    """Streams that know the clock, one that does not, rare rows; two attempts; sealed in blocks of 16 rows."""
    rng = random.Random(seed)
    attempts: list[dict[str, Any]] = [{"n": 1, "parent": None, "cut": None, "writer": "w1", "status": "crashed"}]
    if back:
        cut = {"time": 0, "writers": {"w1": {"0": 200}}}
        attempts.append({"n": 2, "parent": 1, "cut": cut, "writer": "w2", "status": "crashed"})
    run = make_run(root, attempts=attempts, id=f"range{seed:03d}")
    for number in range(1, len(attempts) + 1):
        writer = FakeWriter(run, f"w{number}", attempt=number, start=1.7e9 + 1000 * number)
        lane = writer.lane()
        fast, slow, blind = lane.stream("a", "b"), lane.stream("c"), lane.stream("host")
        step = 0 if number == 1 else 100
        for row in range(420):
            step += rng.choice([0, 1, 1, 2])
            if seed % 3 == 2 and row == 210:
                step = 10  # a counter that began anew
            fast.log(row + number / 10, rng.random(), env_step=step)
            if row % 40 == 3 and row < 300:
                slow.log(float(row), env_step=step)
            if row % 9 == 0:
                blind.log(float(row))
            if row % 100 == 0:
                lane.rare({f"rare{row}": 1.0}, env_step=step)
        if number == 1 or seed % 2:
            writer.close()
    return run


@pytest.fixture
def small_blocks(tuned: Callable[..., None]) -> None:
    tuned(group_rows=16)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("seed", "back"),
    some_of([(s, b) for s in range(4) for b in (False, True)], lambda case: case == (2, True)),
)
def test_a_range_and_a_point_agree_with_reading_everything(tmp_path: Path, seed: int, back: bool) -> None:
    run = _run(tmp_path, seed, back=back)
    before = Book(run)
    whole = before.metrics(x="env_step").to_pylist()
    points = [-5, 77, 340, 10_000]
    expected = {point: before.at(env_step=point).get("metrics") for point in points}
    seal(run, final=seed % 2 == 0, take_over=True)
    book = Book(run)
    for start, stop in [(0, 1), (100, 120), (149, 152), (330, 5000)]:
        found = book.metrics(x="env_step", start=start, stop=stop).to_pylist()
        assert found == [row for row in whole if start <= row["env_step"] < stop]
        keys = book.metrics(["host"], x="env_step", start=start, stop=stop).to_pylist()
        rows = [row for row in whole if start <= row["env_step"] < stop and row["host"] is not None]
        assert [row["host"] for row in keys] == [row["host"] for row in rows]
    for point in points:
        newest = {}
        for row in whole:
            for key, value in row.items():
                if key not in ("env_step", "time", "inferred") and value is not None and row["env_step"] <= point:
                    newest[key] = (value, row["env_step"], row["time"])
        table = book.at(env_step=point).get("metrics")
        found = {} if table is None else {r["key"]: (r["value"], r["env_step"], r["time"]) for r in table.to_pylist()}
        assert found == newest
        live = expected[point]
        assert (None if live is None else live.to_pylist()) == (None if table is None else table.to_pylist())


@pytest.mark.usefixtures("small_blocks")
def test_a_range_and_a_point_read_the_blocks_they_lie_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = _run(tmp_path, 1)
    seal(run, take_over=True)
    blocks: list[int] = []
    read = Piece.read

    def counted(self: Piece, columns: Any = None, row_groups: Any = None) -> Any:
        if self.part is not None:
            blocks.append(len(self.part.row_groups) if row_groups is None else len(row_groups))
        return read(self, columns, row_groups)

    monkeypatch.setattr(Piece, "read", counted)
    assert Book(run).metrics(["a"], x="env_step", start=300, stop=305).num_rows
    assert sum(blocks) <= 3
    blocks.clear()
    assert Book(run).metrics(["a"], since=1_700_001_000.2, until=1_700_001_000.21).num_rows
    assert sum(blocks) <= 3
    blocks.clear()
    Book(run).at(env_step=390)
    assert sum(blocks) <= 25  # of a hundred and more


def test_counting_rows_agrees_with_the_tables_also_after_a_rewind_and_with_rare_rows(tmp_path: Path) -> None:
    run = rollbook.init("p", "counted", dir=tmp_path, sinks=[], keeper="inline")
    for i in range(300):
        run.log({"a": 1.0}, env_step=i)
        run.log({f"rare{i % 20}": 1.0, "b": 2.0}, env_step=i)
        run.log_episode(return_=1.0, length=i, env_step=i)
    run.rewind(env_step=250)
    run.log({"a": 2.0, "b": 1.0}, env_step=251)
    for state in ("live", "sealed"):
        for attempts in ("effective", "all"):
            for table in ("metrics", "episodes", "text", "samples"):
                before = run.book.table(table, attempts).num_rows
                count = run.book.row_count(table, attempts)  # a live run's own thread may log what rollbook costs
                assert before <= count <= run.book.table(table, attempts).num_rows, (state, attempts, table)
        run.finish()


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("seed", [0, 2])
@pytest.mark.parametrize("axis", ["env_step", "time"])
def test_each_point_of_a_near_view_is_of_just_the_rows_in_its_stretch(tmp_path: Path, seed: int, axis: str) -> None:
    run = _run(tmp_path, seed)
    seal(run, final=True, take_over=True)
    book = Book(run)
    rows = book.series("a", x=axis)
    begin, end = float(rows.x.min()), float(rows.x.max())
    for start, stop in [(None, None), (begin, end + 1.0), (begin + 0.31 * (end - begin), begin + 0.77 * (end - begin))]:
        few = book.series("a", x=axis, points=7, start=start, stop=stop)
        low, high = begin if start is None else start, end if stop is None else stop
        inside = (rows.x >= low) & ((rows.x < high) | (stop is None))
        stretch = np.clip(((rows.x - low) / (high - low) * 7).astype(int), 0, 6)
        own = [rows.mean[inside & (stretch == n)] for n in range(7)]
        own = [values for values in own if len(values)]
        assert few.count.tolist() == [len(values) for values in own]
        assert few.min.tolist() == [values.min() for values in own]
        assert few.max.tolist() == [values.max() for values in own]
        assert few.mean == pytest.approx([values.mean() for values in own])


@settings(max_examples=examples(6), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10**6))
def test_rows_that_stand_line_by_line_are_drawn_like_those_of_a_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tuned: Callable[..., None], seed: int
) -> None:
    """The first rows of a key set, or all of a rare one; whether they are read by the quick way must not be seen."""
    rng = random.Random(seed)
    run = make_run(tmp_path / f"{seed}-{rng.random()}", id="lines")
    writer = FakeWriter(run, "w1", attempt=1, start=1.7e9)
    lane = writer.lane()
    fast = lane.stream("a", "b")
    kinds = [lambda: rng.random(), lambda: rng.randrange(9), lambda: rng.random() < 0.5, lambda: float("nan")]
    kind = rng.choice(kinds)
    step = 0
    for row in range(rng.choice([3, 40])):
        step += rng.choice([0, 1, 1, 2]) if seed % 2 else 1
        clock = {} if seed % 7 == 0 and rng.random() < 0.1 else {"env_step": step}
        if row < 8 or (seed % 4 == 3 and rng.random() < 0.1):
            value = kind() if seed % 3 else rng.choice(kinds)()
            lane.rare({"a": value, **({"b": 1.0} if rng.random() < 0.9 else {}), f"own{row}": 1}, **clock)
        else:
            fast.log(rng.random(), 2.0, **clock)
    writer.close()
    seal(run, final=seed % 5 > 0, take_over=True)
    keys = ["a", "b", "own0"]

    def drawn() -> list[object]:
        book = Book(run)
        asked = [(x, points) for x in (None, "env_step", "time") for points in (None, 5)]
        every = [book.batch(own, x=x, points=points) for own in (keys, ["a"], ["a", "b"]) for x, points in asked]
        return [
            (
                key,
                series.axis,
                *(None if each is None else np.asarray(each).tolist() for each in (series.x, series.mean)),
            )
            for read in every
            for key, series in read.items()
        ]

    quick = drawn()
    tuned(few_lines=-1)
    np.testing.assert_equal(quick, drawn())
    monkeypatch.undo()


def test_keys_that_know_no_step_are_placed_by_one_look_at_those_that_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(tmp_path, attempts=[{"n": 1, "parent": None, "cut": None, "writer": "w1", "status": "finished"}])
    writer = FakeWriter(run, "w1", attempt=1, start=1.7e9)
    lane = writer.lane()
    fast, blind = lane.stream("a"), [lane.stream(f"host/{name}") for name in "xyz"]
    for row in range(90):
        fast.log(float(row), env_step=row)
        if row % 9 == 0:
            for number, stream in enumerate(blind):
                stream.log(float(row + number))
    writer.close()
    seal(run)
    looks: list[str] = []
    timelines = axis.timelines

    def counted(pieces: Any, x: str, *more: Any) -> Any:
        looks.append(x)
        return timelines(pieces, x, *more)

    monkeypatch.setattr(axis, "timelines", counted)
    book = Book(run)
    together = book.batch(["host/x", "host/y", "host/z"], x="env_step", points=50)
    assert looks == ["env_step"]
    for number, key in enumerate(together):
        alone = book.series(key, x="env_step")
        np.testing.assert_array_equal(together[key].x, alone.x)
        np.testing.assert_array_equal(together[key].x, np.arange(0, 90, 9))
        np.testing.assert_array_equal(together[key].mean, alone.mean)
        assert together[key].mean[0] == number
