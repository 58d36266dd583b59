"""The run's own thread: once a second it does what must not happen inside `log`, and shows the live sinks."""

from __future__ import annotations

import os
import threading
import time

from rollbook.foreign import is_foreign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from rollbook.run.run import Run

__all__ = ["Ticker"]

FIRST_COST_SECONDS, COST_SECONDS = 1.0, 10.0
"""How soon a run first writes down what rollbook costs it, and how often from then on."""


class Ticker(threading.Thread):
    """Fetches device values, makes segments ahead of need, writes the configuration, feeds sinks that live here.

    Args:
      run: whose.
      sinks: an object with step() and close(), or None; sinks that must live in this process (the terminal, objects).
      late: functions called once, in this thread, soon after the start (provenance).
    """

    def __init__(self, run: Run, sinks: Any, late: tuple[Callable[[], None], ...] = (), seconds: float = 1.0) -> None:
        super().__init__(name="rollbook", daemon=True)
        self._run, self._sinks, self._late, self._seconds = run, sinks, list(late), seconds
        self._stop_event = threading.Event()
        self._cost_due = time.monotonic() + FIRST_COST_SECONDS
        self._told_rows = 0  # that had been written when the last such row was
        self._kept_until = 0.0
        self._synced = os.path.join(run.folder, "data", "keeper", "durable.json")
        self._log = run.writer.make_log(
            run.writer.channel(prefix="rollbook/", scope="rollbook", current=run._channel.current)
        )

    def run(self) -> None:
        """The thread's body. The first rounds come soon: the first segments are small and full before a second is."""
        self.tick()
        pause = self._seconds / 8
        while not self._stop_event.wait(pause):
            self.tick()
            pause = 2 * pause if 2 * pause < self._seconds else self._until_synced()

    def _until_synced(self) -> float:
        """Seconds until shortly after the keeper's next sync, which makes every page clean: the pages that the coming
        rows go to are then faulted in here and not inside `log`.
        """
        try:
            since = time.time() - os.stat(self._synced).st_mtime
        except OSError as raised:
            if is_foreign(raised):
                raise
            return self._seconds
        if not 0 <= since < 2:
            return self._seconds
        pause = self._seconds - since + 0.03
        return pause if pause >= self._seconds / 2 else pause + self._seconds

    def tick(self, final: bool = False) -> None:
        """One round. What goes wrong is counted; it never ends the thread. A strict run hears of it from `finish`."""
        self._run.writer.bill.whole(self._round, final)

    def _round(self, final: bool) -> None:
        run = self._run
        for work in (
            run.writer.tick, *self._take_late(), self._settle, self._own_cost, self._feed, run.hear_of_sinks,
            self._see_keeper,
        ):  # fmt: skip
            try:
                work()
            except Exception as err:
                if is_foreign(err):
                    raise
                run.writer.failed("keep house", err)
        if final and self._sinks is not None:
            try:
                self._sinks.close()
            except Exception as err:
                if is_foreign(err):
                    raise
                run.writer.failed("close sinks", err)

    def stop(self) -> None:
        """End the thread (waits for the round it is in, at most five seconds) and do a last round here."""
        self._stop_event.set()
        if self.is_alive() and threading.current_thread() is not self:
            self.join(5.0)

    def _take_late(self) -> list[Callable[[], None]]:
        late, self._late = self._late, []
        return late

    def _feed(self) -> None:
        if self._sinks is not None:
            self._sinks.step()

    def _settle(self) -> None:
        run = self._run
        if run.config_changed and run.writer.main and not run.writer.fenced:
            run.config_changed = False
            from rollbook.capture.origin.config import write_config_files

            # As it was given, it keeps sets, tuples and keys that JSON has not; what was changed later is plain data.
            native, run._parts.native_config = run._parts.native_config, None
            config, formatted = dict(run.config) if native is None else native, run._parts.formatted_config
            write_config_files(run.folder, config, attempt=run.attempt, formatted_text=formatted)
            run.page_due = True
        run.hear_of_others()
        if run.page_due and run.writer.main and not run.writer.fenced and not run.writer.closed:
            run.write_about()

    def _see_keeper(self) -> None:
        """A keeper that ended before those who write is started again by whichever of them sees it first."""
        if not self._run._parts.keeper_may_go or self._run.writer.closed or time.monotonic() < self._kept_until:
            return
        self._kept_until = time.monotonic() + 2.0
        from rollbook.keeper.launch import is_kept, launch

        if not is_kept(self._run.folder) and os.path.isdir(self._run.folder):
            launch(self._run.folder)

    def _own_cost(self) -> None:
        """What rollbook itself costs becomes part of the run, every ten seconds in which something was logged."""
        moment = time.monotonic()
        if moment < self._cost_due:
            return
        self._cost_due = moment + COST_SECONDS
        writer = self._run.writer
        # The last round comes after the end; and before anything was logged there is nothing to tell.
        if self._run.has_training_rows() and writer.rows_written() > self._told_rows and not writer.closed:
            cost = {
                "seconds": writer.seconds_spent(),
                "rows": writer.rows_written(),
                "refused": sum(writer.bill.counts.values()),
            }
            if row_ns := writer.row_cost_ns():
                cost["row_microseconds"] = row_ns / 1e3
            self._log(cost)
            self._told_rows = writer.rows_written()
