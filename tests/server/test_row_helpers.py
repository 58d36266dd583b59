"""Rows of a thousand runs, read by several processes."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

import rollbook
from cases import some_of
from page_server import client_of, record
from rollbook.server.curves import row_helpers
from rollbook.server.curves.kept_rows import Rows
from rollbook.server.frames import unpack
from rollbook.server.settings import Limits

pytestmark = pytest.mark.usefixtures("sealed")


def curves(
    root: Path, runs: list[str], x: str | None, helpers: int
) -> tuple[list[dict[str, Any]], list[dict[str, bytes]]]:
    """What a new server says of two keys of one group that so many helpers read, however few the runs are."""
    with client_of(root, limits=Limits(kept_runs=2, helpers=helpers)) as client:
        groups = [{"name": "all", "runs": runs}]
        ask: dict[str, Any] = {"by": groups, "keys": ["train/return", "odd/key"], "x": x, "points": 50}
        frames = unpack(client.post("/api/curves", json=ask).content)
        entries = [entry for header, _ in frames for entry in header["entries"]]
        return entries, [
            {name: v.tobytes() for name, v in arrays.items()} for _, many in frames for arrays in many.values()
        ]


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Eight runs: one without the key, one that cannot be read, one with an axis of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "runs"
    names = [record(root, "ppo", seed, 1e-3, rows=40) for seed in range(5)]
    for key, clock in (("odd/key", "env_step"), ("train/return", "epoch")):
        with rollbook.init("cartpole", "odd", dir=root, sinks=[], keeper="inline") as run:
            for step in range(30):
                run.log({key: step / 7}, **{clock: step})
        names.append(run.id)
    broken = record(root, "ppo", 9, 1e-3, rows=40)
    folder = next(path.parent for path in root.rglob("run.json") if broken in path.read_text())
    for part in folder.rglob("data/metrics/*/*.parquet"):
        part.write_bytes(b"PAR1 nothing of ours PAR1")
    return [*names, broken]


@pytest.mark.parametrize("x", some_of(["env_step", None, "relative"], 1))
def test_helpers_read_what_one_process_reads(
    tmp_path: Path, runs: list[str], x: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = curves(tmp_path / "runs", runs, x, 0)
    for kept in (tmp_path / "cache").rglob("*.rows"):
        kept.unlink()
    answered: list[int] = []
    answers = row_helpers.RowHelpers.answers

    def counted(self: row_helpers.RowHelpers) -> dict[tuple[str, str], Rows]:
        rows = answers(self)
        answered.append(len(rows))
        return rows

    monkeypatch.setattr(row_helpers.RowHelpers, "answers", counted)
    assert curves(tmp_path / "runs", runs, x, 2) == alone
    assert answered[0] >= 5, "helpers did read"


def test_a_helper_that_is_killed_costs_time_and_no_row(
    tmp_path: Path, runs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = curves(tmp_path / "runs", runs, "env_step", 0)
    for kept in (tmp_path / "cache").rglob("*.rows"):
        kept.unlink()
    started: list[subprocess.Popen[bytes]] = []

    def killed(*args: Any, **more: Any) -> subprocess.Popen[bytes]:
        helper = popen(*args, **more)
        helper.kill()
        started.append(helper)
        return helper

    popen = subprocess.Popen
    monkeypatch.setattr(row_helpers.subprocess, "Popen", killed)
    assert curves(tmp_path / "runs", runs, "env_step", 2) == alone
    assert len(started) >= 2
    assert all(helper.returncode for helper in started)
