"""The machine and the keeper as rows of the run, written by the keeper's own journal writer."""

from __future__ import annotations

import os

from rollbook.schema.run_files import RunFile
from rollbook.system.files import read_json, write_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any


_SEGMENT_BYTES = 16 * 1024


class HostRows:
    """Writes one row of `host/...` and `rollbook/...` at an interval. Its rows have only time as their clock.

    Args:
      run_folder: the run's folder.
      seconds: the interval; None or 0 for never.
      pids: the processes whose trees are added up.
      clock: seconds, monotonic.
    """

    def __init__(
        self,
        run_folder: str,
        seconds: float | None,
        pids: Callable[[], Iterable[int]],
        clock: Callable[[], float],
    ) -> None:
        self._run_folder, self._seconds, self._pids, self._clock = run_folder, seconds, pids, clock
        self._probe: Any = None
        self._writer: Any = None
        self._log: Any = None
        self._attempt = 0
        self._due = clock() + (seconds or 0.0)

    @property
    def writer_id(self) -> str:
        """The id of its writer; "" before it has one."""
        return self._writer.id if self._writer is not None else ""

    def due(self) -> bool:
        """Whether it is time for a row."""
        return bool(self._seconds) and self._clock() >= self._due

    def prepare(self) -> None:
        """Measure once as the base of the rates. Costs nothing if no rows are wanted."""
        if self._seconds and self._probe is None:
            from rollbook.keeper.host.probes import Host

            self._probe = Host(self._run_folder, self._pids)
            self._probe()

    def write(self, attempt: int, clocks: tuple[str, ...], own: Mapping[str, float]) -> None:
        """Write one row of the probes' values and of `own`.

        Raises:
          OSError: the writer's folder cannot be made.
        """
        self._due = self._clock() + (self._seconds or 0.0)
        self.prepare()
        if self._writer is None or self._attempt != attempt:
            self.close()
            self._open(attempt, clocks)
        row = {key: float(value) for key, value in {**self._probe(), **own}.items()}
        self._log(row)
        self._writer.tick()

    def close(self) -> None:
        """Close the writer. Calling it twice is fine."""
        if self._writer is not None:
            self._writer.close()
            self._writer = self._log = None

    def _open(self, attempt: int, clocks: tuple[str, ...]) -> None:
        from rollbook.journal import Writer
        from rollbook.schema.clocks import STANDARD

        writer = Writer(self._run_folder, attempt=attempt, clocks=clocks or STANDARD, main=False)
        # A stream from the first row on: there is only one key set, and frames would load msgspec.
        writer.rows_before_stream, writer.first_segment_bytes = 1, _SEGMENT_BYTES
        writer.open()
        path = os.path.join(writer.folder, RunFile.WRITER)
        write_json(path, {**read_json(path), "keeper": True})  # others do not wait for it, and it keeps no run alive
        self._writer, self._attempt = writer, attempt
        self._log = writer.make_log(writer.channel())
