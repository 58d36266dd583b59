"""Dispatcher: one record to several loggers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rollbook.adapters.acme.base import Logger, LoggingData
from rollbook.system.bill import Bill


class Dispatcher(Logger):
    """Writes each record to every logger in `to`. If one fails, the others still get the record.

    Args:
      to: the loggers, in order.
      serialize_fn: applied once to each record before it is written, e.g. `to_numpy`.
    """

    def __init__(self, to: Sequence[Logger], serialize_fn: Callable[[LoggingData], Any] | None = None) -> None:
        self._to = list(to)
        self._serialize_fn = serialize_fn
        self._bill = Bill(who="Dispatcher")

    @property
    def failures(self) -> dict[str, int]:
        """Number of failures of each logger."""
        return dict(self._bill.counts)

    def write(self, values: LoggingData) -> None:
        """Write `values` to each logger. An exception is counted and reported once.

        Args:
          values: the record.
        """
        if self._serialize_fn is not None:
            values = self._serialize_fn(values)
        for number, logger in enumerate(self._to):
            self._guard("write", number, logger, logger.write, values)

    def close(self) -> None:
        """Close each logger."""
        for number, logger in enumerate(self._to):
            self._guard("close", number, logger, logger.close)

    def flush(self) -> None:
        """Flush each logger that can."""
        for number, logger in enumerate(self._to):
            flush = getattr(logger, "flush", None)
            if flush is not None:
                self._guard("flush", number, logger, flush)

    def _guard(self, verb: str, number: int, logger: Logger, work: Callable[..., object], *arguments: object) -> None:
        which = f"{type(logger).__name__}.{verb} (logger {number})"
        self._bill.guard(which, which, work, *arguments)
