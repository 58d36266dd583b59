"""CSV files: Stable-Baselines3's progress.csv and Monitor files, Spinning Up's progress.txt, or any with a header."""

from __future__ import annotations

import functools
import itertools
import math
import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

from rollbook.errors import BadInput
from rollbook.formats.importers._labels import labels_of
from rollbook.formats.importers._metadata import describe
from rollbook.formats.importers._names import LENGTHS, REWARDS, SPLITTING, is_result, names_of_returns
from rollbook.formats.importers._paths import STAGES, TRAINING, is_algorithm
from rollbook.formats.importers._tables import (
    Header,
    header_of,
    is_number,
    lines_of,
    moment_of,
    records_of,
    value_of,
)
from rollbook.protocols import ForeignRun, Row
from rollbook.schema import aliases
from rollbook.schema.counters import SPELLINGS, axis_order, clock_name, is_reading, standing, x_clock
from rollbook.system.files import pasted, run_name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
    from typing import Any

_TIMES = (
    "time", "timestamp", "_timestamp", "_time", "wall_time", "Wall time", "created", "datetime", "Timestamp",
)  # fmt: skip
_ELAPSED = ("time/time_elapsed", "_runtime", "elapsed", "Time", "time")
_EARLIEST = 1e8
"""Smaller numbers are not unix seconds but seconds since the start."""

_METRICS = ("metric", "metric_name", "variable", "tag", "key")
_VALUES = ("value", "values", "val")
"""Columns of a table with a row for each metric: what pandas' `melt` and W&B's long exports write."""

_LONGEST_LINE = 16 * 1024 * 1024
_LONGEST_TO_SPLIT = 256 * 1024 * 1024
_LONGEST_KEPT = 32 * 1024 * 1024
"""The rows of a larger table are not kept in memory for the other runs that it holds."""

_PROGRESS = ("progress.csv", "progress.txt")
_KNOWN = (*_PROGRESS, "metrics.csv", "progress.tsv")
"""Tables that are one training's, whatever their columns are called."""

_ROW = "row"
"""As the value of `x`: the number of the row."""

_ROW_NUMBERS = frozenset({"index", "x", "t"})
"""Columns that any table may have: they are the x-axis of one that has results."""

_DOWNLOADED = re.compile(r"run-(?P<run>.*)-tag-(?P<tag>.+)")
"""What TensorBoard calls the CSV files that it offers for download."""

_EXPORTED = re.compile(r"(?P<run>.+) - (?P<key>[^ ].*)")
"""The columns of the CSV files that W&B's charts export."""

_OF_A_SEED = re.compile(r"(?:seed|run|trial|s|rep)[-_ ]?(?P<n>\d+)", re.IGNORECASE)


class Csv:
    """CSV and tab-separated files with a header, such as progress.csv, and Monitor files.

    progress.csv and the Monitor files of a folder are one run, whose episodes come in the order of their ends. Any
    other table is a run of its own if one of its columns is an x-axis: a counter of a known framework, a column named
    like a clock, or is declared one. Columns called seed, run, env or algo divide a table into runs, and so do
    W&B's exports and a column for each seed. Numbers and texts are values, empty cells are missing. Lines that do not
    fit the header are left out and counted.

    Args:
      clock: columns that are clocks, "COLUMN" or "COLUMN=clock", several with commas; in addition to the detected ones.
      time: the column with each row's time: unix seconds, or seconds since the start if they are small. Without such a
        column, the file's modification time is used.
      x: the column along which the rows of tables of an unknown kind are drawn; "row": their number.
    """

    name = "csv"
    what = "CSV table"
    files = ("progress.csv", "progress.txt", "monitor.csv", "*.monitor.csv", "metrics.csv", "log.txt", "scores.txt")
    looks_into = (".csv", ".tsv")

    def __init__(self, clock: str = "", time: str = "", x: str = "") -> None:
        self._clocks: dict[str, str] = {}
        for word in filter(None, (part.strip() for part in str(clock).split(","))):
            column, _, name = word.rpartition("=")
            self._clocks[column or word] = name if column else clock_name(word) or word.rpartition("/")[2]
        self._time, self._x = str(time), str(x)
        self.refused: dict[Path, str] = {}

    def finds(self, path: Path) -> bool:
        """Whether it is a CSV file with a header, or a folder that holds some."""
        return any(header_of(file) is not None for file in _files(path))

    def runs(self, path: Path) -> Iterable[ForeignRun]:
        """The runs of a file or a folder; `refused` has the tables that are no run, and why."""
        return self._of_file(path) if path.is_file() else self._of_folder(path)

    def _of_file(self, path: Path) -> Iterable[ForeignRun]:
        file = path.resolve()
        runs = self._table(file)
        if not runs and file in self.refused:
            raise BadInput(f"import {path}: {self.refused[file]}")
        for run in runs or [self.of_files(file.parent, [path])]:
            run.name = file.stem + (run.name if run.name.startswith("-") else "")
            run.part = run.part or file.stem
            yield run

    def _of_folder(self, path: Path) -> Iterable[ForeignRun]:
        """The training of known files, that of the files of stages (train.csv, eval.csv), and those of other tables."""
        folder, files = path.resolve(), _files(path)
        known = [file for file in files if file.name in _PROGRESS or _is_monitor(file)]
        runs = [self.of_files(folder, known)] if known else []
        rest = [file for file in files if file not in known]
        runs += [self.of_files(folder, [file]) for file in rest if file.name in _KNOWN]
        stages = [file for file in rest if file.stem.lower() in STAGES and self._x_of(file)]
        if len(stages) > 1:
            runs.append(self.of_files(folder, stages, prefixed=True))
        else:
            stages = []
        tables = [file for file in rest if file.name not in _KNOWN and file not in stages]
        yield from [*runs, *self._of_tables(folder, tables, alone=not runs)]

    def _of_tables(self, folder: Path, tables: list[Path], *, alone: bool) -> list[ForeignRun]:
        """The runs of tables of any name: exports of W&B, downloads from TensorBoard, and tables by themselves.

        Args:
          alone: whether the folder has no other runs; a single table is then the folder's run.
        """
        made = self._exports(folder, tables)
        exported = {file for run in made for file in run.files}
        downloaded: dict[str, list[Path]] = {}
        for file in tables:
            if file in exported:
                continue
            if (match := _DOWNLOADED.fullmatch(file.stem)) is not None and _is_downloaded(header_of(file)):
                downloaded.setdefault(match["run"], []).append(file)
            else:
                made += self._table(file)
        for called, members in downloaded.items():
            run = self.of_files(folder, members)
            run.name = run.part = called or folder.name
            made.append(run)
        if len(made) == 1 and alone and not downloaded and not _SPLIT_NAME.search(made[0].name):
            made[0].part = ""
        for run in made:
            run.name = "-".join(filter(None, (run_name_of(folder), run.part)))
        return made

    def _exports(self, folder: Path, tables: list[Path]) -> list[ForeignRun]:
        """The runs of W&B's exports of several charts, each with its columns of all of them; [] if no two share a run.

        If two exports have one key of a run, that of the file which was written last counts.
        """
        by_run: dict[str, dict[Path, dict[str, str]]] = {}
        axes: dict[Path, str] = {}
        for file in sorted(tables, key=lambda file: os.stat(file).st_mtime_ns, reverse=True):
            header = header_of(file)
            columns = _exported(header, x) if header is not None and (x := self._x_of(file, header)) else {}
            for run_name, keys in columns.items():
                taken = {key for others in by_run.get(run_name, {}).values() for key in others.values()}
                mine = {column: key for column, key in keys.items() if key not in taken}
                if mine:
                    by_run.setdefault(run_name, {})[file], axes[file] = mine, x
        if all(len(files) < 2 for files in by_run.values()):
            return []
        made = []
        for run_name, files in by_run.items():
            run = ForeignRun("", files=sorted(files), clocks=tuple(self._clocks.values()), folder=folder, part=run_name)
            describe(run, folder)
            wanted = {file: _Wanted(columns={axes[file]: axes[file], **files[file]}) for file in run.files}
            run.give({file.name: functools.partial(self._rows, file, run, "", wanted[file]) for file in run.files})
            made.append(run)
        return made

    def of_files(
        self, folder: Path, files: list[Path], *, prefixed: bool = False, alone: bool | None = None
    ) -> ForeignRun:
        """Some tables and Monitor files of a folder as one run, whatever their columns are called.

        Args:
          prefixed: keys begin with the name of the file.
          alone: nothing else says the returns of the Monitor files; None: if there is no table.
        """
        run = ForeignRun(run_name_of(folder), files=files, clocks=tuple(self._clocks.values()), folder=folder)
        describe(run, folder)
        headers = {
            file: header for file in files if (header := header_of(file)) is not None and header.monitor is not None
        }
        monitors = [*headers]
        known = [str(env) for header in headers.values() if (env := (header.monitor or {}).get("env_id"))]
        run.env = next((name for name in known if name != "None"), "")
        parts: dict[str, Callable[[], Iterable[Row]]] = {
            file.name: functools.partial(self._rows, file, run, f"{file.stem}/" if prefixed else "")
            for file in files
            if file not in monitors
        }
        if monitors:
            says_returns = not parts if alone is None else alone
            parts[monitors[0].name] = functools.partial(self._episodes, monitors, run, says_returns)
        run.give(parts)
        return run

    def _table(self, file: Path) -> list[ForeignRun]:
        """The runs of a table of any name; none if its x-axis would be a guess."""
        header = header_of(file)
        if file.name in _KNOWN or _is_monitor(file) or (header is not None and header.monitor is not None):
            run = self.of_files(file.parent, [file])
            run.part = "" if file.name in _KNOWN or _is_monitor(file) else file.stem  # monitor_of_mine.csv
            return [run]
        if header is None:
            if _has_lines(file):
                self.refused[file] = "A table needs a header: names of at least two columns in its first line"
            return []
        if not self._clocks and not self._x_of(file, header):
            self.refused[file] = _advice(file, header)
            return []
        made: list[ForeignRun] = []
        for part in self._split(file, header):
            run = ForeignRun(part.mark, files=[file], clocks=tuple(self._clocks.values()), folder=file.parent)
            run.part = "-".join(filter(None, (file.stem, part.mark.strip("-"))))
            run.seed = part.fields.get("seed")
            run.sources.update(dict.fromkeys(["seed"] if run.seed is not None else [], f"{file.name}, a column"))
            run.algo, run.env = part.fields.get("algo", ""), part.fields.get("env", "")
            describe(run, file.parent)
            run.give({file.name: functools.partial(self._rows, file, run, "", part.wanted)})
            made.append(run)
        return made

    def _x_of(self, file: Path, header: Header | None = None) -> str:
        """The column that is the x-axis of a table, or "row"; "" if unknown."""
        header = header or header_of(file)
        if header is None:
            return ""
        named_axis = self._x or str(labels_of(file).get("x", ("", ""))[0])
        if named_axis == _ROW or named_axis in header.columns:
            return named_axis
        if len(header.columns) == 1 or _are_episodes(header):
            return _ROW
        stat = os.stat(file)
        counting = _counting(file, stat.st_mtime_ns, stat.st_size)
        named = [name for name in sorted(header.columns, key=axis_order) if name in counting]
        if not any(name not in _ROW_NUMBERS or is_result(other) for name in named for other in header.columns):
            return ""
        if len(named) < 2 and not _dividing(file, header, stat.st_mtime_ns, stat.st_size):
            return named[0] if named else ""
        steady = _steady(file, stat.st_mtime_ns, stat.st_size)
        return next((name for name in named if name in steady), "" if steady is _EACH_ITS_OWN else (*named, "")[0])

    def _split(self, file: Path, header: Header) -> list[_Part]:
        """The runs of a table."""
        x = self._x_of(file, header)
        if parts := _by_columns(file, header, x):
            return parts
        stat = os.stat(file)
        dividing = [name for name in _dividing(file, header, stat.st_mtime_ns, stat.st_size) if name != x]
        if not dividing:
            begins = _begins(file, x, stat.st_mtime_ns, stat.st_size)
            rows = [range(first, end) for first, end in itertools.pairwise((*begins, sys.maxsize))]
            return [_Part(f"-{n}" if n > 1 else "", _Wanted(rows=part)) for n, part in enumerate(rows, start=1)]
        return _by_cells(file, header, dividing) if stat.st_size <= _LONGEST_TO_SPLIT else [_Part("", None)]

    def _rows(self, file: Path, run: ForeignRun, prefix: str = "", wanted: _Wanted | None = None) -> Iterator[Row]:
        header = header_of(file)
        if header is None:
            if _has_lines(file):  # an empty one is of a training that has not written yet
                run.lose("files without a header")
            return
        names = wanted.columns if wanted is not None and wanted.columns else _names_of(file, header)
        if not names and file.name not in _KNOWN:
            names = names_of_returns(_first_of(file, header, wanted), self._x_of(file, header))
            if not prefix and file.stem.lower() in STAGES - TRAINING:
                names = {
                    column: "eval/mean_reward" if "mean" in read_as or "av" in read_as else "eval/episode_reward"
                    for column in header.columns
                    if aliases.canonical(read_as := names.get(column, column)) == "train/return"
                }
        for row in self._metrics(file, header, run, wanted):
            if not names and not prefix:
                yield row
                continue
            values = {names.get(key, key): value for key, value in row.values.items()}
            if prefix:
                values = {key if key.startswith(prefix) else prefix + key: value for key, value in values.items()}
            yield Row(row.time, row.clocks, values)

    def _metrics(self, file: Path, header: Header, run: ForeignRun, wanted: _Wanted | None) -> Iterator[Row]:
        for name in filter(None, (*self._clocks, self._time)):
            if name not in header.columns:
                raise BadInput(f"import {file}: there is no column {name!r}. It has: {', '.join(header.columns)}")
        first = [{n: value_of(text) for n, text in row.items()} for row in _first_rows(file, header, wanted)]
        time_column = self._time or next((name for name in (*_TIMES, *_ELAPSED) if name in header.columns), "")
        x, clocks = self._clocks_of(file, header, first, is_timed=bool(time_column))
        times = _Times(file, time_column)
        counters = _Counters(
            clocks,
            x,
            only_clocks={*SPELLINGS, *self._clocks, x},
            of_row="episode" if _are_episodes(header) else "step",
            may_be_cut=_are_apart([row.get(x) for row in first]),
        )
        melted = _melted(header)
        for number, texts in _rows_of(file, header, run, wanted):
            cells = {name: value_of(text) for name, text in texts.items()}
            if wanted is not None and wanted.columns:
                cells = {name: cells.get(name) for name in wanted.columns}
                if not any(value is not None for name, value in cells.items() if name != x):
                    continue  # another run has values here
            moment = times.taken_from(cells)
            if melted and isinstance(called := cells.pop(melted[0], None), str):
                cells[called] = cells.pop(melted[1], None)
            readings = counters.taken_from(cells, number)
            values = {name: value for name, value in cells.items() if value is not None}
            if values or readings:
                yield Row(moment, readings, values or {f"clock/{name}": n for name, n in readings.items()})

    def _clocks_of(
        self, file: Path, header: Header, first: list[dict[str, Any]], *, is_timed: bool
    ) -> tuple[str, dict[str, str]]:
        """The x-axis of a table, and the clock of each column, the axis first; "" for a column that is none.

        If two columns are one clock, the axis or the first is used, and the other is a value.
        """
        constant = standing(first)
        clocks = {
            name: self._clocks.get(name) or ("" if name in constant else clock_name(name)) for name in header.columns
        }
        needs_no_axis = file.name in _KNOWN and (is_timed or any(clocks.values()))
        x = self._x if needs_no_axis else self._x_of(file, header)
        if x and x != _ROW and not clocks.get(x):
            clocks[x] = x_clock(x) or "step"
        clocks = {**({x: clocks[x]} if x in clocks else {}), **clocks}
        taken: set[str] = set()
        for name, clock in clocks.items():
            clocks[name] = "" if clock in taken and name not in self._clocks else clock
            taken.add(clock)
        return x, clocks

    def _episodes(self, files: list[Path], run: ForeignRun, alone: bool) -> Iterator[Row]:
        """The episodes of all Monitor files of a folder, in the order of their ends: return, length and seconds.

        As Stable-Baselines3 reads them: steps and episodes of all environments are counted together.

        Args:
          alone: nothing else says the return: each episode is then also a value of `train/return` and `train/length`.
        """
        episodes = [episode for file in files for episode in _of_monitor(file, run)]
        episodes.sort(key=lambda episode: episode[0])
        steps = 0
        for n, (moment, values) in enumerate(episodes):
            steps += values["length"]
            clocks = {"env_step": steps, "episode": n + 1}
            yield Row(moment, clocks, values, scope="train", table="episodes")
            if alone:
                yield Row(moment, clocks, {"train/return": values["return"], "train/length": values["length"]})


def _of_monitor(file: Path, run: ForeignRun) -> Iterator[tuple[float, dict[str, Any]]]:
    """(unix seconds, values) of each episode of a Monitor file."""
    header = header_of(file)
    if header is None:
        run.lose("files without a header")
        return
    begun = _begun(header)
    if begun is None:
        run.lose(f"starting times of {file.name}")
    start = os.stat(file).st_mtime if begun is None else begun
    moment = -math.inf
    for n, cells in enumerate(lines_of(file, header, run)):
        if (again := _begun(header)) not in (None, begun):
            start = begun = again
        cells_of_row = dict(zip(header.columns, map(value_of, cells), strict=True))
        gained, length, elapsed = (cells_of_row.pop(name, None) for name in ("r", "l", "t"))
        if not isinstance(gained, (int, float)) or not isinstance(length, int):
            run.lose("lines that are no episode")
            continue
        passed = float(elapsed) if isinstance(elapsed, (int, float)) and elapsed == elapsed else 0.0
        if start + passed < moment:  # a later program went on with the file, at seconds of its own
            start = moment
        moment = start + passed
        values = {"episode_id": f"{file.name}-{n}", "return": float(gained), "length": length}
        yield moment, {**values, **{name: value for name, value in cells_of_row.items() if value is not None}}


def _begun(header: Header) -> float | None:
    """When a Monitor file says that its program began."""
    begun = header.monitor.get("t_start") if header.monitor else None
    return float(begun) if isinstance(begun, (int, float)) else None


class _Times:
    """When the rows of a table were written: each at its own time, or at that of the row before it.

    Args:
      column: the column with the times; "" if there is none: all rows then have the file's modification time.
    """

    def __init__(self, file: Path, column: str) -> None:
        stat = os.stat(file)
        self._column = column
        self._start = _start_of(file, column, stat.st_mtime, stat.st_size) if column else stat.st_mtime
        self._moment = self._start
        self._is_no_value = column in _TIMES and column not in _ELAPSED

    def taken_from(self, cells: dict[str, Any]) -> float:
        """Unix seconds of a row. Its cell is removed, unless it is a value, too: seconds since the start."""
        stamp = cells.get(self._column) if self._column else None
        if (at := moment_of(stamp)) is not None:
            self._moment = at
        elif _passed(stamp):
            self._moment = self._start + float(stamp)  # type: ignore[arg-type]
        else:
            return self._moment
        if self._is_no_value:
            del cells[self._column]
        return self._moment


class _Counters:
    """The columns of a table that are clocks.

    Args:
      clocks: column -> its clock; "" for none.
      x: the column that is the x-axis, or "row"; "" if there is none.
      only_clocks: the columns that are no value besides.
      of_row: the clock that counts rows, if x is "row".
      may_be_cut: whether readings of x are rounded down: they are no integers, but far enough apart.
    """

    def __init__(
        self, clocks: Mapping[str, str], x: str, *, only_clocks: Container[str], of_row: str, may_be_cut: bool
    ) -> None:
        self._columns = [(name, clock, name in only_clocks) for name, clock in clocks.items() if clock]
        self._of_row = of_row if x == _ROW else ""
        self._cut = x if may_be_cut else None

    def taken_from(self, cells: dict[str, Any], number: int) -> dict[str, int]:
        """Clock -> reading of a row. The cells of columns that are nothing but clocks are removed."""
        readings = {self._of_row: number} if self._of_row else {}
        for name, clock, is_only_clock in self._columns:
            reading = cells.get(name)
            if name == self._cut and isinstance(reading, float) and math.isfinite(reading):
                reading = math.floor(reading)
            if is_reading(reading):
                readings[clock] = int(reading)
                if is_only_clock:
                    del cells[name]
        return readings


class _Wanted:
    """The rows and columns of a table that are one run's.

    Args:
      cells: name of a column -> its cell in the rows that are wanted.
      columns: its columns -> their keys; {} for all.
      rows: the numbers of its rows; None for all.
    """

    __slots__ = ("cells", "columns", "rows")

    def __init__(
        self,
        cells: dict[str, str] | None = None,
        columns: dict[str, str] | None = None,
        rows: range | None = None,
    ) -> None:
        self.cells, self.columns, self.rows = cells or {}, columns or {}, rows

    def row(self, cells: Mapping[str, str], number: int) -> bool:
        """Whether the row of that number is one of its rows."""
        is_there = self.rows is None or number in self.rows
        return is_there and all(cells.get(name, "").strip() == text for name, text in self.cells.items())


class _Part(NamedTuple):
    """One of the runs of a table: what its name ends in, its rows and columns (None: all), and known fields."""

    mark: str
    wanted: _Wanted | None
    fields: Mapping[str, Any] = {}


def _by_columns(file: Path, header: Header, x: str) -> list[_Part]:
    """The runs of a table with a column for each run, seed or algorithm; [] for any other."""
    others = [name for name in header.columns if name != x]
    if exported := _exported(header, x):
        return [_Part(f"-{run}", _Wanted(columns={x: x, **names})) for run, names in exported.items()]
    seeds = {name: int(match["n"]) for name in others if (match := _OF_A_SEED.fullmatch(name)) is not None}
    if len(seeds) > 1 and len(seeds) == len(others):
        return [
            _Part(f"-{name}", _Wanted(columns={x: x, name: file.stem}), {"seed": n} if "eed" in name else {})
            for name, n in seeds.items()
        ]
    if len(others) > 1 and all(is_algorithm(name) for name in others):
        return [_Part(f"-{name}", _Wanted(columns={x: x, name: file.stem}), {"algo": name}) for name in others]
    return []


def _by_cells(file: Path, header: Header, dividing: list[str]) -> list[_Part]:
    """The runs of a table with rows of several runs below each other, which differ in columns such as seed or env."""
    indices = [header.columns.index(name) for name in dividing]
    combinations = dict.fromkeys(
        tuple(cells[n].strip() for n in indices) for cells in lines_of(file, header, ForeignRun(""))
    )
    if len(combinations) > _MOST_SPLIT:
        return [_Part("", None)]
    varies = [len(set(texts)) > 1 for texts in zip(*combinations, strict=True)]  # a name says only what differs
    parts = []
    for texts in combinations:
        fields: dict[str, Any] = {}
        mark = ""
        for name, text, is_in_name in zip(dividing, texts, varies, strict=True):
            field, value = SPLITTING[name.lower()], value_of(text)
            if field == "seed" and isinstance(value, (int, float)) and float(value).is_integer():
                fields["seed"] = int(value)
            elif field in ("env", "algo") and text:
                fields[field] = text
            if is_in_name:
                mark += f"-{name}{text}" if field == "seed" else f"-{text}"
        parts.append(_Part(mark, _Wanted(cells=dict(zip(dividing, texts, strict=True))), fields))
    return parts


_MOST_SPLIT = 10_000
"""A table is divided into at most this many runs; a column with more values than that names no runs."""

_SPLIT_NAME = re.compile(r"^-")


def _is_monitor(file: Path) -> bool:
    return file.name == "monitor.csv" or file.name.endswith(".monitor.csv")


def _rows_of(
    file: Path, header: Header, run: ForeignRun, wanted: _Wanted | None
) -> Iterator[tuple[int, dict[str, str]]]:
    """(number, cells by column) of the rows of a table that are wanted."""
    stat = os.stat(file)
    if wanted is not None and wanted.cells and stat.st_size <= _LONGEST_KEPT:
        rows, lost = _divided(file, tuple(wanted.cells), stat.st_mtime_ns, stat.st_size)
        for what, n in lost.items():
            run.lose(what, n)
        for number, columns, cells in rows.get(tuple(wanted.cells.values()), ()):
            yield number, dict(zip(columns, cells, strict=True))
        return
    for number, (columns, cells) in enumerate(records_of(file, header, run)):
        row = dict(zip(columns, cells, strict=True))
        if wanted is None or wanted.row(row, number):
            yield number, row


@functools.lru_cache(maxsize=1)
def _divided(
    file: Path, dividing: tuple[str, ...], _changed: int, _size: int
) -> tuple[dict[tuple[str, ...], list[tuple[int, list[str], list[str]]]], dict[str, int]]:
    """(the rows of each run of a table, what was lost): a table of a thousand runs is read once."""
    rows: dict[tuple[str, ...], list[tuple[int, list[str], list[str]]]] = {}
    counted = ForeignRun("")
    header = header_of(file)
    for number, (columns, cells) in enumerate(() if header is None else records_of(file, header, counted)):
        row = dict(zip(columns, cells, strict=True))
        rows.setdefault(tuple(row.get(name, "").strip() for name in dividing), []).append((number, columns, cells))
    return rows, {what: n for what, n in counted.left_out.items() if what in counted.lost}


def _first_of(file: Path, header: Header, wanted: _Wanted | None) -> dict[str, list[Any]]:
    """The first cells of each column, of the rows that are wanted."""
    rows = _first_rows(file, header, wanted)[:4]
    return {name: [value_of(row.get(name, "")) for row in rows] for name in header.columns}


def _first_rows(file: Path, header: Header, wanted: _Wanted | None) -> list[dict[str, str]]:
    return [row for _number, row in itertools.islice(_rows_of(file, header, ForeignRun(""), wanted), 10)]


@functools.lru_cache(maxsize=4096)
def _counting(file: Path, _changed: int, _size: int) -> frozenset[str]:
    """The columns that are called like a counter and hold no text: `game` may be a number or a name."""
    header = header_of(file)
    if header is None:
        return frozenset()
    named = [(n, name) for n, name in enumerate(header.columns) if x_clock(name)]
    rows = [*itertools.islice(lines_of(file, header, ForeignRun("")), _LOOKED_AT)] if named else []
    return frozenset(name for n, name in named if not any(isinstance(value_of(cells[n]), str) for cells in rows))


@functools.lru_cache(maxsize=4096)
def _steady(file: Path, _changed: int, _size: int) -> frozenset[str]:
    """The columns that never fall from row to row, but where another run begins; `_EACH_ITS_OWN` if each row has a run.

    Of `episode,steps,reward`, the steps are the length of each episode, and no axis.
    """
    header = header_of(file)
    if header is None:
        return frozenset()
    rows = [*itertools.islice(lines_of(file, header, ForeignRun("")), _LOOKED_AT)]
    dividing = [header.columns.index(name) for name in _dividing(file, header, _changed, _size)]
    if (melted := _melted(header)) is not None:
        dividing.append(header.columns.index(melted[0]))
    runs: dict[tuple[str, ...], list[list[str]]] = {}
    for cells in rows:
        runs.setdefault(tuple(cells[n].strip() for n in dividing), []).append(cells)
    if dividing and len(runs) == len(rows) > 2 and melted is None:
        return _EACH_ITS_OWN
    steady = set()
    for n, name in enumerate(header.columns):
        columns = [[value_of(cells[n]) for cells in members] for members in runs.values()]
        if all(
            all(
                isinstance(a, (int, float)) and isinstance(b, (int, float)) and a <= b
                for a, b in itertools.pairwise(one)
            )
            for one in columns
        ) and any(one[0] != one[-1] for one in columns):
            steady.add(name)
    return frozenset(steady)


@functools.lru_cache(maxsize=4096)
def _begins(file: Path, x: str, _changed: int, size: int) -> tuple[int, ...]:
    """The rows at which a training begins: the first, and those where the axis is at its first value again.

    Steps that are counted one by one begin again with each episode, and say nothing about trainings.
    """
    header = header_of(file) if x != _ROW and size <= _LONGEST_KEPT else None
    if header is None or x not in header.columns or not _may_begin_again(file, header, header.columns.index(x)):
        return (0,)
    index, begins, last = header.columns.index(x), [0], -math.inf
    first: float | None = None
    stride = math.inf
    for number, cells in enumerate(lines_of(file, header, ForeignRun(""))):
        reading = value_of(cells[index])
        if not isinstance(reading, (int, float)):
            continue
        first = float(reading) if first is None else first
        if reading < last and reading <= first:
            begins.append(number)
        elif last > -math.inf and reading != last:
            stride = min(stride, abs(reading - last))
        last = float(reading)
    by_steps = x_clock(x) in ("step", "env_step") and stride == 1
    rows = [end - start for start, end in itertools.pairwise(begins)]
    return (0,) if by_steps or len(begins) > _MOST_TRAININGS or min(rows, default=2) < 2 else tuple(begins)


def _may_begin_again(file: Path, header: Header, index: int) -> bool:
    """A quick look: whether a number of a column falls to its first one or below; True for lines with quotes."""
    first, last = math.inf, -math.inf
    try:
        with open(file, encoding=header.encoding, errors="replace") as stream:
            for line in stream:
                try:
                    reading = float(line.split(None if header.separator == " " else header.separator, index + 1)[index])
                except (ValueError, IndexError):
                    if '"' in line:
                        return True
                    continue
                if first == math.inf:
                    first = reading
                if reading < last and reading <= first:
                    return True
                last = reading
    except (OSError, UnicodeError):
        return False
    return False


_MOST_TRAININGS = 100
"""An axis that returns to its first value more often than this does not divide trainings."""


def _dividing(file: Path, header: Header, changed: int, size: int) -> list[str]:
    """The columns that say which run a row belongs to; not a seed of each episode, if one counter counts through."""
    dividing = [name for name in header.columns if name.lower() in SPLITTING]
    if any(SPLITTING[name.lower()] != "seed" for name in dividing):
        return dividing
    return [] if dividing and _is_of_episodes(file, tuple(dividing), changed, size) else dividing


@functools.lru_cache(maxsize=4096)
def _is_of_episodes(file: Path, seeds: tuple[str, ...], _changed: int, _size: int) -> bool:
    """Whether each row has a seed of its own, and a counter grows from row to row."""
    header = header_of(file)
    assert header is not None
    rows = [*itertools.islice(lines_of(file, header, ForeignRun("")), _LOOKED_AT)]
    own = {tuple(cells[header.columns.index(name)] for name in seeds) for cells in rows}
    if not len(own) == len(rows) > 2:
        return False
    counters = [n for n, name in enumerate(header.columns) if x_clock(name)]
    read = [[value_of(cells[n]) for cells in rows] for n in counters]
    return any(
        all(is_reading(a) and is_reading(b) and int(a) < int(b) for a, b in itertools.pairwise(each)) for each in read
    )


_EACH_ITS_OWN = frozenset({"\0"})
_LOOKED_AT = 200


def _exported(header: Header, x: str) -> dict[str, dict[str, str]]:
    """Run -> column -> key, of a table that W&B's page exports: a column "<run> - <key>" for each; {} for others."""
    others = [name for name in header.columns if name != x]
    matches = {name: match for name in others if (match := _EXPORTED.fullmatch(name)) is not None}
    by_run: dict[str, dict[str, str]] = {}
    for name, match in matches.items() if len(matches) == len(others) else ():
        by_run.setdefault(match["run"], {})[name] = match["key"]
    return by_run


def _is_downloaded(header: Header | None) -> bool:
    """Whether these are the columns of TensorBoard's "Download CSV"."""
    return header is not None and header.columns == ["Wall time", "Step", "Value"]


def _names_of(file: Path, header: Header) -> dict[str, str]:
    """The key of the column of TensorBoard's download: the tag in the file's name."""
    if header.columns[:4] == ["steps", "episodes", "elapsed", "mean"]:  # PFRL's and ChainerRL's scores.txt
        return {name: f"eval/{name}" for name in header.columns[3:]}
    if not _is_downloaded(header):
        return {}
    match = _DOWNLOADED.fullmatch(file.stem)
    tag = match["tag"] if match is not None else file.stem
    indices = [n for n, sign in enumerate(tag) if sign == "_"]
    spelled = next((name for n in indices if aliases.canonical(name := f"{tag[:n]}/{tag[n + 1 :]}")), tag)
    return {"Value": spelled}


def _melted(header: Header) -> tuple[str, str] | None:
    """The columns with the name of a metric and with its value, of a table with a row for each metric."""
    lower = {name.lower(): name for name in header.columns}
    named, valued = (next((lower[name] for name in names if name in lower), "") for names in (_METRICS, _VALUES))
    return (named, valued) if named and valued else None


def _are_episodes(header: Header) -> bool:
    """Whether each row of a table without any counter is an episode: it has a return and a length."""
    if any(map(x_clock, header.columns)):
        return False
    names = {name.lower() for name in header.columns}
    return bool(names & REWARDS) and bool(names & LENGTHS)


def _are_apart(readings: Sequence[object]) -> bool:
    """Whether readings of an axis, some with a fraction, are so far apart that cutting the fractions joins no two."""
    numbers = [reading for reading in readings if isinstance(reading, (int, float))]
    return len(numbers) > 1 and all(later - earlier >= 1 for earlier, later in itertools.pairwise(numbers))


def _passed(stamp: object) -> bool:
    """Whether a time is seconds since the start."""
    return isinstance(stamp, (int, float)) and not isinstance(stamp, bool) and 0 <= stamp < _EARLIEST


def _advice(file: Path, header: Header) -> str:
    if any(x_clock(name) for name in header.columns):
        return (
            f"Each row of {file.name} is of another run: it is a table of results, and no training. To see its rows in "
            f"their order, say rollbook label {pasted(file)} x=row"
        )
    return (
        f"Which column of {file.name} is the x-axis would be a guess: say it with rollbook label "
        f"{pasted(file)} x=COLUMN, or x=row for the number of the row "
        f"(columns: {', '.join(header.columns[:8])})"
    )


def _has_lines(file: Path) -> bool:
    with open(file, "rb") as stream:
        return bool(stream.read(1))


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path] if path.suffix.lower() in (".csv", ".tsv", ".txt") else []
    if not path.is_dir():
        return []
    files = [file for file in sorted(path.iterdir()) if file.is_file()]
    named = ("progress.csv", "progress.txt", *(file.name for file in files if _is_text_table(file)))
    return [file for file in files if file.suffix.lower() in (".csv", ".tsv") or file.name in named]


def _is_text_table(file: Path) -> bool:
    """Whether log.txt is the table of rllab's and the Berkeley homework's loggers, or scores.txt that of PFRL."""
    if file.name not in ("log.txt", "scores.txt"):
        return False
    try:
        with open(file, encoding="utf-8", errors="replace") as stream:
            names, numbers = stream.readline(_LONGEST_LINE), stream.readline(_LONGEST_LINE)
    except OSError:
        return False
    cells = numbers.rstrip("\n").split("\t")
    return len(names.split("\t")) == len(cells) > 1 and any(map(is_number, cells))


@functools.lru_cache(maxsize=64)
def _start_of(file: Path, timed: str, written: float, _size: int) -> float:
    """The start time of a file whose times are relative: its last line was written at the modification time."""
    last = 0.0
    header = header_of(file)
    if header is None:
        return written
    index = header.columns.index(timed)
    for cells in lines_of(file, header, ForeignRun("")):
        stamp = value_of(cells[index])
        if _passed(stamp):
            last = max(last, float(stamp))  # type: ignore[arg-type]
    return written - last
