"""CSV files: Stable-Baselines3's progress.csv and Monitor files, Spinning Up's progress.txt, or any with a header."""

from __future__ import annotations

import csv
import functools
import json
import os
from pathlib import Path

from rollbook.errors import BadInput
from rollbook.formats.importers._beside import describe
from rollbook.protocols import ForeignRun, Row
from rollbook.schema.counters import SPELLINGS, clock_name, is_reading
from rollbook.system.files import run_name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

_TIMES = ("time", "timestamp", "_timestamp", "wall_time", "Wall time", "created")
_ELAPSED = ("time/time_elapsed", "_runtime", "elapsed", "Time", "time")
_EARLIEST = 1e8
"""Smaller numbers are not unix seconds but seconds since the start."""

_LONGEST_LINE = 16 * 1024 * 1024


class Csv:
    """CSV and tab-separated files with a header, such as progress.csv, and Monitor files.

    All such files of a folder make one run. Columns that are counters of a known framework, or have the name of a
    clock, are clocks. Numbers and texts are values, empty cells are missing. Lines that do not fit the header are left
    out and counted.

    Args:
      clock: columns that are clocks, "COLUMN" or "COLUMN=clock", several with commas; in addition to the detected ones.
      time: the column with each row's time: unix seconds, or seconds since the start if they are small. Without such a
        column, the file's modification time is used.
    """

    name = "csv"
    what = "CSV table"
    files = ("progress.csv", "progress.txt", "monitor.csv", "*.monitor.csv", "metrics.csv")

    def __init__(self, clock: str = "", time: str = "") -> None:
        self._clocks: dict[str, str] = {}
        for word in filter(None, (part.strip() for part in str(clock).split(","))):
            column, _, name = word.rpartition("=")
            self._clocks[column or word] = name if column else clock_name(word) or word.rpartition("/")[2]
        self._time = str(time)

    def finds(self, path: Path) -> bool:
        """Whether it is a CSV file with a header, or a folder that holds some."""
        return any(_header_of(file) is not None for file in _files(path))

    def runs(self, path: Path) -> Iterable[ForeignRun]:
        """One run: all files at `path`."""
        files = _files(path) or ([path] if path.is_file() else [])
        base = path.resolve()
        run = ForeignRun(
            base.stem if path.is_file() else run_name_of(base), files=files, clocks=tuple(self._clocks.values())
        )
        describe(run, base.parent if path.is_file() else base)
        run.give({file.name: functools.partial(self._rows, file, run) for file in files})
        return [run]

    def _rows(self, file: Path, run: ForeignRun) -> Iterator[Row]:
        header = _header_of(file)
        if header is None:
            run.lose("files without a header")
        elif header.monitor is not None:
            yield from self._episodes(file, header, run)
        else:
            yield from self._metrics(file, header, run)

    def _metrics(self, file: Path, header: _Header, run: ForeignRun) -> Iterator[Row]:
        clocks = {name: self._clocks.get(name) or clock_name(name) for name in header.columns}
        for name in self._clocks:
            if name not in clocks:
                raise BadInput(f"import {file}: there is no column {name!r}. It has: {', '.join(header.columns)}")
        taken: set[str] = set()
        for name, clock in clocks.items():  # if two columns are one clock, the first is used and the other is a value
            clocks[name] = "" if clock in taken and name not in self._clocks else clock
            taken.add(clock)
        timed = self._time or next((name for name in (*_TIMES, *_ELAPSED) if name in header.columns), "")
        if self._time and self._time not in header.columns:
            raise BadInput(f"import {file}: there is no column {self._time!r}. It has: {', '.join(header.columns)}")
        written = os.stat(file).st_mtime
        start = _start_of(file, header, timed, written) if timed else written
        moment = start
        for cells in _lines(file, header, run):
            cells_of_row = dict(zip(header.columns, map(_value_of, cells), strict=True))
            stamp = cells_of_row.get(timed) if timed else None
            if isinstance(stamp, (int, float)) and stamp == stamp:
                moment = float(stamp) if stamp >= _EARLIEST else start + float(stamp)
                if timed in _TIMES and timed not in _ELAPSED:
                    del cells_of_row[timed]
            readings = {}
            for name, clock in clocks.items():
                reading: Any = cells_of_row.get(name)
                if clock and is_reading(reading):
                    readings[clock] = int(reading)
                    if name in SPELLINGS or name in self._clocks:
                        del cells_of_row[name]
            values = {name: value for name, value in cells_of_row.items() if value is not None}
            if values or readings:
                yield Row(moment, readings, values or {f"clock/{name}": n for name, n in readings.items()})

    def _episodes(self, file: Path, header: _Header, run: ForeignRun) -> Iterator[Row]:
        """The episodes of a Monitor file: return, length and seconds since its start."""
        start = header.monitor.get("t_start") if header.monitor else None
        if not isinstance(start, (int, float)):
            run.lose(f"starting times of {file.name}")
            start = os.stat(file).st_mtime
        steps = 0
        for n, cells in enumerate(_lines(file, header, run)):
            cells_of_row = dict(zip(header.columns, map(_value_of, cells), strict=True))
            gained, length, elapsed = (
                cells_of_row.pop("r", None),
                cells_of_row.pop("l", None),
                cells_of_row.pop("t", None),
            )
            if not isinstance(gained, (int, float)) or not isinstance(length, int):
                run.lose("lines that are no episode")
                continue
            steps += length
            moment = start + float(elapsed) if isinstance(elapsed, (int, float)) and elapsed == elapsed else start
            values = {
                "episode_id": f"{file.name}-{n}",
                "return": float(gained),
                "length": length,
                **{name: value for name, value in cells_of_row.items() if value is not None},
            }
            yield Row(moment, {"env_step": steps, "episode": n + 1}, values, scope="train", table="episodes")


class _Header:
    """The first lines of a file: columns, separator, number of header lines, a Monitor file's facts."""

    __slots__ = ("columns", "lines", "monitor", "separator")

    def __init__(self, columns: list[str], separator: str, lines: int, monitor: Mapping[str, object] | None) -> None:
        self.columns, self.separator, self.lines, self.monitor = columns, separator, lines, monitor


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path] if path.suffix.lower() in (".csv", ".tsv", ".txt") else []
    if not path.is_dir():
        return []
    files = [file for file in sorted(path.iterdir()) if file.is_file()]
    named = ("progress.csv", "progress.txt")
    return [file for file in files if file.suffix.lower() in (".csv", ".tsv") or file.name in named]


def _header_of(file: Path) -> _Header | None:
    """The header of a file; None if it is not a header of two columns or more."""
    try:
        with open(file, encoding="utf-8", errors="backslashreplace", newline="") as stream:
            first = stream.readline(_LONGEST_LINE)
            monitor: Mapping[str, object] | None = None
            lines = 1
            if first.startswith("#"):
                try:
                    header = json.loads(first[1:])
                except (ValueError, RecursionError):
                    header = {}
                monitor = header if isinstance(header, dict) else {}
                first, lines = stream.readline(_LONGEST_LINE), 2
    except OSError:
        return None
    separator = "\t" if "\t" in first and "," not in first else ","
    try:
        columns = next(csv.reader([first], delimiter=separator), [])
    except csv.Error:
        return None
    columns = [name.strip().lstrip("\ufeff") for name in columns]
    named = len(columns) > 1 and len(set(columns)) == len(columns) and all(columns)
    if not named or any("\x00" in name or _is_number(name) for name in columns):
        return None
    if monitor is not None and not {"r", "l"} <= set(columns):
        monitor = None
    return _Header(columns, separator, lines, monitor)


def _lines(file: Path, header: _Header, run: ForeignRun) -> Iterator[list[str]]:
    """The lines after the header as cells; those that do not fit are counted."""
    with open(file, encoding="utf-8", errors="surrogateescape", newline="") as stream:
        reader = csv.reader(_ended(stream, run), delimiter=header.separator)
        number = 0
        while True:
            try:
                cells = next(reader, None)
            except csv.Error:
                run.lose(f"lines of {file.name} that cannot be read")
                continue
            if cells is None:
                return
            number += 1
            if number <= header.lines or not cells:
                continue
            if len(cells) != len(header.columns) or any("\x00" in cell for cell in cells):
                run.lose(f"lines of {file.name} that do not fit its header")
                continue
            if not all(map(str.isascii, cells)):
                readable = [
                    cell.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace") for cell in cells
                ]
                if readable != cells:
                    run.lose(f"bytes of {file.name} that are not UTF-8")
                cells = readable
            yield cells


def _ended(stream: Iterable[str], run: ForeignRun) -> Iterator[str]:
    """The lines of a file, without a last one that has no end: its last number may be cut short."""
    for line in stream:
        if line.endswith(("\n", "\r")):
            yield line
        else:
            run.leave_out("lines that are half written")


def _start_of(file: Path, header: _Header, timed: str, written: float) -> float:
    """The start time of a file whose times are relative: its last line was written at the modification time."""
    last = 0.0
    place = header.columns.index(timed)
    for cells in _lines(file, header, ForeignRun("")):
        stamp = _value_of(cells[place])
        if isinstance(stamp, (int, float)) and 0 <= stamp < _EARLIEST:
            last = max(last, float(stamp))
    return written - last


def _is_number(text: str) -> bool:
    return isinstance(_value_of(text), (int, float))


def _value_of(text: str) -> float | int | bool | str | None:
    """A cell: a number, a boolean, a text, or None if it is empty."""
    text = text.strip()
    if not text:
        return None
    if text in ("True", "False"):
        return text == "True"
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return text
