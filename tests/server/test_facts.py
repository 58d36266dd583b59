"""The numbers of the table: who waits for them has them first."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

import rollbook
from page_server import client_of
from rollbook.book import Book
from rollbook.server.runs import table as table_of_runs
from rollbook.server.shared import state
from rollbook.server.shared.catalogue import RunRow
from rollbook.server.shared.state import Facts, FactsCache, Readers
from rollbook.storage.live import LiveJournal
from rollbook.storage.parquet_files import LeafIndexes, ParquetFile
from waiting import PATIENCE


def test_numbers_that_somebody_waits_for_are_read_before_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = FactsCache(Readers(4), lambda: None)
    rows = [RunRow(f"r{n}", f"folder {n}", {}, ()) for n in range(4)]
    order: list[str] = []
    began, go_on, all_read = threading.Event(), threading.Event(), threading.Event()

    def now(row: RunRow, extremes: object = ()) -> Facts:
        order.append(row.key)
        began.set()
        go_on.wait(PATIENCE)
        if len(order) == len(rows):
            all_read.set()
        return Facts(None, 0.0)

    monkeypatch.setattr(cache, "now", now)
    assert cache.fetch(rows[:3], hurry=False) == 3
    assert began.wait(PATIENCE)
    assert cache.fetch([rows[3], rows[2]]) == 3
    go_on.set()
    assert all_read.wait(PATIENCE)
    assert order == ["r0", "r3", "r2", "r1"]


def test_of_thousands_of_runs_the_numbers_that_no_page_waits_for_are_read_at_a_pace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rests: list[float] = []
    cache = FactsCache(Readers(4), lambda: None, at_once=4, rest=rests.append)
    rows = [RunRow(f"r{n}", f"folder {n}", {}, ()) for n in range(6)]
    all_read = threading.Event()

    def now(row: RunRow, extremes: object = ()) -> Facts:
        facts = cache._facts[row.folder] = Facts(None, 0.0)
        return facts

    monkeypatch.setattr(cache, "now", now)
    monkeypatch.setattr(cache, "_announce", lambda: all_read.set() if len(cache._facts) == len(rows) else None)
    cache.fetch(rows, hurry=False)
    assert all_read.wait(PATIENCE)
    assert len(rests) == 2


def test_a_run_is_read_once_for_the_table_its_keys_and_a_sweep(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: Counter[str] = Counter()
    latest = Book.latest

    def counted(book: Book, *how: Any) -> Any:
        read[book.id] += 1
        return latest(book, *how)

    monkeypatch.setattr(Book, "latest", counted)
    while (table := client.post("/api/runs", json={"columns": ['last("train/return")']}).json())["pending"]:
        pass
    runs = [row["run"] for row in table["rows"]]
    found = client.post("/api/keys", json={"runs": runs}).json()
    assert {key["key"]: key["runs"] for key in found["keys"]}["train/return"] == len(runs)
    assert found["tables"]["metrics"] == len(runs)
    assert client.post("/api/sweep", json={"metric": "train/return"}).status_code == 200
    assert len(read) == len(runs) == 6
    assert set(read.values()) == {1}


@pytest.mark.parametrize(("few", "read_first"), [(6, 6), (5, 0)])
def test_the_table_waits_for_no_run_of_a_group_that_is_too_large(
    few: int, read_first: int, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_of_runs, "_FEW", few)
    monkeypatch.setattr(table_of_runs, "_PATIENCE", PATIENCE)
    facts = client.app.app.state.context.facts  # type: ignore[attr-defined]
    later: list[RunRow] = []
    monkeypatch.setattr(facts, "fetch", lambda rows, columns: len(later.extend(rows) or later))
    found = client.post("/api/runs", json={"group_by": ["project"], "columns": ['last("train/return")']}).json()
    assert [row["run_count"] for row in found["rows"]] == [6]
    assert (len(facts._facts), len(later), found["pending"]) == (read_first, 6 - read_first, 6 - read_first)


def test_numbers_of_a_run_stay_if_two_threads_read_it_at_once(client: TestClient, runs: list[str]) -> None:
    context = client.app.app.state.context  # type: ignore[attr-defined]
    row = context.row(runs[0])
    first = context.facts.now(row, ['max("train/return")'])
    assert context.facts._read(row, first.stamp) is first
    assert 'max("train/return")' in context.facts.known(row).numbers


@pytest.mark.parametrize("path", ["compare", "curves"])
def test_a_request_looks_once_whether_a_run_has_changed(
    path: str, client: TestClient, runs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    key = {"metric": "train/return", "by": "config.lr"} if path == "compare" else {"keys": ["train/return", "loss"]}
    assert client.post(f"/api/{path}", json={"runs": runs, **key}).status_code == 200
    looked: Counter[str] = Counter()
    stamp_of = state.stamp_of

    def counted(folder: str) -> Any:
        looked[folder] += 1
        return stamp_of(folder)

    monkeypatch.setattr(state, "stamp_of", counted)
    assert client.post(f"/api/{path}", json={"runs": runs, **key}).status_code == 200
    assert len(looked) == len(runs)
    assert set(looked.values()) == {1}


def test_a_comparison_of_runs_that_were_drawn_reads_none_of_them(
    client: TestClient, runs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {"runs": runs, "by": "config.lr"}
    assert client.post("/api/curves", json={**asked, "keys": ["train/return"]}).status_code == 200
    context = client.app.app.state.context  # type: ignore[attr-defined]
    read: list[str] = []
    book = context.book

    def counted(row: RunRow) -> Any:
        read.append(row.key)
        return book(row)

    monkeypatch.setattr(context, "book", counted)
    assert client.post("/api/compare", json={**asked, "metric": "train/return"}).status_code == 200
    assert read == []


def test_the_page_of_a_live_run_looks_a_few_times_at_its_journal_however_many_tables_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look makes the metadata of all segments; the open page of a live run asks every five seconds."""
    with rollbook.init("p", "ppo", seed=1, dir=tmp_path, sinks=[], keeper="inline", rules=()) as run:
        for step in range(20):
            run.log({f"norm/{n}": step / (n + 1) for n in range(50)}, env_step=step)
        looks: list[object] = []
        snapshot = LiveJournal.snapshot

        def counted(journal: LiveJournal, *how: Any) -> Any:
            looks.append(journal)
            return snapshot(journal, *how)

        monkeypatch.setattr(LiveJournal, "snapshot", counted)
        with client_of(tmp_path) as client:
            answer = client.get(f"/api/runs/{run.id}").json()
        assert answer["tables"] == {"metrics": 20}
        assert 1 <= len(looks) <= 8, "not one for each of fifteen tables"


def test_a_column_of_a_sealed_part_is_read_without_a_list_of_the_paths_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pyarrow makes it at each opening: of thousands of columns it took longer than to read one."""
    with rollbook.init("p", "ppo", seed=1, dir=tmp_path, sinks=[], keeper="import", rules=()) as run:
        run.log_many({f"norm/{n}": np.arange(9.0) + n for n in range(50)}, env_step=np.arange(9))
    listed = []
    build = ParquetFile._build_nested_paths

    def counted(file: Any) -> Any:
        paths = build(file)
        if not isinstance(paths, LeafIndexes):
            listed.append(file)
        return paths

    monkeypatch.setattr(ParquetFile, "_build_nested_paths", counted)
    series = Book(run.folder).series("norm/7")
    assert series.mean.tolist() == [step + 7.0 for step in range(9)]
    assert listed == []
