"""A question costs what it returns, also of tables of few rows that take many bytes."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rollbook
from forked_programs import Interpreter
from rollbook.book.book import Book
from rollbook.system.tuning import TUNING

ROWS, WIDTH = 5_000, 9_000

LOADED = """
import os, sys
import duckdb, pyarrow.dataset
from rollbook.adapters.trl import completions
from rollbook.book.book import Book
"""

PEAK = (
    LOADED
    + """
def peak():  # of this process alone: ru_maxrss begins with that of the program that started it
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))

book = Book(sys.argv[1])
"""
)

ASK = (
    PEAK
    + """
def read():
    with open("/proc/self/io") as file:
        return int(file.readline().split()[1])

assert book.sql("select current_setting('enable_progress_bar')").fetchall() == [(False,)], "DuckDB writes to stdout"
had, began = peak(), read()
eval(sys.argv[2])
print(peak() - had, (read() - began) // 1024, flush=True)
os._exit(0)
"""
)

Costs = list[tuple[str, int, int]]
"""Of each question, how much more memory it may take and how much it may read, in MiB."""


@pytest.fixture(scope="module")
def readers() -> Iterator[Interpreter]:
    """Starts a process for each question, which has loaded what it takes to answer."""
    made = Interpreter(LOADED)
    yield made
    made.end()


def costs_at_most(cases: Costs, run: Path, readers: Interpreter) -> None:
    for question, grows_mb, reads_mb in cases:
        done = readers.run(ASK, run, question, env=os.environ)
        assert done.returncode == 0, done.stderr
        grew, read = map(int, done.stdout.split())
        assert grew < grows_mb << 10, f"{grew >> 10} MB more memory: {question}"
        assert read < reads_mb << 10, f"{read >> 10} MB read: {question}"


QUESTIONS: Costs = [
    ("book.sql('select avg(reward) from samples').fetchall()", 60, 1),
    ("book.samples(limit=5)", 80, 14),
    ("book.samples('reward > 3000', 'reward desc', 5)", 80, 14),
    ("book.at(env_step=3000)", 140, 24),  # the ends of two groups of rows in each of two tables
    ("book.sql('select avg(n) from shared').fetchall()", 60, 1),
    ("completions(book, limit=5)", 110, 40),  # goes through all rows, and keeps few
    ("book.row_count('samples')", 30, 1),
    ("book.samples(order_by='reward desc', limit=5)", 80, 14),
    ("book.sql('select count(*), max(env_step) from text').fetchall()", 60, 1),
    ("book.sql('select avg(n), max(length(prompt)) from shared').fetchall()", 60, 1),
]


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with 45 MB of samples in 5,000 rows."""
    return recorded(tmp_path_factory.mktemp("wide"), WIDTH, others=False)


@pytest.fixture(scope="module")
def wider(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """It also has 45 MB of texts in 5,000 rows, and 160 MB that 20,000 rows share."""
    return recorded(tmp_path_factory.mktemp("wider"), WIDTH)


def recorded(root: Path, width: int, rows: int = ROWS, others: bool = True) -> Path:
    noise = random.Random(0)
    text = noise.randbytes(width * 4 // 9).hex()
    with rollbook.init("p", "r", dir=root, sinks=[], rules=[], keeper="inline") as run:
        for start in range(0, rows, 500):
            items = [noise.randbytes(width // 2).hex() for _ in range(500)]
            numbers = [float(start + n) for n in range(500)]
            run.log_samples(items, ids=[f"id{start + n}" for n in range(500)], reward=numbers, env_step=start)
            if not others:
                continue
            run.record("text", {"key": ["k"] * 500, "text": items}, n=500, env_step=start)
            shared = {"prompt": [text] * 2_000, "n": list(range(start, start + 2_000))}
            run.record("shared", shared, n=2_000, env_step=start)
    return Path(run.folder)


@pytest.mark.skipif(not os.path.exists("/proc/self/io"), reason="the system does not count what a process reads")
@pytest.mark.parametrize(
    ("run", "cases"), [("wide", QUESTIONS[:2]), pytest.param("wider", QUESTIONS, marks=pytest.mark.long)]
)
def test_a_question_about_wide_rows_costs_what_it_returns(
    run: str, cases: Costs, readers: Interpreter, request: pytest.FixtureRequest
) -> None:
    costs_at_most(cases, request.getfixturevalue(run), readers)


LIVE = """
import os, random, sys
import rollbook
noise = random.Random(0)
run = rollbook.init("p", "r", dir=sys.argv[1], sinks=[], rules=[], keeper="inline")
for start in range(0, 16_000, 500):
    items = [noise.randbytes(int(sys.argv[2]) // 2).hex() for _ in range(500)]
    numbers = [float(start + n) for n in range(500)]
    run.log_samples(items, ids=[f"id{start + n}" for n in range(500)], reward=numbers, env_step=start)
print(run.folder, flush=True)
os._exit(0)
"""

LIVE_QUESTIONS = [
    ("book.samples('reward > 3000', 'reward desc', 5)", 180, 300),
    ("book.row_count('samples')", 110, 170),
    ("book.sql('select avg(reward) from samples').fetchall()", 180, 300),
    ("book.at(env_step=3000)", 110, 450),
]


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory, interpreter: Interpreter) -> Path:
    """A run whose 128 MB of samples lie in its journal."""
    return journalled(tmp_path_factory.mktemp("live"), 8_000, interpreter)


def journalled(root: Path, width: int, interpreter: Interpreter) -> Path:
    done = interpreter.run(LIVE, root, width, env=os.environ)
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip().splitlines()[-1])


@pytest.mark.skipif(not os.path.exists("/proc/self/io"), reason="the system does not count what a process reads")
@pytest.mark.parametrize("cases", [LIVE_QUESTIONS[:1], pytest.param(LIVE_QUESTIONS[1:], marks=pytest.mark.long)])
def test_a_question_about_wide_live_rows_holds_a_few_files_of_them_at_a_time(
    live: Path, cases: Costs, readers: Interpreter
) -> None:
    costs_at_most(cases, live, readers)


@pytest.mark.long
def test_live_rows_come_alike_whether_they_are_kept_or_read_again(
    tmp_path: Path, tuned: Callable[..., None], interpreter: Interpreter
) -> None:
    """What is asked is the same at any width: here the limits are small, and not the rows large."""
    live, kept = journalled(tmp_path, 200, interpreter), TUNING.kept_frame_bytes
    tuned(scan_bytes=64 << 10, kept_frame_bytes=64 << 10)

    def asked() -> list[object]:
        book = Book(live)
        answers: list[object] = []
        for _ in range(2):  # the second time, nothing has changed
            answers += [
                book.samples(limit=7).drop_columns(["item"]).to_pylist(),
                book.samples("reward > 4000", "reward desc", 9)["sample_id"].to_pylist(),
                book.sql("select count(*), sum(reward), min(env_step), max(time) from samples").fetchall(),
                book.sql("select count(*) from samples a join samples b using (sample_id)").fetchall(),
                book.at(env_step=3_000)["samples"].drop_columns(["item"]).to_pylist(),
                book.row_count("samples"),
            ]
        return answers

    streamed = asked()
    tuned(scan_bytes=1 << 40)
    read_again = asked()
    tuned(kept_frame_bytes=kept)
    assert asked() == read_again == streamed


def test_frames_that_come_between_two_looks_are_seen_whether_the_others_are_kept_or_not(
    tmp_path: Path, tuned: Callable[..., None]
) -> None:
    tuned(kept_frame_bytes=4000)
    with rollbook.init("p", "r", dir=tmp_path, sinks=[], rules=[], keeper="inline") as run:
        book = Book(run.folder)
        for step in range(8):
            run.record("wide", {"word": ["x" * 1_000]}, n=1, env_step=step)
            run.record("slim", {"word": ["y"]}, n=1, env_step=step)
            asked = ["wide"] if step % 2 else ["wide", "slim"]
            for table in asked:
                assert book.table(table)["env_step"].to_pylist() == list(range(step + 1))


def test_rows_come_alike_from_both_sides_of_the_limit_in_bytes(tmp_path: Path, tuned: Callable[..., None]) -> None:
    run = recorded(tmp_path, 200, 1_500)
    tuned(scan_bytes=64 << 10, near_bytes=64 << 10)

    def asked() -> list[object]:
        book = Book(run)
        whole = book.samples(limit=7)
        return [
            whole.drop_columns(["item"]).to_pylist(),
            book.samples("reward > 1200", "reward desc", 9)["sample_id"].to_pylist(),
            book.samples(limit=1_000)["sample_id"].to_pylist(),
            book.sql("select count(*), sum(n) from shared").fetchall(),
            [book.at(env_step=1_000)[name].num_rows for name in ("samples", "text", "shared")],
        ]

    assert TUNING.scan_rows > ROWS
    scanned = asked()
    tuned(scan_bytes=1 << 40, near_bytes=1 << 40)
    assert asked() == scanned


SUMS = (
    PEAK
    + """
book.problems(deep=False)
had = peak()
assert book.sql("select count(*) from mine").fetchall() == [(20_000,)] and book.row_count("mine") == 20_000
assert all("in no file" in problem for problem in book.problems())  # its rows are all one row
print(peak() - had)
"""
)


def test_a_small_file_that_unfolds_to_gigabytes_is_counted_and_checked_in_little_memory(
    tmp_path: Path, readers: Interpreter
) -> None:
    with rollbook.init("p", "r", dir=tmp_path, sinks=[], rules=[], keeper="inline") as run:
        for step in range(20):
            run.record("mine", {"text": ["x"]}, n=1, env_step=step)
    (part,) = Path(run.folder).glob("data/mine/*.parquet")
    about = pq.ParquetFile(part).metadata.metadata[b"rollbook"].decode()
    rows = pq.read_table(part).slice(0, 1).take(pa.array([0] * 20_000))
    text = pa.array(["y" * 200_000]).dictionary_encode().take(pa.array([0] * 20_000))
    rows = rows.set_column(rows.column_names.index("text"), "text", text).replace_schema_metadata(None)
    with pq.ParquetWriter(part, rows.schema, compression="zstd", store_schema=False) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata({"rollbook": about})
    assert part.stat().st_size < 100_000
    done = readers.run(SUMS, run.folder, env=os.environ)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 150 << 10
