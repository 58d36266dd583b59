"""A run with hundreds of writers that come and go keeps few files while it goes on, and loses no row by it."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_writer import GONE, FakeWriter, make_run

from rollbook.book.book import Book
from rollbook.book.repair.doctor import verify
from rollbook.journal.reader import JournalReader
from rollbook.storage.sealed_rows import SealedRows
from rollbook.storage.sealing.folder import seal
from rollbook.system.liveness import identity

MANY = 144


def _files(run: Path) -> int:
    return sum(path.is_file() for path in (run / "data").rglob("*") if "keeper" not in path.parts)


@pytest.mark.long
def test_files_stay_few_while_writers_come_and_go(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    cursor: dict[str, dict[int, int]] = {}
    reader = JournalReader(run, sealed=SealedRows(run))
    followed: list[float] = []
    most = 0
    for number in range(MANY):
        writer = FakeWriter(run, f"w{number:03d}", start=1.7e9 + number)
        lane = writer.lane()
        lane.stream("v", size=1024).log(float(number), env_step=number)
        lane.rare({"rare": float(number)}, env_step=number)
        lane.chunk("samples", {"sample_id": [f"s{number}"], "item": ["it"], "reward": [1.0 * number]}, 1)
        writer.close()
        if number % 24 == 23 or number == MANY - 1:
            assert seal(run, take_over=True).problems == []
            followed += [row.values["v"] for row in reader.rows_since(cursor) if "v" in row.values]
            most = max(most, _files(run))
    assert most < 5 * 90 < 5 * MANY
    for final in (False, True):
        assert seal(run, final=final, take_over=True).problems == []
        book = Book(run)
        assert sorted(book.metrics(["v"])["v"].to_pylist()) == list(range(MANY))
        assert sorted(book.metrics(["rare"])["rare"].to_pylist()) == list(range(MANY))
        assert sorted(book.samples()["reward"].to_pylist()) == list(range(MANY))
        assert len(book.writers) == MANY
        assert verify(run) == []
    assert sorted(followed) == list(range(MANY))
    reader.close()


def test_what_a_living_writer_has_is_left_to_it(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    living = FakeWriter(run, "living", **identity())
    living.lane().stream("v", size=1024).log(-1.0, env_step=0)
    for number in range(70):
        writer = FakeWriter(run, f"w{number:03d}", start=1.7e9 + number, **GONE)
        writer.lane().stream("v", size=1024).log(float(number), env_step=number)
        writer.close()
    seal(run)
    assert [path.name for path in (run / "data" / "journal").iterdir()] == ["living"]
    assert len(list((run / "data").glob("metrics/*/*.parquet"))) == 3
    assert sorted(Book(run).metrics(["v"])["v"].to_pylist()) == list(range(-1, 70))
