"""AsyncLogger: runs a slow logger in its own thread."""

from __future__ import annotations

import threading
import weakref
from collections import deque

from rollbook.adapters.acme.base import Logger, LoggingData
from rollbook.errors import BadInput
from rollbook.system.bill import Bill

_RECORD_SECONDS = 10.0
"""Timeout of `flush`, `close` and the end of the program for a logger that takes no record."""


class AsyncLogger(Logger):
    """Writes to `to` from a thread, in order; `write` never waits.

    `close` waits until everything is written, or until `to` has taken nothing for ten seconds, then closes `to`. If the
    program ends without `close`, the queue is also drained. An exception from `to` is counted and reported once, and
    later records are still written. New records are refused if `queue_size` records wait, or after `close`; refused
    records are counted (`dropped`) and reported once.

    Args:
      to: the wrapped logger. It is called from one thread only.
      queue_size: how many records may wait.
    Raises:
      BadInput: `queue_size` is below 1.
    """

    def __init__(self, to: Logger, queue_size: int = 10_000) -> None:
        if queue_size < 1:
            raise BadInput(f"AsyncLogger(queue_size={queue_size!r}): at least 1 record has to be able to wait")
        self._worker = _Worker(to, queue_size)
        # Runs when this object is collected, or at exit while daemon threads still run.
        self._drain = weakref.finalize(self, self._worker.finish)

    @property
    def dropped(self) -> int:
        """How many records were refused."""
        return self._worker.dropped

    def write(self, values: LoggingData) -> None:
        """Queue a copy of `values`.

        Args:
          values: the record.
        """
        self._worker.put(dict(values))

    def flush(self) -> None:
        """Wait until everything queued so far is written."""
        self._worker.wait_until_empty()

    def close(self) -> None:
        """Write everything, then close the wrapped logger. Calling it again does nothing."""
        if self._drain.detach():
            self._worker.finish()
            self._worker.shielded_close()


class _Worker:
    """The queue and its thread. It has no reference to the AsyncLogger, so that this can be collected."""

    def __init__(self, to: Logger, queue_size: int) -> None:
        self._to, self._queue_size = to, queue_size
        self._waiting: deque[object] = deque()
        self._changed = threading.Condition()
        self._bill = Bill(who="AsyncLogger")
        self._finished = self._busy = False
        self.dropped = 0
        self._thread: threading.Thread | None = None

    def put(self, record: object) -> None:
        with self._changed:
            if self._finished:
                self.dropped += 1
                self._bill.report("closed", "write() was called after close(); the record is dropped")
                return
            if len(self._waiting) >= self._queue_size:
                self.dropped += 1
                self._bill.report(
                    "full", f"{self._queue_size} records wait and the logger behind is slower; new ones are dropped"
                )
                return
            self._waiting.append(record)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="rollbook-acme-logger", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                while not self._waiting:
                    if self._finished:
                        return
                    self._changed.wait()
                record = self._waiting.popleft()
                self._busy = True
            self._bill.guard("write", "write", self._to.write, record)

    def wait_until_empty(self) -> None:
        with self._changed:
            left = -1
            while left != len(self._waiting):  # as long as records are still taken
                left = len(self._waiting)
                if self._changed.wait_for(lambda: not self._waiting and not self._busy, _RECORD_SECONDS):
                    return
        self._report_slow()

    def finish(self) -> None:
        with self._changed:
            self._finished = True
            self._changed.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            left = -1
            while self._thread.is_alive() and left != len(self._waiting):
                left = len(self._waiting)
                self._thread.join(_RECORD_SECONDS)
            if self._thread.is_alive():
                self._report_slow()

    def _report_slow(self) -> None:
        words = f"the logger behind has taken no record for {_RECORD_SECONDS:g} s; {len(self._waiting)} still wait"
        self._bill.report("slow", words)

    def shielded_close(self) -> None:
        self._bill.guard("close", "close", self._to.close)
