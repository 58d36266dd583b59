"""TimestampLogger: the wall time in each record. A run needs none: its rows carry their time."""

from __future__ import annotations

import time
from collections.abc import Callable

from rollbook.adapters.acme.base import Logger, LoggingData
from rollbook.ground.bill import Bill

__all__ = ["TimestampLogger"]


class TimestampLogger(Logger):
    """Adds the unix time in seconds under `timestamp_key`. A value the record has there is replaced, which is said."""

    def __init__(self, logger: Logger, timestamp_key: str, *, clock: Callable[[], float] = time.time) -> None:
        self._logger, self._key, self._clock = logger, timestamp_key, clock
        self._said = Bill(who="TimestampLogger")

    def write(self, data: LoggingData) -> None:
        """Hand on `data` with the time."""
        if self._key in data:
            self._said.say(self._key, f"the record has a value {self._key!r} of its own; the time takes its place")
        self._logger.write({**data, self._key: self._clock()})

    def close(self) -> None:
        """Close the logger behind."""
        self._logger.close()
