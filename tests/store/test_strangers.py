"""A run folder of a stranger: what is no regular file is neither opened, followed nor written through."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_writer import FakeWriter, make_run

from cases import some_of
from rollbook.book.book import Book
from rollbook.book.repair.doctor import repair, verify
from rollbook.errors import Damaged
from rollbook.storage.sealing.folder import seal

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links and pipes as POSIX has them")

FOLDERS = ["aside", "metrics", "metrics/wide", "metrics/long", "journal", "journal/w1", "keeper", "pyramid", "episodes"]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = make_run(tmp_path / "runs")
    writer = FakeWriter(folder)
    lane = writer.lane()
    stream = lane.stream("a")
    for step in range(1200):
        stream.log(float(step), env_step=step)
    lane.rare({"b": 1.0}, env_step=1)
    writer.close()
    return folder


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    for name in ("x.tmp", "notes.log", "w1.L00.S000.1.parquet", "L00.frames.0.log", "L00.S000.0.seg"):
        (folder / name).write_bytes(b"mine")
    return folder


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("place", "sealed"),
    some_of(
        [(place, sealed) for place in FOLDERS for sealed in (False, True)],
        lambda case: case[1] == (case[0] in FOLDERS[1:8:2] or case[0].startswith("metrics/")),
    ),
)
def test_nothing_is_written_through_a_linked_folder(run: Path, outside: Path, place: str, sealed: bool) -> None:
    if sealed:
        seal(run, final=True, take_over=True)
    target = run / "data" / place
    if target.exists():
        shutil.rmtree(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.symlink_to(outside, target_is_directory=True)
    before = _files(outside)
    seal(run, final=True, take_over=True)
    assert any(str(target) in text for text in verify(run)) or place == "aside"
    Book(run).metrics()
    assert any(str(target) in text for text in repair(run, force=True))
    assert _files(outside) == before
    lost = [text for text in verify(run) if "is not here" in text]  # the rows that lay where the link lies now
    assert verify(run) == lost
    assert bool(lost) == (sealed and place.startswith("metrics"))
    assert not any(path.is_symlink() for path in (run / "data").rglob("*") if "aside" not in path.parts)


def test_a_run_whose_data_is_a_link_is_not_repaired_through_it(run: Path, tmp_path: Path) -> None:
    (run / "data").rename(tmp_path / "elsewhere")
    (run / "data").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    with pytest.raises(Damaged, match="is a link"):
        repair(run, force=True)


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch, socket.socket(socket.AF_UNIX) as made:
        patch.chdir(path.parent)  # a socket's path is short
        made.bind(path.name)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


NAMES = [
    "data/journal/w1/L00.S007.0.seg",
    "data/journal/w1/L00.frames.9.log",
    "data/journal/w2/writer.json",
    "data/journal/w1/closed.json",
    "data/metrics/wide/w1.L00.S009.1.parquet",
    "data/metrics/long/merged.007.parquet",
    "data/episodes/w1.L00.F.1.parquet",
    "data/fills/w1.L00.F.1.parquet",
    "data/pyramid/metrics.w1.L00.S000.1.pyr",
    "data/keeper/durable.json",
    "data/keeper/heartbeat",
    "data/keeper/finished.json",
    "data/abandoned.parquet",
    "data/writers.parquet",
    "data/metrics/wide/0.columns.parquet",
]
MAKERS = [_pipe, _socket, _device]


@pytest.mark.parametrize(
    ("name", "make"),
    some_of(
        [(name, make) for name in NAMES for make in MAKERS],
        lambda case: MAKERS.index(case[1]) == NAMES.index(case[0]) % len(MAKERS),
    ),
)
def test_a_pipe_or_device_in_the_place_of_a_file_is_passed_over(
    run: Path, name: str, make: Callable[[Path], None]
) -> None:
    path = run / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    make(path)
    book = Book(run)
    assert book.metrics(["a"]).num_rows == 1200
    book.problems()
    book.latest()
    assert any(str(path) in text for text in verify(run))
    repair(run, force=True)
    assert Book(run).metrics(["a"]).num_rows == 1200
    assert [text for text in verify(run) if str(path) not in text] == []
