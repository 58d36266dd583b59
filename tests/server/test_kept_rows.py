"""Rows of many runs that one server keeps for the next."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import rollbook
from page_server import client_of, record
from rollbook.book.book import Book
from rollbook.server.frames import unpack
from rollbook.server.settings import Limits

pytestmark = pytest.mark.usefixtures("sealed")


def curve(root: Path, runs: list[str]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """What a new server says of one group."""
    with client_of(root, limits=Limits(kept_runs=2)) as client:
        ask = {"by": [{"name": "all", "runs": runs}], "keys": ["train/return"], "x": "env_step", "points": 50}
        ((header, arrays),) = unpack(client.post("/api/curves", json=ask).content)
        return header["entries"][0], {name: values.tobytes() for name, values in arrays[0].items()}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "runs"


def test_the_next_server_reads_no_run_that_is_as_it_was(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [record(root, "ppo", seed, 1e-3) for seed in range(4)]
    first = curve(root, runs)
    read: list[str] = []
    batch = Book.batch
    monkeypatch.setattr(Book, "batch", lambda book, *a, **k: read.append(book.id) or batch(book, *a, **k))
    assert curve(root, runs) == first
    assert read == []
    folder = next(path.parent for path in root.rglob("run.json") if runs[2] in path.read_text())
    about = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(about | {"notes": "looked at"}))
    curve(root, runs)
    assert read == [runs[2]], "what changed is read anew, and nothing else"


@pytest.mark.parametrize("left", [0.0, 0.2, 0.9])
def test_a_file_that_was_cut_off_costs_nothing_but_time(root: Path, left: float) -> None:
    runs = [record(root, "ppo", seed, 1e-3) for seed in range(3)]
    first = curve(root, runs)
    (kept,) = (root.parent / "cache").rglob("*.rows")
    kept.write_bytes(kept.read_bytes()[: int(left * kept.stat().st_size)])
    assert curve(root, runs) == first


def test_what_a_running_run_says_is_not_kept(root: Path) -> None:
    runs = [record(root, "ppo", seed, 1e-3) for seed in range(3)]
    with rollbook.init("cartpole", "ppo", seed=9, dir=root, sinks=[], keeper="inline") as live:
        for step in range(50):
            live.log({"train/return": float(step)}, env_step=step)
        curve(root, [*runs, live.id])
        (kept,) = (root.parent / "cache").rglob("*.rows")
        assert live.id.encode() not in kept.read_bytes()


def test_what_is_kept_of_runs_is_for_the_eyes_of_its_user_alone(root: Path, tmp_path: Path) -> None:
    for seed in range(4):
        record(root, "ppo", seed, 1e-3, rows=50)
    with client_of(root, limits=Limits(kept_runs=2)) as client:
        runs = [row["run"] for row in client.post("/api/runs", json={"sections": False}).json()["rows"]]
        ask = {"by": [{"name": "all", "runs": runs}], "keys": ["train/return"], "points": 50}
        assert client.post("/api/curves", json=ask).status_code == 200
    cache = tmp_path / "cache"
    files = [path for path in cache.rglob("*") if path.is_file()]
    assert ".rows" in {path.suffix for path in files}
    for path in files:
        inside = [folder for folder in path.parents if folder.is_relative_to(cache)]
        assert any(folder.stat().st_mode & 0o077 == 0 for folder in inside), path
