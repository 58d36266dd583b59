"""Trackio's databases: `<project>.db` in `$TRACKIO_DIR`, the tables of trackio/sqlite_storage.py."""

from __future__ import annotations

import contextlib
import datetime
import functools
import json
import sqlite3
from pathlib import Path

from rollbook.formats.importers._database import UNREADABLE, damaged, has_tables, is_unlisted, opened, with_log
from rollbook.formats.importers._plain import flat
from rollbook.protocols import ForeignRun, Row
from rollbook.schema.counters import clocks_of
from rollbook.schema.seeds import named_seed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

_WORDS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
"""Numbers that JSON lacks, as Trackio writes them."""


class Trackio:
    """Trackio's databases (`<project>.db`): metrics, system metrics as `system/…`, configuration, group.

    Trackio's step is the clock `step`; counters such as `global_step` are also clocks. Nested names are joined with
    "/". Images, tables, traces and alerts among the metrics are left out and counted.

    Args:
      clock: the clock that Trackio's steps count.
    """

    name = "trackio"
    what = "Trackio run"
    files = ("*.db",)

    def __init__(self, clock: str = "step") -> None:
        self._clock = clock

    def finds(self, path: Path) -> bool:
        """Whether there is such a database."""
        return bool(_files(path))

    def runs(self, path: Path) -> Iterable[ForeignRun]:
        """A run for each run of each database, with its name."""
        for file in _files(path):
            try:
                yield from self._of_database(file)
            except UNREADABLE:
                yield damaged(file)
        if path.is_file() and not _files(path):
            yield damaged(path)

    def _of_database(self, file: Path) -> list[ForeignRun]:
        with contextlib.closing(opened(file)) as database:
            by = "run_id" if "run_id" in _columns(database, "metrics") else "run_name"
            found = database.execute(
                f"select {by}, min(run_name) from metrics where {by} is not null group by {by} order by min(id)"
            ).fetchall()
            configs = _configs(database)
        names = [str(name) for _id, name in found]
        made = []
        for run_id, name in found:
            stored_config = configs.get(run_id, configs.get(name, {}))
            group = stored_config.get("_Group")
            config = {key: value for key, value in stored_config.items() if not str(key).startswith("_")}
            called = str(name) if names.count(str(name)) == 1 else f"{name}-{run_id}"
            run = ForeignRun(called, config=config, seed=named_seed(config), project=file.stem)
            run.group = group if isinstance(group, str) and group else None
            run.clocks, run.files = (self._clock,), with_log(file)
            run.give(
                {
                    "metrics": functools.partial(self._rows, file, run, by, run_id),
                    "system": functools.partial(self._system, file, run, by, run_id),
                }
            )
            made.append(run)
        return made

    def _rows(self, file: Path, run: ForeignRun, by: str, run_id: object) -> Iterator[Row]:
        query = f"select timestamp, step, metrics from metrics where {by} = ? order by id"
        for moment, step, values in _rows_of(file, run, query, run_id):
            clocks = clocks_of(values)
            if isinstance(step, int):
                clocks[self._clock] = step
            yield Row(moment, clocks, values)

    def _system(self, file: Path, run: ForeignRun, by: str, run_id: object) -> Iterator[Row]:
        query = f"select timestamp, null, metrics from system_metrics where {by} = ? order by id"
        for moment, _step, values in _rows_of(file, run, query, run_id, optional=True):
            yield Row(moment, {}, {f"system/{key.removeprefix('system/')}": value for key, value in values.items()})


def _rows_of(
    file: Path, run: ForeignRun, query: str, run_id: object, optional: bool = False
) -> Iterator[tuple[float, Any, dict[str, Any]]]:
    try:
        with contextlib.closing(opened(file)) as database:
            for stamp, step, text in database.execute(query, (run_id,)):
                try:
                    moment = datetime.datetime.fromisoformat(str(stamp))
                    parsed = json.loads(text)
                except (ValueError, TypeError, RecursionError):
                    run.lose("rows that cannot be read")
                    continue
                values: dict[str, Any] = {}
                flat("", parsed, values, run.leave_out)
                values = {
                    key: _WORDS.get(value, value) if isinstance(value, str) else value for key, value in values.items()
                }
                if values:
                    aware = moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
                    yield aware.timestamp(), step, values
    except UNREADABLE:
        if not optional:
            run.lose("rows of a damaged database")


def _configs(database: sqlite3.Connection) -> dict[object, dict[str, Any]]:
    configs: dict[object, dict[str, Any]] = {}
    try:
        columns = _columns(database, "configs")
        by = "run_id" if "run_id" in columns else "run_name"
        for name, run_id, text in database.execute(f"select run_name, {by}, config from configs order by id"):
            with contextlib.suppress(ValueError, TypeError, RecursionError):
                parsed = json.loads(text)
                if isinstance(parsed, dict):
                    configs[name] = configs[run_id] = parsed
    except UNREADABLE:
        pass
    return configs


def _columns(database: sqlite3.Connection, table: str) -> set[str]:
    return {str(row[1]) for row in database.execute(f"pragma table_info({table})")}


def _files(path: Path) -> list[Path]:
    files = [path] if path.is_file() else sorted(path.glob("*.db")) if path.is_dir() else []
    return [
        file
        for file in files
        if file.suffix == ".db" and (has_tables(file, {"metrics", "configs"}, {"runs"}) or is_unlisted(file))
    ]
