"""A delimited text file that gains columns as they appear: the native progress files of several frameworks.

    table = GrowingTable("progress.csv")
    table.write({"loss": 0.5})
    table.write({"loss": 0.4, "kl": 0.01})       # the header becomes loss,kl; the first row gets an empty cell

Each row is appended with one write. A new column needs a new header: a new file is written and renamed over the old
one, so a kill leaves either file complete. For a large file, rows wait in memory until rewriting pays (a quarter of
the file, or a few seconds, whichever is first), so that n new columns cost O(n), not O(n²).
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

WAIT_SECONDS = 5.0


class GrowingTable:
    """See the module.

    Args:
      path: the file; its folder is created.
      delimiter: one character.
      append: keep the rows and columns of an existing file; otherwise it is emptied.
      clock: monotonic seconds.
      small: files up to this many bytes are rewritten at once, which takes a fraction of a millisecond.
    Raises (every method): OSError, with the file as it was before the call.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        delimiter: str = ",",
        *,
        append: bool = True,
        clock: Callable[[], float] = time.monotonic,
        small: int = 32 * 1024,
    ) -> None:
        self.path = os.path.abspath(os.fspath(path))
        self.delimiter = delimiter
        self.columns: list[str] = []
        self._known: set[str] = set()
        self._clock, self._small = clock, small
        self._written = 0  # how many of the columns the header on disk has
        self._pending: list[str] = []
        self._pending_bytes = 0
        self._waiting_since = 0.0
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        if append and os.path.exists(self.path):
            self._adopt()
        else:
            open(self.path, "w").close()
        self._file: Any = _to_append(self.path)
        self._size = os.path.getsize(self.path)

    # -- writing

    def add_columns(self, names: list[str]) -> None:
        """Ensure that these columns exist, in this order after the existing ones. Nothing is written yet."""
        for name in names:
            if name not in self._known:
                self._known.add(name)
                self.columns.append(name)

    def write(self, row: Mapping[str, object]) -> None:
        """Append one row; None and missing columns are empty cells, new ones become columns in the row's order."""
        if self._file is None:
            raise OSError(f"{self.path} was closed")
        if not row.keys() <= self._known:
            self.add_columns(list(row))
        cells = [self._cell(value) for value in map(row.get, self.columns)]
        line = self.delimiter.join(cells) + "\n"
        if len(self.columns) == self._written and not self._pending:
            self._append(line)
            return
        if not self._pending:
            self._waiting_since = self._clock()
        self._pending.append(line)
        self._pending_bytes += len(line)
        size = self._size
        long_enough = self._clock() - self._waiting_since >= WAIT_SECONDS
        if size <= self._small or 4 * self._pending_bytes >= size or long_enough:
            self.flush()

    @property
    def closed(self) -> bool:
        """Whether it was closed, under the name that file objects use."""
        return self._file is None

    def flush(self) -> None:
        """Bring the file up to date with everything written so far."""
        if self._pending or len(self.columns) != self._written:
            self._rewrite()

    def close(self) -> None:
        """Flush and close the file; calling it twice is fine."""
        if self._file is not None:
            try:
                self.flush()
            finally:
                self._file.close()
                self._file = None

    # -- the file

    def _append(self, line: str) -> None:
        data = line.encode("utf-8", "surrogateescape")
        try:
            self._file.write(data)
            self._file.flush()
            self._size += len(data)
        except OSError:
            self._file = _reopened(self._file, self.path, self._size)
            raise

    def _rewrite(self) -> None:
        added = len(self.columns) - self._written
        temporary = f"{self.path}.{os.getpid()}.tmp"
        try:
            with open(self.path, "rb") as file:
                old = file.read().decode("utf-8", "surrogateescape")
            width = len(self.columns) - 1
            parts = [self.delimiter.join(self._quoted(name) for name in self.columns) + "\n"]
            if self._written:
                parts += _padded_records(old, self.delimiter * added)
            parts += [_padded(line, width, self.delimiter) for line in self._pending]
            data = "".join(parts).encode("utf-8", "surrogateescape")
            with open(temporary, "wb") as new:
                new.write(data)
            os.replace(temporary, self.path)
        except OSError:
            if os.path.exists(temporary):
                os.unlink(temporary)
            raise
        self._file.close()
        self._file, self._size = _to_append(self.path), len(data)
        self._written = len(self.columns)
        self._pending.clear()
        self._pending_bytes = 0

    def _adopt(self) -> None:
        """Take over the header of an existing file. A last line without an end was cut by a kill and is removed."""
        import csv

        size = os.path.getsize(self.path)
        with open(self.path, "rb+") as file:
            if size:
                whole = _end_of_last_line(file, size)
                if whole != size:
                    file.truncate(whole)
        with open(self.path, encoding="utf-8", errors="surrogateescape", newline="") as text:
            header = next(csv.reader(text, delimiter=self.delimiter), [])
        self.columns, self._known = list(header), set(header)
        self._written = len(header)

    def _cell(self, value: object) -> str:
        if value is None:
            return ""
        if isinstance(value, (float, int)):
            return str(value)
        return self._quoted(str(value))

    def _quoted(self, text: str) -> str:
        if not text.isascii():  # half a character of UTF-16 has no UTF-8
            text = text.encode("utf-8", "backslashreplace").decode()
        if any(c in text for c in (self.delimiter, '"', "\n", "\r")):
            return '"' + text.replace('"', '""') + '"'
        return text


def _to_append(path: str) -> object:
    return open(path, "ab")  # open as long as the table


def _padded(line: str, width: int, delimiter: str) -> str:
    """Pad a pending line that was made when there were fewer columns. Delimiters inside cells are always quoted."""
    import csv

    have = len(next(csv.reader([line], delimiter=delimiter), [])) - 1 if '"' in line else line.count(delimiter)
    return line[:-1] + delimiter * (width - have) + "\n"


def _padded_records(text: str, padding: str) -> list[str]:
    """All records of `text` except the first (the header), with `padding` before the end of each."""
    if '"' not in text:  # no cell can hold a newline
        _, _, body = text.partition("\n")
        return [body.replace("\n", f"{padding}\n")]
    records, record, quotes = [], "", 0
    for line in text.splitlines(keepends=True):
        record += line
        quotes += line.count('"')
        if quotes % 2 == 0 and line.endswith("\n"):
            records.append(f"{record[:-1]}{padding}\n")
            record = ""
    return records[1:]


def _end_of_last_line(file: Any, size: int) -> int:
    at = size
    while at > 0:
        start = max(0, at - 65_536)
        file.seek(start)
        newline = file.read(at - start).rfind(b"\n")
        if newline >= 0:
            return int(start + newline + 1)
        at = start
    return 0


def _reopened(file: Any, path: str, size: int) -> object:
    """After a failed append: drop the buffer and truncate the file to its last complete row."""
    try:
        file.close()
    except OSError:
        pass
    fresh = _to_append(path)
    try:
        os.truncate(path, size)
    except OSError:
        pass
    return fresh
