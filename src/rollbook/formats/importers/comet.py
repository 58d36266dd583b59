"""Comet's offline experiments: a zip archive with experiment.json and a line of JSON for each message."""

from __future__ import annotations

import functools
import json
from pathlib import Path

from rollbook.formats.importers._archives import UNREADABLE, archives, content, lines
from rollbook.formats.importers._database import damaged
from rollbook.formats.importers._metadata import with_own_names
from rollbook.formats.importers._plain import nested
from rollbook.formats.importers._points import rows_of
from rollbook.protocols import ForeignRun, Row
from rollbook.schema.seeds import named_seed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

_ABOUT, _MESSAGES = "experiment.json", "messages.json"
_OF_HOST = "sys."
_NUMBERS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_OF_COMET = frozenset({"curr_step", "curr_epoch"})
"""Parameters that Comet logs itself at each step."""

_OTHER = {
    "file_upload": "files",
    "upload_in_memory": "files",
    "remote_file": "files",
    "standard_output": "console output",
    "installed_packages": "lists of packages",
    "os_packages": "lists of packages",
    "graph": "graphs",
}


class Comet:
    """Comet's offline experiments (`*.zip` of `OfflineExperiment`): metrics, parameters, name, project, tags.

    Values of one moment, step and epoch are one row; `sys.…` are `system/…`; `log_other` makes notes.

    Args:
      clock: the clock that Comet's steps count.
    """

    name = "comet"
    what = "Comet offline experiment"
    files = (_MESSAGES,)
    looks_into = (".zip",)

    def __init__(self, clock: str = "step") -> None:
        self._clock = clock

    def finds(self, path: Path) -> bool:
        """Whether there is such an archive, or its files in a folder."""
        return bool(archives(path, {_ABOUT, _MESSAGES}))

    def runs(self, path: Path) -> Iterable[ForeignRun]:
        """A run for each archive, with the name that it was given."""
        found = archives(path, {_ABOUT, _MESSAGES})
        made = [self._run(archive) for archive in found or ([path] if path.is_file() else [])]
        return with_own_names((run, run.key or "") for run in made)

    def _run(self, archive: Path) -> ForeignRun:
        try:
            about = json.loads(content(archive, _ABOUT))
            messages = _described(archive)
        except (*UNREADABLE, RecursionError):
            return damaged(archive)
        if not isinstance(about, dict):
            return damaged(archive)
        name, config, notes = messages
        run = ForeignRun(name or archive.stem, config=config, seed=named_seed(config), notes=notes)
        run.project = str(about.get("project_name") or "") or None
        run.key = str(about.get("offline_id") or archive.stem)
        run.tags = tuple(sorted(map(str, about.get("tags") or ())))  # Comet keeps a set
        run.started, run.ended = _seconds(about.get("start_time")), _seconds(about.get("stop_time"))
        run.files = [archive] if archive.is_file() else [archive / _MESSAGES, archive / _ABOUT]
        run.clocks = (self._clock,)
        run.rows = functools.partial(self._rows, archive, run)
        return run

    def _rows(self, archive: Path, run: ForeignRun) -> Iterator[Row]:
        run.left_out.clear()
        return rows_of(self._points(archive, run))

    def _points(self, archive: Path, run: ForeignRun) -> Iterator[tuple[float, dict[str, int], str, float]]:
        for kind, payload in _messages(archive, run):
            if kind != "metric_msg":
                if kind in _OTHER:
                    run.leave_out(_OTHER[kind])
                continue
            try:
                metric, moment = payload["metric"], float(payload["local_timestamp"]) / 1000
                key, value = str(metric["metricName"]), _number(metric["metricValue"])
                readings = {self._clock: metric.get("step"), "epoch": metric.get("epoch")}
                clocks = {name: int(reading) for name, reading in readings.items() if reading is not None}
            except (KeyError, TypeError, ValueError):
                run.lose("metrics that are no numbers")
                continue
            yield moment, clocks, f"system/{key.removeprefix(_OF_HOST)}" if key.startswith(_OF_HOST) else key, value


def _number(value: object) -> float:
    if isinstance(value, str):
        return _NUMBERS[value] if value in _NUMBERS else float(value)
    if not isinstance(value, (int, float)):
        raise TypeError
    return value


def _messages(archive: Path, run: ForeignRun) -> Iterator[tuple[str, dict[str, Any]]]:
    """(kind, content) of each message."""
    try:
        for line in lines(archive, _MESSAGES):
            try:
                message = json.loads(line)
                yield str(message["type"]), dict(message["payload"])
            except (ValueError, KeyError, TypeError, RecursionError):
                run.lose("lines that are no message")
    except UNREADABLE:
        run.lose("archives that end early or are damaged")


def _described(archive: Path) -> tuple[str, dict[str, Any], str]:
    """The name of an experiment, its parameters (`net|size` is `size` of `net`), and what else was noted."""
    name, params, notes = "", {}, []  # type: str, dict[str, Any], list[str]
    for kind, payload in _messages(archive, ForeignRun("")):
        if kind == "parameter_msg" and isinstance(param := payload.get("param"), dict):
            if param.get("source") != "auto-logged" and param.get("paramName") not in _OF_COMET:
                params[str(param.get("paramName"))] = param.get("paramValue")
        elif kind == "log_other" and payload.get("key") == "Name":
            name = str(payload.get("value"))
        elif kind == "log_other" and payload.get("key") not in ("offline_experiment", "hasNestedParams"):
            notes.append(f"{payload.get('key')}: {payload.get('value')}")
    return name, nested(params, "|"), "\n".join(notes)


def _seconds(milliseconds: object) -> float | None:
    return float(milliseconds) / 1000 if isinstance(milliseconds, (int, float)) else None
