"""Reading a run whose frames are not sealed costs what is new and what is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fake_writer import FakeLane, FakeWriter, make_run

from rollbook.book.book import Book
from rollbook.journal.frame_files import FrameFile
from rollbook.journal.frames import encode
from rollbook.storage import live
from rollbook.storage.frame_tables import group_of, table_of


def _episode(number: int) -> dict[str, Any]:
    return {"table": "episodes", "n": 1, "columns": {"episode_id": [f"e{number}"], "length": [number]}}


def _run(root: Path) -> tuple[Path, FakeLane]:
    run = make_run(root)
    return run, FakeWriter(run).lane()


def _count_decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    decoded: list[int] = []
    decode = live.decode
    monkeypatch.setattr(live, "decode", lambda data: decoded.append(len(data)) or decode(data))
    return decoded


def test_metrics_are_read_without_decoding_the_frames_of_other_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, lane = _run(tmp_path)
    for number in range(40):
        lane.frame(_episode(number))
    lane.frame({"table": "metrics", "scope": "", "keys": ["a"], "values": [1.0]})
    decoded = _count_decoded(monkeypatch)
    book = Book(run)
    assert book.metrics(["a"])["a"].to_pylist() == [1.0]
    assert len(decoded) == 1
    assert book.episodes().num_rows == 40
    assert len(decoded) == 41
    assert book.episodes().num_rows == 40
    assert book.metrics().num_rows == 1
    assert len(decoded) == 41


def test_a_read_ends_where_the_file_ended_when_it_began(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, lane = _run(tmp_path)
    lane.frame(_episode(0))
    scan = FrameFile.scan
    written = 0

    def growing(self: FrameFile, offset: int = 0) -> Any:
        nonlocal written
        for found in scan(self, offset):
            if written < 1000:  # the writer is as fast as the reader
                written += 1
                lane.frame(_episode(written))
            yield found

    monkeypatch.setattr(FrameFile, "scan", growing)
    book = Book(run)
    assert book.episodes().num_rows == 1
    assert written < 10
    monkeypatch.setattr(FrameFile, "scan", scan)
    assert book.episodes().num_rows == written + 1


@pytest.mark.parametrize(
    "payload",
    [
        {"table": "episodes", "n": 1, "columns": {"a": [1]}},
        {"table": "metrics", "scope": "", "keys": ["a"], "values": [1.0]},
        {"mark": "dump", "scope": "", "keys": []},
        {"fill": [1], "lane": 0, "columns": {"a": [1.0]}},
        {"table": "x" * 31, "n": 1, "columns": {}},
    ],
)
def test_the_first_bytes_of_a_frame_tell_its_table(payload: dict[str, Any]) -> None:
    assert table_of(encode(payload)[0]) == group_of(payload)[0]


@pytest.mark.parametrize("payload", [{"n": 1, "table": "episodes"}, {"table": "x" * 40}, {}, {"table": 3}])
def test_a_frame_that_does_not_begin_with_its_table_is_looked_into(payload: dict[str, Any]) -> None:
    assert table_of(encode(payload)[0]) == ""
