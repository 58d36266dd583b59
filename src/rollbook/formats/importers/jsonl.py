"""JSON lines: metrics.jsonl of Dreamer, prime-rl and Tinker, progress.json of SB3, result.json of Ray Tune."""

from __future__ import annotations

import functools
import itertools
import json
import os
from pathlib import Path

from rollbook.formats.importers._contents import number_in
from rollbook.formats.importers._labels import labels_of
from rollbook.formats.importers._metadata import describe
from rollbook.protocols import ForeignRun, Row
from rollbook.schema.counters import clock_columns, clocks_of, is_reading, standing, x_clock
from rollbook.system.files import pasted, run_name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

_NAMES = ("metrics.jsonl", "scores.jsonl", "progress.json", "result.json")
_TIMES = ("timestamp", "_timestamp", "time", "wall_time", "created")
_ELAPSED = ("time_total_s", "_runtime", "time/time_elapsed", "elapsed", "time/total", "time")
_EARLIEST = 1e8
"""Smaller numbers are not unix seconds but seconds since the start."""

_LONGEST_LINE = 64 * 1024 * 1024


class JsonLines:
    """Files with one JSON object a line: metrics.jsonl, scores.jsonl, progress.json, result.json, or any *.jsonl.

    The files of a folder with the known names make one run, others one each. Its configuration comes from files next to
    them (params.json, config.yaml, `.hydra` …) and from `config` in the lines of Ray Tune's result.json. Nested names
    are joined with "/". NaN and Infinity may be bare. Lines that are no objects are left out and counted.

    Args:
      clock: a name that is a clock in each line, "NAME" or "NAME=clock"; in addition to the detected ones.
    """

    name = "jsonl"
    what = "JSON lines"
    files = _NAMES
    looks_into = (".jsonl", ".ndjson")

    def __init__(self, clock: str = "") -> None:
        column, _, called = str(clock).partition("=")
        self._column, self._clock = column, called or column.rpartition("/")[2]
        self.refused: dict[Path, str] = {}

    def finds(self, path: Path) -> bool:
        """Whether it is such a file, or a folder that holds one."""
        return any(_first_object(file) is not None for file in _files(path))

    def runs(self, path: Path) -> Iterable[ForeignRun]:
        """One run of the files with known names, and one for each further file whose lines have an x-axis."""
        base = path.resolve()
        if path.is_file():
            run = self._run(base.parent, [path])
            run.name = run.part = base.stem
            return [run]
        files = _files(path)
        runs = [self._run(base, files)] if files else []
        further = [file for file in _others(base, files) if self._has_axis(file)]
        for file in further:
            run = self._run(base, [file])
            if runs or len(further) > 1:
                run.part = file.stem
                run.name = f"{run.name}-{run.part}"
            runs.append(run)
        return runs

    def _run(self, folder: Path, files: list[Path]) -> ForeignRun:
        run = ForeignRun(run_name_of(folder), files=files, folder=folder)
        run.clocks = (self._clock,) if self._clock else ()
        firsts = [_first_object(file) or {} for file in files]
        configs = [record for first in firsts if isinstance(record := first.get("config"), dict)]
        describe(run, folder, configs[0] if configs else None)
        if any(file.name == "result.json" and "trial_id" in first for file, first in zip(files, firsts, strict=True)):
            run.made_by = "Ray Tune results"
        run.give({file.name: functools.partial(self._rows, file, run) for file in files})
        return run

    def _has_axis(self, file: Path) -> bool:
        """Whether the lines of a file of any name are rows: numbers along something like a step."""
        first = _first_object(file)
        if first is None:
            return False
        values: dict[str, Any] = {}
        _flatten("", first, values, ForeignRun(""))
        numbers = [name for name, value in values.items() if isinstance(value, (int, float))]
        if len(numbers) > 1 and (self._axis_of(file, values) or (self._column and self._column in values)):
            return True
        if len(numbers) > 1:
            self.refused[file] = (
                f"Which value of {file.name} is the x-axis would be a guess: say it with rollbook label "
                f"{pasted(file)} x=NAME ({', '.join(numbers[:8])})"
            )
        return False

    def _axis_of(self, file: Path, values: dict[str, Any]) -> str:
        """What the lines of a file of any name are ordered by; "" if it is unknown."""
        named = str(labels_of(file).get("x", ("", ""))[0])
        stat = os.stat(file)
        still = _still(file, stat.st_mtime_ns, stat.st_size)
        return named if named in values else next((name for name in values if x_clock(name) and name not in still), "")

    def _rows(self, file: Path, run: ForeignRun) -> Iterator[Row]:
        start: float | None = None
        stat = os.stat(file)
        still = _still(file, stat.st_mtime_ns, stat.st_size)
        for record in objects(file, run):
            if file.name == "result.json":
                record.pop("config", None)
            if set(record) == {"step", "data"} and isinstance(record["data"], dict):  # verl's file logger
                record = {"step": record["step"], **record["data"]}
            values: dict[str, Any] = {}
            _flatten("", record, values, run)
            stamp = next((values.pop(name) for name in _TIMES if _is_unix(values.get(name))), None)
            if stamp is None:
                if start is None:
                    start = _start_of(file)
                passed = next((values[name] for name in _ELAPSED if isinstance(values.get(name), (int, float))), 0.0)
                stamp = start + (passed if 0 <= passed < _EARLIEST else 0.0)
            clocks = clocks_of(values, clock_columns(name for name in values if name not in still) if still else None)
            if not clocks and file.name not in _NAMES and (axis := self._axis_of(file, values)):
                clocks = {x_clock(axis) or "step": int(values[axis])} if is_reading(values[axis]) else {}
            reading = values.get(self._column) if self._column else None
            if isinstance(reading, (int, float)) and reading == int(reading):
                clocks[self._clock] = int(reading)
            if values:
                yield Row(float(stamp), clocks, values)


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path] if path.suffix == ".jsonl" or path.name in _NAMES else []
    if not path.is_dir():
        return []
    return [path / name for name in _NAMES if (path / name).is_file()]


def _others(folder: Path, known: list[Path]) -> list[Path]:
    """The files with lines of JSON under names that say nothing."""
    names = sorted(os.listdir(folder))
    files = [folder / name for name in names if name.endswith((".jsonl", ".ndjson"))]
    return [file for file in files if file not in known and file.is_file()]


def objects(file: Path, run: ForeignRun) -> Iterator[dict[str, Any]]:
    """The JSON objects of a file, one per line; other lines are counted. Up to a line that is still being written."""
    with open(file, "rb") as stream:
        while line := stream.readline(_LONGEST_LINE):
            record = _parsed(line)
            is_half = not line.endswith(b"\n") and len(line) < _LONGEST_LINE
            if isinstance(record, dict):
                yield record
            elif line.strip():
                count, what = (run.leave_out, "half written") if is_half else (run.lose, "no JSON object")
                count(f"lines that are {what}")
            if is_half:
                return


@functools.lru_cache(maxsize=4096)
def _still(file: Path, _changed: int, _size: int) -> frozenset[str]:
    """The counters that do not move in the first lines."""
    rows: list[dict[str, Any]] = []
    for record in itertools.islice(objects(file, ForeignRun("")), 10):
        rows.append({})
        _flatten("", record, rows[-1], ForeignRun(""))
    return standing(rows)


def _parsed(line: bytes) -> object:
    try:
        return json.loads(line.decode("utf-8", "backslashreplace"))
    except (ValueError, RecursionError):
        return None


def _first_object(file: Path) -> dict[str, Any] | None:
    try:
        with open(file, "rb") as stream:
            record = _parsed(stream.readline(_LONGEST_LINE))
    except OSError:
        return None
    return record if isinstance(record, dict) else None


def _flatten(prefix: str, value: object, values: dict[str, Any], run: ForeignRun) -> None:
    if isinstance(value, dict):
        for name, inner in value.items():
            _flatten(f"{prefix}/{name}" if prefix else str(name), inner, values, run)
    elif isinstance(value, (bool, int, float, str)):
        values[prefix] = number_in(prefix, value) if isinstance(value, str) else value
    elif isinstance(value, list):
        run.leave_out("lists")


def _is_unix(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and _EARLIEST <= value < 7e9


def _start_of(file: Path) -> float:
    """The start of a file without times: its modification time minus the elapsed time in its last line."""
    written = os.stat(file).st_mtime
    last = 0.0
    for record in objects(file, ForeignRun("")):
        values: dict[str, Any] = {}
        _flatten("", record, values, ForeignRun(""))
        passed = next((values[name] for name in _ELAPSED if isinstance(values.get(name), (int, float))), 0.0)
        if 0 <= passed < _EARLIEST:
            last = max(last, float(passed))
    return written - last
