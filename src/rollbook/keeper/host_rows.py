"""The machine and the keeper itself as rows of the run, written by a journal writer of the keeper's own."""

from __future__ import annotations

import os

from rollbook.ground.files import read_json, write_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

__all__ = ["HostRows"]


_SEGMENT_BYTES = 16 * 1024


class HostRows:
    """Writes one row of `host/...` and `rollbook/...` every so many seconds. Its rows know no clock but time.

    Args:
      run_folder: the run's folder.
      seconds: how often; None or 0 for never.
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
        """The id of its writer, "" as long as it has none."""
        return self._writer.id if self._writer is not None else ""

    def due(self) -> bool:
        """Whether it is time for a row."""
        return bool(self._seconds) and self._clock() >= self._due

    def prepare(self) -> None:
        """Take the first look, which rates are counted from. Costs nothing if there are to be no rows."""
        if self._seconds and self._probe is None:
            from rollbook.keeper.host.probes import Host

            self._probe = Host(self._run_folder, self._pids)
            self._probe()

    def write(self, attempt: int, clocks: tuple[str, ...], own: Mapping[str, float]) -> None:
        """Write one row of what the probes say and of `own`.

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
        """Close like any writer. Calling it twice is fine."""
        if self._writer is not None:
            self._writer.close()
            self._writer = self._log = None

    def _open(self, attempt: int, clocks: tuple[str, ...]) -> None:
        from rollbook.ground.clocks import STANDARD
        from rollbook.journal import Writer

        writer = Writer(self._run_folder, attempt=attempt, clocks=clocks or STANDARD, main=False)
        # A stream from the first row on: one key set is all there will be, and frames would load msgspec.
        writer.rows_before_stream, writer.first_segment_bytes = 1, _SEGMENT_BYTES
        writer.open()
        path = os.path.join(writer.folder, "writer.json")
        write_json(path, {**read_json(path), "keeper": True})  # nobody waits for it, and it keeps no run alive
        self._writer, self._attempt = writer, attempt
        self._log = writer.make_log(writer.channel())
