"""Each committed row exactly once, however writing, rolling, sealing, recycling, merging and reading interleave."""

from __future__ import annotations

import os
import threading
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_writer import FakeWriter, make_run
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from cases import examples, some_of
from rollbook.book.book import Book
from rollbook.book.repair.doctor import repair, verify
from rollbook.journal import format as layout
from rollbook.journal.reader import JournalReader
from rollbook.journal.writer import Writer
from rollbook.schema import finished
from rollbook.storage.pieces import RunFiles
from rollbook.storage.sealed_rows import SealedRows
from rollbook.storage.sealing import folder as sealing
from rollbook.storage.sealing.folder import SealReport
from rollbook.storage.sealing.merge import SMALL_ROWS, Sizes
from rollbook.system.files import read_json
from rollbook.system.liveness import identity
from waiting import pause

SOON = Sizes(at_once=3, first_tier=10)
"""Merge three parts instead of eight, and call ten rows large."""

LATE = SOON._replace(at_once=100)
"""Merge nothing before the end."""


def seal(run: str | Path, *, sizes: Sizes = SOON, **how: Any) -> SealReport:
    """As the keeper seals, but with parts that are merged soon."""
    return sealing.seal(run, sizes=sizes, **how)


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("log"), st.integers(0, 1), st.integers(0, 1), st.integers(1, 9)),
        st.tuples(st.just("hole"), st.integers(0, 1), st.integers(0, 1), st.integers(1, 4)),  # more are damage
        st.tuples(st.just("rare"), st.integers(0, 1)),
        st.tuples(st.just("chunk"), st.integers(0, 1)),
        st.tuples(st.just("leave"), st.integers(0, 1), st.integers(0, 1)),
        st.tuples(st.just("roll_log"), st.integers(0, 1)),
        st.tuples(st.just("seal")),
        st.tuples(st.just("read")),
        st.tuples(st.just("follow")),
    ),
    min_size=5,
    max_size=40,
)


@given(operations=OPERATIONS)
@settings(max_examples=examples(8), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_order_of_events_gives_every_row_once(
    operations: list[tuple[Any, ...]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    run = make_run(tmp_path_factory.mktemp("runs"))
    writer = FakeWriter(run, **identity())
    lanes = [writer.lane() for _ in range(2)]
    streams = [[lane.stream("v", "a", size=1024), lane.stream("v", "b", size=1024)] for lane in lanes]
    written: list[int] = []
    book, cursor, followed = Book(run), {}, []
    reader = JournalReader(run, sealed=SealedRows(run))

    def check() -> None:
        expected = sorted(written)
        assert sorted(book.metrics(["v"])["v"].to_pylist() if written else []) == expected
        assert sorted(Book(run).metrics(["v"])["v"].to_pylist() if written else []) == expected

    def follow() -> None:
        followed.extend(int(row.values["v"]) for row in reader.rows_since(cursor) if "v" in row.values)

    number, holes = 0, Counter[tuple[int, int]]()  # in a row, of each stream
    for operation, *where in operations:
        if operation == "log":
            for _ in range(where[2]):
                number += 1
                streams[where[0]][where[1]].log(number, 0.0, env_step=number)
                written.append(number)
            holes[*where[:2]] = 0
        elif operation == "hole":
            for _ in range(min(where[2], 4 - holes[*where[:2]])):
                holes[*where[:2]] += 1
                streams[where[0]][where[1]].hole()
        elif operation == "rare":
            number += 1
            lanes[where[0]].rare({"v": float(number), "rare": 1})
            written.append(number)
        elif operation == "chunk":
            lanes[where[0]].chunk("metrics", {"v": np.array([number + 1.0, number + 2.0])}, 2)
            written += [number + 1, number + 2]
            number += 2
        elif operation == "leave":
            streams[where[0]][where[1]].leave()
        elif operation == "roll_log":
            lanes[where[0]].roll_log()
        elif operation == "seal":
            report = seal(run)
            assert report.problems == []
        elif operation == "read":
            check()
        else:
            follow()
    check()
    follow()
    assert followed == sorted(followed, key=followed.index)
    assert sorted(followed) == sorted(written)
    writer.close()
    check()
    seal(run, final=True)
    check()
    assert sorted(int(r.values["v"]) for r in Book(run).tail(from_start=True, stop=lambda: True)) == sorted(written)
    reader.close()


@pytest.mark.parametrize("moment", ["before parts are listed", "before parts are read"])
@pytest.mark.parametrize("ends", [False, True])
def test_rows_that_are_sealed_and_merged_during_a_read_are_not_seen_before_earlier_rows(
    tmp_path: Path, ends: bool, moment: str
) -> None:
    """The earlier row is in a file that was read already, and is still being written; or the run ends meanwhile."""
    run = make_run(tmp_path)
    writer = FakeWriter(run, **identity())
    lane = writer.lane()
    stream = lane.stream("v", "a", size=1 << 16)

    def log(end: bool = False) -> None:
        lane.rare({"v": 0.0, "rare": 1})
        for _ in range(SMALL_ROWS):
            stream.log(0.0, 0.0)
        stream.leave()
        if end:
            lane.rare({"v": 0.0, "rare": 1})
            writer.lane().rare({"v": 0.0, "rare": 1})
            writer.close()
        assert seal(run, final=end).problems == []

    log()
    log()
    during: list[int] = []

    class Meanwhile(RunFiles):
        def _later_rows(self, now: str) -> None:
            if now == moment and not during:
                log(ends)
                during.append(len([*run.glob("data/metrics/wide/w1.*")]))

        def _sealed_tops(self, *tables: Any) -> Any:
            self._later_rows("before parts are listed")
            return super()._sealed_tops(*tables)

        def _of_table(self, *snapshot: Any) -> Any:
            self._later_rows("before parts are read")
            return super()._of_table(*snapshot)

    def numbers(pieces: dict[str, Any]) -> list[int]:
        return sorted({n for piece in pieces["metrics"] for n in piece.read(["seq"])["seq"].to_pylist()})

    seen = Meanwhile(str(run)).read(["metrics"], numbers)
    assert during == [1], "three were merged"
    assert len(seen) >= 4
    assert seen == list(range(seen[0], seen[0] + len(seen)))


HIDDEN = st.lists(
    st.one_of(
        st.tuples(st.just("segment"), st.integers(0, 1), st.integers(1, 3)),
        st.tuples(st.just("frames"), st.integers(1, 3)),
        st.tuples(st.just("seal")),
        st.tuples(st.sampled_from(["unreadable", "away"]), st.integers(0, 40)),
        st.tuples(st.just("back")),
    ),
    min_size=10,
    max_size=60,
)


@example(operations=[*[("segment", 0, 2)] * 2, ("unreadable", 1), *[("segment", 0, 2)] * 3])
@example(operations=[*[("frames", 2)] * 2, ("unreadable", 1), *[("frames", 2)] * 3])
@example(operations=[*[("segment", 0, 2)] * 2, ("away", 1), ("segment", 0, 2), ("away", 1), *[("segment", 0, 2)] * 3])
@given(operations=HIDDEN)
@settings(
    max_examples=examples(8) // 2,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_files_that_cannot_be_read_for_a_while_have_lost_nothing_when_they_can(
    operations: list[tuple[Any, ...]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A part or a left journal file loses no row by what is sealed and merged around it meanwhile, nor a part that was
    moved away and is put back."""
    run = make_run(tmp_path_factory.mktemp("runs"))
    writer = FakeWriter(run, **identity())
    lane = writer.lane()
    streams = [lane.stream("v", "a", size=512), lane.stream("v", "b", size=512)]
    hidden: dict[Path, bytes] = {}
    written: list[float] = []

    def files() -> list[Path]:
        left = [p for p in writer.folder.glob("*.seg") if streams[0].word(p, layout.STATE_AT) == layout.LEFT]
        logs = writer.folder.glob("*.log")
        return sorted(p for p in (*(run / "data").glob("metrics/*/w1*.parquet"), *left, *logs) if p not in hidden)

    def check() -> None:
        if not all(path.exists() for path in hidden):
            assert verify(run) != []  # nothing is missing in silence
        for path, content in hidden.items():
            path.write_bytes(content)
        hidden.clear()
        assert sorted(Book(run).metrics(["v"])["v"].to_pylist() if written else []) == written

    for operation, *where in operations:
        if operation in ("segment", "frames"):
            for _ in range(where[-1]):
                written.append(len(written) + 1.0)
                if operation == "frames":
                    lane.rare({"v": written[-1]})
                else:
                    streams[where[0]].log(written[-1], 0.0, env_step=len(written))
            if operation == "frames":
                lane.roll_log()
            else:
                streams[where[0]].leave()
            seal(run)
        elif operation == "seal":
            seal(run)
        elif operation == "back":
            check()
        elif there := files():
            path = there[where[0] % len(there)]
            if operation == "unreadable":
                hidden[path] = path.read_bytes()
                path.write_bytes(b"\x55" * len(hidden[path]))
            elif path.suffix == ".parquet":
                hidden[path] = path.read_bytes()
                path.unlink()
    check()
    seal(run)
    check()
    writer.close()
    seal(run, final=True, take_over=True)
    check()
    assert verify(run) == []


@pytest.mark.parametrize("final", [False, True])
@pytest.mark.parametrize("rows", [2, 400])
def test_parts_that_come_one_by_one_as_another_host_joins_are_whole_however_they_are_merged_meanwhile(
    tmp_path: Path, rows: int, final: bool
) -> None:
    run = make_run(tmp_path)
    writer = FakeWriter(run, **identity())
    stream = writer.lane().stream("v", "a", size=32768)
    for first in range(0, 9 * rows, rows):
        for n in range(first, first + rows):
            stream.log(float(n), 0.0, env_step=n)
        stream.leave()
        seal(run, sizes=LATE)
    parts = {part: part.read_bytes() for part in (run / "data").glob("metrics/wide/w1*")}
    assert len(parts) == 9
    for part in parts:
        part.unlink()
    for part in sorted(parts, reverse=True, key=lambda part: int(part.stem.rpartition(".")[2]) % 7):
        part.write_bytes(parts[part])
        seal(run, final=final)
    assert sorted(Book(run).metrics(["v"])["v"].to_pylist()) == list(range(9 * rows))
    seal(run, final=True)
    assert sorted(Book(run).metrics(["v"])["v"].to_pylist()) == list(range(9 * rows))
    assert len(list((run / "data").glob("metrics/*/*w1*"))) <= 1  # all are there, and are one


@pytest.mark.parametrize("gone", some_of([[0], [7, 8, 9], [1, 2], list(range(10)), [1], [3], [0, 1, 2], [9]], 2))
def test_a_part_that_is_away_while_its_stream_is_sealed_is_reported_and_is_whole_when_it_is_back(
    tmp_path: Path, gone: list[int]
) -> None:
    run = make_run(tmp_path)
    stream = FakeWriter(run, **identity()).lane().stream("v", "a", size=32768)
    away: dict[Path, bytes] = {}
    for n in range(10):
        for i in range(5):
            stream.log(float(5 * n + i), 0.0, env_step=5 * n + i)
        stream.leave()
        before = set((run / "data").glob("metrics/wide/w1*"))
        seal(run)
        if n in gone:
            (new,) = set((run / "data").glob("metrics/wide/w1*")) - before
            away[new] = new.read_bytes()
            new.unlink()
    (told,) = verify(run)
    assert "is not here" in told
    assert Book(run).problems() == [told]
    rest = [float(i) for i in range(50) if i // 5 not in gone]
    assert sorted(Book(run).metrics(["v"] if rest else None)["v" if rest else "time"].to_pylist()) == rest
    for path, content in away.items():
        path.write_bytes(content)
    assert verify(run) == []
    for final in (False, True):
        assert sorted(Book(run).metrics(["v"])["v"].to_pylist()) == [float(i) for i in range(50)]
        seal(run, final=final)
    assert sorted(Book(run).metrics(["v"])["v"].to_pylist()) == [float(i) for i in range(50)]
    assert len(list((run / "data").glob("metrics/wide/w1*"))) == 1
    assert verify(run) == []


@pytest.mark.parametrize("merged", ["as they were sealed", "merged", "merged while it is away"])
def test_the_last_rows_of_a_finished_run_are_reported_if_their_file_is_moved_away(tmp_path: Path, merged: str) -> None:
    """Nothing was sealed behind them, and their writers are gone. In a copy without what sealing remembers, as `join`
    and `pull` make it, the writer's last number tells."""
    run = make_run(tmp_path)
    for name in ("w1", "w2"):
        writer = FakeWriter(run, name)
        lane = writer.lane()
        stream = lane.stream("v", "a", size=32768)
        for n in range(5):
            stream.log(float(n), 0.0, env_step=n)
        stream.leave()
        lane.rare({"v": 5.0})
        seal(run, take_over=True)
        for n in range(6, 9):
            stream.log(float(n), 0.0, env_step=n)
        writer.close()
        seal(run, take_over=True)
    if merged == "merged":
        seal(run, final=True)
    assert verify(run) == Book(run).problems() == []
    parts = sorted((run / "data").glob("metrics/*/[mw]*.parquet"))
    assert len(parts) == (1 if merged == "merged" else 6)
    for part in parts:
        is_last = ".1." not in part.name
        content = part.read_bytes()
        part.unlink()
        told = verify(run)
        assert "is not here" in told[0]
        assert Book(run).problems() == sorted(told)
        assert len(told) == (4 if merged == "merged" else 1)
        if merged == "merged while it is away" and is_last:
            seal(run, final=True)
            assert "is not here" in verify(run)[0]
            part.write_bytes(content)
            assert verify(run) == []
            assert sorted(Book(run).metrics(["v"])["v"].to_pylist()) == sorted([*map(float, range(9))] * 2)
            return
        part.write_bytes(content)
    assert verify(run) == []
    parts[-1].unlink()
    finished.write(run, {**read_json(finished.finished_path(run)), "sealed": {}})
    assert [text for text in verify(run) if "in no file" in text] == Book(run).problems() != []


APART = [(2, 5), (9, 2), (0, 9), (5, 2), (2, 9), (8, 0)]


@pytest.mark.parametrize(
    ("broken", "gone", "damaged"),
    some_of(
        [(*two, damaged) for two in APART for damaged in ("wholly", "in a row group")],
        lambda case: case in ((2, 5, "wholly"), (9, 2, "in a row group")),
    ),
)
def test_a_part_that_is_away_is_reported_also_when_another_one_was_damaged_and_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: int, gone: int, damaged: str
) -> None:
    unmerged = partial(seal, sizes=LATE._replace(largest=1))  # the end merges nothing
    monkeypatch.setattr("rollbook.storage.seal", unmerged)
    run = make_run(tmp_path)
    writer = FakeWriter(run, **identity())
    stream = writer.lane().stream("v", "a", size=32768)
    for n in range(10):
        for i in range(5):
            stream.log(float(5 * n + i), 0.0, env_step=5 * n + i)
        stream.leave()
        unmerged(run)
    writer.close()
    parts = sorted((run / "data").glob("metrics/wide/w1*"), key=lambda part: int(part.stem.rpartition(".")[2]))
    content = bytearray(parts[broken].read_bytes())
    end = len(content) if damaged == "wholly" else 400
    content[4:end] = b"\x55" * (end - 4)
    parts[broken].write_bytes(content)
    repair(run)
    assert parts[broken].name in os.listdir(run / "data" / "aside")[0]
    lost = verify(run)
    assert len(lost) == (0 if broken == 9 else 1), "rows of the last part are still in the segment, too"
    assert Book(run).problems() == lost, "it stays said"
    away = parts[gone].read_bytes()
    parts[gone].unlink()
    (told,) = set(verify(run)) - set(lost)
    assert "is not here" in told
    assert set(Book(run).problems()) == {*lost, told}
    parts[gone].write_bytes(away)
    assert verify(run) == lost


def test_the_end_of_a_run_leaves_large_parts_as_they_are_and_makes_one_of_the_small_ones_between(
    tmp_path: Path,
) -> None:
    large_soon = LATE._replace(largest=300)
    run = make_run(tmp_path)
    stream = FakeWriter(run, **identity()).lane().stream("v", "a", size=32768)
    sizes, row = [400, 100, 100, 300, 50, 1200, 1200, 60, 60], 0
    for size in sizes:
        for _ in range(size):
            stream.log(float(row), 0.0, env_step=row)
            row += 1
        stream.leave()
        seal(run, sizes=large_soon)
    large = {path: path.stat().st_ino for path in (run / "data").glob("metrics/wide/w1*")}
    assert len(large) == len(sizes)
    seal(run, final=True, sizes=large_soon)
    parts = {path: path.stat().st_ino for path in (run / "data").glob("metrics/wide/w1*")}
    assert len(parts) == 7
    assert len(set(parts.items()) & set(large.items())) == 5  # and the fifty, which had no small neighbour
    assert Book(run).metrics(["v"], x="env_step")["v"].to_pylist() == list(range(row))


class TinyWriter(Writer):
    """Rolls and recycles all the time."""

    first_segment_bytes = 2048
    largest_segment_bytes = 2048
    frame_file_bytes = 4096


@pytest.mark.parametrize("threads", [1, 2])
def test_readers_miss_nothing_and_repeat_nothing_beside_writers_and_sealers(tmp_path: Path, threads: int) -> None:
    """With one thread a book is also never without a row while it has a later one; two use lanes as they find them."""
    run = make_run(tmp_path)
    writer = TinyWriter(str(run), main=True)
    acknowledged = [0] * threads
    failures: list[str] = []
    writing = threading.Event()
    writing.set()

    def write(index: int) -> None:
        log = writer.make_log(writer.channel())
        for i in range(2500):
            if i % 50 == 7:
                log({f"w{index}": float(i), f"odd{i}": 1.0}, env_step=i)
            else:
                log({f"w{index}": float(i), "x": 0.5}, env_step=i)
            acknowledged[index] = i + 1
            if i % 25 == 0:
                pause(0.002)  # give way, so that all of them get their turn

    def seal_again_and_again() -> None:
        while writing.is_set():
            report = seal(run)
            failures.extend(report.problems)

    def read_again_and_again() -> None:
        book = Book(run)
        while writing.is_set():
            for index in range(threads):
                at_least = acknowledged[index]
                if not at_least:
                    pause(0.001)
                    continue
                values = book.metrics([f"w{index}"])[f"w{index}"].to_pylist()
                if len(values) != len(set(values)):
                    failures.append(f"writer {index}: {len(values)} rows, {len(set(values))} different")
                if not set(range(at_least)) <= set(values):
                    failures.append(f"writer {index}: of {at_least} acknowledged rows some are missing")
                if threads == 1 and sorted(values) != list(range(len(values))):
                    failures.append(f"writer {index}: a row before the last of {len(values)} is missing")

    followed: list[tuple[str, float]] = []

    def follow() -> None:
        cursor: dict[str, dict[int, int]] = {}
        with JournalReader(run, sealed=SealedRows(run)) as reader:
            while True:
                last = not writing.is_set()
                for row in reader.rows_since(cursor):
                    followed.extend((k, v) for k, v in row.values.items() if k in ("w0", "w1"))
                if last:
                    return
                pause(0.005)

    writers = [threading.Thread(target=write, args=(i,)) for i in range(threads)]
    others = [threading.Thread(target=f) for f in (seal_again_and_again, read_again_and_again, follow)]
    for thread in (*writers, *others):
        thread.start()
    for thread in writers:
        thread.join()
    writing.clear()
    for thread in others:
        thread.join()
    assert failures == []
    assert sorted(followed) == sorted((f"w{i}", float(v)) for i in range(threads) for v in range(2500))
    writer.close()
    seal(run, final=True)
    for index in range(threads):
        assert Book(run).metrics([f"w{index}"])[f"w{index}"].to_pylist() == list(range(2500))
    assert not list((run / "data" / "journal").iterdir())
