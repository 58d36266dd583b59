"""Every public read gives its whole answer, once, while a keeper merges the very parts that it is about to read."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from fake_writer import FakeWriter, make_run

import rollbook
from cases import some_of
from rollbook.book import sql as queries
from rollbook.book.book import Book
from rollbook.errors import Damaged
from rollbook.remote import views
from rollbook.remote.push import push
from rollbook.storage import parts
from rollbook.storage.sealing import merge as merging
from rollbook.storage.sealing.folder import seal
from rollbook.system.liveness import identity

pytest.importorskip("duckdb")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five parts of each table that no keeper has merged yet."""
    run = _recorded(tmp_path_factory.mktemp("runs"))
    assert len(list((run / "data" / "samples").glob("*.parquet"))) >= 5
    return run


def _recorded(root: Path) -> Path:
    run = make_run(root)
    writer = FakeWriter(run, **identity())
    lane = writer.lane()
    stream = lane.stream("v", "a", size=1024)
    for part in range(5):
        for step in range(part * 20, part * 20 + 20):
            stream.log(float(step), 0.5, env_step=step)
        for step in range(part * 4, part * 4 + 4):
            lane.chunk("samples", {"sample_id": [f"s{step}"], "item": [f"it {step}"], "reward": [1.0 * step]}, 1)
            lane.chunk("episodes", {"episode_id": [f"e{step}"], "return": [1.0 * step], "length": [3]}, 1)
            lane.chunk("steps", {"episode_id": [f"e{step}"] * 2, "t": [0, 1], "reward": [0.5, 0.5]}, 2)
            lane.chunk("timings", {"name": ["act"], "seconds": [0.25]}, 1)
            lane.chunk("text", {"key": ["note"], "text": [f"n{step}"]}, 1)
            lane.rare({"rare": float(step)}, env_step=step)
        stream.leave()
        lane.roll_log()
        seal(run)
    writer.close()
    seal(run)
    return run


def _plain(answer: Any) -> object:
    """What can be compared: rows in any order."""
    if isinstance(answer, pa.Table):
        return sorted(repr(sorted(row.items())) for row in answer.to_pylist())
    if isinstance(answer, dict):
        return {name: _plain(value) for name, value in answer.items()}
    if isinstance(answer, list):
        return sorted(map(repr, answer))
    if hasattr(answer, "fetchall"):
        return sorted(map(repr, answer.fetchall()))
    if hasattr(answer, "x"):
        return [np.asarray(answer.x).tolist(), np.asarray(answer.mean).tolist()]
    return answer


def _set(book: Book) -> Any:
    """The set of runs that a run lies in."""
    return rollbook.open(book.path.parent.parent)


READS: dict[str, Callable[[Book], Any]] = {
    "metrics": lambda book: book.metrics(),
    "metrics of a key": lambda book: book.metrics(["rare"], x="env_step", start=3, stop=17),
    "arrays": lambda book: {name: cells.tolist() for name, cells in book.arrays(["v"]).items()},
    "series": lambda book: book.series("v", x="env_step"),
    "points": lambda book: book.series("v", x="env_step", points=7),
    "batch": lambda book: book.batch(["v", "rare"], x="env_step"),
    "latest": lambda book: book.latest(),
    "keys": lambda book: book.keys(),
    "canonical": lambda book: book.canonical(),
    "problems": lambda book: book.problems(),
    "row_count": lambda book: book.row_count("steps"),
    **{f"table {name}": (lambda book, name=name: book.table(name)) for name in ("metrics", "samples", "steps", "text")},
    "episodes": lambda book: book.episodes(where='"return" > 3', order_by='"return" desc', limit=9),
    "episode": lambda book: book.episode("e7").steps(),
    "steps": lambda book: book.steps("e5"),
    "samples": lambda book: book.samples(),
    "samples where": lambda book: book.samples("reward > 3", "reward desc"),
    "samples unique": lambda book: book.samples(unique=True),
    "timings": lambda book: book.timings("act"),
    "at": lambda book: book.at(env_step=33),
    "sql of metrics": lambda book: book.sql("select count(*), sum(v), sum(rare) from metrics"),
    "sql of samples": lambda book: book.sql("select count(*), sum(reward) from samples"),
    "sql of two tables": lambda book: book.sql("select (select sum(v) from metrics) + count(*) from steps"),
    "tail": lambda book: [row.values for row in book.tail(from_start=True, stop=lambda: True)],
    "sql of a set": lambda book: _set(book).sql("select sum(reward), count(*) from samples"),
    "series of a set": lambda book: next(iter(_set(book).series(["v"], x="env_step", points=9).values())),
    "table of a set": lambda book: _set(book).table(metrics={"v": "last"})["v"].to_pylist(),
}


def _scans(read: str, moment: str) -> bool:
    """Whether a read comes by such a moment: DuckDB reads a run's own files for it."""
    return read.startswith(("sql of", "samples ", "episodes")) and not (read == "sql of a set" and "chosen" in moment)


MOMENTS = {
    "parts are listed": (parts.OpenParts, "parts"),
    "parts are open": (parts.Part, "_open"),
    "files are chosen": (Book, "scan"),
    "views are made": (queries, "_create"),
}


@pytest.fixture(autouse=True)
def scanned(tuned: Callable[..., None]) -> None:
    """Few rows are many."""
    tuned(scan_rows=1)
    tuned(near_rows=1)


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Have something happen once, right after a moment of a read."""

    def at(moment: str, event: Callable[[], object], *, always: bool = False) -> list[str]:
        owner, name = MOMENTS[moment]
        happened: list[str] = []
        own, busy = getattr(owner, name), []

        def then(*arguments: Any, **named: Any) -> Any:
            answer = own(*arguments, **named)
            if not busy and (always or not happened):
                busy.append(1)
                event()
                busy.clear()
                happened.append(moment)
            return answer

        monkeypatch.setattr(owner, name, then)
        return happened

    return at


@pytest.fixture(scope="module")
def merged(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run after its parts were merged."""
    folder = tmp_path_factory.mktemp("merged") / run.name
    shutil.copytree(run, folder)
    problems: list[str] = []
    assert merging.merge(str(folder), final=True, problems=problems) >= 5
    assert problems == []
    return folder


def _merge(folder: Path, merged: Path) -> None:
    """What merging does to the files of the run: new ones come whole, then those go that are in them."""
    names = [{path.relative_to(root) for path in root.rglob("*") if path.is_file()} for root in (folder, merged)]
    for name in sorted(names[1]):
        if name not in names[0] or (folder / name).read_bytes() != (merged / name).read_bytes():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / f"{name}.tmp").write_bytes((merged / name).read_bytes())
            (folder / f"{name}.tmp").replace(folder / name)
    gone = [name for name in names[0] - names[1] if name.suffix == ".parquet"]
    assert len(gone) >= 10
    for name in gone:
        (folder / name).unlink()


@pytest.mark.parametrize(
    ("read", "moment"),
    some_of(
        [
            (read, moment)
            for read in READS
            for moment in MOMENTS
            if ("are chosen" not in moment and "are made" not in moment) or _scans(read, moment)
        ],
        lambda case: (list(READS).index(case[0]) + list(MOMENTS).index(case[1])) % 7 == 0,
    ),
)
def test_a_read_is_whole_when_its_parts_are_merged_under_it(
    run: Path, merged: Path, tmp_path: Path, meanwhile: Callable[..., list[str]], read: str, moment: str
) -> None:
    whole = _plain(READS[read](Book(run)))
    folder = tmp_path / "runs" / run.parent.name / run.name
    shutil.copytree(run, folder)
    happened = meanwhile(moment, lambda: _merge(folder, merged))
    assert _plain(READS[read](Book(folder))) == whole
    assert happened
    assert _plain(READS[read](Book(folder))) == whole  # after the end, too


@pytest.mark.parametrize(
    "read", some_of(["metrics", "samples where", "sql of samples", "series", "samples", "sql of metrics"], 3)
)
def test_a_read_from_a_store_is_whole_when_the_run_is_merged_and_shipped_again(
    run: Path,
    merged: Path,
    tmp_path: Path,
    meanwhile: Callable[..., list[str]],
    monkeypatch: pytest.MonkeyPatch,
    read: str,
) -> None:
    monkeypatch.setenv("ROLLBOOK_CACHE", str(tmp_path / "cache"))
    views.forget()
    folder = tmp_path / "runs" / "project" / run.name
    shutil.copytree(run, folder)
    push(folder, f"{tmp_path}/store")
    whole = _plain(READS[read](Book(run)))

    def ship() -> None:
        _merge(folder, merged)
        push(folder)
        views.freshen(views.folder_of(f"{tmp_path}/store", f"project/{run.name}"), seconds=0)

    happened = meanwhile("views are made" if read.startswith(("sql", "samples ")) else "parts are listed", ship)
    assert _plain(READS[read](rollbook.open(f"file://{tmp_path}/store").one())) == whole
    assert happened
    views.forget()


def test_a_query_whose_files_never_stay_ends_in_words(
    run: Path, tmp_path: Path, meanwhile: Callable[..., list[str]]
) -> None:
    folder = tmp_path / run.parent.name / run.name
    shutil.copytree(run, folder)
    (part,) = list((folder / "data" / "metrics" / "wide").glob("*.parquet"))[:1]

    def replace() -> None:
        shutil.copy(part, f"{part}.tmp")
        Path(f"{part}.tmp").replace(part)

    meanwhile("views are made", replace, always=True)
    with pytest.raises(Damaged, match="gone or damaged 12 times"):
        Book(folder).sql("select count(*) from metrics")
