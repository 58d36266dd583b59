"""Csv: tables in log/csv/, one per scope."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

from rollbook.sinks._files import FileSink
from rollbook.sinks._plain import file_name, leaving_out, whole_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rollbook.protocols import Row, RunInfo

FOLDER = "log/csv"
LEFT_OUT = r"^(host|rollbook)/"
MOST_GROUPS = 64
MOST_PARTS = 32
MOST_KINDS = 10_000
_NAME = re.compile(r"(?P<group>[A-Za-z0-9_-]+)(?:\.(?P<part>\d+|long))?\.csv\Z")
_QUOTED = re.compile(r'[",\r\n]|\A\s|\s\Z|\A\Z')


class Csv(FileSink):
    """Rows as comma-separated tables: log/csv/train.csv, log/csv/update.csv, … with `per_scope`, else metrics.csv.

    Columns are time (unix seconds), attempt, the clocks the row knows, then its keys by their full names. A file's
    header never changes and no line is written twice. A row with a column that its file lacks begins the next part,
    `train.2.csv`, with the columns of that row. Later rows go to the newest part that has all their columns and is not
    much wider than they are. So columns may appear at any time, and the cost grows only with the number of rows. To
    read a whole scope, join its parts by name: `pandas.concat(map(pandas.read_csv, paths))`. After 32 parts, rows that
    fit none go to `train.long.csv`, one line for each value.

    Quoting follows RFC 4180; lines end in LF; UTF-8. An empty cell is a missing value; NaN is `nan`, infinities are
    `inf` and `-inf`; truth values are `True` and `False`; text is always quoted; floats have all their digits.

    Args:
      per_scope: one table per scope (for rows logged outside a scope: per first part of their keys, if they share it);
        otherwise one table for all.
      leave_out: a regular expression; matching keys are not written. By default it excludes what the run did not log:
        the host's metrics and rollbook's own. "" writes everything.
    """

    accepts: frozenset[type] = frozenset({float, int, bool, str})

    def __init__(self, *, per_scope: bool = True, leave_out: str = LEFT_OUT) -> None:
        super().__init__()
        self._per_scope = per_scope
        self._left_out = leaving_out(leave_out, "csv")
        self._clocks: tuple[str, ...] = ()
        self._parts: dict[str, dict[int, tuple[str, ...]]] = {}  # group -> part -> its columns
        self._long: set[str] = set()  # groups that have a long file
        # (scope, clocks, keys) -> where such rows go; None: nowhere
        self._targets: dict[object, _Target | None] = {}

    def _opened(self, run: RunInfo) -> None:
        self._clocks = run.clocks

    def _owned(self) -> Iterable[str]:
        folder = Path(self._at(FOLDER))
        if not folder.is_dir():
            return []
        return sorted(f"{FOLDER}/{file.name}" for file in folder.iterdir() if _NAME.match(file.name))

    def _reread(self) -> None:
        self._parts, self._long, self._targets = {}, set(), {}
        for path in self._lengths:
            match = _NAME.match(path.rpartition("/")[2])
            if match is None:
                continue
            parts = self._parts.setdefault(match["group"], {})
            if match["part"] == "long":
                self._long.add(match["group"])
                continue
            with open(self._at(path), newline="", encoding="utf-8", errors="replace") as file:
                try:
                    parts[int(match["part"] or 1)] = tuple(next(csv.reader(file), ()))
                except csv.Error:  # not a table (any more): begin another part
                    parts[int(match["part"] or 1)] = ()

    def _remember(self) -> object:
        return {group: dict(parts) for group, parts in self._parts.items()}, set(self._long)

    def _recall(self, token: Any) -> None:
        self._parts, self._long = token
        self._targets = {}

    def _render(self, rows: Sequence[Row]) -> Iterator[tuple[str, bytes]]:
        for row in rows:
            if not row.values:
                continue
            kind = (row.scope, tuple(row.clocks), tuple(row.values))
            if kind in self._targets:
                target = self._targets[kind]
            else:
                target = self._find(row)
                if target is not None and target.header:
                    yield target.path, target.header
                    target.header = b""
                if len(self._targets) >= MOST_KINDS:
                    self._targets = {}
                self._targets[kind] = target
            if target is not None:
                yield target.path, target.lines(row).encode()

    def _find(self, row: Row) -> _Target | None:
        """Choose the file for rows with these keys from now on. Sets the header if the file is new."""
        keys = [key for key in row.values if self._left_out is None or not self._left_out.search(key)]
        if not keys:
            return None
        group = self._group(row, keys)
        parts = self._parts.setdefault(group, {})
        clocks = sorted(row.clocks, key=self._order)
        sources: dict[str, tuple[str, str]] = {"time": ("time", ""), "attempt": ("attempt", "")}
        sources.update((clock, ("clock", clock)) for clock in clocks)
        for key in keys:
            name = _utf8(key)
            while name in sources:
                name = f"value/{name}"
            sources[name] = ("value", key)
        for part in sorted(parts, reverse=True):
            if len(parts[part]) <= 2 * len(sources) + 8 and sources.keys() <= set(parts[part]):
                return _Target(_path(group, part), [sources.get(name, ("", "")) for name in parts[part]])
        if len(parts) < MOST_PARTS:
            part = max(parts, default=0) + 1
            parts[part] = tuple(sources)
            self._targets = {}  # the new part takes over the kinds that fit it
            return _Target(_path(group, part), list(sources.values()), _header(sources))
        columns = [("time", ""), ("attempt", ""), *(("clock", clock) for clock in self._clocks)]
        header = b"" if group in self._long else _header(("time", "attempt", *self._clocks, "key", "value"))
        self._long.add(group)
        return _Target(f"{FOLDER}/{group}.long.csv", columns, header, keys)

    def _order(self, clock: str) -> int:
        return self._clocks.index(clock) if clock in self._clocks else len(self._clocks)

    def _group(self, row: Row, keys: Sequence[str]) -> str:
        name = ""
        if self._per_scope:
            name = row.scope
            if not name:
                firsts = {key.partition("/")[0] if "/" in key else "" for key in keys}
                name = firsts.pop() if len(firsts) == 1 else ""
        name = file_name(name) if name else "metrics"
        if name not in self._parts and name.lower() in map(str.lower, self._parts):
            name = file_name(f"{name}.")  # some systems take Train.csv and train.csv for one file
        return name if name in self._parts or len(self._parts) < MOST_GROUPS else "other"


class _Target:
    """A file, and which part of a row goes into which of its columns."""

    __slots__ = ("header", "long_keys", "path", "sources")

    def __init__(
        self, path: str, sources: list[tuple[str, str]], header: bytes = b"", long_keys: Sequence[str] = ()
    ) -> None:
        self.path, self.sources, self.header, self.long_keys = path, sources, header, long_keys

    def lines(self, row: Row) -> str:
        cells = []
        for what, name in self.sources:
            if what == "value":
                cells.append(_cell(row.values[name]))
            elif what == "clock":
                cells.append(_cell(row.clocks.get(name)))
            elif what:
                cells.append(_cell(row.time if what == "time" else row.attempt))
            else:
                cells.append("")
        if not self.long_keys:
            return ",".join(cells) + "\n"
        start = ",".join(cells)
        return "".join(f"{start},{_cell(key)},{_cell(row.values[key])}\n" for key in self.long_keys)


def _path(group: str, part: int) -> str:
    return f"{FOLDER}/{group}.csv" if part == 1 else f"{FOLDER}/{group}.{part}.csv"


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "True" if value else "False"
    if isinstance(value, float):
        return float.__repr__(value)
    if isinstance(value, int):
        return whole_number(value)
    # A kind of value that a table cannot hold is normally not offered; if it is, the cell holds its description.
    return _quoted(_utf8(value if isinstance(value, str) else repr(value)))


def _header(names: Iterable[str]) -> bytes:
    return (",".join(_quoted(name) if _QUOTED.search(name) else name for name in names) + "\n").encode()


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _utf8(text: str) -> str:
    """The text with unpaired surrogates, which UTF-8 cannot encode, escaped."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
