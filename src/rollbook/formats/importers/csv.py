"""CSV files: Stable-Baselines3's progress.csv and Monitor files, Spinning Up's progress.txt, or any with a header."""

from __future__ import annotations

import csv
import functools
import itertools
import json
import os
import re
from pathlib import Path

from rollbook.errors import BadInput
from rollbook.formats.importers._beside import describe
from rollbook.formats.importers._labels import labels_of
from rollbook.formats.importers._names import SPLITTING, names_of_returns
from rollbook.formats.importers._paths import STAGES, TRAINING
from rollbook.protocols import ForeignRun, Row
from rollbook.schema import aliases
from rollbook.schema.counters import SPELLINGS, clock_name, is_reading, x_clock
from rollbook.system.files import pasted, run_name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

_TIMES = ("time", "timestamp", "_timestamp", "_time", "wall_time", "Wall time", "created")
_ELAPSED = ("time/time_elapsed", "_runtime", "elapsed", "Time", "time")
_EARLIEST = 1e8
"""Smaller numbers are not unix seconds but seconds since the start."""

_LONGEST_LINE = 16 * 1024 * 1024
_LONGEST_TO_SPLIT = 256 * 1024 * 1024

_PROGRESS = ("progress.csv", "progress.txt")
_KNOWN = (*_PROGRESS, "metrics.csv", "progress.tsv")
"""Tables that are one training's, whatever their columns are called."""

_ROW = "row"
"""As the value of `x`: the number of the row."""

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
        return any(_header_of(file) is not None for file in _files(path))

    def runs(self, path: Path) -> Iterable[ForeignRun]:
        """The runs of a file or a folder; `refused` has the tables that are no run, and why."""
        if path.is_file():
            file = path.resolve()
            runs = self._table(file)
            if not runs and file in self.refused:
                raise BadInput(f"import {path}: {self.refused[file]}")
            for run in runs or [self.of_files(file.parent, [path])]:
                run.name = file.stem + (run.name if run.name.startswith("-") else "")
                run.part = run.part or file.stem
                yield run
            return
        base, files = path.resolve(), _files(path)
        known = [file for file in files if file.name in _PROGRESS or _is_monitor(file)]
        runs = [self.of_files(base, known)] if known else []
        rest = [file for file in files if file not in known]
        runs += [self.of_files(base, [file]) for file in rest if file.name in _KNOWN]
        stages = [file for file in rest if file.stem.lower() in STAGES and self._x_of(file)]
        if len(stages) > 1:
            runs.append(self.of_files(base, stages, prefixed=True))
        else:
            stages = []
        tables = [file for file in rest if file.name not in _KNOWN and file not in stages]
        downloaded: dict[str, list[Path]] = {}
        own: list[ForeignRun] = []
        for file in tables:
            if (match := _DOWNLOADED.fullmatch(file.stem)) is not None and _is_downloaded(_header_of(file)):
                downloaded.setdefault(match["run"], []).append(file)
            else:
                own += self._table(file)
        for called, members in downloaded.items():
            run = self.of_files(base, members)
            run.name = run.part = called or base.name
            own.append(run)
        if len(own) == 1 and not runs and not downloaded and not _SPLIT_NAME.search(own[0].name):
            own[0].part = ""
        for run in own:
            run.name = "-".join(filter(None, (run_name_of(base), run.part)))
        yield from [*runs, *own]

    def of_files(
        self, folder: Path, files: list[Path], *, prefixed: bool = False, alone: bool | None = None
    ) -> ForeignRun:
        """Some tables and Monitor files of a folder as one run, whatever their columns are called.

        Args:
          prefixed: keys begin with the name of the file.
          alone: nothing else says the returns of the Monitor files; None: if there is no table.
        """
        run = ForeignRun(run_name_of(folder), files=files, clocks=tuple(self._clocks.values()), home=folder)
        describe(run, folder)
        headers = {
            file: header for file in files if (header := _header_of(file)) is not None and header.monitor is not None
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
        header = _header_of(file)
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
        for mark, wanted, fields in self._split(file, header):
            run = ForeignRun(mark, files=[file], clocks=tuple(self._clocks.values()), home=file.parent)
            run.part = "-".join(filter(None, (file.stem, mark.strip("-"))))
            run.seed = fields.pop("seed", None)
            run.sources.update(dict.fromkeys(["seed"] if run.seed is not None else [], f"{file.name}, a column"))
            run.algo, run.env = fields.pop("algo", ""), fields.pop("env", "")
            describe(run, file.parent)
            run.give({file.name: functools.partial(self._rows, file, run, "", wanted)})
            made.append(run)
        return made

    def _x_of(self, file: Path, header: _Header | None = None) -> str:
        """The column that is the x-axis of a table, or "row"; "" if unknown."""
        header = header or _header_of(file)
        if header is None:
            return ""
        named_axis = self._x or str(labels_of(file).get("x", ("", ""))[0])
        if named_axis == _ROW or named_axis in header.columns:
            return named_axis
        if len(header.columns) == 1:
            return _ROW
        named = [name for name in sorted(header.columns, key=_by_clock) if x_clock(name)]
        stat = os.stat(file)
        if len(named) < 2 and not _dividing(file, header, stat.st_mtime_ns, stat.st_size):
            return named[0] if named else ""
        steady = _steady(file, stat.st_mtime_ns, stat.st_size)
        return next((name for name in named if name in steady), "" if steady is _EACH_ITS_OWN else (*named, "")[0])

    def _split(self, file: Path, header: _Header) -> list[tuple[str, _Wanted | None, dict[str, Any]]]:
        """The runs of a table: what their names end in, which rows and columns they have, and what is known of them."""
        x = self._x_of(file, header)
        others = [name for name in header.columns if name != x]
        # Exported by W&B's page: a column for each run, named "<run> - <key>".
        exported = {name: match for name in others if (match := _EXPORTED.fullmatch(name)) is not None}
        if exported and len(exported) == len(others):
            of_run: dict[str, dict[str, str]] = {}
            for name, match in exported.items():
                of_run.setdefault(match["run"], {})[name] = match["key"]
            return [(f"-{run}", _Wanted(columns={x: x, **names}), {}) for run, names in of_run.items()]
        # A column for each seed.
        seeds = {name: int(match["n"]) for name in others if (match := _OF_A_SEED.fullmatch(name)) is not None}
        if len(seeds) > 1 and len(seeds) == len(others):
            return [
                (f"-{name}", _Wanted(columns={x: x, name: file.stem}), {"seed": n} if "eed" in name else {})
                for name, n in seeds.items()
            ]
        # Rows of several runs below each other, told apart by columns such as seed or env.
        stat = os.stat(file)
        dividing = [name for name in _dividing(file, header, stat.st_mtime_ns, stat.st_size) if name != x]
        if not dividing or os.path.getsize(file) > _LONGEST_TO_SPLIT:
            return [("", None, {})]
        indices = [header.columns.index(name) for name in dividing]
        values = dict.fromkeys(
            tuple(cells[p].strip() for p in indices) for cells in _lines(file, header, ForeignRun(""))
        )
        if len(values) > _MOST_SPLIT:
            return [("", None, {})]
        made: list[tuple[str, _Wanted | None, dict[str, Any]]] = []
        for each in values:
            fields: dict[str, Any] = {}
            for name, text in zip(dividing, each, strict=True):
                field, value = SPLITTING[name.lower()], _value_of(text)
                if field == "seed" and isinstance(value, (int, float)) and float(value).is_integer():
                    fields["seed"] = int(value)
                elif field in ("env", "algo") and text:
                    fields[field] = text
            # A run's name says only what differs between the runs of this table.
            varying = [
                f"{name}{text}" if field == "seed" else text
                for n, (name, text) in enumerate(zip(dividing, each, strict=True))
                for field in [SPLITTING[name.lower()]]
                if len({other[n] for other in values}) > 1
            ]
            made.append(
                ("".join(f"-{word}" for word in varying), _Wanted(cells=dict(zip(indices, each, strict=True))), fields)
            )
        return made

    def _rows(self, file: Path, run: ForeignRun, prefix: str = "", wanted: _Wanted | None = None) -> Iterator[Row]:
        header = _header_of(file)
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
            values = {names.get(key, key) if names else key: value for key, value in row.values.items()}
            if prefix:
                values = {key if key.startswith(prefix) else prefix + key: value for key, value in values.items()}
            yield Row(row.time, row.clocks, values)

    def _metrics(self, file: Path, header: _Header, run: ForeignRun, wanted: _Wanted | None) -> Iterator[Row]:
        clocks = {name: self._clocks.get(name) or clock_name(name) for name in header.columns}
        timed = self._time or next((name for name in (*_TIMES, *_ELAPSED) if name in header.columns), "")
        tells = file.name in _KNOWN and (timed or any(clocks.values()))
        x = self._x if tells else self._x_of(file, header)
        if x and x != _ROW and not clocks.get(x):
            clocks[x] = x_clock(x) or "step"
        for name in self._clocks:
            if name not in clocks:
                raise BadInput(f"import {file}: there is no column {name!r}. It has: {', '.join(header.columns)}")
        taken: set[str] = set()
        clocks = {**({x: clocks[x]} if x in clocks else {}), **clocks}
        for name, clock in clocks.items():  # if two columns are one clock, x or the first is used, the other is a value
            clocks[name] = "" if clock in taken and name not in self._clocks else clock
            taken.add(clock)
        if self._time and self._time not in header.columns:
            raise BadInput(f"import {file}: there is no column {self._time!r}. It has: {', '.join(header.columns)}")
        written = os.stat(file).st_mtime
        start = _start_of(file, header, timed, written) if timed else written
        moment = start
        for number, cells in enumerate(_lines(file, header, run)):
            if wanted is not None and not wanted.row(cells):
                continue
            cells_of_row = dict(zip(header.columns, map(_value_of, cells), strict=True))
            if wanted is not None and wanted.columns:
                cells_of_row = {name: cells_of_row.get(name) for name in wanted.columns}
            stamp = cells_of_row.get(timed) if timed else None
            if isinstance(stamp, (int, float)) and stamp == stamp:
                moment = float(stamp) if stamp >= _EARLIEST else start + float(stamp)
                if timed in _TIMES and timed not in _ELAPSED:
                    del cells_of_row[timed]
            readings = {"step": number} if x == _ROW else {}
            for name, clock in clocks.items():
                reading: Any = cells_of_row.get(name)
                if clock and is_reading(reading):
                    readings[clock] = int(reading)
                    if name in SPELLINGS or name in self._clocks or name == x:
                        del cells_of_row[name]
            values = {name: value for name, value in cells_of_row.items() if value is not None}
            if values or readings:
                yield Row(moment, readings, values or {f"clock/{name}": n for name, n in readings.items()})

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
    header = _header_of(file)
    if header is None:
        run.lose("files without a header")
        return
    start = header.monitor.get("t_start") if header.monitor else None
    if not isinstance(start, (int, float)):
        run.lose(f"starting times of {file.name}")
        start = os.stat(file).st_mtime
    for n, cells in enumerate(_lines(file, header, run)):
        cells_of_row = dict(zip(header.columns, map(_value_of, cells), strict=True))
        gained, length, elapsed = (cells_of_row.pop(name, None) for name in ("r", "l", "t"))
        if not isinstance(gained, (int, float)) or not isinstance(length, int):
            run.lose("lines that are no episode")
            continue
        moment = start + float(elapsed) if isinstance(elapsed, (int, float)) and elapsed == elapsed else start
        values = {"episode_id": f"{file.name}-{n}", "return": float(gained), "length": length}
        yield moment, {**values, **{name: value for name, value in cells_of_row.items() if value is not None}}


class _Wanted:
    """The rows and columns of a table that are one run's.

    Args:
      cells: index of a column -> its cell in the rows that are wanted.
      columns: its columns -> their keys; {} for all.
    """

    __slots__ = ("cells", "columns")

    def __init__(self, cells: dict[int, str] | None = None, columns: dict[str, str] | None = None) -> None:
        self.cells, self.columns = cells or {}, columns or {}

    def row(self, cells: list[str]) -> bool:
        """Whether these cells are one of its rows."""
        return all(cells[index].strip() == text for index, text in self.cells.items())


_MOST_SPLIT = 10_000
"""Into more runs no table is divided: what looks like a column of runs is none then."""

_SPLIT_NAME = re.compile(r"^-")


def _is_monitor(file: Path) -> bool:
    return file.name == "monitor.csv" or file.name.endswith(".monitor.csv")


def _first_of(file: Path, header: _Header, wanted: _Wanted | None) -> dict[str, list[Any]]:
    """The first cells of each column, of the rows that are wanted."""
    lines = (cells for cells in _lines(file, header, ForeignRun("")) if wanted is None or wanted.row(cells))
    rows = [[_value_of(cell) for cell in cells] for cells in itertools.islice(lines, 4)]
    return {name: [row[n] for row in rows] for n, name in enumerate(header.columns)}


@functools.lru_cache(maxsize=4096)
def _steady(file: Path, _changed: int, _size: int) -> frozenset[str]:
    """The columns that never fall from row to row, but where another run begins; `_EACH_ITS_OWN` if each row has a run.

    Of `episode,steps,reward`, the steps are the length of each episode, and no axis.
    """
    header = _header_of(file)
    if header is None:
        return frozenset()
    rows = [*itertools.islice(_lines(file, header, ForeignRun("")), _LOOKED_AT)]
    dividing = [header.columns.index(name) for name in _dividing(file, header, _changed, _size)]
    runs: dict[tuple[str, ...], list[list[str]]] = {}
    for cells in rows:
        runs.setdefault(tuple(cells[n].strip() for n in dividing), []).append(cells)
    if dividing and len(runs) == len(rows) > 2:
        return _EACH_ITS_OWN
    steady = set()
    for n, name in enumerate(header.columns):
        columns = [[_value_of(cells[n]) for cells in members] for members in runs.values()]
        if all(
            all(
                isinstance(a, (int, float)) and isinstance(b, (int, float)) and a <= b
                for a, b in itertools.pairwise(one)
            )
            for one in columns
        ) and any(one[0] != one[-1] for one in columns):
            steady.add(name)
    return frozenset(steady)


def _dividing(file: Path, header: _Header, changed: int, size: int) -> list[str]:
    """The columns that say which run a row belongs to; not a seed of each episode, if one counter counts through."""
    dividing = [name for name in header.columns if name.lower() in SPLITTING]
    if any(SPLITTING[name.lower()] != "seed" for name in dividing):
        return dividing
    return [] if dividing and _is_of_episodes(file, tuple(dividing), changed, size) else dividing


@functools.lru_cache(maxsize=4096)
def _is_of_episodes(file: Path, seeds: tuple[str, ...], _changed: int, _size: int) -> bool:
    """Whether each row has a seed of its own, and a counter grows from row to row."""
    header = _header_of(file)
    assert header is not None
    rows = [*itertools.islice(_lines(file, header, ForeignRun("")), _LOOKED_AT)]
    own = {tuple(cells[header.columns.index(name)] for name in seeds) for cells in rows}
    if not len(own) == len(rows) > 2:
        return False
    counters = [n for n, name in enumerate(header.columns) if x_clock(name)]
    read = [[_value_of(cells[n]) for cells in rows] for n in counters]
    return any(
        all(is_reading(a) and is_reading(b) and int(a) < int(b) for a, b in itertools.pairwise(each)) for each in read
    )


_EACH_ITS_OWN = frozenset({"\0"})
_LOOKED_AT = 200


def _is_downloaded(header: _Header | None) -> bool:
    """Whether these are the columns of TensorBoard's "Download CSV"."""
    return header is not None and header.columns == ["Wall time", "Step", "Value"]


def _names_of(file: Path, header: _Header) -> dict[str, str]:
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


def _by_clock(column: str) -> int:
    """The order in which columns are taken as x-axis: environment steps before anything else."""
    order = ("env_step", "step", "gradient_step", "epoch", "episode")
    clock = x_clock(column)
    return order.index(clock) if clock in order else len(order)


def _advice(file: Path, header: _Header) -> str:
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
    return len(names.split("\t")) == len(cells) > 1 and any(map(_is_number, cells))


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
                    header = None
                if header is None and first.count(",") and file.stem != "monitor":  # TorchBeast: "# _tick,_time,…"
                    first = first[1:].lstrip()
                else:
                    monitor = header if isinstance(header, dict) else {}
                    first, lines = stream.readline(_LONGEST_LINE), 2
            second = stream.readline(_LONGEST_LINE)
    except OSError:
        return None
    separator = "\t" if "\t" in first and "," not in first else ","
    try:
        columns = next(csv.reader([first], delimiter=separator), [])
    except csv.Error:
        return None
    columns = [name.strip().lstrip("\ufeff") for name in columns]
    if columns and not columns[0] and "index" not in columns:  # as pandas writes it
        columns[0] = "index"
    is_one = len(columns) == 1 and separator not in first and columns[0].isidentifier() and _is_number(second)
    named = (len(columns) > 1 or is_one) and len(set(columns)) == len(columns) and all(columns)
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
    index = header.columns.index(timed)
    for cells in _lines(file, header, ForeignRun("")):
        stamp = _value_of(cells[index])
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
