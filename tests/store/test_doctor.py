"""Damaged runs: readers skip and say so, verify names what is wrong, repair saves what can be saved."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fake_writer import GONE, FakeWriter, make_run

import rollbook
from cases import some_of
from live_copies import copy_live
from rollbook.book.book import Book
from rollbook.book.repair.doctor import repair, verify
from rollbook.errors import NewerFormat, NotARun, RollbookError
from rollbook.journal import format as layout
from rollbook.run.origin.config import write_config_files
from rollbook.storage import footers, may_be_asked
from rollbook.storage.sealing.folder import seal

ROWS = 400


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same run sealed and as a process that was killed left it."""
    root = tmp_path_factory.mktemp("originals")
    found = {}
    for kind in ("sealed", "killed"):
        run = rollbook.init("p", kind, dir=root, sinks=[], keeper="inline", config={"lr": 0.1, "sizes": (64, 64)})
        run.summary["best"] = 3.0
        for i in range(ROWS):
            run.log({"a": float(i), "b": i}, env_step=i)
            if i % 100 == 0:
                run.note(f"note {i}")
                run.log({f"rare{i}": 1.0})
                run.log_samples(["x", f"y{i}"], reward=[1.0, 2.0])
                run.log_episode(return_=1.0, length=3)
        run.internals.write_about()  # the run's own thread does it within a second
        found[kind] = run.folder
        if kind == "killed":
            found[kind] = root / "p" / "copy-killed01"
            copy_live(run.folder, found[kind])
            for page in found[kind].glob("data/journal/*/writer.json"):
                page.write_text(json.dumps({**json.loads(page.read_text()), "pid": 2**22 + 1, "start_time": "0"}))
        run.finish()
    return found


@pytest.fixture(params=["sealed", "killed"])
def copy(request: pytest.FixtureRequest, originals: dict[str, Path], tmp_path: Path) -> Path:
    folder = tmp_path / originals[request.param].name
    shutil.copytree(originals[request.param], folder)
    return folder


@pytest.fixture
def sealed(originals: dict[str, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(originals["sealed"], tmp_path / originals["sealed"].name))


@pytest.fixture
def killed(originals: dict[str, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(originals["killed"], tmp_path / originals["killed"].name))


def everything(folder: Path) -> dict[int, float]:
    """What all readers make of a run; returns {env_step: a}, checked for invented values."""
    book = Book(folder)
    keys = book.keys()
    for table in ("episodes", "samples", "timings", "histograms", "media", "checkpoints", "alerts", "text", "steps"):
        getattr(book, table)()
    book.latest()
    book.sql("select count(*) from metrics").fetchall()
    list(book.tail(from_start=True, stop=lambda: True))
    book.problems()
    if "a" not in keys:
        return {}
    rows = book.metrics(["a", "b"]).to_pylist()
    book.series("a", points=7)
    return {int(row["b"]): row["a"] for row in rows if row.get("b") is not None and row["a"] is not None}


def state_of(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def one(folder: Path, pattern: str) -> Path:
    return max(folder.glob(pattern), key=lambda path: path.stat().st_size)


def flip(path: Path, rng: random.Random, bits: int = 40) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(bits):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def losses(folder: Path) -> list[str]:
    """What every reader says for ever after a repair, which are all told the same."""
    said = verify(folder)
    assert said == Book(folder).problems() == Book(folder).problems(deep=False)
    assert repair(folder) == ["nothing had to be done"]
    assert verify(folder) == said
    return said


def test_a_sound_run_has_nothing_wrong_and_is_not_changed_by_looking(copy: Path) -> None:
    before = state_of(copy)
    said = verify(copy)
    assert [text for text in said if "not sealed" not in text] == []
    assert everything(copy) == {i: float(i) for i in range(ROWS)}
    assert state_of(copy) == before


def test_repair_seals_what_a_killed_process_left(killed: Path) -> None:
    assert any("its status is now crashed" in text for text in repair(killed))
    assert (verify(killed), Book(killed).status) == ([], "crashed")
    assert everything(killed) == {i: float(i) for i in range(ROWS)}
    assert repair(killed) == ["nothing had to be done"]


def test_a_truncated_parquet_file_is_skipped_named_and_set_aside(sealed: Path) -> None:
    part = one(sealed, "data/metrics/*/*.parquet")
    part.write_bytes(part.read_bytes()[: part.stat().st_size // 2])
    assert everything(sealed) == {}
    assert any(part.name in text for text in Book(sealed).problems())
    assert any(part.name in text for text in verify(sealed))
    assert any(part.name in text and "set aside" in text for text in repair(sealed))
    (lost,) = losses(sealed)
    assert part.name in lost
    assert "all that it held" in lost
    assert everything(sealed) == {}
    assert Book(sealed).text().num_rows == 4, "the other tables are whole"


def test_a_segment_with_flipped_bits_loses_rows_and_never_invents_numbers_of_rows(killed: Path) -> None:
    flip(one(killed, "data/journal/*/*.seg"), random.Random(3))
    assert len(everything(killed)) >= ROWS // 2
    assert any(".seg" in text for text in verify(killed))
    repair(killed)
    assert len(everything(killed)) >= ROWS // 2
    assert [text for text in losses(killed) if ".seg" not in text] == []


@pytest.mark.parametrize("before", [0, 200], ids=["in the frame", "over its head, so that its end is not known"])
def test_frames_behind_a_damaged_one_are_saved(killed: Path, before: int) -> None:
    log = one(killed, "data/journal/*/*.log")
    data = bytearray(log.read_bytes())
    at = data.index(b"note 200")
    data[at - before : at + 8] = bytes(before + 8)
    log.write_bytes(data)
    assert any(".log" in text for text in verify(killed))
    assert Book(killed).text("note")["text"].to_pylist() == ["note 0", "note 100", "note 300"], "readers go on"
    assert any(log.name in text for text in Book(killed).problems())
    said = repair(killed)
    assert any("damaged" in text for text in said)
    assert Book(killed).text("note")["text"].to_pylist() == ["note 0", "note 100", "note 300"]
    (lost,) = losses(killed)
    assert ("1 record in" in lost) is (before == 0)


@pytest.mark.parametrize("kind", ["log", "seg"])
def test_what_was_damaged_before_sealing_stays_reported(killed: Path, kind: str) -> None:
    path = one(killed, f"data/journal/*/*.{kind}")
    flip(path, random.Random(3), bits=400)
    before = everything(killed)
    seal(killed, take_over=True)
    for said in (Book(killed).problems(), Book(killed).problems(deep=False), verify(killed)):
        assert sum(path.name in text for text in said) == 1, said
    repair(killed)
    (lost,) = losses(killed)
    assert path.name in lost
    assert before.items() <= everything(killed).items()


def test_random_bytes_are_no_run(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "p" / "noise-00000001"
    (folder / "data" / "metrics").mkdir(parents=True)
    rng = random.Random(5)
    for name in ("run.json", "data/metrics/a.L00.S000.1.parquet", "data/journal"):
        (folder / name).write_bytes(rng.randbytes(5000))
    with pytest.raises(NotARun, match="rollbook repair"):
        Book(folder)
    assert any("run.json" in text for text in verify(folder))
    assert len(rollbook.open(tmp_path / "runs")) == 0
    assert any("rebuilt from" in text for text in repair(folder))
    assert Book(folder).keys() == []


@pytest.mark.parametrize("content", some_of([None, "[]", "", "{", "\x00\x01"], 2))
def test_a_lost_run_page_is_made_again_from_what_is_left(originals: dict[str, Path], copy: Path, content: Any) -> None:
    page = copy / "run.json"
    if content is None:
        page.unlink()
    else:
        page.write_text(content)
    assert any("run.json" in text for text in verify(copy))
    repair(copy)
    book = Book(copy)
    was = Book(originals["sealed" if "sealed" in copy.name else "killed"])
    assert (book.project, book.id, book.name, book.clocks) == (
        copy.parent.name,
        was.id if "sealed" in copy.name else "killed01",
        copy.name.rpartition("-")[0],
        was.clocks,
    )
    assert (book.config, book.summary["best"]) == ({"lr": 0.1, "sizes": [64, 64]}, 3.0)
    assert book.status == ("finished" if "sealed" in copy.name else "crashed")
    ended = book.info.ended
    assert ended is not None
    assert book.info.created <= ended <= (was.info.ended or ended) + 5.0, "by its rows, not by when it was repaired"
    assert (book.attempts[0]["status"], book.attempts[0]["ended"]) == (book.status, ended)
    assert everything(copy) == {i: float(i) for i in range(ROWS)}
    assert book.at(env_step=100)["metrics"].num_rows
    assert verify(copy) == []


def test_a_run_page_is_made_again_with_the_configuration_of_total_config_py(killed: Path) -> None:
    """Runs had it there, and not in writer.json, before the file was written only if asked for."""
    for path in killed.glob("data/journal/*/writer.json"):
        about = json.loads(path.read_text())
        path.write_text(json.dumps({name: fact for name, fact in about.items() if name not in ("config", "seed")}))
    write_config_files(killed, {"lr": 0.1, "sizes": (64, 64)})
    (killed / "run.json").unlink()
    repair(killed)
    assert Book(killed).config == {"lr": 0.1, "sizes": [64, 64]}


def test_a_page_that_is_made_again_knows_the_rewinds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROLLBOOK_RUN_ID", raising=False)
    options: dict[str, Any] = {"dir": tmp_path, "sinks": [], "keeper": "inline"}
    with rollbook.init("p", "n", **options) as run:
        for i in range(20):
            run.log({"x": 1.0}, env_step=i)
            if i == 9:
                run.save_checkpoint({"w": i})
    with rollbook.init("p", "n", resume="must", **options) as run:
        run.restore()
        run.log({"x": 2.0}, env_step=10)
    before = run.book.metrics(["x"], x="env_step").to_pylist()
    (run.folder / "run.json").unlink()
    assert "1 rewind was found again" in repair(run.folder)
    assert run.book.metrics(["x"], x="env_step").to_pylist() == before
    assert len(before) == 11


def test_a_footer_that_contradicts_itself_is_named_and_set_aside_and_ends_no_program(sealed: Path) -> None:
    """A column that may lack values is said to lack none: pyarrow ends the process that asks for its sizes."""
    part = one(sealed, "data/metrics/*/*.parquet")
    data = part.read_bytes()
    damaged: list[bytes] = []
    fatal = False
    for at in range(len(data) - 8 - int.from_bytes(data[-8:-4], "little"), len(data) - 8):
        if data[at] == 2 and not fatal:
            other = data[:at] + b"\0" + data[at + 1 :]
            with contextlib.suppress(pa.ArrowException, OSError, ValueError):
                fatal = may_be_asked([pq.ParquetFile(pa.BufferReader(other)).metadata]) == [False]
                damaged.append(other)
    part.write_bytes(damaged[-1] if fatal else damaged[0])  # none is fatal where a later pyarrow raises
    assert any(part.name in text for text in verify(sealed))
    assert any(part.name in text and "set aside" in text for text in repair(sealed))
    (lost,) = losses(sealed)
    assert part.name in str(lost)
    assert Book(sealed).text().num_rows == 4, "the other tables are whole"


def test_a_child_that_looks_at_footers_and_does_not_end_is_ended(sealed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    footer = pq.ParquetFile(one(sealed, "data/metrics/*/*.parquet")).metadata
    monkeypatch.setattr(footers, "_survived", {})
    with monkeypatch.context() as patch:
        patch.setattr(footers, "_SECONDS", 0.0)
        patch.setattr(footers, "_ask", lambda footer: signal.pause())
        assert may_be_asked([footer, footer]) == [False, False]
    assert may_be_asked([footer, footer]) == [True, True]


def test_a_footer_is_looked_at_by_one_child_and_one_that_no_child_could_look_at_is_looked_at_later(
    sealed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child takes as long as this process is large."""
    fork, forks = os.fork, [0]

    def counted() -> int:
        forks[0] += 1
        if forks[0] == 1:
            raise BlockingIOError("too many processes")
        return fork()

    monkeypatch.setattr(os, "fork", counted)
    monkeypatch.setattr(footers, "_survived", {})
    for several in (1, 2, 2):
        footer = pq.ParquetFile(one(sealed, "data/metrics/*/*.parquet")).metadata
        assert may_be_asked([footer] * several) == [True] * several
    assert forks == [2]
    monkeypatch.setattr(footers, "_MOST_KNOWN", 0)
    other = pq.ParquetFile(one(sealed, "data/text/*.parquet")).metadata
    assert [may_be_asked([other]), may_be_asked([other]), forks] == [[True], [True], [4]]


def test_a_program_that_has_its_children_waited_for_can_have_a_run_verified(sealed: Path) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert verify(sealed) == []
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_a_newer_format_is_refused_with_its_version(sealed: Path) -> None:
    page = sealed / "run.json"
    page.write_text(json.dumps({**json.loads(page.read_text()), "format": 99}))
    for work in (Book, repair):
        with pytest.raises(NewerFormat, match="99"):
            work(sealed)
    assert any("99" in text for text in verify(sealed))


def _mutate(path: Path, rng: random.Random) -> None:
    data = bytearray(path.read_bytes())
    kind = rng.choice(["flip", "cut", "zero", "noise", "empty", "folder", "grow"])
    if kind == "flip" and data:
        for _ in range(rng.choice([1, 8, 64])):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif kind == "cut":
        del data[rng.randrange(len(data) + 1) :]
    elif kind == "zero" and data:
        at = rng.randrange(len(data))
        data[at : at + 64] = bytes(len(data[at : at + 64]))
    elif kind == "noise":
        data = bytearray(rng.randbytes(min(len(data), 2000)))
    elif kind == "empty":
        data = bytearray()
    elif kind == "grow":
        data += rng.randbytes(100)
    path.unlink()
    if kind == "folder":
        path.mkdir()
    else:
        path.write_bytes(data)


@pytest.mark.parametrize("seed", some_of(range(12), 2))
def test_whatever_happens_to_its_files_nothing_crashes_and_what_is_sound_again_stays_so(copy: Path, seed: int) -> None:
    rng = random.Random(f"{seed} {copy.name[:4]}")
    files = sorted(path for path in copy.rglob("*") if path.is_file())
    for path in rng.sample(files, rng.choice([1, 1, 2, 4])):
        _mutate(path, rng)
    steps: list[Callable[[], Any]] = [lambda: everything(copy), lambda: verify(copy), lambda: repair(copy, force=True)]
    for step in (*steps, *steps):
        try:
            step()
        except RollbookError:  # said in words; anything else fails the test
            continue


def test_a_frame_that_is_whole_and_says_nothing_is_named_and_costs_no_other_row(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    writer = FakeWriter(run, **GONE)
    lane = writer.lane()
    lane.rare({"a": 1.0})
    assert lane.log_path is not None
    with open(lane.log_path, "ab") as file:  # its checksum is right: what is in it is not MessagePack
        file.write(layout.pack_frame(lane.next_seq(), writer.mono(), b"\xc1 no message"))
    lane.rare({"a": 2.0})
    for step in (None, seal, repair):
        if step is not None:
            step(run)
        assert Book(run).metrics(["a"])["a"].to_pylist() == [1.0, 2.0]
        (told,) = (problem for problem in Book(run).problems() if problem.kind != "unsealed")
        assert "a frame of 12 bytes is not msgpack" in told
    assert "1 record that cannot be decoded" in told
