"""The run's own thread: once a second it does the work that must not happen in `log`, and feeds live sinks."""

from __future__ import annotations

import os
import threading
import time

from rollbook.schema.run_files import RunFile
from rollbook.system.guard import handled_by, tolerating
from rollbook.system.tuning import TUNING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from rollbook.run.run import Run

COST_SECONDS = 10.0
"""Seconds between two logs of rollbook's own cost; until the first, `TUNING.first_cost_seconds`."""

_LOOK_SECONDS = 0.03
"""Seconds between two checks for a late sync."""

_ROUND_SECONDS = 1.0

_JUST_NOW = 0.2
"""A sync at most this many seconds ago is the one that a round follows. An earlier one is the one before: the keeper's
second lasts a little longer than a second, and rounds that took any sync would drift until they came just before one.
"""


class Ticker(threading.Thread):
    """Fetches device values, prepares segments in advance, writes the configuration, feeds sinks of this process.

    Args:
      run: its run.
      sinks: an object with step() and close(), or None; the sinks that must live in this process (terminal, objects).
      late: functions called once, in this thread, soon after the start (provenance).
    """

    def __init__(self, run: Run, sinks: Any, late: tuple[Callable[[], None], ...] = ()) -> None:
        super().__init__(name="rollbook", daemon=True)
        self._run, self._sinks, self._late = run, sinks, list(late)
        self._stop_event = threading.Event()
        self._cost_due = time.monotonic() + TUNING.first_cost_seconds
        self.own_rows = 0  # about rollbook's own cost
        self._rows_at_last = 0  # number of rows when the last such row was written
        self._sync_announced = False  # whether the next round follows a sync
        self._synced = os.path.join(run.folder, RunFile.KEEPER, RunFile.DURABLE)
        self._log = run._writer.make_log(
            run._writer.channel(prefix="rollbook/", scope="rollbook", current=run._channel.current)
        )

    def run(self) -> None:
        """The thread's body. The first rounds come early: the first, small segments fill in less than a second."""
        self.tick()
        pause = _ROUND_SECONDS / 8
        while not self._stop_event.wait(pause):
            self._await_sync()
            self.tick()
            pause = 2 * pause if 2 * pause < _ROUND_SECONDS else self._until_synced()

    def _until_synced(self) -> float:
        """Seconds until shortly after the keeper's next sync. A sync makes every page clean; this thread then faults in
        the pages of the coming rows, so that `log` does not have to.
        """
        since = time.time() - self._synced_at()
        if not 0 <= since < 2:
            return _ROUND_SECONDS
        self._sync_announced = True
        pause = _ROUND_SECONDS - since + 0.03
        return pause if pause >= _ROUND_SECONDS / 2 else pause + _ROUND_SECONDS

    def _await_sync(self) -> None:
        """Wait a little longer for the sync that this round follows: a busy keeper is late."""
        announced, self._sync_announced = self._sync_announced, False
        for _ in range(TUNING.sync_looks if announced else 0):
            if abs(time.time() - self._synced_at()) < _JUST_NOW or self._stop_event.wait(_LOOK_SECONDS):
                return

    def _synced_at(self) -> float:
        """Time of the keeper's last sync in unix seconds; 0.0 if there was none."""
        with tolerating(OSError):
            return os.stat(self._synced).st_mtime
        return 0.0

    def tick(self, final: bool = False) -> None:
        """One round. Failures are counted and never end the thread. A strict run raises them in `finish`."""
        self._run._writer.bill.whole(self._round, final)

    def _round(self, final: bool) -> None:
        run = self._run
        for work in (
            run._writer.tick,
            *self._take_late(),
            self._settle,
            self._own_cost,
            self._feed,
            run._check_sinks,
            self._see_keeper,
            self._see_opener,
        ):
            with handled_by(run._writer.failed, "keep house"):
                work()
        if final and self._sinks is not None:
            with handled_by(run._writer.failed, "close sinks"):
                self._sinks.close()

    def stop(self) -> None:
        """End the thread (wait at most five seconds for its current round) and do a last round here."""
        self._stop_event.set()
        if self.is_alive() and threading.current_thread() is not self:
            self.join(5.0)

    def _take_late(self) -> list[Callable[[], None]]:
        late, self._late = self._late, []
        return late

    def settle(self) -> None:
        """Give the sinks here all that the journal has."""
        if self._sinks is not None:
            with handled_by(self._run._writer.failed, "keep house"):
                self._sinks.settle()

    def _feed(self) -> None:
        if self._sinks is not None:
            self._sinks.step()
        console = self._run._parts.console
        if console is not None and console.is_due:
            console.settle()
            trouble, console.trouble = console.trouble, ""
            if trouble:
                self._run.count("console", message=f"what the program prints could not be kept: {trouble}")

    def _settle(self) -> None:
        run = self._run
        if run._config_is_new and run._writer.main and not run._writer.fenced:
            run._config_is_new = False
            run._write_config_files()
            run._manifest_due = True
        run._check_others()
        if run._manifest_due and run._writer.main and not run._writer.fenced and not run._writer.closed:
            run._write_about()

    def _see_keeper(self) -> None:
        """Replace a keeper that ended or hangs while this process writes."""
        watch = self._run._parts.keeper_watch
        if watch is not None and not self._run._writer.closed:
            watch.look()

    def _see_opener(self) -> None:
        """End the run if the adapter that opened it is gone."""
        if self._run._parts.opener is not None:
            from rollbook.run.training import end_if_left

            end_if_left(self._run)

    def _own_cost(self) -> None:
        """Log rollbook's own cost to the run, every ten seconds in which rows were logged."""
        moment = time.monotonic()
        if moment < self._cost_due:
            return
        self._cost_due = moment + COST_SECONDS
        writer = self._run._writer
        # The last round comes after the end; before the first row there is nothing to report.
        if self._run._has_training_rows() and writer.rows_written() > self._rows_at_last and not writer.closed:
            cost = {
                "seconds": writer.seconds_spent(),
                "rows": writer.rows_written(),
                "refused": sum(writer.bill.counts.values()),
            }
            if row_ns := writer.row_cost_ns():
                cost["row_microseconds"] = row_ns / 1e3
            self.own_rows += 1
            self._log(cost)
            self._rows_at_last = writer.rows_written()
