"""A run of which one can ask what it was told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import rollbook
from rollbook.schema.clocks import UNKNOWN


class ToldRun:
    """Its verbs are the run's own.

    Attributes:
      rows: (table, cells, clocks) of each row that came by `record`.
      messages: what it would have warned with.
    """

    def __init__(self, root: Path, strict: bool = False) -> None:
        self.run = rollbook.init("p", "r", dir=root, sinks=[], keeper="import", rules=(), strict=strict)
        self.folder = Path(self.run.folder)
        self.rows: list[tuple[str, dict[str, Any], dict[str, int]]] = []
        self.messages: list[str] = []
        self.run.internals.writer.bill._deliver = lambda cause, message: self.messages.append(message)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.run, name)

    def record(
        self,
        table: str,
        columns: Mapping[str, Any],
        n: int = 1,
        *,
        clock_columns: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> int:
        assert n == 1
        seq = self.run.record(table, columns, n, clock_columns=clock_columns, **options)
        readings = {**self.run.clocks_now(), **{name: values[0] for name, values in (clock_columns or {}).items()}}
        cells = {name: value[0] if isinstance(value, list) else value for name, value in columns.items()}
        self.rows.append((table, cells, {name: reading for name, reading in readings.items() if reading != UNKNOWN}))
        return seq

    @property
    def counts(self) -> dict[str, int]:
        return dict(self.run.internals.writer.bill.counts)


@pytest.fixture(autouse=True)
def _sealing_has_tests_of_its_own(request: pytest.FixtureRequest) -> None:
    """Runs that a test records are not sealed, those of a module are; see `sealed`."""
    if "sealed" not in request.fixturenames:
        request.getfixturevalue("nothing_is_sealed")


@pytest.fixture
def recorder(tmp_path: Path, nothing_is_sealed: None) -> Iterator[ToldRun]:
    told = ToldRun(tmp_path)
    yield told
    told.run.finish()


@pytest.fixture
def strict_recorder(tmp_path: Path, nothing_is_sealed: None) -> Iterator[ToldRun]:
    told = ToldRun(tmp_path, strict=True)
    yield told
    told.run.finish()
