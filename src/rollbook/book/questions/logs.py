"""Text logs of a run: which there are, and parts of them."""

from __future__ import annotations

import datetime
import os
import re
from typing import BinaryIO, Literal, NamedTuple

import msgspec

from rollbook.book.questions.asked import Log
from rollbook.errors import BadInput, did_you_mean
from rollbook.schema.run_files import RunFile
from rollbook.system.files import is_regular
from rollbook.values.json_values import plain


class LogLine(msgspec.Struct, kw_only=True):
    """A line of a log file.

    Attributes:
      offset: the byte that it begins at.
      time: as the line says it, or null.
    """

    offset: int
    text: str
    time: float | None

    def bare(self) -> str:
        """The text without the time that it begins with."""
        return _STAMP.sub("", self.text) if self.time is not None else self.text

    def is_error(self) -> bool:
        """Whether the program wrote it to stderr."""
        return self.text[20:22] == "! "


class LogFile(msgspec.Struct, kw_only=True):
    """A log that can be read."""

    name: str
    label: str
    bytes: int
    kind: Literal["file", "text"]


_LABELS = {"data/keeper/log": "keeper", "log/console.log": "console"}
_SUFFIXES = (".txt", ".log", ".out", ".err")
_MOST_FILES = 200
_CHUNK = 256 * 1024
_LONGEST_LINE = 4_000
_SEARCHED = 16 << 20
_STAMP = re.compile(
    r"(\[\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[^\s\]]*\](\[INFO\])?|\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d\S*( -)?) ?"
)
_WHEN = re.compile(r"(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,6}))?(Z|[+-]\d\d:?\d\d)?")


def log_files(folder: str) -> list[LogFile]:
    """The text files of a run's folder that are logs: what the program printed, others by age, the keeper's last."""
    ranked: list[tuple[float, LogFile]] = []
    root = os.path.realpath(folder)
    roots = [os.path.join(root, "log"), os.path.join(root, "logs"), root, os.path.join(root, RunFile.KEEPER)]
    for start in roots:
        for here, folders, names in os.walk(start):
            folders[:] = (
                []
                if start in (root, roots[3])
                else [n for n in sorted(folders) if not os.path.islink(os.path.join(here, n))]
            )
            for name in sorted(names):
                path = os.path.join(here, name)
                inside = os.path.relpath(path, root).replace(os.sep, "/")
                if not (name.endswith(_SUFFIXES) or inside == "data/keeper/log") or not is_regular(path):
                    continue
                try:
                    stat = os.stat(path)
                except OSError:
                    continue
                label = _LABELS.get(inside) or os.path.splitext(name)[0]
                ranked.append(
                    (stat.st_mtime, LogFile(name=plain(inside), label=plain(label), bytes=stat.st_size, kind="file"))
                )
                if len(ranked) >= _MOST_FILES:
                    break
    ranked.sort(key=lambda pair: (pair[1].label == "keeper", pair[1].name != "log/console.log", -pair[0]))
    return list({entry.name: entry for _, entry in ranked}.values())


def log_named(folder: str, name: str) -> LogFile:
    """A log of a run by its name or label; "" is the first.

    Raises:
      BadInput: there is none, or none of that name.
    """
    known = log_files(folder)
    for entry in known:
        if name in ("", entry.name, entry.label):
            return entry
    if not known:
        raise BadInput("the run has no log: its program printed nothing, or init was called with console=False")
    raise BadInput(f"the run has no log {name!r:.100}.", did_you_mean(name, [entry.name for entry in known]))


class LogPart(NamedTuple):
    """Lines, and the range of bytes that was read."""

    lines: list[LogLine]
    start: int
    end: int
    size: int


def asked_log(question: Log, folder: str) -> LogPart:
    """The lines that a question asks for.

    Raises:
      BadInput: there is no such log.
    """
    path = os.path.join(folder, *log_named(folder, question.name).name.split("/"))
    if not question.lines:
        return LogPart([], 0, 0, 0)
    return part_of_log(path, near=question.near, lines=question.lines, search=question.search)


def part_of_log(
    path: str,
    *,
    start: int | None = None,
    before: int | None = None,
    near: float | None = None,
    lines: int = 200,
    search: str = "",
) -> LogPart:
    """Lines of a log; by default its last ones.

    Args:
      start: lines from this byte on. before: the lines that end there. near: those around a moment (unix seconds).
      lines: how many. search: only lines with these words.
    """
    words = [word.lower() for word in search.split()]
    if start is not None:
        return _forward(path, start, lines, words)
    if near is not None:
        return lines_near(path, near, lines)
    return _backward(path, before, lines, words)


def end_of_lines(path: str) -> int:
    """The offset in bytes after the last complete line."""
    size, last = os.path.getsize(path), part_of_log(path, lines=1).lines
    with open(path, "rb") as file:
        file.seek(max(0, size - 1))
        return last[-1].offset if last and file.read(1) != b"\n" else size


def lines_from(path: str, start: int, lines: int) -> tuple[LogPart, LogLine | None]:
    """The lines that ended after a byte, and the one behind them that is still being written; None if there is none."""
    part = _forward(path, start, lines, [])
    if part.end == part.size or len(part.lines) >= lines:
        return part, None
    with open(path, "rb") as file:
        file.seek(part.end)
        raw = file.read(_CHUNK)
    return part, _line(part.end, raw) if raw and b"\n" not in raw else None


def _forward(path: str, start: int, most: int, words: list[str], stop: int = 0) -> LogPart:
    """The next lines: `most` that fit, and all that begin before the byte `stop`."""
    size = os.path.getsize(path)
    start = min(max(0, start), size)
    lines_that_fit: list[LogLine] = []
    offset = start
    with open(path, "rb") as file:
        file.seek(start)
        while (len(lines_that_fit) < most or offset < stop) and offset - start < _SEARCHED:
            raw = file.readline(_CHUNK)
            if not raw or (not raw.endswith(b"\n") and len(raw) < _CHUNK):
                break  # a line that is still being written
            line = _line(offset, raw)
            offset += len(raw)
            if _fits(line, words):
                lines_that_fit.append(line)
    return LogPart(lines_that_fit, start, offset, size)


def _backward(path: str, before: int | None, most: int, words: list[str]) -> LogPart:
    size = os.path.getsize(path)
    end = size if before is None else min(max(0, before), size)
    lines_that_fit: list[LogLine] = []
    offset, rest = end, b""
    with open(path, "rb") as file:
        while offset > 0 and len(lines_that_fit) < most and end - offset < _SEARCHED:
            step = min(_CHUNK, offset)
            offset -= step
            file.seek(offset)
            block = file.read(step) + rest
            head = 0 if offset == 0 else block.find(b"\n") + 1
            if head == 0 and offset > 0:
                rest = block[:_CHUNK]
                continue
            rest, block = block[:head], block[head:]
            lines, at = [], offset + head
            for raw in block.splitlines(keepends=True):
                lines.append(_line(at, raw))
                at += len(raw)
            lines_that_fit = [line for line in lines if _fits(line, words)] + lines_that_fit
            offset += head
            rest = b""
    lines_that_fit = lines_that_fit[-most:]
    return LogPart(lines_that_fit, lines_that_fit[0].offset if lines_that_fit else offset, end, size)


def lines_near(path: str, moment: float, most: int) -> LogPart:
    """Lines around a moment, if lines have times; the file is assumed to be in order of time."""
    size = os.path.getsize(path)
    low, high = 0, size
    with open(path, "rb") as file:
        for _ in range(48):
            if high - low < 4_096:
                break
            middle = (low + high) // 2
            moment_found = _first_time(file, middle, high)
            if moment_found is not None and moment_found <= moment:
                low = middle
            else:
                high = middle
        if low:  # it may be within a line
            file.seek(low - 1)
            file.readline(_CHUNK)
            low = file.tell()
    before = _backward(path, low, max(1, most // 2), [])
    near = _forward(path, low, 0, [], high)
    after = _forward(path, near.end, most, [])
    lines = [*before.lines, *near.lines, *after.lines]
    times = [line.time for line in lines]
    if not any(moment_found is not None for moment_found in times):
        return LogPart([], 0, 0, size)
    nearest = min(range(len(lines)), key=lambda n: abs((times[n] if times[n] is not None else float("inf")) - moment))  # type: ignore[operator]
    first = max(0, nearest - most // 2)
    while first < nearest and times[first] is None:  # a message of several lines is shown from its first line
        first += 1
    chosen = lines[first : first + most]
    return LogPart(chosen, chosen[0].offset, after.end, size)


def _first_time(file: BinaryIO, start: int, stop: int) -> float | None:
    file.seek(start)
    block = file.read(min(64 * 1024, stop - start))
    _, _, block = block.partition(b"\n")
    return _time_in(block.decode("utf-8", "replace"))


def _line(offset: int, raw: bytes) -> LogLine:
    text = raw[:_LONGEST_LINE].decode("utf-8", "replace").rstrip("\r\n")
    return LogLine(offset=offset, text=text + (" …" if len(raw) > _LONGEST_LINE else ""), time=_time_in(text[:64]))


def _fits(line: LogLine, words: list[str]) -> bool:
    text = line.text.lower()
    return all(word in text for word in words)


def _time_in(text: str) -> float | None:
    """The time in a text; without a zone, local time."""
    match = _WHEN.search(text)
    if not match:
        return None
    numbers = [int(part) for part in match.groups()[:6]]
    micro = int((match[7] or "0").ljust(6, "0"))
    try:
        moment_found = datetime.datetime(numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5], micro)
        if match[8]:
            zone = "+00:00" if match[8] == "Z" else match[8]
            moment_found = datetime.datetime.fromisoformat(
                moment_found.isoformat() + (zone if ":" in zone else f"{zone[:3]}:{zone[3:]}")
            )
        return moment_found.timestamp()
    except (ValueError, OverflowError, OSError):
        return None
