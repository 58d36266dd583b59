"""TimestampLogger: the wall time in each record. A run does not need it: its rows have their time."""

from __future__ import annotations

import time
from collections.abc import Callable

from rollbook.adapters.acme.base import Logger, LoggingData, Wrapper
from rollbook.system.bill import Bill


class TimestampLogger(Wrapper):
    """Adds the unix time in seconds to each record. It replaces the record's own value of that key (reported once).

    Args:
      logger: the wrapped logger.
      timestamp_key: the key of the time.
      clock: unix seconds.
    """

    def __init__(self, logger: Logger, timestamp_key: str, *, clock: Callable[[], float] = time.time) -> None:
        super().__init__(logger)
        self._key, self._clock = timestamp_key, clock
        self._bill = Bill(who="TimestampLogger")

    def write(self, data: LoggingData) -> None:
        """Pass on `data` with the time.

        Args:
          data: the record.
        """
        if self._key in data:
            self._bill.report(self._key, f"the record has a value {self._key!r} of its own; the time takes its place")
        self._to.write({**data, self._key: self._clock()})
