"""SQL over a run: the same rows whether scanned or read, only what a query needs, and nothing but questions."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from fake_writer import FakeWriter, make_run

import rollbook
from rollbook.book.book import Book
from rollbook.errors import BadInput
from rollbook.storage.sealing.folder import seal
from waiting import PATIENCE

duckdb = pytest.importorskip("duckdb")

OLD = Path(__file__).parent / "fixtures" / "format_one"
ROW = ["writer", "lane", "seq", "index"]


def _many(root: Path) -> Path:
    """Two attempts, the second of which goes back; wide and rare rows, odd names, types that differ, live rows."""
    attempts = [
        {"n": 1, "parent": None, "cut": None, "writer": "w1", "status": "crashed"},
        {"n": 2, "parent": 1, "cut": {"time": 0, "writers": {"w1": {"0": 1500}}}, "writer": "w2", "status": "running"},
    ]
    run = make_run(root, attempts=attempts)
    for number in (1, 2):
        writer = FakeWriter(run, f"w{number}", attempt=number, start=1.7e9 + 100 * number)
        lane = writer.lane()
        first, second = lane.stream("a", "time", 'b"c'), lane.stream("n", "a", types="qd" if number == 1 else "dd")
        for step in range(1100):
            first.log(step, -1.0, 0.5, env_step=step)
            second.log(step, float("nan") if step == 7 else 1.0)
        for step in range(60):
            lane.rare({"rare": step, "flag": True}, env_step=step)
            lane.chunk("samples", {"sample_id": [f"{number}.{step}"], "item": [f"it's {step}"], "reward": [step]}, 1)
            lane.chunk("episodes", {"episode_id": [f"e{step}"], "return": [1.0 * step], "odd": [[1, 2]]}, 1, epoch=step)
        if number == 1:
            writer.close()
            seal(run, final=True, take_over=True)
    return run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _many(tmp_path_factory.mktemp("sql"))


def _rows(book: Book, table: str) -> list[dict[str, Any]]:
    order = ", ".join(f'"{name}"' for name in ROW)
    return book.sql(f"select * from {table} order by {order}").to_arrow_table().to_pylist()


def scan_always(tuned: Callable[..., None]) -> None:
    """Queries go to the sealed files, as those over very many rows do."""
    tuned(scan_rows=1)


@pytest.mark.parametrize("table", ["metrics", "episodes", "samples"])
@pytest.mark.parametrize("old", [False, True], ids=["format 2", "format 1"])
def test_scanned_parts_give_the_rows_that_reading_gives(
    run: Path, tmp_path: Path, tuned: Callable[..., None], table: str, old: bool
) -> None:
    if old:
        run = tmp_path / "format-one-abcdefgh"
        shutil.copytree(OLD, run)
    read = _rows(Book(run), table)
    scan_always(tuned)
    book = Book(run)
    scanned = _rows(book, table)
    assert [repr(sorted(row.items())) for row in scanned] == [repr(sorted(row.items())) for row in read]  # NaN is NaN
    assert len(read) == Book(run).table(table).num_rows
    if table == "metrics":
        assert book.scan(table).queries
        assert book.scan(table).rest.num_rows < len(read)


def test_a_query_over_many_rows_leaves_the_sealed_ones_where_they_are(run: Path, tuned: Callable[..., None]) -> None:
    scan_always(tuned)
    book = Book(run)
    text = "\n".join(row[1] for row in book.sql("explain select avg(a) from metrics where env_step < 5").fetchall())
    assert "PARQUET" in text.upper()
    assert '"b""c"' not in text


@pytest.mark.parametrize("condition", ["reward > 50", "item like '%it''s 4%'", "reward in (select 3)"])
def test_samples_and_episodes_are_found_by_a_condition(run: Path, tuned: Callable[..., None], condition: str) -> None:
    book = Book(run)
    read = book.samples(condition, "reward desc, batch", 5)
    assert read.num_rows
    scan_always(tuned)
    assert Book(run).samples(condition, "reward desc, batch", 5).equals(read)
    assert read.schema.field("time").type == book.samples().schema.field("time").type
    assert book.episodes(where='"return" > 57')["episode_id"].to_pylist()[:1] == ["e58"]


def test_times_are_fetched_in_a_plain_install(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pytz", None)
    rows = Book(run).sql('select "time" from metrics order by all limit 1').fetchall()
    assert rows[0][0].tzinfo is None
    assert rows[0][0].timestamp() > 0


def test_an_answer_stays_good_when_the_files_change(run: Path, tmp_path: Path, tuned: Callable[..., None]) -> None:
    scan_always(tuned)
    copy = tmp_path / run.name
    shutil.copytree(run, copy)
    relation = Book(copy).sql("select count(*) from metrics")
    shutil.rmtree(copy)
    assert relation.fetchall() == relation.fetchall()


FORBIDDEN = [
    "select * from read_csv('/etc/passwd')",
    "select * from read_text('{outside}')",
    "select * from '{outside}'",
    "select * from glob('/*')",
    "copy (select 1) to '{outside}'",
    "copy (select 1) to '{inside}'",
    "explain analyze copy (select 1) to '{inside}'",
    "select 1; copy (select 1) to '{inside}'",
    "attach '{outside}.db'",
    "export database '{outside}'",
    "set enable_external_access = true",
    "set allowed_directories = ['/']",
    "pragma enable_object_cache",
    "install httpfs",
    "load httpfs",
    "create table t as select 1",
    "drop view metrics",
]


@pytest.mark.parametrize("query", FORBIDDEN)
def test_a_query_only_asks(run: Path, tmp_path: Path, query: str) -> None:
    outside = tmp_path / "secret.txt"
    outside.write_text("secret")
    inside = next(run.glob("data/metrics/wide/*.S*.parquet"))
    before = inside.read_bytes()
    with pytest.raises(BadInput):
        Book(run).sql(query.format(outside=outside, inside=inside)).fetchall()
    assert outside.read_text() == "secret"
    assert inside.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["secret.txt"]


@pytest.mark.parametrize("source", ["read_csv('/etc/passwd')", "'{outside}'", "read_text('{outside}')", "glob('/*')"])
def test_a_query_that_reads_large_files_of_the_run_reads_no_others(
    run: Path, tmp_path: Path, tuned: Callable[..., None], source: str
) -> None:
    scan_always(tuned)
    outside = tmp_path / "secret.csv"
    outside.write_text("secret")
    with pytest.raises(BadInput, match="outside the run"):
        Book(run).sql(f"select count(*) from metrics, {source.format(outside=outside)}").fetchall()


def test_unlocked_it_may_do_more(run: Path, tmp_path: Path) -> None:
    (tmp_path / "more.csv").write_text("a\n1\n")
    book = Book(run)
    assert book.sql(f"select * from '{tmp_path}/more.csv'", unlocked=True).fetchall() == [(1,)]
    with pytest.raises(BadInput, match="unlocked"):
        book.sql(f"select * from '{tmp_path}/more.csv'")


@pytest.mark.parametrize(
    "query", ["from metrics limit 1", "describe metrics", "summarize metrics", "explain select 1 from metrics",
              "with x as (from metrics) select count(*) from x", "pivot metrics on scope using count(*)", "values (1)"]
)  # fmt: skip
def test_every_way_to_ask_is_answered(run: Path, query: str) -> None:
    assert Book(run).sql(query).fetchall()


@pytest.mark.parametrize(
    "text",
    ["1) or (1", "1), (2", "true) union select (1", "1; drop view samples", "true) --", "1) from a where (1",
     "true limit 1", ""],
)  # fmt: skip
def test_a_condition_cannot_leave_its_place(run: Path, text: str) -> None:
    if text == "1) or (1":  # one expression after all, and harmless
        Book(run).samples(where=text)
        return
    with pytest.raises(BadInput):
        Book(run).samples(where=text)


@pytest.mark.parametrize(
    "text", ["reward limit 1", "reward; select 1", "reward) from (select 1", "", "reward offset 3"]
)
def test_an_order_cannot_leave_its_place(run: Path, text: str) -> None:
    with pytest.raises(BadInput):
        Book(run).samples(order_by=text)


def test_a_condition_may_have_a_comment(run: Path) -> None:
    assert Book(run).samples(where="reward > 58 -- the best").num_rows == 1


def test_a_query_over_a_damaged_part_is_answered_from_the_others_and_names_it(
    tmp_path: Path, tuned: Callable[..., None]
) -> None:
    scan_always(tuned)
    with rollbook.init("p", "r", dir=tmp_path, sinks=[], rules=[], keeper="import") as run:
        run.record("mine", {"x": [0.5, 1.5]}, n=2, env_step=1)
    with rollbook.init("p", "r", dir=tmp_path, sinks=[], rules=[], keeper="import", run_id=run.id, resume="must") as on:
        on.record("mine", {"x": [7.0]}, n=1, env_step=2)
        (part,) = Path(run.folder).glob("data/mine/*.parquet")
        group = pq.read_metadata(part).row_group(0)
        (column,) = [each for each in map(group.column, range(group.num_columns)) if each.path_in_schema == "x"]
        content = bytearray(part.read_bytes())
        begin = min(place for place in (column.dictionary_page_offset, column.data_page_offset) if place)
        content[begin : begin + 8] = b"\xff" * 8
        part.write_bytes(content)
        book = Book(run.folder)
        assert book.sql("select sum(x) from mine").fetchall() == [(7.0,)]
        assert any(part.name in problem for problem in book.problems(deep=False))
        with pytest.raises(BadInput):
            book.sql("select y from mine")


def test_runs_whose_tables_lie_in_memory_share_one_duckdb_and_see_nothing_of_each_other(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_run(tmp_path, attempts=[{"n": 1, "parent": None, "cut": None, "writer": "w1", "status": "finished"}])
    books = [Book(run), Book(other), Book(run)]
    before = [book.sql("select count(*) from samples").fetchall() for book in books]
    opened: list[object] = []
    connect = duckdb.connect
    monkeypatch.setattr(duckdb, "connect", lambda *a, **k: opened.append(connect(*a, **k)) or opened[-1])
    for book, rows in zip([Book(run), Book(other), Book(run)], before, strict=True):
        assert book.sql("select count(*) from samples").fetchall() == rows
        views = "select count(*) from duckdb_views() where not internal and view_name = 'samples'"
        assert book.sql(f"with here as (from samples) {views}").fetchall() == [(1,)]
    assert before[0] != before[1]
    assert not opened
    assert books[0].sql("select 1", unlocked=True).fetchall() == [(1,)]
    assert len(opened) == 1


FORKS = """
import gc, os, sys, rollbook
from rollbook.system.tuning import TUNING
def count():
    return rollbook.Book(sys.argv[1]).sql("select count(*) from metrics").fetchall()
wanted = count()
TUNING.scan_rows = 1
assert count() == wanted
book = rollbook.Book(sys.argv[1])
book.sql("select 1", unlocked=True)
gc.disable()
book.ring, book = book, None
if not (child := os.fork()):
    gc.collect()
    assert count() == wanted
    TUNING.scan_rows = 10**9
    assert count() == wanted
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_fork_can_ask_and_forget_what_the_process_before_it_has_asked(run: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(rollbook.__file__).parent.parent)}
    ended = subprocess.run(
        [sys.executable, "-c", FORKS, run], env=environment, capture_output=True, timeout=PATIENCE, check=False
    )
    assert ended.returncode == 0, ended.stderr
