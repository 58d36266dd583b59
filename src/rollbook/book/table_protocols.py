"""The parts of `Book` that other modules use: for an episode, its videos, and the charts of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from rollbook.book.latest import Latest
from rollbook.book.read_context import Context
from rollbook.book.row_groups import RowGroups
from rollbook.book.scan import Scan
from rollbook.book.series import Series
from rollbook.book.sql import Opened
from rollbook.schema.checkpoint_rows import CheckpointHistory, SavedCheckpoint
from rollbook.schema.manifest import Attempts
from rollbook.schema.problems import Problem
from rollbook.storage import Pieces, RunFiles

T = TypeVar("T")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.schema.manifest import RunJson


class StoredRun(Protocol):
    """The contents of a run's folder as pieces: the part of `Book` used by code that reads them itself."""

    files: RunFiles
    path: Path

    @property
    def info(self) -> RunJson:
        """The content of run.json."""

    def context(self, pieces: Pieces, attempts: Attempts) -> Context:
        """What reading needs to know besides the rows."""


class EpisodeTables(Protocol):
    """The tables of a run about its episodes. `Book` is one; see there for results and errors of each call."""

    @property
    def path(self) -> Path: ...
    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def project(self) -> str: ...
    @property
    def info(self) -> RunJson: ...
    @property
    def clocks(self) -> Sequence[str]: ...

    def table(
        self,
        name: str,
        attempts: Attempts = ...,
        *,
        where: tuple[str, str] | None = ...,
        columns: Sequence[str] | None = ...,
    ) -> pa.Table: ...
    def episodes(self) -> pa.Table: ...
    def media(self) -> pa.Table: ...
    def alerts(self, attempts: Attempts = ...) -> pa.Table: ...
    def checkpoints(self, attempts: Attempts = ..., *, everything: bool = ...) -> pa.Table: ...
    def steps(self, episode_id: str | None = ..., attempts: Attempts = ...) -> pa.Table: ...
    def at(self, rows: int = ..., **clock: int) -> dict[str, Any]: ...


class ChartTables(EpisodeTables, Protocol):
    """The data of the charts of a run."""

    @property
    def attempts(self) -> list[dict[str, Any]]: ...

    def keys(self) -> list[str]: ...
    def canonical(self) -> dict[str, str]: ...
    def series(
        self,
        key: str,
        *,
        x: str | None = ...,
        points: int | None = ...,
        start: float | None = ...,
        stop: float | None = ...,
        attempts: Attempts = ...,
    ) -> Series: ...
    def batch(
        self,
        keys: Sequence[str],
        *,
        x: str | None = ...,
        points: int | None = ...,
        start: float | None = ...,
        stop: float | None = ...,
        attempts: Attempts = ...,
    ) -> dict[str, Series]: ...
    def timings(self, name: str | None = ..., attempts: Attempts = ...) -> pa.Table: ...
    def histograms(self, key: str | None = ..., bins: int | None = ..., attempts: Attempts = ...) -> pa.Table: ...


class ReadRun(ChartTables, Protocol):
    """The parts of `Book` that questions about one run use; see there for each call."""

    @property
    def status(self) -> str: ...
    @property
    def failure(self) -> dict[str, str] | None: ...
    @property
    def seed(self) -> int | None: ...
    @property
    def config(self) -> Mapping[str, Any]: ...
    @property
    def summary(self) -> Mapping[str, Any]: ...
    @property
    def writers(self) -> list[dict[str, Any]]: ...

    def latest(self) -> Latest: ...
    def table_rows(self) -> dict[str, int]: ...
    def problems(self, *, deep: bool = ...) -> list[Problem]: ...
    def checkpoint(self, which: str = ...) -> SavedCheckpoint: ...
    def checkpoint_history(self) -> CheckpointHistory: ...
    def row_count(self, table: str, attempts: Attempts = ...) -> int: ...
    def scan(self, table: str, tries: int = ..., attempts: Attempts = ..., *, streamed: bool = ...) -> Scan: ...
    def asked(
        self, names: Sequence[str], work: Callable[[Opened], T], attempts: Attempts = ..., *, frugal: bool = ...
    ) -> T: ...
    def batch(
        self,
        keys: Sequence[str],
        *,
        x: str | None = ...,
        points: int | None = ...,
        start: float | None = ...,
        stop: float | None = ...,
        attempts: Attempts = ...,
        raw: int = ...,
    ) -> dict[str, Series]: ...
    def metrics(
        self,
        keys: str | Sequence[str] | None = ...,
        *,
        x: str | None = ...,
        start: float | None = ...,
        stop: float | None = ...,
        since: float | None = ...,
        until: float | None = ...,
        attempts: Attempts = ...,
        exact: bool | None = ...,
    ) -> pa.Table: ...


class RolloutTables(ReadRun, Protocol):
    """The tables of a run about its rollouts. `Book` is one; see there for results and errors of each call."""

    def chosen(
        self,
        rows: str,
        where: str | None,
        order_by: str | None,
        limit: int | None,
        attempts: Attempts = ...,
        *,
        of: str | pa.Table = ...,
    ) -> pa.Table: ...
    def row_groups(self, table: str, attempts: Attempts = ...) -> RowGroups: ...


class StoredTables(StoredRun, Protocol):
    """The tables of a run as they are stored. `Book` is one; see there for each call."""

    def scan(self, table: str, tries: int = ..., attempts: Attempts = ...) -> Scan: ...
