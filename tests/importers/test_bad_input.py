"""What every importer does with half files, changed bytes, other contents, vanished folders and locked databases."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rollbook
from cases import some_of
from foreign_samples import SAMPLES, WRITTEN
from rollbook.errors import BadInput
from rollbook.formats import importers
from rollbook.formats.foreign import found
from rollbook.formats.importers._found import FoundRun
from rollbook.formats.importers._into_runs import import_one
from rollbook.formats.importers._registry import patterns
from rollbook.values import Histogram

NAMES = importers.names()
OPENED = sorted({*NAMES} & {*patterns()})
CHECKED = ("wandb", "swanlab", "tensorboard", "neptune", "aim")
"""Formats with checksums, or whose every part is needed: what changed there is noticed."""

ALIEN = {
    "random bytes": random.Random(0).randbytes(400),
    "an object of a version of the future": b'{"version": 99, "steps": []}\n',
    "a page": b"<html><body>404</body></html>\n",
    "lists": b"[1, 2]\n[[[]]]\nnull\n",
    "nothing": b"",
}

DATABASES = {"mlflow": "mlflow.db", "trackio": "study.db", "goodseed": "runs/rapid-heron.sqlite"}


def points(name: str, source: Path) -> tuple[set[str], dict[str, int]]:
    """(every value with its key, clocks and place, what was left out): which row a value is in does not matter."""
    there: set[str] = set()
    left_out: dict[str, int] = {}
    for run in importers.make(name).runs(source):
        for row in run.read_details().rows():
            clocks = sorted(row.clocks.items())
            there |= {f"{row.table} {row.scope} {clocks} {key} {plain(value)}" for key, value in row.values.items()}
        left_out.update(run.left_out)
    return there, left_out


def plain(value: Any) -> str:
    return repr((value.edges, value.counts)) if isinstance(value, Histogram) else repr(value)


def files_of(sample: Path) -> list[Path]:
    there = [sample] if sample.is_file() else sorted(path for path in sample.rglob("*") if path.is_file())
    return sorted(there, key=lambda path: -path.stat().st_size)[:3]


@contextlib.contextmanager
def holding(file: Path, data: bytes) -> Iterator[None]:
    """A file with another content, at its own time."""
    before, stat = file.read_bytes(), file.stat()
    for content in (data, before):
        file.write_bytes(content)
        os.utime(file, ns=(stat.st_mtime_ns, stat.st_mtime_ns))
        if content is data:
            yield


def cases(data: bytes, n: int, seed: int) -> Iterator[tuple[str, bytes]]:
    chance = random.Random(seed)
    for place in {0, 1, len(data) - 1, *(chance.randrange(len(data) + 1) for _ in range(n))}:
        yield "cut", data[: max(0, place)]
    for _ in range(n):
        changed = bytearray(data)
        start = chance.randrange(len(data))
        for place in range(start, min(start + chance.choice((1, 4, 12)), len(data))):
            changed[place] ^= chance.randrange(1, 256)
        yield "changed", bytes(changed)
    yield from ALIEN.items()


def check(name: str, sample: Path, n: int, seed: int = 0) -> None:
    """Read the sample with each of its largest files damaged: nothing raises, nothing is invented, damage is told."""
    whole, _left_out = points(name, sample)
    for file in files_of(sample):
        data = file.read_bytes()
        for what, content in cases(data, n, seed) if data else ():
            with holding(file, content):
                there, left_out = points(name, sample)
                known = importers.make(name).finds(sample)
            if what == "cut":
                assert there <= whole, f"{file.name} cut after {len(content)} bytes has what was never there"
            elif content and name in CHECKED and known and len(there) < len(whole):
                assert left_out, f"{file.name} with {what} says nothing of what it lacks"


def sample_of(name: str, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return SAMPLES[name](folder)


@pytest.mark.parametrize("name", NAMES)
def test_no_damage_raises_and_what_is_sound_stays(name: str, tmp_path: Path) -> None:
    check(name, sample_of(name, tmp_path), 4)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_no_damage_raises_in_many_cases(name: str, tmp_path: Path) -> None:
    check(name, sample_of(name, tmp_path), 60, seed=1)


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_that_vanishes_while_it_is_read_is_no_librarys_error(name: str, tmp_path: Path) -> None:
    sample = sample_of(name, tmp_path / "there")
    runs = list(importers.make(name).runs(sample))
    shutil.rmtree(tmp_path / "there")
    for run in runs:
        with contextlib.suppress(OSError):
            list(run.rows())
    assert not importers.make(name).finds(sample)


def test_an_import_of_what_vanished_says_so(tmp_path: Path) -> None:
    sample = sample_of("jsonl", tmp_path / "there")
    (run,) = importers.make("jsonl").runs(sample)
    sample.unlink()
    with pytest.raises(BadInput, match="went away"):
        import_one(FoundRun(run, "jsonl", sample), str(tmp_path / "runs"), "project", "run")


@pytest.mark.parametrize("name", some_of(OPENED, [*OPENED][::3].count))
def test_damage_is_reported_once_with_what_to_do_and_a_folder_that_grows_shows_all_of_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    sample = sample_of(name, tmp_path / "there")
    file = files_of(sample)[0]
    whole = rollbook.open(tmp_path / "there")
    assert whole.problems == []
    rows = sorted((book.name, book.metrics(attempts="all").num_rows, len(book.episodes())) for book in whole)
    shutil.rmtree(tmp_path / "cache")
    data = file.read_bytes()
    for size in (len(data) // 3, 2 * len(data) // 3):
        file.write_bytes(data[:size])
        rollbook.open(tmp_path / "there")
    file.write_bytes(bytes(64))
    for _look in range(2):
        problems = [str(problem) for problem in rollbook.open(tmp_path / "there").problems]
        assert len(problems) == len(set(problems)) <= 2
        assert all("copy it from there again" in problem or "import" in problem for problem in problems)
    file.write_bytes(data)
    again = rollbook.open(tmp_path / "there")
    assert again.problems == []
    assert sorted((b.name, b.metrics(attempts="all").num_rows, len(b.episodes())) for b in again) == rows


@pytest.mark.parametrize("name", DATABASES)
def test_a_database_whose_tables_cannot_be_listed_is_reported_once(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    file = tmp_path / "there" / DATABASES[name]
    file.parent.mkdir(parents=True)
    with contextlib.closing(sqlite3.connect(file)) as made:
        made.executescript((WRITTEN / f"{name}.sql").read_text())
    data = bytearray(file.read_bytes())
    data[100:200] = bytes(100)  # the head of the page that lists them
    file.write_bytes(data)
    for _look in range(2):
        (problem,) = map(str, rollbook.open(tmp_path / "there").problems)
        assert file.name in problem
        assert "copy it from there again" in problem
    assert importers.make(name).finds(file)


@pytest.mark.parametrize("name", DATABASES)
@pytest.mark.parametrize("behind", ["-journal", "-wal"])
def test_a_database_whose_tool_was_killed_in_a_transaction_is_read_as_of_its_last_commit(
    name: str, behind: str, tmp_path: Path
) -> None:
    """SQLite left a hot journal, which undoes what is half written in the database, or a log that belongs to it."""
    file = tmp_path / "alive" / DATABASES[name]
    file.parent.mkdir(parents=True)
    tool = sqlite3.connect(file, isolation_level=None)
    tool.executescript((WRITTEN / f"{name}.sql").read_text())
    tool.execute(f"pragma journal_mode={'delete' if behind == '-journal' else 'wal'}")
    committed = points(name, file)[0]
    assert committed
    tool.execute("pragma cache_size=1")
    tool.execute("begin immediate")
    for (table,) in tool.execute(
        "select name from sqlite_master where name like '%metric%' and type = 'table'"
    ).fetchall():
        tool.execute(f"delete from {table}")
        tool.execute(f"create table {table}_more as select randomblob(20000) from (values (1), (2), (3), (4))")
    left = tmp_path / "left" / DATABASES[name]
    left.parent.mkdir(parents=True)
    shutil.copyfile(file, left)
    shutil.copyfile(f"{file}{behind}", f"{left}{behind}")
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in left.parent.iterdir()}
    assert points(name, file)[0] == committed, "while the tool holds it"
    tool.execute("rollback")
    tool.close()
    assert left.read_bytes() != file.read_bytes() or behind == "-wal"
    assert points(name, left)[0] == committed
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in left.parent.iterdir()} == before


def test_a_thousand_folders_are_known_with_one_listing_each_and_no_other_call(tmp_path: Path) -> None:
    names = [globs[0].replace("[0-9]", "1").replace("*", "x") for globs in patterns().values()]
    names.remove("run.json")  # which may be rollbook's own: that one is looked at
    for n in range(1000):
        file = tmp_path / f"group_{n % 7}" / f"run_{n}" / names[n % len(names)]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    folders = sum(1 for path in tmp_path.rglob("*") if path.is_dir()) + 1
    calls: dict[str, int] = {}

    def count(_frame: object, event: str, called: Any) -> None:
        if event == "c_call" and getattr(called, "__name__", "") in ("stat", "lstat", "open", "scandir", "listdir"):
            calls[called.__name__] = calls.get(called.__name__, 0) + 1

    found(tmp_path / "group_0")  # loads what it needs
    sys.setprofile(count)
    try:
        there = found(tmp_path)
    finally:
        sys.setprofile(None)
    assert sum(map(len, there.values())) >= 1000
    assert calls == {"scandir": folders}


@pytest.mark.long
def test_of_ten_thousand_mixed_folders_each_damaged_one_is_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "there"
    for n in range(10_000):
        folder = root / f"run_{n}"
        folder.mkdir(parents=True)
        if n % 100 == 0:
            (folder / "metrics.jsonl").write_text('{"step": 1, "loss": 0.5}\n' * 3)
        elif n % 100 == 1:
            (folder / f"run-{n}.wandb").write_bytes(b"no such file")
        else:
            (folder / "notes.txt").touch()
    runs = rollbook.open(root)
    assert len(runs) == 200
    assert len(runs.problems) == len(set(map(str, runs.problems))) == 100
