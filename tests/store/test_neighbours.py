"""Folders with a run.json that another tool wrote: listed as such, never read as a run, repaired or changed."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import rollbook
from cases import some_of
from live_copies import copy_live
from rollbook.book.book import Book
from rollbook.book.repair.doctor import repair, verify
from rollbook.cli.app import app
from rollbook.errors import ForeignManifest, NotARun
from rollbook.server.shared.catalogue import Catalogue

PAGES: dict[str, object] = {
    "Isaac Lab": {
        "version": 1,
        "library": "rsl_rl",
        "task": "Isaac-Ant-v0",
        "created_at": "2026-01-01",
        "metadata": {},
    },
    "anything": {"hello": 1},
    "an id of its own": {"id": "abc", "name": "x"},
    "a number": {"id": 7, "format": "json"},
    "a list": [1, 2],
    "no object": "text",
    "empty": None,
    "no JSON": b"run: 1\n",
    "nothing": b"",
    "bytes": bytes(range(256)),
}


def neighbour(folder: Path, page: object) -> Path:
    """The output folder of another tool, with a run.json of its own and a data folder."""
    (folder / "data" / "train").mkdir(parents=True)
    (folder / "data" / "train" / "0.parquet").write_bytes(b"PAR1")
    (folder / "params.yaml").write_text("lr: 1\n")
    (folder / "run.json").write_bytes(page if isinstance(page, bytes) else json.dumps(page).encode())
    return folder


def everything(root: Path) -> dict[str, tuple[bytes | None, int]]:
    """All files and folders below `root`, with what is in them and when they were changed."""
    paths = [Path(at, name) for at, folders, files in os.walk(root) for name in (*folders, *files)]
    return {
        str(path): (path.read_bytes() if path.is_file() else None, path.stat().st_mtime_ns) for path in sorted(paths)
    }


@pytest.mark.parametrize("name", PAGES)
def test_a_neighbours_folder_is_left_as_it_is_whatever_looks_at_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ROLLBOOK_RUN_ID", raising=False)
    theirs = neighbour(tmp_path / "runs" / "p" / "2026-01-01", PAGES[name])
    rollbook.init("p", "ours", dir=tmp_path / "runs", sinks=[], keeper="inline").finish()
    before = everything(theirs)

    for ask in (Book, verify, repair, lambda folder: repair(folder, force=True), rollbook.attach):
        with pytest.raises(ForeignManifest, match="another tool") as seen:
            ask(theirs)  # type: ignore[operator]
        assert "repair" not in str(seen.value)
        assert ("Isaac Lab, rsl_rl" in str(seen.value)) == (name == "Isaac Lab")
    runs = rollbook.open(tmp_path / "runs")
    assert [book.name for book in runs] == ["ours"]
    assert ["another tool" in problem for problem in runs.problems] == [True]
    assert len(rollbook.open(theirs)) == 0
    rollbook.init("p", "2026", dir=tmp_path / "runs", sinks=[], keeper="inline", resume="allow").finish()

    said = ""
    for words in (["ls", "runs"], ["verify", str(theirs)], ["repair", str(theirs)], ["seal", str(theirs)],
                  ["show", str(theirs)], ["ls", str(theirs)], ["plot", str(theirs), "--text"]):  # fmt: skip
        monkeypatch.chdir(tmp_path)
        done = CliRunner().invoke(app, words)
        assert done.exception is None or isinstance(done.exception, SystemExit), words
        said += done.output
    assert "damaged" not in said
    assert "rollbook repair" not in said

    catalogue = Catalogue([str(tmp_path / "runs")])
    for _ in range(3):
        catalogue.refresh(full=True)
        assert len(catalogue.snapshot(60).rows) == 2
        assert ["another tool" in text for text in catalogue.snapshot(60).unreadable] == [True]
    assert everything(theirs) == before


def test_a_run_inside_a_neighbours_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a training of Isaac Lab keeps its book in the folder that Isaac Lab made."""
    monkeypatch.delenv("ROLLBOOK_RUN_ID", raising=False)
    theirs = neighbour(tmp_path / "logs", PAGES["Isaac Lab"])
    rollbook.init("p", "n", dir=theirs, sinks=[], keeper="inline").finish()
    for root in (tmp_path, theirs):
        assert [book.name for book in rollbook.open(root)] == ["n"]
        catalogue = Catalogue([str(root)])
        catalogue.refresh()
        catalogue.refresh()
        assert [row.about["name"] for row in catalogue.snapshot(60).rows.values()] == ["n"]


@pytest.mark.parametrize(
    ("content", "moment"),
    some_of(
        itertools.product([b"", b"{", b"[]", b'{"hello": 1}', b"\x00\x01", None], ["just begun", "finished"]),
        lambda case: (case[0] in (b"", b"[]", None)) == (case[1] == "finished"),
    ),
)
def test_a_damaged_run_json_of_our_own_is_repaired_at_any_time_of_a_run(
    content: bytes | None, moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run is known by what else lies in its folder, from its first moment to its last."""
    monkeypatch.delenv("ROLLBOOK_RUN_ID", raising=False)
    run = rollbook.init("p", "n", dir=tmp_path / "a", sinks=[], keeper="inline")
    if moment == "finished":
        run.log({"x": 1.0}, env_step=1)
        run.finish()
    folder = copy_live(run.folder, tmp_path / "b" / "p" / run.folder.name)
    run.finish()
    page: Any = folder / "run.json"
    page.unlink()
    if content is not None:
        page.write_bytes(content)
    for path in folder.glob("data/journal/*/writer.json"):  # of a machine that is gone
        about = json.loads(path.read_text())
        path.write_text(json.dumps({**about, "pid": 2**22 + 1, "start_time": "0"}))
    with pytest.raises(NotARun, match="rollbook repair") as seen:
        Book(folder)
    assert not isinstance(seen.value, ForeignManifest)
    assert verify(folder)
    assert any("rebuilt from" in text for text in repair(folder, force=True))
    assert Book(folder).keys() == (["x"] if moment == "finished" else [])


@pytest.mark.parametrize("verb", [verify, repair])
def test_a_folder_that_is_no_run_at_all_is_not_made_one(verb: Any, tmp_path: Path) -> None:
    for name in ("data", "src"):
        (tmp_path / "project" / name).mkdir(parents=True)
    with pytest.raises(NotARun, match="rollbook ls"):
        verb(tmp_path / "project")
    assert CliRunner().invoke(app, [verb.__name__, str(tmp_path / "project")]).exit_code == 1
    assert sorted(os.listdir(tmp_path / "project")) == ["data", "src"]
    assert os.listdir(tmp_path / "project" / "data") == []
