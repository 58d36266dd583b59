"""A delimited text file that gets its columns as they come: the native progress files of several frameworks.

    table = GrowingTable("progress.csv")
    table.write({"loss": 0.5})
    table.write({"loss": 0.4, "kl": 0.01})       # the header becomes loss,kl; the first row gets an empty cell

Rows are appended by one write each. A new column needs a new header, hence a new file: it is written beside and
renamed, so a kill leaves the old file or the new one, whole. Rows for a large file wait in memory until rewriting pays
(a quarter of the file, or a few seconds, whichever is first), so that n new columns cost O(n), not O(n²).
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

__all__ = ["GrowingTable"]

SMALL = 256 * 1024
"""Files up to this many bytes are rewritten at once: it takes less than a millisecond."""

WAIT_SECONDS = 5.0


class GrowingTable:
    """See the module.

    Args:
      path: the file; its folder is made.
      delimiter: one character.
      append: keep the rows and columns of a file that is there; otherwise it is emptied.
      quote_text: quote every text cell, not only those that need it.
      clock: seconds that never step back.
    Raises (every method): OSError, with the file as it was before the call.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        delimiter: str = ",",
        *,
        append: bool = True,
        quote_text: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path = os.path.abspath(os.fspath(path))
        self.delimiter = delimiter
        self.columns: list[str] = []
        self._quote_text, self._clock = quote_text, clock
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

    # -- writing

    def add_columns(self, names: list[str]) -> None:
        """Make sure these columns exist, in this order after those there are; nothing is written yet."""
        self.columns += [name for name in names if name not in self.columns]

    def write(self, row: Mapping[str, Any]) -> None:
        """Append one row; None and missing columns are empty cells, new ones become columns in the row's order."""
        if self._file is None:
            raise OSError(f"{self.path} was closed")
        self.add_columns(list(row))
        cells = [self._cell(row.get(name)) for name in self.columns]
        line = self.delimiter.join(cells) + "\n"
        if len(self.columns) == self._written and not self._pending:
            self._append(line)
            return
        if not self._pending:
            self._waiting_since = self._clock()
        self._pending.append(line)
        self._pending_bytes += len(line)
        size = os.path.getsize(self.path)
        long_enough = self._clock() - self._waiting_since >= WAIT_SECONDS
        if size <= SMALL or 4 * self._pending_bytes >= size or long_enough:
            self.flush()

    def flush(self) -> None:
        """Bring the file up to date with everything written so far."""
        if self._pending or len(self.columns) != self._written:
            self._rewrite()

    def close(self) -> None:
        """Flush and let go; calling it twice is fine."""
        if self._file is not None:
            try:
                self.flush()
            finally:
                self._file.close()
                self._file = None

    # -- the file

    def _append(self, line: str) -> None:
        before = os.fstat(self._file.fileno()).st_size
        try:
            self._file.write(line)
            self._file.flush()
        except OSError:
            self._file = _reopened(self._file, self.path, before)
            raise

    def _rewrite(self) -> None:
        added = len(self.columns) - self._written
        beside = f"{self.path}.{os.getpid()}.tmp"
        try:
            with (
                open(self.path, encoding="utf-8", newline="") as old,
                open(beside, "w", encoding="utf-8", newline="") as new,
            ):
                new.write(self.delimiter.join(self._quoted(name) for name in self.columns) + "\n")
                if self._written:
                    _skip_record(old)
                _copy_padded(old, new, self.delimiter * added if self._written else "")
                width = len(self.columns) - 1
                for line in self._pending:
                    new.write(_padded(line, width, self.delimiter))
            os.replace(beside, self.path)
        except OSError:
            if os.path.exists(beside):
                os.unlink(beside)
            raise
        self._file.close()
        self._file = _to_append(self.path)
        self._written = len(self.columns)
        self._pending.clear()
        self._pending_bytes = 0

    def _adopt(self) -> None:
        """Take over the header of the file that is there; a last line without an end was torn by a kill and goes."""
        import csv

        size = os.path.getsize(self.path)
        with open(self.path, "rb+") as file:
            if size:
                whole = _end_of_last_line(file, size)
                if whole != size:
                    file.truncate(whole)
        with open(self.path, encoding="utf-8", errors="surrogateescape", newline="") as text:
            header = next(csv.reader(text, delimiter=self.delimiter), [])
        self.columns = list(header)
        self._written = len(header)

    def _cell(self, value: Any) -> str:
        if value is None:
            return ""
        return self._quoted(str(value), always=self._quote_text and isinstance(value, str))

    def _quoted(self, text: str, always: bool = False) -> str:
        if always or any(c in text for c in (self.delimiter, '"', "\n", "\r")):
            return '"' + text.replace('"', '""') + '"'
        return text


def _to_append(path: str) -> Any:
    return open(path, "a", encoding="utf-8", newline="")  # lives as long as the table


def _padded(line: str, width: int, delimiter: str) -> str:
    """A pending line was made when there were fewer columns: fill it up. Cells hold delimiters only inside quotes."""
    import csv

    have = len(next(csv.reader([line], delimiter=delimiter), [])) - 1 if '"' in line else line.count(delimiter)
    return line[:-1] + delimiter * (width - have) + "\n"


def _skip_record(file: Any) -> None:
    """Read past one record, which may span lines inside quotes."""
    quotes = 0
    for line in file:
        quotes += line.count('"')
        if quotes % 2 == 0:
            return


def _copy_padded(old: Any, new: Any, padding: str) -> None:
    quotes = 0
    for line in old:
        quotes += line.count('"')
        if quotes % 2 == 0 and line.endswith("\n"):
            body = line[:-2] if line.endswith("\r\n") else line[:-1]
            new.write(f"{body}{padding}{line[len(body) :]}")
        else:
            new.write(line)


def _end_of_last_line(file: Any, size: int) -> int:
    at = size
    while at > 0:
        start = max(0, at - 65_536)
        file.seek(start)
        found = file.read(at - start).rfind(b"\n")
        if found >= 0:
            return int(start + found + 1)
        at = start
    return 0


def _reopened(file: Any, path: str, size: int) -> Any:
    """After a failed append: drop what was buffered and cut the file back to its last whole row."""
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
