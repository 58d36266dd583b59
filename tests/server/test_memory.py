"""What the server holds does not grow with the rows of a run."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np

import rollbook
from rollbook.server.curves.series import SeriesAsk, many_series
from rollbook.server.settings import Settings
from rollbook.server.shared.state import Hall, Readers, Shelf

BLOCK = 400_000


def peak_of_a_look(folder: Path, blocks: int) -> int:
    """The most bytes that Python and numpy hold while a run of so many blocks of rows is looked at as a whole."""
    with rollbook.init("p", f"r{blocks}", dir=folder, sinks=[], rules=[], keeper="inline") as run:
        for number in range(blocks):
            steps = np.arange(number * BLOCK, (number + 1) * BLOCK)
            run.log_many({"v": np.sin(steps / 1_000)}, env_step=steps)
    hall = Hall(Settings((str(run.folder),)))
    (key,) = hall.catalogue.snapshot().rows
    tracemalloc.start()
    try:
        body = b"".join(many_series(hall, SeriesAsk(runs=[key], keys=["v"], points=1_000)).pieces)
        assert f'"rows":{blocks * BLOCK}'.encode() in body
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_curve_of_six_times_the_rows_takes_no_more_memory(tmp_path: Path) -> None:
    few, many = peak_of_a_look(tmp_path, 1), peak_of_a_look(tmp_path, 6)
    assert many < few + (16 << 20)


def test_no_more_books_stay_open_than_may(recorded: Path) -> None:
    folders = sorted(str(path.parent) for path in (recorded / "cartpole").glob("*/run.json"))
    readers = Readers(most=2)
    for folder in folders:
        with readers.book(folder) as book:
            assert book.name == "ppo"
    assert len(readers) == 2


def test_answers_are_forgotten_when_the_shelf_is_full() -> None:
    shelf = Shelf(most_bytes=1_000)
    for number in range(100):
        shelf.put(number, 1, f"answer {number}", 100)
    assert shelf.size <= 1_000
    assert shelf.get(99, 1) == "answer 99"
    assert shelf.get(0, 1) is None
    shelf.put("too large", 1, "x", 10_000)
    assert shelf.get("too large", 1) is None


def test_a_newer_answer_takes_the_place_of_the_one_that_a_live_run_has_outgrown() -> None:
    shelf = Shelf(most_bytes=1_000_000)
    for second in range(1_000):
        shelf.put("the curve of a live run", second, f"as of second {second}", 100)
    assert shelf.size == 100
    assert shelf.get("the curve of a live run", 999) == "as of second 999"
    assert shelf.get("the curve of a live run", 998) is None
