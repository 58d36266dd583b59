"""Tables of text: header, separator, lines, and what a cell means. What a run is, is not known here.

header = header_of(file)            columns, separator, encoding, a Monitor file's facts; None without a header
for cells in lines_of(file, header, run): …
value_of("1,000"), value_of("tensor(0.5)"), value_of("None")      1000, 0.5, None
"""

from __future__ import annotations

import csv
import functools
import json
import os
import re
import time
from collections import deque
from datetime import UTC, datetime
from pathlib import Path

from rollbook.protocols import ForeignRun

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import TextIO

HALF = "lines that are half written"
"""What is counted where the last line of a file may still be written."""

_LONGEST_LINE = 16 * 1024 * 1024
_MOST_BEFORE = 50
"""At most this many comments and empty lines may precede a header."""

_SETTLED = 60.0
"""A file that has not changed for this many seconds counts as complete."""

_BLOCK = 4096
"""Programs that do not write line by line write multiples of it: a line may be cut there for hours."""

_SEPARATORS = ",\t;|"
_ENCODINGS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_NAME_ALONE = re.compile(r"[A-Za-z_][\w .()/%-]*")

_MISSING = frozenset({"none", "null", "na", "n/a", "#n/a", "<na>", "nat"})
_BOOLEANS = {"True": True, "true": True, "TRUE": True, "False": False, "false": False, "FALSE": False}
_GROUPED = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+(?:[eE][-+]?\d+)?")
_PRINTED = re.compile(
    r"(?:(?:torch\.)?tensor|(?:np|numpy|jnp)\.\w+|[Aa]rray)?\(?\[*\s*"
    r"(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?inf|nan)"
    r"\s*\]*(?:,\s*[\w.]+\s*=[^()]*(?:\(\))?)*\)?"
)
"""A number as a program prints it: tensor(0.5, device='cuda:0'), np.float64(0.5), [0.5]."""

Cell = float | int | bool | str | None


class Header:
    """The first lines of a table.

    Attributes:
      columns: their names, different from each other.
      separator: of cells; " " for any blanks.
      lines: how many lines come before the rows.
      monitor: what a Monitor file says of itself; None for other tables.
      encoding: of the file.
    """

    __slots__ = ("columns", "encoding", "lines", "monitor", "separator")

    def __init__(
        self, columns: list[str], separator: str, lines: int, monitor: Mapping[str, object] | None, encoding: str
    ) -> None:
        self.columns, self.separator, self.lines = columns, separator, lines
        self.monitor, self.encoding = monitor, encoding


def header_of(file: Path) -> Header | None:
    """The header of a table; None if its first lines are none. Comments and empty lines may stand before it."""
    try:
        encoding = _encoding_of(file)
        with open(file, encoding=encoding, errors="backslashreplace", newline="") as stream:
            first, second, lines, monitor = _first_lines(stream, file.stem == "monitor")
    except (OSError, UnicodeError):
        return None
    separator = _separator_of(first, second)
    names = [name.strip() for name in _cells_of(first, separator)]
    if names and not names[0] and "index" not in names:  # as pandas writes it
        names[0] = "index"
    if any("\x00" in name or is_number(name) for name in names) or sum(map(bool, names)) * 2 < len(names):
        return None
    if len(names) < 2 and not (names and _NAME_ALONE.fullmatch(names[0]) and is_number(second)):
        return None
    columns = _different(names)
    return Header(columns, separator, lines, monitor if {"r", "l"} <= set(columns) else None, encoding)


def _encoding_of(file: Path) -> str:
    with open(file, "rb") as stream:
        return _ENCODINGS.get(stream.read(2), "utf-8-sig")


def _first_lines(stream: TextIO, is_monitor: bool) -> tuple[str, str, int, Mapping[str, object] | None]:
    """The header line, the line behind it, the number of lines up to the header, and a Monitor file's facts."""
    monitor: Mapping[str, object] | None = None
    line, second = (stream.readline(_LONGEST_LINE) for _ in range(2))
    for number in range(1, _MOST_BEFORE):
        if line.startswith("#"):
            facts = _facts(line)
            named = line[1:].lstrip()  # TorchBeast's "# _tick,_time,…", numpy's "# step return"
            separator = _separator_of(named, second)
            is_named = len(_cells_of(named, separator)) > 1 and is_number("".join(_cells_of(second, separator)[:1]))
            if facts is None and is_named and not is_monitor:
                return named, second, number, None
            monitor = facts or monitor or {}
        elif line.strip():
            return line, second, number, monitor
        line, second = second, stream.readline(_LONGEST_LINE)
    return "", "", 0, None


def _facts(line: str) -> Mapping[str, object] | None:
    """What the comment of a Monitor file says; None for other comments."""
    try:
        facts = json.loads(line[1:])
    except (ValueError, RecursionError):
        return None
    return facts if isinstance(facts, dict) else None


def _separator_of(first: str, second: str) -> str:
    """The sign between the cells of a header: the one that gives the line behind it as many cells."""
    found = {sign: len(_cells_of(first, sign)) for sign in _SEPARATORS if sign in first}
    fitting = {sign: n for sign, n in found.items() if len(_cells_of(second, sign)) == n} or found
    if fitting:
        return max(fitting, key=lambda sign: (fitting[sign], sign == ","))
    words = second.split()
    by_blanks = len(first.split()) == len(words) > 1 and all(map(is_number, words))
    return " " if by_blanks else ","


def _cells_of(line: str, separator: str) -> list[str]:
    if separator == " ":
        return line.split()
    try:
        return next(csv.reader([line], delimiter=separator), [])
    except csv.Error:
        return []


def _different(names: Iterable[str]) -> list[str]:
    """Names of columns: of equal ones the later get a number, as in pandas; those without a name, their index."""
    columns: list[str] = []
    times: dict[str, int] = {}
    for n, name in enumerate(names):
        named = name or f"column {n + 1}"
        times[named] = times.get(named, -1) + 1
        columns.append(f"{named}.{times[named]}" if times[named] else named)
    return columns


def lines_of(file: Path, header: Header, run: ForeignRun) -> Iterator[list[str]]:
    """The lines after the header as cells of its columns; those that do not fit are counted."""
    for columns, cells in records_of(file, header, run):
        if columns is header.columns:
            yield cells
        else:
            there = dict(zip(columns, cells, strict=True))
            yield [there.get(name, "") for name in header.columns]


def records_of(file: Path, header: Header, run: ForeignRun) -> Iterator[tuple[list[str], list[str]]]:
    """(columns, cells) of each line after the header. A header that comes again, or another one, is that of the rest.

    The list of columns is the same object until another header comes. Lines that do not fit are counted.
    """
    columns = header.columns
    with open(file, encoding=header.encoding, errors="surrogateescape", newline="") as stream:
        for _ in range(header.lines):
            stream.readline(_LONGEST_LINE)
        lines = ended(stream, file, run, header.separator)
        reader: Iterator[list[str]] = (
            map(str.split, lines) if header.separator == " " else csv.reader(lines, delimiter=header.separator)
        )
        while True:
            try:
                cells = next(reader, None)
            except csv.Error:
                run.lose(f"lines of {file.name} that cannot be read")
                continue
            if cells is None:
                return
            if not cells:
                continue
            if not (cells[0][:1].isdecimal() or cells[0][:1] == "-") and _is_header(cells, header):
                known = _different(cell.strip() for cell in cells)
                columns = header.columns if known == header.columns else known
                continue
            if len(cells) != len(columns) or any("\x00" in cell for cell in cells):
                if not cells[0].startswith("#"):
                    run.lose(f"lines of {file.name} that do not fit its header")
                elif header.monitor is not None:  # another program went on with the file
                    header.monitor = _facts(",".join(cells)) or header.monitor
                continue
            if header.separator == ";":
                cells = [cell.replace(",", ".") if _DECIMAL_COMMA.fullmatch(cell.strip()) else cell for cell in cells]
            if not all(map(str.isascii, cells)):
                cells = _readable(cells, file, run)
            yield columns, cells


def _is_header(cells: list[str], header: Header) -> bool:
    """Whether a line names columns again: half of them are known ones, and none is a number."""
    known = sum(cell.strip() in header.columns for cell in cells)
    return 2 * known >= min(len(cells), len(header.columns)) and known > 0 and not any(map(is_number, cells))


def _readable(cells: list[str], file: Path, run: ForeignRun) -> list[str]:
    """The cells, with bytes that are no text spelled out."""
    readable = [cell.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace") for cell in cells]
    if readable != cells:
        run.lose(f"bytes of {file.name} that are not UTF-8")
    return readable


def ended(stream: Iterable[str], file: Path, run: ForeignRun, separator: str = ",") -> Iterator[str]:
    """The lines of a file. A last one without its end counts if it is whole: else its last number may be cut.

    What is left out is reported once the file does not grow any more.
    """
    earlier: deque[str] = deque(maxlen=50)
    for line in stream:
        if line.endswith(("\n", "\r")) or _is_whole(line, earlier, file, separator):
            yield line
            earlier.append(line)
        elif is_settled([file]):
            run.lose(f"last lines of {file.name} without their end, whose last number may be cut")
        else:
            run.leave_out(HALF)


def _is_whole(line: str, earlier: Iterable[str], file: Path, separator: str = ",") -> bool:
    """Whether the last line of a file is complete although it has no line end, as browsers and editors write it.

    Its last cell is closed by quotes, as in W&B's downloads; or the file does not grow any more, and the cell is as
    long as all cells above it.

    Args:
      earlier: lines above it.
    """
    if line.endswith('"'):
        return line.count('"') % 2 == 0
    cell = line.rpartition(separator)[2]
    lengths = {len(above.rstrip("\r\n").rpartition(separator)[2]) for above in earlier}
    return lengths == {len(cell)} and is_settled([file])


def is_settled(files: Iterable[Path]) -> bool:
    """Whether none of some files is still being written, as far as their times and sizes show."""
    try:
        stats = [os.stat(file) for file in files]
    except OSError:
        return False
    return all(time.time() - stat.st_mtime > _SETTLED and stat.st_size % _BLOCK for stat in stats)


def is_number(text: str) -> bool:
    """Whether a cell is a number."""
    return isinstance(value_of(text), (int, float))


def value_of(text: str) -> Cell:
    """A cell: a number, a boolean, a text, or None if it is empty or says that there is no value."""
    text = text.strip()
    if not text:
        return None
    if "_" not in text:  # Python reads 1_2 as twelve; in a table it is a name
        if "." not in text:
            try:
                return int(text)
            except ValueError:
                pass
        try:
            return float(text)
        except ValueError:
            pass
    return _of_words(text)


@functools.lru_cache(maxsize=65_536)
def _of_words(text: str) -> Cell:
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if text.lower() in _MISSING:
        return None
    if _GROUPED.fullmatch(text):
        return value_of(text.replace(",", ""))
    printed = _PRINTED.fullmatch(text)
    return value_of(printed["number"]) if printed is not None else text


_EARLIEST = 1e8
"""Smaller numbers are no unix time but seconds since the start."""


def moment_of(value: object) -> float | None:
    """Unix seconds of a time in seconds, milli-, micro- or nanoseconds, or in ISO's form; None for anything else.

    A text without a time zone counts as UTC.
    """
    if isinstance(value, str):
        return _of_iso(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not _EARLIEST <= value < 1e20:
        return None
    seconds = float(value)
    while seconds >= 1e11:
        seconds /= 1e3
    return seconds


@functools.lru_cache(maxsize=4096)
def _of_iso(text: str) -> float | None:
    try:
        moment = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
