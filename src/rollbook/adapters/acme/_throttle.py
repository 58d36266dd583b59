"""Throttle: at most one record per time interval; the last record is always delivered."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from typing import Any

from rollbook.errors import BadInput


class _Held:
    """The held record and its destination. Separate from the Throttle, so that a finalizer can own it."""

    def __init__(self, to: Callable[[Any], None]) -> None:
        self.to = to
        self.record: Any = None

    def release(self) -> None:
        record, self.record = self.record, None
        if record is not None:
            self.to(record)


class Throttle:
    """Passes the first record, and then one whenever more than `time_delta` seconds have passed since the last.

    The last record is never lost: a held record is passed on at `flush`, when the throttle is collected, or when the
    interpreter ends. Training loops do not close their loggers.

    Args:
      to: called with each record.
      time_delta: seconds; 0 passes everything.
      keeps_last: False drops records that are not due, as Acme does.
      clock: monotonic seconds.
    """

    def __init__(
        self,
        to: Callable[[Any], None],
        time_delta: float,
        *,
        keeps_last: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if time_delta < 0:
            raise BadInput(f"time_delta={time_delta!r} asks for a stretch of negative length; give 0 or more seconds")
        self._held = _Held(to)
        self._time_delta, self._keeps_last, self._clock = time_delta, keeps_last, clock
        self._last: float | None = None
        weakref.finalize(self, self._held.release)

    def offer(self, record: object) -> bool:
        """Pass `record` on if it is due, else hold it in place of the previous one. Returns whether it passed."""
        now = self._clock()
        if self._time_delta and self._last is not None and now - self._last <= self._time_delta:
            if self._keeps_last:
                self._held.record = record
            return False
        self._held.record = None
        self._last = now
        self._held.to(record)
        return True

    def flush(self) -> None:
        """Pass on the held record, if there is one."""
        if self._held.record is not None:
            self._last = self._clock()
        self._held.release()
