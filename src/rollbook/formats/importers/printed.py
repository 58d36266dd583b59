"""What a program printed of its training: "Episode 100 | Reward: 12.5", tables of SB3, blocks of rsl_rl, verl's steps.

A row begins with a name that the row before it has already. So one line, a table of two columns and a block of lines
are read alike. The lines have to name a counter (`episode`, `step`, `epoch` …) again and again, and a result.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
from collections import Counter
from pathlib import Path

from rollbook.formats.importers._metadata import describe
from rollbook.formats.importers._names import is_result, names_of_returns
from rollbook.formats.importers._tables import HALF, is_settled, moment_of, value_of
from rollbook.protocols import ForeignRun, Row
from rollbook.schema.counters import x_clock
from rollbook.system.files import read_json, run_name_of, user_cache, write_json
from rollbook.system.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_NUMBER = r"[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf)"
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_PROCESS = re.compile(r"^\(\w+ pid=\d+[^)]*\)\s*")
"""What Ray puts before the lines of its workers."""

_STAMP = re.compile(r"^\W{0,2}(?P<at>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?|\d\d:\d\d:\d\d(?:[.,]\d+)?)\W*")
_LEVEL = re.compile(r"^[\[<(]?\s*(?:DEBUG|INFO|WARNING|ERROR|CRITICAL|SUCCESS)\s*[\])>]?[\s:|-]*")
_CELLS = re.compile(r"^\|\s*(?P<name>[^|]+?)\s*\|\s*(?P<value>[^|]*?)\s*\|$")
"""A line of a table of two columns, as Stable-Baselines3, baselines and Spinning Up print it."""

_COUNTER = re.compile(
    r"(?<![\w/.])(?P<name>(?:(?:train(?:ing)?|learning|global|total|env|num)[_ ])?"
    r"(?:episodes?|epoch|epochs|ep|time_?steps?|steps?|iterations?|iter|itr|updates?|frames?|generation|gen))"
    r"\s*[:=#]?\s*\[?\s*(?P<n>\d[\d,]*)(?:\s*/\s*[\d,]+)?(?![\w.%]|\s*/)",
    re.IGNORECASE,
)
_COUNTED = re.compile(
    r"(?<![\w.])(?P<n>\d[\d,]*) *(?P<name>episodes?|eps|steps|timesteps|frames|updates)\b(?!\s*(?:/|per\b))",
    re.IGNORECASE,
)
_PAIR = re.compile(
    r"(?P<name>[^\W\d][\w/.@%()-]*(?: [\w/.@%()-]+){0,3}?)\s*[:=]\s*"
    rf"(?:(?:np|torch|jnp)\.\w+\(|tensor\(|\[)?(?P<value>{_NUMBER})(?![\w.:]|/\d)",
    re.IGNORECASE,
)

_DAMAGED = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\ufffd]")
_LONGEST = 64 * 1024 * 1024
_LONGEST_LINE = 4000
_LOOKED_AT = 50
_FEWEST = 3
"""Rows of which the first ones have to name a counter."""

_RESULTS = re.compile(r"(?:^|[_ ])(?:avg|average|mean|best|return|kl|entropy)(?:$|[_ ])", re.IGNORECASE)

_SHORT = {"eps": "episodes", "gen": "generation"}

_MAPPINGS = "line"
"""The counter of lines such as {'loss': 0.5, 'epoch': 0.01}, which transformers prints: their number."""

Record = tuple[float | None, dict[str, int], dict[str, float]]
"""The time of a row, its counters by name, and its values by name."""


class Printed:
    """Logs that a program printed, as text. They are read where nothing else says what the training gave.

    A training that begins again in a file is a run of its own.
    """

    name = "printed"
    what = "printed log"
    files = ("*.log", "*.out", "*log*.txt", "train*.txt", "output*.txt", "console*.txt", "stdout*.txt", "stdout")
    is_last_resort = True

    def __init__(self) -> None:
        self.refused: dict[Path, str] = {}

    def finds(self, path: Path) -> bool:
        """Whether it is such a log, or a folder that holds one."""
        return any(_trainings_in(file) for file in _files(path))

    def runs(self, path: Path) -> Iterable[ForeignRun]:
        """The trainings in a log, or in the logs of a folder."""
        base = path.resolve()
        folder = base.parent if path.is_file() else base
        files = _files(path)
        made: list[ForeignRun] = []
        for file, trainings in zip(files, _counted(folder, files), strict=True):
            for n in range(max(1, trainings) if path.is_file() else trainings):
                run = ForeignRun(run_name_of(folder), files=[file], folder=folder)
                run.part = f"{file.stem}-{n + 1}" if n else file.stem
                run.details = functools.partial(describe, run, folder)
                run.rows = functools.partial(_rows, file, run, n)
                made.append(run)
        if path.is_file():
            for run in made:
                run.name = run.part
        elif len(made) == 1:
            made[0].part = ""
        else:
            for run in made:
                run.name = f"{run.name}-{run.part}"
        return made


def _rows(file: Path, run: ForeignRun, training: int) -> Iterator[Row]:
    run.left_out.clear()
    stat = os.stat(file)
    trainings, is_open, damaged = _parsed(file, stat.st_mtime_ns, stat.st_size)
    if damaged:
        run.lose(f"lines of {file.name} with bytes that are no text", damaged)
    if not trainings:
        run.lose("logs without a row that counts")
        return
    if training >= len(trainings):
        return
    records = trainings[training]
    if is_open and training == len(trainings) - 1 and not is_settled([file]):
        run.leave_out(HALF)  # the program may go on with its last row
        records = records[:-1]
    main = next(iter(records[0][1])) if records else ""
    first = [{**counters, **values} for _at, counters, values in records[:4]]
    columns = {
        name: [row[name] for row in first if name in row] for name in dict.fromkeys(n for row in first for n in row)
    }
    names = names_of_returns(columns, main)
    moment = stat.st_mtime
    for at, counters, values in records:
        moment = at if at is not None else moment
        clocks: dict[str, int] = {}
        for name, reading in counters.items():
            clocks.setdefault(_clock_of(name), reading)
        yield Row(moment, clocks, {names.get(name, name): value for name, value in values.items()})


def _counted(folder: Path, files: list[Path]) -> list[int]:
    """How many trainings each log of a folder holds; kept in the user's cache, for counting reads all of a log."""
    digest = hashlib.blake2b(os.fsencode(folder), digest_size=12).hexdigest()
    kept = os.path.join(user_cache(), "printed", f"{digest}.json")
    before = read_json(kept) if files else {}
    known = before.get("logs") if before.get("read_by") == __version__ else None
    now: dict[str, list[int]] = {}
    for file in files:
        with contextlib.suppress(OSError):
            stat = os.stat(file)
            stamp = [stat.st_mtime_ns, stat.st_size]
            entry = known.get(file.name) if isinstance(known, dict) else None
            is_same = isinstance(entry, list) and len(entry) == 3 and entry[:2] == stamp and type(entry[2]) is int
            now[file.name] = entry if is_same and entry is not None else [*stamp, _trainings_in(file)]
    if now and now != known:
        with contextlib.suppress(OSError):
            os.makedirs(os.path.dirname(kept), mode=0o700, exist_ok=True)
            write_json(kept, {"read_by": __version__, "logs": now})
    return [now[file.name][2] if file.name in now else 0 for file in files]


def _trainings_in(file: Path) -> int:
    """How many trainings a log holds."""
    try:
        stat = os.stat(file)
        return len(_parsed(file, stat.st_mtime_ns, stat.st_size)[0]) if 0 < stat.st_size <= _LONGEST else 0
    except OSError:
        return 0


@functools.lru_cache(maxsize=8)
def _parsed(file: Path, _changed: int, _size: int) -> tuple[list[list[Record]], bool, int]:
    """(the rows of each training in a log, whether the last row may be incomplete, how many lines are damaged)."""
    with open(file, encoding="utf-8", errors="replace", newline="\n") as stream:
        lines = [*stream]
    damaged = sum(_DAMAGED.search(line) is not None for line in lines)
    records = [*_records(lines)]
    repeated = Counter(name for _at, counters, _values in records[:_LOOKED_AT] for name in counters)
    most = max(repeated.values(), default=0)
    axes = [name for name, n in repeated.items() if 2 * n > most]
    if most < _FEWEST:
        return [], False, damaged
    main = max(axes, key=lambda name: (repeated[name], len({r[1].get(name) for r in records[:_LOOKED_AT]})))
    trainings: list[list[Record]] = []
    last: int | None = None
    for at, counters, values in records:
        reading = counters.get(main)
        if reading is None or not values:
            continue
        row: Record = (at, {main: reading, **{n: one for n, one in counters.items() if n in axes}}, values)
        if last is None or (reading < last and trainings and reading <= trainings[-1][0][1][main]):
            trainings.append([])
        trainings[-1].append(row)
        last = reading
    _without_what_came_before(trainings[0] if trainings else [])
    trainings = [one for one in trainings if len(one) >= _FEWEST or len(trainings) == 1]
    first = Counter(name for one in trainings for _at, _counters, values in one[:_LOOKED_AT] for name in values)
    told = [name for name, n in first.items() if n >= _FEWEST and (is_result(name) or _RESULTS.search(name))]
    moves = any(len({row[1][main] for row in one}) >= _FEWEST for one in trainings)
    if not told or not moves:
        return [], False, damaged
    last_rows = trainings[-1][-2:]
    is_open = len(last_rows) < 2 or not last_rows[1][2].keys() >= last_rows[0][2].keys() or not _is_ended(file)
    return trainings, is_open, damaged


def _without_what_came_before(rows: list[Record]) -> None:
    """Take from the first row what stood before it and never comes again: settings, sizes, versions."""
    later = {name for _at, _counters, values in rows[1:_LOOKED_AT] for name in values}
    if later:
        at, counters, values = rows[0]
        rows[0] = (at, counters, {name: value for name, value in values.items() if name in later} or values)


def _is_ended(file: Path) -> bool:
    """Whether the last line of a file has its end."""
    with open(file, "rb") as stream:
        stream.seek(-1, os.SEEK_END)
        return stream.read(1) == b"\n"


def _records(lines: Iterable[str]) -> Iterator[Record]:
    """The rows of a log: one ends where a name comes that it has already."""
    at: float | None = None
    counters: dict[str, int] = {}
    values: dict[str, float] = {}
    section, mappings = "", 0
    for line in lines:
        stamp, text = _stripped(line)
        cells = _CELLS.match(text)
        new_counters: dict[str, int] = {}
        new_values: dict[str, float] = {}
        if cells is not None:
            value = value_of(cells["value"])
            if value is None:
                section = cells["name"] if cells["name"].endswith("/") else section
                continue
            called = cells["name"] if "/" in cells["name"] else section + cells["name"]
            if type(value) is int and _clock_of(called):
                new_counters[called] = value
            elif isinstance(value, (int, float)) and not isinstance(value, bool):
                new_values[called] = value
        else:
            section = ""
            new_counters, new_values = _found_in(text)
            is_mapping = not new_counters and text.startswith("{") and text.endswith("}")
            if is_mapping and any(map(is_result, new_values)):
                new_counters, mappings = {_MAPPINGS: mappings}, mappings + 1
        if not new_counters and not new_values:
            continue
        if counters.keys() & new_counters.keys() or values.keys() & new_values.keys():
            yield at, counters, values
            counters, values = {}, {}
        at = stamp if stamp is not None else at
        counters.update(new_counters)
        values.update(new_values)
    if counters or values:
        yield at, counters, values


def _stripped(line: str) -> tuple[float | None, str]:
    """The time before a line, if there is one, and the line without colours, time, level and process."""
    text = _COLOURS.sub(
        "", line[:_LONGEST_LINE].rpartition("\r")[2] if "\r" in line.rstrip("\r\n") else line[:_LONGEST_LINE]
    )
    text = _PROCESS.sub("", text.strip())
    at = None
    if (stamp := _STAMP.match(text)) is not None:
        at = moment_of(stamp["at"].replace(",", "."))
        text = text[stamp.end() :]
    return at, _LEVEL.sub("", text, count=1)


def _found_in(text: str) -> tuple[dict[str, int], dict[str, float]]:
    """The counters and the values that a line names."""
    if not any(sign.isdigit() for sign in text) and "nan" not in text:
        return {}, {}
    text = text.replace("'", "").replace('"', "")
    counters: dict[str, int] = {}
    spans: list[tuple[int, int]] = []
    for pattern in (_COUNTER, _COUNTED):
        if counters:
            break
        for match in pattern.finditer(text):
            name = _SHORT.get(match["name"].lower()) or _called(match["name"])
            if _clock_of(name) and name not in counters:
                counters[name] = int(match["n"].replace(",", ""))
                spans.append(match.span())
    for begin, end in reversed(spans):
        text = f"{text[:begin]}|{text[end:].lstrip(']) :')}"
    values: dict[str, float] = {}
    for match in _PAIR.finditer(text):
        value = value_of(match["value"].rstrip(","))
        name = _called(match["name"])
        if isinstance(value, (int, float)) and not isinstance(value, bool) and not name.endswith(".py"):
            values.setdefault(name, value)
    return counters, values


@functools.lru_cache(maxsize=4096)
def _called(text: str) -> str:
    """A printed name as a key: words that are apart are joined, so that "Mean reward" is mean_reward."""
    words = text.strip(" -_.()")
    return "_".join(words.lower().split()) if " " in words else words


@functools.lru_cache(maxsize=4096)
def _clock_of(name: str) -> str:
    last = name.rpartition("/")[2].lower().removeprefix("training_").removeprefix("train_").removeprefix("learning_")
    return "step" if name == _MAPPINGS else x_clock(name) or x_clock(last)


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path.resolve()]
    try:
        names = sorted(os.listdir(path))
    except OSError:
        return []
    return [file for name in names if _NAMES.fullmatch(name) and (file := path.resolve() / name).is_file()]


_NAMES = re.compile(r".*\.(?:log|out)|(?:.*log.*|train.*|output.*|console.*|stdout.*)\.txt|stdout", re.IGNORECASE)
