"""The numbers of the table: who waits for them has them first."""

from __future__ import annotations

import threading

import pytest

from rollbook.server.shared.catalogue import RunRow
from rollbook.server.shared.state import Facts, FactsCache, Readers
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
