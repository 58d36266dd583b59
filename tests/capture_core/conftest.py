"""A recorder in memory, as the capture rooms see a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rollbook.clocks import UNKNOWN
from rollbook.errors import LoggingFailed


class FakeRecorder:
    """Keeps what it is told. `strict` raises where a run would warn."""

    def __init__(self, folder: Path, name: str = "", strict: bool = False) -> None:
        self.folder, self.name, self.strict = folder, name, strict
        self.clocks: dict[str, int] = {}
        self.rows: list[tuple[str, dict[str, Any], dict[str, int]]] = []
        self.counts: dict[str, int] = {}
        self.messages: list[str] = []
        self.logged: list[tuple[dict[str, Any], dict[str, Any]]] = []

    def log(self, values: Mapping[str, Any], **clocks: Any) -> None:
        self.clocks.update(clocks)
        self.logged.append((dict(values), clocks))

    def record(
        self,
        table: str,
        columns: Mapping[str, Any],
        n: int = 1,
        *,
        clock_columns: Mapping[str, Any] | None = None,
        time_column: Any = None,
        **clocks: Any,
    ) -> int:
        assert n == 1
        self.clocks.update(clocks)
        readings = {**self.clocks, **{name: values[0] for name, values in (clock_columns or {}).items()}}
        plain = {name: value[0] if isinstance(value, list) else value for name, value in columns.items()}
        self.rows.append((table, plain, {name: r for name, r in readings.items() if r != UNKNOWN}))
        return len(self.rows)

    def clocks_now(self) -> dict[str, int]:
        return dict(self.clocks)

    def count(self, cause: str, n: int = 1, message: str = "") -> None:
        self.counts[cause] = self.counts.get(cause, 0) + n
        if message:
            self.messages.append(message)
            if self.strict:
                raise LoggingFailed(message)


@pytest.fixture
def recorder(tmp_path: Path) -> FakeRecorder:
    folder = tmp_path / "run"
    folder.mkdir()
    return FakeRecorder(folder)


@pytest.fixture
def strict_recorder(tmp_path: Path) -> FakeRecorder:
    folder = tmp_path / "run"
    folder.mkdir(exist_ok=True)
    return FakeRecorder(folder, strict=True)
