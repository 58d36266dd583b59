"""Runs to log to, and reading them back."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import fake_sb3
import rollbook
from rollbook.run import current, ending
from rollbook.run.run import Run


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Relative paths of a test end up in its own folder; runs that it left open are finished."""
    monkeypatch.chdir(tmp_path)
    for name in ("ROLLBOOK_RUN_ID", "ROLLBOOK_RUN_PID", "ROLLBOOK_DIR", "RANK"):
        monkeypatch.delenv(name, raising=False)
    yield tmp_path
    for run in list(current.opened):
        leave(run)


@pytest.fixture(autouse=True)
def _sealing_has_tests_of_its_own(request: pytest.FixtureRequest) -> None:
    """What an adapter writes is read from the journal; see `sealed`."""
    if "sealed" not in request.fixturenames:
        request.getfixturevalue("nothing_is_sealed")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Have a distribution found in a version, as `importlib.metadata` finds one."""

    def install(name: str, version: str) -> None:
        about = tmp_path / "site" / f"{name.replace('-', '_')}-{version}.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        monkeypatch.syspath_prepend(tmp_path / "site")

    return install


def leave(run: Run) -> None:
    """Stop a run without sealing it: these tests read what was written, and sealing has tests of its own."""
    if run.status == "running":
        run.status = "finished"
        ending.forget(run)
        current.opened.remove(run)
        run._parts.ticker.stop()
        run.internals.writer.close()


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    run = rollbook.init("tests", "adapter", dir=tmp_path / "runs", sinks=(), keeper="import")
    yield run
    leave(run)


@pytest.fixture
def strict_run(tmp_path: Path) -> Iterator[Run]:
    run = rollbook.init("tests", "strict", dir=tmp_path / "runs", sinks=(), keeper="import", strict=True)
    yield run
    leave(run)


def rows(run: Run, *keys: str, x: str | None = None) -> list[tuple[Any, ...]]:
    """(x if given, then the values) of every row that has the first key, in order."""
    table = run.book.metrics(list(keys), x=x)
    names = [*([x] if x else []), *keys]
    return [tuple(row[name] for name in names) for row in table.to_pylist() if row[keys[0]] is not None]


@pytest.fixture(name="rows")
def rows_fixture() -> Any:
    return rows


@pytest.fixture
def sb3_host(monkeypatch: pytest.MonkeyPatch, installed: Callable[[str, str], None]) -> Iterator[ModuleType]:
    """`rollbook.adapters.sb3`, imported where a library with Stable-Baselines3's interface is installed."""
    ours = "rollbook.adapters.sb3"
    before = {name: module for name, module in sys.modules.items() if name.startswith(ours)}
    for name in before:
        del sys.modules[name]
    for name, module in fake_sb3.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    installed("stable-baselines3", "2.9.0")
    yield importlib.import_module(ours)
    for name in [name for name in sys.modules if name.startswith(ours)]:
        del sys.modules[name]
    sys.modules.update(before)
