"""What the server holds does not grow with the rows of a run."""

from __future__ import annotations

import contextlib
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import rollbook
from rollbook.server.curves.series import SeriesAsk, many_series
from rollbook.server.settings import Limits, ServerSettings
from rollbook.server.shared.rows import table_of
from rollbook.server.shared.state import AnswerCache, Readers, ServerContext

pytestmark = pytest.mark.usefixtures("sealed")

BLOCK = 200_000


def peak_of_a_look(folder: Path, blocks: int) -> int:
    """The most bytes that Python and numpy hold while a run of so many blocks of rows is looked at as a whole."""
    with rollbook.init("p", f"r{blocks}", dir=folder, sinks=[], rules=[], keeper="inline") as run:
        for number in range(blocks):
            steps = np.arange(number * BLOCK, (number + 1) * BLOCK)
            run.log_many({"v": np.sin(steps / 1_000)}, env_step=steps)
    context = ServerContext(ServerSettings((str(run.folder),)))
    (key,) = context.catalogue.snapshot().rows
    tracemalloc.start()
    try:
        body = b"".join(many_series(context, SeriesAsk(runs=[key], keys=["v"], points=1_000)).pieces)
        assert f'"rows":{blocks * BLOCK}'.encode() in body
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_curve_of_six_times_the_rows_takes_no_more_memory(tmp_path: Path) -> None:
    few, many = peak_of_a_look(tmp_path, 1), peak_of_a_look(tmp_path, 6)
    assert many < few + (8 << 20)


def test_no_more_books_stay_open_than_may(recorded: Path) -> None:
    folders = sorted(str(path.parent) for path in (recorded / "cartpole").glob("*/run.json"))
    readers = Readers(most=2)
    for folder in folders:
        with readers.book(folder) as book:
            assert book.name == "ppo"
    assert len(readers) == 2


def test_answers_are_forgotten_when_the_cache_is_full() -> None:
    cache = AnswerCache(most_bytes=1_000)
    for number in range(100):
        cache.put(number, 1, f"answer {number}", 100)
    assert cache.size <= 1_000
    assert cache.get(99, 1) == "answer 99"
    assert cache.get(0, 1) is None
    cache.put("too large", 1, "x", 10_000)
    assert cache.get("too large", 1) is None


def test_a_newer_answer_takes_the_place_of_the_one_that_a_live_run_has_outgrown() -> None:
    cache = AnswerCache(most_bytes=1_000_000)
    for second in range(1_000):
        cache.put("the curve of a live run", second, f"as of second {second}", 100)
    assert cache.size == 100
    assert cache.get("the curve of a live run", 999) == "as of second 999"
    assert cache.get("the curve of a live run", 998) is None


def what_is_kept(context: ServerContext) -> int:
    """Bytes of unsealed rows, of finished answers and of rows of groups that a server holds."""
    journals = [seat.book.files._journal for seat in context.readers._seats.values() if seat.book is not None]
    return sum(journal.kept_bytes for journal in journals) + context.answers.size + context.group_rows.size


def test_what_is_kept_of_live_runs_is_bounded_over_all_of_them(tmp_path: Path, tuned: Callable[..., None]) -> None:
    tuned(kept_live_bytes=200_000)
    limits = Limits(cache_bytes=100_000, group_bytes=100_000)
    with contextlib.ExitStack() as stack:
        started = [
            stack.enter_context(rollbook.init("p", f"r{n}", dir=tmp_path, sinks=[], rules=[], keeper="inline"))
            for n in range(6)
        ]
        context = ServerContext(ServerSettings((str(tmp_path),), limits=limits))
        for _ in range(8):
            for run in started:
                for _ in range(300):
                    run.log({f"train/{name}": 1.0 for name in "abcdefgh"})
                run.record("wide", {"word": ["x" * 20_000]}, n=1)
            rows = [*context.catalogue.snapshot().rows.values()]
            asked = SeriesAsk(runs=[row.key for row in rows], keys=["train/a"], points=200)
            assert len(b"".join(many_series(context, asked).pieces)) > 0
            for row in rows:
                context.facts.now(row)
                assert table_of(context, row, "wide").num_rows > 0
            assert what_is_kept(context) <= 400_000


def test_a_long_curve_is_kept_only_of_a_run_that_has_ended(tmp_path: Path) -> None:
    context = ServerContext(ServerSettings((str(tmp_path),)))

    def looked_at() -> int:
        """The bytes of answers that are kept after a look at the run."""
        (row,) = context.catalogue.snapshot(0).rows.values()
        for _ in range(2):
            body = b"".join(many_series(context, SeriesAsk(runs=[row.key], keys=["v"], points=1_000)).pieces)
            assert b'"rows":3000' in body
        return context.answers.size

    with rollbook.init("p", "r", dir=tmp_path, sinks=[], rules=[], keeper="inline") as run:
        run.log_many({"v": np.arange(3_000.0)}, env_step=np.arange(3_000))
        assert looked_at() < 10_000
    assert looked_at() > 40 * 3_000
