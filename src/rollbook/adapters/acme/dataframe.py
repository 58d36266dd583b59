"""InMemoryLogger: records in a list, for a notebook or a test.

    logger = InMemoryLogger()
    loop = EnvironmentLoop(environment, actor, logger=logger)
    pandas.DataFrame(logger.data)

The module has Acme's name.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

from rollbook.adapters.acme.base import Logger, LoggingData, to_numpy


class InMemoryLogger(Logger):
    """Keeps a copy of every record, so later changes by the caller have no effect."""

    def __init__(self) -> None:
        self._data: list[LoggingData] = []

    def write(self, data: LoggingData) -> None:
        """Keep a copy of `data`.

        Args:
          data: the record.
        """
        self._data.append(deepcopy(to_numpy(data)))

    @property
    def data(self) -> Sequence[LoggingData]:
        """The records, oldest first."""
        return self._data
