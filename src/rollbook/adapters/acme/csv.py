"""CSVLogger: records in a CSV file that keeps its rows after a kill and accepts new columns."""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from rollbook.adapters._table import GrowingTable
from rollbook.adapters.acme._throttle import Throttle
from rollbook.adapters.acme.base import Logger, LoggingData, to_numpy
from rollbook.adapters.acme.paths import process_path
from rollbook.errors import BadInput
from rollbook.system.bill import Bill


class CSVLogger(Logger):
    """Writes each record as a row. The operating system has the row when `write` returns.

    New keys become new columns: the file is rewritten with the longer header and replaced atomically (files above 256
    KiB within seconds). A file that already has rows is continued under its own header. In a file that the caller
    opened, the header cannot change: values of new keys are counted and reported once per key.

    Args:
      directory_or_file: a directory; the file is `<directory>/<unique id>/logs/<label>/logs.csv`. Or an open text file
        in append mode, which is flushed and never closed.
      label: part of the path, see above.
      time_delta: minimum seconds between rows; the last record is written at `close` at the latest.
      add_uid: whether the unique id (see `paths.get_unique_id`) is part of the path.
      flush_every: for a file of the caller: the number of rows between flushes.
      clock: monotonic seconds.
    Raises:
      BadInput: `flush_every` is below 1.
    """

    def __init__(
        self,
        directory_or_file: str | os.PathLike[str] | TextIO = "~/acme",
        label: str = "",
        time_delta: float = 0.0,
        add_uid: bool = True,
        flush_every: int = 30,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if flush_every <= 0:
            raise BadInput(f"flush_every={flush_every!r}: give a number of rows, at least 1")
        self._table: _OwnFile | _CallersFile
        if isinstance(directory_or_file, (str, os.PathLike)):
            folder = process_path(os.fspath(directory_or_file), "logs", label, add_uid=add_uid)
            self._table = _OwnFile(Path(folder) / "logs.csv")
        else:
            self._table = _CallersFile(directory_or_file, flush_every)
        self._throttle = Throttle(self._table.append, time_delta, clock=clock)

    def write(self, data: LoggingData) -> None:
        """Append `data`, if it is due. Missing values and None are empty cells.

        Args:
          data: the record.
        """
        self._throttle.offer(to_numpy(dict(data)))

    def flush(self) -> None:
        """Write the held record."""
        self._throttle.flush()
        self._table.flush()

    def close(self) -> None:
        """Write the held record and close the file, unless it is the caller's."""
        self._throttle.flush()
        self._table.close()

    @property
    def file_path(self) -> str:
        """The path of the file."""
        return self._table.name


class _OwnFile(GrowingTable):
    """A file of this adapter: its header may grow."""

    @property
    def name(self) -> str:
        return self.path

    def append(self, data: LoggingData) -> None:
        if data:
            self.write({str(key): data[key] for key in sorted(data, key=str)})


class _CallersFile:
    """An open file of the caller: its header is fixed once written."""

    def __init__(self, file: TextIO, flush_every: int) -> None:
        mode = getattr(file, "mode", "a")  # a StringIO has no mode and only appends
        if not str(mode).startswith("a"):
            raise BadInput(f"CSVLogger was given a file opened in mode {mode!r}; open it with mode 'a' to append rows")
        self._file, self._flush_every = file, flush_every
        self._columns: list[str] | None = None
        self._rows = 0
        self._bill = Bill(who="CSVLogger")

    @property
    def name(self) -> str:
        return str(getattr(self._file, "name", ""))

    def append(self, data: LoggingData) -> None:
        writer = csv.writer(self._file, lineterminator="\n")
        if self._columns is None:
            self._columns = self._header() or sorted(map(str, data))
            if not self._file.tell() and self._columns:
                writer.writerow(self._columns)
        for key in data.keys() - set(self._columns):
            self._bill.report(
                str(key), f"the header of {self.name or 'the file'} has no column {key!r}; its values are not written"
            )
        if self._columns:
            writer.writerow([_cell(data.get(column)) for column in self._columns])
        if self._rows % self._flush_every == 0:
            self._file.flush()
        self._rows += 1

    def _header(self) -> list[str]:
        """The columns the file has already."""
        path = self.name
        if not self._file.tell() or not os.path.isfile(path):
            return []
        with open(path, newline="", encoding="utf-8") as existing:
            return next(csv.reader(existing), [])

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.flush()


def _cell(value: object) -> str:
    return "" if value is None else str(value)
