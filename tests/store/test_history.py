"""Rewinds: what an abandoned stretch of a run wrote is hidden by default and never deleted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_writer import STANDARD, FakeWriter, make_run, write_run
from hypothesis import given
from hypothesis import strategies as st

from rollbook.book.book import Book
from rollbook.errors import BadInput, UnknownKey
from rollbook.schema.manifest import EffectiveRows, RunJson
from rollbook.storage.history import History
from rollbook.storage.sealing.folder import seal


def attempt(n: int, parent: int | None = None, cut: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"n": n, "parent": parent, "cut": cut, "writer": f"w{n}", "status": "running", **more}


def live(run: Path) -> None:
    del run


def sealed(run: Path) -> None:
    seal(run, take_over=True, final=True)


@pytest.fixture(params=[live, sealed], ids=["live", "sealed"])
def after(request: pytest.FixtureRequest) -> Callable[[Path], None]:
    """Tests hold for live and for sealed runs."""
    made: Callable[[Path], None] = request.param
    return made


def values(run: Path, **options: Any) -> list[float]:
    found: list[float] = Book(run).metrics(["v"], **options)["v"].to_pylist()
    return found


def three_attempts(root: Path) -> Path:
    """Attempt 1 logs 0..9, 2 goes back to after 5, 3 goes back to after 102 of attempt 2."""
    run = make_run(root)
    first = FakeWriter(run, "w1", attempt=1, start=1000.0)
    stream = first.lane().stream("v")
    for i in range(10):
        stream.log(float(i), env_step=i)
    second = FakeWriter(run, "w2", attempt=2, start=2000.0)
    stream = second.lane().stream("v")
    for i in range(5):
        stream.log(100.0 + i, env_step=6 + i)
    third = FakeWriter(run, "w3", attempt=3, start=3000.0)
    stream = third.lane().stream("v")
    for i in range(3):
        stream.log(200.0 + i, env_step=9 + i)
    cuts = [{"time": 0, "writers": {"w1": {"0": 6}}}, {"time": 0, "writers": {"w2": {"0": 3}}}]
    write_run(run, attempts=[attempt(1), attempt(2, 1, cuts[0]), attempt(3, 2, cuts[1])])
    return run


def test_the_effective_history_is_the_chain_of_parents_up_to_their_cuts(
    tmp_path: Path, after: Callable[[Path], None]
) -> None:
    run = three_attempts(tmp_path)
    after(run)
    assert values(run) == [0, 1, 2, 3, 4, 5, 100, 101, 102, 200, 201, 202]
    assert values(run, x="env_step") == [0, 1, 2, 3, 4, 5, 100, 101, 102, 200, 201, 202]
    assert len(values(run, attempts="all")) == 18
    assert values(run, attempts=[2]) == [100, 101, 102, 103, 104]
    assert Book(run).latest()["v"][0] == 202.0
    assert Book(run).latest(attempts=[1])["v"][0] == 9.0
    series = Book(run).series("v", points=3)
    assert series.count.sum() == 12
    assert series.max.max() == 202.0


def test_resuming_twice_from_the_same_checkpoint_leaves_one_history(
    tmp_path: Path, after: Callable[[Path], None]
) -> None:
    run = three_attempts(tmp_path)
    cuts = [{"time": 0, "writers": {"w1": {"0": 6}}}, {"time": 0, "writers": {"w1": {"0": 2}}}]
    write_run(run, attempts=[attempt(1), attempt(2, 1, cuts[0]), attempt(3, 1, cuts[1])])
    after(run)
    assert values(run) == [0, 1, 200, 201, 202]


def test_an_attempt_without_a_parent_begins_again(tmp_path: Path, after: Callable[[Path], None]) -> None:
    run = three_attempts(tmp_path)
    write_run(run, attempts=[attempt(1), attempt(2, 1), attempt(3)])
    after(run)
    assert values(run) == [200, 201, 202]


@pytest.mark.parametrize("step_back", [-60.0, 0.0, 60.0])
def test_clocks_that_step_back_or_hosts_that_disagree_change_nothing(
    tmp_path: Path, step_back: float, after: Callable[[Path], None]
) -> None:
    """A cut by time alone shows or hides up to a minute of wrong rows here."""
    run = make_run(tmp_path)
    first = FakeWriter(run, "w1", attempt=1, start=1000.0)
    stream = first.lane().stream("v")
    for i in range(100):
        stream.log(float(i), env_step=i)
    second = FakeWriter(run, "w2", attempt=2, start=1000.05 + step_back)
    stream = second.lane().stream("v")
    for i in range(100):
        stream.log(1000.0 + i, env_step=50 + i)
    cut = {"time": 1_000_050_000_000, "writers": {"w1": {"0": 50}}}
    write_run(run, attempts=[attempt(1), attempt(2, 1, cut)])
    after(run)
    found = values(run, x="env_step")
    assert found == [*map(float, range(50)), *(1000.0 + i for i in range(100))]


def test_other_writers_are_cut_by_time_and_unnamed_lanes_count_for_nothing(
    tmp_path: Path, after: Callable[[Path], None]
) -> None:
    run = make_run(tmp_path)
    first = FakeWriter(run, "w1", attempt=1, start=1000.0)
    lanes = [first.lane().stream("v"), first.lane().stream("v")]
    worker = FakeWriter(run, "worker", attempt=1, start=1000.0, main=False).lane().stream("v")
    for i in range(4):
        lanes[0].log(float(i))
        lanes[1].log(10.0 + i)
        worker.log(20.0 + i, mono=1_000_000_000 + i * 1_000_000)
    FakeWriter(run, "w2", attempt=2, start=2000.0).lane().stream("v").log(99.0)
    cut = {"time": 1_000_001_000_000, "writers": {"w1": {"0": 3}}}
    write_run(run, attempts=[attempt(1), attempt(2, 1, cut)])
    after(run)
    assert sorted(values(run)) == [0, 1, 2, 20, 21, 99]


def test_the_late_evaluation_of_the_checkpoint_one_resumes_from_stays(
    tmp_path: Path, after: Callable[[Path], None]
) -> None:
    run = make_run(tmp_path)
    first = FakeWriter(run, "w1", attempt=1, start=1000.0)
    lane = first.lane()
    stream = lane.stream("v")
    stream.log(1.0, env_step=1)
    lane.chunk("checkpoints", {"checkpoint_id": ["kept"], "path": ["x"]}, 1, env_step=1)
    positions = lane.seq
    stream.log(2.0, env_step=2)
    lane.chunk("checkpoints", {"checkpoint_id": ["abandoned"], "path": ["x"]}, 1, env_step=2)
    late = lane.stream("v", at="kept", scope="test")
    late.log(10.0, env_step=1)
    lane.rare({"v": 11.0}, at="kept")
    lane.rare({"v": 12.0}, at="abandoned")
    lane.stream("v", at="abandoned").log(13.0)
    lane.rare({"v": 14.0}, at="unknown")
    FakeWriter(run, "w2", attempt=2, start=2000.0).lane().stream("v").log(99.0, env_step=2)
    cut = {"time": 0, "writers": {"w1": {"0": positions}}}
    write_run(run, attempts=[attempt(1), attempt(2, 1, cut, checkpoint="kept")])
    after(run)
    assert sorted(values(run)) == [1, 10, 11, 99]
    assert Book(run).checkpoints(everything=True)["checkpoint_id"].to_pylist() == ["kept"]
    assert len(Book(run).checkpoints("all", everything=True)) == 2


def test_every_table_follows_the_history(tmp_path: Path, after: Callable[[Path], None]) -> None:
    run = make_run(tmp_path)
    lane = FakeWriter(run, "w1", attempt=1, start=1000.0).lane()
    for i in range(4):
        lane.chunk("episodes", {"episode_id": [f"a{i}"], "return": [float(i)]}, 1)
        lane.rare({f"r{i}": float(i)})
    other = FakeWriter(run, "w2", attempt=2, start=2000.0).lane()
    other.chunk("episodes", {"episode_id": ["b"], "return": [9.0]}, 1)
    write_run(run, attempts=[attempt(1), attempt(2, 1, {"time": 0, "writers": {"w1": {"0": 4}}})])
    after(run)
    book = Book(run)
    assert book.episodes()["episode_id"].to_pylist() == ["a0", "a1", "b"]
    assert book.table("episodes", attempts="all").num_rows == 5
    rows = book.metrics()
    assert sorted(v for name in ("r0", "r1", "r2", "r3") for v in rows[name].to_pylist() if v is not None) == [0, 1]
    assert book.sql("select count(*) from episodes").fetchall() == [(3,)]


def test_times_are_never_joined_across_attempts(tmp_path: Path, after: Callable[[Path], None]) -> None:
    run = make_run(tmp_path)
    first = FakeWriter(run, "w1", attempt=1, start=1000.0).lane().stream("v")
    first.log(1.0, env_step=10)
    second = FakeWriter(run, "w2", attempt=2, start=500.0).lane().stream("v")
    second.log(2.0, env_step=20)
    host = FakeWriter(run, "host", attempt=2, start=1001.0, main=False).lane().stream("host/cpu")
    host.log(50.0)
    write_run(run, attempts=[attempt(1), attempt(2, 1, {"time": 2**62, "writers": {}})])
    after(run)
    table = Book(run).metrics(["host/cpu"], x="env_step")
    assert table["env_step"].to_pylist() == [20]
    assert table["inferred"].to_pylist() == [True]


def test_rewind_finds_the_place_that_a_clock_means(tmp_path: Path, after: Callable[[Path], None]) -> None:
    run = three_attempts(tmp_path)
    after(run)
    number, cut, clocks = Book(run).cut_at("env_step", 3)
    assert (number, clocks) == (1, {"env_step": 3})
    assert cut.writers == {"w1": {0: 4}}
    number, cut, clocks = Book(run).cut_at("env_step", 7)
    assert (number, cut.writers, clocks) == (2, {"w2": {0: 2}}, {"env_step": 7})
    attempts = [attempt(1), attempt(2, 1, {"time": 0, "writers": {"w1": {"0": 6}}}), attempt(4, number, cut.as_json())]
    write_run(run, attempts=attempts)
    assert values(run) == [0, 1, 2, 3, 4, 5, 100, 101]
    with pytest.raises(UnknownKey, match="begin at 0"):
        Book(run).cut_at("env_step", -5)
    with pytest.raises(UnknownKey, match="no row has a reading"):
        Book(run).cut_at("epoch", 5)


@pytest.mark.parametrize(
    "entries",
    [
        [],
        None,
        "nonsense",
        [{"n": 1}, {"n": 2, "parent": 2}],
        [{"n": 1, "parent": 2}, {"n": 2, "parent": 1}],
        [{"n": "x"}, 3, {"n": 1, "cut": {"writers": {"w": 3}, "time": "late"}}],
    ],
)
def test_attempts_that_make_no_sense_never_stop_a_reader(entries: Any) -> None:
    history = History(RunJson.of({"attempts": entries}), dict)
    seqs, times = np.arange(3), np.arange(3)
    mask = history.mask("effective", 1, "w", 0, seqs, times)
    assert mask is None or mask.dtype == bool
    with pytest.raises(BadInput):
        history.mask("newest", 1, "w", 0, seqs, times)


_CLOCKS = st.integers(0, 5)
_ROWS = st.tuples(
    st.integers(1, 4),
    st.sampled_from(["w1", "w2", "actor"]),
    st.integers(0, 1),
    _CLOCKS,
    _CLOCKS,
    st.sampled_from(["", "c1", "c2", "gone"]),
)
_CUTS = st.fixed_dictionaries(
    {
        "time": _CLOCKS,
        "writers": st.dictionaries(st.sampled_from(["w1", "w2"]), st.dictionaries(st.sampled_from("01"), _CLOCKS)),
    }
)


@given(
    cuts=st.lists(st.tuples(_CUTS, st.integers(0, 3), st.sampled_from(["", "c1", "c2"])), max_size=3),
    saved=st.dictionaries(st.sampled_from(["c1", "c2"]), _ROWS.map(lambda row: row[:5])),
    rows=st.lists(_ROWS, min_size=1, max_size=30),
)
def test_a_row_alone_and_a_row_in_a_table_have_one_history(cuts: Any, saved: Any, rows: Any) -> None:
    entries = [attempt(1)]
    for number, (cut, back, checkpoint) in enumerate(cuts, start=2):
        entries.append(attempt(number, max(1, number - 1 - back), cut, checkpoint=checkpoint or None))
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    mask = History(RunJson.of({"attempts": entries}), lambda: saved).mask("effective", *columns)
    alone = EffectiveRows(RunJson.of({"attempts": entries}), lambda: saved)
    if mask is not None:  # None: one attempt, which counts whole
        assert mask.tolist() == [alone.has(*row) for row in rows]


def many_writers(root: Path, ahead: float) -> Path:
    """An attempt of six steps: a checkpoint after step 2, and four other writers beside the one that saves it.

    Wall clocks disagree: that of the second process of machine b was set back by a minute before it began, and
    machine c's is ahead by `ahead`. The rows of a step come in one millisecond on every machine.
    """
    run = make_run(root, clocks=[*STANDARD, "tokens"])
    machines = {"b": 1000.0, "c": 1000.0 + ahead}
    made = {}
    for name, machine, own in [
        ("w1", "b", 0.0),
        ("near", "b", -60.0),
        ("host", "b", 0.0),
        ("far", "c", 0.0),
        ("blind", "c", 0.0),
    ]:
        clocks = (*STANDARD, "tokens")
        made[name] = FakeWriter(
            run, name, attempt=1, start=machines[machine] + own, boot_id=machine, main=name == "w1", clocks=clocks
        )
    lanes = {name: writer.lane() for name, writer in made.items()}
    streams = {name: lane.stream("v") for name, lane in lanes.items()}
    for step in range(6):
        at = 1_000_000_000 + step * 10_000_000
        streams["w1"].log(step, env_step=step, gradient_step=step, mono=at)
        streams["near"].log(100 + step, mono=at + 1)
        streams["host"].log(200 + step, mono=at + 2)
        streams["far"].log(300 + step, gradient_step=step, episode=50 - step, mono=at + 3)
        streams["blind"].log(400 + step, mono=at + 4)
        if step == 2:
            where = {"w1": {"0": lanes["w1"].seq}}
            made["w1"]._mono = at + 6
            lanes["w1"].chunk(
                "checkpoints",
                {"checkpoint_id": ["c"], "path": ["x"], "positions": [json.dumps(where)], "seconds": [0.0]},
                1,
                env_step=2,
                gradient_step=2,
            )
    write_run(run, attempts=[attempt(1), attempt(2, 1, {"writers": {}, "moment": 0}, writer="w2")])
    return run


@pytest.mark.parametrize("ahead", [-3600.0, 0.0, 5.0])
@pytest.mark.parametrize("to", ["checkpoint", "clock"])
def test_each_writer_is_cut_at_the_place_by_what_it_knows(
    tmp_path: Path, ahead: float, to: str, after: Callable[[Path], None]
) -> None:
    """Of the same machine by its monotonic clock, of another by a clock of the training; without one, all counts."""
    run = many_writers(tmp_path, ahead)
    after(run)
    book = Book(run)
    assert len(values(run)) == 30, "a plain resume hides nothing"
    if to == "checkpoint":
        number, cut = book.cut_behind(book.checkpoint_history().rows[0])
    else:
        number, cut, clocks = book.cut_at("env_step", 2)
        assert clocks == {"env_step": 2, "gradient_step": 2}
    assert number == 1
    assert cut.time is None
    write_run(run, attempts=[attempt(1), attempt(2, 1, cut.as_json(), writer="w2")])
    found = sorted(values(run))
    far = [300, 301, 302] if to == "checkpoint" else list(range(300, 306))  # it has no env_step
    assert found == [0, 1, 2, 100, 101, 102, 200, 201, 202, *far, *range(400, 406)]


@pytest.mark.parametrize("keeps", ["time", "moment"])
def test_going_back_twice_keeps_what_the_first_cut_hid(
    tmp_path: Path, keeps: str, after: Callable[[Path], None]
) -> None:
    """The first cut is of an older rollbook, by time, or of this one."""
    run = many_writers(tmp_path, 0.0)
    moment = 1_000_000_000_000 + 45_000_000
    writers = (
        {"w1": {"0": 5}} if keeps == "time" else {name: {"0": 5} for name in ("w1", "near", "host", "far", "blind")}
    )
    write_run(run, attempts=[attempt(1), attempt(2, 1, {"writers": writers, keeps: moment}, writer="w2")])
    after(run)
    before = set(values(run))
    assert {v for v in before if v < 100} == {0, 1, 2, 3}
    _, cut, _ = Book(run).cut_at("env_step", 1)
    write_run(run, attempts=[attempt(1), attempt(2, 1, cut.as_json(), writer="w2")])
    again = set(values(run))
    assert {v for v in again if v < 300} == {0, 1, 100, 101, 200, 201}
    assert {v for v in again if v >= 300} == {v for v in before if v >= 300}, "of another machine, with other clocks"
