"""An import seals its runs in its own process: no other one starts, and what cannot be sealed stays readable."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import rollbook
from rollbook import storage
from rollbook.errors import RollbookWarning
from rollbook.formats import importers


@pytest.fixture
def started(real_sealing_children: None, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What processes are started in this test."""
    seen: list[object] = []

    def refuse(*words: object, **_options: object) -> Any:
        seen.append(words)
        raise OSError("no process may start")

    monkeypatch.setattr("subprocess.Popen", refuse)
    return seen


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "progress.csv"
    file.write_text("step,loss\n" + "".join(f"{n},{n / 8}\n" for n in range(1500)))
    return file


def test_an_import_starts_no_process_and_leaves_nothing_in_the_journal(
    source: Path, tmp_path: Path, started: list[object]
) -> None:
    (done,) = importers.import_runs(source, dir=tmp_path / "runs")
    assert not started
    assert not [name for _, _, names in os.walk(done.folder / "data" / "journal") for name in names]
    book = rollbook.Book(done.folder)
    assert book.status == "finished"
    assert book.series("loss").mean.tolist() == [n / 8 for n in range(1500)]


def test_a_full_disk_at_the_end_of_an_import_is_reported_and_loses_nothing(
    source: Path, tmp_path: Path, started: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_words: object, **_options: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("pyarrow.parquet.write_table", full)
        with pytest.warns(RollbookWarning, match="No space left on device.*rollbook repair"):
            (done,) = importers.import_runs(source, dir=tmp_path / "runs")
    assert rollbook.Book(done.folder).series("loss").mean.tolist() == [n / 8 for n in range(1500)]
    assert not started
    assert not storage.seal(done.folder, final=True).problems
    assert rollbook.Book(done.folder).series("loss").mean.tolist() == [n / 8 for n in range(1500)]
