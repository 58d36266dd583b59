"""Reading a run whose frames are not sealed costs what is new and what is asked for."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from fake_writer import FakeLane, FakeWriter, make_run

from rollbook.book.book import Book
from rollbook.journal.frame_files import FrameFile
from rollbook.journal.frames import encode
from rollbook.storage import live
from rollbook.storage.frame_tables import group_of, table_of
from rollbook.storage.sealing.folder import seal
from rollbook.storage.sealing.merge import merge
from rollbook.system.liveness import identity


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
    assert book.series("a").mean.tolist() == [1.0]
    assert len(decoded) == 41


def test_a_row_that_is_committed_during_a_read_is_not_shown_before_its_values_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that copies a segment may see a commit word and not yet the values before it."""
    run, lane = _run(tmp_path)
    stream = lane.stream("a", types="d")
    stream.log(1.0)
    half: list[int] = []

    def meanwhile(_seconds: float) -> None:
        if not half:
            half.append(stream.log(-1.0))  # what stands there until the values come

    monkeypatch.setattr(live, "time", SimpleNamespace(sleep=meanwhile, time=time.time))
    assert Book(run).metrics(["a"])["a"].to_pylist() == [1.0]
    assert half
    assert Book(run).metrics(["a"]).num_rows == 2, "a later read has it"


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


FILES, GROUP = 12, 4


def _rollouts(root: Path, *, sealed: bool = False) -> Path:
    """Rollouts and their fates: in many files that no keeper has sealed, two frames a file; or in many parts."""
    run = make_run(root)
    lane = FakeWriter(run, **identity()).lane()
    for number in range(FILES):
        ids, rewards = [f"r{number}-{n}" for n in range(GROUP)], [float(n % 2) for n in range(GROUP)]
        named = {"rollout_id": ids, "group": [f"g{number}"] * GROUP, "task_id": ["t"] * GROUP}
        answers = {"reward": rewards, "item": ["x"] * GROUP}
        lane.chunk("rollouts", {**named, **answers}, GROUP, gradient_step=number)
        lane.chunk("fates", {"rollout_id": ids, "used": [True] * GROUP}, GROUP, gradient_step=number + 1)
        lane.roll_log()
        if sealed:
            seal(run)
    return run


def test_curves_decode_an_unsealed_frame_of_rollouts_twice_and_hold_one_file_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tuned: Callable[..., None]
) -> None:
    tuned(scan_rows=1, kept_frame_bytes=0)
    run = _rollouts(tmp_path)
    decoded = _count_decoded(monkeypatch)
    book = Book(run)
    scan = book.scan("rollouts", streamed=True)
    assert (scan.rest.num_rows, len(scan.queries)) == (0, 0)
    before = len(decoded)
    batches = iter(pa.RecordBatchReader.from_stream(scan.stream))
    for number in range(FILES):
        assert next(batches).num_rows == GROUP
        assert len(decoded) - before == number + 1
    for ask in (Book.rollout_curves, Book.rollout_prompts):
        decoded.clear()
        asked = ask(Book(run)).to_pylist()
        assert len(decoded) <= 2 * 2 * FILES
        tuned(scan_rows=10**6)
        assert ask(Book(run)).to_pylist() == asked
        tuned(scan_rows=1)
    assert asked[0]["rollouts"] == FILES * GROUP


def test_rows_with_one_text_are_the_same_whether_frames_are_kept_or_read_again(
    tmp_path: Path, tuned: Callable[..., None]
) -> None:
    run = make_run(tmp_path)
    lane = FakeWriter(run, **identity()).lane()
    mixed = (1, "1", None, "zz\u00e4", 2.5, [1], "z")
    for number in range(28):
        cells = [mixed[(number + n) % len(mixed)] for n in range(3)]
        names = [f"r{(number + n) % 5}\u00e4"[: 2 + n % 2] for n in range(3)]
        columns = {"rollout_id": names, "turn": [number % 4, 1, 2], "text": [str(cell) for cell in cells]}
        columns |= {"odd": cells} if 7 <= number < 14 else {"more": [number % 2] * 3}
        lane.chunk("turns", columns, 3, scope="a" if number == 18 else "", gradient_step=number)
        if number == 3:
            log = next(run.rglob("*.log"))
            half = log.stat().st_size
        elif number % 7 == 6:
            lane.roll_log()
        elif number == 7:  # the first half of the first file is sealed
            whole = log.read_bytes()
            log.write_bytes(whole[:half])
            seal(run)
            assert not log.exists()
            log.write_bytes(whole)
    asked = {
        "rollout_id": ["r1", "r3\u00e4", "r9"],
        "turn": ["3", "1"],
        "text": ["None", "z", "[1]"],
        "odd": ["z", "1"],
        "more": ["0"],
        "scope": ["a"],
    }
    kept = {(name, text): Book(run).table("turns", where=(name, text)) for name in asked for text in asked[name]}
    tuned(kept_frame_bytes=0)
    for (name, text), rows in kept.items():
        assert Book(run).table("turns", where=(name, text)).to_pylist() == rows.to_pylist()
    assert kept["rollout_id", "r1"].num_rows == 11
    assert kept["rollout_id", "r9"].num_rows == 0


@pytest.mark.parametrize("kept", [0, 1 << 20])
def test_a_rollout_is_read_from_the_frames_that_have_its_id(
    kept: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tuned: Callable[..., None]
) -> None:
    tuned(kept_frame_bytes=kept)
    book = Book(_rollouts(tmp_path))
    decoded = _count_decoded(monkeypatch)
    for _ in range(2):
        assert book.table("rollouts", where=("rollout_id", "r3-1"))["item"].to_pylist() == ["x"]
    assert len(decoded) == 2
    assert book.table("rollouts").num_rows == FILES * GROUP  # what was found alone is not taken for all
    assert book.table("rollouts", where=("rollout_id", "r3-1")).num_rows == 1


@pytest.mark.parametrize("logged", [[[0, 1], [2, 1], [11]], [["0é", "1"], ["1é"], ["é", "1"]]])
def test_a_row_is_found_by_its_text_also_if_that_is_no_ascii_or_was_logged_as_a_number(
    logged: list[list[object]], tmp_path: Path
) -> None:
    run = make_run(tmp_path)
    lane = FakeWriter(run, **identity()).lane()
    for names in logged:
        lane.chunk("rollouts", {"rollout_id": names}, len(names))
    whole = [str(name) for names in logged for name in names]
    for text in {*whole, "9", "\ud800"}:
        found = Book(run).table("rollouts", where=("rollout_id", text))
        assert [str(name) for name in found["rollout_id"].to_pylist()] == [text] * whole.count(text)


def test_rows_that_are_sealed_and_merged_while_they_are_read_are_read_where_they_are_now(
    tmp_path: Path, tuned: Callable[..., None]
) -> None:
    tuned(scan_rows=1, kept_frame_bytes=0)
    run = _rollouts(tmp_path)
    book = Book(run)
    whole = book.table("rollouts")["rollout_id"].to_pylist()
    scan = book.scan("rollouts", streamed=True)
    batches = iter(pa.RecordBatchReader.from_stream(scan.stream))
    found = next(batches)["rollout_id"].to_pylist()
    seal(run)
    assert not list((run / "journal").rglob("*.log"))
    found += next(batches)["rollout_id"].to_pylist()
    merge(str(run), final=True, problems=[])
    assert found + [name for batch in batches for name in batch["rollout_id"].to_pylist()] == whole
    assert scan.is_current()
    assert Book(run).table("rollouts")["rollout_id"].to_pylist() == whole


@pytest.mark.parametrize("tries", [1, 3])
def test_small_parts_that_are_merged_while_they_are_read_are_read_where_they_are_now(
    tries: int, tmp_path: Path, tuned: Callable[..., None]
) -> None:
    run = _rollouts(tmp_path, sealed=True)
    whole = Book(run).table("fates")["rollout_id"].to_pylist()
    assert len(list((run / "data" / "fates").glob("*.parquet"))) > 1
    tuned(scan_rows=FILES * GROUP)
    scan = Book(run).scan("fates", tries, streamed=True)
    batches = iter(pa.RecordBatchReader.from_stream(scan.stream))
    found = next(batches)["rollout_id"].to_pylist()
    merge(str(run), final=True, problems=[])
    assert found + [name for batch in batches for name in batch["rollout_id"].to_pylist()] == whole
    assert scan.is_current()


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
def test_the_first_bytes_of_a_frame_name_its_table(payload: dict[str, Any]) -> None:
    assert table_of(encode(payload)[0]) == group_of(payload)[0]


@pytest.mark.parametrize("payload", [{"n": 1, "table": "episodes"}, {"table": "x" * 40}, {}, {"table": 3}])
def test_a_frame_that_does_not_begin_with_its_table_is_looked_into(payload: dict[str, Any]) -> None:
    assert table_of(encode(payload)[0]) == ""
