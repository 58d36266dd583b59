"""AutoCloseLogger: a logger that closes itself."""

from __future__ import annotations

import weakref

from rollbook.adapters.acme.base import Logger, LoggingData


class AutoCloseLogger(Logger):
    """Closes `logger` when this object is collected or the program ends, unless it was closed before.

    Writing after `close` raises ValueError: that is a mistake in the program, not a failure of a destination.

    Args:
      logger: the wrapped logger.
    """

    def __init__(self, logger: Logger) -> None:
        self._logger: Logger | None = logger
        self._finalizer = weakref.finalize(self, logger.close)

    def write(self, values: LoggingData) -> None:
        """Pass `values` on.

        Args:
          values: the record.
        Raises:
          ValueError: it is closed.
        """
        if self._logger is None:
            raise ValueError("write() was called on an AutoCloseLogger after close(); make a new logger to go on")
        self._logger.write(values)

    def close(self) -> None:
        """Close `logger`. Calling it again does nothing."""
        logger, self._logger = self._logger, None
        if logger is not None and self._finalizer.detach():
            logger.close()
