"""GoodSeed's runs: `projects/<project>/runs/<run>.sqlite`, the tables of goodseed 0.4."""

from __future__ import annotations

import contextlib
import datetime
import json
from pathlib import Path

from rollbook.formats.importers._database import UNREADABLE, damaged, has_tables, is_unlisted, opened, with_log
from rollbook.formats.importers._metadata import with_own_names
from rollbook.formats.importers._plain import plain
from rollbook.protocols import ForeignRun, Row
from rollbook.schema.counters import clocks_of
from rollbook.schema.seeds import named_seed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

_STATUS = {"finished": "finished", "failed": "crashed", "aborted": "killed", "killed": "killed"}


class GoodSeed:
    """GoodSeed's runs (`*.sqlite`): metrics, texts, configuration, project, tags, status.

    Points of one moment and step are one row. Steps that are not whole numbers are kept as `clock/step`.

    Args:
      clock: the clock that GoodSeed's steps count.
    """

    name = "goodseed"
    what = "GoodSeed run"
    files = ("runs/*.sqlite",)

    def __init__(self, clock: str = "step") -> None:
        self._clock = clock

    def finds(self, path: Path) -> bool:
        """Whether there is such a database."""
        return bool(_files(path))

    def runs(self, path: Path) -> Iterable[ForeignRun]:
        """A run for each database, with its recorded name, and its file's name if two have the same name."""
        made = [self._run(file) for file in _files(path) or ([path] if path.is_file() else [])]
        return with_own_names((run, run.files[0].stem) for run in made)

    def _run(self, file: Path) -> ForeignRun:
        try:
            with contextlib.closing(opened(file)) as database:
                meta = {str(key): value for key, value in database.execute("select key, value from run_meta")}
                attributes = {
                    str(path): _value(kind, value)
                    for path, kind, value in database.execute("select path, type_tag, value from configs")
                }
        except UNREADABLE:
            return damaged(file)
        config = {
            path: value
            for path, value in attributes.items()
            if not path.startswith(("sys/", "source_code/", "monitoring/"))
        }
        run = ForeignRun(str(attributes.get("sys/name") or meta.get("run_id") or file.stem), config=config)
        run.seed, run.project = named_seed(config), str(meta.get("project") or file.parent.parent.name)
        tags = attributes.get("sys/tags")
        run.tags = tuple(map(str, tags)) if isinstance(tags, list) else ()
        run.clocks, run.files = (self._clock,), with_log(file)
        run.status = _STATUS.get(str(meta.get("status", "finished")), "crashed")
        run.give(
            {
                "metrics": lambda: self._rows(file, run, "metric", "y"),
                "texts": lambda: self._rows(file, run, "string", "value"),
            }
        )
        return run

    def _rows(self, file: Path, run: ForeignRun, kind: str, column: str) -> Iterator[Row]:
        query = (
            f"select ts, step, path, {column} from {kind}_points join {kind}_series on id = series_id "
            f"order by {kind}_points.rowid"
        )
        values: dict[str, Any] = {}
        moment: tuple[float, float] | None = None
        try:
            with contextlib.closing(opened(file)) as database:
                for stamp, step, path, value in database.execute(query):
                    if not isinstance(stamp, (int, float)) or not isinstance(step, (int, float)) or step != step:
                        run.lose("points without a time or a step")
                        continue
                    if moment != (stamp, step) or path in values:
                        if moment is not None:
                            yield self._row(moment, values)
                        moment, values = (stamp, step), {}
                    values[str(path)] = value
        except UNREADABLE:
            run.lose("rows of a damaged database")
        if moment is not None:
            yield self._row(moment, values)

    def _row(self, moment: tuple[float, float], values: dict[str, Any]) -> Row:
        stamp, step = moment
        clocks = clocks_of(values)
        if abs(step) < 2**53 and step == int(step):
            return Row(float(stamp), {**clocks, self._clock: int(step)}, values)
        return Row(float(stamp), clocks, {**values, f"clock/{self._clock}": step})


def _value(kind: object, value: object) -> object:
    text = str(value)
    if kind == "string_set":
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    if kind == "bool":
        return text.lower() in ("true", "1")
    if kind == "datetime":
        with contextlib.suppress(ValueError):
            return datetime.datetime.fromisoformat(text).isoformat()
    return plain(text) if kind in ("int", "float") else value


def _files(path: Path) -> list[Path]:
    if path.is_file():
        files = [path] if path.suffix == ".sqlite" else []
    else:
        files = sorted(file for file in path.glob("*.sqlite") if file.is_file()) if path.is_dir() else []
    wanted = {"run_meta", "configs", "metric_series", "metric_points"}
    return [file for file in files if has_tables(file, wanted) or is_unlisted(file)]
