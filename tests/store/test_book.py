"""The book gives the same answer while the run is written, after a crash, half sealed, sealed and merged."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from fake_writer import FakeWriter, make_run

from rollbook.book.book import Book
from rollbook.errors import BadInput, MissingExtra, NewerFormat, NotARun, UnknownKey
from rollbook.journal import format as layout
from rollbook.storage.sealing.folder import seal


def write_everything(run: Path) -> FakeWriter:
    """A writer with two lanes, streams of all types, rare rows, chunks, and every table."""
    writer = FakeWriter(run)
    lane, other = writer.lane(), writer.lane()
    a = lane.stream("update/loss", "update/n", "update/ok", types="dqb", scope="update", size=2048)
    b = lane.stream("test/return", scope="test")
    c = other.stream("update/loss", scope="update", size=1024)
    timer = other.stream("collect", table="timings")
    for i in range(100):
        a.log(i * 0.5, 2**60 + i, i % 2, env_step=10 * i, gradient_step=i)
        if i % 10 == 0:
            b.log(float(i), env_step=10 * i)
            c.log(1000.0 + i, env_step=10 * i + 5)
            timer.log(0.25, env_step=10 * i)
        if i % 25 == 0:
            lane.rare({"rare": i, "flag": True, "big": 2**70}, scope="info", env_step=10 * i)
    a.log(math.nan, 0, 1, env_step=1000)
    a.log(math.inf, 0, 1, env_step=1001)
    lane.chunk(
        "metrics", {"many": np.arange(5.0), "more": [1, None, 3, None, 5]}, 5, clock_columns={"epoch": range_list(5)}
    )
    lane.chunk(
        "episodes",
        {"episode_id": ["e0", "e1"], "return": [1.5, 2.5], "length": [10, 20]},
        2,
        scope="train",
        env_step=50,
    )
    lane.chunk(
        "episodes", {"episode_id": ["e2"], "return": [3.5], "length": [30], "extra": [{"a": 1}]}, 1, scope="train"
    )
    lane.chunk("steps", {"episode_id": ["e0"] * 3, "t": [0, 1, 2], "obs": np.arange(6, dtype="f4").reshape(3, 2)}, 3)
    lane.chunk("samples", {"sample_id": ["s0", "s1"], "reward": np.array([0.5, 1.5]), "item": ["p", "q"]}, 2)
    lane.chunk("histograms", {"key": ["h"], "values": [[1.0, 2.0, 3.0]]}, 1)
    lane.chunk("text", {"key": ["note"], "text": ["hello\x00 wörld"]}, 1)
    lane.chunk("media", {"key": ["i"], "kind": ["image"], "path": ["media/i.png"]}, 1)
    lane.chunk("checkpoints", {"checkpoint_id": ["c1"], "path": ["ckpt/x"], "score": [1.0], "positions": ["{}"]}, 1)
    lane.chunk("alerts", {"rule": ["nan"], "level": ["warn"], "message": ["NaN in loss"]}, 1)
    lane.mark("dump", ("a",))
    return writer


def range_list(n: int) -> list[int]:
    return list(range(n))


def live(run: Path, writer: FakeWriter) -> None:
    del run, writer


def crashed(run: Path, writer: FakeWriter) -> None:
    del run
    for lane in writer.lanes:
        for stream in lane.streams:
            stream.torn(*([1] * len(stream.keys)))
        if lane.log_path is not None:
            lane.log_path.write_bytes(lane.log_path.read_bytes() + b"\x40\x00\x00\x00torn")


def half_sealed(run: Path, writer: FakeWriter) -> None:
    writer.about["boot_id"] = "elsewhere"
    for lane in writer.lanes:
        for stream in lane.streams[::2]:
            stream.leave()
    seal_left_only(run)


def sealed(run: Path, writer: FakeWriter) -> None:
    writer.close()
    seal(run, take_over=True)


def merged(run: Path, writer: FakeWriter) -> None:
    writer.close()
    seal(run, take_over=True)
    seal(run, final=True, take_over=True)


def seal_left_only(run: Path) -> None:
    """Seal as the keeper of a living writer does."""
    from rollbook.storage.sealing import writers as module

    alive, same = module.is_alive, module.shares_pids
    module.is_alive = lambda _: True  # type: ignore[assignment]
    module.shares_pids = lambda _: True  # type: ignore[assignment]
    try:
        seal(run)
    finally:
        module.is_alive, module.shares_pids = alive, same


STATES = [live, crashed, half_sealed, sealed, merged]


@pytest.fixture(scope="module", params=STATES, ids=[state.__name__ for state in STATES])
def book(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Book:
    """The same run in one of its states; reading does not change it, so it is made once."""
    state: Callable[[Path, FakeWriter], None] = request.param
    run = make_run(tmp_path_factory.mktemp("runs"), config={"lr": 0.1}, seed=3, tags=["a"], summary={"best": 5})
    state(run, write_everything(run))
    return Book(run)


def test_the_book_knows_its_run(book: Book) -> None:
    assert (book.project, book.name, book.id, book.seed, book.tags) == ("proj", "run", "abcd1234", 3, ["a"])
    assert (book.config, book.group) == ({"lr": 0.1}, None)
    said_and_seen = {"best": 5, "test/return.last": 90.0, "test/return.best": 90.0, "length.env_step": 1001}
    assert book.summary.items() >= said_and_seen.items()
    assert book.attempts[0]["n"] == 1
    assert book.clocks[0] == "env_step"


def test_keys_are_those_of_wide_rows_rare_rows_and_chunks(book: Book) -> None:
    expected = ["big", "flag", "many", "more", "rare", "test/return", "update/loss", "update/n", "update/ok"]
    of_episodes = ["train/length", "train/return"]
    assert book.keys() == sorted([*expected, *of_episodes])


def test_metrics_have_every_row_once_with_its_types(book: Book) -> None:
    table = book.metrics()
    episodes = 3
    assert table.num_rows == 102 + 10 + 10 + 4 + 5 + episodes
    assert table.column_names[:4] == ["env_step", "gradient_step", "epoch", "time"]
    assert table.schema.field("update/n").type == pa.int64()
    assert table.schema.field("update/ok").type == pa.bool_()
    ns = [n for n in table["update/n"].to_pylist() if n is not None]
    assert ns[:100] == [2**60 + i for i in range(100)]
    assert [v for v in table["more"].to_pylist() if v is not None] == [1, 3, 5]
    assert [v for v in table["rare"].to_pylist() if v is not None] == [0, 25, 50, 75]
    assert [v for v in table["flag"].to_pylist() if v is not None] == [True] * 4
    losses = [v for v in table["update/loss"].to_pylist() if v is not None]
    assert len(losses) == 112
    assert sum(math.isnan(v) for v in losses) == 1
    assert sum(math.isinf(v) for v in losses) == 1
    times = table["time"].cast(pa.int64()).to_pylist()
    assert times == sorted(times)


def test_metrics_over_a_clock_are_ordered_by_it_and_can_be_cut(book: Book) -> None:
    table = book.metrics("update/loss", x="env_step", exact=True)
    steps = table["env_step"].to_pylist()
    assert steps == sorted(steps)
    assert len(steps) == 112
    assert table.column_names == ["env_step", "gradient_step", "time", "update/loss"]
    part = book.metrics(["update/loss"], x="env_step", start=20, stop=41, exact=True)
    assert part["env_step"].to_pylist() == [20, 30, 40]
    first = book.metrics()["time"][0].as_py().timestamp()
    assert book.metrics("update/loss", since=first, until=first + 1e-4).num_rows == 1


def test_time_is_an_axis_too_and_moments_may_be_datetimes(book: Book) -> None:
    whole = book.metrics(["update/n"])
    times = whole["time"].to_pylist()
    part = book.metrics(["update/n"], x="time", start=times[3].timestamp(), stop=times[7].timestamp())
    same = book.metrics(["update/n"], since=times[3], until=times[7])
    assert part.num_rows == same.num_rows > 0
    assert part["update/n"].to_pylist() == same["update/n"].to_pylist()
    assert part["inferred"].to_pylist() == [False] * part.num_rows
    both = book.metrics(["update/n"], x="time", start=times[3], since=times[5], stop=times[7], exact=True)
    assert "inferred" not in both.column_names
    assert both["time"].to_pylist()[0] == times[5]
    assert book.metrics(["update/n"], since=-math.inf, until=math.inf).num_rows == whole.num_rows
    for moment in ("yesterday", math.nan, [1]):
        with pytest.raises(BadInput, match="must be a moment"):
            book.metrics(["update/n"], since=moment)  # type: ignore[arg-type]


def test_rows_without_the_clock_are_placed_by_time_and_marked(book: Book) -> None:
    table = book.metrics(["many"], x="env_step")
    assert table["inferred"].to_pylist() == [True] * 5
    assert table["env_step"].to_pylist() == [1001] * 5
    assert book.metrics(["many"], x="env_step", exact=True).num_rows == 0


def test_arrays_are_the_columns_of_metrics_for_numpy(book: Book) -> None:
    columns, table = book.arrays(x="env_step"), book.metrics(x="env_step")
    assert list(columns) == table.column_names
    assert columns["env_step"].tolist() == table["env_step"].to_pylist()
    assert columns["time"].dtype == np.dtype("datetime64[us]")
    assert columns["time"].tolist() == [moment.replace(tzinfo=None) for moment in table["time"].to_pylist()]
    losses = [math.nan if cell is None else cell for cell in table["update/loss"].to_pylist()]
    np.testing.assert_array_equal(columns["update/loss"], losses)
    flags = columns["flag"]
    assert (flags.dtype, int(np.nansum(flags)), int(np.isnan(flags).sum())) == (np.float64, 4, table.num_rows - 4)
    steps = sorted(set(columns["env_step"].tolist()))
    few = book.arrays("update/loss", x="env_step", start=steps[3], stop=steps[9])
    assert (
        few["env_step"].tolist()
        == book.metrics("update/loss", x="env_step", start=steps[3], stop=steps[9])["env_step"].to_pylist()
    )


def test_any_key_can_be_the_axis(book: Book) -> None:
    table = book.metrics(["update/loss"], x="update/n", start=2**60 + 5, stop=2**60 + 8, exact=True)
    assert table["update/n"].to_pylist() == [2**60 + 5, 2**60 + 6, 2**60 + 7]
    assert table["update/loss"].to_pylist() == [2.5, 3.0, 3.5]
    placed = book.metrics(["test/return"], x="update/n", start=2**60)
    assert placed["update/n"].to_pylist() == [2**60 + i for i in range(0, 100, 10)]


def test_latest_gives_the_newest_value_of_every_key(book: Book) -> None:
    latest = book.latest()
    assert sorted(latest) == book.keys()
    value, clocks, time = latest["update/loss"]
    assert math.isinf(value)
    assert clocks == {"env_step": 1001}
    assert time == pytest.approx(1_700_000_000.14, abs=0.02)
    assert latest["flag"][0] is True
    assert latest["rare"][:2] == (75, {"env_step": 750})
    assert latest["update/n"][0] == 0


def test_the_other_tables_come_back(book: Book) -> None:
    episodes = book.episodes()
    assert episodes["return"].to_pylist() == [1.5, 2.5, 3.5]
    assert episodes["length"].to_pylist() == [10, 20, 30]
    assert episodes["scope"].to_pylist() == ["train"] * 3
    assert episodes["index"].to_pylist() == [0, 1, 0]
    assert episodes["extra"].to_pylist() == [None, None, '{"a": 1}']
    assert book.episode("e1")["length"] == 20
    assert book.steps("e0")["obs"].to_pylist() == [[0, 1], [2, 3], [4, 5]]
    assert book.timings("collect")["seconds"].to_pylist() == [0.25] * 10
    assert book.histograms("h")["values"].to_pylist() == [[1.0, 2.0, 3.0]]
    assert book.histograms(bins=2)["counts"].to_pylist() == [[1, 2]]
    assert book.text("note")["text"].to_pylist() == ["hello\x00 wörld"]
    assert book.media("image")["path"].to_pylist() == ["media/i.png"]
    assert book.checkpoints(everything=True)["status"].to_pylist() == ["missing"]
    assert book.alerts()["rule"].to_pylist() == ["nan"]
    assert book.table("rewards").num_rows == 0
    assert book.table("metrics").num_rows == book.metrics().num_rows


def test_tables_are_read_without_duckdb_where_nothing_is_asked_in_sql(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert book.text("note").num_rows == book.media("image").num_rows == book.rows("checkpoints").num_rows == 1
    assert (book.media(key="nothing").num_rows, book.episodes().num_rows) == (0, 3)
    with pytest.raises(MissingExtra, match="duckdb"):
        book.text(where="true")


def test_samples_can_be_filtered_and_ordered(book: Book) -> None:
    assert book.samples(where="reward > 1")["sample_id"].to_pylist() == ["s1"]
    assert book.samples(order_by="reward desc", limit=1)["item"].to_pylist() == ["q"]
    assert book.samples(limit=1).num_rows == 1


def test_sql_reads_the_tables(book: Book) -> None:
    assert book.sql("select sum(length) from episodes").fetchall() == [(60,)]
    assert book.sql('select count("update/loss") from metrics').fetchall() == [(112,)]


def test_at_shows_what_was_going_on(book: Book) -> None:
    near = book.at(env_step=505)
    values = dict(zip(near["metrics"]["key"].to_pylist(), near["metrics"]["value"].to_pylist(), strict=True))
    assert values["test/return"] == 50.0
    assert values["update/loss"] in (25.0, 1050.0)
    assert near["episodes"]["episode_id"].to_pylist() == ["e0", "e1"]


def test_a_book_says_which_run_it_is_and_how_that_ended(book: Book) -> None:
    assert repr(book).startswith("<Book of proj/run abcd1234, ")
    assert book.status in repr(book)


@pytest.mark.parametrize("points", [0, -1, "many", 2.5])
def test_points_that_are_no_number_of_points_are_refused_with_a_sentence(book: Book, points: Any) -> None:
    with pytest.raises(BadInput, match="ask for at least 1 point"):
        book.series("update/loss", points=points)


def test_series_are_raw_or_reduced(book: Book) -> None:
    raw = book.series("update/loss")
    assert raw.axis == "env_step"
    assert len(raw) == 112
    assert raw.non_finite == 2
    reduced = book.series("update/loss", points=10)
    assert len(reduced) == 10
    assert reduced.count.sum() == 110
    assert reduced.non_finite == 2
    finite = np.isfinite(raw.mean)
    assert reduced.min.min() == raw.mean[finite].min()
    assert reduced.max.max() == raw.mean[finite].max()
    assert float((reduced.mean * reduced.count).sum()) == pytest.approx(raw.mean[finite].sum())
    by_time = book.series("update/loss", x="time", points=7)
    assert by_time.x[0] > 1_699_999_999
    assert len(book.series("update/loss", start=100, stop=200, points=5)) <= 5
    assert book.series("many").axis == "epoch"


def test_a_typo_names_the_nearest_key(book: Book) -> None:
    with pytest.raises(UnknownKey, match="Did you mean 'update/loss'"):
        book.metrics(["update/los"])
    with pytest.raises(UnknownKey, match="env_step"):
        book.metrics(["update/loss"], x="env_stepp")
    with pytest.raises(UnknownKey, match="episodes"):
        book.table("episode")
    with pytest.raises(UnknownKey, match="no episode"):
        book.episode("nope")
    with pytest.raises(BadInput, match="Name the clock"):
        book.metrics(start=3)
    with pytest.raises(BadInput, match="attempts"):
        book.metrics(attempts="some")
    with pytest.raises(UnknownKey, match="no attempt 7"):
        book.metrics(attempts=[7])


def test_tail_gives_all_rows_and_ends_with_the_run(book: Book) -> None:
    rows = list(book.tail(from_start=True, stop=lambda: True))
    assert sum("update/loss" in row.values for row in rows) == 112
    assert [row.values["rare"] for row in rows if "rare" in row.values] == [0, 25, 50, 75]
    assert [row.values["big"] for row in rows if "big" in row.values] == [2**70] * 4
    assert [row.values["note"] for row in rows if "note" in row.values] == ["hello\x00 wörld"]
    assert [row.mark for row in rows if row.mark] == ["dump"]
    assert list(book.tail(stop=lambda: True)) == []


def test_a_key_called_like_a_clock_or_a_column_stands_apart(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    writer = FakeWriter(run)
    lane = writer.lane()
    stream = lane.stream("time", "env_step", "seq", "plain")
    stream.log(1.0, 2.0, 3.0, 4.0, env_step=7)
    lane.rare({"epoch": 5.0})
    for _ in range(2):
        book = Book(run)
        assert book.keys() == ["plain", "value/env_step", "value/epoch", "value/seq", "value/time"]
        row = book.metrics(["time", "value/env_step", "seq"], x="env_step").to_pylist()[0]
        assert (row["value/time"], row["value/env_step"], row["value/seq"], row["env_step"]) == (1.0, 2.0, 3.0, 7)
        assert book.metrics("epoch")["value/epoch"].to_pylist() == [5.0]
        assert book.latest()["value/time"][0] == 1.0
        if writer.folder.exists():
            writer.close()
        seal(run, final=True, take_over=True)


def test_a_folder_without_run_json_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(NotARun, match=r"no run\.json"):
        Book(tmp_path)
    make_run(tmp_path, id="x")
    (tmp_path / "proj" / "run-x" / "run.json").write_text("{")
    with pytest.raises(NotARun, match="repair"):
        Book(tmp_path / "proj" / "run-x")
    newer = make_run(tmp_path, id="y", format=99)
    with pytest.raises(NewerFormat, match="Upgrade"):
        Book(newer)


def test_an_empty_run_is_an_empty_book(tmp_path: Path) -> None:
    book = Book(make_run(tmp_path))
    assert book.keys() == []
    assert book.metrics().num_rows == 0
    assert book.latest() == {}
    assert book.episodes().column_names[:2] == ["time", "scope"]
    assert book.episodes().num_rows == 0
    assert book.problems() == []
    assert book.sql("select count(*) from metrics").fetchall() == [(0,)]
    assert book.at(env_step=1) == {}


def test_reading_changes_nothing_in_the_folder(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    write_everything(run)

    def picture() -> dict[str, tuple[int, int]]:
        return {str(p): (p.stat().st_size, p.stat().st_mtime_ns) for p in sorted(run.rglob("*"))}

    before = picture()
    book = Book(run)
    book.metrics()
    book.series("update/loss", points=3)
    book.latest()
    book.problems()
    list(book.tail(from_start=True, stop=lambda: True))
    assert picture() == before


def test_neither_sealing_nor_reading_loads_pandas(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    write_everything(run).close()
    code = f"""
import sys
from rollbook.book.book import Book
from rollbook.storage.sealing.folder import seal
def read():
    book = Book({str(run)!r})
    book.metrics(); book.metrics(["update/loss"], x="env_step"); book.metrics(["many"], x="env_step"); book.latest()
    book.series("update/loss", points=5); book.episodes(); book.steps("e0"); book.at(env_step=5); book.timings()
    book.sql("select count(*) from metrics").fetchall(); list(book.tail(from_start=True, stop=lambda: True))
read(); seal({str(run)!r}, take_over=True); read(); seal({str(run)!r}, take_over=True, final=True); read()
assert "pandas" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})


def test_sealed_segments_of_a_living_writer_are_marked_and_used_again(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    stream = FakeWriter(run).lane().stream("a", size=1024)
    written = []
    for _ in range(6):
        for i in range(20):
            stream.log(i, env_step=i)
            written.append(i)
        seal_left_only(run)
    assert len(stream.slots) <= 5  # of 18 without recycling
    assert Book(run).metrics(["a"])["a"].to_pylist() == written
    assert {stream.word(p, layout.STATE_AT) for p in stream.slots} <= {layout.ACTIVE, layout.SEALED}
